// loadline plan: projected peaks, one row per method and order.
#include "app/cli/commands.h"
#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/plan_json.h"
#include "app/cli/plan_measure.h"
#include "app/cli/plan_options.h"
#include "app/cli/plan_pictures.h"
#include "app/cli/plan_plot.h"
#include "app/cli/plan_table.h"
#include "app/cli/rates.h"
#include "app/cli/wrap.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/load/targets.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

// The preset asked for, if any: a user's own, too.
std::optional<DevicePreset> preset_of(const Context& context, const PlanOptions& options) {
  if (options.device.empty()) return std::nullopt;
  const DevicePresets presets = load_device_presets(context.config_folder);
  if (!context.quiet)
    for (const std::string& fault : presets.faults) complain("left out: " + fault);
  return presets.find(options.device);
}

int show(const Context& context, const PlanOptions& options, const PlanAnswer& answer) {
  if (!options.svg.empty()) write_chart(options.svg, answer);
  if (!options.html.empty()) write_page(options.html, answer, asked_for(options, answer.frame));
  if (context.json) {
    print_json(plan_json(answer));
  } else {
    fmt::print("{}", plan_table(answer, context.colour));
    if (options.curve)
      fmt::print("{}", plan_plots(answer, {context.columns, context.colour, context.unicode}));
    if (options.explain) fmt::print("{}", plan_explanation(answer, context.colour));
  }
  return answer.any_fits() ? kDone : kNoFit;
}

// Every method asked for, one after the other: they would count each other's memory.
int measure(const Context& context, const PlanOptions& options, const MetaGraphPtr& graph,
            const std::vector<const Method*>& methods_asked, const std::vector<OrderChoice>& orders,
            const MethodOptions& method_options) {
  MeasureAnswer answer{*graph, options.cold, {}, {}};
  std::optional<Error> refusal;
  for (const Method* const asked : methods_asked)
    for (const OrderChoice& order : orders) {
      const Method& method = *asked;
      Progress progress(context.stop);
      try {
        require_importable(*graph, method);
        const Plan plan = make_plan(
            *graph, method, make_order(*graph, order, method, method_options, progress), method_options);
        const ProgressLine line(context, fmt::format("measuring {}", method.id), progress);
        answer.rows.push_back(
            measured_row(method, order.name, plan, measure_on_host(graph, plan, options.cold, progress)));
      } catch (const Error& error) {
        // what cannot be done, or not here, leaves the others
        if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::limit &&
            error.code() != ErrorCode::no_fit)
          throw;
        if (!refusal) refusal = error;
        answer.refused.push_back({&method, order.name, error.what()});
      }
    }
  if (answer.rows.empty()) throw *refusal;
  if (!options.svg.empty()) write_picture(options.svg, measure_svg(answer));
  if (!options.html.empty()) write_picture(options.html, measure_page(answer));
  if (context.json) {
    print_json(measure_json(answer));
  } else {
    fmt::print("{}", measure_table(answer, context.colour));
    if (options.curve)
      fmt::print("{}", measure_plots(answer, {context.columns, context.colour, context.unicode}));
  }
  return kDone;
}

int plan(const Context& context, const PlanOptions& options) {
  check_picture_path(options.svg, ".svg");
  check_picture_path(options.html, ".html");
  const bool measured = !options.measure.empty();
  const std::vector<const Method*> methods_asked = methods_of(measured ? options.measure : options.methods);
  const std::vector<std::string> order_names = order_names_of(options.orders);
  for (const std::string& name : order_names) check_order_choice(name);
  check_use(options, methods_asked, order_names);
  MethodOptions method = parse_method_arguments(options.method);
  const std::optional<DevicePreset> device = preset_of(context, options);
  RowFrame frame = frame_of(options, device);
  method.spaces = deciding_spaces(frame.memory);
  const std::optional<MeasuredRates> rates = choose_rates(context, options.rates);
  if (rates) method.costs = rates->costs(method.costs);
  if (device) method.costs = device_costs(*device, method.costs);
  const MetaGraphPtr graph = open_for(context, options.path);
  method.placement = parse_placement(options.method, *graph);
  const ForwardAnswer forward(context, *graph, options.forward);
  require_one_pass(method, forward.pass());
  frame.curve = curve_of(options, forward.pass() != nullptr);

  std::vector<OrderChoice> orders_asked;
  for (const std::string& name : order_names) orders_asked.push_back(choose_order(*graph, name));
  if (measured) return measure(context, options, graph, methods_asked, orders_asked, method);
  Progress progress(context.stop);
  std::vector<Row> rows =
      compare_rows(*graph, methods_asked, orders_asked, method, forward.pass(), frame, progress);
  if (std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.has_value(); }))
    throw *rows.front().refusal;
  std::optional<PlanAdvice> advice =
      plan_advice(context, *graph, rows, orders_asked, method, forward.pass(), frame);
  if (advice) name_commands(*advice, options.path, options.given);
  return show(context, options,
              {*graph, method, forward, frame, device, orders_asked.size() > 1, std::move(rows),
               std::move(advice), rates, !options.rates.empty()});
}

