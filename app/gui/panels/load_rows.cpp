// Blocks counted by node, collapsed chains of modules, and the level of modules that has room.
#include "app/gui/panels/load_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace loadline::gui {

std::string_view use_title(plan::BlockUse use) {
  constexpr std::array<std::string_view, 4> kTitles = {"other blocks", "activations and cache", "ring slots",
                                                       "temporaries"};
  return kTitles[static_cast<std::size_t>(use)];
}

std::optional<graph::NodeId> SpaceBlocks::module_of(plan::BlockId block) const {
  const auto storage = run_->plan.block(block).storage;
  const auto owner = storage ? model_->owners[graph::index(*storage)] : std::nullopt;
  return owner ? std::optional(model_->nodes[graph::index(*owner)]) : std::nullopt;
}

SpaceBlocks::SpaceBlocks(const Model& model, const load::Projection& run, plan::Space space, double from,
                         double to)
    : model_(&model), run_(&run) {
  const std::size_t nodes = model.tree.nodes.size();
  first_.assign(nodes + 1, 0);
  below_.assign(nodes, 0);
  from_step_.assign(nodes, plan::kNever);
  std::vector<plan::BlockId> held;
  for (std::uint32_t i = 0; i < run.plan.blocks.size(); ++i) {
    const plan::Lifetime& life = run.timeline.lifetimes[i];
    if (run.plan.blocks[i].space != space || life.from_step == plan::kNever ||
        static_cast<double>(life.from_step) >= to || static_cast<double>(life.to_step) <= from)
      continue;
    const plan::BlockId id{i};
    const auto node = module_of(id);
    if (!node) {
      loose_[static_cast<std::size_t>(run.plan.blocks[i].use)].push_back(id);
      ++loose_count_;
      continue;
    }
    held.push_back(id);
    ++first_[graph::index(*node) + 1];
    ++below_[graph::index(*node)];
    from_step_[graph::index(*node)] = std::min(from_step_[graph::index(*node)], life.from_step);
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::uint32_t> next = first_;
  blocks_.resize(held.size());
  for (const plan::BlockId id : held) blocks_[next[graph::index(*module_of(id))]++] = id;
  for (std::size_t i = nodes; i-- > 1;) {
    const std::size_t parent = graph::index(model.tree.nodes[i].parent);
    below_[parent] += below_[i];
    from_step_[parent] = std::min(from_step_[parent], from_step_[i]);
  }
  if (const RowKey only = collapsed(graph::kRootNode); std::holds_alternative<graph::NodeId>(only))
    base_ = std::get<graph::NodeId>(only);
}

// A module with one part says no more than that part.
RowKey SpaceBlocks::collapsed(graph::NodeId node) const {
  while (true) {
    if (below_[graph::index(node)] == 1 && own(node).size() == 1) return own(node).front();
    std::optional<graph::NodeId> only;
    std::size_t parts = own(node).size();
    for (const graph::NodeId child : model_->tree.node(node).children)
      if (below_[graph::index(child)] > 0) {
        ++parts;
        only = child;
      }
    if (parts != 1 || !only) return node;
    node = *only;
  }
}

std::vector<RowKey> SpaceBlocks::inside_module(graph::NodeId node) const {
  const std::span<const plan::BlockId> blocks = own(node);
  std::vector<RowKey> rows(blocks.begin(), blocks.end());
  for (const graph::NodeId child : model_->tree.node(node).children)
    if (below_[graph::index(child)] > 0) rows.push_back(collapsed(child));
  return rows;
}

std::vector<RowKey> SpaceBlocks::inside(const RowKey& row) const {
  std::vector<RowKey> rows;
  if (const auto* const node = std::get_if<graph::NodeId>(&row)) rows = inside_module(*node);
  if (const auto* const use = std::get_if<plan::BlockUse>(&row))
    rows.assign(loose_[static_cast<std::size_t>(*use)].begin(), loose_[static_cast<std::size_t>(*use)].end());
  sort(rows);
  return rows;
}

std::vector<RowKey> SpaceBlocks::all() const {
  std::vector<RowKey> rows;
  if (!blocks_.empty()) rows.push_back(collapsed(graph::kRootNode));
  for (std::size_t use = 0; use < loose_.size(); ++use) {
    if (loose_[use].size() == 1) rows.emplace_back(loose_[use].front());
    if (loose_[use].size() > 1) rows.emplace_back(static_cast<plan::BlockUse>(use));
  }
  return rows;
}

std::size_t SpaceBlocks::count(const RowKey& row) const {
  if (const auto* const node = std::get_if<graph::NodeId>(&row)) return below_[graph::index(*node)];
  if (const auto* const use = std::get_if<plan::BlockUse>(&row))
    return loose_[static_cast<std::size_t>(*use)].size();
  return 1;
}

std::uint32_t SpaceBlocks::first_step(const RowKey& row) const {
  if (const auto* const node = std::get_if<graph::NodeId>(&row)) return from_step_[graph::index(*node)];
  const auto* const use = std::get_if<plan::BlockUse>(&row);
  const plan::BlockId block =
      use != nullptr ? loose_[static_cast<std::size_t>(*use)].front() : std::get<plan::BlockId>(row);
  return run_->timeline.lifetimes[graph::index(block)].from_step;
}

void SpaceBlocks::sort(std::vector<RowKey>& rows) const {
  std::ranges::stable_sort(rows, {}, [&](const RowKey& row) { return first_step(row); });
}

void SpaceBlocks::find_rows(const std::map<RowKey, std::size_t>& rows,
                            std::vector<std::size_t>& row_of) const {
  std::vector<std::size_t> of_node(model_->tree.nodes.size(), kNone);
  for (std::uint32_t i = 0; i < of_node.size(); ++i) {  // parents come first
    const auto found = rows.find(graph::NodeId{i});
    of_node[i] = found != rows.end() ? found->second
                 : i > 0             ? of_node[graph::index(model_->tree.nodes[i].parent)]
                                     : kNone;
  }
  for (const plan::BlockId block : blocks_)
    row_of[graph::index(block)] = of_node[graph::index(*module_of(block))];
  for (std::size_t use = 0; use < loose_.size(); ++use)
    if (const auto found = rows.find(static_cast<plan::BlockUse>(use)); found != rows.end())
      for (const plan::BlockId block : loose_[use]) row_of[graph::index(block)] = found->second;
}

std::vector<RowKey> rows_that_fit(const SpaceBlocks& blocks, std::size_t most) {
  std::vector<RowKey> rows = blocks.all();
  while (true) {
    std::vector<RowKey> next;
    for (const RowKey& row : rows) {
      if (std::holds_alternative<plan::BlockId>(row))
        next.push_back(row);
      else
        std::ranges::copy(blocks.inside(row), std::back_inserter(next));
      if (next.size() > most) return rows;
    }
    if (next.size() == rows.size()) return rows;
    rows = std::move(next);
  }
}

}  // namespace loadline::gui
