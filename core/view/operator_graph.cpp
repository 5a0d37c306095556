// The steps: give each box a layer, order the layers, place what is in them.
#include "core/view/operator_graph.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace loadline::view {
namespace {

// A box, or the way of a box's edges through a layer that they pass.
struct Item {
  double width = 0, height = 0;
  double x = 0;  // the middle
  bool passes = false;
  std::vector<std::size_t> above = {}, below = {};  // positions of items in the next layers
};

class Placement {
 public:
  Placement(const GraphPart& part, std::span<const BoxSize> sizes, const GraphSpacing& spacing)
      : part_(part), sizes_(sizes), spacing_(spacing) {}

  GraphPlaces place() {
    choose_layers();
    make_items();
    order_layers();
    for (int i = 0; i < kPlaceRounds; ++i) place_items(i % 2 == 0);
    return result();
  }

 private:
  static constexpr int kOrderRounds = 8, kPlaceRounds = 14;

  // Each box after all that give to it.
  std::vector<std::size_t> topological_order() const {
    const std::size_t n = part_.boxes.size();
    std::vector<std::size_t> waits(n, 0), order;
    std::vector<std::vector<std::size_t>> to(n);
    for (const GraphEdge& edge : part_.edges) {
      ++waits[edge.to];
      to[edge.from].push_back(edge.to);
    }
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < n; ++i)
      if (waits[i] == 0) ready.insert(i);
    while (!ready.empty()) {
      const std::size_t i = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(i);
      for (const std::size_t after : to[i])
        if (--waits[after] == 0) ready.insert(after);
    }
    return order;
  }

  void choose_layers() {
    const std::size_t n = part_.boxes.size();
    order_ = topological_order();
    assert(order_.size() == n);  // nothing flows in a circle
    std::vector<std::vector<std::size_t>> from(n), to(n);
    for (const GraphEdge& edge : part_.edges) {
      to[edge.from].push_back(edge.to);
      from[edge.to].push_back(edge.from);
    }
    layer_.assign(n, 0);
    for (const std::size_t i : order_)
      for (const std::size_t before : from[i]) layer_[i] = std::max(layer_[i], layer_[before] + 1);
    // what nothing gives to stands just above its first user
    for (std::size_t k = n; k-- > 0;) {
      const std::size_t i = order_[k];
      if (!from[i].empty() || to[i].empty()) continue;
      std::size_t first = SIZE_MAX;
      for (const std::size_t after : to[i]) first = std::min(first, layer_[after]);
      layer_[i] = first - 1;
    }
  }

  void make_items() {
    const std::size_t n = part_.boxes.size();
    for (std::size_t i = 0; i < n; ++i) items_.push_back({.width = sizes_[i].w, .height = sizes_[i].h});
    std::size_t layers = 0;
    for (const std::size_t layer : layer_) layers = std::max(layers, layer + 1);
    layers_.resize(layers);
    for (const std::size_t i : order_) layers_[layer_[i]].push_back(i);
    way_.resize(part_.edges.size());
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> passing;  // of a box, through a layer
    for (std::size_t e = 0; e < part_.edges.size(); ++e) {
      const std::size_t first = part_.edges[e].from, last = part_.edges[e].to;
      std::size_t at = first;
      for (std::size_t layer = layer_[first] + 1; layer < layer_[last]; ++layer) {
        const auto [found, added] = passing.try_emplace({first, layer}, items_.size());
        if (added) {
          items_.push_back({.width = spacing_.line, .passes = true});
          layers_[layer].push_back(found->second);
        }
        join(at, found->second);
        at = found->second;
        way_[e].push_back(at);
      }
      join(at, last);
    }
  }

  void join(std::size_t upper, std::size_t lower) {
    if (std::ranges::find(items_[upper].below, lower) != items_[upper].below.end()) return;
    items_[upper].below.push_back(lower);
    items_[lower].above.push_back(upper);
  }

  // The number of pairs of edges between two layers that cross.
  std::size_t crossings() const {
    std::vector<std::size_t> at(items_.size(), 0);
    std::size_t crossed = 0;
    for (std::size_t layer = 0; layer + 1 < layers_.size(); ++layer) {
      const std::vector<std::size_t>& lower = layers_[layer + 1];
      for (std::size_t i = 0; i < lower.size(); ++i) at[lower[i]] = i;
      std::vector<std::size_t> seen(lower.size() + 1, 0);  // a Fenwick tree over the lower layer
      std::size_t total = 0;
      for (const std::size_t upper : layers_[layer]) {
        std::vector<std::size_t> ends;
        for (const std::size_t below : items_[upper].below) ends.push_back(at[below]);
        for (const std::size_t end : ends) {
          std::size_t not_after = 0;
          for (std::size_t k = end + 1; k > 0; k -= k & (~k + 1)) not_after += seen[k];
          crossed += total - not_after;
        }
        for (const std::size_t end : ends)
          for (std::size_t k = end + 1; k <= lower.size(); k += k & (~k + 1)) ++seen[k];
        total += ends.size();
      }
    }
    return crossed;
  }

