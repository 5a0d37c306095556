// Small boxes are added to a difference grid by their corners, so each costs the same whatever its size.
#include "core/view/arena_chart.h"

#include "core/packing/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace loadline::view {
namespace {

// The coverage of each cell by the interval [a, b), as differences between neighboring cells: four entries.
struct Edges {
  std::array<std::size_t, 4> at;
  std::array<double, 4> by;
};
Edges edges(double a, double b) {
  const double left = std::floor(a), right = std::floor(b);
  const auto i = static_cast<std::size_t>(left), j = static_cast<std::size_t>(right);
  return {{i, i + 1, j, j + 1}, {1 - (a - left), a - left, -(1 - (b - right)), -(b - right)}};
}

// Coverage of each cell by all kinds, and the kind that covers most of it.
class CellGrid {
 public:
  CellGrid(double width, double height, double side)
      : side_(side),
        columns_(static_cast<std::size_t>(std::ceil(width / side))),
        rows_(static_cast<std::size_t>(std::ceil(height / side))) {}

  // Adds all rectangles of one kind, which lie inside the picture. Call it once for every kind.
  void add(std::uint8_t kind, const std::vector<Rect>& rects) {
    if (total_.empty()) {
      total_.assign(columns_ * rows_, 0);
      best_ = total_;
      kinds_.assign(columns_ * rows_, 0);
    }
    const std::size_t stride = columns_ + 2;
    plane_.assign(stride * (rows_ + 2), 0);
    for (const Rect& rect : rects) {
      const Edges x = edges(rect.x / side_, (rect.x + rect.w) / side_);
      const Edges y = edges(rect.y / side_, (rect.y + rect.h) / side_);
      for (std::size_t j = 0; j < 4; ++j)
        for (std::size_t i = 0; i < 4; ++i) plane_[y.at[j] * stride + x.at[i]] += x.by[i] * y.by[j];
    }
    sum_up(kind, stride);
  }

  void write(std::vector<ArenaCells>& cells) const {
    if (total_.empty()) return;
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t from = 0; from < columns_;) {
        const std::uint8_t level = eighths(row * columns_ + from);
        const std::uint8_t kind = kinds_[row * columns_ + from];
        std::size_t end = from + 1;
        while (end < columns_ && eighths(row * columns_ + end) == level &&
               (level == 0 || kinds_[row * columns_ + end] == kind))
          ++end;
        if (level > 0)
          cells.push_back({{static_cast<double>(from) * side_, static_cast<double>(row) * side_,
                            static_cast<double>(end - from) * side_, side_},
                           level,
                           kind});
        from = end;
      }
  }

 private:
  void sum_up(std::uint8_t kind, std::size_t stride) {
    for (std::size_t row = 0; row < rows_; ++row) {
      double along = 0;
      for (std::size_t column = 0; column < columns_; ++column) {
        along += plane_[row * stride + column];
        double& here = plane_[row * stride + column];
        here = along + (row > 0 ? plane_[(row - 1) * stride + column] : 0);
        const std::size_t cell = row * columns_ + column;
        const auto covered = static_cast<float>(here);
        total_[cell] += covered;
        if (covered > best_[cell]) best_[cell] = covered, kinds_[cell] = kind;
      }
    }
  }
  // Rounding errors of the sums leave values slightly off 0 and 1.
  std::uint8_t eighths(std::size_t cell) const {
    constexpr float kNothing = 1e-5f;
    const float covered = total_[cell];
    if (covered < kNothing) return 0;
    return static_cast<std::uint8_t>(std::clamp(std::ceil(covered * 8 - 0.01f), 1.0f, 8.0f));
  }

  double side_;
  std::size_t columns_, rows_;
  std::vector<double> plane_;
  std::vector<float> total_, best_;
  std::vector<std::uint8_t> kinds_;
};

std::uint64_t greatest(const std::multiset<std::uint64_t>& values) {
  return values.empty() ? 0 : *values.rbegin();
}

// Adds a value or removes it. Returns by how much the greatest value grows.
double change(std::multiset<std::uint64_t>& values, std::uint64_t value, bool adds) {
  const std::uint64_t before = greatest(values);
  if (adds)
    values.insert(value);
  else
    values.erase(values.find(value));
  return static_cast<double>(static_cast<std::int64_t>(greatest(values) - before));
}

}  // namespace

void append_boxes(const packing::Buffer& buffer, std::uint32_t number, std::uint64_t offset,
                  std::vector<ArenaBox>& boxes) {
  if (buffer.size == 0) return;
  packing::each_alive(buffer, [&](std::uint64_t lower, std::uint64_t upper) {
    boxes.push_back({number, lower, upper, offset, offset + buffer.size});
  });
}

