// The last word, or the first, may be no part of the path.
#include "app/gui/frame/export_words.h"

#include "app/gui/frame/actions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace loadline::gui {

ExportRequest view_request(const std::string& words) {
  constexpr std::array<std::string_view, 3> kParts = {"panel", "timeline", "window"};
  const std::size_t space = words.find(' ');
  const auto part = std::ranges::find(kParts, words.substr(0, space));
  const bool named = space != std::string::npos && part != kParts.end();
  ExportRequest request{.path = named ? words.substr(space + 1) : words};
  if (named) request.part = static_cast<ViewPart>(part - kParts.begin());
  if (!request.path.ends_with(".png") && !request.path.ends_with(".svg") && !request.path.ends_with(".csv"))
    refuse("a view is written as .png, .svg or .csv");
  return request;
}

ExportRequest play_request(const std::string& words) {
  constexpr std::size_t kUsual = 80, kMost = 2000;
  ExportRequest request{.path = words, .part = ViewPart::window, .frames = kUsual};
  const std::size_t space = words.rfind(' ');
  const std::string last = space == std::string::npos ? "" : words.substr(space + 1);
  if (!last.empty() && last.find_first_not_of("0123456789") == std::string::npos) {
    request.frames = parse_number<std::size_t>(last, 2, kMost);
    request.path = words.substr(0, space);
  }
  if (!request.path.ends_with(".gif") && !request.path.ends_with(".png"))
    refuse("a play is written as .gif, or as a numbered series of .png files");
  return request;
}

}  // namespace loadline::gui
