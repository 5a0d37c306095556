// Projects rows in parallel, keeps their figures, sorts them.
#include "core/load/answer/rows.h"

#include "core/base/option.h"
#include "core/base/tasks.h"
#include "core/io/system_memory.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/order/optimal_order.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace loadline::load {

// --- Finds rows that are the same load, and distributes the loads over threads.

namespace {

// A sequence of storages, and the orders that give it.
struct Sequence {
  const StorageOrder* storages = nullptr;
  std::vector<std::size_t> orders;
};

BoundRequest with_parts(const graph::MetaGraph& graph, BoundRequest bound) {
  if (!bound.parts) bound.parts = std::make_shared<const NamedParts>(graph);
  return bound;
}

// One method with one sequence: one projection, which gives a row for each of the orders.
struct Load {
  std::size_t method = 0;
  const StorageOrder* storages = nullptr;
  std::vector<std::size_t> orders;
};

class Comparison {
 public:
  Comparison(const graph::MetaGraph& graph, std::span<const Method* const> methods, const BoundRequest& bound,
             const plan::ForwardPass* pass, const RowTaker& taker, Progress& progress, std::size_t threads,
             Keep keep)
      : graph_(graph),
        methods_(methods),
        orders_(bound.orders),
        bound_(with_parts(graph, bound)),
        pass_(pass),
        taker_(taker),
        progress_(progress),
        threads_(std::max<std::size_t>(threads, 1)),
        keep_(keep),
        table_(graph) {}

  void run() {
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      progress_.check_canceled();
      if (is_own(i))
        own_orders_.push_back(i);
      else
        add(orders_[i].row != nullptr ? table_.of(*orders_[i].row) : *orders_[i].listed, i);
    }
    if (!own_orders_.empty()) find_own_orders();
    const std::vector<Load> loads = all_loads();
    ParallelLoop(loads.size(), threads_, [&](std::size_t i) { project_load(loads[i]); }).finish();
  }

 private:
  // Whether each method makes this order for itself.
  bool is_own(std::size_t order) const {
    return orders_[order].row != nullptr && orders_[order].row->make == nullptr;
  }

  void add(const StorageOrder& storages, std::size_t order) {
    for (Sequence& sequence : sequences_)
      if (*sequence.storages == storages) return sequence.orders.push_back(order);
    sequences_.push_back({&storages, {order}});
  }

  // Finds each method's own order. All orders that depend on the method are the same one.
  void find_own_orders() {
    own_.resize(methods_.size());
    done_.resize(methods_.size(), nullptr);
    ParallelLoop(methods_.size(), threads_, [&](std::size_t m) {
      if (is_best_in_file_order(m)) return;
      try {
        own_[m] = optimal_order(graph_, *methods_[m], bound_, progress_, table_);
      } catch (const Error& error) {
        if (!is_refusal(error)) throw;
        refuse(m, own_orders_, error);
      }
    }).finish();
  }

  // Projects a load in file order ahead of the others: for most methods it proves that order the best one,
  // and gives the rows of both.
  bool is_best_in_file_order(std::size_t method) {
    const auto file = std::ranges::find_if(
        sequences_, [&](const Sequence& sequence) { return *sequence.storages == table_.file(); });
    if (file == sequences_.end() || pass_ != nullptr || methods_[method]->traits.order_free) return false;
    Load load = {method, file->storages, file->orders};
    load.orders.insert(load.orders.end(), own_orders_.begin(), own_orders_.end());
    std::optional<Projection> projection;
    try {
      projection = projected(load);
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      return false;
    }
    if (proves_file_order(bound_, projection->plan, projection->timeline)) {
      own_[method] = OptimalOrder{.order = {}, .proven = true};
      done_[method] = file->storages;
      progress_.add_total(1);
      progress_.add(1);
      take_rows(load, *projection);
    }
    give_back(std::move(*projection));
    return done_[method] != nullptr;
  }

