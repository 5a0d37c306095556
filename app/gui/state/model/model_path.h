// Paths as people type them: relative or absolute, with a slash at the end or without.
#pragma once

#include <string>

namespace loadline::gui {

// A path that is none (org/name) stays what it is.
std::string absolute_path(const std::string& path);
bool is_same_path(const std::string& a, const std::string& b);

}  // namespace loadline::gui
