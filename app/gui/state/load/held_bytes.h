// Which bytes of a model have arrived in which memory at a step of its load, module by module.
#pragma once

#include "app/gui/state/model/model.h"
#include "core/load/answer/projection.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace loadline::gui {

// Follows a time cursor: a short way costs what changes on it, not what the model has.
class HeldBytes {
 public:
  // Goes to a step of a projection of the model; both must not be null.
  void move_to(const ModelPtr& model, const std::shared_ptr<const Projection>& projection, std::size_t step);
  void clear();
  bool empty() const { return !projection_; }
  // Bytes of the tensors at and below a node that have arrived in each space: memory that is allocated and
  // not yet written does not count, two copies of a tensor count twice. Not of an empty object.
  const PerSpace<std::uint64_t>& at(NodeId node) const { return nodes_[index(node)]; }
  // Bytes that have arrived in each space in all: what at() has, with the bytes that tensors share once.
  const PerSpace<std::uint64_t>& arrived() const { return arrived_; }
  const std::shared_ptr<const Projection>& projection() const { return projection_; }
  std::size_t step() const { return step_; }

 private:
  void begin(const ModelPtr& model, const std::shared_ptr<const Projection>& projection);
  void apply(const Step& step, bool undo);
  void set_written(BlockId block, std::uint64_t written);

  ModelPtr model_;
  std::shared_ptr<const Projection> projection_;
  std::size_t step_ = 0;  // its effects are counted
  // The tensors of storage i are tensors_[first_[i]] to tensors_[first_[i + 1]], without the last.
  std::vector<std::uint32_t> first_;
  std::vector<TensorId> tensors_;
  std::vector<std::uint64_t> written_;  // per block: bytes copied into it, 0 unless it is alive
  std::vector<std::uint64_t> freed_;    // per block: what written_ was when it was freed
  std::vector<PerSpace<std::uint64_t>> nodes_;
  PerSpace<std::uint64_t> arrived_ = {};
};

}  // namespace loadline::gui
