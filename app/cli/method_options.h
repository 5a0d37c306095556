// The options that load methods take, for every command that runs one.
#pragma once

#include "app/cli/command.h"
#include "core/load/methods.h"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace loadline::cli {

struct MethodArguments {
  std::string staging = "64MiB";
  std::uint32_t slots = 4;
  std::string memory_limit = "40GB";
  std::string activations = "0";
  std::string allocator = "exact";
  std::string cast = {};
  std::string shard_size = {};
  std::string flush = "0";
  bool doubled_ties = false;
  std::optional<std::uint64_t> gpu_layers = {};
  std::vector<std::string> place = {};
  std::string max_memory = {};
};

// All but --allocator, which only a projection follows. `arguments` must outlive parsing.
void add_method_options(CLI::App& app, MethodArguments& arguments);
// All but the placement, which needs a model. Throws Error{usage}.
MethodOptions parse_method_arguments(const MethodArguments& arguments);
// Where --gpu-layers, --place or --max-memory put the model's weights. Throws Error{usage}.
Placement parse_placement(const MethodArguments& arguments, const MetaGraph& graph);

// Throws Error{unsupported} where the method imports pages of files that cannot be mapped: its plan does not
// tell, as imported pages are staging there.
void require_importable(const MetaGraph& graph, const Method& method);

// For plan's "options": what was chosen, absent choices as null.
Json method_options_json(const MethodOptions& options, const MetaGraph& graph);

}  // namespace loadline::cli
