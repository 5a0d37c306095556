// The streamer's arithmetic.
#include "core/load/methods/runai_buffers.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr std::uint64_t kMostRequests = 18;

std::uint64_t requests_of(std::span<const std::uint64_t> sizes, std::uint64_t most) {
  std::uint64_t count = 0, filled = most;
  for (const std::uint64_t bytes : sizes) {
    if (filled >= most || bytes > most - filled) ++count, filled = 0;
    filled += bytes;
  }
  return count;
}

}  // namespace

RunaiBuffers runai_buffers(std::span<const std::uint64_t> sizes, std::uint64_t limit) {
  std::uint64_t all = 0, largest = 0;
  for (const std::uint64_t bytes : sizes) all += bytes, largest = std::max(largest, bytes);
  if (all == 0) return {};
  const std::uint64_t budget = std::min(limit, all);
  std::uint64_t bytes = std::max(largest, budget / kMostRequests);
  if (all >= limit) return {bytes, std::clamp<std::uint64_t>(budget / bytes, 1, kMostRequests)};
  // the smallest requests of which there are at most 18, and at most an 18th of the limit
  std::uint64_t high = std::max(bytes, limit / kMostRequests);
  while (bytes < high) {
    const std::uint64_t middle = bytes + (high - bytes) / 2;
    if (requests_of(sizes, middle) <= kMostRequests)
      high = middle;
    else
      bytes = middle + 1;
  }
  return {bytes, requests_of(sizes, bytes)};
}

}  // namespace loadline
