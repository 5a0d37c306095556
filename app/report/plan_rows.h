// What is kept of a projection, which can be large: the figures of one row of a comparison.
#pragma once

#include "app/report/plan_curve.h"
#include "core/base/error.h"
#include "core/load/compare.h"
#include "core/load/projection.h"
#include "core/plan/cache_limit.h"
#include "core/plan/memory_views.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::report {

// By what all rows of an answer are made and judged.
struct RowFrame {
  MemoryKind memory = MemoryKind::discrete;
  Budget budget = {};
  std::optional<std::uint64_t> max_peak = {};     // of the leading figure
  std::optional<std::uint64_t> cache_limit = {};  // what the page cache may hold
  double disk_read =
      CostModel{}.disk_read;  // bytes per second: what is read again takes time; compare_rows() sets it
  std::optional<CurveOptions> curve = {};  // if curves are shown

  // Whether there is anything to fit into.
  bool judged() const { return budget.device || budget.host || budget.unified || max_peak; }
};

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

struct PlanRow {
  const Method* method = nullptr;
  std::string order = {};
  std::optional<bool> order_proven = {};  // Projection::order_proven
  PerSpace<RowPeak> peaks = {};
  ReadPattern reads = {};
  double seconds = 0;      // the projection's, and what a small page cache has read again
  RowPeak unified = {};    // of the sum of all spaces
  RowPeak leading = {};    // of leading_view()
  RowPeak judged = {};     // the same of judged_bytes(): what --max-peak is held against
  std::uint64_t held = 0;  // the peak of device, host and staging together
  PerSpace<std::uint64_t> final_bytes = {};
  std::optional<PerSpace<std::uint64_t>> reserved = {};
  std::optional<PerSpace<std::uint64_t>> reserved_final = {};
  std::optional<std::uint64_t> allocated = {};
  std::vector<std::uint64_t> views = {};  // parallel to memory_views()
  std::optional<CacheOutcome> cache = {};
  BudgetVerdict verdict = {};
  std::string first_over = {};      // what verdict.block is called; not escaped
  std::uint64_t over_max_peak = 0;  // by how much the judged peak is over it
  std::optional<RowCurve> curve = {};
  std::optional<Error> refusal = {};  // why the load cannot be done at all: then there are no figures

  bool fits() const { return !refusal && verdict.fits() && over_max_peak == 0; }
};

PlanRow make_row(const Projection& projection, const RowFrame& frame, const Labels& labels);
PlanRow refused_row(const Method& method, std::string order, const Error& refusal);

// Every method in every order, in the order of `methods` and of `orders` within each. What cannot be done is
// a row that says so, loads of mapped pages from files that cannot be mapped among them. Throws what
// loadline::compare() does.
std::vector<PlanRow> compare_rows(const MetaGraph& graph, std::span<const Method* const> methods,
                                  std::span<const OrderChoice> orders, const MethodOptions& options,
                                  const ForwardPass* pass, const RowFrame& frame, Progress& progress);

// "fits", or what is over by how much and where it first is; safe to show. Without a budget "possible" or
// "cannot be done".
std::string verdict_text(const PlanRow& row, const RowFrame& frame);

}  // namespace loadline::report
