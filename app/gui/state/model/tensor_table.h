// The tensors of a model that pass a filter, sorted.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/model/model.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

struct TableRows {
  std::string applied;  // the filter
  std::vector<graph::TensorId> rows;
  std::uint64_t bytes = 0;         // of the rows
  std::vector<bool> lit;           // per node of the tree: a tensor in it passes the filter; empty if all do
  std::vector<NodeTotals> totals;  // per node of the tree: of what passes; empty if all do
};

// The rows belong to the last valid filter. Of a large model they come later, from a job.
struct TableView : TableRows {
  std::string filter;  // as typed
  std::string error;   // why the filter is invalid; empty if it is valid
  SortColumn column = SortColumn::offset;
  bool ascending = true;
};

// Used from the thread that owns `jobs`, which must outlive this object.
class TensorTable {
 public:
  // A null `model` has no rows. A filter may be half typed.
  TensorTable(Jobs& jobs, ModelPtr model, std::string filter, SortColumn column, bool ascending);

  const TableView& view() const { return view_; }
  void set_filter(std::string filter);
  void set_sort(SortColumn column, bool ascending);

 private:
  void refresh();
  void take(TableRows rows) { static_cast<TableRows&>(view_) = std::move(rows); }

  Jobs& jobs_;
  ModelPtr model_;
  TableView view_;
  Latest<TableRows> listing_;  // of a large model
};

}  // namespace loadline::gui
