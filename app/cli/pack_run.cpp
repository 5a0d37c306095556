// A model's run, as the options ask for it.
#include "app/cli/pack_run.h"

#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/load/order_file.h"
#include "core/load/projection.h"
#include "core/plan/dry_machine.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace loadline::cli {
namespace {

constexpr std::array kSpaces = {Space::device, Space::staging, Space::host};

Space space_of(const std::string& name) {
  for (const Space space : kSpaces)
    if (space_name(space) == name) return space;
  throw Error(ErrorCode::usage, fmt::format("--space: no space '{}'", safe_display(name, 40)));
}

// A stranger's first call names neither a load nor a pass.
ForwardArguments pass_asked_for(const PackRunArguments& arguments) {
  ForwardArguments forward = arguments.forward;
  if (arguments.method_id.empty() && forward.sequence == 0 && forward.sizes.empty())
    forward.sequence = kPackedTokens;
  return forward;
}

std::string pass_text(const ForwardAnswer& forward) {
  const ForwardArguments& sizes = forward.arguments();
  std::string text =
      fmt::format("a forward pass of {} x {}", format_grouped(sizes.batch), counted(sizes.sequence, "token"));
  if (sizes.past > 0) text += fmt::format(" after {}", format_grouped(sizes.past));
  if (!forward.profile().empty()) text += fmt::format(" (profile {})", safe_display(forward.profile(), 40));
  return text;
}

// What is known of a pass; where that is needed, Error{unsupported} says what to ask for instead.
std::shared_ptr<const ForwardAnswer> find_pass(const Context& context, const MetaGraph& graph,
                                               const std::string& path, const PackRunArguments& arguments) {
  const bool needed = arguments.method_id.empty();
  ForwardArguments asked = pass_asked_for(arguments);
  asked.needs_estimate = !needed;
  auto forward = std::make_shared<const ForwardAnswer>(context, graph, asked);
  if (!needed || forward->pass() != nullptr) return forward;
  throw Error(
      ErrorCode::unsupported, {.file = path},
      fmt::format(
          "no forward pass is known: {}; --method ID packs a load instead, such as --method per_tensor",
          forward->remark().empty() ? "the file holds no operators" : forward->remark()));
}

void project_pass(PackRun& run_of, const ForwardPass& pass, Progress& progress) {
  append_forward_pass(run_of.plan, pass);
  if (const auto fault = check_plan(run_of.plan, *run_of.graph)) throw Error(ErrorCode::limit, *fault);
  DryMachine machine;
  run_of.timeline = run(run_of.plan, machine, progress);
}

void project_load(PackRun& run_of, const PackRunArguments& arguments, const ForwardPass* pass,
                  Progress& progress) {
  const MetaGraph& graph = *run_of.graph;
  const Method& method = find_method(arguments.method_id);
  MethodOptions options = parse_method_arguments(arguments.method);
  options.placement = parse_placement(arguments.method, graph);
  require_one_pass(options, pass);
  const OrderChoice order = choose_order(graph, arguments.order);
  Projection projection =
      project(graph, method, order.name, make_order(graph, order, method, options, progress), options,
              progress, pass);
  run_of.plan = std::move(projection.plan);
  run_of.timeline = std::move(projection.timeline);
  run_of.method = method.id;
  run_of.order = order.name;
  run_of.text = fmt::format("a load by {} in {} order", method.id, safe_display(order.name, 60));
}

}  // namespace

void add_pack_run_options(CLI::App& app, PackRunArguments& arguments) {
  app.add_option("--method", arguments.method_id,
                 "Of a model: packs a load by this method; with --seq, the load and then the pass as one "
                 "timeline: " +
                     id_list(methods()))
      ->type_name("ID");
  app.add_option("--order", arguments.order,
                 "Of the load: " + id_list(orders()) + ", or a file that lists tensors")
      ->capture_default_str();
  std::vector<std::string> names;
  for (const Space space : kSpaces) names.emplace_back(space_name(space));
  app.add_option("--space", arguments.space, "Whose blocks are packed; a forward pass is on the device")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  add_method_options(app, arguments.method);
  add_forward_options(app, arguments.forward);
}

bool is_pack_run_option(std::string_view name) {
  constexpr std::array<std::string_view, 10> kOfRuns = {
      "--method", "--order", "--space",   "--activations",      "--seq",
      "--batch",  "--past",  "--profile", "--activation-dtype", "--cache-dtype"};
  return is_method_option(name) || name == "--logits" || name == "--dim" ||
         std::find(kOfRuns.begin(), kOfRuns.end(), name) != kOfRuns.end();
}

void check_pack_run(const PackRunArguments& arguments, const std::vector<GivenOption>& given) {
  if (!arguments.method_id.empty()) {
    const Method* const method = &find_method(arguments.method_id);
    check_order_choice(arguments.order);
    require_taken(given, std::span(&method, 1));
    require_company(given);
    return;
  }
  for (const GivenOption& option : given)
    if (is_method_option(option.name) || option.name == "--order" || option.name == "--activations")
      throw Error(ErrorCode::usage,
                  fmt::format("{} changes nothing without --method, which packs a load", option.name));
}

PackRun pack_run(const Context& context, const std::string& path, const PackRunArguments& arguments,
                 Progress& progress) {
  PackRun result;
  result.space = space_of(arguments.space);
  result.graph = open_for(context, path);
  const bool load = !arguments.method_id.empty();
  const auto forward = find_pass(context, *result.graph, path, arguments);
  const ForwardPass* const pass = forward->pass();
  if (load)
    project_load(result, arguments, pass, progress);
  else
    project_pass(result, *pass, progress);
  if (pass != nullptr) {
    result.forward = forward;
    result.text += (load ? ", then " : "") + pass_text(*forward);
    result.notes = forward->notes();
    for (std::string& note : forward->size_notes()) result.notes.push_back(std::move(note));
    if (forward->unknown_values() > 0)
      result.notes.push_back(
          fmt::format("{} of unknown size left out", counted(forward->unknown_values(), "value")));
  } else if (arguments.forward.sequence > 0) {
    result.notes.push_back("the operators are not known: the forward pass is left out");
  }
  return result;
}

}  // namespace loadline::cli
