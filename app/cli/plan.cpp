// loadline plan: projected peaks, one row per method and order.
#include "app/cli/commands.h"
#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/plan_json.h"
#include "app/cli/plan_measure.h"
#include "app/cli/plan_pictures.h"
#include "app/cli/plan_plot.h"
#include "app/cli/plan_table.h"
#include "app/cli/rates.h"
#include "app/cli/wrap.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/plan/device_preset.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Options {
  std::string path;
  std::vector<std::string> methods = {"all"};
  std::vector<std::string> orders = {"file"};
  MethodArguments method;
  ForwardArguments forward;
  std::string device_budget;
  std::string host_budget;
  std::string max_peak;
  std::string cache_limit;
  std::string memory;  // empty: as the device's, or discrete
  std::string device;
  std::string rates;  // empty: those kept, or assumed ones
  bool explain = false;
  bool curve = false;
  std::string svg;
  std::string html;
  std::vector<std::string> measure;
  bool cold = false;
  std::vector<GivenOption> given;  // what the command line says
  std::string axis;  // empty: steps with a forward pass, which takes no modelled time, else time
};

template <typename Row>
std::vector<std::string> all_or(const std::vector<std::string>& ids, std::span<const Row> table) {
  if (std::find(ids.begin(), ids.end(), "all") == ids.end()) return ids;
  std::vector<std::string> all;
  for (const Row& row : table) all.emplace_back(row.id);
  return all;
}

// The preset asked for, if any: a user's own, too.
std::optional<DevicePreset> preset_of(const Context& context, const Options& options) {
  if (options.device.empty()) return std::nullopt;
  const DevicePresets presets = load_device_presets(context.config_folder);
  if (!context.quiet)
    for (const std::string& fault : presets.faults) complain("left out: " + fault);
  return presets.find(options.device);
}

// What is given goes before what the device has.
RowFrame frame_of(const Options& options, const std::optional<DevicePreset>& device) {
  RowFrame frame;
  if (!options.memory.empty())
    frame.memory = memory_kind(options.memory);
  else if (device)
    frame.memory = device->memory;
  if (device) frame.budget = device_budget(*device, frame.memory);
  const bool unified = frame.memory == MemoryKind::unified;
  if (unified && !options.host_budget.empty())
    throw Error(ErrorCode::usage,
                "unified memory has one budget: --device-budget holds the host's share, too");
  if (!options.device_budget.empty()) {
    const std::uint64_t bytes = parse_size(options.device_budget, "--device-budget");
    if (unified)
      frame.budget = {.unified = bytes};
    else
      frame.budget.device = bytes;
  }
  if (!options.host_budget.empty()) frame.budget.host = parse_size(options.host_budget, "--host-budget");
  if (!options.max_peak.empty()) frame.max_peak = parse_size(options.max_peak, "--max-peak");
  if (!options.cache_limit.empty()) frame.cache_limit = parse_size(options.cache_limit, "--cache-limit");
  return frame;
}

std::optional<CurveOptions> curve_of(const Options& options, bool has_pass) {
  const bool page = !options.html.empty();
  if (!options.curve && !page && options.svg.empty()) return std::nullopt;
  constexpr std::size_t kSlices = 48;
  CurveOptions curve;
  if (page) curve.slices = kSlices;
  const bool steps = options.axis.empty() ? has_pass : options.axis == "steps";
  curve.axis = steps ? view::CurveAxis::steps : view::CurveAxis::seconds;
  return curve;
}

OptionList asked_for(const Options& options, const RowFrame& frame) {
  OptionList list = {{"model", options.path}, {"memory", std::string(memory_kind_name(frame.memory))}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) list.emplace_back(name, value);
  };
  add("device", options.device);
  add("device budget", options.device_budget);
  add("host budget", options.host_budget);
  add("most that a peak may be", options.max_peak);
  add("page cache", options.cache_limit);
  add("staging ring", fmt::format("{} in {}", options.method.staging, counted(options.method.slots, "slot")));
  add("cast", options.method.cast);
  add("shards", options.method.shard_size);
  for (const std::string& rule : options.method.place) add("placed", rule);
  if (options.method.gpu_layers) add("layers on the device", std::to_string(*options.method.gpu_layers));
  add("filled up to", options.method.max_memory);
  if (options.method.activations != "0") add("activations", options.method.activations);
  if (options.forward.sequence > 0)
    add("forward pass",
        fmt::format("{} x {}{}", options.forward.batch, counted(options.forward.sequence, "token"),
                    options.forward.past == 0 ? "" : fmt::format(" after {}", options.forward.past)));
  return list;
}

