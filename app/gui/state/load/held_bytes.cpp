// Plays the copies and frees between two steps, forwards or backwards.
#include "app/gui/state/load/held_bytes.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {

void HeldBytes::clear() {
  model_.reset();
  projection_.reset();
}

// At the first step, which is counted.
void HeldBytes::begin(const ModelPtr& model, const std::shared_ptr<const Projection>& projection) {
  const MetaGraph& graph = *model->graph;
  if (model_ != model) {
    first_.assign(graph.storages.size() + 1, 0);
    for (const Tensor& tensor : graph.tensors) ++first_[index(tensor.storage) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next = first_;
    tensors_.resize(graph.tensors.size());
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
      tensors_[next[index(graph.tensors[i].storage)]++] = TensorId{i};
  }
  model_ = model;
  projection_ = projection;
  written_.assign(projection->plan.blocks.size(), 0);
  freed_.assign(projection->plan.blocks.size(), 0);
  nodes_.assign(model->tree.nodes.size(), {});
  arrived_ = {};
  step_ = 0;
  if (!projection->plan.steps.empty()) apply(projection->plan.steps.front(), false);
}

void HeldBytes::apply(const Step& step, bool undo) {
  if (!projection_->plan.block(step.block).storage) return;
  std::uint64_t& written = written_[index(step.block)];
  if (step.verb == Verb::copy)
    return set_written(step.block, undo ? written - step.written() : written + step.written());
  if (step.verb == Verb::alloc) return;  // nothing has arrived before it or right after it
  std::uint64_t& freed = freed_[index(step.block)];
  if (undo) return set_written(step.block, freed);
  freed = written;
  set_written(step.block, 0);
}

// Each tensor of the storage has arrived as far as the block was written.
void HeldBytes::set_written(BlockId id, std::uint64_t written) {
  const Block& block = projection_->plan.block(id);
  const std::uint64_t whole = block.addressed_bytes();
  const auto arrived = [&](std::uint64_t bytes, std::uint64_t of_block) {
    const double share = static_cast<double>(std::min(of_block, whole)) /
                         static_cast<double>(std::max<std::uint64_t>(whole, 1));
    return of_block >= whole ? bytes : static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
  };
  const std::size_t storage = index(*block.storage), space = index(block.space);
  const std::uint64_t before = std::exchange(written_[index(id)], written);
  const auto held = [&](std::uint64_t stored) {  // of the block, which may hold them packed
    if (whole == block.bytes || whole == 0) return std::min(stored, whole);
    return static_cast<std::uint64_t>(static_cast<double>(std::min(stored, whole)) /
                                      static_cast<double>(whole) * static_cast<double>(block.bytes));
  };
  arrived_[space] += held(written) - held(before);  // modulo 2^64
  for (std::uint32_t i = first_[storage]; i < first_[storage + 1]; ++i) {
    const std::uint64_t bytes = model_->bytes[index(tensors_[i])];
    const std::uint64_t gone = whole == 0 ? 0 : arrived(bytes, before);
    const std::uint64_t come = whole == 0 ? 0 : arrived(bytes, written);
    if (gone == come) continue;
    for (NodeId node = model_->nodes[index(tensors_[i])];; node = model_->tree.node(node).parent) {
      std::uint64_t& held = nodes_[index(node)][space];
      held = held - gone + come;
      if (node == kRootNode) break;
    }
  }
}

void HeldBytes::move_to(const ModelPtr& model, const std::shared_ptr<const Projection>& projection,
                        std::size_t step) {
  const std::vector<Step>& steps = projection->plan.steps;
  // a jump to the other end is shorter from the beginning
  if (model_ != model || projection_ != projection || step < step_ / 2) begin(model, projection);
  const std::size_t last = std::min(step, steps.empty() ? 0 : steps.size() - 1);
  for (; step_ < last; ++step_) apply(steps[step_ + 1], false);
  for (; step_ > last; --step_) apply(steps[step_], true);
}

}  // namespace loadline::gui
