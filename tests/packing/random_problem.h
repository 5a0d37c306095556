// Small problems with every feature, by seed.
#pragma once

#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <algorithm>

namespace loadline::tests {

struct ProblemShape {
  std::uint64_t buffers = 8;
  std::uint64_t ticks = 8;
  std::uint64_t most_size = 5;
  bool alignments = false;
  bool pins = false;
  bool gaps = false;
  bool groups = false;
  bool pinned_groups = false;  // of the groups
  std::uint32_t arenas = 1;
  bool large = false;  // sizes of many gigabytes, mostly odd: 32 bits hold no offset, and no unit makes them
};

inline constexpr ProblemShape kEverything = {.buffers = 40,
                                             .ticks = 30,
                                             .most_size = 20,
                                             .alignments = true,
                                             .pins = true,
                                             .gaps = true,
                                             .groups = true};

// Whether it shares a byte with something else that is pinned.
inline bool pins_clash(const packing::Problem& problem, const packing::Buffer& buffer) {
  for (const packing::Buffer& other : problem.buffers) {
    const bool shares = buffer.group != packing::kNoGroup && other.group == buffer.group;
    if (&other != &buffer && !shares && buffer.offset && other.offset && other.arena == buffer.arena &&
        packing::alive_together(buffer, other) && *buffer.offset < *other.offset + other.size &&
        *other.offset < *buffer.offset + buffer.size)
      return true;
  }
  return false;
}

// Half of the groups, each where every alignment up to 4 is kept.
inline void pin_groups(packing::Problem& problem, packing::MixedSequence& random) {
  for (const packing::Buffer& first : problem.buffers) {
    if (first.group == packing::kNoGroup || first.offset || random.below(2) == 0) continue;
    const std::uint64_t offset = random.below(3) * 4;
    const std::uint32_t group = first.group;
    for (packing::Buffer& buffer : problem.buffers)
      if (buffer.group == group) buffer.offset = offset;
    const bool clash = std::any_of(
        problem.buffers.begin(), problem.buffers.end(),
        [&](const packing::Buffer& buffer) { return buffer.group == group && pins_clash(problem, buffer); });
    if (!clash) continue;
    for (packing::Buffer& buffer : problem.buffers)
      if (buffer.group == group) buffer.offset.reset();
  }
}

inline packing::Problem random_problem(const ProblemShape& shape, std::uint64_t seed) {
  packing::MixedSequence random(seed);
  packing::Problem problem;
  const std::uint64_t count = 1 + random.below(shape.buffers);
  for (std::uint64_t i = 0; i < count; ++i) {
    packing::Buffer buffer;
    buffer.lower = random.below(shape.ticks);
    buffer.upper = buffer.lower + 1 + random.below(shape.ticks - buffer.lower);
    buffer.size = 1 + random.below(shape.most_size);
    if (shape.alignments) buffer.alignment = std::uint64_t{1} << random.below(3);
    if (shape.gaps && buffer.upper - buffer.lower >= 3 && random.below(2) == 0) {
      const std::uint64_t from = buffer.lower + 1 + random.below(buffer.upper - buffer.lower - 2);
      buffer.gaps.push_back({from, from + 1 + random.below(buffer.upper - from - 1)});
    }
    if (shape.groups && random.below(3) == 0) buffer.group = static_cast<std::uint32_t>(random.below(2));
    if (shape.arenas > 1) buffer.arena = static_cast<std::uint32_t>(random.below(shape.arenas));
    if (shape.arenas > 1 && buffer.group != packing::kNoGroup)
      buffer.group = buffer.group * shape.arenas + buffer.arena;
    if (shape.large) buffer.size = (buffer.size << 40) + 2 * random.below(1000) + 1;
    problem.buffers.push_back(buffer);
  }
  if (shape.pinned_groups) pin_groups(problem, random);
  if (!shape.pins) return problem;
  for (packing::Buffer& buffer : problem.buffers) {
    if (random.below(3) != 0 || buffer.group != packing::kNoGroup) continue;
    buffer.offset = random.below(6) * buffer.alignment;
    if (pins_clash(problem, buffer)) buffer.offset.reset();
  }
  return problem;
}

}  // namespace loadline::tests
