// The least height at which the boxes over one section can be stacked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loadline {

// The state of a section while boxes are still to be placed over it. `floor`: the lowest start of any box.
// `on_floor`: how many boxes may start there. `top`: a lower bound for the height of a stack of all of them.
// This is the makespan of one machine with release dates: max over starts s of s + the sizes that start at s
// or later.
template <typename T>
struct SectionStack {
  T floor = 0;
  T total = 0;  // of all sizes
  T top = 0;
  std::uint32_t on_floor = 0;
};

// starts[ids[i]] >= 0 is the least offset of box i of `count` > 0, sizes[i] > 0 its size. The sum of all
// sizes and a start must fit in T. `scratch` has room for count + kStackPadding; up to kStackPadding elements
// past the end of `sizes` and `ids` may be read, but are not used.
inline constexpr std::size_t kStackPadding = 64;
SectionStack<std::int32_t> stack_section(const std::int32_t* starts, const std::uint32_t* ids,
                                         const std::int32_t* sizes, std::size_t count, std::int32_t* scratch);
SectionStack<std::int64_t> stack_section(const std::int64_t* starts, const std::uint32_t* ids,
                                         const std::int64_t* sizes, std::size_t count, std::int64_t* scratch);

}  // namespace loadline
