// Runs plans on the dry machine and checks them against budgets.
#include "core/load/answer/projection.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/plan/dry_machine.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

namespace {

// An arena is reserved as one range from its first allocation to its last free, then released as a whole.
void plan_arenas(Projection& projection, Progress& progress) {
  plan::Timeline& timeline = projection.timeline;
  for (const plan::Space space : plan::spaces_in(plan::kHeldSpaces)) {
    const std::uint64_t height = plan::plan_arena(projection.plan, timeline, space, progress).height;
    (*timeline.reserved_peak)[plan::index(space)] = height;
    (*timeline.reserved_final)[plan::index(space)] =
        timeline.final_bytes[plan::index(space)] > 0 ? height : 0;
    const auto used = [&](const plan::UsagePoint& point) { return point.bytes[plan::index(space)] > 0; };
    const auto from = std::ranges::find_if(timeline.usage, used);
    const auto to = std::find_if(timeline.usage.rbegin(), timeline.usage.rend(), used).base();
    for (auto at = from; at < to; ++at)
      timeline.reserved_usage[static_cast<std::size_t>(at - timeline.usage.begin())][plan::index(space)] =
          height;
  }
}

std::size_t loaded_step(const plan::Plan& plan) {
  const auto loaded = std::ranges::find(plan.marks, "loaded", &plan::Mark::label);
  return loaded == plan.marks.end() ? plan::kNever : loaded->step;
}

}  // namespace

std::uint64_t forward_peak(const plan::ForwardPass& pass) {
  plan::Plan plan;
  plan::append_forward_pass(plan, pass);
  plan::DryMachine machine;
  return plan::run(plan, machine).peaks[plan::index(plan::Space::device)].bytes;
}

Projection project(const graph::MetaGraph& graph, const Method& method, const Order& order,
                   const BoundRequest& bound, Progress& progress, const plan::ForwardPass* pass) {
  progress.check_canceled();
  const std::string id(order.id);
  if (order.make != nullptr) return project(graph, method, id, order.make(graph), bound, progress, pass);
  const OptimalOrder best = optimal_order(graph, method, bound, progress);
  Projection projection = project(graph, method, id, best.order, bound, progress, pass);
  projection.order_proven = best.proven;
  return projection;
}

double modeled_seconds(const plan::Timeline& timeline, const plan::ReadPattern& reads,
                       const plan::CostModel& costs) {
  return timeline.seconds + static_cast<double>(reads.jumps) * costs.seek_seconds;
}

namespace {

constexpr unsigned kDevice = plan::space_bit(plan::Space::device);
constexpr unsigned kHost = plan::space_bit(plan::Space::host) | plan::space_bit(plan::Space::staging);

// Whether what is judged has the peaks of the requested bytes: no allocator reserves others, and no pages
// that a pass needs are added to them.
bool judged_by_peaks(const Projection& projection) {
  return projection.timeline.reserved_usage.empty() && projection.pass_reads.mapped == 0;
}

// The verdict without a look at each point of usage. Without usage, the first step over the budget is known
// if the run was limited by it. Nothing if only the usage tells that step.
std::optional<BudgetVerdict> verdict_by_peaks(const Projection& projection, const Budget& budget) {
  const plan::Timeline& timeline = projection.timeline;
  if (!judged_by_peaks(projection)) return std::nullopt;
  BudgetVerdict verdict;
  const auto judge = [&](unsigned spaces, const std::optional<std::uint64_t>& limit, std::uint64_t& peak,
                         bool& fits, std::uint64_t& over) {
    peak = plan::peak_over(timeline, spaces).bytes;
    if (!limit || peak <= *limit) return;
    fits = false;
    over = peak - *limit;
  };
  judge(kDevice, budget.device, verdict.device_peak, verdict.device_fits, verdict.device_over);
  judge(kHost, budget.host, verdict.host_peak, verdict.host_fits, verdict.host_over);
  judge(plan::kHeldSpaces, budget.unified, verdict.unified_peak, verdict.unified_fits, verdict.unified_over);
  if (budget.pages_may_stay) verdict.unified_high = plan::peak_over(timeline, plan::kAllSpaces).bytes;
  if (verdict.fits()) return verdict;
  if (timeline.over_step == plan::kNever)
    return timeline.usage.empty() ? std::optional(verdict) : std::nullopt;
  verdict.step = timeline.over_step;
  verdict.block = plan::block_allocated_at(timeline, timeline.over_step);
  return verdict;
}

plan::SumLimits limits_of(const Budget& budget) {
  plan::SumLimits limits = {};
  limits[kDevice] = budget.device;
  limits[kHost] = budget.host;
  limits[plan::kHeldSpaces] = budget.unified;
  return limits;
}

class TwoTakers final : public plan::StepTaker {
 public:
  TwoTakers(plan::StepTaker& first, plan::HeapForecast* second) : first_(first), second_(second) {}
  void take(std::span<const plan::Block> blocks, std::span<const plan::Step> steps,
            std::size_t first) override {
    first_.take(blocks, steps, first);
    if (second_ != nullptr) second_->take(blocks, steps);
  }

