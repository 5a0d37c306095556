// Recognises saved requests among the files that a user opens.
#pragma once

#include <string>

namespace loadline::gui {

// Whether the file declares itself a saved request, well-formed or not.
bool is_request_file(const std::string& path);

}  // namespace loadline::gui
