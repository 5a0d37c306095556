// The innermost loop of the search. 32-bit numbers use vector instructions, compiled for each instruction set
// that Highway supports; 64-bit numbers use plain loops.
#include "core/packing/skyline.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/packing/section_stack.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::packing {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

// The boxes that start above a level: the sum of their sizes, and their lowest start.
struct Above {
  std::int32_t sizes = 0;
  std::int32_t next = kNone;
};

Above above(std::int32_t level, const std::int32_t* starts, const std::int32_t* sizes, std::size_t count) {
  const hn::ScalableTag<std::int32_t> d;
  const auto limit = hn::Set(d, level);
  auto sum = hn::Zero(d), next = hn::Set(d, kNone);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto start = hn::LoadU(d, starts + i);
    const auto higher = hn::Gt(start, limit);
    sum = hn::Add(sum, hn::IfThenElseZero(higher, hn::LoadU(d, sizes + i)));
    next = hn::Min(next, hn::IfThenElse(higher, start, hn::Set(d, kNone)));
  }
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::MinOfLanes(d, next))};
}

}  // namespace

SectionStack<std::int32_t> stack32(const std::int32_t* starts, const std::uint32_t* ids,
                                   const std::int32_t* sizes, std::size_t count, std::int32_t* scratch) {
  const hn::ScalableTag<std::int32_t> d;
  auto lowest = hn::Set(d, kNone), all = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto valid = hn::FirstN(d, count - i);
    const auto at = hn::IfThenElseZero(valid, hn::LoadU(d, reinterpret_cast<const std::int32_t*>(ids + i)));
    const auto start = hn::GatherIndex(d, starts, at);
    lowest = hn::Min(lowest, hn::IfThenElse(valid, start, hn::Set(d, kNone)));
    all = hn::Add(all, hn::IfThenElseZero(valid, hn::LoadU(d, sizes + i)));
    // elements past the end lie below every level
    hn::StoreU(hn::IfThenElse(valid, start, hn::Set(d, -1)), d, scratch + i);
  }
  SectionStack<std::int32_t> stack;
  stack.floor = hn::GetLane(hn::MinOfLanes(d, lowest));
  stack.total = hn::GetLane(hn::SumOfLanes(d, all));
  stack.top = stack.floor + stack.total;
  const auto floor = hn::Set(d, stack.floor);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    stack.on_floor += static_cast<std::uint32_t>(hn::CountTrue(d, hn::Eq(hn::LoadU(d, scratch + i), floor)));
  if (stack.on_floor == count) return stack;
  for (Above rest = above(stack.floor, scratch, sizes, count); rest.sizes > 0;
       rest = above(rest.next, scratch, sizes, count))
    stack.top = std::max(stack.top, rest.next + rest.sizes);
  return stack;
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::packing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::packing {

HWY_EXPORT(stack32);

SectionStack<std::int32_t> stack_section(const std::int32_t* starts, const std::uint32_t* ids,
                                         const std::int32_t* sizes, std::size_t count,
                                         std::int32_t* scratch) {
  return HWY_DYNAMIC_DISPATCH(stack32)(starts, ids, sizes, count, scratch);
}

SectionStack<std::int64_t> stack_section(const std::int64_t* starts, const std::uint32_t* ids,
                                         const std::int64_t* sizes, std::size_t count,
                                         std::int64_t* scratch) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  SectionStack<std::int64_t> stack;
  std::int64_t floor = kFar, all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    scratch[i] = starts[ids[i]];
    floor = std::min(floor, scratch[i]);
    all += sizes[i];
  }
  stack.floor = floor;
  stack.total = all;
  stack.top = floor + all;
  stack.on_floor = static_cast<std::uint32_t>(std::count(scratch, scratch + count, floor));
  for (std::int64_t level = floor;;) {
    std::int64_t sum = 0, next = kFar;
    for (std::size_t i = 0; i < count; ++i) {
      if (scratch[i] <= level) continue;
      sum += sizes[i];
      next = std::min(next, scratch[i]);
    }
    if (sum == 0) return stack;
    stack.top = std::max(stack.top, next + sum);
    level = next;
  }
}

}  // namespace loadline::packing
#endif  // HWY_ONCE