 private:
  plan::StepTaker& first_;
  plan::HeapForecast* const second_;
};

// Whether the allocator of the request simulates the host's memory in a way of its own.
bool simulates_host(const BoundRequest& bound) {
  const allocators::AllocatorModel model = bound.request.allocator;
  return model == allocators::AllocatorModel::malloc || model == allocators::AllocatorModel::arena;
}

// accelerate reads pickled files whole, where others map them.
bool reads_whole(const graph::MetaGraph& graph, const Method& method) {
  return is_pickled(graph) && method.traits.heap == Heap::accelerate;
}

// By storage: whether the parameter of it stays a view of its mapped file. None for Heap::own.
std::vector<bool> stay_views(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound) {
  std::vector<bool> stay(graph.storages.size(), false);
  if (method.traits.heap == Heap::own || !method.traits.views || reads_whole(graph, method) ||
      bound.placement.leaves_on_disk())
    return stay;
  std::vector<std::optional<plan::Cast>> casts(graph.storages.size());
  if (const auto cast = bound.cast_of(method)) casts = storage_casts(graph, *cast);
  for (const graph::StorageId id : used_storages(graph))
    stay[graph::index(id)] = !casts[graph::index(id)] && bound.placement.of(id) == Home::host;
  return stay;
}

// The files that torch and safetensors map, or the shards that the request takes for them. They stay mapped
// while a parameter is a view of them, and in transformers 5 until all weights are there.
void set_files(plan::HeapUse& use, const graph::MetaGraph& graph, const Method& method,
               const BoundRequest& bound, const std::vector<bool>& views) {
  if (reads_whole(graph, method)) return;
  const bool stay = method.traits.heap == Heap::transformers_v5 ||
                    (method.traits.heap == Heap::torch && method.traits.views),
             at_first = method.traits.heap == Heap::transformers_v4;  // on the host, all of them
  use.file_of = shards_of(graph, bound.request.shard_bytes);
  for (const std::uint32_t file : use.file_of)
    use.files.resize(std::max<std::size_t>(use.files.size(), file + 1));
  for (const graph::StorageId id : used_storages(graph)) {
    plan::HeapUse::MappedFile& file = use.files[use.file_of[graph::index(id)]];
    file.bytes += graph.storage(id).stored_bytes;
    file.stays |=
        stay || views[graph::index(id)] || (at_first && method.traits.views && !bound.cast_of(method));
  }
}

// What the method's framework does to the heap; nothing if it is not understood. `views`: of stay_views().
std::optional<plan::HeapUse> heap_use(const graph::MetaGraph& graph, const Method& method,
                                      const BoundRequest& bound, const std::vector<bool>& views) {
  // where imports leave the threshold: measured with torch 2.13, transformers 5.23 and accelerate 1.15
  constexpr std::uint64_t kTorch = 962'560, kTransformers = 1'925'120;
  // host memory of modules, parameters and wrappers, for each tensor: measured with 300 to 3,600 tensors
  constexpr std::uint64_t kTorchObjects = 5 << 10, kAccelerateObjects = 9'523, kTransformersObjects = 10'854;
  if (method.traits.heap == Heap::own) return std::nullopt;
  const std::vector<graph::StorageId> storages = used_storages(graph);
  plan::HeapUse use{.threshold = kTransformers};
  use.fixed = bound.request.allocator == allocators::AllocatorModel::exact || simulates_host(bound);
  switch (method.traits.heap) {
    case Heap::own:
      break;
    case Heap::torch:
      use.threshold = kTorch;
      use.object_bytes = kTorchObjects * storages.size();
      break;
    case Heap::transformers_v5:
      use.workers = loading_threads(bound);
      [[fallthrough]];
    case Heap::transformers_v4:
      use.object_bytes = kTransformersObjects * storages.size();
      break;
    case Heap::accelerate:
      use.scattered = true;
      use.object_bytes = kAccelerateObjects * storages.size();
      for (const graph::StorageId id : storages)
        if (const std::uint64_t bytes = graph.storage(id).bytes; bytes > 0) use.built_empty.push_back(bytes);
      break;
  }
  set_files(use, graph, method, bound, views);
  return use;
}

// Whether a figure says more than the requested bytes, by more than they are held to.
bool tells_more(std::uint64_t bytes, std::uint64_t requested) {
  constexpr std::uint64_t kTold = 16 << 20, kShare = 50;  // a fiftieth
  return bytes > requested && bytes - requested > std::max(kTold, requested / kShare);
}

// A parameter that is a view of a mapped file has its first byte read. The kernel then maps what the page
// cache holds around it: an aligned window of 64 KiB (fault_around_bytes).
std::uint64_t pages_of_views(const graph::MetaGraph& graph, const std::vector<bool>& views) {
  constexpr std::uint64_t kWindow = 64 << 10;
  std::vector<std::pair<std::size_t, std::uint64_t>> windows;
  for (std::size_t i = 0; i < graph.storages.size(); ++i)
    if (const std::size_t file = graph::index(graph.storages[i].file); views[i] && file < graph.files.size())
      windows.emplace_back(file, graph.storages[i].offset / kWindow);
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  std::uint64_t bytes = 0;
  for (const auto& [file, window] : windows)
    bytes += std::min(kWindow, graph.files[file].bytes - window * kWindow);
  return bytes;
}

// Makes the plan of a projection, and the timeline and the reads of its run.
class Projector {
 public:
  Projector(const graph::MetaGraph& graph, const Method& method, const StorageOrder& storages,
            const BoundRequest& bound, Progress& progress, const plan::ForwardPass* pass)
      : graph_(graph),
        method_(method),
        storages_(storages),
        bound_(bound),
        progress_(progress),
        pass_(pass) {}

