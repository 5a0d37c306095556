// Small problems with every feature, by seed.
#pragma once

#include "core/packing/mix.h"
#include "core/packing/problem.h"
#include "core/packing/validator.h"

namespace loadline {

struct ProblemShape {
  std::uint64_t buffers = 8;
  std::uint64_t ticks = 8;
  std::uint64_t most_size = 5;
  bool alignments = false;
  bool pins = false;
  bool gaps = false;
  bool groups = false;
};

inline Problem random_problem(const ProblemShape& shape, std::uint64_t seed) {
  MixedSequence random(seed);
  Problem problem;
  const std::uint64_t count = 1 + random.below(shape.buffers);
  for (std::uint64_t i = 0; i < count; ++i) {
    Buffer buffer;
    buffer.lower = random.below(shape.ticks);
    buffer.upper = buffer.lower + 1 + random.below(shape.ticks - buffer.lower);
    buffer.size = 1 + random.below(shape.most_size);
    if (shape.alignments) buffer.alignment = std::uint64_t{1} << random.below(3);
    if (shape.gaps && buffer.upper - buffer.lower >= 3 && random.below(2) == 0) {
      const std::uint64_t from = buffer.lower + 1 + random.below(buffer.upper - buffer.lower - 2);
      buffer.gaps.push_back({from, from + 1 + random.below(buffer.upper - from - 1)});
    }
    if (shape.groups && random.below(3) == 0) buffer.group = static_cast<std::uint32_t>(random.below(2));
    problem.buffers.push_back(buffer);
  }
  if (!shape.pins) return problem;
  for (Buffer& buffer : problem.buffers) {
    if (random.below(3) != 0 || buffer.group != kNoGroup) continue;
    buffer.offset = random.below(6) * buffer.alignment;
    for (const Buffer& other : problem.buffers)
      if (&other != &buffer && other.offset && alive_together(buffer, other) &&
          *buffer.offset < *other.offset + other.size && *other.offset < *buffer.offset + buffer.size) {
        buffer.offset.reset();
        break;
      }
  }
  return problem;
}

}  // namespace loadline
