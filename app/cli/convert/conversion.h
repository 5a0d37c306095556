// The parts of `convert` that other commands which write a model share.
#pragma once

#include "app/cli/base/command.h"
#include "exporters/convert_options.h"
#include "exporters/preflight.h"

#include <string>

namespace loadline::cli {

// The requested format, else the one that OUT's name implies; safetensors if neither is given.
const Exporter& chosen_exporter(const std::string& to, const std::string& out);

// Fills in what the options leave to the front end: the share of a process that Slurm or MPI started, and the
// order of the tensors. Throws Error{usage}.
void complete_request(const Context& context, const MetaGraph& graph, ConvertRequest& request);

// Writes what was planned and reports it; or, with `only_show`, reports what would be written. `more` are
// keys that the command adds to the JSON.
int write_conversion(const Context& context, const MetaGraphPtr& graph, const Preflight& planned,
                     const WriteOptions& write, bool only_show, const Json& more);

}  // namespace loadline::cli
