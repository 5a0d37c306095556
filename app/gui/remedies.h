// What a remedy is about, and what its button says.
#pragma once

#include "core/base/remedy.h"

#include <cstdint>
#include <span>
#include <string>

namespace loadline::gui {

enum class RemedyKind : std::uint8_t { open, load, convert };

// Of options that one step sets together. Throws Error{usage} where no table has the first one.
RemedyKind remedy_kind(std::span<const Remedy> remedies);
// "Follow links", "Set Order to file", "Convert with these options".
std::string remedy_title(std::span<const Remedy> remedies);

}  // namespace loadline::gui
