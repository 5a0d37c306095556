// Coordinates and tensor table; problems of the files, the check before a conversion.
#include "app/gui/state/document.h"

#include "app/gui/state/load/arena.h"
#include "app/gui/state/model/model.h"
#include "core/base/error.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/graph_reader.h"
#include "core/load/order/optimal_order.h"
#include "importers/gguf/gguf.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {

// --- Selection and tensor table.

namespace {

std::shared_ptr<ArenaWork> kept_arena(Shared& shared, std::shared_ptr<ArenaWork> arena) {
  if (arena) return arena;
  return std::make_shared<ArenaWork>(shared.jobs,
                                     [&shared](const Error& error) { shared.notices.fail("open", error); });
}

TableRows list_rows(const Model& model, const std::string& filter, SortColumn column, bool ascending) {
  TableRows table{
      .applied = filter, .rows = filtered(model, filter), .bytes = model.tree.root().bytes, .lit = {}};
  if (table.rows.size() != model.graph->tensors.size()) {
    table.lit = nodes_with(model, table.rows);
    table.bytes = graph::sum(graph::shares(*model.graph, table.rows)).bytes;
  }
  sort_tensors(model, table.rows, column, ascending);
  return table;
}

}  // namespace

Document::Document(Shared& shared, ModelPtr shown, Kept kept)
    : id(++shared.documents),
      model(std::move(shown)),
      metadata(shared.jobs, model ? model->graph : nullptr),
      values(shared.jobs, model ? model->graph : nullptr),
      diff(shared.jobs, model),
      arena(kept_arena(shared, std::move(kept.arena))),
      shared_(shared),
      asked_(of_any_model(std::move(kept.asked))) {
  constexpr std::size_t kSmall = 200'000;  // storages whose loads are compared at once
  wants_comparison_ = !model || model->graph->storages.size() <= kSmall;
  comparison.set({});
  order.set({});
  table_.column = kept.column;
  table_.ascending = kept.ascending;
  table_.filter = std::move(kept.filter);
  refresh_table();
  if (model)
    if (const auto tensor = find_tensor(*model, kept.tensor)) select(*tensor);
  if (model)
    counted_.ask(shared_.jobs, "Counting parameters",
                 [graph = model->graph, assets = shared_.assets](Progress&) {
                   return forward::model_claims(*graph, *assets).parameters;
                 });
  if (model) lower();
  refresh_load();
}

Document::Kept Document::kept() const {
  return {.asked = asked_, .column = table_.column, .ascending = table_.ascending};
}

Document::Kept Document::hand_over(bool again) {
  Kept all = kept();
  arena->forget_model();
  all.arena = std::move(arena);
  if (!again) return all;
  all.filter = table_.filter;
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
    return projection.value() && graph::index(*block) < projection.value()->plan.blocks.size();
  if (const auto* const finding = std::get_if<FindingAt>(&what))
    return findings.value() && finding->at < findings.value()->size();
  if (const auto* const op = std::get_if<OperatorAt>(&what))
    return forward.value() && forward.value()->forward() != nullptr &&
           op->at < forward.value()->forward()->ops.size();
  return true;
}

void Document::select(Selected what) {
  if (!exists(what)) return;
  history_.select(std::move(what));
  ++selections_;
}

void Document::go_back() {
  history_.go_back();
  ++selections_;
}

void Document::go_forward() {
  history_.go_forward();
  ++selections_;
}

std::optional<graph::TensorId> Document::selected_tensor() const {
  if (const auto* const tensor = std::get_if<graph::TensorId>(&selected())) return *tensor;
  const auto* const block = std::get_if<plan::BlockId>(&selected());
  if (block == nullptr || !projection.value() ||
      graph::index(*block) >= projection.value()->plan.blocks.size())
    return std::nullopt;
  const auto storage = projection.value()->plan.block(*block).storage;
  return storage ? model->owners[graph::index(*storage)] : std::nullopt;
}

std::size_t Document::step() const {
  if (!projection.value()) return 0;
  return std::min(step_.value_or(projection.value()->timeline.unified.step),
                  projection.value()->plan.steps.size());
}

void Document::set_step(std::optional<std::size_t> step) { step_ = step; }