  // In the memory of the projection's own plan and timeline. The steps go to `heap` too, if there is one.
  void run_whole(Projection& projection, plan::HeapForecast* heap) const {
    projection.plan.taker = nullptr;
    make_plan_in(projection.plan);
    const plan::Plan& plan = projection.plan;
    if (const auto fault = plan::check_plan(plan, graph_))
      throw Error(ErrorCode::limit, "{}: {}", method_.id, *fault);
    plan::PerSpace<allocators::PoolForecast> expected = {};
    if (bound_.request.allocator == allocators::AllocatorModel::vulkan)
      expected = plan::pool_forecasts(plan, allocators::BlockPoolRules{}.alignment);
    plan::DryMachine machine(bound_.costs, bound_.request.allocator, expected);
    projection.timeline = plan::run(plan, machine, progress_, std::move(projection.timeline));
    projection.reads = plan::read_pattern(plan, graph_);
    if (heap != nullptr) heap->take(plan.blocks, plan.steps);
  }
  // The same without the plan's steps and the usage.
  void run_streamed(Projection& projection, plan::HeapForecast* heap) const {
    plan::DryMachine machine(bound_.costs);
    plan::StreamedRun run(method_.id, graph_, machine, limits_of(bound_.limits()), progress_,
                          std::move(projection.timeline));
    TwoTakers takers(run, heap);
    projection.plan.taker = &takers;
    make_plan_in(projection.plan);
    plan::hand_over(projection.plan);
    projection.plan.taker = nullptr;
    projection.timeline = run.finish();
    projection.reads = run.reads();
  }

 private:
  void make_plan_in(plan::Plan& plan) const {
    // activations allocated before the weights cannot be allocated one by one: the pass's peak becomes one
    // block
    const bool ahead = pass_ != nullptr && method_.traits.activations_first;
    plan = make_plan(graph_, method_, storages_, bound_, std::move(plan), ahead ? forward_peak(*pass_) : 0);
    progress_.check_canceled();
    if (pass_ != nullptr && !ahead)
      plan::append_forward_pass(plan, *pass_,
                                computes_on_host(bound_.placement) ? plan::Space::host : plan::Space::device);
  }

