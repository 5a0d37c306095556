// Decides which algorithm runs when, and for how long.
#include "core/packing/component_packer.h"

#include "core/packing/time_sweep.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

// Memory limit for all exact searches of a component.
constexpr std::uint64_t kMostSearchBytes = std::uint64_t{512} << 20;
// Up to this size an attempt of exact search takes milliseconds and runs before the heuristics.
constexpr std::uint64_t kFewPlaces = 400'000;
constexpr std::uint32_t kFewBoxes = 20'000;  // each decision looks at every section of its component
// Above this many boxes ejection gains more per second than tightest gaps, further orders and the squeaky
// wheel.
constexpr std::uint32_t kManyBoxes = 50'000;
// Up to this many boxes whole rounds of the squeaky wheel run.
constexpr std::uint32_t kWheelBoxes = 10'000;

constexpr std::uint64_t kFirstAttempts = 8;
constexpr std::uint64_t kSqueakyRounds = 16;
constexpr std::uint64_t kFirstPatience = 4000;  // steps of ejection
constexpr unsigned kMostDoubled = 32;

Fit fit_of(const GreedyRule& rule, const SectionModel& model) {
  return model.box_count() > kManyBoxes ? Fit::first : rule.fit;
}

}  // namespace

ComponentPacker::ComponentPacker(const SectionModel& model, std::uint64_t highest, unsigned threads,
                                 std::uint64_t seed)
    : model_(model), highest_(highest), seed_(seed), index_(model) {
  const LowerBound bound = lower_bound(model);
  lower_ = bound.units;
  bound_section_ = bound.section;
  places_ = places_of(model) + std::uint64_t{model.box_count()} * model.obstacles.size();
  const std::uint64_t lanes = kMostSearchBytes / std::max<std::uint64_t>(floor_search_bytes(model), 1);
  threads_ = static_cast<unsigned>(std::min<std::uint64_t>(std::max(1u, threads), lanes));
}

bool ComponentPacker::keep(std::vector<std::uint64_t> offsets, std::string algorithm) {
  std::uint64_t height = model_.top_of_obstacles();
  for (std::uint32_t box = 0; box < model_.box_count(); ++box)
    height = std::max(height, offsets[box] + model_.height_of(box));
  if (height >= height_) return false;
  height_ = height;
  offsets_ = std::move(offsets);
  algorithm_ = std::move(algorithm);
  portfolios_.erase(portfolios_.lower_bound(height_), portfolios_.end());
  return true;
}

void ComponentPacker::begin(const StopRule& rule) {
  GreedyPacking packing = pack_by_time(model_, highest_);
  if (packing.height != UINT64_MAX) keep(std::move(packing.offsets), "best fit in the order of time");
  best_rule_ = &greedy_rules().front();
  if (!done(lower_)) try_order(*best_rule_, rule);
}

void ComponentPacker::try_order(const GreedyRule& order, const StopRule& rule) {
  GreedyPacking packing = pack_in_order(model_, index_, order_by(model_, order), fit_of(order, model_),
                                        std::min(height_ - 1, highest_), rule);
  if (packing.height == UINT64_MAX) return;
  keep(std::move(packing.offsets), fmt::format("greedy by {}", order.id));
  best_rule_ = &order;
}

void ComponentPacker::try_orders(std::uint64_t target, const StopRule& rule) {
  if (orders_tried_ || model_.box_count() > kManyBoxes) return;
  orders_tried_ = true;
  for (const GreedyRule& order : greedy_rules().subspan(1)) {
    if (done(target) || rule.due()) return;
    try_order(order, rule);
  }
}

void ComponentPacker::squeak(std::uint64_t target, const StopRule& rule) {
  if (done(target) || model_.box_count() > kWheelBoxes) return;
  GreedyPacking packing =
      squeaky_wheel(model_, index_, order_by(model_, *best_rule_), fit_of(*best_rule_, model_), height_,
                    target, kSqueakyRounds, seed_, rule);
  if (packing.height < height_)
    keep(std::move(packing.offsets), fmt::format("squeaky wheel from {}", best_rule_->id));
}

bool ComponentPacker::eject(std::uint64_t target, std::uint64_t patience, const StopRule& rule) {
  if (!ejection_) ejection_.emplace(model_, seed_);
  std::vector<std::uint64_t> offsets = offsets_;
  return ejection_->lower(offsets, target, patience, rule) && keep(std::move(offsets), "ejection");
}

