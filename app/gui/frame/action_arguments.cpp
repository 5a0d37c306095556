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

}  // namespace

ConvertTask convert_words(std::string_view words) {
  const std::size_t space = words.find(' ');
  if (space == std::string_view::npos) refuse("needs a format and a file");
  ConvertTask task;
  task.request.to = words.substr(0, space);
  task.request.write.overwrite = true;
  task.request.write.verify = true;
  std::string_view rest = words.substr(space + 1);
  constexpr std::string_view kFlag = " --";
  const std::size_t flags = rest.find(kFlag);
  const std::string_view file = rest.substr(0, flags);
  rest.remove_prefix(flags == std::string_view::npos ? rest.size() : flags);
  while (rest.starts_with(kFlag)) {
    rest.remove_prefix(kFlag.size());
    const std::size_t next = rest.find(kFlag);
    const auto [flag, value] = two_words(rest.substr(0, next), "--OPTION VALUE");
    set_option(option_called(flag), task.request, value);
    rest.remove_prefix(next == std::string_view::npos ? rest.size() : next);
  }
  refuse_type_in_name(file);
  task.out = file;
  return task;
}

// --- The words of an export. The last word, or the first, may be no part of the path.

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