  std::vector<Load> all_loads() const {
    std::vector<Load> loads;
    for (std::size_t m = 0; m < methods_.size(); ++m) {
      const StorageOrder* const done = done_.empty() ? nullptr : done_[m];
      const std::size_t first = loads.size();
      for (const Sequence& sequence : sequences_)
        if (sequence.storages != done) loads.push_back({m, sequence.storages, sequence.orders});
      if (done != nullptr || own_orders_.empty() || !own_[m]) continue;
      const auto same = std::find_if(loads.begin() + static_cast<std::ptrdiff_t>(first), loads.end(),
                                     [&](const Load& load) { return *load.storages == own_[m]->order; });
      if (same == loads.end())
        loads.push_back({m, &own_[m]->order, own_orders_});
      else
        same->orders.insert(same->orders.end(), own_orders_.begin(), own_orders_.end());
    }
    return loads;
  }

  void project_load(const Load& load) {
    std::optional<Projection> projection;
    try {
      projection = projected(load);
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      progress_.add(1);
      return refuse(load.method, load.orders, error);
    }
    progress_.add(1);
    take_rows(load, *projection);
    give_back(std::move(*projection));
  }
  Projection projected(const Load& load) {
    // a counter shared by all threads would slow every copy down
    Progress own(progress_.stop_token());
    return project(graph_, *methods_[load.method], "", *load.storages, bound_, own, pass_, take_used(),
                   keep_);
  }
  void take_rows(const Load& load, Projection& projection) const {
    for (const std::size_t order : load.orders) {
      projection.order = orders_[order].name;
      projection.order_proven = is_own(order) ? std::optional(own_[load.method]->proven) : std::nullopt;
      taker_.take(load.method * orders_.size() + order, projection);
    }
  }
  // The memory of an earlier projection, if one is free.
  Projection take_used() {
    const std::lock_guard lock(mutex_);
    if (used_.empty()) return {};
    Projection used = std::move(used_.back());
    used_.pop_back();
    return used;
  }

  // Of a large model the next load would keep the most that each list ever needed: it begins with none.
  void give_back(Projection projection) {
    constexpr std::size_t kLarge = 500'000;
    if (graph_.storages.size() >= kLarge) {
      projection = {};
      return io::release_free_memory();
    }
    const std::lock_guard lock(mutex_);
    used_.push_back(std::move(projection));
  }

  void refuse(std::size_t method, const std::vector<std::size_t>& orders, const Error& error) const {
    for (const std::size_t order : orders) taker_.refuse(method * orders_.size() + order, error);
  }

  const graph::MetaGraph& graph_;
  const std::span<const Method* const> methods_;
  const std::span<const OrderChoice> orders_;
  const BoundRequest bound_;
  const plan::ForwardPass* const pass_;
  const RowTaker& taker_;
  Progress& progress_;
  const std::size_t threads_;
  const Keep keep_;
  const TableOrders table_;
  std::vector<Sequence> sequences_;               // for every method
  std::vector<std::size_t> own_orders_;           // orders that each method makes for itself
  std::vector<std::optional<OptimalOrder>> own_;  // by method; absent if it was refused
  std::vector<const StorageOrder*> done_;         // by method: the sequence that was projected ahead
  std::mutex mutex_;
  std::vector<Projection> used_;  // at most one for each thread
};

}  // namespace

void compare(const graph::MetaGraph& graph, std::span<const Method* const> methods, const BoundRequest& bound,
             const plan::ForwardPass* pass, const RowTaker& taker, Progress& progress, std::size_t threads,
             Keep keep) {
  Comparison(graph, methods, bound, pass, taker, progress, threads, keep).run();
}

void compare(const graph::MetaGraph& graph, std::span<const Method* const> methods, const BoundRequest& bound,
             const plan::ForwardPass* pass, const RowTaker& taker, Progress& progress, Keep keep) {
  constexpr std::size_t kMostThreads = 4;
  // Of a projection: its blocks and lifetimes. A whole one also has its steps, with room to grow, and its
  // usage; where a pass reads mapped weights, figures need that too.
  const bool streamed = keep == Keep::figures && streams_figures(bound) && !uses_weights(bound.request);
  const std::size_t kBytesOfStorage = streamed ? 300 : 1300;
  constexpr std::size_t kMostBytes = std::size_t{512} << 20;
  const std::size_t fitting =
      kMostBytes / (kBytesOfStorage * std::max<std::size_t>(graph.storages.size(), 1));
  const std::size_t threads = std::clamp<std::size_t>(std::min(cores(), fitting), 1, kMostThreads);
  compare(graph, methods, bound, pass, taker, progress, threads, keep);
}

