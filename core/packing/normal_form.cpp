// Sums over sections; how time is cut, components split and units found; the bound.
#include "core/packing/normal_form.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/packing/problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace loadline::packing {

// --- Functions that look at the whole model.

namespace {

auto key(const SectionRange& range) { return std::tuple(range.first, range.last, range.size); }

}  // namespace

std::uint64_t SectionModel::height_of(std::uint32_t box) const {
  std::uint64_t height = 0;
  for (const SectionRange& range : ranges_of(box)) height = std::max(height, range.size);
  return height;
}

double SectionModel::length_of(std::uint32_t box) const {
  double length = 0;
  for (const SectionRange& range : ranges_of(box)) length += range.last - range.first;
  return length;
}

std::uint64_t SectionModel::top_of_obstacles() const {
  std::uint64_t top = 0;
  for (const Obstacle& obstacle : obstacles) top = std::max(top, obstacle.offset + obstacle.range.size);
  return top;
}

bool SectionModel::over(std::uint32_t box, std::uint32_t section) const {
  return std::ranges::any_of(ranges_of(box), [&](const SectionRange& range) {
    return range.first <= section && section < range.last;
  });
}

bool SectionModel::before(std::uint32_t a, std::uint32_t b) const {
  if (alignment_of(a) != alignment_of(b)) return alignment_of(a) < alignment_of(b);
  return std::ranges::lexicographical_compare(ranges_of(a), ranges_of(b), {}, key, key);
}

SectionModel reordered(const SectionModel& model, const std::vector<std::uint32_t>& order) {
  SectionModel result;
  result.sections = model.sections;
  result.obstacles = model.obstacles;
  result.ranges.reserve(model.ranges.size());
  result.ranges_from.reserve(model.ranges_from.size());
  for (const std::uint32_t box : order) {
    const auto ranges = model.ranges_of(box);
    result.ranges.insert(result.ranges.end(), ranges.begin(), ranges.end());
    result.ranges_from.push_back(static_cast<std::uint32_t>(result.ranges.size()));
    if (!model.alignments.empty()) result.alignments.push_back(model.alignments[box]);
  }
  return result;
}

std::vector<std::uint32_t> by_first_section(const SectionModel& model) {
  return boxes_by(model, [&](std::uint32_t a, std::uint32_t b) {
    return key(model.ranges_of(a).front()) < key(model.ranges_of(b).front());
  });
}

std::optional<std::vector<std::uint64_t>> section_sums(const SectionModel& model) {
  // begins and ends are summed separately, so that neither sum can wrap unnoticed
  std::vector<std::uint64_t> begins(model.sections + 1, 0), ends(model.sections + 1, 0);
  const auto count = [&](const SectionRange& range) {
    const auto more = checked_add(begins[range.first], range.size);
    const auto less = checked_add(ends[range.last], range.size);
    if (more) begins[range.first] = *more;
    if (less) ends[range.last] = *less;
    return more && less;
  };
  for (const SectionRange& range : model.ranges)
    if (!count(range)) return std::nullopt;
  for (const SectionModel::Obstacle& obstacle : model.obstacles)
    if (!count(obstacle.range)) return std::nullopt;
  std::vector<std::uint64_t> sums(model.sections, 0);
  std::uint64_t sum = 0;
  for (std::uint32_t section = 0; section < model.sections; ++section) {
    const auto next = checked_add(sum - ends[section], begins[section]);
    if (!next) return std::nullopt;
    sums[section] = sum = *next;
  }
  return sums;
}

std::uint64_t places_of(const SectionModel& model) {
  std::uint64_t places = 0;
  for (const SectionRange& range : model.ranges) places += range.last - range.first;
  for (const auto& obstacle : model.obstacles) places += obstacle.range.last - obstacle.range.first;
  return places;
}

template <typename T>
bool fits_in(const SectionModel& model, std::uint64_t capacity) {
  const auto sums = section_sums(model);
  if (!sums) return false;
  std::uint64_t most = 0, tops = capacity, alignment = 1;
  for (const std::uint64_t sum : *sums) most = std::max(most, sum);
  for (const std::uint64_t a : model.alignments) alignment = std::max(alignment, a);
  for (const SectionModel::Obstacle& obstacle : model.obstacles) {
    const auto top = checked_add(obstacle.offset, obstacle.range.size);
    if (!top) return false;
    tops = std::max(tops, *top);
  }
  // a start exceeds the capacity by at most one size and one alignment before the section is found to fail
  constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) / 4;
  return most < kLimit && tops < kLimit && alignment < kLimit && most + tops + alignment < kLimit;
}

