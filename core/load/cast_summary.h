// What a cast changes, and why the rest stays as it is stored.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct CastSummary {
  std::uint64_t tensors = 0;       // that are cast
  std::uint64_t bytes_before = 0;  // of their storages, each counted once
  std::uint64_t bytes_after = 0;
  std::uint64_t kept = 0;  // tensors that are not
  // Of those, how many and why: "are F32 already". Largest first.
  std::vector<std::pair<std::string, std::uint64_t>> reasons = {};
};
// As storage_casts() does it. Throws Error{limit} where what becomes of them has no sum.
CastSummary cast_summary(const MetaGraph& graph, DType to);

// "Cast to F16: 74 tensors, 61.02 MiB become 30.51 MiB; 1 tensor stays as stored: 1 is F16 already."
std::string cast_text(const CastSummary& summary, DType to);

}  // namespace loadline