  const graph::MetaGraph& graph_;
  const Method& method_;
  const StorageOrder& storages_;
  const BoundRequest& bound_;
  Progress& progress_;
  const plan::ForwardPass* const pass_;
};

void find_pass_reads(Projection& projection, const graph::MetaGraph& graph, const BoundRequest& bound) {
  const Method& method = *projection.method;
  projection.maps_files = method.traits.imports ||
                          projection.timeline.peaks[plan::index(plan::Space::page_cache)].bytes > 0 ||
                          (method.traits.views && !bound.placement.all_on_device());
  const bool brought =
      method.traits.auto_maps && !computes_on_host(bound.placement) && !bound.placement.all_on_device();
  projection.pass_reads = pass_reads(graph, bound, brought, projection.plan, projection.timeline);
}

}  // namespace

namespace {

// Calls `take` with each weight that an operator uses and the type in which the method has it.
template <typename Take>
void for_used_types(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                    const graph::ForwardGraph& step, Take&& take) {
  const std::optional<graph::DType> cast = bound.cast_of(method);
  std::vector<bool> seen(graph.tensors.size(), false);
  for (const graph::Op& op : step.ops)
    for (const graph::TensorId id : op.weights) {
      if (seen[static_cast<std::size_t>(id)]) continue;
      seen[static_cast<std::size_t>(id)] = true;
      const graph::Tensor& tensor = graph.tensor(id);
      const graph::DTypeInfo& stored = graph::dtype_info(tensor.dtype);
      const bool number = stored.kind == graph::DTypeKind::floating && stored.block_elements == 1;
      if (tensor.shape.size() > 1) take(tensor, number && cast ? *cast : tensor.dtype);
    }
}

// Throws Error{unsupported} if no training step can follow the load.
void check_training(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                    const plan::ForwardPass* pass) {
  if (pass == nullptr || !pass->graph->training) return;
  const Runtime runtime = method.traits.runtime;
  if (runtime != Runtime::torch && runtime != Runtime::own && runtime != Runtime::any)
    throw Error(ErrorCode::unsupported, "{}: its framework trains nothing", method.id);
  if (method.traits.streams)
    throw Error(ErrorCode::unsupported, "{}: its weights come and go, a training step needs them to stay",
                method.id);
  if (!bound.placement.all_on_device() && !computes_on_host(bound.placement))
    throw Error(ErrorCode::unsupported, "{}: no training step is projected with weights in two places",
                method.id);
  if (pass->graph->training->adapter_bytes > 0) return;
  for_used_types(graph, method, bound, *pass->graph, [&](const graph::Tensor& tensor, graph::DType type) {
    const graph::DTypeInfo& info = graph::dtype_info(type);
    if (info.kind != graph::DTypeKind::floating || info.block_elements != 1 || info.block_bytes < 2)
      throw Error(ErrorCode::unsupported, "{}: '{}' is {}, which no optimizer trains", method.id,
                  safe_display(tensor.name.view(), 100), info.name);
  });
}

}  // namespace

std::string untrained_types(const graph::MetaGraph& graph, const Method& method, const BoundRequest& bound,
                            const plan::ForwardPass* pass) {
  if (pass == nullptr || !pass->graph->training) return "";
  const graph::DType activation = pass->graph->training->type;
  std::string other;
  for_used_types(graph, method, bound, *pass->graph, [&](const graph::Tensor&, graph::DType type) {
    if (type != activation && other.empty())
      other = fmt::format("weights of {} beside activations of {}", graph::dtype_info(type).name,
                          graph::dtype_info(activation).name);
  });
  return other;
}

bool streams_figures(const BoundRequest& bound) {
  return !allocators::reserves(bound.request.allocator) && !bound.request.page_cache_budget &&
         !bound.request.prepack;
}

