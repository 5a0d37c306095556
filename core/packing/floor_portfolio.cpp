// Distributes attempts over threads such that their numbers, not the clock, decide the answer.
#include "core/packing/floor_portfolio.h"

#include "core/base/parallel.h"
#include "core/packing/mix.h"

#include <algorithm>
#include <atomic>

namespace loadline {
namespace {

// The first attempts have no noise and are the same for every seed. They solve most problems.
constexpr std::uint64_t kPlainAttempts = 4;

// Luby's sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...; `index` counts from 1.
std::uint64_t luby(std::uint64_t index) {
  while (true) {
    std::uint64_t power = 1;
    while (power - 1 < index) power *= 2;
    if (power - 1 == index) return power / 2;
    index -= power / 2 - 1;
  }
}

}  // namespace

Attempt floor_attempt(std::uint64_t index, std::uint32_t boxes, std::uint64_t seed) {
  constexpr Attempt kWays[] = {{Selection::fullest, Preference::size},
                               {Selection::weighted, Preference::longest},
                               {Selection::fullest, Preference::area},
                               {Selection::fewest, Preference::busiest}};
  constexpr std::uint64_t kWayCount = std::size(kWays);
  static_assert(kWayCount == kPlainAttempts);
  constexpr double kNoise = 1.2;
  Attempt attempt = kWays[index % kWayCount];
  attempt.noise = index < kWayCount ? 0 : kNoise;
  attempt.seed = seed * 0x9e3779b97f4a7c15u + index;
  attempt.nodes = 2 * (std::uint64_t{boxes} + 8) * luby(index / kWayCount + 1);
  return attempt;
}

std::uint64_t floor_search_bytes(const SectionModel& model) {
  constexpr std::uint64_t kPerPlace = 16, kPerBox = 256, kPerSection = 128, kPerPair = 16;
  // each pair of a box and an obstacle may need an entry
  return places_of(model) * kPerPlace + model.box_count() * kPerBox + model.sections * kPerSection +
         std::uint64_t{model.box_count()} * model.obstacles.size() * kPerPair;
}

FloorPortfolio::FloorPortfolio(const SectionModel& model, std::uint64_t capacity, unsigned threads,
                               std::uint64_t seed)
    : boxes_(model.box_count()), list_bytes_(floor_search_bytes(model)), seed_(seed) {
  const bool narrow = fits_in<std::int32_t>(model, capacity);
  for (unsigned lane = 0; lane < std::max(1u, threads); ++lane) {
    if (narrow)
      lanes_.push_back(std::make_unique<Lane>(FloorSearch<std::int32_t>(model, capacity)));
    else
      lanes_.push_back(std::make_unique<Lane>(FloorSearch<std::int64_t>(model, capacity)));
  }
}

// After the plain attempts of the first lane, no two lanes make the same attempt.
Attempt FloorPortfolio::attempt_of(std::size_t lane, std::uint64_t index) const {
  return lane == 0 ? floor_attempt(index, boxes_, seed_)
                   : floor_attempt(index + kPlainAttempts, boxes_, mixed(seed_ + lane));
}

SearchEnd FloorPortfolio::run(std::uint64_t attempts, const StopRule& rule) {
  constexpr std::uint64_t kNone = UINT64_MAX;
  std::atomic<std::uint64_t> first_ended = kNone;
  std::vector<SearchEnd> ends(lanes_.size(), SearchEnd::gave_up);
  std::vector<std::uint64_t> ended(lanes_.size(), kNone);
  const auto turn = [&](std::size_t lane, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      const std::uint64_t number = i * lanes_.size() + lane;
      StopRule mine = rule;
      mine.first_ended = &first_ended;
      mine.attempt = number;
      if (mine.due()) return;
      const Attempt attempt = attempt_of(lane, i);
      ends[lane] = std::visit([&](auto& search) { return search.attempt(attempt, mine); }, *lanes_[lane]);
      if (ends[lane] == SearchEnd::gave_up) continue;
      if (ends[lane] == SearchEnd::stopped) return;
      ended[lane] = number;
      std::uint64_t known = first_ended.load();
      while (number < known && !first_ended.compare_exchange_weak(known, number)) {
      }
      return;
    }
  };
  // the plain attempts run on the caller alone: they take less time than starting a thread
  const std::uint64_t alone = lanes_.size() == 1 ? attempts : std::min(attempts, kPlainAttempts);
  if (done_ < alone) turn(0, done_, alone);
  if (alone < attempts && ended[0] == kNone && !rule.out_of_time())
    ParallelLoop(lanes_.size(), lanes_.size(), [&](std::size_t lane) {
      turn(lane, lane == 0 ? std::max(done_, alone) : done_, attempts);
    }).finish();
  const auto first = std::ranges::min_element(ended);
  if (*first == kNone) {
    if (rule.out_of_time()) return SearchEnd::stopped;
    done_ = std::max(done_, attempts);
    return SearchEnd::gave_up;
  }
  const auto lane = static_cast<std::size_t>(first - ended.begin());
  if (ends[lane] == SearchEnd::solved)
    std::visit([&](const auto& search) { offsets_.assign(search.offsets().begin(), search.offsets().end()); },
               *lanes_[lane]);
  return ends[lane];
}

std::uint64_t FloorPortfolio::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_)
    sum += list_bytes_ + std::visit([](const auto& search) { return search.learnt_bytes(); }, *lane);
  return sum;
}

std::uint64_t FloorPortfolio::nodes() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += std::visit([](const auto& search) { return search.nodes(); }, *lane);
  return sum;
}

}  // namespace loadline