// --- Turns a projection into the figures of its row.

namespace {

RowPeak row_peak(const Projection& projection, std::uint64_t bytes, std::size_t step, const Labels& labels) {
  return {bytes, step, bytes == 0 ? "" : labels.at_step(projection, step)};
}

RowPeak judged_peak(const Projection& projection, const BoundRequest& bound, const Labels& labels) {
  const plan::Timeline& timeline = projection.timeline;
  const unsigned spaces = bound.judges_host(projection.on_host)
                              ? plan::space_bit(plan::Space::host) | plan::space_bit(plan::Space::staging)
                              : plan::deciding_spaces(bound.memory.kind);
  if (timeline.reserved_usage.empty()) {
    const plan::Peak peak = plan::peak_over(timeline, spaces);
    return row_peak(projection, peak.bytes, peak.step, labels);
  }
  std::uint64_t most = 0;
  std::size_t step = 0;
  for (std::size_t i = 0; i < timeline.usage.size(); ++i) {
    const std::uint64_t bytes = plan::sum_over(judged_bytes(timeline, i), spaces);
    if (bytes <= most) continue;
    most = bytes;
    step = timeline.usage[i].step;
  }
  return row_peak(projection, most, step, labels);
}

// What is read for each token that the page cache cannot keep from one to the next. The least recently used
// pages go first: of weights that do not all fit, none is still there when its turn comes.
std::uint64_t reread_by_pass(const Projection& projection, const BoundRequest& bound) {
  const PassReads& reads = projection.pass_reads;
  std::uint64_t room = bound.request.page_cache_budget.value_or(UINT64_MAX);
  const auto leave = [&](const std::optional<std::uint64_t>& budget, std::uint64_t held) {
    if (budget) room = std::min(room, *budget - std::min(*budget, held));
  };
  const plan::Timeline& timeline = projection.timeline;
  const plan::PerSpace<std::uint64_t>& final =
      timeline.reserved_final ? *timeline.reserved_final : timeline.final_bytes;
  const std::uint64_t host = final[plan::index(plan::Space::host)] + final[plan::index(plan::Space::staging)];
  leave(bound.memory.budget.host, host);
  leave(bound.memory.budget.unified, host + final[plan::index(plan::Space::device)]);
  return reads.all() > room ? reads.all() : 0;
}

// The blocks of each space at its own peak, found in one pass.
plan::PerSpace<AliveBlocks> alive_blocks(const Projection& projection, const Labels& labels,
                                         std::size_t most) {
  plan::PerSpace<AliveBlocks> alive;
  if (most == 0) return alive;
  const plan::Plan& plan = projection.plan;
  plan::PerSpace<std::size_t> peaks;  // steps; no block outlives kNever
  for (std::size_t space = 0; space < peaks.size(); ++space)
    peaks[space] =
        projection.timeline.peaks[space].bytes == 0 ? plan::kNever : projection.timeline.peaks[space].step;
  plan::PerSpace<std::vector<plan::BlockId>> largest;  // largest first, ties by id
  plan::PerSpace<std::size_t> counts = {};
  plan::PerSpace<std::uint64_t> above = {};  // the size of the last of `most`: an entry must exceed it
  const auto keep = [&](std::vector<plan::BlockId>& found, std::uint64_t bytes, plan::BlockId id) {
    if (found.size() == most) found.pop_back();
    found.insert(
        std::ranges::find_if(found, [&](plan::BlockId other) { return plan.block(other).bytes < bytes; }),
        id);
    return found.size() == most ? plan.block(found.back()).bytes : 0;
  };
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const plan::Block& block = plan.blocks[i];
    const std::size_t space = plan::index(block.space);
    const plan::Lifetime life = projection.timeline.lifetimes[i];
    if (life.from_step > peaks[space] || peaks[space] >= life.to_step) continue;
    ++counts[space];
    if (block.bytes > above[space] || largest[space].size() < most)
      above[space] = keep(largest[space], block.bytes, plan::BlockId{static_cast<std::uint32_t>(i)});
  }
  for (std::size_t space = 0; space < alive.size(); ++space) alive[space].count = counts[space];
  for (std::size_t space = 0; space < alive.size(); ++space)
    for (const plan::BlockId id : largest[space])
      alive[space].largest.push_back({labels.of(plan, id), plan.block(id).bytes});
  return alive;
}

}  // namespace

