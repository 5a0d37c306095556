// What a cast changes, and why the other tensors keep their stored type.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct CastSummary {
  std::uint64_t tensors = 0;       // number that are cast
  std::uint64_t bytes_before = 0;  // of the storages of cast tensors, each counted once
  std::uint64_t bytes_after = 0;
  std::uint64_t kept = 0;  // number of tensors that are not cast
  // Why tensors are not cast, and how many for each reason: "are F32 already". Largest count first.
  std::vector<std::pair<std::string, std::uint64_t>> reasons = {};
};
// Summarises storage_casts(). Throws Error{limit} if the sum of the cast sizes overflows.
CastSummary cast_summary(const MetaGraph& graph, DType to);

// "Cast to F16: 74 tensors, 61.02 MiB become 30.51 MiB; 1 tensor stays as stored: 1 is F16 already."
std::string cast_text(const CastSummary& summary, DType to);

}  // namespace loadline
