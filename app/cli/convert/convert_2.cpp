// loadline convert: writes a model in a chosen format within a memory budget.
#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/convert/conversion.h"
#include "app/cli/convert/join.h"
#include "exporters/convert.h"
#include "exporters/writer/join.h"

#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct ConvertFlags {
  std::string in;
  std::optional<std::string> out;
  OptionFlags flags;
  bool dry_run = false;
};

int convert(const Context& context, const ConvertFlags& options) {
  ConvertRequest request;
  for (const auto& option : convert_options()) options.flags.apply(option, request);
  // an empty variable of a script
  if (options.out && options.out->empty()) throw Error(ErrorCode::usage, "the output has no name");
  const std::string given = options.out.value_or("");
  const Exporter& exporter = chosen_exporter(request.to, given);
  // its source may be gone already
  if (request.write.resume && !given.empty() && waits_for_last_step(given))
    return run_join(context, given, request.write.overwrite);
  const MetaGraphPtr graph = open_for(context, options.in);
  complete_request(context, *graph, request);
  const std::string out =
      given.empty() ? output_name(model_name(*graph), exporter, exporter.kind(request.layout)) : given;
  const Preflight planned = preflight(*graph, exporter, request.layout, out);
  return write_conversion(context, graph, planned, request.write, options.dry_run, Json::object());
}

}  // namespace

Action setup_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertFlags>();
  app.add_option("IN", options->in, "the model to read")->required();
  app.add_option(
      "OUT", options->out,
      "a file, or a folder for safetensors with config.json and shards; by default the model's name with "
      "-loadline, in the current folder");
  for (const auto& option : convert_options()) options->flags.add(app, option);
  app.add_flag("--dry-run", options->dry_run, "show the files that would be written")->group("Writing");
  return [options](Context& context) { return convert(context, *options); };
}

}  // namespace loadline::cli
