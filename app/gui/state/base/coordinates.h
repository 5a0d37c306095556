// What every view shares: the selection and its history, the visible part of an axis.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::gui {

// --- The visible part of an axis.

// The visible part, as shares of the axis's length.
struct PlotRange {
  double from = 0;
  double to = 1;
  bool operator==(const PlotRange&) const = default;
};

// --- What is selected, and what was selected before it.

struct OperatorAt {
  std::size_t at = 0;  // position in the forward graph
  bool operator==(const OperatorAt&) const = default;
};
// A finding of Document::findings.
struct FindingAt {
  std::size_t at = 0;
  bool operator==(const FindingAt&) const = default;
};
// A row of the comparison of methods.
struct LoadOf {
  std::string method, order;
  bool operator==(const LoadOf&) const = default;
};
// Nothing is the model itself. A block belongs to the projection that is shown.
using Selected = std::variant<std::monostate, graph::TensorId, graph::NodeId, OperatorAt, plan::BlockId,
                              LoadOf, FindingAt>;

// What a block holds, or the block where it holds no tensor.
inline Selected tensor_or_block(std::optional<graph::TensorId> tensor, plan::BlockId block) {
  return tensor ? Selected(*tensor) : Selected(block);
}

// Like the pages of a browser: selecting drops what would have come after.
class SelectionHistory {
 public:
  const Selected& now() const { return visited_[at_]; }
  void select(Selected what) {
    if (what == now()) return;
    visited_.resize(at_ + 1);
    if (visited_.size() == kMost) visited_.erase(visited_.begin());
    visited_.push_back(std::move(what));
    at_ = visited_.size() - 1;
  }
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < visited_.size(); }
  void go_back() { at_ -= can_go_back() ? 1 : 0; }
  void go_forward() { at_ += can_go_forward() ? 1 : 0; }
  // Puts `mend(entry)` in the place of every entry: for a projection whose blocks are gone.
  template <typename Mend>
  void replace(Mend mend) {
    for (Selected& entry : visited_) entry = mend(std::move(entry));
  }

 private:
  static constexpr std::size_t kMost = 200;
  std::vector<Selected> visited_ = std::vector<Selected>(1);
  std::size_t at_ = 0;
};

}  // namespace loadline::gui
