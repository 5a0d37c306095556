// The kind of a remedy, and the title of its button.
#pragma once

#include "core/base/remedy.h"

#include <cstdint>
#include <span>
#include <string>

namespace loadline::gui {

enum class RemedyKind : std::uint8_t { open, load, convert };

// The kind of remedies that one button applies together. Throws Error{usage} if the first option is unknown.
RemedyKind remedy_kind(std::span<const Remedy> remedies);
// The button's title: "Follow links", "Set Order to file", "Use these options".
std::string remedy_title(std::span<const Remedy> remedies);

}  // namespace loadline::gui
