// Geometry for drawing, against brute force.

#include "core/plan/dry_machine.h"
#include "core/plan/run.h"
#include "core/view/arena_chart.h"
#include "core/view/curves.h"
#include "core/view/layouts.h"
#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace loadline::view {

// --- Treemap geometry and curve reduction against brute force.

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
graph::MetaGraph layered(std::size_t layers) {
  graph::MetaGraph graph;
  graph.files.push_back({"model", 0});
  const auto add = [&](std::string name, std::uint64_t bytes) {
    const std::uint64_t offset = graph.files[0].bytes;
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, bytes));
    graph.files[0].bytes += bytes;
    graph.tensors.push_back({std::move(name),
                             graph::DType::u8,
                             {bytes},
                             {},
                             graph::StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)},
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

TEST(EvenColumns, give_equals_equal_shapes_in_order) {
  for (const std::size_t count : {1u, 4u, 7u, 32u, 61u, 80u, 81u}) {
    std::vector<double> weights(count, 100);
    const Rect bounds{3, 4, 900, 420};
    const std::vector<Rect> rects = even_columns(weights, bounds);
    double filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(rects[i].w, rects[0].w, 1e-9);
      EXPECT_NEAR(rects[i].h, rects[0].h, 1e-9);
      EXPECT_LE(rects[i].x + rects[i].w, bounds.x + bounds.w + 1e-6);
      EXPECT_LE(rects[i].y + rects[i].h, bounds.y + bounds.h + 1e-6);
      filled += rects[i].area();
      if (i > 0) {
        EXPECT_TRUE(rects[i].x > rects[i - 1].x + 1e-9 || rects[i].y > rects[i - 1].y + 1e-9);
      }
    }
    EXPECT_GT(filled, 0.85 * bounds.area()) << count;
    if (count == 4 || count == 32 || count == 80) expect_tiling(rects, bounds);
  }
  for (const Rect& rect : even_columns(std::vector<double>(4, 1), {0, 0, 1000, 5}))
    EXPECT_NEAR(rect.area(), 1250, 1e-6) << "far wider than high";
  EXPECT_TRUE(even_columns({}, {0, 0, 5, 5}).empty());
}

TEST(EvenColumns, keep_shapes_beside_small_and_large_ones) {
  std::vector<double> weights = {5, 5, 5};  // dense layers before those of experts, and a head behind
  weights.resize(61, 100);
  weights.push_back(133);
  const std::vector<Rect> rects = even_columns(weights, {0, 0, 1100, 560});
  for (std::size_t i = 4; i < 61; ++i) {
    EXPECT_NEAR(rects[i].w, rects[3].w, 1e-9) << i;
    EXPECT_NEAR(rects[i].h, rects[3].h, 1e-9) << i;
  }
  EXPECT_NEAR(rects[61].area(), 1.33 * rects[3].area(), 1e-6);
  EXPECT_NEAR(rects[0].y, rects[2].y, 1e-9) << "small ones share a row";
  // two sizes, as of a file whose types differ by layer
  const std::vector<double> mixed = {196, 167, 167, 196, 167, 167, 196, 196};
  const std::vector<Rect> two = even_columns(mixed, {0, 0, 520, 310});
  for (const std::size_t i : {3u, 6u, 7u}) {
    EXPECT_NEAR(two[i].w, two[0].w, 1e-9);
    EXPECT_NEAR(two[i].h, two[0].h, 1e-9);
  }
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
  const graph::MetaGraph graph = layered(40);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const TreemapOrder order(tree);
  const Rect bounds{0, 0, 1200, 700};
  const auto tiles =
      layout_treemap(tree, order, graph::kRootNode, bounds,
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
  const graph::MetaGraph graph = layered(12);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 1200, 700}, {});
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
  const graph::MetaGraph graph = layered(3000);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const auto tiles =
      layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 300, 200}, {.min_side = 6});
  EXPECT_LT(tiles.size(), 3000u);  // the work follows the picture, not the model
  const bool merged = std::any_of(tiles.begin(), tiles.end(), [](const Tile& tile) {
    return tile.kind == TileKind::aggregate && tile.tensors > 1;
  });
  EXPECT_TRUE(merged);
}