template bool fits_in<std::int32_t>(const SectionModel&, std::uint64_t);
template bool fits_in<std::int64_t>(const SectionModel&, std::uint64_t);

// --- Turns groups, gaps, pins and idle ticks into boxes, ranges, obstacles and components.

namespace {

// Limit of obstacles: a pinned buffer is an obstacle in each component that it reaches into.
constexpr std::size_t kMostObstacles = 4'000'000;

// A size that is occupied in the ticks [lower, upper).
struct Piece {
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  std::uint64_t size = 0;
  std::uint32_t first = 0;  // range of sections, set by cut_time()
  std::uint32_t last = 0;
};

// A buffer or group: it has one offset.
struct Item {
  std::size_t from = 0;  // pieces [from, to)
  std::size_t to = 0;
  std::uint64_t alignment = 1;
  std::optional<std::uint64_t> offset = {};
};

struct Items {
  std::vector<Piece> pieces = {};
  std::vector<Item> items = {};
  std::vector<std::uint32_t> of_buffer = {};  // kNoBox: never alive
};

void add_pieces(const Buffer& buffer, std::vector<Piece>& pieces) {
  const std::size_t begin = pieces.size();
  if (buffer.size == 0) return;
  each_alive(buffer, [&](std::uint64_t lower, std::uint64_t upper) {
    if (pieces.size() > begin && pieces.back().upper == lower) {
      pieces.back().upper = upper;
    } else {
      pieces.push_back({lower, upper, buffer.size});
    }
  });
}

// Merges the pieces of buffers at one offset: at each tick the largest size counts.
std::vector<Piece> united(const std::vector<Piece>& pieces) {
  const std::vector<TickEvent> events = tick_events(pieces);
  std::map<std::uint64_t, std::size_t> alive;  // sizes, with the number of pieces that have each
  std::vector<Piece> result;
  std::uint64_t since = 0;
  for (std::size_t at = 0; at < events.size();) {
    const std::uint64_t tick = events[at].tick;
    if (!alive.empty() && since < tick) {
      const std::uint64_t size = alive.rbegin()->first;
      if (!result.empty() && result.back().upper == since && result.back().size == size) {
        result.back().upper = tick;
      } else {
        result.push_back({since, tick, size});
      }
    }
    for (; at < events.size() && events[at].tick == tick; ++at) {
      const std::uint64_t size = pieces[events[at].index].size;
      if (events[at].begins) {
        ++alive[size];
      } else if (--alive[size] == 0) {
        alive.erase(size);
      }
    }
    since = tick;
  }
  return result;
}

std::uint64_t common_alignment(const Problem& problem, std::size_t buffer, std::uint64_t a) {
  const std::uint64_t b = problem.buffers[buffer].alignment;
  const auto both = checked_mul(a / std::gcd(a, b), b);
  if (!both || *both > kHighestPacking)
    throw Error(ErrorCode::limit,
                "buffer '{}': alignment {} and its group's {} have no common multiple below 2^62",
                safe_display(problem.id_of(buffer)), b, a);
  return *both;
}

Items items_of(const Problem& problem, std::uint32_t arena) {
  Items all;
  all.of_buffer.assign(problem.buffers.size(), NormalForm::kNoBox);
  std::map<std::uint32_t, std::vector<std::size_t>> groups;
  const auto close = [&](std::size_t from, std::uint64_t alignment, std::optional<std::uint64_t> offset) {
    all.items.push_back({from, all.pieces.size(), alignment, offset});
    return static_cast<std::uint32_t>(all.items.size() - 1);
  };
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.arena != arena) continue;
    if (buffer.group != kNoGroup) {
      groups[buffer.group].push_back(i);
      continue;
    }
    const std::size_t from = all.pieces.size();
    add_pieces(buffer, all.pieces);
    if (all.pieces.size() > from) all.of_buffer[i] = close(from, buffer.alignment, buffer.offset);
  }
  for (const auto& [group, members] : groups) {
    std::vector<Piece> pieces;
    std::uint64_t alignment = 1;
    for (const std::size_t i : members) {
      add_pieces(problem.buffers[i], pieces);
      alignment = common_alignment(problem, i, alignment);
    }
    const std::size_t from = all.pieces.size();
    for (const Piece& piece : united(pieces)) all.pieces.push_back(piece);
    // a group never alive needs no box; a member never alive still has its group's offset
    if (all.pieces.size() == from) continue;
    const std::uint32_t item = close(from, alignment, problem.buffers[members.front()].offset);
    for (const std::size_t i : members) all.of_buffer[i] = item;
  }
  return all;
}

