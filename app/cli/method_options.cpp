// Parses the options of load methods.
#include "app/cli/method_options.h"

#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/load/projection.h"
#include "core/load/storage_cast.h"

#include <charconv>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

// CLI11 takes what is too large for the largest number.
CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t number = 0;
        const auto end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        return read.ec == std::errc() && read.ptr == end
                   ? std::string()
                   : fmt::format("'{}' is no whole number below 2^64", safe_display(text, 40));
      },
      "");
}

void add_placement_options(CLI::App& app, MethodArguments& arguments) {
  CLI::Option* const layers =
      app.add_option("--gpu-layers", arguments.gpu_layers,
                     "N layers on the device: norm and head count as one, the others are the last N - 1 "
                     "numbered layers; the rest on the host (llama_cpp_*, accelerate)")
          ->check(CLI::Range(std::int64_t{0}, kMostNumber))
          ->check(whole_number());
  CLI::Option* const place =
      app.add_option(
             "--place", arguments.place,
             "EXPR=device|host|disk: where tensors go that match a filter (see inspect --filter); the "
             "first that matches counts")
          ->excludes(layers);
  app.add_option("--max-memory", arguments.max_memory,
                 "DEVICE[,HOST]: fill the device, then the host, then disk, as accelerate's "
                 "device_map=\"auto\"; each keeps room free for the largest module still to be placed "
                 "after it")
      ->excludes(layers)
      ->excludes(place);
}

}  // namespace

void add_method_options(CLI::App& app, MethodArguments& arguments) {
  app.add_option("--staging", arguments.staging, "Bytes of the whole staging ring")->capture_default_str();
  app.add_option("--slots", arguments.slots, "Slots of the staging ring")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--memory-limit", arguments.memory_limit, "Bytes of the buffer that runai reads ahead into")
      ->capture_default_str();
  app.add_option("--activations", arguments.activations, "Q: activations and caches on the device")
      ->capture_default_str();
  app.add_option(
      "--cast", arguments.cast,
      "What floating point weights become on their way: f32, f16, bf16, or a type that can only be "
      "projected, such as q4_k");
  app.add_option("--shard-size", arguments.shard_size,
                 "As if the model had been saved in shards of at most so many bytes");
  app.add_option("--flush", arguments.flush,
                 "executorch_*: staging buffers wait until they hold so many bytes together")
      ->capture_default_str();
  app.add_flag("--doubled-ties", arguments.doubled_ties,
               "executorch_*: a weight with two names is packed for each of them");
  add_placement_options(app, arguments);
}

MethodOptions parse_method_arguments(const MethodArguments& arguments) {
  MethodOptions options;
  options.staging_bytes = parse_size(arguments.staging, "--staging");
  options.slots = arguments.slots;
  options.memory_limit = parse_size(arguments.memory_limit, "--memory-limit");
  options.activation_bytes = parse_size(arguments.activations, "--activations");
  options.allocator = load_allocator(arguments.allocator);
  if (!arguments.cast.empty()) options.cast = find_cast(arguments.cast);
  if (!arguments.shard_size.empty()) options.shard_bytes = parse_size(arguments.shard_size, "--shard-size");
  if (!arguments.shard_size.empty() && options.shard_bytes == 0)
    throw Error(ErrorCode::usage, "--shard-size: a shard holds at least one byte");
  options.flush_bytes = parse_size(arguments.flush, "--flush");
  options.doubled_ties = arguments.doubled_ties;
  check_options(options);
  return options;
}

Placement parse_placement(const MethodArguments& arguments, const MetaGraph& graph) {
  if (arguments.gpu_layers) return place_gpu_layers(graph, *arguments.gpu_layers);
  if (!arguments.max_memory.empty()) {
    const MemoryMap map = parse_memory_map(arguments.max_memory, "--max-memory");
    const std::optional<DType> cast =
        arguments.cast.empty() ? std::nullopt : std::optional(find_cast(arguments.cast));
    return place_automatically(graph, map.device, map.host, cast);
  }
  if (arguments.place.empty()) return {};
  std::vector<PlaceRule> rules;
  for (const std::string& text : arguments.place) rules.push_back(parse_place_rule(text));
  return place_by_rules(graph, rules);
}

void require_importable(const MetaGraph& graph, const Method& method) {
  if (!method.traits.imports) return;
  if (const std::string refusal = mapping_refusal(graph); !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
}

Json method_options_json(const MethodOptions& options, const MetaGraph& graph) {
  Json json = {{"memory", options.spaces == space_bit(Space::device) ? "discrete" : "unified"},
               {"staging_bytes", options.staging_bytes},
               {"slots", options.slots},
               {"memory_limit", options.memory_limit},
               {"activation_bytes", options.activation_bytes},
               {"allocator", allocator_id(options.allocator)},
               {"cast", options.cast ? Json(dtype_info(*options.cast).name) : Json()},
               {"shard_bytes", options.shard_bytes == 0 ? Json() : Json(options.shard_bytes)},
               {"flush_bytes", options.flush_bytes},
               {"doubled_ties", options.doubled_ties},
               {"placement", Json()}};
  if (options.placement.all_on_device()) return json;
  const auto owners = first_owner(graph);
  for (const Home home : {Home::device, Home::host, Home::disk}) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const StorageId id{static_cast<std::uint32_t>(i)};
      const bool twin = home == Home::host && options.placement.has_twin(id);
      if (owners[i] && (twin || options.placement.of(id) == home)) bytes += graph.storage(id).bytes;
    }
    json["placement"][std::string(home_id(home))] = bytes;
  }
  return json;
}

}  // namespace loadline::cli