  void order_layers() {
    std::vector<std::vector<std::size_t>> best = layers_;
    std::size_t fewest = crossings();
    for (int round = 0; round < kOrderRounds && fewest > 0; ++round) {
      sweep(round % 2 == 0);
      if (const std::size_t now = crossings(); now < fewest) {
        fewest = now;
        best = layers_;
      }
    }
    layers_ = std::move(best);
  }

  // Sorts each layer by the middle of its neighbors in the layer that was sorted before it.
  void sweep(bool down) {
    std::vector<double> at(items_.size(), 0);
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      std::vector<std::size_t>& layer = layers_[down ? k : layers_.size() - 1 - k];
      std::vector<std::pair<double, std::size_t>> keyed;
      for (std::size_t i = 0; i < layer.size(); ++i) {
        const Item& item = items_[layer[i]];
        const std::vector<std::size_t>& beside = down ? item.above : item.below;
        double sum = 0;
        for (const std::size_t other : beside) sum += at[other];
        keyed.emplace_back(beside.empty() ? share(i, layer.size()) : sum / static_cast<double>(beside.size()),
                           layer[i]);
      }
      std::ranges::stable_sort(keyed, {}, [](const auto& pair) { return pair.first; });
      for (std::size_t i = 0; i < layer.size(); ++i) {
        layer[i] = keyed[i].second;
        at[layer[i]] = share(i, layer.size());
      }
    }
  }

  // In the middle of its place: layers of different lengths are compared.
  static double share(std::size_t at, std::size_t count) {
    return static_cast<double>(at) - static_cast<double>(count - 1) / 2;
  }

  void place_items(bool down) {
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const std::vector<std::size_t>& layer = layers_[down ? k : layers_.size() - 1 - k];
      place_layer(layer, down);
    }
  }

  double distance(std::size_t left, std::size_t right) const {
    const double gap = items_[left].passes && items_[right].passes ? 0 : spacing_.across;
    return (items_[left].width + items_[right].width) / 2 + gap;
  }

  // Minimizes the squares of the distances from what each item wants, with the order and the gaps kept.
  void place_layer(const std::vector<std::size_t>& layer, bool down) {
    struct Pool {
      double sum = 0, weight = 0;
      std::size_t count = 0;
    };
    std::vector<Pool> pools;
    std::vector<double> shift(layer.size(), 0);  // of an item from the first, packed
    for (std::size_t i = 1; i < layer.size(); ++i) shift[i] = shift[i - 1] + distance(layer[i - 1], layer[i]);
    for (std::size_t i = 0; i < layer.size(); ++i) {
      const auto [wanted, weight] = wish(layer[i], down);
      pools.push_back({(wanted - shift[i]) * weight, weight, 1});
      while (pools.size() > 1) {
        const Pool& last = pools.back();
        Pool& before = pools[pools.size() - 2];
        if (before.sum * last.weight <= last.sum * before.weight) break;
        before = {before.sum + last.sum, before.weight + last.weight, before.count + last.count};
        pools.pop_back();
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools)
      for (std::size_t end = i + pool.count; i < end; ++i)
        items_[layer[i]].x = pool.sum / pool.weight + shift[i];
  }

  // Long ways pull more: they shall be straight.
  std::pair<double, double> wish(std::size_t at, bool down) const {
    const Item& item = items_[at];
    const std::vector<std::size_t>* beside = down ? &item.above : &item.below;
    if (beside->empty()) beside = down ? &item.below : &item.above;
    if (beside->empty()) return {item.x, 0.01};
    double sum = 0, weight = 0;
    for (const std::size_t other : *beside) {
      const double pull = item.passes && items_[other].passes   ? 8
                          : item.passes || items_[other].passes ? 2
                                                                : 1;
      sum += items_[other].x * pull;
      weight += pull;
    }
    return {sum / weight, weight};
  }

  GraphPlaces result() const {
    GraphPlaces places;
    std::vector<double> middle(layers_.size(), 0);
    double left = 0, y = 0;
    for (std::size_t i = 0; i < items_.size(); ++i)
      left = i == 0 ? items_[i].x - items_[i].width / 2 : std::min(left, items_[i].x - items_[i].width / 2);
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      double height = 0;
      for (const std::size_t i : layers_[k]) height = std::max(height, items_[i].height);
      middle[k] = y + height / 2;
      y += height + (k + 1 < layers_.size() ? spacing_.down : 0);
    }
    places.h = y;
    for (std::size_t i = 0; i < part_.boxes.size(); ++i) {
      const Item& item = items_[i];
      places.boxes.push_back(
          {item.x - item.width / 2 - left, middle[layer_[i]] - item.height / 2, item.width, item.height});
    }
    for (const Item& item : items_) places.w = std::max(places.w, item.x + item.width / 2 - left);
    places.edges = routes(places, middle, left);
    for (const std::vector<std::size_t>& layer : layers_) {
      places.layers.emplace_back();
      for (const std::size_t i : layer)
        if (i < part_.boxes.size()) places.layers.back().push_back(i);
    }
    return places;
  }

  std::vector<std::vector<GraphPoint>> routes(const GraphPlaces& places, const std::vector<double>& middle,
                                              double left) const {
    // where the edges enter a box: side by side, in the order in which they come
    std::vector<std::vector<std::pair<double, std::size_t>>> entering(part_.boxes.size());
    for (std::size_t e = 0; e < part_.edges.size(); ++e) {
      const std::size_t first = part_.edges[e].from, last = part_.edges[e].to;
      const std::size_t before = way_[e].empty() ? first : way_[e].back();
      entering[last].emplace_back(items_[before].x, e);
    }
    std::vector<double> port(part_.edges.size(), 0);
    for (std::size_t i = 0; i < entering.size(); ++i) {
      std::ranges::stable_sort(entering[i], {}, [](const auto& pair) { return pair.first; });
      const Rect& box = places.boxes[i];
      for (std::size_t k = 0; k < entering[i].size(); ++k)
        port[entering[i][k].second] =
            box.x + box.w * static_cast<double>(k + 1) / static_cast<double>(entering[i].size() + 1);
    }
    std::vector<std::vector<GraphPoint>> routes;
    for (std::size_t e = 0; e < part_.edges.size(); ++e) {
      const std::size_t first = part_.edges[e].from, last = part_.edges[e].to;
      const Rect& from = places.boxes[first];
      const Rect& to = places.boxes[last];
      std::vector<GraphPoint> route = {{from.x + from.w / 2, from.y + from.h}};
      for (std::size_t k = 0; k < way_[e].size(); ++k)
        route.push_back({items_[way_[e][k]].x - left, middle[layer_[first] + 1 + k]});
      route.push_back({port[e], to.y});
      routes.push_back(std::move(route));
    }
    return routes;
  }

  const GraphPart& part_;
  std::span<const BoxSize> sizes_;
  GraphSpacing spacing_;
  std::vector<std::size_t> order_;  // of the boxes, each after all that give to it
  std::vector<std::size_t> layer_;  // per box
  std::vector<Item> items_;         // boxes, then what passes
  std::vector<std::vector<std::size_t>> layers_;
  std::vector<std::vector<std::size_t>> way_;  // per edge, from above
};

}  // namespace