// Assigns sections to every piece and returns the ticks of each section.
std::vector<Lifespan> cut_time(std::vector<Piece>& pieces) {
  std::vector<Lifespan> ticks;
  bool ended = true;
  for (const TickEvent& event : tick_events(pieces)) {
    if (!event.begins) {
      if (!ended) ticks.back().upper = event.tick;
      ended = true;
      pieces[event.index].last = static_cast<std::uint32_t>(ticks.size());
      continue;
    }
    if (ended) ticks.push_back({});
    ended = false;
    ticks.back().lower = event.tick;  // start of the latest buffer: from here on all are alive
    pieces[event.index].first = static_cast<std::uint32_t>(ticks.size() - 1);
  }
  return ticks;
}

// The component of each section; sections without boxes have none.
std::vector<std::uint32_t> components_of(const Items& all, std::size_t sections) {
  std::vector<std::uint32_t> ends(sections, 0);  // by section: the last end of the boxes that begin there
  for (const Item& item : all.items) {
    std::uint32_t& end = ends[all.pieces[item.from].first];
    if (!item.offset) end = std::max(end, all.pieces[item.to - 1].last);
  }
  std::vector<std::uint32_t> result(sections, NormalForm::kNoBox);
  std::uint32_t count = 0, end = 0;
  for (std::uint32_t section = 0; section < sections; ++section) {
    if (section >= end && ends[section] > 0) ++count;  // no box covers both this section and the one before
    end = std::max(end, ends[section]);
    if (section < end) result[section] = count - 1;
  }
  return result;
}

void set_unit(PackingComponent& component) {
  std::uint64_t unit = 0;
  SectionModel& model = component.model;
  for (const SectionRange& range : model.ranges) unit = std::gcd(unit, range.size);
  for (const auto& obstacle : model.obstacles)
    unit = std::gcd(std::gcd(unit, obstacle.range.size), obstacle.offset);
  const auto kept = [&](std::uint64_t alignment) { return unit % alignment == 0; };
  if (std::ranges::all_of(model.alignments, kept)) model.alignments.clear();
  for (const std::uint64_t alignment : model.alignments) unit = std::gcd(unit, alignment);
  component.unit = unit;
  for (SectionRange& range : model.ranges) range.size /= unit;
  for (auto& obstacle : model.obstacles) obstacle.range.size /= unit, obstacle.offset /= unit;
  for (std::uint64_t& alignment : model.alignments) alignment /= unit;
}

void add_obstacles(const Items& all, const std::vector<std::uint32_t>& component_of,
                   const std::vector<std::uint32_t>& begins, NormalForm& form) {
  // by section: the next section of another component or of none
  std::vector<std::uint32_t> ends(component_of.size(), static_cast<std::uint32_t>(component_of.size()));
  for (std::size_t i = component_of.size(); i-- > 1;)
    ends[i - 1] = component_of[i - 1] == component_of[i] ? ends[i] : static_cast<std::uint32_t>(i);
  std::size_t count = 0;
  for (const Item& item : all.items) {
    if (!item.offset) continue;
    for (std::size_t i = item.from; i < item.to; ++i) {
      const Piece& piece = all.pieces[i];
      for (std::uint32_t section = piece.first; section < piece.last;) {
        const std::uint32_t component = component_of[section];
        const std::uint32_t end = std::min(ends[section], piece.last);
        if (++count > kMostObstacles)
          throw Error(ErrorCode::limit, "pinned buffers stand in the way of others at more than {} places",
                      kMostObstacles);
        if (component != NormalForm::kNoBox)
          form.components[component].model.obstacles.push_back(
              {{section - begins[component], end - begins[component], piece.size}, *item.offset});
        section = end;
      }
    }
  }
}

[[noreturn]] void refuse_pins(const Problem& problem, const Items& all, std::size_t a, std::size_t b) {
  const auto buffer_of = [&](std::size_t item) {
    const auto at = std::ranges::find(all.of_buffer, static_cast<std::uint32_t>(item));
    return problem.id_of(static_cast<std::size_t>(at - all.of_buffer.begin()));
  };
  throw Error(ErrorCode::malformed, "buffers '{}' and '{}' are pinned to {} and {} and overlap",
              safe_display(buffer_of(a)), safe_display(buffer_of(b)), *all.items[a].offset,
              *all.items[b].offset);
}

