// Merges bars that share a line; squarifies, and lays repeated layers out in even columns.
#include "core/view/layouts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace loadline::view {

// --- The visible range decides which rows exist, so zooming in makes rows taller.

namespace {

// The edges of a span inside the rectangle, at least one unit apart.
Span drawn(const Span& span, double x0, double scale, double width) {
  const double left = std::clamp((span.from - x0) * scale, 0.0, std::max(width - 1, 0.0));
  const double right = std::clamp((span.to - x0) * scale, left + 1, std::max(width, left + 1));
  return {left, right};
}

}  // namespace

LaneLayout layout_lane(std::span<const Span> spans, double x0, double x1, double width, double height,
                       const LaneOptions& options) {
  LaneLayout layout;
  if (!(x1 > x0) || !(width >= 1) || !(height >= 1)) return layout;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].from < x1 && spans[i].to > x0 && spans[i].to > spans[i].from) layout.rows.push_back(i);
  const auto count = static_cast<double>(layout.rows.size());
  if (layout.rows.empty()) return layout;
  const double scale = width / (x1 - x0);
  layout.row_height = std::min(options.tallest, height / count);
  if (layout.row_height >= 1) {
    const double gap = layout.row_height >= 4 * options.gap ? options.gap : 0;
    for (std::size_t row = 0; row < layout.rows.size(); ++row) {
      const Span edges = drawn(spans[layout.rows[row]], x0, scale, width);
      layout.bars.push_back({row,
                             1,
                             {edges.from, static_cast<double>(row) * layout.row_height, edges.to - edges.from,
                              layout.row_height - gap}});
    }
    return layout;
  }
  const auto lines = static_cast<std::size_t>(height);
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t first = line * layout.rows.size() / lines;
    const std::size_t end = (line + 1) * layout.rows.size() / lines;
    std::size_t begin = first;  // first row of the merged bar
    const auto bar = [&](const Span& edges, std::size_t behind) {
      layout.bars.push_back(
          {begin, behind - begin, {edges.from, static_cast<double>(line), edges.to - edges.from, 1}});
      begin = behind;
    };
    Span joined = drawn(spans[layout.rows[first]], x0, scale, width);
    for (std::size_t row = first + 1; row < end; ++row) {
      const Span edges = drawn(spans[layout.rows[row]], x0, scale, width);
      if (edges.from > joined.to + 1 || edges.to < joined.from - 1) {
        bar(joined, row);
        joined = edges;
      } else {
        joined = {std::min(joined.from, edges.from), std::max(joined.to, edges.to)};
      }
    }
    bar(joined, end);
  }
  return layout;
}

std::size_t lane_row_at(const LaneLayout& layout, double y) {
  if (layout.rows.empty() || y < 0) return layout.rows.size();
  const double rows = std::floor(y / layout.row_height);
  return rows < static_cast<double>(layout.rows.size()) ? static_cast<std::size_t>(rows) : layout.rows.size();
}

// --- Squarified treemap: rows along the shorter side, each grown while its worst aspect ratio improves.

namespace {

// The worst aspect ratio in a row of tiles with total area `sum`, laid along `side`.
double worst_ratio(double largest, double smallest, double sum, double side) {
  const double side2 = side * side;
  const double sum2 = sum * sum;
  return std::max(side2 * largest / sum2, sum2 / (side2 * smallest));
}

// Lays areas [first, last) as one row along the shorter side of `free` and returns what is left.
Rect place_row(std::span<const double> areas, std::size_t first, std::size_t last, double sum,
               const Rect& free, std::span<Rect> out) {
  const bool tall = free.w >= free.h;  // the row is a column at the left
  const double side = tall ? free.h : free.w;
  const double thickness = side > 0 ? sum / side : 0;
  double at = tall ? free.y : free.x;
  for (std::size_t i = first; i < last; ++i) {
    if (areas[i] <= 0) continue;
    const double length = thickness > 0 ? areas[i] / thickness : 0;
    out[i] = tall ? Rect{free.x, at, thickness, length} : Rect{at, free.y, length, thickness};
    at += length;
  }
  if (tall) return {free.x + thickness, free.y, std::max(0.0, free.w - thickness), free.h};
  return {free.x, free.y + thickness, free.w, std::max(0.0, free.h - thickness)};
}

// One thing to place inside a module: a child, the module's own tensor, or the merged rest.
struct Item {
  TileKind kind = TileKind::module;
  graph::NodeId node{};
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;
};

class Layouter {
 public:
  Layouter(const graph::ModuleTree& tree, const TreemapOrder& order, const TreemapOptions& options)
      : tree_(tree), order_(order), options_(options) {}

