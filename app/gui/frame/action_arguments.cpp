// What actions share, and their arguments: conversions and exports in words.

#include "app/gui/frame/actions.h"
#include "core/base/option.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace loadline::gui {

// --- What the two tables of actions share.

bool always(const Workspace&) { return true; }

bool has_model(const Workspace& workspace) { return workspace.document().model != nullptr; }

const Model& model_of(const Workspace& workspace) {
  if (!workspace.document().model) refuse("no model is open");
  return *workspace.document().model;
}

bool ascending(std::string_view& column) {
  const std::size_t space = column.find(' ');
  if (space == std::string_view::npos) return true;
  const std::string_view word = column.substr(space + 1);
  if (word != "descending") refuse(fmt::format("'{}' is not descending", word));
  column = column.substr(0, space);
  return false;
}

// --- The words of a conversion.

namespace {

const Option<exporters::ConvertRequest>& option_called(std::string_view flag) {
  std::string id(flag);
  std::ranges::replace(id, '-', '_');
  for (const Option<exporters::ConvertRequest>& option : exporters::convert_options())
    if (option.id == id) return option;
  refuse(fmt::format("no option '--{}' of a conversion", flag));
}

// "out.gguf q8_0": the type went into the name.
void refuse_type_in_name(std::string_view file) {
  const std::size_t blank = file.rfind(' ');
  if (blank == std::string_view::npos) return;
  const std::string_view last = file.substr(blank + 1);
  for (const Option<exporters::ConvertRequest>& option : exporters::convert_options())
    if (option.id == "outtype" && option.choices != nullptr && std::ranges::count(option.choices(), last) > 0)
      refuse(fmt::format("'{}' ends with a type, not with a file's name: write {} --outtype {}", file,
                         file.substr(0, blank), last));
}

// Hands every " --FLAG VALUE" at the end of the words to `take`, and returns the words before them.
template <typename Take>
std::string_view without_flags(std::string_view words, Take take) {
  constexpr std::string_view kFlag = " --";
  const std::size_t flags = words.find(kFlag);
  const std::string_view before = words.substr(0, flags);
  words.remove_prefix(flags == std::string_view::npos ? words.size() : flags);
  while (words.starts_with(kFlag)) {
    words.remove_prefix(kFlag.size());
    const std::size_t next = words.find(kFlag);
    const auto [flag, value] = two_words(words.substr(0, next), "--OPTION VALUE");
    take(flag, value);
    words.remove_prefix(next == std::string_view::npos ? words.size() : next);
  }
  return before;
}

}  // namespace

ConvertTask convert_words(std::string_view words) {
  const std::size_t space = words.find(' ');
  if (space == std::string_view::npos) refuse("needs a format and a file");
  ConvertTask task;
  task.request.to = words.substr(0, space);
  task.request.write.overwrite = true;
  task.request.write.verify = true;
  const std::string_view file =
      without_flags(words.substr(space + 1), [&](std::string_view flag, std::string_view value) {
        set_option(option_called(flag), task.request, value);
      });
  refuse_type_in_name(file);
  task.out = file;
  return task;
}

// --- The words of an export. The last word, or the first, may be no part of the path.

namespace {

// The flags of both: --size, --scale, --theme.
std::string without_looks(std::string_view words, ExportRequest& request) {
  constexpr std::array<std::string_view, 2> kThemes = {"light", "dark"};
  constexpr int kLeast = 64, kMost = 16'384;
  constexpr float kMostScale = 4;
  PictureSize size;
  const std::string_view before = without_flags(words, [&](std::string_view flag, std::string_view value) {
    if (flag == "theme") {
      request.dark = position(value, kThemes, "theme") == 1;
    } else if (flag == "scale") {
      size.scale = parse_number<float>(value, 0.5f, kMostScale);
    } else if (flag == "size") {
      const std::size_t by = value.find('x');
      if (by == std::string_view::npos) refuse(fmt::format("'{}' is not WIDTHxHEIGHT", value));
      size.width = parse_number<int>(value.substr(0, by), kLeast, kMost);
      size.height = parse_number<int>(value.substr(by + 1), kLeast, kMost);
    } else {
      refuse(fmt::format("no option '--{}' of an export; there are: --size, --scale, --theme", flag));
    }
  });
  if (size.width > 0)
    request.size = size;
  else if (size.scale != 1)
    refuse("--scale needs --size");
  return std::string(before);
}

}  // namespace

ExportRequest view_request(const std::string& text) {
  ExportRequest request;
  const std::string words = without_looks(text, request);
  constexpr std::array<std::string_view, 3> kParts = {"panel", "timeline", "window"};
  const std::size_t space = words.find(' ');
  const auto part = std::ranges::find(kParts, words.substr(0, space));
  const bool named = space != std::string::npos && part != kParts.end();
  request.path = named ? words.substr(space + 1) : words;
  if (named) request.part = static_cast<ViewPart>(part - kParts.begin());
  if (!request.path.ends_with(".png") && !request.path.ends_with(".svg") && !request.path.ends_with(".csv"))
    refuse("a view is written as .png, .svg or .csv");
  return request;
}

ExportRequest play_request(const std::string& text) {
  constexpr std::size_t kUsual = 80, kMost = 2000;
  ExportRequest request{.path = {}, .part = ViewPart::window, .frames = kUsual};
  const std::string words = without_looks(text, request);
  request.path = words;
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
