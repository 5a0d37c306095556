// Reduces a problem to boxes over sections: removes details that do not matter to the search and splits it
// into independent components.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/section_model.h"

#include <cstdint>
#include <vector>

namespace loadline {

// Time is reduced to sections: the stretches of ticks whose set of living buffers is not contained in a
// neighbouring stretch's set. Where no buffer lives across the border of two stretches, two components share
// the arena and nothing else. Buffers of a group become one box. Gaps in a lifetime split a box into ranges.
// Pinned buffers become obstacles, cut to each component. Sizes count in units: the greatest common divisor
// of all sizes, obstacle offsets and needed alignments. Alignments that every multiple of the unit satisfies
// are removed.
struct PackingComponent {
  SectionModel model = {};           // in units
  std::uint64_t unit = 1;            // bytes
  std::vector<Lifespan> ticks = {};  // by section; in this time all its buffers are alive
};

struct NormalForm {
  static constexpr std::uint32_t kNoBox = UINT32_MAX;
  struct Place {
    std::uint32_t component = 0;
    std::uint32_t box = kNoBox;  // none for pinned buffers and buffers never alive
  };
  std::vector<PackingComponent> components = {};
  std::vector<Place> places = {};  // by buffer
};

// The normal form of one arena's buffers. The problem must have passed check_problem. Throws Error{limit} if
// the boxes over a section need 2^62 bytes or more, or a group has no common alignment below that;
// Error{malformed} if pinned buffers overlap each other.
NormalForm normal_form(const Problem& problem, std::uint32_t arena = 0);

}  // namespace loadline
