// Turns groups, gaps, pins and idle ticks into boxes, ranges, obstacles and components.
#include "core/packing/normal_form.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace loadline {
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
  const auto add = [&](std::uint64_t lower, std::uint64_t upper) {
    if (lower >= upper || buffer.size == 0) return;
    if (pieces.size() > begin && pieces.back().upper == lower) {
      pieces.back().upper = upper;
    } else {
      pieces.push_back({lower, upper, buffer.size});
    }
  };
  std::uint64_t from = buffer.lower;
  for (const Lifespan& gap : buffer.gaps) {
    add(from, gap.lower);
    from = std::max(from, gap.upper);
  }
  add(from, buffer.upper);
}

// Merges the pieces of buffers at one offset: at each tick the largest size counts.
std::vector<Piece> united(const std::vector<Piece>& pieces) {
  std::vector<std::pair<std::uint64_t, std::size_t>> events;  // at equal ticks their order does not matter
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    events.emplace_back(pieces[i].lower, i);
    events.emplace_back(pieces[i].upper, i);
  }
  std::ranges::sort(events);
  std::map<std::uint64_t, std::size_t> alive;  // sizes, with the number of pieces that have each
  std::vector<char> open(pieces.size(), 0);
  std::vector<Piece> result;
  std::uint64_t since = 0;
  for (std::size_t at = 0; at < events.size();) {
    const std::uint64_t tick = events[at].first;
    if (!alive.empty() && since < tick) {
      const std::uint64_t size = alive.rbegin()->first;
      if (!result.empty() && result.back().upper == since && result.back().size == size) {
        result.back().upper = tick;
      } else {
        result.push_back({since, tick, size});
      }
    }
    for (; at < events.size() && events[at].first == tick; ++at) {
      const std::size_t piece = events[at].second;
      const std::uint64_t size = pieces[piece].size;
      if (!open[piece]) {
        ++alive[size];
        open[piece] = 1;
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
  if (!both || *both > std::uint64_t{1} << 62)
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
  struct Event {
    std::uint64_t tick;
    bool begins;
    std::uint32_t piece;
  };
  std::vector<Event> events;
  events.reserve(pieces.size() * 2);
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    events.push_back({pieces[i].lower, true, i});
    events.push_back({pieces[i].upper, false, i});
  }
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.begins < b.begins;
  });
  std::vector<Lifespan> ticks;
  bool ended = true;
  for (const Event& event : events) {
    if (!event.begins) {
      if (!ended) ticks.back().upper = event.tick;
      ended = true;
      pieces[event.piece].last = static_cast<std::uint32_t>(ticks.size());
      continue;
    }
    if (ended) ticks.push_back({});
    ended = false;
    ticks.back().lower = event.tick;  // start of the latest buffer: from here on all are alive
    pieces[event.piece].first = static_cast<std::uint32_t>(ticks.size() - 1);
  }
  return ticks;
}

// The component of each section; sections without boxes have none.
std::vector<std::uint32_t> components_of(const Items& all, std::size_t sections, std::uint32_t& count) {
  std::vector<std::int64_t> over(sections + 1, 0), crossing(sections + 1, 0);
  for (const Item& item : all.items) {
    if (item.offset) continue;
    const std::uint32_t first = all.pieces[item.from].first, last = all.pieces[item.to - 1].last;
    ++over[first], --over[last];
    ++crossing[first], --crossing[last - 1];  // counts boxes that cover both a section and the next one
  }
  std::vector<std::uint32_t> result(sections, NormalForm::kNoBox);
  std::int64_t alive = 0, passing = 0;
  count = 0;
  for (std::size_t section = 0; section < sections; ++section) {
    alive += over[section];
    if (alive > 0) {
      if (passing == 0) ++count;
      result[section] = count - 1;
    }
    passing += crossing[section];
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

// Living pins never overlap, so a new one needs a check against its two neighbours only.
void check_pins(const Problem& problem, const Items& all) {
  struct Event {
    std::uint64_t tick;
    bool begins;
    std::size_t item, piece;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    if (!all.items[i].offset) continue;
    for (std::size_t piece = all.items[i].from; piece < all.items[i].to; ++piece) {
      events.push_back({all.pieces[piece].lower, true, i, piece});
      events.push_back({all.pieces[piece].upper, false, i, piece});
    }
  }
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    return a.tick != b.tick ? a.tick < b.tick : a.begins < b.begins;
  });
  std::map<std::uint64_t, Event> alive;  // by offset
  for (const Event& event : events) {
    const std::uint64_t offset = *all.items[event.item].offset;
    if (!event.begins) {
      alive.erase(offset);
      continue;
    }
    const auto above = alive.lower_bound(offset);
    if (above != alive.end() && above->first < offset + all.pieces[event.piece].size)
      refuse_pins(problem, all, event.item, above->second.item);
    if (above != alive.begin()) {
      const auto below = std::prev(above);
      if (below->first + all.pieces[below->second.piece].size > offset)
        refuse_pins(problem, all, below->second.item, event.item);
    }
    alive.emplace(offset, event);
  }
}

void check_sums(const PackingComponent& component) {
  const auto sums = section_sums(component.model);
  const std::uint64_t limit = (std::uint64_t{1} << 62) / component.unit;
  if (sums && std::ranges::all_of(*sums, [&](std::uint64_t sum) { return sum <= limit; })) return;
  throw Error(ErrorCode::limit, "buffers that are alive together take more than 2^62 bytes");
}

}  // namespace

NormalForm normal_form(const Problem& problem, std::uint32_t arena) {
  Items all = items_of(problem, arena);
  check_pins(problem, all);
  const std::vector<Lifespan> ticks = cut_time(all.pieces);
  std::uint32_t count = 0;
  const std::vector<std::uint32_t> component_of = components_of(all, ticks.size(), count);
  NormalForm form;
  form.components.resize(count);
  std::vector<std::uint32_t> begins(count, 0);
  for (std::uint32_t section = 0; section < ticks.size(); ++section) {
    const std::uint32_t at = component_of[section];
    if (at == NormalForm::kNoBox) continue;
    PackingComponent& component = form.components[at];
    if (component.ticks.empty()) begins[at] = section;
    component.ticks.push_back(ticks[section]);
    component.model.sections = static_cast<std::uint32_t>(component.ticks.size());
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

}  // namespace loadline
