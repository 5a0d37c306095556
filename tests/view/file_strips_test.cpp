// Strips of files against brute force: what lies where, lines, level of detail.

#include "core/view/file_strips.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::view {
namespace {

// A file with tensors of one byte an element at these places.
struct Place {
  std::uint64_t offset = 0, bytes = 0;
};
graph::MetaGraph file_of(std::uint64_t bytes, const std::vector<Place>& places) {
  graph::MetaGraph graph;
  graph.format = "safetensors";
  graph.files = {{"model.bin", bytes}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto storage =
        graph.add_storage(graph::plain_storage(graph::FileId{0}, places[i].offset, places[i].bytes));
    graph.tensors.push_back(
        {graph::Name(fmt::format("t{}", i)), graph::DType::u8, graph::Shape({places[i].bytes}), {}, storage});
  }
  return graph;
}

std::string kinds(const FileStrip& strip) {
  std::string words;
  for (const StripPart& part : strip.parts) words += "htaHrx"[static_cast<std::size_t>(part.kind)];
  return words;
}

void expect_whole(const FileStrip& strip) {
  std::uint64_t at = 0;
  for (const StripPart& part : strip.parts) {
    EXPECT_EQ(part.offset, at);
    EXPECT_GT(part.bytes, 0u);
    at += part.bytes;
  }
  EXPECT_EQ(at, strip.bytes);
}

TEST(FileStrips, name_what_lies_between_tensors) {
  // all tensors begin at multiples of 32
  const graph::MetaGraph graph = file_of(1000, {{64, 30}, {96, 100}, {320, 60}, {384, 600}});
  const FileStrip strip = file_strips(graph).front();
  EXPECT_EQ(kinds(strip), "htatHtatx");
  expect_whole(strip);
  EXPECT_EQ(strip.tensors, 4u);
  EXPECT_EQ(strip.holes, 1u);
  EXPECT_EQ(strip.hole_bytes, 124u);
  EXPECT_EQ(strip.alignments, 2u);
  EXPECT_EQ(strip.alignment_bytes, 2u + 4u);
}

TEST(FileStrips, call_what_describes_the_tensors_no_hole) {
  graph::MetaGraph graph = file_of(1000, {{64, 30}, {96, 100}, {320, 60}, {384, 600}});
  graph.format = "torch";
  const FileStrip strip = file_strips(graph).front();
  EXPECT_EQ(kinds(strip), "htatrtatx");
  EXPECT_EQ(strip.holes, 0u);
}

TEST(FileStrips, hold_every_byte_once_whatever_ties_and_views_there_are) {
  graph::MetaGraph graph = file_of(500, {{100, 200}, {100, 200}, {300, 50}});
  graph.tensors.push_back(
      {graph::Name("view"), graph::DType::u8, graph::Shape({50}), {}, graph::StorageId{0}, 20});
  graph.tensors.push_back({graph::Name("none"),
                           graph::DType::u8,
                           graph::Shape({7}),
                           {},
                           graph.add_storage(graph::shapes_only_storage(7))});
  const FileStrip strip = file_strips(graph).front();
  EXPECT_EQ(kinds(strip), "httx");
  expect_whole(strip);
  EXPECT_EQ(strip.parts[1].tensor, graph::TensorId{0}) << "the first of a tie";
  EXPECT_EQ(*file_range(graph, graph::TensorId{3}), (FileRange{graph::FileId{0}, 120, 50}));
  EXPECT_FALSE(file_range(graph, graph::TensorId{4}));
  EXPECT_EQ(kinds(file_strips(file_of(80, {})).front()), "h") << "a file without tensors";
}

TEST(FileStrips, keep_the_order_of_the_file_and_not_of_the_names) {
  const graph::MetaGraph graph = file_of(300, {{200, 100}, {100, 100}});
  const FileStrip strip = file_strips(graph).front();
  EXPECT_EQ(strip.parts[1].tensor, graph::TensorId{1});
  EXPECT_EQ(strip.parts[2].tensor, graph::TensorId{0});
}

TEST(FileStrips, find_the_part_of_every_byte) {
  const FileStrip strip = file_strips(file_of(1000, {{64, 30}, {96, 100}, {320, 60}, {384, 600}})).front();
  for (std::uint64_t byte = 0; byte < strip.bytes; ++byte) {
    const StripPart& part = strip.parts[part_at(strip, byte)];
    ASSERT_TRUE(byte >= part.offset && byte < part.offset + part.bytes) << byte;
  }
  EXPECT_EQ(part_at(strip, 1000), strip.parts.size());
}

// --- Lines and tiles.

graph::MetaGraph random_files(std::size_t files, std::size_t tensors, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> sizes(8, 3);
  graph::MetaGraph graph;
  for (std::uint32_t file = 0; file < files; ++file) {
    std::uint64_t at = 500;
    for (std::size_t i = 0; i < tensors / files; ++i) {
      const auto bytes = static_cast<std::uint64_t>(sizes(random)) + 1;
      const auto storage = graph.add_storage(graph::plain_storage(graph::FileId{file}, at, bytes));
      graph.tensors.push_back(
          {graph::Name(fmt::format("{}.{}", file, i)), graph::DType::u8, graph::Shape({bytes}), {}, storage});
      at += bytes + (i % 7 == 0 ? 300 : 0);
    }
    graph.files.push_back({fmt::format("{}.bin", file), at});
  }
  return graph;
}

TEST(StripLines, fill_the_room_and_no_more) {
  for (const std::size_t files : {1u, 3u, 10u}) {
    const auto strips = file_strips(random_files(files, 300, 5));
    const StripOptions options = {.width = 800, .room = 600};
    const StripLines lines = lay_out_strips(strips, options, 1);
    EXPECT_LE(lines.height(), options.room);
    EXPECT_GT(lines.height(), options.room / 2);
    const StripLines closer = lay_out_strips(strips, options, 4);
    EXPECT_LT(closer.bytes_per_line, lines.bytes_per_line / 3);
    EXPECT_GT(closer.height(), lines.height());
  }
  // each file has a line, even where they have no room
  const auto many = file_strips(random_files(40, 300, 5));
  const StripLines lines = lay_out_strips(many, {.width = 800, .room = 300}, 1);
  for (const FileStrip& strip : many) EXPECT_EQ(lines.lines(strip), 1u);
  EXPECT_LE(lay_out_strips(many, {.width = 800, .room = 300, .most_height = 9000}, 1e9).height(), 9000);
}

TEST(StripTiles, stand_where_their_bytes_are_and_none_is_too_narrow) {
  const auto strips = file_strips(random_files(2, 3000, 9));
  for (const double zoom : {1.0, 8.0, 200.0}) {
    const StripLines lines = lay_out_strips(strips, {.width = 640, .room = 500}, zoom);
    for (std::size_t at = 0; at < strips.size(); ++at) {
      const FileStrip& strip = strips[at];
      std::map<double, double> ends;  // by line: how far its tiles reach
      std::vector<std::size_t> drawn(strip.parts.size(), 0);
      for (const StripTile& tile : strip_tiles(strip, at, lines, 0, lines.height())) {
        double& end = ends[tile.rect.y];
        EXPECT_NEAR(tile.rect.x, end, 1e-6) << "no gap, no overlap";
        end = tile.rect.x + tile.rect.w;
        const bool whole_line = tile.rect.x == 0 && end < lines.options.width;
        if (!whole_line) EXPECT_GE(tile.rect.w, lines.options.least - 1e-6);
        for (std::size_t i = tile.first; i < tile.first + tile.count; ++i) ++drawn[i];
        EXPECT_TRUE(tile.largest >= tile.first && tile.largest < tile.first + tile.count);
        // its middle lies at most the width of two narrow tiles from its bytes
        const auto spot = strip_spot(strips, lines, tile.rect.x + tile.rect.w / 2, tile.rect.y + 1);
        if (!spot) continue;
        const std::uint64_t slack =
            static_cast<std::uint64_t>(6 * static_cast<double>(lines.bytes_per_line) / 640);
        EXPECT_GE(spot->byte + slack, strip.parts[tile.first].offset);
        const StripPart& last = strip.parts[tile.first + tile.count - 1];
        EXPECT_LE(spot->byte, last.offset + last.bytes + slack);
      }
      EXPECT_EQ(ends.size(), lines.lines(strip));
      EXPECT_TRUE(std::ranges::all_of(drawn, [](std::size_t times) { return times > 0; }))
          << "nothing is left out";
    }
  }
}

TEST(StripTiles, show_a_hole_however_narrow) {
  const FileStrip strip = file_strips(file_of(3'000'000, {{0, 1'000'000}, {1'000'500, 1'999'000}})).front();
  const StripLines lines = lay_out_strips(std::vector{strip}, {.width = 600, .room = 60}, 1);
  std::size_t holes = 0;
  for (const StripTile& tile : strip_tiles(strip, 0, lines, 0, lines.height())) holes += tile.holes ? 1 : 0;
  EXPECT_EQ(holes, 1u);
}

TEST(StripTiles, are_those_in_sight_alone) {
  const auto strips = file_strips(random_files(1, 2000, 3));
  const StripLines lines = lay_out_strips(strips, {.width = 640, .room = 500}, 50);
  const auto all = strip_tiles(strips[0], 0, lines, 0, lines.height());
  const double low = lines.height() / 2, high = low + 200;
  const auto some = strip_tiles(strips[0], 0, lines, low, high);
  ASSERT_FALSE(some.empty());
  EXPECT_LT(some.size(), all.size() / 3);
  for (const StripTile& tile : some)
    EXPECT_TRUE(tile.rect.y < high && tile.rect.y + lines.options.line + lines.options.gap > low);
  EXPECT_EQ(std::ranges::count_if(all,
                                  [&](const StripTile& t) {
                                    return t.rect.y < high &&
                                           t.rect.y + lines.options.line + lines.options.gap > low;
                                  }),
            static_cast<std::ptrdiff_t>(some.size()));
}

TEST(StripPlaces, cover_a_range_line_by_line) {
  const auto strips = file_strips(file_of(1'000'000, {{1000, 900'000}}));
  const StripLines lines = lay_out_strips(strips, {.width = 500, .room = 400}, 1);
  const auto places = strip_places(strips[0], 0, lines, 1000, 900'000, 0, lines.height());
  double width = 0;
  for (const Rect& place : places) width += place.w;
  EXPECT_NEAR(width, 900'000.0 / static_cast<double>(lines.bytes_per_line) * 500, 4);
  const auto first = strip_spot(strips, lines, places.front().x + 0.01, places.front().y + 1);
  ASSERT_TRUE(first);
  EXPECT_NEAR(static_cast<double>(first->byte), 1000, static_cast<double>(lines.bytes_per_line) / 500 + 1);
  EXPECT_EQ(strip_places(strips[0], 0, lines, 5, 1, 0, lines.height()).front().w, lines.options.least);
  EXPECT_TRUE(strip_places(strips[0], 0, lines, 2'000'000, 1, 0, lines.height()).empty());
}

}  // namespace
}  // namespace loadline::view