TEST(Treemap, a_single_child_takes_its_parents_place) {
  const graph::MetaGraph graph = layered(2);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 1200, 700}, {});
  for (const Tile& tile : tiles) {
    if (tile.kind == TileKind::module) {
      EXPECT_GT(tree.node(tile.node).children.size(), 1u) << graph::module_path(tree, tile.node);
    }
  }
}

TEST(Treemap, finds_the_tile_under_a_point) {
  const graph::MetaGraph graph = layered(8);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 900, 600}, {});
  for (const Tile& tile : tiles) {
    if (tile.kind != TileKind::tensor) continue;
    const Tile* found = tile_at(tiles, tile.rect.x + tile.rect.w / 2, tile.rect.y + tile.rect.h / 2);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->node, tile.node);
  }
  EXPECT_EQ(tile_at(tiles, -1, 5), nullptr);
}

TEST(Treemap, repeated_layers_stand_in_natural_order) {
  const graph::MetaGraph graph = layered(20);
  const graph::ModuleTree tree = graph::module_tree(graph);
  const auto tiles = layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 1200, 700}, {});
  std::vector<std::string> layers;
  for (const Tile& tile : tiles)
    if (tile.kind == TileKind::module && tree.node(tree.node(tile.node).parent).name == "layers")
      layers.push_back(tree.node(tile.node).name);
  ASSERT_EQ(layers.size(), 20u);
  for (std::size_t i = 0; i < layers.size(); ++i) EXPECT_EQ(layers[i], std::to_string(i));
}

// As in a mixture of experts whose first layers are dense and whose last has more.
TEST(Treemap, layers_stand_in_order_of_depth_and_equal_ones_look_the_same) {
  graph::MetaGraph graph;
  graph.files.push_back({"model", 0});
  const auto add = [&](std::string name, std::uint64_t bytes) {
    graph.tensors.push_back(
        {std::move(name),
         graph::DType::u8,
         {bytes},
         {},
         graph.add_storage(graph::plain_storage(graph::FileId{0}, graph.files[0].bytes, bytes))});
    graph.files[0].bytes += bytes;
  };
  constexpr std::size_t kLayers = 62, kDense = 3, kExperts = 40;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const std::string layer = "layers." + std::to_string(i);
    add(layer + ".attn.weight", 90'000);
    for (std::size_t e = 0; i >= kDense && e < kExperts; ++e)
      add(layer + ".mlp.experts." + std::to_string(e) + ".weight", 20'000);
    if (i + 1 == kLayers) add(layer + ".head.weight", 300'000);
  }
  const graph::ModuleTree tree = graph::module_tree(graph);
  for (double width = 500; width < 1600; width += 37) {
    const auto tiles = layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, width, 480}, {});
    std::vector<std::size_t> inside(kLayers, 0);  // tiles below each layer
    std::vector<Rect> rects(kLayers);
    std::vector<std::size_t> order;
    for (const Tile& tile : tiles) {
      const auto layer = graph::layer_number(graph::module_path(tree, tile.node));
      if (!layer) continue;
      if (inside[*layer]++ == 0) rects[*layer] = tile.rect, order.push_back(*layer);
    }
    ASSERT_EQ(order.size(), kLayers);
    EXPECT_TRUE(std::ranges::is_sorted(order)) << width;
    for (std::size_t i = kDense; i + 1 < kLayers; ++i) {
      EXPECT_EQ(inside[i], inside[kDense]) << "layer " << i << " at width " << width;
      EXPECT_NEAR(rects[i].area(), rects[kDense].area(), 1e-6 * rects[i].area());
    }
    for (std::size_t i = 0; i < kDense; ++i) {
      EXPECT_EQ(inside[i], 1u);
      EXPECT_GE(rects[i].w, 8) << "room for its number at width " << width;
      EXPECT_GE(rects[i].h, 16);
    }
    for (std::size_t i = 1; i < kLayers; ++i)
      EXPECT_TRUE(rects[i].x > rects[i - 1].x + 1e-9 || rects[i].y > rects[i - 1].y) << i;
  }
}

