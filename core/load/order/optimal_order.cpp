// Candidates, their peaks, and the bound that proves one optimal.
#include "core/load/order/optimal_order.h"

#include "core/base/tasks.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace loadline::load {

// --- Candidates for the optimal order, their peaks, and the bound that proves one optimal.

namespace {

class Search {
 public:
  Search(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
         const Progress& progress, const TableOrders& table)
      : graph_(graph),
        method_(method),
        bound_(bound),
        progress_(progress),
        table_(table),
        file_(table.file()),
        cut_(cut_in(file_)) {}

  OptimalOrder best() {
    // the level at the end of a load is the same in every order, and no peak is below it
    if (cut_.peak == cut_.final_level) return in_file_order(true);
    probes_ = probes();
    probe();
    if (!fixed_) probe_files();
    OptimalOrder found = search();
    if (found.order == file_ || static_cast<std::uint64_t>(cut_in(found.order).peak) == *found.peak)
      return found;
    // the turns were the same in every probe, but not in this order
    fixed_ = fixed_files_ = false;
    return search();
  }

 private:
  OptimalOrder search() const {
    const bool bounded = fixed_ || fixed_files_;
    const std::int64_t bound = least_peak(fixed_ ? cut_ : files_cut_.cut);
    if (bounded && cut_.peak == bound) return in_file_order(true);
    std::int64_t least = cut_.peak;
    std::size_t breaks = 0;  // of file order itself
    StorageOrder best = file_;
    const auto attempt = [&](const StorageOrder& candidate) {
      if (candidate == file_) return;
      const std::int64_t peak = peak_of_order(candidate);
      // without gain, keep the sequential reads of file order
      if (peak > least || peak == cut_.peak) return;
      const std::size_t now = breaks_of(candidate);
      if (peak == least && now >= breaks) return;
      least = peak;
      breaks = now;
      best = candidate;
    };
    for (const TurnCut* cut : {&cut_, &files_cut_.cut})
      for (const TurnPhase* phase : highest_phases(*cut)) attempt(by_rule(*phase, cut == &files_cut_.cut));
    for (const StorageOrder* order : table_.all()) attempt(*order);
    return {std::move(best), static_cast<std::uint64_t>(least), bounded && least == bound};
  }

  OptimalOrder in_file_order(bool proven) const {
    return {file_, static_cast<std::uint64_t>(cut_.peak), proven};
  }

  // Makes the plan of an order, in the memory of the one before.
  PlanMaker plan_in(const StorageOrder& order) const {
    return [&](plan::StepTaker& taker) {
      progress_.check_canceled();
      plan_.taker = &taker;
      plan_ = make_plan(graph_, method_, order, bound_, std::move(plan_));
      plan::hand_over(plan_);
      plan_.taker = nullptr;  // it ends with the cut
    };
  }
  TurnCut cut_in(const StorageOrder& order) const {
    return cut_turns(plan_in(order), graph_.storages.size(), bound_.spaces);
  }

  // Tests whether the turns depend on the order. Methods with buffers that wait for a number of bytes are
  // excluded: their turns can look alike in many orders.
  void probe() {
    const std::size_t storages = graph_.storages.size();
    fixed_ = !waits() && follows(cut_, file_, storages);
    for (const StorageOrder& order : probes_) {
      if (!fixed_) return;
      if (order == file_) continue;
      const TurnCut now = cut_in(order);
      fixed_ = same_turns(cut_, now, storages) && follows(now, order, storages);
    }
  }

  // Turns of single storages may depend on their neighbors while turns of whole shards do not. A shard is
  // taken at its first storage.
  void probe_files() {
    const std::size_t storages = graph_.storages.size();
    const std::vector<std::uint32_t> shards =
        shards_of(graph_, method_.traits.shards ? bound_.request.shard_bytes : 0);
    std::map<std::uint32_t, graph::StorageId> first;
    first_of_file_.resize(storages);
    for (const graph::StorageId id : file_)
      first_of_file_[graph::index(id)] = first.try_emplace(shards[graph::index(id)], id).first->second;
    const auto grouped_in = [&](const StorageOrder& order) {
      return cut_groups(plan_in(order), first_of_file_, bound_.spaces);
    };
    files_cut_ = grouped_in(file_);
    fixed_files_ = !waits();
    for (const StorageOrder& order : probes_) {
      if (!fixed_files_) return;
      StorageOrder files;  // in the sequence of their first storages
      std::vector<bool> seen(storages, false);
      for (const graph::StorageId id : order) {
        const graph::StorageId file = first_of_file_[graph::index(id)];
        if (seen[graph::index(file)]) continue;
        seen[graph::index(file)] = true;
        files.push_back(file);
      }
      const GroupCut now = grouped_in(order);
      fixed_files_ = same_turns(files_cut_, now, storages) && follows(now.cut, files, storages);
    }
  }

  // With many storages one shuffle separates nearly all neighbors. With few it may not, but then more plans
  // cost little.
  std::vector<StorageOrder> probes() const {
    constexpr std::size_t kFew = 1000;
    std::mt19937_64 random(1);  // the same on every system
    std::vector<StorageOrder> orders = {shuffled(random)};
    if (file_.size() >= kFew) return orders;
    orders.push_back(reversed());
    orders.push_back(rotated());
    for (int i = 0; i < 7; ++i) orders.push_back(shuffled(random));
    return orders;
  }
  bool waits() const { return method_.waits != nullptr && method_.waits(bound_.request); }

