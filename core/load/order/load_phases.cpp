// Cuts plans into turns and orders them by Johnson's rule.
#include "core/base/error.h"
#include "core/load/order/optimal_order.h"
#include "core/plan/timeline.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace loadline::load {
namespace {

constexpr std::uint32_t kNoPhase = UINT32_MAX;

// Follows the memory level through a plan and records its turns and phases.
class TurnCutter {
 public:
  explicit TurnCutter(std::size_t storages) : last_phase_(storages, kNoPhase) {}

  // Records one allocation or free. Returns whether a turn begins with it.
  bool change(std::optional<graph::StorageId> storage, std::int64_t by) {
    if (cut_.phases.empty() || !belongs(storage)) begin_phase(storage);
    level_ += by;
    TurnPhase& phase = cut_.phases.back();
    phase.hump = std::max(phase.hump, level_ - phase.base);
    cut_.peak = std::max(cut_.peak, level_);
    if (!storage) return false;
    const bool begins = phase.turns.empty() || phase.turns.back().storage != *storage;
    if (begins) begin_turn(*storage, level_ - by);
    Turn& turn = phase.turns.back();
    turn.net = level_ - turn_base_;
    turn.hump = std::max(turn.hump, turn.net);
    return begins;
  }

  // Returns the cut and starts a new one at level 0.
  TurnCut finish() {
    cut_.final_level = std::exchange(level_, 0);
    phases_before_ = number();
    return std::exchange(cut_, {});
  }

 private:
  bool belongs(std::optional<graph::StorageId> storage) const {
    const TurnPhase& phase = cut_.phases.back();
    if (!storage || phase.turns.empty()) return !storage && phase.turns.empty();
    return phase.turns.back().storage == *storage || last_phase_[graph::index(*storage)] != number();
  }
  std::uint32_t number() const { return static_cast<std::uint32_t>(phases_before_ + cut_.phases.size()); }

  void begin_phase(std::optional<graph::StorageId> storage) {
    // most phases have as many turns as the one before
    const std::size_t before = cut_.phases.empty() ? 0 : cut_.phases.back().turns.size();
    cut_.phases.push_back({.base = level_});
    if (storage) cut_.phases.back().turns.reserve(before);
  }
  void begin_turn(graph::StorageId storage, std::int64_t level) {
    last_phase_[graph::index(storage)] = number();
    cut_.phases.back().turns.push_back({.storage = storage});
    turn_base_ = level;
  }

  TurnCut cut_;
  std::vector<std::uint32_t> last_phase_;  // by storage: the number of the last phase with its turn
  std::size_t phases_before_ = 0;          // in finished cuts
  std::int64_t level_ = 0;
  std::int64_t turn_base_ = 0;
};

}  // namespace

void sort_turns(std::vector<Turn>& turns) {
  const auto key = [](const Turn& turn) {
    return turn.net <= 0 ? std::tuple(0, turn.hump) : std::tuple(1, turn.net - turn.hump);
  };
  std::ranges::stable_sort(turns, [&](const Turn& a, const Turn& b) { return key(a) < key(b); });
}

std::int64_t peak_of(std::span<const Turn> turns) {
  std::int64_t level = 0;
  std::int64_t peak = 0;
  for (const Turn& turn : turns) {
    peak = std::max(peak, level + turn.hump);
    level += turn.net;
  }
  return peak;
}

namespace {

// Calls a function with the storage and the change in bytes of each allocation and free of a plan, while the
// plan is made.
template <typename Change>
class LevelFollower final : public plan::StepTaker {
 public:
  LevelFollower(unsigned mask, Change change) : mask_(mask), change_(std::move(change)) {}

  void take(std::span<const plan::Block> blocks, std::span<const plan::Step> steps, std::size_t) override {
    for (const plan::Step& step : steps) {
      if (step.verb == plan::Verb::copy) continue;
      const plan::Block& block = blocks[graph::index(step.block)];
      if ((mask_ & plan::space_bit(block.space)) == 0) continue;
      if (step.verb == plan::Verb::alloc) {
        if (block.bytes >= kMostOrdered - allocated_)
          throw Error(ErrorCode::limit, "a load that allocates 2^62 bytes or more in all is not ordered");
        allocated_ += block.bytes;
      }
      const auto bytes = static_cast<std::int64_t>(block.bytes);
      change_(block.storage, step.verb == plan::Verb::alloc ? bytes : -bytes);
    }
  }

 private:
  const unsigned mask_;
  const Change change_;
  std::uint64_t allocated_ = 0;
};

}  // namespace

TurnCut cut_turns(const PlanMaker& make, std::size_t storages, unsigned mask) {
  TurnCutter cutter(storages);
  LevelFollower follower(
      mask, [&](std::optional<graph::StorageId> storage, std::int64_t by) { cutter.change(storage, by); });
  make(follower);
  return cutter.finish();
}

