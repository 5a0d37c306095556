// A problem as boxes over sections: what does not matter to the search is taken out, what falls apart is
// taken apart.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/section_model.h"

#include <cstdint>
#include <vector>

namespace loadline {

// Time shrinks to sections: the stretches in which the set of living buffers is not contained in a
// neighbour's. Where nobody lives on from one stretch to the next, two components share the arena and
// nothing else. Buffers of a group become one box, gaps part a box into ranges, pinned buffers are obstacles
// (cut to each component), and bytes are counted in units: the greatest common divisor of all that has to be
// kept apart. Alignments that every multiple of the unit keeps are gone.
struct PackingComponent {
  SectionModel model = {};           // in units
  std::uint64_t unit = 1;            // bytes
  std::vector<Lifespan> ticks = {};  // by section; within it everybody of the section is alive
};

struct NormalForm {
  static constexpr std::uint32_t kNoBox = UINT32_MAX;
  struct Place {
    std::uint32_t component = 0;
    std::uint32_t box = kNoBox;  // pinned buffers and those that are never alive have none
  };
  std::vector<PackingComponent> components = {};
  std::vector<Place> places = {};  // by buffer
};

// Of the buffers of one arena. The problem must have passed check_problem. Throws Error{limit} where the
// boxes over a section need 2^62 bytes or more, or a group has no common alignment below that;
// Error{malformed} where pinned buffers overlap each other.
NormalForm normal_form(const Problem& problem, std::uint32_t arena = 0);

}  // namespace loadline
