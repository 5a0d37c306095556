// Which rung when, and for how long.
#include "core/packing/component_packer.h"

#include "core/packing/floor_portfolio.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

// Lists of exact search: more would neither fit nor help.
constexpr std::uint64_t kMostSearchBytes = std::uint64_t{512} << 20;
// Plain greedy rounds cost little; the squeaky wheel turns while exact search would be out of its depth.
constexpr std::uint64_t kFewBoxes = 2000;
constexpr std::uint64_t kFewRounds = 16;

}  // namespace

ComponentPacker::ComponentPacker(const SectionModel& model, unsigned threads, std::uint64_t seed)
    : model_(model), threads_(threads), seed_(seed) {
  const LowerBound bound = lower_bound(model);
  lower_ = bound.units;
  bound_section_ = bound.section;
}

void ComponentPacker::keep(std::vector<std::uint64_t> offsets, std::string algorithm) {
  std::uint64_t height = 0;
  for (std::uint32_t box = 0; box < model_.box_count(); ++box)
    height = std::max(height, offsets[box] + model_.height_of(box));
  for (const auto& obstacle : model_.obstacles)
    height = std::max(height, obstacle.offset + obstacle.range.size);
  if (height >= height_) return;
  height_ = height;
  offsets_ = std::move(offsets);
  algorithm_ = std::move(algorithm);
}

void ComponentPacker::squeak(std::uint64_t target, std::uint64_t rounds, const StopRule& rule) {
  SqueakyResult result = squeaky_wheel(model_, target, rounds, seed_, rule);
  const bool plain = result.round < greedy_rules().size();
  keep(std::move(result.packing.offsets),
       plain ? fmt::format("greedy by {}", result.rule) : fmt::format("squeaky wheel from {}", result.rule));
}

void ComponentPacker::begin(const StopRule& rule) { squeak(lower_, greedy_rules().size(), rule); }

bool ComponentPacker::exact_fits(std::uint64_t capacity) const {
  return fits_in<std::int64_t>(model_, capacity) &&
         floor_search_bytes(model_) <= kMostSearchBytes / std::max(1u, threads_);
}

bool ComponentPacker::probe(std::uint64_t capacity, std::uint64_t attempts, const StopRule& rule) {
  FloorPortfolio portfolio(model_, capacity, threads_, seed_);
  const SearchEnd end = portfolio.run(attempts == 0 ? UINT64_MAX : attempts, rule);
  nodes_ += portfolio.nodes();
  if (end == SearchEnd::infeasible) lower_ = std::max(lower_, capacity + 1);
  if (end == SearchEnd::solved) keep(portfolio.offsets(), "floor filling");
  return end == SearchEnd::solved;
}

bool ComponentPacker::reach(std::uint64_t capacity, std::uint64_t effort, const StopRule& rule) {
  if (height_ <= capacity) return true;
  if (lower_ > capacity || rule.due()) return false;
  const bool exact = exact_fits(capacity);
  const std::uint64_t rounds = !exact && effort == 0            ? UINT64_MAX
                               : model_.box_count() > kFewBoxes ? 4 * kFewRounds
                                                                : kFewRounds;
  squeak(capacity, rounds, rule);
  if (height_ <= capacity) return true;
  return exact && probe(capacity, effort, rule);
}

// Bisects between what is proved and what is known, as far as the attempts at each height go.
void ComponentPacker::descend(std::uint64_t attempts, const StopRule& rule) {
  for (std::uint64_t from = lower_; from < height_ && !rule.due();) {
    const std::uint64_t middle = from + (height_ - 1 - from) / 2;
    if (!probe(middle, attempts, rule)) from = std::max(middle + 1, lower_);
  }
}

void ComponentPacker::minimize(std::uint64_t effort, const StopRule& rule) {
  if (height_ == lower_) return;
  if (!exact_fits(height_)) {
    squeak(lower_, effort == 0 ? UINT64_MAX : kFewRounds, rule);
    return;
  }
  squeak(lower_, model_.box_count() > kFewBoxes ? 4 * kFewRounds : kFewRounds, rule);
  constexpr std::uint64_t kFirstAttempts = 32;
  for (std::uint64_t attempts = kFirstAttempts;
       height_ > lower_ && !rule.due() && (effort == 0 || attempts <= effort); attempts *= 2) {
    probe(lower_, attempts, rule);
    descend(attempts, rule);
  }
}

}  // namespace loadline