std::string device_ids() {
  std::string ids;
  for (const DevicePreset& preset : built_in_devices()) ids += (ids.empty() ? "" : ", ") + preset.id;
  return ids;
}

std::string explanations() {
  constexpr std::string_view kIndent = "      ";
  constexpr std::size_t kColumns = 100;
  std::string text = "Methods and their peaks:\n" + wrapped(law_symbols(), "  ", kColumns);
  for (const Method& method : methods()) {
    text += fmt::format("  {}: {}\n", method.id, method.peak_law);
    text += wrapped(method.explanation, kIndent, kColumns);
    if (const std::string taken = taken_options(method); !taken.empty())
      text += fmt::format("{}Takes {}.\n", kIndent, taken);
  }
  text += "Orders:\n";
  for (const Order& order : orders()) text += fmt::format("  {:<20} {}\n", order.id, order.summary);
  return text;
}

void add_picture_options(CLI::App& app, PlanOptions& options) {
  app.add_flag("--curve", options.curve, "Draw memory over the load, one plot per row");
  app.add_option("--svg", options.svg, "Write the curves as one picture, small multiples to one scale")
      ->type_name("FILE.svg");
  app.add_option("--html", options.html,
                 "Write curves, verdicts and explanations as one page that needs nothing else")
      ->type_name("FILE.html");
  app.add_option("--axis", options.axis, "Of curves: modelled time, or the plan's steps")
      ->check(CLI::IsMember({"time", "steps"}))
      ->default_str("time; steps with a forward pass");
  app.add_flag("--explain", options.explain, "What each method does, and its peak as every counter shows it");
  // what draws or explains for a person would be left out of JSON
  for (const char* text : {"--curve", "--explain"}) app.get_option(text)->excludes(app.get_option("--json"));
}

// Behind the others: it excludes what is projected only.
void add_measure_option(CLI::App& app, PlanOptions& options) {
  CLI::Option* const measure =
      app.add_option(
             "--measure", options.measure,
             "Run these methods for real in ordinary memory, and lay what the system counts over the "
             "projection; ends with 0 whatever is found, 1 if none can be run, 3 if none has the memory")
          ->delimiter(',')
          ->type_name("METHODS");
  app.add_flag("--cold", options.cold, "Before each measured load the files' pages are dropped from memory")
      ->needs(measure);
  for (const char* other :
       {"--method", "--seq", "--device", "--device-budget", "--host-budget", "--max-peak", "--cache-limit",
        "--allocator", "--activations", "--cache-dtype", "--dim", "--rates", "--axis", "--explain"})
    measure->excludes(app.get_option(other));
}

}  // namespace

Action setup_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  add_path_option(app, options->path);
  app.add_option("--method", options->methods, "Methods, separated by commas, or all: " + id_list(methods()))
      ->delimiter(',')
      ->default_str("all");
  app.add_option(
         "--order", options->orders,
         "Orders, separated by commas, or all: " + id_list(orders()) +
             "; or a file that lists tensors, one a line (# begins a comment); others follow in file order")
      ->delimiter(',')
      ->default_str("file");
  add_method_options(app, options->method);
  add_forward_options(app, options->forward);
  app.add_option("--allocator", options->method.allocator,
                 "Whose books are kept beside what is asked, and judged: " + id_list(allocators()))
      ->capture_default_str();
  app.add_option("--device-budget", options->device_budget,
                 "What the device (unified memory: the whole) may hold, such as 8GiB");
  app.add_option("--host-budget", options->host_budget, "What host and staging memory may hold together");
  app.add_option(
         "--memory", options->memory,
         "discrete: the device has memory of its own, which decides; unified: one memory holds everything")
      ->default_str("discrete, or as the device's");
  app.add_option("--device", options->device, "Budget and kind of memory of a device: " + device_ids())
      ->type_name("ID");
  app.add_option("--rates", options->rates,
                 "What times are estimated with: a file that `devices --measure` wrote, or assumed")
      ->default_str("those measured, if any")
      ->type_name("FILE|assumed");
  app.add_option(
      "--max-peak", options->max_peak,
      "Exit with 3 unless some row's device peak (of unified memory, what it must hold) is at most "
      "that");
  app.add_option("--cache-limit", options->cache_limit,
                 "What the page cache may hold: how much is dropped and read again");
  add_picture_options(app, *options);
  add_measure_option(app, *options);
  app.footer(fmt::format("{}\n{}", explanations(), app.get_footer()));
  return [options, &app](Context& context) {
    options->given = given_options(app);
    return plan(context, *options);
  };
}

}  // namespace loadline::cli