  // `judged` is the size by which is decided what is drawn and how: for siblings that are alike it is the
  // same.
  struct Size {
    double w = 0, h = 0;
  };
  void fill(graph::NodeId module, const Rect& bounds, const Size& judged, std::uint16_t depth);
  std::vector<Tile> take() { return std::move(tiles_); }

 private:
  std::vector<Item> items_of(graph::NodeId module, double area, std::uint16_t depth) const;
  bool in_natural_order(graph::NodeId module, std::vector<Item>& items) const;
  static std::vector<Size> judged_sizes(const std::vector<Item>& items, const std::vector<Rect>& rects,
                                        bool ordered);
  double room_for_number(const std::vector<Item>& items, const Size& judged) const;
  graph::NodeId skip_chain(graph::NodeId node) const;
  void place_module(const Item& item, const Rect& rect, const Size& judged, std::uint16_t depth);

  const graph::ModuleTree& tree_;
  const TreemapOrder& order_;
  const TreemapOptions& options_;
  std::vector<Tile> tiles_;
};

// A module with one child and no bytes of its own is replaced by that child.
graph::NodeId Layouter::skip_chain(graph::NodeId node) const {
  while (order_.own_bytes(node) == 0 && tree_.node(node).children.size() == 1)
    node = tree_.node(node).children.front();
  return node;
}

// Sorted by decreasing bytes; items smaller than the limit at this scale are merged into one aggregate.
std::vector<Item> Layouter::items_of(graph::NodeId module, double area, std::uint16_t depth) const {
  const graph::ModuleNode& parent = tree_.node(module);
  const double per_byte = area / static_cast<double>(parent.bytes);
  const std::span<const graph::NodeId> children = order_.children(module);
  // dots by the hundred tell less than a whole, and layers that are almost alike would be dots and a whole
  constexpr std::size_t kMany = 32, kInside = 3;  // frames around what is inside a layer
  constexpr double kSmallPlace = 30, kDot = 2.5;
  const double side = options_.min_side;
  const bool dots =
      depth >= kInside && children.size() >= kMany && area < kSmallPlace * kSmallPlace * side * side;
  const double least = side * side * (dots ? kDot * kDot : 1);
  const auto visible_end = std::partition_point(children.begin(), children.end(), [&](graph::NodeId child) {
    return static_cast<double>(tree_.node(child).bytes) * per_byte >= least;
  });

  std::vector<Item> items;
  std::uint64_t rest_bytes = parent.bytes;
  std::uint64_t rest_tensors = parent.tensors;
  const auto add = [&](const Item& item) {
    items.push_back(item);
    rest_bytes -= item.bytes;
    rest_tensors -= item.tensors;
  };
  if (order_.own_bytes(module) > 0) add({TileKind::tensor, module, order_.own_bytes(module), 1});
  // an aggregate of a single child would only hide its name
  const bool one_left = children.end() - visible_end == 1;
  for (auto child = children.begin(); child != (one_left ? children.end() : visible_end); ++child) {
    const graph::ModuleNode& node = tree_.node(*child);
    if (node.bytes > 0) add({TileKind::module, *child, node.bytes, node.tensors});
  }
  if (rest_bytes > 0) items.push_back({TileKind::aggregate, module, rest_bytes, rest_tensors});
  std::ranges::stable_sort(items, [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
  return items;
}

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

constexpr double kAlike = 1.02;  // how many times as large as the smallest the largest of equals may be

// Whether the items have similar sizes or are numbered, as layers are; if so, sorts them in the tree's order:
// layer 2 before layer 10.
bool Layouter::in_natural_order(graph::NodeId module, std::vector<Item>& items) const {
  constexpr std::size_t kFewest = 4;
  const std::vector<graph::NodeId>& children = tree_.node(module).children;
  if (items.size() < kFewest || items.size() != children.size()) return false;
  const auto is_child = [](const Item& item) { return item.kind == TileKind::module; };
  if (!std::ranges::all_of(items, is_child)) return false;
  // sorted by size: comparing the first and the last is enough
  const bool alike =
      static_cast<double>(items.front().bytes) <= kAlike * static_cast<double>(items.back().bytes);
  if (!alike &&
      !std::ranges::all_of(children, [&](graph::NodeId child) { return is_number(tree_.node(child).name); }))
    return false;
  std::transform(children.begin(), children.end(), items.begin(), [&](graph::NodeId child) {
    const graph::ModuleNode& node = tree_.node(child);
    return Item{TileKind::module, child, node.bytes, node.tensors};
  });
  return true;
}

// The least width and the least height among those that are alike: what has no room in one of them is drawn
// in none.
std::vector<Layouter::Size> Layouter::judged_sizes(const std::vector<Item>& items,
                                                   const std::vector<Rect>& rects, bool ordered) {
  std::vector<Size> sizes(rects.size());
  std::transform(rects.begin(), rects.end(), sizes.begin(), [](const Rect& rect) {
    return Size{rect.w, rect.h};
  });
  if (!ordered) return sizes;
  std::vector<std::size_t> by_bytes(items.size());
  std::iota(by_bytes.begin(), by_bytes.end(), std::size_t{0});
  std::ranges::stable_sort(by_bytes, {}, [&](std::size_t i) { return items[i].bytes; });
  for (std::size_t first = 0; first < by_bytes.size();) {
    const double most = kAlike * static_cast<double>(items[by_bytes[first]].bytes);
    Size least = sizes[by_bytes[first]];
    std::size_t end = first;
    for (; end < by_bytes.size() && static_cast<double>(items[by_bytes[end]].bytes) <= most; ++end)
      least = {std::min(least.w, sizes[by_bytes[end]].w), std::min(least.h, sizes[by_bytes[end]].h)};
    for (; first < end; ++first) sizes[by_bytes[first]] = least;
  }
  return sizes;
}

// The bytes whose area holds the number of a layer, where that of some layers does not and little is missing;
// else 0.
double Layouter::room_for_number(const std::vector<Item>& items, const Size& judged) const {
  constexpr double kMostAdded = 0.05, kShare = 0.95;  // of the whole; of a title's width
  double total = 0;
  for (const Item& item : items) {
    if (!is_number(tree_.node(item.node).name)) return 0;
    total += static_cast<double>(item.bytes);
  }
  const double least = options_.header * options_.number_width * kShare / (judged.w * judged.h) * total;
  double added = 0;
  for (const Item& item : items) added += std::max(0.0, least - static_cast<double>(item.bytes));
  return added <= kMostAdded * total ? least : 0;
}

void Layouter::place_module(const Item& item, const Rect& rect, const Size& judged, std::uint16_t depth) {
  const graph::NodeId node = skip_chain(item.node);
  if (tree_.node(node).children.empty()) {
    tiles_.push_back({TileKind::tensor, false, depth, node, rect, item.bytes, item.tensors});
    return;
  }
  // too small for contents: the whole module becomes one tile
  if (judged.w < 2 * options_.min_side || judged.h < 2 * options_.min_side) {
    tiles_.push_back({TileKind::aggregate, false, depth, node, rect, item.bytes, item.tensors});
    return;
  }
  const bool number = is_number(tree_.node(node).name);
  const bool header = judged.w >= (number ? options_.number_width : options_.header_width) &&
                      judged.h >= (number ? 2.5 : 3.6) * options_.header;
  const double padding =
      std::min({header ? options_.padding : options_.padding / 3, judged.w / 12, judged.h / 12});
  const double top = header ? options_.header : padding;
  tiles_.push_back({TileKind::module, header, depth, node, rect, item.bytes, item.tensors});
  fill(node, {rect.x + padding, rect.y + top, rect.w - 2 * padding, rect.h - top - padding},
       {judged.w - 2 * padding, judged.h - top - padding}, static_cast<std::uint16_t>(depth + 1));
}

void Layouter::fill(graph::NodeId module, const Rect& bounds, const Size& judged, std::uint16_t depth) {
  if (tree_.node(module).bytes == 0 || bounds.w <= 0 || bounds.h <= 0 || judged.w <= 0 || judged.h <= 0)
    return;
  std::vector<Item> items = items_of(module, judged.w * judged.h, depth);
  const bool ordered = in_natural_order(module, items);
  std::vector<double> weights(items.size());
  std::transform(items.begin(), items.end(), weights.begin(),
                 [](const Item& item) { return static_cast<double>(item.bytes); });
  const double least = ordered ? room_for_number(items, judged) : 0;  // in bytes
  for (double& weight : weights) weight = std::max(weight, least);
  // laid out in the judged size and then stretched: what is alike has the same picture
  const Rect plane = {0, 0, judged.w, judged.h};
  const std::vector<Rect> rects = ordered ? even_columns(weights, plane) : squarify(weights, plane);
  const std::vector<Size> sizes = judged_sizes(items, rects, ordered);
  const double across = bounds.w / judged.w, down = bounds.h / judged.h;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const Rect rect = {bounds.x + rects[i].x * across, bounds.y + rects[i].y * down, rects[i].w * across,
                       rects[i].h * down};
    const bool raised = static_cast<double>(item.bytes) < least;
    if (item.kind == TileKind::module && !raised)
      place_module(item, rect, sizes[i], depth);
    else if (raised)
      tiles_.push_back(
          {TileKind::aggregate, false, depth, skip_chain(item.node), rect, item.bytes, item.tensors});
    else
      tiles_.push_back({item.kind, false, depth, item.node, rect, item.bytes, item.tensors});
  }
}

}  // namespace

std::vector<Rect> squarify(std::span<const double> weights, const Rect& bounds) {
  std::vector<Rect> rects(weights.size());
  double total = 0;
  for (const double weight : weights) total += std::max(weight, 0.0);
  if (total <= 0 || bounds.w <= 0 || bounds.h <= 0) return rects;
  std::vector<double> areas(weights.size());
  const double scale = bounds.area() / total;
  std::transform(weights.begin(), weights.end(), areas.begin(),
                 [&](double weight) { return std::max(weight, 0.0) * scale; });

  Rect free = bounds;
  for (std::size_t first = 0; first < areas.size();) {
    const double side = std::min(free.w, free.h);
    double sum = 0;
    double largest = 0;
    double smallest = std::numeric_limits<double>::max();
    double worst = std::numeric_limits<double>::max();
    std::size_t last = first;
    for (; last < areas.size(); ++last) {
      if (areas[last] <= 0) continue;
      const double next_largest = std::max(largest, areas[last]);
      const double next_smallest = std::min(smallest, areas[last]);
      const double next = worst_ratio(next_largest, next_smallest, sum + areas[last], side);
      if (sum > 0 && next > worst) break;
      sum += areas[last];
      largest = next_largest;
      smallest = next_smallest;
      worst = next;
    }
    free = place_row(areas, first, last, sum, free, rects);
    first = last;
  }
  return rects;
}

namespace {

// The ends of columns that are filled downwards, each with at most `capacity`.
std::vector<std::size_t> column_ends(std::span<const double> weights, double capacity) {
  std::vector<std::size_t> ends;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); sum += weights[i++]) {
    if (i == 0 || sum + weights[i] <= capacity) continue;
    ends.push_back(i);
    sum = 0;
  }
  ends.push_back(weights.size());
  return ends;
}

