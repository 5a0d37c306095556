// Checks a problem before anything is computed from it.
#include "core/packing/problem.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

namespace loadline::packing {
namespace {

template <typename... Values>
[[noreturn]] void refuse(ErrorCode code, const Problem& problem, std::size_t buffer,
                         fmt::format_string<Values...> what, const Values&... values) {
  throw Error(code, "buffer '{}': {}", safe_display(problem.id_of(buffer)),
              fmt::vformat(what, fmt::make_format_args(values...)));
}

void check_lifetime(const Problem& problem, std::size_t at) {
  const Buffer& buffer = problem.buffers[at];
  const auto code = ErrorCode::malformed;
  if (buffer.lower > buffer.upper)
    refuse(code, problem, at, "its lifetime begins at {} and ends at {}", buffer.lower, buffer.upper);
  std::uint64_t from = buffer.lower;
  for (const Lifespan& gap : buffer.gaps) {
    if (gap.lower > gap.upper)
      refuse(code, problem, at, "a gap begins at {} and ends at {}", gap.lower, gap.upper);
    if (gap.lower < from || gap.upper > buffer.upper)
      refuse(code, problem, at, "gap {}-{} is not in what is left of its lifetime, {}-{}", gap.lower,
             gap.upper, from, buffer.upper);
    from = gap.upper;
  }
}

void check_place(const Problem& problem, std::size_t at) {
  const Buffer& buffer = problem.buffers[at];
  const auto code = ErrorCode::malformed;
  if (buffer.alignment == 0) refuse(code, problem, at, "alignment 0");
  if (buffer.alignment > kHighestPacking)
    refuse(code, problem, at, "alignment {} is over the limit of 2^62", buffer.alignment);
  if (!buffer.offset) return;
  if (*buffer.offset % buffer.alignment != 0)
    refuse(code, problem, at, "pinned offset {} is not a multiple of its alignment {}", *buffer.offset,
           buffer.alignment);
  const auto end = checked_add(*buffer.offset, buffer.size);
  if (!end || *end > kHighestPacking)
    refuse(code, problem, at, "pinned offset {} and size {} end past 2^62", *buffer.offset, buffer.size);
}

void check_groups(const Problem& problem) {
  std::map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.group == kNoGroup) continue;
    const std::size_t j = first.emplace(buffer.group, i).first->second;
    const Buffer& other = problem.buffers[j];
    if (other.arena != buffer.arena)
      refuse(ErrorCode::malformed, problem, i, "in arena {}, and '{}' of its group in {}", buffer.arena,
             safe_display(problem.id_of(j)), other.arena);
    if (other.offset != buffer.offset)
      refuse(ErrorCode::malformed, problem, i, "not pinned as '{}' of its group is",
             safe_display(problem.id_of(j)));
  }
}

}  // namespace

std::string Problem::id_of(std::size_t buffer) const {
  return buffer < ids.size() ? ids[buffer] : std::to_string(buffer);
}

std::uint32_t arena_count(const Problem& problem) {
  std::uint32_t arenas = 1;
  for (const Buffer& buffer : problem.buffers) arenas = std::max(arenas, buffer.arena + 1);
  return arenas;
}

bool lives(const Buffer& buffer) {
  bool found = false;
  each_alive(buffer, [&](std::uint64_t, std::uint64_t) { found = buffer.size > 0; });
  return found;
}

const Buffer* highest_pin(const Problem& problem, std::uint32_t arena) {
  const Buffer* highest = nullptr;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.arena != arena || !buffer.offset || !lives(buffer)) continue;
    if (!highest || *buffer.offset + buffer.size > *highest->offset + highest->size) highest = &buffer;
  }
  return highest;
}

void check_problem(const Problem& problem) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].arena >= kMostPackingArenas)
      refuse(ErrorCode::limit, problem, i, "arena {} is over the limit of {}", problem.buffers[i].arena,
             kMostPackingArenas - 1);
    check_lifetime(problem, i);
    check_place(problem, i);
    if (problem.buffers[i].size > kHighestPacking)
      refuse(ErrorCode::limit, problem, i, "size {} is over the limit of 2^62", problem.buffers[i].size);
  }
  check_groups(problem);
}

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"feasible", "infeasible", "undecided"};
  return kNames[static_cast<std::size_t>(verdict)];
}

double percent_over(std::uint64_t height, std::uint64_t bound) {
  if (bound == 0) return 0;
  return 100 * (static_cast<double>(height) - static_cast<double>(bound)) / static_cast<double>(bound);
}

}  // namespace loadline::packing