namespace {

// The required peak, if it is not exceeded anyway, against the upper end of what the load may take.
void judge_high_end(LoadRow& row, const BoundRequest& bound, bool on_host) {
  BudgetVerdict& verdict = row.verdict;
  const bool host = bound.judges_host(on_host);
  if (!bound.request.require_peak || row.over_required_peak > 0 ||
      (!host && bound.memory.kind != plan::MemoryKind::unified))
    return;
  const std::uint64_t high = host ? verdict.host_high : verdict.unified_high;
  const std::uint64_t limit = *bound.request.require_peak;
  if (high <= limit || high - limit <= verdict.at_risk) return;
  verdict.at_risk = high - limit;
  verdict.risk_low = host ? verdict.host_peak : verdict.unified_peak;
  verdict.risk_high = high;
}

}  // namespace

LoadRow make_row(const Projection& projection, const BoundRequest& bound, const Labels& labels,
                 std::size_t alive) {
  const plan::Timeline& timeline = projection.timeline;
  const plan::Plan& plan = projection.plan;
  const LoadRequest& request = bound.request;
  LoadRow row;
  row.method = projection.method;
  row.order = projection.order;
  row.order_proven = projection.order_proven;
  row.incomplete = !bound.incomplete.empty();
  row.reads = projection.reads;
  row.seconds = projection.seconds;
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    row.peaks[i] = row_peak(projection, timeline.peaks[i].bytes, timeline.peaks[i].step, labels);
  row.alive = alive_blocks(projection, labels, alive);
  const std::vector<plan::ViewPeak> views =
      plan::view_peaks(timeline, bound.memory.kind, request.page_cache_budget);
  for (const plan::ViewPeak& view : views) row.views.push_back(view.bytes);
  // a page cache budget limits every figure that counts the page cache
  const auto view_peak = [&](std::string_view id) {
    const plan::ViewPeak& view = views[plan::view_position(id)];
    return row_peak(projection, view.bytes, view.step, labels);
  };
  row.unified_peak = view_peak("unified");
  row.peaks[plan::index(plan::Space::page_cache)] = view_peak("file_backed");
  const plan::ViewPeak& deciding = views[plan::deciding_view(bound.memory.kind)];
  row.deciding_peak = row_peak(projection, deciding.bytes, deciding.step, labels);
  row.held_peak = held_peak(timeline);
  row.final_bytes = timeline.final_bytes;
  row.reserved = timeline.reserved_peak;
  row.reserved_final = timeline.reserved_final;
  row.host_range = projection.host_range;
  row.pages_of_views = projection.pages_of_views;
  row.committed = projection.committed;
  row.allocated = timeline.allocated_peak;
  if (request.page_cache_budget) {
    row.cache = plan::limit_cache(projection.plan, timeline, *request.page_cache_budget);
    row.seconds += static_cast<double>(row.cache->reread_bytes) / bound.costs.disk_read;
  }
  row.verdict = check_budget(projection, bound.memory.budget);
  row.pass_reads = projection.pass_reads;
  row.reread = reread_by_pass(projection, bound);
  row.seconds += static_cast<double>(row.reread) / bound.costs.disk_read;
  if (request.require_peak) {  // which may be exceeded before a budget is
    const BudgetVerdict strict = check_budget(projection, bound.limits(projection.on_host));
    row.verdict.step = strict.step;
    row.verdict.block = strict.block;
  }
  if (row.verdict.block) row.first_over = labels.of(plan, *row.verdict.block);
  row.judged_peak = judged_peak(projection, bound, labels);
  // with the mapped weights that each token needs
  if (bound.judges_host(projection.on_host))
    row.judged_peak.bytes = std::max(row.judged_peak.bytes, row.verdict.host_peak);
  else if (bound.memory.kind == plan::MemoryKind::unified)
    row.judged_peak.bytes = std::max(row.judged_peak.bytes, row.verdict.unified_peak);
  if (request.require_peak && row.judged_peak.bytes > *request.require_peak)
    row.over_required_peak = row.judged_peak.bytes - *request.require_peak;
  judge_high_end(row, bound, projection.on_host);
  return row;
}