TEST(Treemap, empty_models_have_no_tiles) {
  const graph::ModuleTree tree = graph::module_tree(graph::MetaGraph{});
  EXPECT_TRUE(layout_treemap(tree, TreemapOrder(tree), graph::kRootNode, {0, 0, 100, 100}, {}).empty());
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
  EXPECT_EQ(step_columns(std::vector<CurvePoint>{{0, 5}, {1, 9}}, 0, 1, 2)[1], (CurveColumn{5, 9, 9}))
      << "what happens at the right edge is in the last column";
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

// --- Rectangles of an arena: nothing lost to level of detail, the right buffer under the mouse.

namespace {

struct Packed {
  packing::Problem problem;
  std::vector<std::uint64_t> offsets;
};

Packed packed(packing::Problem problem) {
  packing::PackOptions options;
  options.effort = packing::Effort::greedy;
  std::vector<std::uint64_t> offsets = tests::pack(problem, options).offsets;
  return {std::move(problem), std::move(offsets)};
}

Packed random_packed(std::uint64_t seed) {
  return packed(tests::random_problem({.buffers = 40,
                                       .ticks = 30,
                                       .most_size = 20,
                                       .alignments = true,
                                       .pins = true,
                                       .gaps = true,
                                       .groups = true},
                                      seed));
}

bool alive(const packing::Buffer& buffer, std::uint64_t tick) {
  for (const packing::Lifespan& gap : buffer.gaps)
    if (tick >= gap.lower && tick < gap.upper) return false;
  return tick >= buffer.lower && tick < buffer.upper;
}

ArenaSight whole(const ArenaChart& chart) {
  return {static_cast<double>(chart.first_tick()), static_cast<double>(chart.last_tick()), 0,
          static_cast<double>(chart.height())};
}

TEST(ArenaChart, FindsTheBufferOfEveryByteAtEveryTick) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Packed arena = random_packed(seed);
    const ArenaChart chart(arena.problem, arena.offsets);
    for (std::uint64_t tick = 0; tick < 32; ++tick)
      for (std::uint64_t byte = 0; byte <= chart.height(); ++byte) {
        std::optional<std::size_t> expected;
        for (std::size_t i = 0; i < arena.problem.buffers.size(); ++i) {
          const packing::Buffer& buffer = arena.problem.buffers[i];
          if (!alive(buffer, tick) || byte < arena.offsets[i] || byte >= arena.offsets[i] + buffer.size)
            continue;
          if (!expected || buffer.size > arena.problem.buffers[*expected].size) expected = i;
        }
        const auto found = chart.buffer_at(tick, byte);
        ASSERT_EQ(found.has_value(), expected.has_value()) << seed << " " << tick << " " << byte;
        if (!found) continue;
        // of two alike in a group either will do
        ASSERT_EQ(arena.offsets[*found], arena.offsets[*expected]);
        ASSERT_EQ(arena.problem.buffers[*found].size, arena.problem.buffers[*expected].size);
        ASSERT_TRUE(alive(arena.problem.buffers[*found], tick));
      }
  }
}

TEST(ArenaChart, CurvesSayWhatIsTakenAndHowHigh) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Packed arena = random_packed(seed);
    const ArenaChart chart(arena.problem, arena.offsets);
    double most_free = 0;
    for (std::uint64_t tick = 0; tick < 32; ++tick) {
      std::uint64_t taken = 0, top = 0;
      for (std::uint64_t byte = 0; byte < chart.height(); ++byte)
        if (chart.buffer_at(tick, byte)) ++taken, top = byte + 1;
      const auto at = static_cast<double>(tick);
      ASSERT_EQ(value_at(chart.taken(), at), static_cast<double>(taken)) << seed << " " << tick;
      ASSERT_EQ(value_at(chart.tops(), at), static_cast<double>(top)) << seed << " " << tick;
      most_free = std::max(most_free, static_cast<double>(top - taken));
    }
    EXPECT_EQ(chart.most_free(), most_free);
    EXPECT_EQ(chart.taken().back().y, 0) << "at the end nothing is left";
  }
}