  StorageOrder reversed() const { return {file_.rbegin(), file_.rend()}; }
  StorageOrder rotated() const {
    StorageOrder order = file_;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2), order.end());
    return order;
  }
  StorageOrder shuffled(std::mt19937_64& random) const {
    StorageOrder order = file_;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    return order;
  }

  // If the turns are the same in every order, the peak needs no plan.
  std::int64_t peak_of_order(const StorageOrder& order) const {
    return fixed_ ? peak_in(cut_, order, graph_.storages.size()) : cut_in(order).peak;
  }

  // The number of positions where an order departs from file order.
  std::size_t breaks_of(const StorageOrder& order) const {
    std::vector<std::size_t> places(graph_.storages.size());
    for (std::size_t i = 0; i < file_.size(); ++i) places[graph::index(file_[i])] = i;
    std::size_t breaks = 0;
    for (std::size_t i = 1; i < order.size(); ++i)
      breaks += places[graph::index(order[i])] != places[graph::index(order[i - 1])] + 1;
    return breaks;
  }

  // The phases with the highest peaks in file order, at most four.
  static std::vector<const TurnPhase*> highest_phases(const TurnCut& cut) {
    constexpr std::size_t kMost = 4;
    std::vector<const TurnPhase*> found;
    for (const TurnPhase& phase : cut.phases)
      if (phase.turns.size() > 1) found.push_back(&phase);
    std::ranges::stable_sort(
        found, [](const TurnPhase* a, const TurnPhase* b) { return a->base + a->hump > b->base + b->hump; });
    if (found.size() > kMost) found.resize(kMost);
    return found;
  }

  // Orders storages, or whole files, by the rule for this phase; storages without a turn in it come last.
  // Ties keep file order.
  StorageOrder by_rule(const TurnPhase& phase, bool of_files) const {
    std::vector<Turn> turns = phase.turns;
    sort_turns(turns);
    std::vector<std::size_t> places(graph_.storages.size(), turns.size());
    for (std::size_t i = 0; i < turns.size(); ++i) places[graph::index(turns[i].storage)] = i;
    const auto place = [&](graph::StorageId id) {
      return places[graph::index(of_files ? first_of_file_[graph::index(id)] : id)];
    };
    StorageOrder order = file_;
    std::ranges::stable_sort(order,
                             [&](graph::StorageId a, graph::StorageId b) { return place(a) < place(b); });
    return order;
  }

  const graph::MetaGraph& graph_;
  const Method& method_;
  const BoundRequest& bound_;
  const Progress& progress_;
  const TableOrders& table_;
  const StorageOrder& file_;
  mutable plan::Plan plan_;  // the last one made, without its steps
  const TurnCut cut_;        // in file order
  std::vector<StorageOrder> probes_;
  std::vector<graph::StorageId> first_of_file_;  // by storage: the representative of its file or shard
  GroupCut files_cut_;                           // one turn for each file or shard
  bool fixed_ = false;                           // the turns are the same in every order
  bool fixed_files_ = false;                     // the same for turns of files
};

}  // namespace

struct TableOrders::Kept {
  Once made;
  StorageOrder order;
};

TableOrders::TableOrders(const graph::MetaGraph& graph)
    : graph_(graph), kept_(std::make_unique<Kept[]>(orders().size())) {}

TableOrders::~TableOrders() = default;

const StorageOrder& TableOrders::of(const Order& row) const {
  Kept& kept = kept_[static_cast<std::size_t>(&row - orders().data())];
  kept.made.run([&] { kept.order = row.make(graph_); });
  return kept.order;
}

std::vector<const StorageOrder*> TableOrders::all() const {
  std::vector<const StorageOrder*> all;
  for (const Order& row : orders())
    if (row.make != nullptr) all.push_back(&of(row));
  return all;
}

OptimalOrder optimal_order(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                           const Progress& progress) {
  return optimal_order(graph, method, bound, progress, TableOrders(graph));
}

OptimalOrder optimal_order(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                           const Progress& progress, const TableOrders& table) {
  progress.check_canceled();
  if (method.traits.order_free) return {.order = table.file(), .proven = true};
  return Search(graph, method, bound, progress, table).best();
}

// Search::best() looks at this first. Its cut refuses loads that allocate more.
bool proves_file_order(const BoundRequest& bound, const plan::Plan& plan, const plan::Timeline& timeline) {
  if (plan::peak_over(timeline, bound.spaces).bytes != plan::sum_over(timeline.final_bytes, bound.spaces))
    return false;
  std::uint64_t allocated = 0;
  for (const plan::Block& block : plan.blocks) {
    if ((bound.spaces & plan::space_bit(block.space)) == 0) continue;
    if (block.bytes >= kMostOrdered - allocated) return false;
    allocated += block.bytes;
  }
  return true;
}

StorageOrder make_order(const graph::MetaGraph& graph, const Order& order, const Method& method,
                        const BoundRequest& bound, const Progress& progress) {
  return order.make != nullptr ? order.make(graph) : optimal_order(graph, method, bound, progress).order;
}

StorageOrder make_order(const graph::MetaGraph& graph, const OrderChoice& choice, const Method& method,
                        const BoundRequest& bound, const Progress& progress) {
  return choice.row == nullptr ? *choice.listed : make_order(graph, *choice.row, method, bound, progress);
}

// --- Asks the table of orders for a load whose peak depends on the order.

StorageOrder written_order(const graph::MetaGraph& graph, const std::string& name, const Progress& progress) {
  return make_order(graph, choose_order(graph, name), find_method("cast_on_device"), {}, progress);
}

}  // namespace loadline::load
