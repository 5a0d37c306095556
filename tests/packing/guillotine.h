// Zero-slack packing problems of which one solution is known.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace loadline::tests {

inline constexpr std::uint64_t kGuillotineCapacity = 1048576;

// A square of that height, cut again and again from side to side.
inline packing::Problem guillotine(std::size_t count, std::uint64_t seed) {
  struct Rect {
    std::uint64_t left, right, low, high;
  };
  constexpr std::uint64_t kTicks = 1 << 20, kHeight = 1024;
  packing::MixedSequence random(seed);
  std::vector<Rect> rects = {{0, kTicks, 0, kHeight}};
  while (rects.size() < count) {
    const std::size_t at = random.below(rects.size());
    Rect rect = rects[at];
    const double width = static_cast<double>(rect.right - rect.left) / kTicks;
    const double height = static_cast<double>(rect.high - rect.low) / kHeight;
    if (random.fraction() < width / (width + height)) {
      if (rect.right - rect.left < 2) continue;
      const std::uint64_t cut = rect.left + 1 + random.below(rect.right - rect.left - 1);
      rects[at].right = rect.left = cut;
    } else {
      if (rect.high - rect.low < 2) continue;
      const std::uint64_t cut = rect.low + 1 + random.below(rect.high - rect.low - 1);
      rects[at].high = rect.low = cut;
    }
    rects.push_back(rect);
  }
  for (std::size_t i = rects.size(); i > 1; --i) std::swap(rects[i - 1], rects[random.below(i)]);
  packing::Problem problem;
  for (const Rect& r : rects)
    problem.buffers.push_back(
        {.lower = r.left, .upper = r.right, .size = (r.high - r.low) * (kGuillotineCapacity / kHeight)});
  return problem;
}

}  // namespace loadline::tests