// However small the picture, what is drawn covers what the buffers cover.
TEST(ArenaChart, NothingIsLostToLevelOfDetail) {
  const Packed arena = packed(tests::guillotine(3000, 5));
  const ArenaChart chart(arena.problem, arena.offsets);
  const std::vector<std::uint8_t> kinds(arena.problem.buffers.size(), 3);
  double bytes = 0;
  for (const ArenaBox& box : chart.boxes())
    bytes += static_cast<double>(box.upper - box.lower) * static_cast<double>(box.to - box.from);
  for (const auto& [width, height] :
       {std::pair(1200.0, 600.0), std::pair(300.0, 200.0), std::pair(61.0, 47.0)}) {
    const ArenaPicture picture = draw_arena(chart.boxes(), kinds, whole(chart), width, height);
    double covered = 0;
    for (const ArenaRect& rect : picture.rects) {
      covered += rect.rect.area();
      EXPECT_GE(rect.rect.w, 2 - 1e-9);
      EXPECT_GE(rect.rect.h, 2 - 1e-9);
    }
    for (const ArenaCells& cells : picture.cells) {
      covered += cells.rect.area() * cells.eighths / 8.0;
      EXPECT_EQ(cells.kind, 3);
      EXPECT_GE(cells.eighths, 1);
    }
    const double share = covered / (width * height) /
                         (bytes / static_cast<double>(chart.last_tick() - chart.first_tick()) /
                          static_cast<double>(chart.height()));
    EXPECT_GT(share, 0.999) << width;
    EXPECT_LT(share, 1.25) << "cells are rounded up, no more";
  }
}

TEST(ArenaChart, CellsAreExactWhereBoxesAre) {
  // a column of thin boxes that fills the left half, in eighths of a cell
  std::vector<ArenaBox> boxes;
  for (std::uint32_t i = 0; i < 64; i += 2) boxes.push_back({i, 0, 50, i, i + 1});
  const std::vector<std::uint8_t> kinds(64, 1);
  const ArenaPicture picture = draw_arena(boxes, kinds, {0, 100, 0, 64}, 100, 16);
  EXPECT_TRUE(picture.rects.empty());
  ASSERT_EQ(picture.cells.size(), 8u) << "one run per row of cells";
  for (const ArenaCells& cells : picture.cells) {
    EXPECT_EQ(cells.rect.x, 0);
    EXPECT_EQ(cells.rect.w, 50);
    EXPECT_EQ(cells.eighths, 4);
  }
}

TEST(ArenaChart, ThePictureIsClipped) {
  const std::vector<ArenaBox> boxes = {{0, 0, UINT64_MAX, 0, std::uint64_t{1} << 62}, {1, 7, 8, 3, 4}};
  const std::vector<std::uint8_t> kinds = {0, 1};
  const ArenaPicture picture = draw_arena(boxes, kinds, {100, 101, 10, 20}, 640, 480);
  ASSERT_EQ(picture.rects.size(), 1u);
  EXPECT_EQ(picture.rects[0].rect, (Rect{0, 0, 640, 480}));
  EXPECT_TRUE(picture.cells.empty());
  EXPECT_TRUE(draw_arena(boxes, kinds, {5, 5, 0, 1}, 640, 480).rects.empty()) << "nothing in sight";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(draw_arena(boxes, kinds, {nan, nan, 0, 1}, 640, 480).rects.empty());
}

TEST(ArenaChart, AnEmptyArenaHasNothing) {
  const ArenaChart chart(packing::Problem{}, {});
  EXPECT_FALSE(chart.highest());
  EXPECT_FALSE(chart.buffer_at(0, 0));
  EXPECT_EQ(chart.height(), 0u);
}

TEST(ArenaChart, AHundredThousandBuffersAreAFewShapesEach) {
  // shelves of buffers of every length
  Packed arena;
  packing::MixedSequence random(1);
  for (std::uint64_t shelf = 0; shelf < 250; ++shelf)
    for (std::uint64_t i = 0, tick = 0; i < 400; ++i) {
      const std::uint64_t lower = tick + random.below(100);
      tick = lower + 1 + random.below(400);
      arena.problem.buffers.push_back({.lower = lower, .upper = tick, .size = 1 + random.below(1 << 20)});
      arena.offsets.push_back(shelf << 20);
    }
  const ArenaChart chart(arena.problem, arena.offsets);
  const std::vector<std::uint8_t> kinds(arena.problem.buffers.size(), 0);
  const ArenaPicture picture = draw_arena(chart.boxes(), kinds, whole(chart), 1280, 600);
  EXPECT_LT(picture.rects.size() + picture.cells.size(), 400'000u);
  EXPECT_FALSE(picture.cells.empty());
}

}  // namespace

