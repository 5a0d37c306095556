// The blocks of one memory by module, as rows that fold and unfold.
#pragma once

#include "app/gui/state/model/model.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/answer/projection.h"
#include "core/plan/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace loadline::gui {

inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A block; the blocks of a module; or the blocks of one use that hold no tensor.
using RowKey = std::variant<plan::BlockId, graph::NodeId, plan::BlockUse>;

std::string_view use_title(plan::BlockUse use);

// Model and projection must outlive it.
class SpaceBlocks {
 public:
  // The blocks that are alive in [from, to) of the load's steps.
  SpaceBlocks(const Model& model, const load::Projection& run, plan::Space space, double from, double to);

  std::size_t size() const { return blocks_.size() + loose_count_; }
  // The module below which all of them are; its name says nothing.
  graph::NodeId base() const { return base_; }
  // In the sequence in which their first blocks are allocated.
  std::vector<RowKey> inside(const RowKey& row) const;
  std::vector<RowKey> all() const;
  std::size_t count(const RowKey& row) const;
  // Per block of the load: sets the row of the innermost module around it, or of its use, that has one in
  // `rows`.
  void find_rows(const std::map<RowKey, std::size_t>& rows, std::vector<std::size_t>& row_of) const;

 private:
  std::optional<graph::NodeId> module_of(plan::BlockId block) const;
  std::vector<RowKey> inside_module(graph::NodeId node) const;
  RowKey collapsed(graph::NodeId node) const;
  std::span<const plan::BlockId> own(graph::NodeId node) const {
    return std::span(blocks_).subspan(first_[graph::index(node)],
                                      first_[graph::index(node) + 1] - first_[graph::index(node)]);
  }
  std::uint32_t first_step(const RowKey& row) const;
  void sort(std::vector<RowKey>& rows) const;

  const Model* model_;
  const load::Projection* run_;
  std::vector<std::uint32_t> first_;                 // per node, one entry more: its own blocks
  std::vector<plan::BlockId> blocks_;                // by node, there by their first step
  std::vector<std::uint32_t> below_;                 // per node: how many blocks there are at and below it
  std::vector<std::uint32_t> from_step_;             // per node: of the first of these
  std::array<std::vector<plan::BlockId>, 4> loose_;  // by use
  std::size_t loose_count_ = 0;
  graph::NodeId base_ = graph::kRootNode;
};

// The deepest level of modules whose rows are at most `most`; all equal modules are open, or none.
std::vector<RowKey> rows_that_fit(const SpaceBlocks& blocks, std::size_t most);

}  // namespace loadline::gui
