// loadline synth: writes a checkpoint made from a configuration alone.
#include "exporters/synth.h"

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/gguf/gguf_family.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/known_models.h"
#include "exporters/convert.h"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct SynthFlags {
  std::string config;
  std::string out;
  bool sparse = false;
  std::optional<std::uint64_t> seed;
  std::string max_shard_size;
  std::string to;
  bool force = false;
};

std::string preset_list() {
  std::string ids;
  for (const forward::Preset& preset : forward::presets())
    ids += fmt::format("{}{}", ids.empty() ? "" : ", ", preset.id);
  return ids;
}

struct Shapes {
  graph::MetaGraph graph;
  std::uint64_t max_shard_bytes = 5'000'000'000;
};

// The shapes of a preset, or of a path whose model has a config.json. `out` must not replace that model.
Shapes shapes_of(const Context& context, const std::string& config, const std::string& out) {
  if (const forward::Preset* preset = forward::find_preset(config))
    return {forward::config_graph(preset->config_json, std::string(preset->id), *context.assets()),
            preset->max_shard_bytes};
  graph::MetaGraph model;
  try {
    model = importers::open_model(config, context.resolve_options());
  } catch (const Error& error) {
    std::error_code ignored;
    if (error.code() != ErrorCode::io || std::filesystem::exists(config, ignored)) throw;
    throw Error(ErrorCode::usage, "'{}' is neither a file nor a preset; presets: {}", safe_display(config),
                preset_list());
  }
  exporters::refuse_own_folder(model, out);
  if (const auto keys = forward::gguf_config(model))
    return {forward::config_graph(keys->json, config, *context.assets())};
  const std::string* const text = graph::find_text(model, graph::kConfigKey);
  if (text == nullptr)
    throw Error(ErrorCode::usage, {.file = config}, "has no config.json to make a model from");
  return {forward::config_graph(*text, config, *context.assets())};
}

bool has_map(const graph::MetaGraph& graph) {
  const std::string* const text = graph::find_text(graph, graph::kConfigKey);
  return text != nullptr &&
         forward::find_gguf_family(forward::ModelConfig(*text, std::string(graph::kConfigKey))) != nullptr;
}

int synth(const Context& context, const SynthFlags& options) {
  Shapes shapes = shapes_of(context, options.config, options.out);
  exporters::SynthOptions synth_options;
  synth_options.seed = options.seed;
  synth_options.to =
      options.to.empty() ? std::string(exporters::exporter_for_output(options.out).id) : options.to;
  if (!options.max_shard_size.empty())
    synth_options.max_shard_bytes = parse_size(options.max_shard_size, "--max-shard-size");
  else if (synth_options.to == "safetensors")
    synth_options.max_shard_bytes = shapes.max_shard_bytes;
  synth_options.overwrite = options.force;

  if (synth_options.to == "gguf" && !has_map(shapes.graph))
    complain(
        "note: this family has no map to llama.cpp's names: the file gets the model's own names, and "
        "llama.cpp does not run it");
  Progress progress(context.stop);
  exporters::WriteReport report;
  {
    const ProgressLine line(context, "writing", progress);
    report = exporters::synthesize(shapes.graph, options.out, synth_options, progress);
  }
  // experts are stacked there, and what llama.cpp has no use for is left out
  if (synth_options.to == "gguf") shapes.graph = importers::open_model(report.files.front().path, {});
  if (context.json) {
    Json json = {{"files", Json::array()},
                 {"tensors", shapes.graph.tensors.size()},
                 {"parameter_count", graph::parameter_count(shapes.graph)},
                 {"tensor_bytes", graph::storage_bytes(shapes.graph)},
                 {"bytes_written", report.bytes_written},
                 {"sparse", !options.seed.has_value()},
                 {"seconds", report.seconds}};
    for (const exporters::WrittenFile& file : report.files)
      json["files"].push_back({{"path", json_text(file.path)}, {"bytes", file.bytes}});
    print_json(json);
    return kDone;
  }
  const auto shards = std::ranges::count_if(report.files, [](const exporters::WrittenFile& file) {
    return exporters::exporter_for(file.path) != nullptr;
  });
  fmt::print("{}: {}, {} parameters, {} of weights in {}, {}\n", safe_display(options.out),
             counted(shapes.graph.tensors.size(), "tensor"),
             format_count(graph::parameter_count(shapes.graph)),
             format_bytes(graph::storage_bytes(shapes.graph)),
             counted(static_cast<std::uint64_t>(shards), "weight file"),
             options.seed ? fmt::format("random with seed {}", *options.seed)
                          : fmt::format("sparse: {} on disk", format_bytes(report.bytes_written)));
  return kDone;
}

}  // namespace

Action setup_synth(CLI::App& app) {
  auto options = std::make_shared<SynthFlags>();
  add_text(app, "CONFIG", options->config, "config.json, a model that has one, or one of: " + preset_list(),
           {.required = true});
  add_text(app, "OUT", options->out, "model folder to write, or a .gguf or .pt file", {.required = true});
  add_flag(app, "--sparse", options->sparse, "full size without blocks on disk [the default]");
  add_number(app, "--random", options->seed, "random weights instead, the same on every machine",
             {.value_name = "SEED", .check = whole_range(0, kMostNumber), .excludes = "--sparse"});
  add_text(app, "--max-shard-size", options->max_shard_size, "files of at most SIZE, such as 5GB",
           {.value_name = "SIZE"});
  add_text(app, "--to", options->to, "safetensors (a folder), torch or gguf [from the name of OUT]",
           {.value_name = "ID"});
  add_flag(app, "--force", options->force, "replace existing output");
  return [options](Context& context) { return synth(context, *options); };
}

}  // namespace loadline::cli
