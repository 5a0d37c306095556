// Depth-first search on an explicit stack; attempts whose numbers decide the answer.
#include "core/packing/floor_search.h"

#include "core/base/tasks.h"
#include "core/packing/search_control.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

namespace loadline::packing {

// --- Depth-first search on an explicit stack, with failed states kept across attempts.

template <typename T>
FloorSearch<T>::FloorSearch(const SectionModel& model, std::uint64_t capacity)
    : order_(by_first_section(model)),
      skyline_(reordered(model, order_), static_cast<T>(capacity)),
      weights_(model.sections, 1.0),
      failed_(std::size_t{1} << 12) {
  number_kinds();
  const auto sums = section_sums(model);
  for (std::uint32_t box = 0; box < order_.size(); ++box) {
    std::uint64_t most = 0;
    for (const SectionRange& range : skyline_.model().ranges_of(box))
      for (std::uint32_t section = range.first; section < range.last; ++section)
        most = std::max(most, (*sums)[section]);
    busiest_.push_back(static_cast<double>(most));
  }
}

template <typename T>
void FloorSearch<T>::rank(const Attempt& attempt) {
  MixedSequence random(attempt.seed);
  ranks_.clear();
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    const double length = skyline_.model().length_of(i);
    const auto size = static_cast<double>(skyline_.model().height_of(i));
    double rank = 0;
    switch (attempt.preference) {
      case Preference::longest:
        rank = 1.1 * std::log(length) + 0.1 * std::log(size);
        break;
      case Preference::area:
        rank = std::log(length) + std::log(size);
        break;
      case Preference::size:
        rank = std::log(size);
        break;
      case Preference::busiest:
        rank = std::log(busiest_[i]) + 1e-6 * length;
        break;
    }
    ranks_.push_back(rank + attempt.noise * (2 * random.fraction() - 1));
  }
}

// Splits the listed sections [from, to] into components, at each pair of neighbors that no box covers
// together.
template <typename T>
void FloorSearch<T>::split(std::uint32_t from, std::uint32_t to, std::size_t rest, std::size_t maker) {
  todo_ = rest;
  for (std::uint32_t section = from;;) {
    std::uint32_t end = section;
    while (end != to && skyline_.crossing(end) > 0) end = skyline_.next(end);
    if (!skyline_.waiting(section).empty()) {
      components_.push_back({section, end, todo_, maker});
      todo_ = components_.size() - 1;
    }
    if (end == to) return;
    section = skyline_.next(end);
  }
}

template <typename T>
double FloorSearch<T>::score(std::uint32_t section) const {
  const SectionStack<T>& stack = skyline_.stack(section);
  const double choices = stack.on_floor + (skyline_.room(section) > 0 ? 1.0 : 0.0);
  switch (selection_) {
    case Selection::weighted:
      return choices / weights_[section];
    case Selection::fullest:
      return choices + static_cast<double>(skyline_.capacity() - stack.total) /
                           (static_cast<double>(skyline_.capacity()) + 1);
    case Selection::fewest:
      break;
  }
  return choices;
}

template <typename T>
std::uint32_t FloorSearch<T>::choose(const Component& component) const {
  const auto floor = [&](std::uint32_t section) { return skyline_.stack(section).floor; };
  T deepest = std::numeric_limits<T>::max();
  if (!skyline_.whole())
    for (std::uint32_t at = component.from;; at = skyline_.next(at)) {
      deepest = std::min(deepest, floor(at));
      if (at == component.to) break;
    }
  double least = std::numeric_limits<double>::infinity();
  std::uint32_t best = component.from;
  for (std::uint32_t section = component.from;;) {
    std::uint32_t end = section;
    while (end != component.to && floor(skyline_.next(end)) == floor(section)) end = skyline_.next(end);
    const bool lowest = floor(section) <= deepest &&
                        (section == component.from || floor(skyline_.previous(section)) > floor(section)) &&
                        (end == component.to || floor(skyline_.next(end)) > floor(section));
    for (std::uint32_t at = section; lowest; at = skyline_.next(at)) {
      if (const double s = score(at); s < least) least = s, best = at;
      if (at == end) break;
    }
    if (end == component.to) return best;
    section = skyline_.next(end);
  }
}