Projection project(const graph::MetaGraph& graph, const Method& method, std::string order,
                   const StorageOrder& storages, const BoundRequest& bound, Progress& progress,
                   const plan::ForwardPass* pass, Projection used, Keep keep) {
  progress.check_canceled();
  if (const std::optional<BoundRequest> own = as_called(graph, method, bound))
    return project(graph, method, std::move(order), storages, *own, progress, pass, std::move(used), keep);
  check_training(graph, method, bound, pass);
  if (bound.request.commit_limit && method.traits.heap == Heap::own) {
    std::string known;
    for (const Method& other : methods())
      if (other.traits.heap != Heap::own) known.append(known.empty() ? "" : ", ").append(other.id);
    throw Error(ErrorCode::unsupported, "{}: what it commits is not known; it is for {}", method.id, known);
  }
  Projection projection;
  projection.method = &method;
  projection.order = std::move(order);
  projection.on_host = computes_on_host(bound.placement);
  projection.plan = std::move(used.plan);
  projection.timeline = std::move(used.timeline);
  const Projector projector(graph, method, storages, bound, progress, pass);
  const bool by_peaks = keep == Keep::figures && streams_figures(bound);
  std::optional<plan::HeapForecast> heap;
  const std::vector<bool> views = stay_views(graph, method, bound);
  if (std::optional<plan::HeapUse> use = heap_use(graph, method, bound, views)) heap.emplace(std::move(*use));
  if (by_peaks) {
    projector.run_streamed(projection, heap ? &*heap : nullptr);
    find_pass_reads(projection, graph, bound);
  }
  if (!by_peaks || !judged_by_peaks(projection)) {
    projector.run_whole(projection, heap && !by_peaks ? &*heap : nullptr);
    find_pass_reads(projection, graph, bound);
  }
  const std::uint64_t host = projection.timeline.peaks[plan::index(plan::Space::host)].bytes;
  if (heap) {
    const plan::HeapFigures figures = heap->finish(projection.plan.blocks);
    projection.committed = figures.committed;
    if (!simulates_host(bound) && tells_more(figures.resident.high, host))
      projection.host_range = figures.resident;
    const std::uint64_t pages = projection.timeline.peaks[plan::index(plan::Space::page_cache)].bytes;
    if (const std::uint64_t viewed = pages_of_views(graph, views); tells_more(viewed, pages))
      projection.pages_of_views = viewed;
  }
  if (bound.request.allocator == allocators::AllocatorModel::malloc)
    projection.host_range = {
        host, std::max({plan::unreused_heap_peak(projection.plan), host,
                        (*projection.timeline.reserved_peak)[plan::index(plan::Space::host)]})};
  if (bound.request.allocator == allocators::AllocatorModel::arena) plan_arenas(projection, progress);
  projection.seconds = modeled_seconds(projection.timeline, projection.reads, bound.costs);
  return projection;
}

Projection project(const graph::MetaGraph& graph, const Method& method, const Order& order,
                   const BoundRequest& bound) {
  Progress progress;
  return project(graph, method, order, bound, progress);
}

std::string mapping_refusal(const graph::MetaGraph& graph) {
  const std::vector<graph::EncodingShare> encoded = graph::encoding_shares(graph);
  if (encoded.empty()) return "";
  std::string kinds;
  std::uint64_t storages = 0;
  std::uint64_t bytes = 0;
  for (const graph::EncodingShare& share : encoded) {
    kinds += (kinds.empty() ? "" : ", ") + std::string(graph::encoding_name(share.encoding));
    storages += share.storages;
    bytes += share.bytes;
  }
  return fmt::format("the files cannot be mapped: {} of {} ({}) not stored as plain bytes: {}",
                     format_grouped(storages), counted(graph.storages.size(), "storage"), format_bytes(bytes),
                     kinds);
}

std::uint64_t device_lower_bound(const graph::MetaGraph& graph, const BoundRequest& bound,
                                 const plan::ForwardPass* pass) {
  const bool on_device = !computes_on_host(bound.placement);
  std::uint64_t needed = on_device ? bound.request.activation_bytes : 0;
  std::vector<std::uint64_t> sizes = loaded_bytes(graph, bound.request.cast);
  if (bound.request.prepack && !bound.request.cast) {
    const std::vector<std::optional<convert::Prepack>> prepacks =
        storage_prepacks(graph, *bound.request.prepack);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (prepacks[i]) sizes[i] = std::min(sizes[i], convert::prepacked_bytes(*prepacks[i]));
  }
  for (const graph::StorageId id : used_storages(graph))
    if (bound.placement.of(id) == Home::device) needed = add_loaded(needed, sizes[graph::index(id)]);
  if (pass != nullptr && on_device) needed = add_loaded(needed, forward_peak(*pass));
  return needed;
}

std::uint64_t held_peak(const plan::Timeline& timeline) {
  return plan::peak_over(timeline, plan::kHeldSpaces).bytes;
}

