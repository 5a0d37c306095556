// loadline rehearse: runs plans in ordinary memory and compares the system's memory counters with them.
#include "app/cli/base/commands.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/rehearsal.h"
#include "app/cli/plan/rehearse_table.h"
#include "app/cli/plan/rehearsing.h"
#include "core/base/error.h"
#include "core/load/request/order_file.h"

#include <algorithm>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct RehearseFlags {
  bool cold = false;
  PictureFlags picture;
};

int rehearse(const Context& context, const RehearseFlags& options, LoadFlags& flags) {
  options.picture.check();
  const LoadRequest request = flags.request(context.quiet);
  flags.require_used(request, find_methods(request.methods));
  const std::vector<std::string> orders = order_names(request.orders);
  for (const std::string& name : orders) check_order_choice(name);
  if (flags.was_given("memory") && std::ranges::find(orders, "optimal") == orders.end())
    throw Error(ErrorCode::usage, "--memory changes nothing without --order optimal");
  const MetaGraphPtr graph = open_for(context, flags.path());
  const CliEnvironment environment(context, request);
  const BoundRequest bound = bind_request(*graph, request, environment.load);
  const report::MeasuredLoads loads = rehearse_all(context, graph, bound, options.cold);
  options.picture.write(loads, rehearsal_table(loads, false, context.prose_columns));
  if (context.json) {
    print_json(rehearsal_json(loads, options.cold));
    return kDone;
  }
  fmt::print("{}", rehearsal_table(loads, context.colour, context.prose_columns));
  if (options.picture.curve)
    fmt::print("{}", measured_plots(loads, {context.columns, context.colour, context.unicode}));
  return kDone;
}

}  // namespace

Action setup_rehearse(CLI::App& app) {
  auto options = std::make_shared<RehearseFlags>();
  auto flags = std::make_shared<LoadFlags>(app, LoadUser::rehearse);
  app.option_defaults()->group("What is done and shown");
  app.add_flag("--cold", options->cold, "drop the files' pages from memory first");
  options->picture.add(app);
  return [options, flags](Context& context) { return rehearse(context, *options, *flags); };
}

}  // namespace loadline::cli