template <typename T>
void FloorSearch<T>::number_kinds() {
  const SectionModel& model = skyline_.model();
  const std::vector<std::uint32_t> boxes =
      boxes_by(model, [&](std::uint32_t a, std::uint32_t b) { return model.before(a, b); });
  kinds_.assign(boxes.size(), 0);
  for (std::size_t i = 1; i < boxes.size(); ++i)
    kinds_[boxes[i]] = kinds_[boxes[i - 1]] + (model.before(boxes[i - 1], boxes[i]) ? 1 : 0);
  seen_.assign(boxes.empty() ? 0 : kinds_[boxes.back()] + 1, 0);
}

template <typename T>
void FloorSearch<T>::open_frame() {
  const Component& component = components_[todo_];
  Frame frame{};
  frame.component = todo_;
  frame.moment = skyline_.now();
  frame.components = components_.size();
  frame.first_candidate = frame.tried = candidates_.size();
  frame.hash = skyline_.hash(component.from, component.to);
  frame.known = has_failed(frame.hash);
  if (!frame.known) {
    frame.section = choose(component);
    const T floor = skyline_.stack(frame.section).floor;
    for (const std::uint32_t box : skyline_.waiting(frame.section)) {
      // of equal boxes only one is tried
      if (skyline_.start(box) != floor || seen_[kinds_[box]] == nodes_) continue;
      seen_[kinds_[box]] = nodes_;
      candidates_.push_back(box);
    }
    std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(frame.first_candidate), candidates_.end(),
              [&](std::uint32_t a, std::uint32_t b) {
                return ranks_[a] != ranks_[b] ? ranks_[a] > ranks_[b] : a < b;
              });
    frame.may_stay_empty = skyline_.room(frame.section) > 0;
  }
  frame.end = candidates_.size();
  frames_.push_back(frame);
}

template <typename T>
bool FloorSearch<T>::place_next(Frame& frame) {
  const std::uint32_t box = candidates_[frame.tried++];
  if (observer_ != nullptr) observer_->placed(order_[box], static_cast<std::uint64_t>(skyline_.start(box)));
  if (!skyline_.place(box)) {
    weights_[skyline_.broken_section()] += 1;
    return false;
  }
  const Component component = components_[frame.component];
  // its first and last sections may have been unlisted
  std::uint32_t from = component.from, to = component.to;
  if (!skyline_.listed(from)) from = skyline_.next(from);
  if (!skyline_.listed(to)) to = skyline_.previous(to);
  split(from, to, component.rest, frames_.size() - 1);
  return true;
}

// The height up to which a section stays empty if no box sits on its floor: the lowest level at which one of
// its boxes can rest on a box that is not over it.
template <typename T>
T FloorSearch<T>::level_if_empty(std::uint32_t section) const {
  const T floor = skyline_.stack(section).floor;
  T level = std::numeric_limits<T>::max();
  for (const std::uint32_t box : skyline_.waiting(section)) {
    if (skyline_.start(box) > floor) {
      level = std::min(level, skyline_.start(box));
      continue;
    }
    for (const SectionRange& range : skyline_.model().ranges_of(box)) {
      std::uint32_t at = range.first;
      while (!skyline_.listed(at)) ++at;
      for (; at < range.last; at = skyline_.next(at))
        for (const std::uint32_t other : skyline_.waiting(at))
          if (!skyline_.model().over(other, section))
            level = std::min(level, skyline_.fitting(box, skyline_.top_over(other, at)));
    }
  }
  return level;
}

template <typename T>
bool FloorSearch<T>::leave_empty(Frame& frame) {
  frame.may_stay_empty = false;
  const T level = level_if_empty(frame.section);
  if (level - skyline_.stack(frame.section).floor > skyline_.room(frame.section)) return false;
  if (!skyline_.raise(frame.section, level)) {
    weights_[skyline_.broken_section()] += 1;
    return false;
  }
  const Component component = components_[frame.component];
  components_.push_back({component.from, component.to, component.rest, frames_.size() - 1});
  todo_ = components_.size() - 1;
  return true;
}

