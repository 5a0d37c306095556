// Reads packing problems from the user's files; here because core/packing opens no files.
#pragma once

#include "core/packing/problem.h"

#include <string>

namespace loadline {

// As read_packing_csv(); the problem has passed check_problem(). Also throws Error{io}, and Error{limit} for
// a file over 1 GiB.
Problem read_packing_file(const std::string& path);

}  // namespace loadline
