// Looks up the options of remedies in the option tables.
#include "app/gui/state/base/remedies.h"

#include "core/base/error.h"
#include "core/load/request/load_options.h"
#include "exporters/convert_options.h"
#include "importers/open_options.h"

#include <cassert>

#include <fmt/format.h>

namespace loadline::gui {
RemedyKind remedy_kind(std::span<const Remedy> remedies) {
  assert(!remedies.empty());
  const std::string& id = remedies.front().option;
  if (find_option(open_options(), id) != nullptr) return RemedyKind::open;
  if (find_load_option(id) != nullptr) return RemedyKind::load;
  if (find_option(convert_options(), id) != nullptr) return RemedyKind::convert;
  throw Error(ErrorCode::usage, "there is no option '{}'", id);
}

std::string remedy_title(std::span<const Remedy> remedies) {
  const Remedy& first = remedies.front();
  const RemedyKind kind = remedy_kind(remedies);
  if (kind == RemedyKind::open) return std::string(find_option(open_options(), first.option)->title);
  if (kind == RemedyKind::load)
    return fmt::format("Set {} to {}", find_load_option(first.option)->title, first.value);
  return "Use these options";
}

}  // namespace loadline::gui
