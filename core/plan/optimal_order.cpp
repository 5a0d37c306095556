// Candidates for the best order, their peaks, and the bound that proves one.
#include "core/plan/optimal_order.h"

#include "core/plan/turns.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace loadline {
namespace {

// The peaks that candidates are compared by, the first counts more.
struct Peaks {
  std::int64_t chosen = 0;  // over the spaces asked for
  std::int64_t all = 0;     // over all spaces
  auto operator<=>(const Peaks&) const = default;
};

// A method's turns over the chosen spaces and over all.
struct Cuts {
  TurnCut chosen, all;
};

class Search {
 public:
  Search(const MetaGraph& graph, const Method& method, const MethodOptions& options, const Progress& progress)
      : graph_(graph),
        method_(method),
        options_(options),
        progress_(progress),
        file_(find_order("file").make(graph)),
        cuts_(cuts_in(file_)) {}

  OptimalOrder best() {
    probe();
    const Peaks bound = {least_peak(cuts_.chosen), least_peak(cuts_.all)};
    const bool certain = fixed_chosen_ && fixed_all_;
    StorageOrder order = file_;
    Peaks least = {cuts_.chosen.peak, cuts_.all.peak};
    const auto attempt = [&](StorageOrder candidate) {
      const Peaks peaks = peaks_in(candidate);
      if (peaks >= least) return;
      least = peaks;
      order = std::move(candidate);
    };
    for (const TurnCut* cut : {&cuts_.chosen, &cuts_.all})
      for (const TurnPhase* phase : highest_phases(*cut))
        if (!certain || least > bound) attempt(by_rule(*phase));
    for (const Order& row : orders())
      if (row.make != nullptr && (!certain || least > bound)) attempt(row.make(graph_));
    return {std::move(order), static_cast<std::uint64_t>(least.chosen),
            fixed_chosen_ && least.chosen == bound.chosen};
  }

 private:
  Cuts cuts_in(const StorageOrder& order) const {
    progress_.check_cancelled();
    const Plan plan = make_plan(graph_, method_, order, options_);
    Cuts cuts = {cut_turns(plan, graph_.storages.size(), options_.spaces), {}};
    cuts.all =
        options_.spaces == kAllSpaces ? cuts.chosen : cut_turns(plan, graph_.storages.size(), kAllSpaces);
    return cuts;
  }

  // Whether turns depend on the order: methods that keep together what one file holds have others when
  // neighbours change. Buffers that wait until so many bytes are there can look alike in many orders.
  void probe() {
    const std::size_t storages = graph_.storages.size();
    fixed_chosen_ = options_.flush_bytes == 0 && follows(cuts_.chosen, file_, storages);
    fixed_all_ = options_.flush_bytes == 0 && follows(cuts_.all, file_, storages);
    std::mt19937_64 random(1);  // the same on every system
    constexpr std::size_t kFew = 1000;
    // of many storages one shuffle parts neighbours everywhere; of few it may not, and plans take no time
    const int probes = file_.size() < kFew ? 10 : 1;
    for (int i = 0; i < probes; ++i) {
      if (!fixed_chosen_ && !fixed_all_) return;
      const StorageOrder order = i == 1 ? reversed() : i == 2 ? rotated() : shuffled(random);
      if (order == file_) continue;
      const Cuts cuts = cuts_in(order);
      const auto fixed = [&](const TurnCut& file, const TurnCut& now) {
        return same_turns(file, now, storages) && follows(now, order, storages);
      };
      fixed_chosen_ = fixed_chosen_ && fixed(cuts_.chosen, cuts.chosen);
      fixed_all_ = fixed_all_ && fixed(cuts_.all, cuts.all);
    }
  }

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

  // Turns that are the same in every order give the peak without a plan.
  Peaks peaks_in(const StorageOrder& order) const {
    const std::size_t storages = graph_.storages.size();
    if (fixed_chosen_ && fixed_all_)
      return {peak_in(cuts_.chosen, order, storages), peak_in(cuts_.all, order, storages)};
    const Cuts cuts = cuts_in(order);
    return {cuts.chosen.peak, cuts.all.peak};
  }

  // Those that file order lifts highest, at most four.
  static std::vector<const TurnPhase*> highest_phases(const TurnCut& cut) {
    constexpr std::size_t kMost = 4;
    std::vector<const TurnPhase*> found;
    for (const TurnPhase& phase : cut.phases)
      if (phase.turns.size() > 1) found.push_back(&phase);
    std::stable_sort(found.begin(), found.end(), [](const TurnPhase* a, const TurnPhase* b) {
      return a->base + a->hump > b->base + b->hump;
    });
    if (found.size() > kMost) found.resize(kMost);
    return found;
  }

  // The phase's turns by the rule; storages without one in it, in file order behind them.
  StorageOrder by_rule(const TurnPhase& phase) const {
    std::vector<Turn> turns = phase.turns;
    sort_turns(turns);
    std::vector<bool> placed(graph_.storages.size(), false);
    StorageOrder order;
    order.reserve(file_.size());
    for (const Turn& turn : turns) {
      order.push_back(turn.storage);
      placed[index(turn.storage)] = true;
    }
    for (const StorageId id : file_)
      if (!placed[index(id)]) order.push_back(id);
    return order;
  }

  const MetaGraph& graph_;
  const Method& method_;
  const MethodOptions& options_;
  const Progress& progress_;
  const StorageOrder file_;
  const Cuts cuts_;
  bool fixed_chosen_ = false;  // the turns over the chosen spaces are the same in every order
  bool fixed_all_ = false;
};

}  // namespace

OptimalOrder optimal_order(const MetaGraph& graph, const Method& method, const MethodOptions& options,
                           const Progress& progress) {
  return Search(graph, method, options, progress).best();
}

StorageOrder make_order(const MetaGraph& graph, const Order& order, const Method& method,
                        const MethodOptions& options, const Progress& progress) {
  return order.make != nullptr ? order.make(graph) : optimal_order(graph, method, options, progress).order;
}

}  // namespace loadline
