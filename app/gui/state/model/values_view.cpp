// One job for each question; a newer one takes the place of an older.
#include "app/gui/state/model/values_view.h"

#include "core/base/text.h"

#include <utility>

namespace loadline::gui {

std::shared_ptr<const StorageReader> ValuesView::reader() {
  if (!reader_) reader_ = std::make_shared<const StorageReader>(graph_);
  return reader_;
}

void ValuesView::read(TensorId tensor) {
  if (!graph_ || shown_ == tensor) return;
  shown_ = tensor;
  const MatrixSides sides = matrix_sides(graph_->tensor(tensor));
  range_ = {0, sides.rows, 0, sides.columns};
  picture.reset();
  part_.reset();
  picture.ask(jobs_, "Reading " + safe_display(graph_->tensor(tensor).name, 60),
              [from = reader(), tensor](Progress& progress) {
                return picture_values(*from, tensor, kMostCells, kMostCells, progress);
              });
}

void ValuesView::zoom(const CellRange& range) {
  if (!shown_ || range == range_) return;
  range_ = range;
  const MatrixSides sides = matrix_sides(graph_->tensor(*shown_));
  if (range == CellRange{0, sides.rows, 0, sides.columns}) return part_.reset();
  part_.ask(jobs_, "Reading a part", [from = reader(), tensor = *shown_, range](Progress& progress) {
    return value_cells(*from, tensor, range, kMostCells, kMostCells, progress);
  });
}

const ValueCells* ValuesView::cells() const {
  if (part_.value() && part_.value()->range == range_) return part_.value().get();
  return picture.value() ? &picture.value()->cells : nullptr;
}

void ValuesView::keep(std::optional<TensorId> tensor) {
  kept_ = tensor;
  compared_.reset();
  comparison.reset();
}

void ValuesView::compare(TensorId with) {
  if (!kept_ || compared_ == with) return;
  compared_ = with;
  comparison.reset();
  comparison.ask(jobs_, "Comparing values", [from = reader(), first = *kept_, with](Progress& progress) {
    return compare_values(*from, first, with, progress);
  });
}

}  // namespace loadline::gui