ArenaPicture draw_arena(std::span<const ArenaBox> boxes, std::span<const std::uint8_t> kinds,
                        const ArenaSight& sight, double width, double height, double least) {
  ArenaPicture picture;
  if (!(sight.x1 > sight.x0 && sight.y1 > sight.y0 && width >= 1 && height >= 1)) return picture;
  const double per_tick = width / (sight.x1 - sight.x0), per_byte = height / (sight.y1 - sight.y0);
  std::array<std::vector<Rect>, kMostArenaKinds> small;
  for (const ArenaBox& box : boxes) {
    const double left = std::max(0.0, (static_cast<double>(box.lower) - sight.x0) * per_tick);
    const double right = std::min(width, (static_cast<double>(box.upper) - sight.x0) * per_tick);
    const double top = std::max(0.0, (sight.y1 - static_cast<double>(box.to)) * per_byte);
    const double bottom = std::min(height, (sight.y1 - static_cast<double>(box.from)) * per_byte);
    if (!(left < right && top < bottom)) continue;
    const Rect rect = {left, top, right - left, bottom - top};
    // size before clipping to the visible part
    const bool wide = static_cast<double>(box.upper - box.lower) * per_tick >= least;
    const bool tall = static_cast<double>(box.to - box.from) * per_byte >= least;
    if (wide && tall)
      picture.rects.push_back({rect, box.buffer});
    else
      small[kinds[box.buffer] % kMostArenaKinds].push_back(rect);
  }
  CellGrid grid(width, height, least);
  for (std::uint8_t kind = 0; kind < kMostArenaKinds; ++kind)
    if (!small[kind].empty()) grid.add(kind, small[kind]);
  grid.write(picture.cells);
  return picture;
}

ArenaChart::ArenaChart(const packing::Problem& problem, std::span<const std::uint64_t> offsets,
                       std::uint32_t arena) {
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].arena == arena) append_boxes(problem.buffers[i], i, offsets[i], boxes_);
  }
  for (const ArenaBox& box : boxes_) {
    ticks_.push_back(box.lower);
    ticks_.push_back(box.upper);
    if (box.to > height_) height_ = box.to, highest_ = box.buffer;
  }
  std::ranges::sort(ticks_);
  ticks_.erase(std::unique(ticks_.begin(), ticks_.end()), ticks_.end());
  sweep(problem);
  build_index();
}

void ArenaChart::sweep(const packing::Problem& problem) {
  const std::vector<packing::TickEvent> events = packing::tick_events(boxes_);
  std::multiset<std::uint64_t> ends;
  // sizes of each group's members alive now; the largest one counts
  std::map<std::uint32_t, std::multiset<std::uint64_t>> groups;
  double taken = 0;
  for (std::size_t at = 0; at < events.size();) {
    const std::uint64_t tick = events[at].tick;
    for (; at < events.size() && events[at].tick == tick; ++at) {
      const ArenaBox& box = boxes_[events[at].index];
      const std::uint32_t group = problem.buffers[box.buffer].group;
      const std::uint64_t size = box.to - box.from;
      const bool begins = events[at].begins;
      change(ends, box.to, begins);
      if (group != packing::kNoGroup)
        taken += change(groups[group], size, begins);
      else
        taken += begins ? static_cast<double>(size) : -static_cast<double>(size);
    }
    const auto top = static_cast<double>(greatest(ends));
    taken_.push_back({static_cast<double>(tick), taken});
    tops_.push_back({static_cast<double>(tick), top});
    most_free_ = std::max(most_free_, top - taken);
  }
}

void ArenaChart::build_index() {
  const auto place = [](const ArenaBox& box) { return std::tuple(box.from, box.to, box.buffer); };
  std::ranges::sort(boxes_, {}, place);
  if (ticks_.size() < 2) return;
  const std::size_t slots = ticks_.size() - 1;
  const auto each_node = [&](const ArenaBox& box, const auto& visit) {
    const auto slot = [&](std::uint64_t tick) {
      return static_cast<std::size_t>(std::lower_bound(ticks_.begin(), ticks_.end(), tick) - ticks_.begin()) +
             slots;
    };
    for (std::size_t from = slot(box.lower), to = slot(box.upper); from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) visit(from++);
      if (to % 2 == 1) visit(--to);
    }
  };
  node_from_.assign(2 * slots + 1, 0);
  for (const ArenaBox& box : boxes_) each_node(box, [&](std::size_t node) { ++node_from_[node + 1]; });
  for (std::size_t i = 1; i < node_from_.size(); ++i) node_from_[i] += node_from_[i - 1];
  node_boxes_.resize(node_from_.back());
  std::vector<std::uint32_t> next(node_from_.begin(), node_from_.end() - 1);
  for (std::uint32_t i = 0; i < boxes_.size(); ++i)
    each_node(boxes_[i], [&](std::size_t node) { node_boxes_[next[node]++] = i; });
}

std::optional<std::uint32_t> ArenaChart::buffer_at(std::uint64_t tick, std::uint64_t byte) const {
  if (ticks_.size() < 2 || tick < ticks_.front() || tick >= ticks_.back()) return std::nullopt;
  const std::size_t slots = ticks_.size() - 1;
  const auto slot =
      static_cast<std::size_t>(std::upper_bound(ticks_.begin(), ticks_.end(), tick) - ticks_.begin()) - 1;
  std::optional<std::uint32_t> found;  // overlapping members of a group may be in several nodes
  for (std::size_t node = slot + slots; node > 0; node /= 2) {
    const auto begin = node_boxes_.begin() + node_from_[node];
    const auto end = node_boxes_.begin() + node_from_[node + 1];
    const auto above = std::upper_bound(
        begin, end, byte, [&](std::uint64_t at, std::uint32_t box) { return at < boxes_[box].from; });
    if (above == begin) continue;
    const std::uint32_t box = *(above - 1);
    if (byte < boxes_[box].to && (!found || boxes_[box].to > boxes_[*found].to)) found = box;
  }
  if (!found) return std::nullopt;
  return boxes_[*found].buffer;
}

}  // namespace loadline::view
