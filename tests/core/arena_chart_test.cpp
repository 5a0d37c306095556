// Rectangles of an arena: nothing lost to level of detail, the right buffer under the mouse.
#include "core/view/arena_chart.h"

#include "tests/packing/guillotine.h"
#include "tests/packing/random_problem.h"
#include "tests/support/packing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace loadline::view {
namespace {

struct Packed {
  Problem problem;
  std::vector<std::uint64_t> offsets;
};

Packed packed(Problem problem) {
  PackOptions options;
  options.effort = Effort::greedy;
  std::vector<std::uint64_t> offsets = pack(problem, options).offsets;
  return {std::move(problem), std::move(offsets)};
}

Packed random_packed(std::uint64_t seed) {
  return packed(random_problem({.buffers = 40,
                                .ticks = 30,
                                .most_size = 20,
                                .alignments = true,
                                .pins = true,
                                .gaps = true,
                                .groups = true},
                               seed));
}

bool alive(const Buffer& buffer, std::uint64_t tick) {
  for (const Lifespan& gap : buffer.gaps)
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
          const Buffer& buffer = arena.problem.buffers[i];
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
  const Packed arena = packed(guillotine(3000, 5));
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
  const ArenaChart chart(Problem{}, {});
  EXPECT_FALSE(chart.highest());
  EXPECT_FALSE(chart.buffer_at(0, 0));
  EXPECT_EQ(chart.height(), 0u);
}

// Printed, not judged: how long a frame's geometry takes.
TEST(ArenaChart, AHundredThousandBuffers) {
  // shelves of buffers of every length
  Packed arena;
  MixedSequence random(1);
  for (std::uint64_t shelf = 0; shelf < 250; ++shelf)
    for (std::uint64_t i = 0, tick = 0; i < 400; ++i) {
      const std::uint64_t lower = tick + random.below(100);
      tick = lower + 1 + random.below(400);
      arena.problem.buffers.push_back({.lower = lower, .upper = tick, .size = 1 + random.below(1 << 20)});
      arena.offsets.push_back(shelf << 20);
    }
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::time_point from) {
    return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
  };
  auto begin = Clock::now();
  const ArenaChart chart(arena.problem, arena.offsets);
  const double made = ms(begin);
  const std::vector<std::uint8_t> kinds(arena.problem.buffers.size(), 0);
  begin = Clock::now();
  const ArenaPicture picture = draw_arena(chart.boxes(), kinds, whole(chart), 1280, 600);
  const double drawn = ms(begin);
  std::printf("100,000 buffers: chart %.1f ms, picture %.1f ms (%zu rectangles, %zu runs of cells)\n", made,
              drawn, picture.rects.size(), picture.cells.size());
  EXPECT_LT(picture.rects.size() + picture.cells.size(), 400'000u);
  EXPECT_FALSE(picture.cells.empty());
}

}  // namespace
}  // namespace loadline::view
