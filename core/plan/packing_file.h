// Packing problems from files of a user's: here, since core/packing reads none.
#pragma once

#include "core/packing/problem.h"

#include <string>

namespace loadline {

// As read_packing_csv(); has passed check_problem(). Throws Error{io, malformed}, Error{limit} for a file of
// more than 1 GiB.
Problem read_packing_file(const std::string& path);

}  // namespace loadline
