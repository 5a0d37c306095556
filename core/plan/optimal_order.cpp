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
        cuts_(cuts_in(file_)),
        probes_(probes()) {}

  OptimalOrder best() {
    probe();
    if (!fixed_chosen_) probe_files();
    OptimalOrder found = search();
    if (static_cast<std::uint64_t>(cuts_in(found.order).chosen.peak) == found.peak) return found;
    // turns that were the same in every order tried are not in this one
    fixed_chosen_ = fixed_all_ = fixed_files_ = false;
    return search();
  }

 private:
  OptimalOrder search() {
    const bool bounded = fixed_chosen_ || fixed_files_;
    const Peaks bound = {least_peak(fixed_chosen_ ? cuts_.chosen : files_cut_.cut), least_peak(cuts_.all)};
    StorageOrder order = file_;
    Peaks least = {cuts_.chosen.peak, cuts_.all.peak};
    // nothing is left to gain: over the chosen spaces, or over all as well where that is what was chosen
    const auto done = [&] {
      if (!bounded || least.chosen > bound.chosen) return false;
      return options_.spaces == kAllSpaces || (fixed_all_ && least.all == bound.all);
    };
    const auto attempt = [&](StorageOrder candidate) {
      const Peaks peaks = peaks_in(candidate);
      if (peaks >= least) return;
      least = peaks;
      order = std::move(candidate);
    };
    for (const TurnCut* cut : {&cuts_.chosen, &cuts_.all, &std::as_const(files_cut_.cut)})
      for (const TurnPhase* phase : highest_phases(*cut))
        if (!done()) attempt(by_rule(*phase, cut == &files_cut_.cut));
    for (const Order& row : orders())
      if (row.make != nullptr && !done()) attempt(row.make(graph_));
    return {std::move(order), static_cast<std::uint64_t>(least.chosen),
            bounded && least.chosen == bound.chosen};
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

  // Whether turns depend on the order. Buffers that wait until so many bytes are there can look alike in many
  // orders.
  void probe() {
    const std::size_t storages = graph_.storages.size();
    fixed_chosen_ = !waits() && follows(cuts_.chosen, file_, storages);
    fixed_all_ = !waits() && follows(cuts_.all, file_, storages);
    for (const StorageOrder& order : probes_) {
      if (!fixed_chosen_ && !fixed_all_) return;
      if (order == file_) continue;
      const Cuts cuts = cuts_in(order);
      const auto fixed = [&](const TurnCut& file, const TurnCut& now) {
        return same_turns(file, now, storages) && follows(now, order, storages);
      };
      fixed_chosen_ = fixed_chosen_ && fixed(cuts_.chosen, cuts.chosen);
      fixed_all_ = fixed_all_ && fixed(cuts_.all, cuts.all);
    }
  }

  // Where storages depend on their neighbours, files may not: they are taken as their first storage comes.
  void probe_files() {
    const std::size_t storages = graph_.storages.size();
    std::vector<std::optional<StorageId>> first(graph_.files.size() + 1);  // the last: without a file
    first_of_file_.resize(storages);
    for (const StorageId id : file_) {
      auto& found = first[std::min(index(graph_.storage(id).file), graph_.files.size())];
      if (!found) found = id;
      first_of_file_[index(id)] = *found;
    }
    const auto cut_in = [&](const StorageOrder& order) {
      progress_.check_cancelled();
      return cut_groups(make_plan(graph_, method_, order, options_), first_of_file_, options_.spaces);
    };
    files_cut_ = cut_in(file_);
    fixed_files_ = !waits();
    for (const StorageOrder& order : probes_) {
      if (!fixed_files_) return;
      StorageOrder files;  // as they come
      std::vector<bool> seen(storages, false);
      for (const StorageId id : order) {
        const StorageId file = first_of_file_[index(id)];
        if (seen[index(file)]) continue;
        seen[index(file)] = true;
        files.push_back(file);
      }
      const GroupCut now = cut_in(order);
      fixed_files_ = same_turns(files_cut_, now, storages) && follows(now.cut, files, storages);
    }
  }

  // Of many storages one shuffle parts neighbours everywhere; of few it may not, and plans take no time.
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
  // Buffers that wait for each other, and shards cut by size, can look alike in many orders and not in all.
  bool waits() const { return options_.flush_bytes > 0 || options_.shard_bytes > 0; }

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

  // The phase's turns, of storages or of files, by the rule; storages without one in it behind them; what
  // stands alike in file order.
  StorageOrder by_rule(const TurnPhase& phase, bool of_files) const {
    std::vector<Turn> turns = phase.turns;
    sort_turns(turns);
    std::vector<std::size_t> places(graph_.storages.size(), turns.size());
    for (std::size_t i = 0; i < turns.size(); ++i) places[index(turns[i].storage)] = i;
    const auto place = [&](StorageId id) { return places[index(of_files ? first_of_file_[index(id)] : id)]; };
    StorageOrder order = file_;
    std::stable_sort(order.begin(), order.end(),
                     [&](StorageId a, StorageId b) { return place(a) < place(b); });
    return order;
  }

  const MetaGraph& graph_;
  const Method& method_;
  const MethodOptions& options_;
  const Progress& progress_;
  const StorageOrder file_;
  const Cuts cuts_;
  const std::vector<StorageOrder> probes_;
  std::vector<StorageId> first_of_file_;  // by storage: the one that stands for its file
  GroupCut files_cut_;                    // over the chosen spaces, a turn for each file
  bool fixed_files_ = false;              // its turns are the same in every order
  bool fixed_chosen_ = false;             // the turns over the chosen spaces are the same in every order
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