// Living pins never overlap, so a new one needs a check against its two neighbors only.
void check_pins(const Problem& problem, const Items& all) {
  struct Pin {
    std::uint64_t lower, upper, size;
    std::size_t item;
  };
  std::vector<Pin> pins;
  for (std::size_t i = 0; i < all.items.size(); ++i)
    for (std::size_t at = all.items[i].from; all.items[i].offset && at < all.items[i].to; ++at)
      pins.push_back({all.pieces[at].lower, all.pieces[at].upper, all.pieces[at].size, i});
  std::map<std::uint64_t, Pin> alive;  // by offset
  for (const TickEvent& event : tick_events(pins)) {
    const Pin& pin = pins[event.index];
    const std::uint64_t offset = *all.items[pin.item].offset;
    if (!event.begins) {
      alive.erase(offset);
      continue;
    }
    const auto above = alive.lower_bound(offset);
    if (above != alive.end() && above->first < offset + pin.size)
      refuse_pins(problem, all, pin.item, above->second.item);
    if (above != alive.begin()) {
      const auto& [below, other] = *std::prev(above);
      if (below + other.size > offset) refuse_pins(problem, all, other.item, pin.item);
    }
    alive.emplace(offset, pin);
  }
}

void check_sums(const PackingComponent& component) {
  const auto sums = section_sums(component.model);
  const std::uint64_t limit = kHighestPacking / component.unit;
  if (sums && std::ranges::all_of(*sums, [&](std::uint64_t sum) { return sum <= limit; })) return;
  throw Error(ErrorCode::limit, "buffers that are alive together take more than 2^62 bytes");
}

}  // namespace

NormalForm normal_form(const Problem& problem, std::uint32_t arena) {
  Items all = items_of(problem, arena);
  check_pins(problem, all);
  const std::vector<Lifespan> ticks = cut_time(all.pieces);
  const std::vector<std::uint32_t> component_of = components_of(all, ticks.size());
  NormalForm form;
  std::vector<std::uint32_t> begins;  // by component: its first section
  for (std::uint32_t section = 0; section < ticks.size(); ++section) {
    const std::uint32_t at = component_of[section];
    if (at == NormalForm::kNoBox) continue;
    if (at == form.components.size()) {
      form.components.emplace_back();
      begins.push_back(section);
    }
    form.components[at].ticks.push_back(ticks[section]);
    ++form.components[at].model.sections;
  }
  std::vector<NormalForm::Place> place_of(all.items.size());
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    const Item& item = all.items[i];
    if (item.offset) continue;
    const std::uint32_t at = component_of[all.pieces[item.from].first];
    SectionModel& model = form.components[at].model;
    place_of[i] = {at, model.box_count()};
    for (std::size_t piece = item.from; piece < item.to; ++piece)
      model.ranges.push_back({all.pieces[piece].first - begins[at], all.pieces[piece].last - begins[at],
                              all.pieces[piece].size});
    model.ranges_from.push_back(static_cast<std::uint32_t>(model.ranges.size()));
    model.alignments.push_back(item.alignment);
  }
  add_obstacles(all, component_of, begins, form);
  for (PackingComponent& component : form.components) {
    set_unit(component);
    check_sums(component);
  }
  form.places.resize(problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i)
    if (all.of_buffer[i] != NormalForm::kNoBox) form.places[i] = place_of[all.of_buffer[i]];
  return form;
}

// --- Sums sizes over sections.

namespace {

// Section sums with every size rounded up to the alignment. Adds up differences: O(ranges + sections).
std::vector<std::uint64_t> padded_sums(const SectionModel& model, std::uint64_t alignment) {
  std::vector<std::uint64_t> change(model.sections + 1, 0), sums(model.sections, 0);
  for (const SectionRange& range : model.ranges) {
    change[range.first] += align_up(range.size, alignment);
    change[range.last] -= align_up(range.size, alignment);  // may wrap around; the sums wrap back
  }
  std::partial_sum(change.begin(), change.end() - 1, sums.begin());
  return sums;
}

}  // namespace

LowerBound lower_bound(const SectionModel& model) {
  std::uint64_t alignment = 0;
  for (const std::uint64_t a : model.alignments) alignment = std::gcd(alignment, a);
  if (alignment == 0 || !model.obstacles.empty()) alignment = 1;
  std::uint64_t padding = 0;
  for (const SectionRange& range : model.ranges)
    padding = std::max(padding, align_up(range.size, alignment) - range.size);
  LowerBound bound;
  const auto raise = [&](std::uint64_t units, std::uint32_t section) {
    if (units > bound.units) bound = {units, section};
  };
  const std::vector<std::uint64_t> padded = padded_sums(model, alignment);
  const auto sums = section_sums(model);
  for (std::uint32_t section = 0; section < model.sections; ++section) {
    raise((*sums)[section], section);
    if (padded[section] > padding) raise(padded[section] - padding, section);
  }
  for (const auto& obstacle : model.obstacles)
    raise(obstacle.offset + obstacle.range.size, obstacle.range.first);
  return bound;
}

}  // namespace loadline::packing
