// Finds rows that are the same load, and distributes the loads over threads.
#include "core/base/parallel.h"
#include "core/load/answer/compare.h"
#include "core/load/order/optimal_order_2.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace loadline {
namespace {

bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::limit || error.code() == ErrorCode::unsupported;
}

// A sequence of storages, and the orders that give it.
struct Sequence {
  StorageOrder storages;
  std::vector<std::size_t> orders;
};

// One method with one sequence: one projection, which gives a row for each of the orders.
struct Load {
  std::size_t method = 0;
  const StorageOrder* storages = nullptr;
  std::vector<std::size_t> orders;
};

class Comparison {
 public:
  Comparison(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress, std::size_t threads)
      : graph_(graph),
        methods_(methods),
        orders_(orders),
        inputs_(inputs),
        pass_(pass),
        taker_(taker),
        progress_(progress),
        threads_(std::max<std::size_t>(threads, 1)) {}

  void run() {
    for (std::size_t i = 0; i < orders_.size(); ++i) {
      progress_.check_cancelled();
      if (is_own(i))
        own_orders_.push_back(i);
      else
        add(orders_[i].row != nullptr ? orders_[i].row->make(graph_) : orders_[i].listed, i);
    }
    if (!own_orders_.empty()) find_own_orders();
    const std::vector<Load> loads = all_loads();
    progress_.add_total(loads.size());
    ParallelLoop(loads.size(), threads_, [&](std::size_t i) { project_load(loads[i]); }).finish();
  }

 private:
  // Whether each method makes this order for itself.
  bool is_own(std::size_t order) const {
    return orders_[order].row != nullptr && orders_[order].row->make == nullptr;
  }

  void add(StorageOrder storages, std::size_t order) {
    for (Sequence& sequence : sequences_)
      if (sequence.storages == storages) return sequence.orders.push_back(order);
    sequences_.push_back({std::move(storages), {order}});
  }

  // Finds each method's own order. All orders that depend on the method are the same one.
  void find_own_orders() {
    own_.resize(methods_.size());
    ParallelLoop(methods_.size(), threads_, [&](std::size_t m) {
      try {
        own_[m] = optimal_order(graph_, *methods_[m], inputs_, progress_);
      } catch (const Error& error) {
        if (!is_refusal(error)) throw;
        refuse(m, own_orders_, error);
      }
    }).finish();
  }

  std::vector<Load> all_loads() const {
    std::vector<Load> loads;
    for (std::size_t m = 0; m < methods_.size(); ++m) {
      const std::size_t first = loads.size();
      for (const Sequence& sequence : sequences_) loads.push_back({m, &sequence.storages, sequence.orders});
      if (own_orders_.empty() || !own_[m]) continue;
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
    // a counter shared by all threads would slow every copy down
    Progress own(progress_.stop_token());
    try {
      projection =
          project(graph_, *methods_[load.method], "", *load.storages, inputs_, own, pass_, take_used());
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      progress_.add(1);
      return refuse(load.method, load.orders, error);
    }
    progress_.add(1);
    for (const std::size_t order : load.orders) {
      projection->order = orders_[order].name;
      projection->order_proven = is_own(order) ? std::optional(own_[load.method]->proven) : std::nullopt;
      taker_.take(load.method * orders_.size() + order, *projection);
    }
    const std::lock_guard lock(mutex_);
    used_.push_back(std::move(*projection));
  }
  // The memory of an earlier projection, if one is free.
  Projection take_used() {
    const std::lock_guard lock(mutex_);
    if (used_.empty()) return {};
    Projection used = std::move(used_.back());
    used_.pop_back();
    return used;
  }

  void refuse(std::size_t method, const std::vector<std::size_t>& orders, const Error& error) const {
    for (const std::size_t order : orders) taker_.refuse(method * orders_.size() + order, error);
  }

  const MetaGraph& graph_;
  const std::span<const Method* const> methods_;
  const std::span<const OrderChoice> orders_;
  const LoadInputs& inputs_;
  const ForwardPass* const pass_;
  const RowTaker& taker_;
  Progress& progress_;
  const std::size_t threads_;
  std::vector<Sequence> sequences_;               // for every method
  std::vector<std::size_t> own_orders_;           // orders that each method makes for itself
  std::vector<std::optional<OptimalOrder>> own_;  // by method; absent if it was refused
  std::mutex mutex_;
  std::vector<Projection> used_;  // at most one for each thread
};

}  // namespace

void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress, std::size_t threads) {
  check_request(inputs.request);
  Comparison(graph, methods, orders, inputs, pass, taker, progress, threads).run();
}

void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress) {
  constexpr std::size_t kMostThreads = 4;
  constexpr std::size_t kBytesOfStorage = 600;  // of a projection with two blocks for each
  constexpr std::size_t kMostBytes = std::size_t{512} << 20;
  const std::size_t fitting =
      kMostBytes / (kBytesOfStorage * std::max<std::size_t>(graph.storages.size(), 1));
  const std::size_t threads = std::clamp<std::size_t>(
      std::min<std::size_t>(std::thread::hardware_concurrency(), fitting), 1, kMostThreads);
  compare(graph, methods, orders, inputs, pass, taker, progress, threads);
}

}  // namespace loadline
