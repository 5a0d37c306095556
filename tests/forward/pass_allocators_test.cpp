// What allocators make of values that come and go, against plain searches.
#include "core/forward/pass/lifetimes.h"
#include "tests/forward/graph_builder.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::Builder;

TEST(PassAllocators, APatternIsOneBufferBesideInputsAndOutputs) {
  const auto of = [](std::int64_t floats) { return Builder::Sizes{SizePoly(floats)}; };
  Builder builder;  // a and b at once, then c at a's place and d behind b, until the output is made
  builder.op("Make", {"x"}, "a", of(100)).op("Make", {"a"}, "b", of(65)).op("Make", {"b"}, "c", of(120));
  builder.op("Join", {"b", "c"}, "d", of(1)).op("Make", {"d"}, "y", of(50)).returns({"y"});
  const ForwardGraph& graph = builder.graph();
  const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  // 400 bytes take 512, as do 260 and 480; 4 take 256
  EXPECT_EQ(reserved_bytes(allocations_of(graph, lifetimes(graph), sizes), AllocatorModel::onnxruntime),
            4000u + 512 + 512 + 256);
  EXPECT_EQ(reserved_bytes(allocations_of(graph, lifetimes(graph), sizes), AllocatorModel::exact),
            4000u + 400);
}

// The smallest hole that takes it, the last of equals, and the end only if none does: against a plain
// search.
TEST(PassAllocators, BestFitAgreesWithAPlainSearch) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    for (int i = 0; i < 60; ++i) {
      const std::string from = names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 9)];
      names.push_back(fmt::format("v{}", i));
      builder.op("Make", {from, names[names.size() - 2]}, names.back(),
                 Builder::Sizes{SizePoly(8 * static_cast<std::int64_t>(1 + random() % 40))});
    }
    const ForwardGraph& graph = builder.graph();
    const auto lives = lifetimes(graph);
    const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
    struct Block {
      std::uint64_t begin, end;
      std::uint32_t until;
    };
    std::vector<Block> blocks;  // by offset
    std::uint64_t most = 0;
    for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
      for (std::size_t value = 0; value < lives.size(); ++value) {
        if (lives[value].empty() || lives[value].first != op) continue;
        const std::uint64_t bytes = *sizes[value];
        std::uint64_t at = blocks.empty() ? 0 : blocks.back().end, waste = UINT64_MAX, free_from = 0;
        for (const Block& block : blocks) {
          const std::uint64_t gap = block.begin - free_from;
          if (gap >= bytes && gap - bytes <= waste) {
            waste = gap - bytes;
            at = free_from;
          }
          free_from = block.end;
        }
        blocks.push_back({at, at + bytes, lives[value].end});
        std::sort(blocks.begin(), blocks.end(),
                  [](const Block& a, const Block& b) { return a.begin < b.begin; });
        most = std::max(most, blocks.back().end);
      }
      std::erase_if(blocks, [&](const Block& block) { return block.until == op + 1; });
    }
    EXPECT_EQ(reserved_bytes(allocations_of(graph, lives, sizes), AllocatorModel::ggml), most);
  }
}

// PyTorch's blocks, each segment a row of pieces that are searched one after the other.
TEST(PassAllocators, TorchAgreesWithAPlainSearch) {
  constexpr std::uint64_t kKi = 1 << 10, kMi = 1 << 20;
  struct Piece {
    std::uint64_t bytes;
    std::uint32_t until;  // 0: free
  };
  struct Segment {
    bool small;
    std::vector<Piece> pieces;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    for (int i = 0; i < 80; ++i) {
      const std::string from = names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 12)];
      names.push_back(fmt::format("v{}", i));
      const std::int64_t unit = random() % 2 == 0 ? 100 : 100'000;  // floats: either pool
      builder.op("Make", {from, names[names.size() - 2]}, names.back(),
                 Builder::Sizes{SizePoly(unit * static_cast<std::int64_t>(1 + random() % 30))});
    }
    const ForwardGraph& graph = builder.graph();
    const auto lives = lifetimes(graph);
    const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
    std::vector<Segment> segments;
    std::uint64_t reserved = 0;
    const auto place = [&](std::uint64_t asked, std::uint32_t until) {
      const std::uint64_t bytes = (asked + 511) / 512 * 512;
      const bool small = bytes <= kMi;
      Segment* in = nullptr;
      std::size_t best = 0;
      for (Segment& segment : segments)
        for (std::size_t i = 0; segment.small == small && i < segment.pieces.size(); ++i)
          if (segment.pieces[i].until == 0 && segment.pieces[i].bytes >= bytes &&
              (in == nullptr || segment.pieces[i].bytes < in->pieces[best].bytes))
            in = &segment, best = i;
      if (in == nullptr) {
        const std::uint64_t whole = small              ? 2 * kMi
                                    : bytes < 10 * kMi ? 20 * kMi
                                                       : (bytes + 2 * kMi - 1) / (2 * kMi) * (2 * kMi);
        reserved += whole;
        segments.push_back({small, {{whole, 0}}});
        in = &segments.back();
        best = 0;
      }
      const std::uint64_t rest = in->pieces[best].bytes - bytes;
      in->pieces[best].until = until;
      if (small ? rest < kKi / 2 : rest <= kMi) return;
      in->pieces[best].bytes = bytes;
      in->pieces.insert(in->pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1, {rest, 0});
    };
    for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
      for (std::size_t value = 0; value < lives.size(); ++value)
        if (!lives[value].empty() && lives[value].first == op) place(*sizes[value], lives[value].end);
      for (Segment& segment : segments) {
        std::vector<Piece> joined;
        for (Piece piece : segment.pieces) {
          if (piece.until == op + 1) piece.until = 0;
          if (!joined.empty() && joined.back().until == 0 && piece.until == 0)
            joined.back().bytes += piece.bytes;
          else
            joined.push_back(piece);
        }
        segment.pieces = std::move(joined);
      }
    }
    EXPECT_EQ(reserved_bytes(allocations_of(graph, lives, sizes), AllocatorModel::torch), reserved);
  }
}

TEST(PassAllocators, ManyHolesTakeNoQuadraticTime) {
  Builder builder;  // every other value goes, then each of as many is too large for the holes
  constexpr int kMany = 60'000;
  std::vector<std::string> kept, gone;
  for (int i = 0; i < kMany; ++i) {
    auto& names = i % 2 == 0 ? kept : gone;
    names.push_back(fmt::format("v{}", i));
    builder.op("Make", {"x"}, names.back(), Builder::Sizes{SizePoly(8)});
  }
  builder.op("Join", gone, "all gone");
  for (int i = 0; i < kMany; ++i) {
    kept.push_back(fmt::format("w{}", i));
    builder.op("Make", {"x"}, kept.back(), Builder::Sizes{SizePoly(16)});
  }
  const ForwardGraph& graph = builder.op("Join", kept, "y").graph();
  const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  // a search of all holes for each would take 2 * 10^9 steps
  EXPECT_GT(reserved_bytes(allocations_of(graph, lifetimes(graph), sizes), AllocatorModel::ggml),
            60'000u * 64);
  EXPECT_GT(reserved_bytes(allocations_of(graph, lifetimes(graph), sizes), AllocatorModel::torch),
            60'000u * 512);
}

}  // namespace
}  // namespace loadline