GroupCut cut_groups(const PlanMaker& make, std::span<const graph::StorageId> groups, unsigned mask) {
  TurnCutter cutter(groups.size()), inner(groups.size());
  GroupCut result;
  bool any = false;
  LevelFollower follower(mask, [&](std::optional<graph::StorageId> storage, std::int64_t by) {
    if (!storage) {
      cutter.change(storage, by);
      return;
    }
    if (cutter.change(groups[graph::index(*storage)], by) && std::exchange(any, true))
      result.within.push_back(inner.finish());
    inner.change(storage, by);
  });
  make(follower);
  if (any) result.within.push_back(inner.finish());
  result.cut = cutter.finish();
  std::size_t next = 0;
  for (TurnPhase& phase : result.cut.phases)
    for (Turn& turn : phase.turns) turn.hump = least_peak(result.within[next++]);
  return result;
}

namespace {

// `found`: scratch space with a null entry for each storage, before and after.
bool same_turns(const TurnCut& a, const TurnCut& b, std::vector<const Turn*>& found) {
  if (a.phases.size() != b.phases.size() || a.final_level != b.final_level) return false;
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    const TurnPhase &x = a.phases[i], &y = b.phases[i];
    if (x.base != y.base || x.turns.size() != y.turns.size()) return false;
    if (x.turns.empty() && x.hump != y.hump) return false;
    // a storage has one turn in a phase: with equal counts, a match for each turn makes the sets equal
    for (const Turn& turn : x.turns) found[graph::index(turn.storage)] = &turn;
    const bool same = std::ranges::all_of(y.turns, [&](const Turn& turn) {
      const Turn* other = found[graph::index(turn.storage)];
      return other != nullptr && *other == turn;
    });
    for (const Turn& turn : x.turns) found[graph::index(turn.storage)] = nullptr;
    if (!same) return false;
  }
  return true;
}

}  // namespace

bool same_turns(const TurnCut& a, const TurnCut& b, std::size_t storages) {
  std::vector<const Turn*> found(storages, nullptr);
  return same_turns(a, b, found);
}

bool same_turns(const GroupCut& a, const GroupCut& b, std::size_t storages) {
  std::vector<const Turn*> found(storages, nullptr);
  if (!same_turns(a.cut, b.cut, found)) return false;
  std::vector<std::size_t> places(storages);  // of a's turns in a phase; b has them in another order
  std::size_t begin = 0;
  for (std::size_t i = 0; i < a.cut.phases.size(); ++i) {
    const std::vector<Turn>&x = a.cut.phases[i].turns, &y = b.cut.phases[i].turns;
    for (std::size_t t = 0; t < x.size(); ++t) places[graph::index(x[t].storage)] = begin + t;
    for (std::size_t t = 0; t < y.size(); ++t)
      if (!same_turns(a.within[places[graph::index(y[t].storage)]], b.within[begin + t], found)) return false;
    begin += x.size();
  }
  return true;
}

namespace {

std::vector<std::uint32_t> places_of(const StorageOrder& order, std::size_t storages) {
  std::vector<std::uint32_t> places(storages, kNoPhase);
  for (std::size_t i = 0; i < order.size(); ++i)
    places[graph::index(order[i])] = static_cast<std::uint32_t>(i);
  return places;
}

}  // namespace

bool follows(const TurnCut& cut, const StorageOrder& order, std::size_t storages) {
  const std::vector<std::uint32_t> places = places_of(order, storages);
  return std::ranges::all_of(cut.phases, [&](const TurnPhase& phase) {
    return std::ranges::is_sorted(phase.turns, [&](const Turn& a, const Turn& b) {
      return places[graph::index(a.storage)] < places[graph::index(b.storage)];
    });
  });
}

std::int64_t least_peak(const TurnCut& cut) {
  std::int64_t least = cut.final_level;
  for (const TurnPhase& phase : cut.phases) least = std::max(least, phase.base);
  for (const TurnPhase& phase : cut.phases) {
    // this phase cannot raise the result: most phases only rise to the base of the next one
    if (phase.base + phase.hump <= least) continue;
    std::vector<Turn> turns = phase.turns;
    sort_turns(turns);
    least = std::max(least, phase.base + (turns.empty() ? phase.hump : peak_of(turns)));
  }
  return least;
}

std::int64_t peak_in(const TurnCut& cut, const StorageOrder& order, std::size_t storages) {
  std::int64_t peak = cut.final_level;
  std::vector<const Turn*> turn_of(storages, nullptr);
  std::vector<Turn> turns;
  for (const TurnPhase& phase : cut.phases) {
    turns.clear();
    for (const Turn& turn : phase.turns) turn_of[graph::index(turn.storage)] = &turn;
    if (!phase.turns.empty())
      for (const graph::StorageId id : order)
        if (turn_of[graph::index(id)] != nullptr) turns.push_back(*turn_of[graph::index(id)]);
    for (const Turn& turn : phase.turns) turn_of[graph::index(turn.storage)] = nullptr;
    peak = std::max(peak, phase.base + (turns.empty() ? phase.hump : peak_of(turns)));
  }
  return peak;
}

}  // namespace loadline::load
