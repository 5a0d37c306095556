// loadline merge: writes a base with a LoRA adapter added to its weights.
#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/convert/conversion.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/convert.h"
#include "exporters/convert_options.h"
#include "exporters/merge/merge_lora_2.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr const char* kAdapterConfig = "adapter_config.json";

struct MergeFlags {
  std::string base, adapter, out;
  OptionFlags flags;
  bool dry_run = false;
};

struct Adapter {
  MetaGraph graph;
  LoraConfig config;
};

Adapter open_adapter(const Context& context, const std::string& path) {
  const Source source = resolve(path, context.resolve_options());
  Adapter adapter;
  adapter.graph = import_source(source);
  if (adapter.graph.format == "gguf")
    throw Error(
        ErrorCode::unsupported, {.file = path},
        "is a GGUF adapter; llama.cpp adds it when it loads a model, with --lora. Merge the PEFT adapter "
        "that it was made from");
  require_sound(adapter.graph, "merge");
  const auto config = source.open_sibling(kAdapterConfig);
  if (!config)
    throw Error(ErrorCode::io, {.file = path}, "has no {} beside its weights: it is no PEFT adapter",
                kAdapterConfig);
  constexpr std::size_t kMost = (4 << 20) + 1;  // one more than can be parsed
  adapter.config = parse_lora_config(config->head(kMost), config->path());
  return adapter;
}

int merge(const Context& context, const MergeFlags& options) {
  ConvertRequest request;
  for (const auto& option : convert_options()) options.flags.apply(option, request);
  const Exporter& exporter = chosen_exporter(request.to, options.out);
  const MetaGraphPtr base = open_for(context, options.base);
  complete_request(context, *base, request);
  require_sound(*base, "merge");
  const Adapter adapter = open_adapter(context, options.adapter);
  const LoraMerge merged = merge_lora(*base, adapter.graph, adapter.config, request.layout.outtype);
  request.layout.recipes = merged.recipes;
  const Preflight planned = preflight(*merged.graph, exporter, request.layout, options.out);
  const int code = write_conversion(context, merged.graph, planned, request.write, options.dry_run,
                                    {{"merged", merged.merged}, {"replaced", merged.replaced}});
  if (!context.json)
    fmt::print("{}: {} merged, {} replaced\n", safe_display(options.adapter, 60),
               counted(merged.merged, "weight"), format_grouped(merged.replaced));
  return code;
}

}  // namespace

Action setup_merge(CLI::App& app) {
  auto options = std::make_shared<MergeFlags>();
  app.add_option("BASE", options->base, "the model that the adapter was trained on")->required();
  app.add_option("ADAPTER", options->adapter, "folder of a PEFT LoRA: adapter_config.json and its weights")
      ->required();
  app.add_option("OUT", options->out, "a file, or a folder for safetensors with config.json")->required();
  for (const auto& option : convert_options()) options->flags.add(app, option);
  app.add_flag("--dry-run", options->dry_run, "show the files that would be written")->group("Writing");
  return [options](Context& context) { return merge(context, *options); };
}

}  // namespace loadline::cli