GraphPlaces place_graph(const GraphPart& part, std::span<const BoxSize> sizes, const GraphSpacing& spacing) {
  if (part.boxes.empty()) return {};
  return Placement(part, sizes, spacing).place();
}

std::optional<std::size_t> box_beside(const GraphPart& part, const GraphPlaces& places, std::size_t from,
                                      Direction direction) {
  const auto middle = [&](std::size_t i) { return places.boxes[i].x + places.boxes[i].w / 2; };
  std::optional<std::size_t> best;
  const auto offer = [&](std::size_t i) {
    const auto far = [&](std::size_t k) { return std::abs(middle(k) - middle(from)); };
    if (!best || far(i) < far(*best)) best = i;
  };
  if (direction == Direction::up || direction == Direction::down) {
    for (const GraphEdge& edge : part.edges) {
      if (direction == Direction::up && edge.to == from) offer(edge.from);
      if (direction == Direction::down && edge.from == from) offer(edge.to);
    }
    return best;
  }
  for (const std::vector<std::size_t>& layer : places.layers) {
    const auto at = std::ranges::find(layer, from);
    if (at == layer.end()) continue;
    if (direction == Direction::left && at != layer.begin()) return *std::prev(at);
    if (direction == Direction::right && std::next(at) != layer.end()) return *std::next(at);
  }
  return std::nullopt;
}

}  // namespace loadline::view
