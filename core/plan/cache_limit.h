// The extra reads that a limited page cache causes: evicted pages are read again.
#pragma once

#include "core/plan/timeline.h"

#include <cstdint>

namespace loadline {

struct CacheOutcome {
  std::uint64_t limit = 0;
  std::uint64_t mapped = 0;        // F: peak of mapped pages without a limit
  std::uint64_t peak = 0;          // min(F, limit)
  std::uint64_t reread_bytes = 0;  // read from files in addition to the plan's own reads
};

// Simulates the plan with a page cache of at most `limit` bytes and least-recently-used eviction. Pages
// imported by the device are staging memory: they are not evicted and do not count. Pages are evicted in
// granules of 64 KiB, larger for large plans so that the simulation costs no more; a granule larger than the
// limit is never cached. A copy out of pages that directly follows the copy which read them is the same pass
// over the file. `timeline` is the plan's.
CacheOutcome limit_cache(const Plan& plan, const Timeline& timeline, std::uint64_t limit);

}  // namespace loadline