// --- Curves in columns against every point of a run, and what is alive against alive_at().

namespace {

struct RandomRun {
  graph::MetaGraph graph;
  plan::Plan plan;
  plan::Timeline timeline;
};

RandomRun random_run(std::uint64_t seed) {
  RandomRun run;
  for (const std::uint64_t bytes : {3000u, 1u, 70'000u, 512u}) {
    const auto id = static_cast<std::uint32_t>(run.graph.storages.size());
    run.graph.storages.push_back(graph::shapes_only_storage(bytes));
    run.graph.tensors.push_back(
        {"t" + std::to_string(id), graph::DType::u8, {bytes}, {}, graph::StorageId{id}, 0});
  }
  run.plan = testing::random_plan(run.graph, seed, 80);
  plan::DryMachine machine;
  run.timeline = loadline::plan::run(run.plan, machine);
  return run;
}

std::uint64_t sum_of(const plan::PerSpace<std::uint64_t>& bytes, unsigned mask) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    if ((mask & (1u << i)) != 0) sum += bytes[i];
  return sum;
}

constexpr unsigned kMasks[] = {plan::kAllSpaces, plan::space_bit(plan::Space::device),
                               plan::kAllSpaces & ~plan::space_bit(plan::Space::device)};

TEST(UsageColumns, HoldTheMostOfEveryMomentInThem) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomRun run = random_run(seed);
    const std::size_t steps = run.plan.steps.size();
    for (const unsigned mask : kMasks)
      for (const RunAxis axis : {RunAxis::steps, RunAxis::seconds})
        for (const std::size_t count : {1u, 7u, 40u, 500u}) {
          const auto columns = usage_columns(run.timeline, steps, axis, mask, count);
          ASSERT_EQ(columns.size(), count);
          std::uint64_t most = 0;
          for (const UsageColumn& column : columns) most = std::max(most, sum_of(column.bytes, mask));
          EXPECT_EQ(most, plan::peak_over(run.timeline, mask).bytes) << seed;
          // the parts of a column were there at once
          for (const UsageColumn& column : columns)
            for (std::size_t space = 0; space < plan::kSpaceCount; ++space)
              if ((mask & (1u << space)) != 0)
                EXPECT_EQ(column.bytes[space], plan::usage_at(run.timeline, column.step, 1u << space))
                    << seed;
        }
  }
}

// With a column per step each column is the usage after its step, or what was there before, if that is more.
TEST(UsageColumns, FollowEveryStepWhereThereIsRoom) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run = random_run(seed);
    const std::size_t steps = run.plan.steps.size();
    const auto columns = usage_columns(run.timeline, steps, RunAxis::steps, plan::kAllSpaces, steps);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::uint64_t now = plan::usage_at(run.timeline, step, plan::kAllSpaces);
      const std::uint64_t before = step == 0 ? 0 : plan::usage_at(run.timeline, step - 1, plan::kAllSpaces);
      EXPECT_EQ(sum_of(columns[step].bytes, plan::kAllSpaces), std::max(now, before)) << seed << " " << step;
    }
  }
}

// For these counts a quotient that is taken first falls short of a whole column.
TEST(UsageColumns, BeginAtTheirStep) {
  for (const std::size_t steps : {100u, 240u, 480u}) {
    plan::Plan plan;
    for (std::size_t i = 0; i < steps; ++i) plan::alloc(plan, {.bytes = i + 1, .space = plan::Space::device});
    plan::DryMachine machine;
    const plan::Timeline timeline = plan::run(plan, machine);
    const auto columns = usage_columns(timeline, steps, RunAxis::steps, plan::kAllSpaces, steps);
    for (std::size_t step = 0; step < steps; ++step)
      EXPECT_EQ(columns[step].bytes[plan::index(plan::Space::device)],
                plan::usage_at(timeline, step, plan::kAllSpaces))
          << step << " of " << steps;
  }
}

