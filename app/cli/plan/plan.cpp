// loadline plan: shows projected peaks, one row per method and order.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

// How the answer is shown.
struct PlanFlags {
  std::string sort = "fit";
  bool fits = false;
  std::size_t alive = 0;
  bool explain = false;
  bool curve = false;
  std::string axis;  // empty: steps if a forward pass follows, which takes no modeled time, else time
  std::string svg;
  std::string html;
};

void check_show(const PlanFlags& options) {
  report::check_picture_path(options.svg, ".svg");
  report::check_picture_path(options.html, ".html");
  try {
    (void)load::find_row_sort(options.sort);
  } catch (const Error& error) {
    throw Error(error.code(), "--sort: {}", error.what());
  }
  if (!options.axis.empty() && !options.curve && options.svg.empty() && options.html.empty())
    throw Error(ErrorCode::usage, "--axis has no effect without --curve or --svg or --html");
}

std::optional<report::CurveOptions> curve_of(const PlanFlags& options, bool has_pass) {
  const bool page = !options.html.empty();
  if (!options.curve && !page && options.svg.empty()) return std::nullopt;
  constexpr std::size_t kSlices = 48;
  report::CurveOptions curve;
  if (page) curve.slices = kSlices;
  const bool steps = options.axis.empty() ? has_pass : options.axis == "steps";
  curve.axis = steps ? view::RunAxis::steps : view::RunAxis::seconds;
  return curve;
}

// The texts of the HTML page.
report::PageText page_text(const PlanDisplay& view) {
  report::PageText page;
  page.version = LOADLINE_VERSION;
  page.lead = fmt::format("{}, weights = {}", counted(view.graph.tensors.size(), "tensor"),
                          counted(graph::storage_bytes(view.graph), "byte"));
  if (const std::string target = report::budget_text(view.bound()); !target.empty())
    page.lead += ". " + target;
  page.lead += ". " + least_text(view);
  page.options = report::asked_for(view.request(), view.bound().memory.kind);
  page.options.insert(page.options.begin(), {"Model", view.path});
  return page;
}

void show(const Context& context, const PlanFlags& options, const PlanDisplay& view) {
  if (!options.svg.empty())
    report::write_file(options.svg, report::chart_svg(view.answered.subject(view.graph)));
  if (!options.html.empty())
    report::write_file(options.html, report::page_html(view.answered.subject(view.graph), page_text(view)));
  if (context.json) return print_json(plan_json(view));
  fmt::print("{}", plan_text(view, context.color, context.columns));
  if (options.curve) fmt::print("{}", plan_plots(view, {context.columns, context.color, context.unicode}));
  if (options.explain) fmt::print("{}", plan_explanation(view, context.color));
}

// Sorts the rows for display; returns how many are left out.
std::size_t arrange_rows(report::AnswerWithCurves& answered, const PlanFlags& options) {
  const load::LoadAnswer& answer = answered.answer;
  std::vector<std::size_t> order =
      load::sorted_rows(answer.rows, *answer.bound, load::find_row_sort(options.sort));
  const std::size_t all = order.size();
  if (options.fits) {
    if (!answer.bound->judged())
      throw Error(ErrorCode::usage,
                  "--fits has no effect without a budget: --target, --device-budget, --host-budget or "
                  "--require-peak");
    std::erase_if(order, [&](std::size_t at) { return !answer.rows[at].fits(); });
  }
  report::arrange(answered, order);
  return all - order.size();
}

int plan(const Context& context, const PlanFlags& options, LoadFlags& flags) {
  check_show(options);
  const load::LoadRequest request = flags.request(context.quiet);
  flags.require_used(request, load::find_methods(request.methods));
  for (const std::string& name : load::order_names(request.orders)) load::check_order_choice(name);
  const CliEnvironment environment(context, request);
  // reports wrong budgets before a model is opened
  load::LoadMemory memory = load::bind_memory(request, environment.load.targets);
  const graph::MetaGraphPtr graph = open_for(context, flags.path(), request);
  auto forward = std::make_shared<const load::RequestPass>(*graph, request, environment.load.assets);
  auto bound = std::make_shared<const load::BoundRequest>(
      load::bind_request(*graph, request, std::move(memory), environment.load));
  constexpr std::size_t kAliveShown = 3, kAliveInJson = 16;
  load::AnswerOptions answer_options;
  answer_options.alive = options.alive > 0 ? options.alive : context.json ? kAliveInJson : kAliveShown;
  Progress progress(context.stop);
  report::AnswerWithCurves answered;
  {
    const ProgressLine line(context, "projecting", progress);
    const bool has_pass = forward->pass() != nullptr;
    answered = report::answer_with_curves(*graph, std::move(bound), answer_options,
                                          curve_of(options, has_pass), std::move(forward), progress);
  }
  const bool within = answered.answer.any_within();
  const std::size_t hidden = arrange_rows(answered, options);
  show(context, options,
       {*graph, flags.path(), answered, !request.rates.empty() || options.sort == "time", options.alive,
        hidden, context.prose_columns});
  if (!within) return kNoFit;
  return answered.answer.bound->judged() && !answered.answer.bound->incomplete.empty() ? kFailed : kDone;
}

void add_show_options(CLI::App& app, PlanFlags& options) {
  begin_group(app, "Output");
  add_flag(app, "--fits", options.fits, "only rows that fit");
  add_text(app, "--sort", options.sort, "fit, table, method, order, device, host, time, ...",
           {.value_name = "KEY", .default_text = "fit"});
  add_number(app, "--alive", options.alive, "the N largest blocks at each peak",
             {.value_name = "N", .check = whole_range(1, 1000)});
  // options for human readers have no place in JSON
  add_flag(app, "--explain", options.explain, "explain methods and laws; peaks in every counter",
           {.excludes = "--json"});
  add_flag(app, "--curve", options.curve, "draw memory over the load", {.excludes = "--json"});
  add_text(app, "--axis", options.axis, "of curves: time, or steps",
           {.value_name = "AXIS",
            .default_text = "time; steps with a forward pass",
            .check = one_of({"time", "steps"})});
  add_text(app, "--svg", options.svg, "write the curves as one picture", {.value_name = "FILE.svg"});
  add_text(app, "--html", options.html, "write curves and verdicts as one page", {.value_name = "FILE.html"});
}

}  // namespace

Action setup_plan(CLI::App& app) {
  auto options = std::make_shared<PlanFlags>();
  auto flags = std::make_shared<LoadFlags>(app, load::LoadUser::plan);
  add_show_options(app, *options);
  return [options, flags](Context& context) { return plan(context, *options, *flags); };
}

}  // namespace loadline::cli
