// Rows of the comparison table: projected, kept, sorted.
#pragma once

#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/request/bind_request.h"
#include "core/plan/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::load {

// --- Projects several methods in several orders: the rows of a comparison table.

// Receives the rows. Row m * orders + o is method m in order o. For each row exactly one of the two functions
// is called, once. Calls come from several threads at once, in no fixed order. An exception ends the
// comparison.
struct RowTaker {
  // The projection is destroyed after the call, because plans and timelines are large.
  std::function<void(std::size_t row, const Projection& projection)> take;
  // The load cannot be done: Error{unsupported | limit}.
  std::function<void(std::size_t row, const Error& refusal)> refuse;
};

// Projects every one of `methods` in every order of the bound request. Orders that give the same sequence of
// storages share one projection. `keep`: what the taker needs. At most `threads` projections (at least one)
// are alive at a time. Progress counts projections. Throws Error{canceled} and whatever `taker` throws.
void compare(const graph::MetaGraph& graph, std::span<const Method* const> methods, const BoundRequest& bound,
             const plan::ForwardPass* pass, const RowTaker& taker, Progress& progress, std::size_t threads,
             Keep keep = Keep::figures);
// With one thread per core, at most four, and fewer where projections are large: each thread holds one in
// memory.
void compare(const graph::MetaGraph& graph, std::span<const Method* const> methods, const BoundRequest& bound,
             const plan::ForwardPass* pass, const RowTaker& taker, Progress& progress,
             Keep keep = Keep::figures);

// --- The figures of one load, kept after its projection is destroyed, which can be large.

// Display names of the blocks that steps allocate. The graph is searched once.
class Labels {
 public:
  explicit Labels(const graph::MetaGraph& graph) : graph_(graph), owners_(graph::first_owner(graph)) {}
  std::string of(const plan::Plan& plan, plan::BlockId id) const {
    return plan::block_label(plan.block(id), graph_, owners_);
  }
  // Of the block that `step`, an allocation, allocates.
  std::string at_step(const Projection& projection, std::size_t step) const {
    return of(projection.plan, plan::block_allocated_at(projection.timeline, step));
  }

 private:
  const graph::MetaGraph& graph_;
  std::vector<std::optional<graph::TensorId>> owners_;
};

struct RowPeak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;
  std::string tensor = {};  // label of the block that this step allocates; not escaped
};

// A block that is alive at a peak.
struct AliveBlock {
  std::string label = {};  // not escaped
  std::uint64_t bytes = 0;
};
struct AliveBlocks {
  std::vector<AliveBlock> largest = {};  // largest first
  std::size_t count = 0;                 // of all blocks alive
};

// One method in one order.
struct LoadRow {
  const Method* method = nullptr;
  std::string order = {};
  std::optional<bool> order_proven = {};  // Projection::order_proven
  plan::PerSpace<RowPeak> peaks = {};
  plan::PerSpace<AliveBlocks> alive = {};  // at the peak of each space
  plan::ReadPattern reads = {};
  double seconds = 0;          // the projection's, plus re-reads that budgets cause
  RowPeak unified_peak = {};   // of device, host, page cache and staging together
  RowPeak deciding_peak = {};  // of deciding_view(): rows are compared and sorted by it
  // With what allocators reserve, of the memory that the required peak is about; compared with it.
  RowPeak judged_peak = {};
  std::uint64_t held_peak = 0;  // of device, host and staging together: without what the system can drop
  plan::PerSpace<std::uint64_t> final_bytes = {};
  std::optional<plan::PerSpace<std::uint64_t>> reserved = {};
  std::optional<plan::PerSpace<std::uint64_t>> reserved_final = {};
  std::optional<plan::HeapRange> host_range = {};    // as Projection::host_range
  std::optional<std::uint64_t> pages_of_views = {};  // as Projection::pages_of_views
  std::optional<std::uint64_t> committed = {};       // as Projection::committed
  std::optional<std::uint64_t> allocated = {};
  std::vector<std::uint64_t> views = {};  // parallel to memory_views()
  std::optional<plan::CacheOutcome> cache = {};
  // What each token reads from files: weights that stay mapped, and weights on disk.
  // `reread` of them are not found in the page cache again, as far as budgets say.
  PassReads pass_reads = {};
  std::uint64_t reread = 0;
  BudgetVerdict verdict = {};
  std::string first_over = {};           // label of verdict.block, the first over any limit; not escaped
  std::uint64_t over_required_peak = 0;  // excess of the judged peak over it
  std::optional<std::uint64_t> context_max = {};  // of find_contexts(); 0: not even one token
  std::optional<Error> refusal = {};              // why the load cannot be done; if set, there are no figures

  bool incomplete = false;  // the model is: what is missing may not fit
  bool estimated = false;   // the verdict is: LoadAnswer::unaccounted says why

  bool is_within() const { return !refusal && verdict.fits() && over_required_peak == 0; }
  bool fits() const { return is_within() && !incomplete; }
  // The largest excess over any budget or the required peak; 0 if there is none.
  std::uint64_t most_over() const {
    return std::max({verdict.device_over, verdict.host_over, verdict.unified_over, verdict.at_risk,
                     verdict.committed_over, over_required_peak});
  }
};

// `alive`: how many blocks to list at each peak.
LoadRow make_row(const Projection& projection, const BoundRequest& bound, const Labels& labels,
                 std::size_t alive);
// Whether the error says that this load cannot be done, and not that something failed.
inline bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::limit || error.code() == ErrorCode::unsupported;
}
LoadRow refused_row(const Method& method, std::string order, const Error& refusal);

// The keys by which rows can be sorted.
enum class RowSort : std::uint8_t {
  fit,    // rows that fit first, then by the deciding peak
  table,  // in the order of methods and orders of the request
  method,
  order,
  device,
  host,
  page_cache,
  staging,
  held,     // device, host and staging together
  unified,  // all four spaces together
  jumps,
  time,
  context,  // by the largest context, the largest first
  verdict,  // by excess over the budgets
};
struct RowSortName {
  std::string_view id;
  RowSort sort;
  std::uint64_t (*figure)(const LoadRow& row) = nullptr;  // null: sorted by more than one figure
};
std::span<const RowSortName> row_sorts();
// Throws Error{usage} that lists all ids.
RowSort find_row_sort(std::string_view id);

// Positions in `rows`. Refused rows come last, except when sorted by name; ties keep their order. The
// deciding peak is the peak of the space with the least room relative to its budget. Without budgets it is
// the device's, then the host's; in unified memory that of device, host and staging together.
std::vector<std::size_t> sorted_rows(std::span<const LoadRow> rows, const BoundRequest& bound, RowSort sort,
                                     bool ascending = true);

}  // namespace loadline::load
