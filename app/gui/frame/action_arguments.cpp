#include "app/gui/frame/actions.h"
#include "app/gui/frame/convert_words.h"
#include "core/base/option.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

const Option<ConvertRequest>& option_called(std::string_view flag) {
  std::string id(flag);
  std::ranges::replace(id, '-', '_');
  for (const Option<ConvertRequest>& option : convert_options())
    if (option.id == id) return option;
  refuse(fmt::format("no option '--{}' of a conversion", flag));
}

// "out.gguf q8_0": the type went into the name.
void refuse_type_in_name(std::string_view file) {
  const std::size_t blank = file.rfind(' ');
  if (blank == std::string_view::npos) return;
  const std::string_view last = file.substr(blank + 1);
  for (const Option<ConvertRequest>& option : convert_options())
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

}  // namespace loadline::gui