void Document::zoom(graph::NodeId module) {
  if (!model || graph::index(module) >= model->tree.nodes.size()) return;
  zoomed_ = module;
}

void Document::set_filter(std::string filter) {
  if (filter == table_.filter) return;
  table_.filter = std::move(filter);
  refresh_table();
}

void Document::set_sort(SortColumn column, bool ascending) {
  if (table_.column == column && table_.ascending == ascending) return;
  table_.column = column;
  table_.ascending = ascending;
  refresh_table();
}

void Document::refresh_table() {
  constexpr std::size_t kSmall = 20'000;  // tensors that are listed within a frame
  table_.error.clear();
  try {
    (void)graph::TensorFilter(table_.filter);
  } catch (const Error& error) {  // half typed
    table_.error = error.what();
    return;
  }
  listing_.withdraw();
  if (!model) return take_rows({.applied = table_.filter, .rows = {}, .bytes = 0, .lit = {}});
  const auto list = [shown = model, filter = table_.filter, column = table_.column, up = table_.ascending] {
    return list_rows(*shown, filter, column, up);
  };
  if (model->graph->tensors.size() <= kSmall) return take_rows(list());
  listing_.ask(
      shared_.jobs, "Listing tensors", [list](Progress&) { return list(); },
      [this] {
        if (listing_.error() == nullptr) take_rows(*listing_.value());
        listing_.drop();
      });
}

void Document::take_rows(TableRows rows) { static_cast<TableRows&>(table_) = std::move(rows); }

void Document::play(bool on) {
  playing = on && projection.value() != nullptr;
  if (!playing) return;
  if (at_peak() || step() >= projection.value()->plan.steps.size()) step_ = 0;
  played_ = static_cast<double>(*step_);
}

void Document::advance(double seconds) {
  if (!playing) return;
  if (!projection.value()) {
    playing = false;
    return;
  }
  constexpr double kWhole = 8;  // seconds, at the speed 1
  const auto steps = static_cast<double>(projection.value()->plan.steps.size());
  // somebody may have moved the cursor
  if (static_cast<std::size_t>(played_) != step()) played_ = static_cast<double>(step());
  played_ = std::min(steps, played_ + seconds * play_speed * steps / kWhole);
  step_ = static_cast<std::size_t>(played_);
  if (played_ >= steps) playing = false;
}

ArenaModel arena_model(const Document& document) {
  return {document.model, document.projection.value(), document.forward.value(), document.figures()};
}

bool arena_waits(const Document& document) {
  return document.model &&
         (document.forward.busy() || (document.projection.busy() && !document.projection.value()));
}

void show_arena(Document& document) {
  if (!arena_waits(document) && !document.arena->opening()) document.arena->update(arena_model(document));
}

// --- Questions about a model's files: problems that slow down loading, and whether an exporter can write
// them.

exporters::Conversion bound_conversion(const Model& model, const ConvertTask& task,
                                       const forward::ForwardAssets& assets, const Progress& progress) {
  const auto order = [&](const graph::MetaGraph& graph, const std::string& name) {
    return load::written_order(graph, name, progress);
  };
  return exporters::bind_conversion(model.graph, task.request, task.out,
                                    {.policies = assets.type_policies,
                                     .order = order,
                                     .importance = importers::read_importance_file,
                                     .share = {},
                                     .follow_links = model.follow_links});
}

void Document::diagnose() {
  if (!model) throw Error(ErrorCode::usage, "no model is open");
  if (findings.busy()) return;
  findings.reset();
  findings.ask(shared_.jobs, "Checking files", [graph = model->graph](Progress& progress) {
    const io::StorageReader reader(graph);
    return loadline::inspect::diagnose(reader, progress);
  });
}

void Document::weigh_convert(const ConvertTask& task) {
  convert_fit.reset();
  if (!model || !use_misfit(*model).empty() || task.out.empty()) return;
  convert_fit.ask(shared_.jobs, "Laying out the new file",
                  [model = model, task, assets = shared_.assets](Progress& progress) {
                    return exporters::preflight(bound_conversion(*model, task, *assets, progress));
                  });
}

std::string diagnosis_error(const Document& document) {
  return document.findings.was_canceled() ? "Stopped before it was done." : document.findings.error_text();
}

}  // namespace loadline::gui