int show(const Context& context, const Options& options, const PlanAnswer& answer) {
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
int measure(const Context& context, const Options& options, const MetaGraphPtr& graph,
            const std::vector<OrderChoice>& orders, const MethodOptions& method_options) {
  MeasureAnswer answer{*graph, options.cold, {}, {}};
  std::optional<Error> refusal;
  for (const std::string& id : all_or(options.measure, methods()))
    for (const OrderChoice& order : orders) {
      const Method& method = find_method(id);
      Progress progress(context.stop);
      try {
        const Plan plan = make_plan(
            *graph, method, make_order(*graph, order, method, method_options, progress), method_options);
        const ProgressLine line(context, "measuring " + id, progress);
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

int plan(const Context& context, const Options& options) {
  check_picture_path(options.svg, ".svg");
  check_picture_path(options.html, ".html");
  std::vector<const Method*> methods_asked;
  for (const std::string& id : all_or(options.methods, methods())) methods_asked.push_back(&find_method(id));
  for (const std::string& id : all_or(options.measure, methods())) find_method(id);
  const std::vector<std::string> order_names = all_or(options.orders, orders());
  for (const std::string& name : order_names) check_order_choice(name);
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
  if (forward.pass() != nullptr && method.activation_bytes > 0)
    throw Error(ErrorCode::usage, "--activations and --seq exclude each other: a forward pass has its own");
  frame.curve = curve_of(options, forward.pass() != nullptr);

  std::vector<OrderChoice> orders_asked;
  for (const std::string& name : order_names) orders_asked.push_back(choose_order(*graph, name));
  if (!options.measure.empty()) return measure(context, options, graph, orders_asked, method);
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
               std::move(advice), rates});
}

std::string device_ids() {
  std::string ids;
  for (const DevicePreset& preset : built_in_devices()) ids += (ids.empty() ? "" : ", ") + preset.id;
  return ids;
}

std::string explanations() {
  std::string text =
      "Methods (W: all weights as stored, w*: the largest, V: what stays on the device as it lands, W\n"
      "without a cast and a placement, v*: the largest so, c*: the most that one takes in both forms,\n"
      "S*: the largest shard, g*: the largest group that is fused, x*: the largest layer or other part that\n"
      "runs at once, y*: the most that two in a row take, B: the ring, F: --flush, Q: activations):\n";
  constexpr std::string_view kIndent = "      ";
  constexpr std::size_t kColumns = 100;
  for (const Method& method : methods()) {
    text += fmt::format("  {}: {}\n", method.id, method.peak_law);
    text += wrapped(method.explanation, kIndent, kColumns);
    if (const std::string taken = method_option_names(method); !taken.empty())
      text += fmt::format("{}Takes {}.\n", kIndent, taken);
  }
  text += "Orders:\n";
  for (const Order& order : orders()) text += fmt::format("  {:<20} {}\n", order.id, order.summary);
  return text;
}

}  // namespace

Action setup_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_path_option(app, options->path);
  app.add_option("--method", options->methods, "Methods, separated by commas, or all: " + id_list(methods()))
      ->delimiter(',')
      ->default_str("all");
  app.add_option("--order", options->orders,
                 "Orders, separated by commas, or all: " + id_list(orders()) +
                     "; or a file that lists tensors, one a line")
      ->delimiter(',')
      ->default_str("file");
  add_method_options(app, options->method);
  add_forward_options(app, options->forward);
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
  app.add_flag("--curve", options->curve, "Draw memory over the load, one plot per row");
  app.add_option("--svg", options->svg, "Write the curves as one picture, small multiples to one scale")
      ->type_name("FILE.svg");
  app.add_option("--html", options->html,
                 "Write curves, verdicts and explanations as one page that needs nothing else")
      ->type_name("FILE.html");
  app.add_option("--axis", options->axis, "Of curves: modelled time, or the plan's steps")
      ->check(CLI::IsMember({"time", "steps"}))
      ->default_str("time; steps with a forward pass");
  CLI::Option* const measure =
      app.add_option("--measure", options->measure,
                     "Run these methods for real in ordinary memory, and lay what the system counts over the "
                     "projection")
          ->delimiter(',')
          ->type_name("METHODS");
  for (const char* other : {"--method", "--seq", "--device", "--device-budget", "--host-budget", "--max-peak",
                            "--cache-limit", "--allocator", "--activations"})
    measure->excludes(app.get_option(other));
  app.add_flag("--cold", options->cold, "Before each measured load the files' pages are dropped from memory")
      ->needs(measure);
  app.add_flag("--explain", options->explain,
               "What each method does, and its peak as every counter shows it");
  app.footer(fmt::format("{}\n{}", explanations(), app.get_footer()));
  return [options, &app](Context& context) {
    options->given = given_options(app);
    return plan(context, *options);
  };
}

}  // namespace loadline::cli
