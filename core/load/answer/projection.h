// Projects a load: runs a method's plan on the dry machine and checks it against budgets.
#pragma once

#include "core/load/request/bind_request.h"
#include "core/load/request/method.h"
#include "core/load/request/pass.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"
#include "core/plan/run.h"

#include <optional>
#include <string>

namespace loadline::load {

// What a projection keeps. For figures alone, plans and usage are not held in memory where no figure needs
// them: plan.steps and timeline.usage are empty then.
enum class Keep : std::uint8_t { all, figures };

// Whether projections for figures alone do without plans and usage: not where an allocator is simulated, the
// page cache is limited, or weights are packed.
bool streams_figures(const BoundRequest& bound);

struct Projection {
  const Method* method = nullptr;
  std::string order;  // the id of an order, or the name of a custom one
  // Only for orders that depend on the method: whether no order has a lower peak (optimal_order.h). Set by
  // the code that made the order.
  std::optional<bool> order_proven = {};
  plan::Plan plan;
  plan::Timeline timeline;
  plan::ReadPattern reads;
  bool maps_files = false;  // of the model; imported pages among them
  bool on_host = false;     // nothing is placed on the device
  PassReads pass_reads;     // of each token
  // What a process may take for the host's blocks. With the allocator `heap`: that of the method's framework,
  // where it differs from the requested bytes by more than they are held to: 2 % and 16 MiB. With `malloc`:
  // from those to unreused_heap_peak().
  std::optional<plan::HeapRange> host_range = {};
  // File pages that views of mapped files bring in before anything reads the weights, where these are more
  // than the pages that are counted otherwise, by more than 16 MiB and 2 %.
  std::optional<std::uint64_t> pages_of_views = {};
  // The commit charge at its peak; absent for methods of which it is not known, and with allocators that are
  // simulated.
  std::optional<std::uint64_t> committed = {};
  double seconds = 0;  // modeled_seconds(): the timeline does not model seeks
};

// The time of a run on the dry machine plus a seek for each jump.
double modeled_seconds(const plan::Timeline& timeline, const plan::ReadPattern& reads,
                       const plan::CostModel& costs);

// Makes the plan, checks it and runs it on a DryMachine. With `pass`, a forward pass follows the load. Its
// values are allocated one by one; methods that allocate activations first get the pass's peak as one block.
// Throws as make_plan() does, Error{unsupported} for a training step after a load that none can follow,
// Error{limit} for sizes that no memory can hold, Error{canceled}.
Projection project(const graph::MetaGraph& graph, const Method& method, const Order& order,
                   const BoundRequest& bound, Progress& progress, const plan::ForwardPass* pass = nullptr);
// The same for a given sequence `storages`, named `order`: for a custom order, or a sequence made once for
// several methods. The projection takes over the memory of `used`, whose contents are dropped: at a million
// tensors, fresh memory costs more than all the rest.
Projection project(const graph::MetaGraph& graph, const Method& method, std::string order,
                   const StorageOrder& storages, const BoundRequest& bound, Progress& progress,
                   const plan::ForwardPass* pass = nullptr, Projection used = {}, Keep keep = Keep::all);
Projection project(const graph::MetaGraph& graph, const Method& method, const Order& order,
                   const BoundRequest& bound);

// Why a plan with page_cache blocks cannot run on the model's files although it can be projected: encoded
// storages must be decoded, so their pages cannot be mapped. Empty if all storages can be mapped.
std::string mapping_refusal(const graph::MetaGraph& graph);
// The most bytes that the values of a forward pass take at once.
std::uint64_t forward_peak(const plan::ForwardPass& pass);
// A training step of weights whose type, once the method has loaded them, is not that of the activations:
// such a step is an estimate. "weights of F32 beside activations of BF16"; empty: there is none. `pass` is of
// a training step or of none.
std::string untrained_types(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                            const plan::ForwardPass* pass);
// A lower bound for the device peak of every method that keeps the weights on the device: all storages placed
// there, at their size once loaded, plus the activations or the peak of the pass. Throws Error{limit} if the
// sum overflows.
std::uint64_t device_lower_bound(const graph::MetaGraph& graph, const BoundRequest& bound,
                                 const plan::ForwardPass* pass = nullptr);

struct BudgetVerdict {
  bool device_fits = true;
  bool host_fits = true;
  bool unified_fits = true;
  // Bytes by which the peak exceeds its budget.
  std::uint64_t device_over = 0;
  std::uint64_t host_over = 0;
  std::uint64_t unified_over = 0;
  // The peaks that are compared with the budgets.
  std::uint64_t device_peak = 0;
  std::uint64_t host_peak = 0;
  std::uint64_t unified_peak = 0;
  // With Budget::pages_may_stay: the unified peak if no mapped page can be dropped.
  std::uint64_t unified_high = 0;
  // With Projection::host_range: the host's peak if its heap takes the upper end.
  std::uint64_t host_high = 0;
  // The commit charge, and its excess over Budget::committed.
  std::uint64_t committed = 0;
  std::uint64_t committed_over = 0;
  bool committed_known = true;  // false: there is a limit, and no figure for the method
  // The excess of such a peak over its budget, where the ordinary peak fits.
  std::uint64_t at_risk = 0;
  std::uint64_t risk_low = 0, risk_high = 0;  // the ordinary peak, and the one at risk
  // The first allocation that exceeds a budget.
  std::optional<std::size_t> step = {};
  std::optional<plan::BlockId> block = {};

  bool fits() const {
    return device_fits && host_fits && unified_fits && at_risk == 0 && committed_over == 0 && committed_known;
  }
};

// The peak of device, host and staging together: the spaces that a unified budget covers.
std::uint64_t held_peak(const plan::Timeline& timeline);

// The bytes compared with budgets after usage[i]: the bytes reserved if an allocator is simulated, else the
// bytes requested.
const plan::PerSpace<std::uint64_t>& judged_bytes(const plan::Timeline& timeline, std::size_t i);

// If the projection keeps no usage, the verdict has a step only for the budget of the request.
BudgetVerdict check_budget(const Projection& projection, const Budget& budget);

}  // namespace loadline::load
