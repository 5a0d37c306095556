// Checks a problem before anything is computed from it.
#include "core/packing/problem.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

[[noreturn]] void refuse(const Problem& problem, std::size_t buffer, std::string_view what) {
  throw Error(ErrorCode::malformed, "buffer '{}': {}", safe_display(problem.id_of(buffer)), what);
}

void check_lifetime(const Problem& problem, std::size_t at) {
  const Buffer& buffer = problem.buffers[at];
  if (buffer.lower > buffer.upper)
    refuse(problem, at, fmt::format("its lifetime begins at {} and ends at {}", buffer.lower, buffer.upper));
  std::uint64_t from = buffer.lower;
  for (const Lifespan& gap : buffer.gaps) {
    if (gap.lower > gap.upper)
      refuse(problem, at, fmt::format("a gap begins at {} and ends at {}", gap.lower, gap.upper));
    if (gap.lower < from || gap.upper > buffer.upper)
      refuse(problem, at,
             fmt::format("gap {}-{} is not in what is left of its lifetime, {}-{}", gap.lower, gap.upper,
                         from, buffer.upper));
    from = gap.upper;
  }
}

void check_place(const Problem& problem, std::size_t at) {
  const Buffer& buffer = problem.buffers[at];
  if (buffer.alignment == 0) refuse(problem, at, "alignment 0");
  if (buffer.alignment > kMostBytes)
    refuse(problem, at, fmt::format("alignment {} is over the limit of 2^62", buffer.alignment));
  if (!buffer.offset) return;
  if (*buffer.offset % buffer.alignment != 0)
    refuse(
        problem, at,
        fmt::format("pinned offset {} is no multiple of its alignment {}", *buffer.offset, buffer.alignment));
  const auto end = checked_add(*buffer.offset, buffer.size);
  if (!end || *end > kMostBytes)
    refuse(problem, at,
           fmt::format("pinned offset {} and size {} end past 2^62", *buffer.offset, buffer.size));
}

void check_groups(const Problem& problem) {
  std::map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.group == kNoGroup) continue;
    const auto [entry, is_new] = first.emplace(buffer.group, i);
    if (is_new) continue;
    const Buffer& other = problem.buffers[entry->second];
    if (other.arena != buffer.arena)
      refuse(problem, i,
             fmt::format("in arena {}, and '{}' of its group in {}", buffer.arena,
                         safe_display(problem.id_of(entry->second)), other.arena));
    if (other.offset != buffer.offset)
      refuse(problem, i,
             fmt::format("not pinned as '{}' of its group is", safe_display(problem.id_of(entry->second))));
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

void check_problem(const Problem& problem) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].arena >= kMostPackingArenas)
      throw Error(ErrorCode::limit, "buffer '{}': arena {} is over the limit of {}",
                  safe_display(problem.id_of(i)), problem.buffers[i].arena, kMostPackingArenas - 1);
    check_lifetime(problem, i);
    check_place(problem, i);
    if (problem.buffers[i].size > kMostBytes)
      throw Error(ErrorCode::limit, "buffer '{}': size {} is over the limit of 2^62",
                  safe_display(problem.id_of(i)), problem.buffers[i].size);
  }
  check_groups(problem);
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::feasible:
      return "feasible";
    case Verdict::infeasible:
      return "infeasible";
    case Verdict::undecided:
      break;
  }
  return "undecided";
}

double percent_over(std::uint64_t height, std::uint64_t bound) {
  if (bound == 0) return 0;
  return 100 * (static_cast<double>(height) - static_cast<double>(bound)) / static_cast<double>(bound);
}

}  // namespace loadline
