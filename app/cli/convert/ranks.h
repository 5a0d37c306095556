// Which share of a job this process has, from what Slurm and MPI set in the environment.
#pragma once

#include "exporters/writer/write_layout.h"

#include <functional>
#include <string>

namespace loadline::cli {

// `variable` gives the value of an environment variable, empty if it is not set. In this order: a Slurm job
// array, an Open MPI rank, an MPICH or Intel MPI rank, a Slurm task. A scheduler that started one process
// only gives share 0 of 1. Throws Error{usage} if none is set, or if a value is no number.
WriteShare share_from_environment(const std::function<std::string(const char*)>& variable);

}  // namespace loadline::cli