// Makes the next choice of the last frame. False if no choice is left or it is time to stop.
template <typename T>
bool FloorSearch<T>::advance(const StopRule& rule) {
  constexpr std::uint64_t kBetweenLooks = 16;
  Frame& frame = frames_.back();
  while (true) {
    if (++choices_ % kBetweenLooks == 0 && rule.due()) {
      stopped_ = true;
      return false;
    }
    skyline_.undo(frame.moment);
    if (observer_ != nullptr) observer_->kept(frame.moment.placements);
    components_.resize(frame.components);
    if (frame.tried < frame.end) {
      if (place_next(frame)) return true;
    } else if (frame.may_stay_empty) {
      if (leave_empty(frame)) return true;
    } else {
      return false;
    }
  }
}

// The last frame's component has no solution: returns to the choice that created it. False if no choice did.
template <typename T>
bool FloorSearch<T>::fail() {
  const Frame& failed = frames_.back();
  if (!failed.known) record_failure(failed.hash);
  const std::size_t maker = components_[failed.component].maker;
  if (maker == kNone) return false;
  frames_.resize(maker + 1);
  candidates_.resize(frames_.back().end);
  return true;
}

template <typename T>
bool FloorSearch<T>::has_failed(const Hash& hash) const {
  const Hash& entry = failed_[hash.b & (failed_.size() - 1)];
  return entry.a == hash.a && entry.b == hash.b;
}

template <typename T>
void FloorSearch<T>::record_failure(const Hash& hash) {
  if (++failures_ > failed_.size() / 2 && failed_.size() < kMostFailed) {
    std::vector<Hash> wider(failed_.size() * 4);
    for (const Hash& entry : failed_)
      if (entry.a != 0 || entry.b != 0) wider[entry.b & (wider.size() - 1)] = entry;
    failed_ = std::move(wider);
  }
  failed_[hash.b & (failed_.size() - 1)] = hash;
}

template <typename T>
void FloorSearch<T>::keep_solution() {
  offsets_.resize(order_.size());
  for (std::uint32_t box = 0; box < order_.size(); ++box) offsets_[order_[box]] = skyline_.start(box);
}

template <typename T>
SearchEnd FloorSearch<T>::attempt(const Attempt& attempt, const StopRule& rule) {
  skyline_.undo({});
  components_.clear();
  frames_.clear();
  candidates_.clear();
  for (std::uint32_t section = 0; section < skyline_.section_count(); ++section)
    if (skyline_.slack(section) < 0) return SearchEnd::infeasible;
  stopped_ = rule.due();
  if (stopped_) return SearchEnd::stopped;
  rank(attempt);
  selection_ = attempt.selection;
  if (skyline_.section_count() == 0) {
    keep_solution();
    return SearchEnd::solved;
  }
  split(0, skyline_.section_count() - 1, kNone, kNone);
  for (std::uint64_t used = 0; todo_ != kNone; ++used) {
    if (used >= attempt.nodes || skyline_.logged() > kMostLogged) return SearchEnd::gave_up;
    ++nodes_;
    open_frame();
    while (!advance(rule)) {
      if (stopped_) return SearchEnd::stopped;
      if (!fail()) return SearchEnd::infeasible;
    }
  }
  keep_solution();
  return SearchEnd::solved;
}

template class FloorSearch<std::int32_t>;
template class FloorSearch<std::int64_t>;

// --- Distributes attempts over threads such that their numbers, not the clock, decide the answer.

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
    sum += list_bytes_ + std::visit([](const auto& search) { return search.learned_bytes(); }, *lane);
  return sum;
}

std::uint64_t FloorPortfolio::nodes() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += std::visit([](const auto& search) { return search.nodes(); }, *lane);
  return sum;
}

}  // namespace loadline::packing
