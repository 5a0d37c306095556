// Treemap geometry and curve reduction against brute force.
#include "core/view/curves.h"
#include "core/view/layouts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace loadline::view {
namespace {

double overlap(const Rect& a, const Rect& b) {
  const double w = std::min(a.x + a.w, b.x + b.w) - std::max(a.x, b.x);
  const double h = std::min(a.y + a.h, b.y + b.h) - std::max(a.y, b.y);
  return std::max(w, 0.0) * std::max(h, 0.0);
}

void expect_tiling(const std::vector<Rect>& rects, const Rect& bounds) {
  double sum = 0;
  for (const Rect& r : rects) {
    sum += r.area();
    EXPECT_GE(r.x, bounds.x - 1e-6);
    EXPECT_GE(r.y, bounds.y - 1e-6);
    EXPECT_LE(r.x + r.w, bounds.x + bounds.w + 1e-6);
    EXPECT_LE(r.y + r.h, bounds.y + bounds.h + 1e-6);
  }
  EXPECT_NEAR(sum, bounds.area(), bounds.area() * 1e-9);
  for (std::size_t i = 0; i < rects.size(); ++i)
    for (std::size_t j = i + 1; j < rects.size(); ++j)
      ASSERT_LT(overlap(rects[i], rects[j]), 1e-6) << i << ' ' << j;
}

std::vector<double> random_weights(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> sizes(0, 3);
  std::vector<double> weights(count);
  std::generate(weights.begin(), weights.end(), [&] { return sizes(random); });
  std::sort(weights.rbegin(), weights.rend());
  return weights;
}

// `layers` layers of three tensors, an embedding, and a bias of a few bytes in each layer.
MetaGraph layered(std::size_t layers) {
  MetaGraph graph;
  graph.files.push_back({"model", 0});
  const auto add = [&](std::string name, std::uint64_t bytes) {
    const std::uint64_t offset = graph.files[0].bytes;
    graph.storages.push_back(plain_storage(FileId{0}, offset, bytes));
    graph.files[0].bytes += bytes;
    graph.tensors.push_back({std::move(name),
                             DType::u8,
                             {bytes},
                             {},
                             StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)},
                             0});
  };
  add("model.embed.weight", 1'000'000);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    add(layer + ".attn.q.weight", 40'000 + i);
    add(layer + ".attn.k.weight", 20'000);
    add(layer + ".mlp.weight", 160'000);
    add(layer + ".mlp.bias", 3);
  }
  return graph;
}

TEST(Squarify, tiles_the_bounds_in_proportion) {
  const Rect bounds{10, -5, 800, 450};
  for (const unsigned seed : {1u, 2u, 3u}) {
    const std::vector<double> weights = random_weights(400, seed);
    const std::vector<Rect> rects = squarify(weights, bounds);
    expect_tiling(rects, bounds);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_NEAR(rects[i].area(), weights[i] / total * bounds.area(), bounds.area() * 1e-9);
  }
}

TEST(Squarify, equal_weights_are_nearly_square) {
  const std::vector<double> weights(100, 1);
  for (const Rect& r : squarify(weights, {0, 0, 1000, 600})) EXPECT_LT(std::max(r.w / r.h, r.h / r.w), 2);
}

TEST(EvenColumns, tile_the_bounds_in_order) {
  for (const std::size_t count : {1u, 4u, 7u, 32u, 80u, 81u}) {
    std::vector<double> weights(count, 100);
    weights.front() = 101;
    const Rect bounds{3, 4, 900, 420};
    const std::vector<Rect> rects = even_columns(weights, bounds);
    expect_tiling(rects, bounds);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(rects[i].area(), weights[i] / total * bounds.area(), 1e-6);
      if (i > 0) {
        EXPECT_TRUE(rects[i].x > rects[i - 1].x || rects[i].y > rects[i - 1].y);
      }
    }
  }
  EXPECT_TRUE(even_columns({}, {0, 0, 5, 5}).empty());
}

