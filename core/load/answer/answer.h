// A request turned into figures: rows, largest contexts, advice.
#pragma once

#include "core/base/progress.h"
#include "core/load/answer/advice.h"
#include "core/load/answer/rows.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/pass.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::load {

// --- The largest context that each load leaves room for.

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
ContextAnswer find_contexts(const graph::MetaGraph& graph, const BoundRequest& bound, const RequestPass& pass,
                            std::span<LoadRow> rows, Progress& progress);

// --- Turns a request about a model into figures: rows and advice. Every front end goes through here.

// What to compute besides the figures of each row.
struct AnswerOptions {
  std::size_t alive = 0;          // how many blocks to list at each peak
  bool advise = true;             // search for changes that fit if rows do not
  bool advised_contexts = false;  // find AdvisedLoad::context_max, also if the request asks for no context
  // Called with each projection before it is destroyed; from several threads at once.
  std::function<void(std::size_t at, const LoadRow& row, const Projection& projection)> projected = {};
};

struct LoadAdvice {
  Advice advice = {};
  bool searched = false;  // false: `advice` holds requested rows that fit
};

struct LoadAnswer {
  std::shared_ptr<const BoundRequest> bound;
  std::shared_ptr<const RequestPass> forward;
  std::vector<LoadRow> rows;                  // method by method, each in the requested orders
  std::optional<ContextAnswer> context = {};  // if the request asks for the largest context
  // Absent if every row fits, without any budget or required peak, and for a model that is not whole.
  std::optional<LoadAdvice> advice = {};
  // Methods outside the default set that fit. Filled only if the request names no method and no row fits.
  std::vector<const Method*> also_fits = {};

  // What the verdicts depend on and do not account for, in words: they are estimates. Empty: nothing.
  std::string unaccounted = {};

  bool several_orders() const { return bound->orders.size() > 1; }
  // Whether at least one row has figures that are within its budgets and the required peak, also of a model
  // that is not whole.
  bool any_within() const;
};

// Sets what the rows depend on and nobody accounts for: LoadAnswer::unaccounted, LoadRow::estimated. The
// answer has its rows; its `forward` may be null.
void mark_estimates(LoadAnswer& answer, const graph::MetaGraph& graph);

// A load that cannot be done becomes a row with its refusal. If every row is refused, throws the first
// refusal. Also throws Error{usage} as bind_request() and RequestPass do, and Error{canceled}.
LoadAnswer answer(const graph::MetaGraph& graph, const LoadRequest& request,
                  const LoadEnvironment& environment, const AnswerOptions& options, Progress& progress);
// The same with request and pass already bound.
LoadAnswer answer(const graph::MetaGraph& graph, std::shared_ptr<const BoundRequest> bound,
                  const AnswerOptions& options, std::shared_ptr<const RequestPass> forward,
                  Progress& progress);

}  // namespace loadline::load
