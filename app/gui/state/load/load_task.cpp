// Binds the request of a task, and computes its projection or its comparison.
#include "app/gui/state/load/load.h"
#include "core/load/request/order_file.h"

namespace loadline::gui {
namespace {

LoadEnvironment environment_of(const LoadTask& task) {
  return {.assets = task.assets,
          .targets = *task.targets,
          .measured_rates = task.rates,
          .own_order = task.question.own_order};
}

}  // namespace

std::shared_ptr<const RequestPass> PassMemo::find(const MetaGraph& graph, const LoadRequest& request,
                                                  const std::shared_ptr<const ForwardAssets>& assets) {
  LoadRequest wanted;
  take_pass(wanted, request);
  const std::lock_guard lock(mutex_);
  if (!last_ || wanted != of_) {
    last_ = std::make_shared<const RequestPass>(graph, wanted, assets, UnknownPass::leave_out);
    of_ = wanted;
  }
  return last_;
}

BoundRequest bind(const LoadTask& task) {
  return bind_request(*task.graph, task.question.request, environment_of(task));
}

StorageOrder first_order(const LoadTask& task, const Progress& progress) {
  const BoundRequest bound = bind(task);
  return make_order(*task.graph, bound.orders.front(), *bound.methods.front(), bound.inputs, progress);
}

Projection project_load(const LoadTask& task, Progress& progress) {
  const BoundRequest bound = bind(task);
  const Method& method = *bound.methods.front();
  const OrderChoice& order = bound.orders.front();
  std::shared_ptr<const RequestPass> forward;
  if (asks_for_pass(task.question.request))
    forward = task.passes->find(*task.graph, task.question.request, task.assets);
  return project(*task.graph, method, order.name,
                 make_order(*task.graph, order, method, bound.inputs, progress), bound.inputs, progress,
                 forward ? forward->pass() : nullptr);
}

JudgedLoad judge_load(const LoadTask& task, const Projection& projection) {
  JudgedLoad judged = {bind(task), {}};
  const std::string unmapped = mapping_refusal(*task.graph);
  judged.row =
      projection.maps_files && !unmapped.empty()
          ? refused_row(*projection.method, projection.order, Error(ErrorCode::unsupported, unmapped))
          : make_row(projection, judged.bound, Labels(*task.graph), 0);
  return judged;
}

report::PicturedAnswer compare_loads(const LoadTask& task, Progress& progress) {
  constexpr std::size_t kSlices = 48;
  const LoadRequest& request = task.question.request;
  auto forward = task.passes->find(*task.graph, request, task.assets);
  progress.check_cancelled();
  // operators take no modelled time
  const report::CurveOptions curve = {
      .axis = forward->pass() != nullptr ? view::CurveAxis::steps : view::CurveAxis::seconds,
      .slices = kSlices};
  return report::picture_answer(*task.graph, request, environment_of(task), {.advise = false}, curve,
                                std::move(forward), progress);
}

LoadAnswer advise_load(const LoadTask& task, Progress& progress) {
  auto forward = task.passes->find(*task.graph, task.question.request, task.assets);
  return answer(*task.graph, task.question.request, environment_of(task), {.advise = true},
                std::move(forward), progress);
}

}  // namespace loadline::gui