TEST(Squarify, holds_a_hundred_thousand) {
  const std::vector<double> weights = random_weights(100'000, 7);
  const Rect bounds{0, 0, 1920, 1080};
  double sum = 0;
  for (const Rect& r : squarify(weights, bounds)) sum += r.area();
  EXPECT_NEAR(sum, bounds.area(), 1);
}

TEST(Squarify, nothing_to_place) {
  EXPECT_TRUE(squarify({}, {0, 0, 10, 10}).empty());
  const std::vector<double> zeros(3, 0);
  for (const Rect& r : squarify(zeros, {0, 0, 10, 10})) EXPECT_EQ(r, Rect{});
  const std::vector<double> some = {2, 0, 1, -4};
  const std::vector<Rect> rects = squarify(some, {0, 0, 30, 10});
  EXPECT_EQ(rects[1], Rect{});
  EXPECT_EQ(rects[3], Rect{});
  EXPECT_NEAR(rects[0].area(), 200, 1e-9);
  EXPECT_EQ(squarify(some, {0, 0, 0, 10})[0], Rect{});
}

TEST(Treemap, leaves_fill_the_bounds_when_frames_take_no_room) {
  const MetaGraph graph = layered(40);
  const ModuleTree tree = module_tree(graph);
  const TreemapOrder order(tree);
  const Rect bounds{0, 0, 1200, 700};
  const auto tiles =
      layout_treemap(tree, order, kRootNode, bounds,
                     {.min_side = 3, .padding = 0, .header = 0, .header_width = 1e9, .number_width = 1e9});
  std::vector<Rect> leaves;
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;
  for (const Tile& tile : tiles) {
    if (tile.kind == TileKind::module) continue;
    leaves.push_back(tile.rect);
    bytes += tile.bytes;
    tensors += tile.tensors;
  }
  expect_tiling(leaves, bounds);
  EXPECT_EQ(bytes, tree.root().bytes);
  EXPECT_EQ(tensors, graph.tensors.size());
}

TEST(Treemap, frames_contain_what_is_in_them) {
  const MetaGraph graph = layered(12);
  const ModuleTree tree = module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 1200, 700}, {});
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i].depth == 0) continue;
    // the frame around it is the nearest one before it that is one level up
    std::size_t frame = i;
    while (tiles[frame].depth + 1 != tiles[i].depth || tiles[frame].kind != TileKind::module) --frame;
    const Rect& in = tiles[i].rect;
    const Rect& out = tiles[frame].rect;
    EXPECT_GE(in.x, out.x);
    EXPECT_GE(in.y, out.y);
    EXPECT_LE(in.x + in.w, out.x + out.w + 1e-6);
    EXPECT_LE(in.y + in.h, out.y + out.h + 1e-6);
  }
}

TEST(Treemap, what_is_too_small_is_merged_and_counted) {
  const MetaGraph graph = layered(3000);
  const ModuleTree tree = module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 300, 200}, {.min_side = 6});
  EXPECT_LT(tiles.size(), 3000u);  // the work follows the picture, not the model
  const bool merged = std::any_of(tiles.begin(), tiles.end(), [](const Tile& tile) {
    return tile.kind == TileKind::aggregate && tile.tensors > 1;
  });
  EXPECT_TRUE(merged);
}

TEST(Treemap, a_single_child_takes_its_parents_place) {
  const MetaGraph graph = layered(2);
  const ModuleTree tree = module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 1200, 700}, {});
  for (const Tile& tile : tiles) {
    if (tile.kind == TileKind::module) {
      EXPECT_GT(tree.node(tile.node).children.size(), 1u) << module_path(tree, tile.node);
    }
  }
}

TEST(Treemap, finds_the_tile_under_a_point) {
  const MetaGraph graph = layered(8);
  const ModuleTree tree = module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 900, 600}, {});
  for (const Tile& tile : tiles) {
    if (tile.kind != TileKind::tensor) continue;
    const Tile* found = tile_at(tiles, tile.rect.x + tile.rect.w / 2, tile.rect.y + tile.rect.h / 2);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->node, tile.node);
  }
  EXPECT_EQ(tile_at(tiles, -1, 5), nullptr);
}