struct EvenColumns {
  std::vector<std::size_t> ends = {};
  double capacity = 0;  // the sum of the fullest
};

// The least that each of so many columns has to hold.
EvenColumns filled_columns(std::span<const double> weights, std::size_t count, double most, double total) {
  constexpr int kHalvings = 40;
  double low = std::max(most, total / static_cast<double>(count)), high = total;
  if (column_ends(weights, low).size() <= count) high = low;
  for (int i = 0; i < kHalvings && high > low * (1 + 1e-12); ++i) {
    const double middle = (low + high) / 2;
    (column_ends(weights, middle).size() <= count ? high : low) = middle;
  }
  EvenColumns columns = {column_ends(weights, high * (1 + 1e-9))};
  for (std::size_t column = 0, first = 0; column < columns.ends.size(); first = columns.ends[column++])
    columns.capacity =
        std::max(columns.capacity,
                 std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(first),
                                 weights.begin() + static_cast<std::ptrdiff_t>(columns.ends[column]), 0.0));
  return columns;
}

// As many columns as leave little room at their ends, with tiles nearly square where they have the usual
// weight.
EvenColumns chosen_columns(std::span<const double> weights, double usual, double total, const Rect& bounds) {
  constexpr double kAspect = 1.15;  // a little wider than high, to leave room for titles
  constexpr double kSpread = 2, kCostOfRoom = 12;
  const double most = std::ranges::max(weights);
  const double ideal = std::sqrt(total / usual * bounds.w / (bounds.h * kAspect));
  const auto least = static_cast<std::size_t>(
      std::clamp(std::floor(ideal / kSpread), 1.0, static_cast<double>(weights.size())));
  EvenColumns best;
  double best_cost = std::numeric_limits<double>::max();
  for (std::size_t count = least; count <= weights.size(); ++count) {
    if (static_cast<double>(count) > std::max(ideal * kSpread, static_cast<double>(least))) break;
    EvenColumns columns = filled_columns(weights, count, most, total);
    const auto made = static_cast<double>(columns.ends.size());
    const double room = 1 - total / (columns.capacity * made);
    const double shape = bounds.w / made / (bounds.h * usual / columns.capacity) / kAspect;
    const double cost = kCostOfRoom * room + std::abs(std::log2(shape));
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = std::move(columns);
  }
  return best;
}

}  // namespace

