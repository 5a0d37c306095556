// What a view shows as a table, in CSV (RFC 4180).
#pragma once

#include "app/gui/state/document.h"

#include <string>
#include <string_view>

namespace loadline::gui {

// The rows behind the panel with this id: those that pass the filter, in the order of the view. Names are
// escaped as on the screen. Throws Error{usage} for a view without rows, or whose rows are not there yet.
std::string view_csv(const Document& document, std::string_view panel);

}  // namespace loadline::gui