TEST(Treemap, repeated_layers_stand_in_natural_order) {
  const MetaGraph graph = layered(20);
  const ModuleTree tree = module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 1200, 700}, {});
  std::vector<std::string> layers;
  for (const Tile& tile : tiles)
    if (tile.kind == TileKind::module && tree.node(tree.node(tile.node).parent).name == "layers")
      layers.push_back(tree.node(tile.node).name);
  ASSERT_EQ(layers.size(), 20u);
  for (std::size_t i = 0; i < layers.size(); ++i) EXPECT_EQ(layers[i], std::to_string(i));
}

TEST(Treemap, empty_models_have_no_tiles) {
  const ModuleTree tree = module_tree(MetaGraph{});
  EXPECT_TRUE(layout_treemap(tree, TreemapOrder(tree), kRootNode, {0, 0, 100, 100}, {}).empty());
}

TEST(Curves, columns_keep_every_extreme) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<CurvePoint> curve;
    double x = 0;
    for (int i = 0; i < 60; ++i) {
      x += std::uniform_int_distribution<int>(0, 3)(random);
      curve.push_back({x, static_cast<double>(std::uniform_int_distribution<int>(0, 100)(random))});
    }
    const double x0 = std::uniform_int_distribution<int>(0, 20)(random);
    const double x1 = x0 + std::uniform_int_distribution<int>(1, 60)(random);
    const auto columns = step_columns(curve, x0, x1, 7);
    ASSERT_EQ(columns.size(), 7u);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double width = (x1 - x0) / 7;
      const double left = x0 + width * static_cast<double>(c);
      const double right = c == 6 ? x1 : x0 + width * static_cast<double>(c + 1);
      // what holds on entering the column, and every change inside it
      double low = columns[c].low;
      double high = columns[c].high;
      for (const CurvePoint& point : curve) {
        if (point.x < left || point.x >= right) continue;
        EXPECT_GE(point.y, low);
        EXPECT_LE(point.y, high);
      }
      EXPECT_GE(columns[c].last, low);
      EXPECT_LE(columns[c].last, high);
      if (c > 0) {
        EXPECT_GE(columns[c - 1].last, low);
        EXPECT_LE(columns[c - 1].last, high);
      }
    }
  }
}

TEST(Curves, a_spike_inside_one_column_is_seen) {
  const std::vector<CurvePoint> curve = {{0, 1}, {50.1, 99}, {50.2, 1}};
  const auto columns = step_columns(curve, 0, 100, 10);
  EXPECT_EQ(columns[5], (CurveColumn{1, 99, 1}));
  EXPECT_EQ(columns[4], (CurveColumn{1, 1, 1}));
}

TEST(Curves, degenerate_ranges) {
  EXPECT_TRUE(step_columns({}, 0, 1, 0).empty());
  EXPECT_EQ(step_columns({}, 0, 1, 2), (std::vector<CurveColumn>(2)));
  const std::vector<CurvePoint> curve = {{0, 5}};
  EXPECT_EQ(step_columns(curve, 3, 3, 2), (std::vector<CurveColumn>(2)));
  const std::vector<CurvePoint> jumps = {{0, 5}, {0, 9}, {0, 2}};
  EXPECT_EQ(step_columns(jumps, 0, 1, 1)[0], (CurveColumn{2, 9, 2}));
  EXPECT_EQ(value_at(curve, -1), 0);
  EXPECT_EQ(value_at(curve, 0), 5);
}

TEST(Ticks, bytes_are_powers_of_two_apart_and_reach_the_top) {
  const auto ticks = byte_ticks(131.5 * 1024, 5);
  EXPECT_EQ(ticks.front(), 0);
  EXPECT_GE(ticks.back(), 131.5 * 1024);
  EXPECT_EQ(ticks[1], 32 * 1024);
  EXPECT_EQ(byte_ticks(0, 5), std::vector<double>{0});
}