// All columns have the same scale, so that equals have the same shape wherever they stand; what is much
// smaller than most shares a row with its neighbors. A column that is as good as full is.
std::vector<Rect> even_columns(std::span<const double> weights, const Rect& bounds) {
  constexpr double kSmall = 0.2;
  std::vector<Rect> rects(weights.size());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (total <= 0 || bounds.w <= 0 || bounds.h <= 0) return rects;
  std::vector<double> sorted(weights.begin(), weights.end());
  std::ranges::sort(sorted);
  const double usual = sorted[sorted.size() / 2];
  const EvenColumns columns = chosen_columns(weights, usual, total, bounds);
  const double width = bounds.w / static_cast<double>(columns.ends.size());
  double x = bounds.x;
  for (std::size_t column = 0, first = 0; column < columns.ends.size(); first = columns.ends[column++]) {
    const auto sum_of = [&](std::size_t begin, std::size_t end) {
      return std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(begin),
                             weights.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
    };
    const std::size_t end = columns.ends[column];
    const double sum = sum_of(first, end);
    const double scale = bounds.h / (sum * kAlike >= columns.capacity ? sum : columns.capacity);
    double y = bounds.y;
    for (std::size_t i = first; i < end;) {
      std::size_t row_end = i + 1;
      while (weights[i] < kSmall * usual && row_end < end && weights[row_end] < kSmall * usual) ++row_end;
      const double row = sum_of(i, row_end);
      for (double left = x; i < row_end; ++i) {
        rects[i] = {left, y, width * weights[i] / row, row * scale};
        left += rects[i].w;
      }
      y += row * scale;
    }
    x += width;
  }
  return rects;
}