TEST(UsageColumns, OfARunThatTakesNoTimeAreItsMost) {
  plan::Plan plan;
  const plan::BlockId a = plan::alloc(plan, {.bytes = 100, .space = plan::Space::device});
  plan::free(plan, a);
  plan::alloc(plan, {.bytes = 30, .space = plan::Space::host});
  plan::DryMachine machine;
  const plan::Timeline timeline = plan::run(plan, machine);
  ASSERT_EQ(timeline.seconds, 0);
  for (const UsageColumn& column : usage_columns(timeline, 3, RunAxis::seconds, plan::kAllSpaces, 5))
    EXPECT_EQ(column.bytes[plan::index(plan::Space::device)], 100u);
  EXPECT_EQ(usage_columns({}, 0, RunAxis::steps, plan::kAllSpaces, 3).size(), 3u);
}

TEST(RunAxis, GoesFromStepsToPlacesAndBack) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run = random_run(seed);
    const std::size_t steps = run.plan.steps.size();
    for (const RunAxis axis : {RunAxis::steps, RunAxis::seconds}) {
      const double end = length_of(run.timeline, steps, axis), rounding = end * 1e-12;
      double before = 0;
      for (std::size_t step = 0; step <= steps; ++step) {
        const double x = x_of_step(run.timeline, steps, axis, step);
        EXPECT_GE(x, before - rounding) << seed << " " << step;
        EXPECT_LE(x, end + rounding) << seed << " " << step;
        before = x;
      }
      EXPECT_NEAR(before, end, rounding) << seed;
      for (const plan::UsagePoint& point : run.timeline.usage) {
        EXPECT_LE(step_at_x(run.timeline, steps, axis, x_of(point, axis)), steps - 1);
        const double x = x_of_sample(run.timeline, steps, axis, point.seconds);
        EXPECT_GE(x, x_of(point, axis)) << "of several steps at one time the last";
      }
    }
    for (std::size_t step = 0; step < steps; ++step)
      EXPECT_EQ(step_at_x(run.timeline, steps, RunAxis::steps, static_cast<double>(step)), step);
  }
  const plan::Timeline none;
  EXPECT_EQ(x_of_step(none, 0, RunAxis::seconds, 0), 0);
  EXPECT_EQ(step_at_x(none, 0, RunAxis::seconds, 1), 0u);
}

TEST(UsageColumns, MayBecomeFewer) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomRun run = random_run(seed);
    const auto columns =
        usage_columns(run.timeline, run.plan.steps.size(), RunAxis::steps, plan::kAllSpaces, 100);
    for (const std::size_t count : {1u, 3u, 99u, 100u, 300u}) {
      const auto fewer = fewer_columns(columns, plan::kAllSpaces, count);
      ASSERT_EQ(fewer.size(), std::min<std::size_t>(count, 100));
      std::uint64_t most = 0;
      for (const UsageColumn& column : fewer) most = std::max(most, sum_of(column.bytes, plan::kAllSpaces));
      EXPECT_EQ(most, run.timeline.unified.bytes);
    }
  }
}

TEST(AliveAtSteps, NamesTheLargestOfThoseAlive) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run = random_run(seed);
    std::vector<std::size_t> moments;
    for (std::size_t step = 0; step < run.plan.steps.size(); step += 3) moments.push_back(step);
    for (const unsigned mask : kMasks) {
      const auto found = alive_at_steps(run.timeline, run.plan, moments, mask, 2);
      ASSERT_EQ(found.size(), moments.size());
      for (std::size_t i = 0; i < moments.size(); ++i) {
        std::vector<plan::BlockId> expected = plan::alive_at(run.timeline, run.plan, moments[i], mask);
        EXPECT_EQ(found[i].count, expected.size()) << seed << " " << moments[i];
        expected.resize(std::min<std::size_t>(expected.size(), 2));
        EXPECT_EQ(found[i].largest, expected) << seed << " " << moments[i];
      }
    }
  }
}

}  // namespace

}  // namespace loadline::view
