// What the state asks of the window: a sheet, the keyboard for a field, a file of what is seen, the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::gui {

struct OpenBrowser {};  // of files
struct OpenPalette {
  std::string text = {};  // is typed in it
};
struct OpenAdvice {};  // the sheet behind the verdict
struct OpenKeys {};
struct OpenManual {
  std::string topic;
};
struct FocusFilter {};    // the filter gets the keyboard
struct CallAttention {};  // something that took long is done: the desktop may say so
struct AskQuit {};        // whether to quit although something is being written
struct Quit {};

// A file of what is seen; the end of its name says what it holds: .png, .svg, .csv, and for a play .gif or
// the .png of a numbered series.
enum class ViewPart : std::uint8_t { panel, timeline, window };
struct ExportRequest {
  std::string path;
  ViewPart part = ViewPart::panel;
  std::size_t frames = 0;  // of a play from the beginning to the end of the load; 0: what is seen now
  bool operator==(const ExportRequest&) const = default;
};

using WindowRequest = std::variant<OpenBrowser, OpenPalette, OpenAdvice, OpenKeys, OpenManual, FocusFilter,
                                   CallAttention, AskQuit, Quit, ExportRequest>;

// Each part of the window takes what is for it, in the frame in which it can serve it. Until then a newer
// request replaces the older one of its kind.
class WindowRequests {
 public:
  void add(WindowRequest request) {
    std::erase_if(waiting_, [&](const WindowRequest& other) { return other.index() == request.index(); });
    waiting_.push_back(std::move(request));
  }
  // The request of that kind, which then waits no longer.
  template <typename Kind>
  std::optional<Kind> take() {
    const auto found = std::ranges::find_if(waiting_, is_a<Kind>);
    if (found == waiting_.end()) return std::nullopt;
    std::optional<Kind> taken = std::get<Kind>(std::move(*found));
    waiting_.erase(found);
    return taken;
  }
  template <typename Kind>
  bool holds() const {
    return std::ranges::any_of(waiting_, is_a<Kind>);
  }

 private:
  template <typename Kind>
  static bool is_a(const WindowRequest& request) {
    return std::holds_alternative<Kind>(request);
  }

  std::vector<WindowRequest> waiting_;
};

}  // namespace loadline::gui
