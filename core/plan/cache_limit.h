// What a small page cache costs a plan: pages that were dropped are read again.
#pragma once

#include "core/plan/timeline.h"

#include <cstdint>

namespace loadline {

struct CacheOutcome {
  std::uint64_t limit = 0;
  std::uint64_t mapped = 0;        // F: the peak of mapped pages without a limit
  std::uint64_t peak = 0;          // min(F, limit)
  std::uint64_t reread_bytes = 0;  // read from files beyond what the plan reads anyway
};

// The plan with a page cache of at most `limit` bytes, which drops what was used longest ago. Pages that the
// device has imported are staging memory: they stay, and the limit does not count them. Pages are
// dropped in granules: 64 KiB, larger for large plans so that these cost no more; a granule beyond the limit
// is not kept at all. A copy out of pages right behind the one that brought them is the same pass over the
// file. `timeline` is the plan's.
CacheOutcome limit_cache(const Plan& plan, const Timeline& timeline, std::uint64_t limit);

}  // namespace loadline
