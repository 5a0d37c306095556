// What the state asks of the window: a sheet, the keyboard for a field, a file of what is seen, the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::gui {

// The dialog of files. It opens a model; for an asker it finds the path of a file to write, which becomes a
// PickedFile.
struct OpenBrowser {
  std::string asker = {};  // who takes the PickedFile
  std::string title = {};
  std::string path = {};  // that it begins with
};
struct PickedFile {
  std::string asker;
  std::string path;
};
struct OpenExport {};  // the sheet
struct OpenPalette {
  std::string text = {};  // is typed in it
};
struct OpenAdvice {};  // the sheet behind the verdict
struct OpenKeys {};
// A page, or a section of the page about the window; without both: about the part that has the keyboard.
struct OpenManual {
  std::string topic = {};
  std::string section = {};
};
struct FocusFilter {};    // the filter gets the keyboard
struct FocusFind {};      // the field that finds operators gets it
struct CallAttention {};  // something that took long is done: the desktop may say so
struct AskQuit {};        // whether to quit although something is being written
struct Quit {};

// A file of what is seen; the end of its name says what it holds: .png, .svg, .csv, and for a play .gif or
// the .png of a numbered series.
enum class ViewPart : std::uint8_t { panel, timeline, window };
// Of a picture: logical, and the pixels of each unit.
struct PictureSize {
  int width = 0, height = 0;
  float scale = 1;
  bool operator==(const PictureSize&) const = default;
};
struct ExportRequest {
  std::string path;
  ViewPart part = ViewPart::panel;
  std::size_t frames = 0;  // of a play from the beginning to the end of the load; 0: what is seen now
  std::optional<PictureSize> size = {};  // of the part; nothing: as it is seen
  std::optional<bool> dark = {};         // the theme; nothing: as it is seen
  bool copies = false;                   // to the clipboard; `path` says only what, by its end
  bool operator==(const ExportRequest&) const = default;
};

using WindowRequest =
    std::variant<OpenBrowser, PickedFile, OpenExport, OpenPalette, OpenAdvice, OpenKeys, OpenManual,
                 FocusFilter, FocusFind, CallAttention, AskQuit, Quit, ExportRequest>;

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
  // The path that was picked for this asker.
  std::optional<std::string> take_picked(std::string_view asker) {
    const auto found = std::ranges::find_if(waiting_, is_a<PickedFile>);
    if (found == waiting_.end() || std::get<PickedFile>(*found).asker != asker) return std::nullopt;
    return take<PickedFile>()->path;
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
