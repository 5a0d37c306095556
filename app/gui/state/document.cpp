// Joins what the views share with the questions about the model, and the questions with each other.
#include "app/gui/state/document.h"

#include "app/gui/state/load/arena.h"
#include "app/gui/state/model/model.h"
#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {
namespace {

std::shared_ptr<ArenaWork> kept_arena(Services& services, std::shared_ptr<ArenaWork> arena) {
  if (arena) return arena;
  return std::make_shared<ArenaWork>(
      services.jobs, [&services](const Error& error) { services.notices.fail("open", error); });
}

}  // namespace

Document::Document(Services& services, ModelPtr shown, Kept kept)
    : id(++services.documents),
      model(std::move(shown)),
      metadata(services.jobs, model ? model->graph : nullptr),
      values(services.jobs, model ? model->graph : nullptr),
      constants(services.jobs, model ? model->graph : nullptr),
      diff(services.jobs, model),
      table(services.jobs, model, std::move(kept.filter), kept.column, kept.ascending),
      checks(services, model),
      forward(services, model),
      load(services, model, id, forward, std::move(kept.asked),
           {.asked = [this] { follow_load(); },
            .projected = [this] { take_projection(); },
            .judged =
                [this] {
                  const auto failed = failure();
                  time.halt_at(failed ? std::optional(failed->step) : std::nullopt);
                }}),
      advice(services, load),
      order(services, load, id),
      arena(kept_arena(services, std::move(kept.arena))) {
  forward.search = std::move(kept.search);
  forward.shown = kept.op;
  forward.inside = std::move(kept.inside);
  forward.module = kept.module;
  load.take_history(std::move(kept.history));
  if (model) {
    if (const auto tensor = find_tensor(*model, kept.tensor)) select(*tensor);
    caveats_ = caveats_of(*model->graph, nullptr);
    claims_.ask(
        services.jobs, "Counting parameters", [once = load.claims](Progress&) { return once->get(); },
        [this] { caveats_ = caveats_of(*model->graph, claims_.value().get()); });
  }
  load.begin();
}

Document::Kept Document::kept() const {
  return {.asked = load.asked(), .column = table.view().column, .ascending = table.view().ascending};
}

Document::Kept Document::hand_over(bool again) {
  Kept all = kept();
  arena->forget_model();
  all.arena = std::move(arena);
  if (!again) return all;
  all.history = load.history();
  all.filter = table.view().filter;
  all.search = forward.search;
  all.op = forward.shown;
  all.inside = forward.inside;
  all.module = forward.module;
  if (const auto tensor = selected_tensor()) all.tensor = model->tensor(*tensor).name.str();
  return all;
}

bool Document::exists(const Selected& what) const {
  if (!model) return std::holds_alternative<std::monostate>(what);
  if (const auto* const tensor = std::get_if<graph::TensorId>(&what))
    return graph::index(*tensor) < model->graph->tensors.size();
  if (const auto* const module = std::get_if<graph::NodeId>(&what))
    return graph::index(*module) < model->tree.nodes.size();
  if (const auto* const block = std::get_if<plan::BlockId>(&what))
    return load.projection.value() && graph::index(*block) < load.projection.value()->plan.blocks.size();
  if (const auto* const finding = std::get_if<FindingAt>(&what))
    return checks.findings.value() && finding->at < checks.findings.value()->size();
  if (const auto* const op = std::get_if<OperatorAt>(&what))
    return forward.graph() != nullptr && op->at < forward.graph()->ops.size();
  if (const auto* const place = std::get_if<graph::OpPlace>(&what))
    return forward.graph() != nullptr && graph::has_op(*forward.scene.value()->drawn(), *place);
  return true;
}

void Document::select(Selected what) {
  if (!exists(what)) return;
  if (const auto* const op = std::get_if<OperatorAt>(&what)) forward.shown = op->at;  // its list follows
  history.select(std::move(what));
}

Selected Document::operator_at(graph::OpPlace place) const {
  const auto runs = forward.scene.value()->op_at(place);
  return runs ? Selected(OperatorAt{*runs}) : Selected(place);
}

std::optional<graph::TensorId> Document::selected_tensor() const {
  if (const auto* const tensor = std::get_if<graph::TensorId>(&selected())) return *tensor;
  const auto* const block = std::get_if<plan::BlockId>(&selected());
  if (block == nullptr || !exists(*block)) return std::nullopt;
  const auto storage = load.projection.value()->plan.block(*block).storage;
  return storage ? model->owners[graph::index(*storage)] : std::nullopt;
}

void Document::zoom(graph::NodeId module) {
  if (exists(module)) zoomed_ = module;
}

// A load that is selected would go on showing what the change has left behind.
void Document::follow_load() {
  const LoadOf now = {std::string(shown_method(load.asked()).id), shown_order(load.asked())};
  if (std::holds_alternative<LoadOf>(selected()) && selected() != Selected(now)) select(now);
}

void Document::take_projection() {
  const load::Projection* const now = load.projection.value().get();
  time.begin(now != nullptr ? now->plan.steps.size() : 0, now != nullptr ? now->timeline.unified.step : 0);
  axis.range = {};
  // the blocks of the projection before are gone
  history.replace([](Selected what) {
    return std::holds_alternative<plan::BlockId>(what) ? Selected() : std::move(what);
  });
  weigh_upload();
}

std::optional<Document::Failure> Document::failure() const {
  const auto& judged = load.judged.value();
  if (!judged || !load.projection.value() || judged->rows.empty()) return std::nullopt;
  const load::LoadRow& row = judged->rows.front();
  if (row.refusal || !row.verdict.step || *row.verdict.step >= load.projection.value()->plan.steps.size())
    return std::nullopt;
  return Failure{*row.verdict.step, row.first_over};
}

void Document::show_unit(view::RunAxis unit) {
  const view::RunAxis before = axis_unit();
  axis.chosen = unit;
  const auto& run = load.projection.value();
  if (!run || axis_unit() == before || axis.range.is_whole()) return;
  const std::size_t steps = run->plan.steps.size();
  const double old_length = view::length_of(run->timeline, steps, before),
               length = view::length_of(run->timeline, steps, unit);
  if (!(length > 0)) return;
  const auto same_moment = [&](double share) {
    const std::size_t step = view::step_at_x(run->timeline, steps, before, share * old_length);
    return view::x_of_step(run->timeline, steps, unit, step) / length;
  };
  constexpr double kLeast = 1e-4;
  const double from = axis.range.from <= 0 ? 0 : std::min(same_moment(axis.range.from), 1 - kLeast);
  const double to = axis.range.to >= 1 ? 1 : std::min(1.0, same_moment(axis.range.to));
  axis.range = {from, std::max(to, from + kLeast)};
}

ArenaModel arena_model(const Document& document) {
  return {document.model, document.load.projection.value(), document.forward.scene.value(),
          document.forward.figures()};
}

bool arena_waits(const Document& document) {
  return document.model && (document.forward.scene.busy() ||
                            (document.load.projection.busy() && !document.load.projection.value()));
}

void show_arena(Document& document) {
  if (!arena_waits(document) && !document.arena->opening()) document.arena->update(arena_model(document));
}

}  // namespace loadline::gui
