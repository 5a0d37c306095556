// The values of a tensor as the panel Values shows them, read from the files by jobs. No ImGui.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/latest.h"
#include "core/inspect/tensor_values.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace loadline::gui {

// Used from the thread that owns the jobs. Every function returns at once.
class ValuesView {
 public:
  // A null graph has no tensors.
  ValuesView(Jobs& jobs, MetaGraphPtr graph) : jobs_(jobs), graph_(std::move(graph)) {}

  // Reads the values, unless they are read already.
  void read(TensorId tensor);
  std::optional<TensorId> shown() const { return shown_; }  // the tensor read last
  // The part of the matrix that the map shows; the whole at first.
  const CellRange& range() const { return range_; }
  void zoom(const CellRange& range);
  // The finest cells there are of range(): those of the part, else those of the whole, which cover it.
  const ValueCells* cells() const;

  // Keeps the tensor, to hold others against it.
  void keep(std::optional<TensorId> tensor);
  std::optional<TensorId> kept() const { return kept_; }
  // Compares the kept tensor with this one, unless that is known.
  void compare(TensorId with);

  // Tensors of at most this size are read without being asked.
  static constexpr std::uint64_t kSmall = 64 << 20;
  static constexpr std::size_t kMostCells = 160;  // in each direction

  Latest<ValuePicture> picture;
  Latest<ValueComparison> comparison;

 private:
  std::shared_ptr<const StorageReader> reader();

  Jobs& jobs_;
  MetaGraphPtr graph_;
  std::shared_ptr<const StorageReader> reader_;
  std::optional<TensorId> shown_, kept_, compared_;
  CellRange range_;
  Latest<ValueCells> part_;
};

}  // namespace loadline::gui
