// Pair by pair.
#include "core/packing/validator.h"

#include "core/base/checked.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

// The tick at or after `tick` at which the buffer is alive.
std::optional<std::uint64_t> alive_from(const Buffer& buffer, std::uint64_t tick) {
  tick = std::max(tick, buffer.lower);
  for (const Lifespan& gap : buffer.gaps)
    if (gap.lower <= tick && tick < gap.upper) tick = gap.upper;
  if (tick >= buffer.upper) return std::nullopt;
  return tick;
}

bool same_group(const Buffer& a, const Buffer& b) { return a.group != kNoGroup && a.group == b.group; }

}  // namespace

bool alive_together(const Buffer& a, const Buffer& b) {
  std::optional<std::uint64_t> tick = 0;
  while (true) {
    const auto x = alive_from(a, *tick);
    if (!x) return false;
    const auto y = alive_from(b, *x);
    if (!y) return false;
    if (*x == *y) return true;
    tick = y;
  }
}

std::optional<std::string> find_fault(const Problem& problem, std::span<const std::uint64_t> offsets,
                                      std::span<const std::optional<std::uint64_t>> capacity) {
  const std::vector<Buffer>& buffers = problem.buffers;
  if (offsets.size() != buffers.size())
    return fmt::format("{} offsets for {} buffers", offsets.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (offsets[i] % buffer.alignment != 0)
      return fmt::format("buffer {} at {}, not a multiple of {}", i, offsets[i], buffer.alignment);
    if (buffer.offset && *buffer.offset != offsets[i])
      return fmt::format("buffer {} at {}, pinned to {}", i, offsets[i], *buffer.offset);
    const auto end = checked_add(offsets[i], buffer.size);
    if (!end) return fmt::format("buffer {} at {} wraps", i, offsets[i]);
    const auto limit = buffer.arena < capacity.size() ? capacity[buffer.arena] : std::nullopt;
    if (limit && buffer.size > 0 && *end > *limit && alive_together(buffer, buffer))
      return fmt::format("buffer {} ends at {}, past {}", i, *end, *limit);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer &a = buffers[i], &b = buffers[j];
      if (same_group(a, b)) {
        if (offsets[i] != offsets[j])
          return fmt::format("buffers {} and {} of a group at {} and {}", j, i, offsets[j], offsets[i]);
        continue;
      }
      if (a.arena != b.arena || a.size == 0 || b.size == 0) continue;
      if (offsets[i] + a.size <= offsets[j] || offsets[j] + b.size <= offsets[i]) continue;
      if (alive_together(a, b))
        return fmt::format("buffers {} at {} and {} at {} share bytes", j, offsets[j], i, offsets[i]);
    }
  return std::nullopt;
}

}  // namespace loadline
