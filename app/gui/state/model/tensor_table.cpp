// Filters and sorts: at once, or of a large model in a job.
#include "app/gui/state/model/tensor_table.h"

#include "core/base/error.h"
#include "core/graph/names/tensor_names.h"

namespace loadline::gui {
namespace {

TableRows list_rows(const Model& model, const std::string& filter, SortColumn column, bool ascending) {
  TableRows table{.applied = filter,
                  .rows = filtered(model, filter),
                  .bytes = model.tree.root().bytes,
                  .lit = {},
                  .totals = {}};
  if (table.rows.size() != model.graph->tensors.size()) {
    table.lit = nodes_with(model, table.rows);
    table.totals = totals_of(model, table.rows);
    table.bytes = table.totals.front().bytes;
  }
  sort_tensors(model, table.rows, column, ascending);
  return table;
}

}  // namespace

TensorTable::TensorTable(Jobs& jobs, ModelPtr model, std::string filter, SortColumn column, bool ascending)
    : jobs_(jobs), model_(std::move(model)) {
  view_.filter = std::move(filter);
  view_.column = column;
  view_.ascending = ascending;
  refresh();
}

void TensorTable::set_filter(std::string filter) {
  if (filter == view_.filter) return;
  view_.filter = std::move(filter);
  refresh();
}

void TensorTable::set_sort(SortColumn column, bool ascending) {
  if (view_.column == column && view_.ascending == ascending) return;
  view_.column = column;
  view_.ascending = ascending;
  refresh();
}

void TensorTable::refresh() {
  constexpr std::size_t kSmall = 20'000;  // tensors that are listed within a frame
  view_.error.clear();
  try {
    (void)graph::TensorFilter(view_.filter);
  } catch (const Error& error) {  // half typed
    view_.error = error.what();
    return;
  }
  listing_.withdraw();
  if (!model_) return take({.applied = view_.filter, .rows = {}, .bytes = 0, .lit = {}, .totals = {}});
  const auto list = [shown = model_, filter = view_.filter, column = view_.column, up = view_.ascending] {
    return list_rows(*shown, filter, column, up);
  };
  if (model_->graph->tensors.size() <= kSmall) return take(list());
  listing_.ask(
      jobs_, "Listing tensors", [list](Progress&) { return list(); },
      [this] {
        if (listing_.error() == nullptr) take(*listing_.value());
        listing_.drop();
      });
}

}  // namespace loadline::gui
