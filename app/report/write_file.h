// Writes the files that commands produce besides their answer: charts, pages, saved requests, packings and
// rates. A file appears complete or not at all.
#pragma once

#include <string>
#include <string_view>

namespace loadline::report {

// Throws Error{usage} unless `path` is empty or ends in `extension`, so that no other kind of file is
// overwritten.
void check_picture_path(const std::string& path, std::string_view extension);

// Throws Error{io}. Without `replace`, throws Error{usage} if the file exists by the time it is complete.
void write_file(const std::string& path, std::string_view text, bool replace = true);

}  // namespace loadline::report