TEST(Ticks, decimals_are_round) {
  EXPECT_EQ(decimal_ticks(0, 100, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(decimal_ticks(13, 27, 3), (std::vector<double>{15, 20, 25}));
  EXPECT_TRUE(decimal_ticks(5, 5, 3).empty());
  // so far out that the next multiple is the same double
  EXPECT_TRUE(decimal_ticks(9223372036854775808.0, 9223372036854779904.0, 9).empty());
  EXPECT_TRUE(decimal_ticks(0, std::numeric_limits<double>::infinity(), 9).empty());
  EXPECT_TRUE(decimal_ticks(0, std::numeric_limits<double>::denorm_min(), 9).empty());
  EXPECT_LE(decimal_ticks(9007199254740000, 9007199254740992, 9).size(), 10u);
}

TEST(Lanes, few_rows_are_as_tall_as_allowed) {
  const std::vector<Span> spans = {{0, 5}, {2, 3}, {9, 10}, {4, 4}};
  const LaneLayout layout = layout_lane(spans, 0, 10, 100, 200);
  EXPECT_EQ(layout.rows, (std::vector<std::size_t>{0, 1, 2}));  // the empty one is not there
  EXPECT_EQ(layout.row_height, 18);
  ASSERT_EQ(layout.bars.size(), 3u);
  EXPECT_EQ(layout.bars[1].rect, (Rect{20, 18, 10, 17}));
  EXPECT_EQ(lane_row_at(layout, 20), 1u);
  EXPECT_EQ(lane_row_at(layout, 60), 3u);
  EXPECT_EQ(lane_row_at(layout, -1), 3u);
}

TEST(Lanes, a_range_leaves_out_what_does_not_overlap_it_and_cuts_the_rest) {
  const std::vector<Span> spans = {{0, 5}, {5, 6}, {4, 20}};
  const LaneLayout layout = layout_lane(spans, 5, 10, 100, 36);
  EXPECT_EQ(layout.rows, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(layout.bars[0].rect, (Rect{0, 0, 20, 17}));
  EXPECT_EQ(layout.bars[1].rect, (Rect{0, 18, 100, 17}));
}

// However many rows there are, each of them lies under a bar of its line.
TEST(Lanes, many_rows_share_lines_and_none_is_lost) {
  std::mt19937 random(7);
  std::vector<Span> spans;
  double at = 0;
  for (int i = 0; i < 5000; ++i) {
    at += static_cast<double>(random() % 3);
    spans.push_back({at, at + 1 + static_cast<double>(random() % 40)});
  }
  const double end = at + 50;
  const LaneLayout layout = layout_lane(spans, 0, end, 300, 70);
  EXPECT_EQ(layout.rows.size(), spans.size());
  EXPECT_LT(layout.row_height, 1);
  EXPECT_LT(layout.bars.size(), 1000u);
  const double scale = 300 / end;
  for (std::size_t row = 0; row < layout.rows.size(); ++row) {
    const double middle = (spans[layout.rows[row]].from + spans[layout.rows[row]].to) / 2 * scale;
    const bool covered = std::any_of(layout.bars.begin(), layout.bars.end(), [&](const LaneBar& bar) {
      return row >= bar.first && row < bar.first + bar.count && bar.rect.x <= middle + 1 &&
             middle - 1 <= bar.rect.x + bar.rect.w && bar.rect.y + bar.rect.h <= 70;
    });
    EXPECT_TRUE(covered) << row;
    // and the row at that height is near this one
    const std::size_t found = lane_row_at(layout, (static_cast<double>(row) + 0.5) * layout.row_height);
    EXPECT_EQ(found, row);
  }
}

TEST(Lanes, nothing_to_draw_or_nowhere) {
  EXPECT_TRUE(layout_lane({}, 0, 1, 10, 10).bars.empty());
  const std::vector<Span> spans = {{0, 1}};
  EXPECT_TRUE(layout_lane(spans, 1, 1, 10, 10).bars.empty());
  EXPECT_TRUE(layout_lane(spans, 0, 1, 0, 10).bars.empty());
  EXPECT_TRUE(layout_lane(spans, 0, 1, 10, 0.5).bars.empty());
  EXPECT_EQ(lane_row_at({}, 0), 0u);
  EXPECT_EQ(layout_lane(spans, 0, 1e9, 10, 10).bars.front().rect.w, 1);  // never too narrow to be seen
}

}  // namespace
}  // namespace loadline::view