const plan::PerSpace<std::uint64_t>& judged_bytes(const plan::Timeline& timeline, std::size_t i) {
  return timeline.reserved_usage.empty() ? timeline.usage[i].bytes : timeline.reserved_usage[i];
}

namespace {

BudgetVerdict verdict_by_points(const Projection& projection, const Budget& budget) {
  BudgetVerdict verdict;
  const auto check = [](std::uint64_t bytes, const std::optional<std::uint64_t>& limit, bool& fits,
                        std::uint64_t& over) {
    if (!limit || bytes <= *limit) return;
    fits = false;
    over = std::max(over, bytes - *limit);
  };
  const plan::Timeline& timeline = projection.timeline;
  const std::size_t loaded = loaded_step(projection.plan);
  for (std::size_t i = 0; i < timeline.usage.size(); ++i) {
    const plan::PerSpace<std::uint64_t>& bytes = judged_bytes(timeline, i);
    const std::uint64_t device = bytes[plan::index(plan::Space::device)];
    const std::uint64_t needed = timeline.usage[i].step >= loaded ? projection.pass_reads.mapped : 0;
    const std::uint64_t host =
        bytes[plan::index(plan::Space::host)] + bytes[plan::index(plan::Space::staging)] + needed;
    verdict.device_peak = std::max(verdict.device_peak, device);
    verdict.host_peak = std::max(verdict.host_peak, host);
    verdict.unified_peak = std::max(verdict.unified_peak, device + host);
    check(device, budget.device, verdict.device_fits, verdict.device_over);
    check(host, budget.host, verdict.host_fits, verdict.host_over);
    check(device + host, budget.unified, verdict.unified_fits, verdict.unified_over);
    if (budget.pages_may_stay)
      verdict.unified_high = std::max(verdict.unified_high,
                                      device + host - needed + bytes[plan::index(plan::Space::page_cache)]);
    if (!verdict.fits() && !verdict.step) {
      verdict.step = timeline.usage[i].step;
      verdict.block = plan::block_allocated_at(timeline, *verdict.step);
    }
  }
  return verdict;
}

}  // namespace

BudgetVerdict check_budget(const Projection& projection, const Budget& budget) {
  const std::optional<BudgetVerdict> quick = verdict_by_peaks(projection, budget);
  BudgetVerdict verdict = quick ? *quick : verdict_by_points(projection, budget);
  verdict.unified_high = std::max(verdict.unified_high, verdict.unified_peak);
  verdict.host_high = verdict.host_peak;
  if (projection.host_range) {
    // what the heap takes beyond the blocks that are counted
    const auto counted = projection.timeline.reserved_peak
                             ? (*projection.timeline.reserved_peak)[plan::index(plan::Space::host)]
                             : projection.timeline.peaks[plan::index(plan::Space::host)].bytes;
    const auto more = [&](std::uint64_t bytes) { return bytes - std::min(bytes, counted); };
    const std::uint64_t least = more(projection.host_range->low), most = more(projection.host_range->high);
    verdict.host_high += most;
    verdict.unified_high += most;
    const auto raise = [&](std::uint64_t& peak, const std::optional<std::uint64_t>& limit, bool& fits,
                           std::uint64_t& over) {
      peak += least;
      if (!limit || peak <= *limit) return;
      fits = false;
      over = std::max(over, peak - *limit);
    };
    raise(verdict.host_peak, budget.host, verdict.host_fits, verdict.host_over);
    raise(verdict.unified_peak, budget.unified, verdict.unified_fits, verdict.unified_over);
  }
  verdict.committed = projection.committed.value_or(0);
  verdict.committed_known = !budget.committed || projection.committed;
  if (budget.committed && verdict.committed > *budget.committed)
    verdict.committed_over = verdict.committed - *budget.committed;
  const auto risk = [&](std::uint64_t low, std::uint64_t high, const std::optional<std::uint64_t>& limit,
                        bool fits) {
    if (!limit || !fits || high <= *limit || high - *limit <= verdict.at_risk) return;
    verdict.at_risk = high - *limit;
    verdict.risk_low = low;
    verdict.risk_high = high;
  };
  risk(verdict.unified_peak, verdict.unified_high, budget.unified, verdict.unified_fits);
  risk(verdict.host_peak, verdict.host_high, budget.host, verdict.host_fits);
  return verdict;
}

}  // namespace loadline::load
