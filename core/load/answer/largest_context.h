// The largest context that each load leaves room for.
#pragma once

#include "core/base/tasks.h"
#include "core/load/answer/rows.h"
#include "core/load/request/bind_request_2.h"
#include "core/load/request/pass.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace loadline {

struct ContextAnswer {
  std::string missing = {};                     // why there are no figures; empty: there are some
  std::optional<std::uint64_t> positions = {};  // that the model itself has, from its configuration
  std::optional<std::uint64_t> micro_batch =
      {};  // new tokens of the counted pass at most; absent: all tokens
  // The operators are not known: only the estimated cache is counted, so that the figures are upper bounds.
  bool cache_only = false;
};

// Sets LoadRow::context_max of every row that is not refused: the most tokens of each sequence, up to
// kMostTokens, with which load and pass stay within the budgets. Counted are the load's own peak, and at its
// end what it keeps, with the cache of all these tokens and the activations of one pass: over the last of
// them, as many as `micro_batch`, with the others in the cache. Weights that a pass reads from mapped files
// count whole. An allocator gives the pass blocks of its own. `rows` are those of the bound request, method
// by method. Throws as compare() does.
ContextAnswer find_contexts(const MetaGraph& graph, const BoundRequest& bound, const RequestPass& pass,
                            std::span<LoadRow> rows, Progress& progress);

}  // namespace loadline