TreemapOrder::TreemapOrder(const graph::ModuleTree& tree) {
  first_.reserve(tree.nodes.size() + 1);
  sorted_.reserve(tree.nodes.size());
  own_bytes_.reserve(tree.nodes.size());
  for (const graph::ModuleNode& node : tree.nodes) {
    const auto first = static_cast<std::ptrdiff_t>(sorted_.size());
    first_.push_back(sorted_.size());
    sorted_.insert(sorted_.end(), node.children.begin(), node.children.end());
    std::stable_sort(sorted_.begin() + first, sorted_.end(), [&](graph::NodeId a, graph::NodeId b) {
      return tree.node(a).bytes > tree.node(b).bytes;
    });
    own_bytes_.push_back(std::accumulate(
        node.children.begin(), node.children.end(), node.bytes,
        [&](std::uint64_t rest, graph::NodeId child) { return rest - tree.node(child).bytes; }));
  }
  first_.push_back(sorted_.size());
}

std::span<const graph::NodeId> TreemapOrder::children(graph::NodeId id) const {
  return std::span(sorted_).subspan(first_[graph::index(id)],
                                    first_[graph::index(id) + 1] - first_[graph::index(id)]);
}

std::vector<Tile> layout_treemap(const graph::ModuleTree& tree, const TreemapOrder& order, graph::NodeId root,
                                 const Rect& bounds, const TreemapOptions& options) {
  Layouter layouter(tree, order, options);
  if (tree.node(root).children.empty()) {
    const graph::ModuleNode& node = tree.node(root);
    if (node.bytes == 0) return {};
    return {{TileKind::tensor, false, 0, root, bounds, node.bytes, node.tensors}};
  }
  layouter.fill(root, bounds, {bounds.w, bounds.h}, 0);
  return layouter.take();
}

const Tile* tile_at(std::span<const Tile> tiles, double x, double y) {
  const auto found =
      std::find_if(tiles.rbegin(), tiles.rend(), [&](const Tile& tile) { return tile.rect.contains(x, y); });
  return found == tiles.rend() ? nullptr : &*found;
}

}  // namespace loadline::view