LoadRow refused_row(const Method& method, std::string order, const Error& refusal) {
  LoadRow row;
  row.method = &method;
  row.order = std::move(order);
  row.refusal = refusal;
  return row;
}

// --- Sorts rows for display.

namespace {

template <plan::Space space>
std::uint64_t space_peak(const LoadRow& row) {
  return row.peaks[plan::index(space)].bytes;
}

constexpr std::array<RowSortName, 14> kSorts = {
    {{"fit", RowSort::fit},
     {"table", RowSort::table},
     {"method", RowSort::method},
     {"order", RowSort::order},
     {"device", RowSort::device, space_peak<plan::Space::device>},
     {"host", RowSort::host, space_peak<plan::Space::host>},
     {"page_cache", RowSort::page_cache, space_peak<plan::Space::page_cache>},
     {"staging", RowSort::staging, space_peak<plan::Space::staging>},
     {"held", RowSort::held, [](const LoadRow& row) { return row.held_peak; }},
     {"unified", RowSort::unified, [](const LoadRow& row) { return row.unified_peak.bytes; }},
     {"jumps", RowSort::jumps, [](const LoadRow& row) -> std::uint64_t { return row.reads.jumps; }},
     {"time", RowSort::time},
     {"context", RowSort::context,
      [](const LoadRow& row) { return UINT64_MAX - row.context_max.value_or(0); }},
     {"verdict", RowSort::verdict, [](const LoadRow& row) { return row.most_over(); }}}};

// The largest share of any budget that is used: that of the space with the least room.
double share_of_budget(const LoadRow& row, const BoundRequest& bound) {
  double most = 0;
  const auto take = [&](std::uint64_t peak, const std::optional<std::uint64_t>& budget) {
    if (budget)
      most = std::max(most, static_cast<double>(peak) / std::max(static_cast<double>(*budget), 1.0));
  };
  take(row.verdict.device_peak, bound.memory.budget.device);
  take(row.verdict.host_peak, bound.memory.budget.host);
  take(row.verdict.unified_peak, bound.memory.budget.unified);
  take(row.verdict.committed, bound.memory.budget.committed);
  take(row.judged_peak.bytes, bound.request.require_peak);
  return most;
}

auto fit_key(const LoadRow& row, const BoundRequest& bound) {
  const bool unified = bound.memory.kind == plan::MemoryKind::unified;
  return std::tuple(
      !row.fits(), bound.judged() ? share_of_budget(row, bound) : 0.0,
      unified ? row.held_peak : row.peaks[plan::index(plan::Space::device)].bytes,
      row.peaks[plan::index(plan::Space::host)].bytes + row.peaks[plan::index(plan::Space::staging)].bytes);
}

bool comes_before(const LoadRow& a, const LoadRow& b, const BoundRequest& bound, RowSort sort) {
  if (sort == RowSort::fit) return fit_key(a, bound) < fit_key(b, bound);
  if (sort == RowSort::table) return false;
  if (sort == RowSort::method) return a.method->id < b.method->id;
  if (sort == RowSort::order) return a.order < b.order;
  if (sort == RowSort::time) return a.seconds < b.seconds;
  const auto figure = std::ranges::find(kSorts, sort, &RowSortName::sort)->figure;
  return figure(a) < figure(b);
}

}  // namespace

std::span<const RowSortName> row_sorts() { return kSorts; }

RowSort find_row_sort(std::string_view id) { return find_row(row_sorts(), id, "order of rows").sort; }

std::vector<std::size_t> sorted_rows(std::span<const LoadRow> rows, const BoundRequest& bound, RowSort sort,
                                     bool ascending) {
  std::vector<std::size_t> at(rows.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  const bool words = sort == RowSort::method || sort == RowSort::order;
  std::ranges::stable_sort(at, [&](std::size_t a, std::size_t b) {
    if (!words && rows[a].refusal.has_value() != rows[b].refusal.has_value())
      return rows[b].refusal.has_value();
    return ascending ? comes_before(rows[a], rows[b], bound, sort)
                     : comes_before(rows[b], rows[a], bound, sort);
  });
  return at;
}

}  // namespace loadline::load