// Bisects between `least` and the known height, until the interval is a sixteenth of its first length.
void ComponentPacker::eject_downwards(std::uint64_t least, std::uint64_t patience, const StopRule& rule) {
  const std::uint64_t small = (height_ - least) / 16;
  for (std::uint64_t from = least; height_ > from && height_ - from > small && !rule.due();) {
    const std::uint64_t middle = from + (height_ - 1 - from) / 2;
    if (!eject(middle, patience, rule)) from = middle + 1;
  }
}

bool ComponentPacker::quick_to_search() const {
  return threads_ > 0 && model_.box_count() <= kFewBoxes && places_ <= kFewPlaces &&
         fits_in<std::int64_t>(model_, height_);
}

bool ComponentPacker::search(std::uint64_t capacity, std::uint64_t attempts, const StopRule& rule) {
  if (threads_ == 0 || !fits_in<std::int64_t>(model_, capacity)) return false;
  std::uint64_t bytes = floor_search_bytes(model_) * threads_;
  for (const auto& [at, portfolio] : portfolios_) bytes += portfolio.bytes();
  if (bytes > kMostSearchBytes) portfolios_.clear();
  FloorPortfolio& portfolio =
      portfolios_.try_emplace(capacity, model_, capacity, threads_, seed_).first->second;
  const std::uint64_t before = portfolio.nodes();
  const SearchEnd end = portfolio.run(attempts, rule);
  nodes_ += portfolio.nodes() - before;
  if (end == SearchEnd::infeasible) {
    lower_ = std::max(lower_, capacity + 1);
    bound_section_.reset();
    portfolios_.erase(portfolios_.begin(), portfolios_.lower_bound(lower_));
  }
  return end == SearchEnd::solved && keep(portfolio.offsets(), "floor filling");
}

// Leaps down from the known height. The farthest leaps get the least effort: they either succeed quickly or
// take too long to decide.
void ComponentPacker::search_downwards(std::uint64_t least, unsigned turn, const StopRule& rule) {
  constexpr unsigned kLeaps = 6;
  const std::uint64_t attempts = kFirstAttempts << turn;
  unsigned leap = 0;
  while (height_ > std::max(least, lower_) && leap <= kLeaps && !rule.due()) {
    const std::uint64_t way = std::max<std::uint64_t>((height_ - std::max(least, lower_)) >> leap, 1);
    const std::uint64_t effort = std::max<std::uint64_t>(attempts >> ((kLeaps - leap) / 2), 1);
    if (search(height_ - way, effort, rule))
      leap = leap > 0 ? leap - 1 : 0;
    else if (way == 1)
      return;
    else
      ++leap;
  }
}

void ComponentPacker::reach(std::uint64_t capacity, const StopRule& rule) {
  const unsigned turn = turns_++, doubled = std::min(turn, kMostDoubled);
  if (!packed() || done(capacity)) return;
  const bool quick = quick_to_search();
  if (turn == 0) {
    if (quick) search(capacity, kFirstAttempts, rule);
    if (!done(capacity)) try_orders(capacity, rule);
  }
  // if search is quick, a few dozen attempts are worth more than any heuristic
  const unsigned patient = quick ? 2 : 0;
  if (turn == patient) squeak(capacity, rule);
  if (!done(capacity) && (!quick || turn == patient)) eject(capacity, kFirstPatience << doubled, rule);
  if (!done(capacity) && quick) {
    search(capacity, 2 * kFirstAttempts << doubled, rule);
  } else if (!done(capacity) && places_ <= kFewPlaces && turn > 0) {
    search(capacity, turn, rule);
  }
  // also lowers the height towards the capacity, to show how close it gets
  if (done(capacity) || turn < patient) return;
  if (quick) search_downwards(capacity, std::min(turn - patient, kMostDoubled), rule);
  if (!quick || turn == patient) eject_downwards(capacity, kFirstPatience << doubled, rule);
}

void ComponentPacker::minimize(const StopRule& rule) {
  const unsigned turn = turns_++, doubled = std::min(turn, kMostDoubled);
  if (!packed() || done(lower_)) return;
  const bool quick = quick_to_search();
  if (turn == 0) {
    if (quick) search(lower_, kFirstAttempts, rule);
    if (!done(lower_)) try_orders(lower_, rule);
    squeak(lower_, rule);
  }
  if (!quick || turn == 0) eject_downwards(lower_, kFirstPatience << doubled, rule);
  if (quick) {
    search_downwards(lower_, doubled, rule);
  } else if (places_ <= kFewPlaces && turn > 0) {
    search(lower_, turn, rule);
  }
}

}  // namespace loadline
