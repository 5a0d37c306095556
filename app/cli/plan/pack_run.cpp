// Projects the run of a model that the options ask for.
#include "app/cli/plan/forward_text.h"
#include "app/cli/plan/pack.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/answer/projection.h"
#include "core/load/request/order_file.h"
#include "core/plan/dry_machine.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::cli {
namespace {

constexpr std::array kSpaces = {Space::device, Space::staging, Space::host};

Space space_of(const std::string& name) {
  for (const Space space : kSpaces)
    if (space_name(space) == name) return space;
  throw Error(ErrorCode::usage, "--space: no space '{}'", safe_display(name, 40));
}

// Without a load or a pass in the request, packs a pass of kPackedTokens tokens.
LoadRequest with_pass(LoadRequest request) {
  if (request.methods.empty() && !asks_for_pass(request)) request.sequence = kPackedTokens;
  return request;
}

std::string pass_text(const RequestPass& forward) {
  std::string text = fmt::format("a forward pass of {} x {}", format_grouped(forward.batch()),
                                 counted(forward.sequence(), "token"));
  if (forward.past() > 0) text += fmt::format(" after {}", format_grouped(forward.past()));
  if (const std::string& profile = forward.model().profile; !profile.empty())
    text += fmt::format(" (profile {})", safe_display(profile, 40));
  return text;
}

// The pass of the request. Without a load a pass is needed; if none is known, Error{unsupported} suggests a
// load instead.
std::shared_ptr<const RequestPass> find_pass(const Context& context, const MetaGraph& graph,
                                             const std::string& path, const LoadRequest& request) {
  const bool needed = request.methods.empty();
  auto forward = std::make_shared<const RequestPass>(graph, with_pass(request), context.assets(),
                                                     needed ? UnknownPass::leave_out : UnknownPass::refuse);
  if (!needed || forward->pass() != nullptr) return forward;
  const std::string& remark = forward->model().remark;
  throw Error(ErrorCode::unsupported, {.file = path},

              "no forward pass is known: {}; --method ID packs a load instead, such as --method per_tensor",
              remark.empty() ? "the file holds no operators" : remark);
}

void project_pass(PackRun& run_of, const ForwardPass& pass, Progress& progress) {
  append_forward_pass(run_of.plan, pass);
  if (const auto fault = check_plan(run_of.plan, *run_of.graph)) throw Error(ErrorCode::limit, *fault);
  DryMachine machine;
  run_of.timeline = run(run_of.plan, machine, progress);
}

void project_load(const Context& context, PackRun& run_of, const LoadRequest& request,
                  const ForwardPass* pass, Progress& progress) {
  const MetaGraph& graph = *run_of.graph;
  const CliEnvironment environment(context, request);
  const BoundRequest bound = bind_request(graph, request, environment.load);
  const Method& method = *bound.methods.front();
  const OrderChoice& order = bound.orders.front();
  Projection projection =
      project(graph, method, order.name, make_order(graph, order, method, bound.inputs, progress),
              bound.inputs, progress, pass);
  run_of.plan = std::move(projection.plan);
  run_of.timeline = std::move(projection.timeline);
  run_of.method = method.id;
  run_of.order = order.name;
  run_of.text = fmt::format("a load by {} in {} order", method.id, safe_display(order.name, 60));
}

}  // namespace

std::vector<std::string> packed_spaces() {
  std::vector<std::string> names;
  for (const Space space : kSpaces) names.emplace_back(space_name(space));
  return names;
}

void check_pack_request(const LoadRequest& request, const LoadFlags& flags) {
  if (!request.methods.empty()) {
    const std::vector<const Method*> methods = find_methods(request.methods);
    const std::vector<std::string> orders = order_names(request.orders);
    if (methods.size() > 1 || orders.size() > 1)
      throw Error(ErrorCode::usage, "one load is packed: name one --method and one --order");
    check_order_choice(orders.front());
    return flags.require_used(request, methods);
  }
  for (const std::string_view id : flags.given()) {
    const LoadOption* const option = find_load_option(id);
    if (option->terms.supported_by != nullptr || id == "order" || id == "activations")
      throw Error(ErrorCode::usage, "{} changes nothing without --method, which packs a load", flag_of(id));
  }
}

PackRun pack_run(const Context& context, const std::string& path, const LoadRequest& request,
                 const std::string& space, Progress& progress) {
  PackRun result;
  result.space = space_of(space);
  result.graph = open_for(context, path);
  const bool load = !request.methods.empty();
  const auto forward = find_pass(context, *result.graph, path, request);
  const ForwardPass* const pass = forward->pass();
  if (load)
    project_load(context, result, request, pass, progress);
  else
    project_pass(result, *pass, progress);
  if (pass != nullptr) {
    result.forward = forward;
    result.text += (load ? ", then " : "") + pass_text(*forward);
    result.notes = forward->notes();
    for (std::string& note : size_notes(*forward)) result.notes.push_back(std::move(note));
    if (forward->unknown_values() > 0)
      result.notes.push_back(
          fmt::format("{} of unknown size left out", counted(forward->unknown_values(), "value")));
  } else if (request.sequence > 0) {
    result.notes.push_back("the operators are not known: the forward pass is left out");
  }
  return result;
}

}  // namespace loadline::cli
