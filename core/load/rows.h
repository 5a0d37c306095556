// The figures of one load that outlive its projection, which can be large.
#pragma once

#include "core/base/error.h"
#include "core/load/bind_request.h"
#include "core/load/projection.h"
#include "core/plan/cache_limit.h"
#include "core/plan/memory_views.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// The names that steps allocate, looked up once per graph.
class Labels {
 public:
  explicit Labels(const MetaGraph& graph) : graph_(graph), owners_(first_owner(graph)) {}
  std::string of(const Plan& plan, BlockId id) const { return block_label(plan.block(id), graph_, owners_); }
  std::string at_step(const Plan& plan, std::size_t step) const { return of(plan, plan.steps[step].block); }

 private:
  const MetaGraph& graph_;
  std::vector<std::optional<TensorId>> owners_;
};

struct RowPeak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;
  std::string tensor = {};  // what that step allocates; not escaped
};

// A block that is alive at a peak.
struct AliveBlock {
  std::string label = {};  // not escaped
  std::uint64_t bytes = 0;
};
struct AliveBlocks {
  std::vector<AliveBlock> largest = {};  // largest first
  std::size_t count = 0;                 // of all
};

// One method in one order.
struct LoadRow {
  const Method* method = nullptr;
  std::string order = {};
  std::optional<bool> order_proven = {};  // Projection::order_proven
  PerSpace<RowPeak> peaks = {};
  PerSpace<AliveBlocks> alive = {};  // at those peaks
  ReadPattern reads = {};
  double seconds = 0;      // the projection's, and what a small page cache has read again
  RowPeak unified = {};    // of the sum of all spaces
  RowPeak leading = {};    // of leading_view()
  RowPeak judged = {};     // the same of judged_bytes(): what a required peak is held against
  std::uint64_t held = 0;  // the peak of device, host and staging together
  PerSpace<std::uint64_t> final_bytes = {};
  std::optional<PerSpace<std::uint64_t>> reserved = {};
  std::optional<PerSpace<std::uint64_t>> reserved_final = {};
  std::optional<std::uint64_t> allocated = {};
  std::vector<std::uint64_t> views = {};  // parallel to memory_views()
  std::optional<CacheOutcome> cache = {};
  BudgetVerdict verdict = {};
  std::string first_over = {};           // what verdict.block is called; not escaped
  std::uint64_t over_required_peak = 0;  // by how much the judged peak is over it
  std::optional<Error> refusal = {};     // why the load cannot be done at all: then there are no figures

  bool fits() const { return !refusal && verdict.fits() && over_required_peak == 0; }
};

// `alive` is how many blocks are named at each peak.
LoadRow make_row(const Projection& projection, const BoundRequest& bound, const Labels& labels,
                 std::size_t alive);
LoadRow refused_row(const Method& method, std::string order, const Error& refusal);

// By what rows can be sorted.
enum class RowSort : std::uint8_t {
  fit,    // those that fit first, then by the peak that decides
  table,  // as methods and orders are listed
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
  verdict,  // by how much they are over
};
struct RowSortName {
  std::string_view id;
  RowSort sort;
};
std::span<const RowSortName> row_sorts();
// Throws Error{usage} that lists them.
RowSort find_row_sort(std::string_view id);
std::string_view row_sort_id(RowSort sort);

// Positions in `rows`. What cannot be done comes last but among names; ties keep their order. The peak that
// decides is that of the space with least room relative to its budget; without budgets the device's, then the
// host's; in unified memory that of device, host and staging together.
std::vector<std::size_t> sorted_rows(std::span<const LoadRow> rows, const BoundRequest& bound, RowSort sort,
                                     bool ascending = true);

}  // namespace loadline
