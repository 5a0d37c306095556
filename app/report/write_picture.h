// Files that commands write beside their answer: charts, pages, saved requests. They appear whole or not at
// all.
#pragma once

#include <string>
#include <string_view>

namespace loadline::report {

// Throws Error{usage} unless `path` is empty or ends in `extension`: what is no picture stays as it is.
void check_picture_path(const std::string& path, std::string_view extension);

// Throws Error{io}.
void write_picture(const std::string& path, std::string_view text);

}  // namespace loadline::report
