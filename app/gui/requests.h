// Saved requests among the files that somebody opens.
#pragma once

#include <string>

namespace loadline::gui {

// Whether the file says that it is a saved request, well-formed or not.
bool is_request_file(const std::string& path);

}  // namespace loadline::gui
