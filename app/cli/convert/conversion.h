// What the commands that write a model share: request, output, report, share of a job.
#pragma once

#include "app/cli/base/command.h"
#include "exporters/convert.h"
#include "exporters/preflight.h"
#include "exporters/writer/write_layout.h"

#include <functional>
#include <string>

namespace loadline::cli {

// --- The parts of `convert` that other commands which write a model share.

// What the words of a request stand for, with the share of a process that Slurm or MPI started.
exporters::ConvertEnvironment convert_environment(const Context& context);

// Writes what was planned and reports it; or, with `only_show`, reports what would be written. `more` are
// keys that the command adds to the JSON.
int write_conversion(const Context& context, const exporters::Conversion& conversion,
                     const exporters::Preflight& planned, bool only_show, const Json& more);

// Says on stderr, unless quiet, that a conversion which failed has left its files for another run.
void tell_of_kept(const Context& context, const exporters::Layout& layout);

// --- How written files are shown, for the commands that write models.

// A list of {path, bytes, xxh3}.
Json files_json(const exporters::WriteReport& report);
// Tensors with numbers that their type cannot hold, or that are no finite numbers in the source.
Json faulty_json(const exporters::WriteReport& report);
// A line each: name, size, hash.
void print_files(const exporters::WriteReport& report);

// --- Which share of a job this process has, from what Slurm and MPI set in the environment.

// `variable` gives the value of an environment variable, empty if it is not set. In this order: a Slurm job
// array, an Open MPI rank, an MPICH or Intel MPI rank, a Slurm task. A scheduler that started one process
// only gives share 0 of 1. Throws Error{usage} if none is set, or if a value is no number.
exporters::WriteShare share_from_environment(const std::function<std::string(const char*)>& variable);

// --- Ending a conversion, for `join` and for a `convert --resume` that finds nothing else to do.

// Verifies the parts of an output, puts them in place and reports. Throws as join_parts() does.
int run_join(const Context& context, const std::string& out, bool force);

}  // namespace loadline::cli
