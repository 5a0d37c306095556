// Tries candidates stage by stage, one kind of change at a time, until enough of them fit.
#include "core/load/answer/advice.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/load/answer/rows.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/order/optimal_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>

namespace loadline::load {
namespace {

std::uint64_t over(const BudgetVerdict& verdict) {
  return capped_add(capped_add(capped_add(verdict.device_over, verdict.host_over), verdict.committed_over),
                    capped_add(verdict.unified_over, verdict.at_risk));
}

std::uint64_t over(std::uint64_t bytes, const Budget& budget) {
  const auto above = [&](const std::optional<std::uint64_t>& limit) {
    return limit && bytes > *limit ? bytes - *limit : 0;
  };
  return capped_add(above(budget.device), above(budget.unified));
}

constexpr std::string_view kPlaceOption = "place";

bool same_kinds(const AdviceCandidate& a, const AdviceCandidate& b) {
  return std::ranges::equal(a.changes, b.changes, {}, &Change::kind, &Change::kind);
}

// A candidate and the result of its projection.
struct Tried {
  AdviceCandidate candidate;
  AdvisedLoad load;
};

bool better(const Tried& a, const Tried& b) {
  if (takes_less(a.candidate, b.candidate)) return true;
  if (takes_less(b.candidate, a.candidate)) return false;
  return std::tie(a.load.seconds_of_all, a.load.held, a.load.settings) <
         std::tie(b.load.seconds_of_all, b.load.held, b.load.settings);
}

class Search {
 public:
  Search(const graph::MetaGraph& graph, const AdviceRequest& request, Progress& progress, std::size_t threads,
         std::size_t most)
      : graph_(graph),
        request_(request),
        budget_(request.bound.limits()),
        space_(graph, request),
        parts_(std::make_shared<const NamedParts>(graph)),
        progress_(progress),
        threads_(threads),
        most_(most),
        mapped_(mapping_refusal(graph).empty()),
        stored_(graph::storage_bytes(graph)) {
    for (const Order& order : orders())
      if (order.make != nullptr) sequences_.emplace(order.id, order.make(graph));
  }

  Advice run() {
    using Stage = AdviceStage;
    try_stage(Stage::one_change);
    if (fitting_.empty())
      try_stage(Stage::two_changes);
    else
      try_experts();
    if (fitting_.size() < kMostAdvice) try_stage(Stage::streaming);
    if (fitting_.empty()) try_stage(Stage::streaming_and_another);
    if (fitting_.empty()) try_ruled_out();
    for (Tried& tried : fitting_) {
      auto bound = std::make_shared<BoundRequest>(space_.bind(tried.candidate));
      bound->methods = {tried.candidate.method};
      bound->orders = {*tried.candidate.order};
      tried.load.bound = std::move(bound);
      advice_.loads.push_back(std::move(tried.load));
    }
    if (advice_.loads.empty() && nearest_) advice_.nearest = std::move(nearest_->load);
    return std::move(advice_);
  }

 private:
  void try_stage(AdviceStage stage) {
    const std::vector<AdviceCandidate> all = space_.candidates(stage);
    for (auto from = all.begin(); from != all.end() && fitting_.size() < kMostAdvice;) {
      const auto to = std::find_if(from, all.end(),
                                   [&](const AdviceCandidate& load) { return !same_kinds(load, *from); });
      try_kind({from, to});
      from = to;
    }
  }

  void try_kind(std::span<const AdviceCandidate> all) {
    std::vector<AdviceCandidate> possible;
    for (const AdviceCandidate& candidate : all) {
      const bool ruled_out = over(space_.device_bound(candidate), budget_) > 0;
      (ruled_out ? ruled_out_ : possible).push_back(candidate);
    }
    std::vector<Tried> fits;
    for (Tried& tried : project_all(possible)) {
      if (tried.load.verdict.fits())
        fits.push_back(std::move(tried));
      else
        note_nearest(std::move(tried));
    }
    std::ranges::sort(fits, better);
    for (const std::size_t i : alternatives(fits, kMostAdvice - fitting_.size()))
      fitting_.push_back(std::move(fits[i]));
  }

  // Positions of those to tell: a slightly smaller change of the same kind is no real alternative. The best
  // of each way to place weights comes before other methods that place them likewise.
  static std::vector<std::size_t> alternatives(const std::vector<Tried>& fits, std::size_t room) {
    constexpr std::size_t kMostOfAKind = 3;
    using Way = std::pair<const Method*, std::string_view>;
    const auto option_of = [](const Tried& tried) {
      const PlacementChoice* const placement = tried.candidate.placement;
      return placement == nullptr ? std::string_view() : placement->option;
    };
    std::vector<std::size_t> chosen;
    const auto choose = [&](auto same) {
      for (std::size_t i = 0; i < fits.size() && chosen.size() < std::min(room, kMostOfAKind); ++i)
        if (std::ranges::none_of(chosen, [&](std::size_t told) { return same(fits[told], fits[i]); }))
          chosen.push_back(i);
    };
    choose([&](const Tried& a, const Tried& b) { return option_of(a) == option_of(b); });
    choose([&](const Tried& a, const Tried& b) {
      return Way(a.load.method, option_of(a)) == Way(b.load.method, option_of(b));
    });
    std::ranges::sort(chosen);
    return chosen;
  }

  // Experts on the host may cost a token less than whole layers there, even with a method that is another
  // change: where something else fits already, the best of them stands beside it.
  void try_experts() {
    const auto places = [](const AdviceCandidate& load) {
      return load.placement != nullptr && load.placement->option == kPlaceOption &&
             load.placement->value != "none";
    };
    if (std::ranges::any_of(fitting_, [&](const Tried& tried) { return places(tried.candidate); })) return;
    std::vector<AdviceCandidate> all = space_.candidates(AdviceStage::two_changes);
    std::erase_if(all, [&](const AdviceCandidate& load) {
      return !places(load) || over(space_.device_bound(load), budget_) > 0;
    });
    std::vector<Tried> fits = project_all(all);
    std::erase_if(fits, [](const Tried& tried) { return !tried.load.verdict.fits(); });
    const auto best = std::ranges::min_element(fits, better);
    if (best == fits.end()) return;
    if (fitting_.size() == kMostAdvice) fitting_.pop_back();
    fitting_.push_back(std::move(*best));
  }

  // Projects ruled-out candidates by increasing bound until none left can be nearer than the nearest known
  // load.
  void try_ruled_out() {
    const auto bound_over = [&](const AdviceCandidate& load) {
      return over(space_.device_bound(load), budget_);
    };
    std::ranges::stable_sort(ruled_out_,
                             [&](const auto& a, const auto& b) { return bound_over(a) < bound_over(b); });
    constexpr std::size_t kAtOnce = 8, kMostRounds = 8;
    const std::span<const AdviceCandidate> all(ruled_out_);
    for (std::size_t at = 0; at < std::min(all.size(), kAtOnce * kMostRounds); at += kAtOnce) {
      if (nearest_ && bound_over(all[at]) >= over(nearest_->load.verdict)) return;
      for (Tried& tried : project_all(all.subspan(at, std::min(kAtOnce, all.size() - at))))
        if (!tried.load.verdict.fits())
          note_nearest(std::move(tried));
        else if (fitting_.size() < kMostAdvice)
          fitting_.push_back(std::move(tried));
    }
  }

  void note_nearest(Tried tried) {
    const auto figure = [](const Tried& t) { return over(t.load.verdict); };
    if (!nearest_ || figure(tried) < figure(*nearest_) ||
        (figure(tried) == figure(*nearest_) && better(tried, *nearest_)))
      nearest_ = std::move(tried);
  }

  // Projects the candidates and returns those that can be done, in the given order.
  std::vector<Tried> project_all(std::span<const AdviceCandidate> all) {
    const std::size_t count = std::min(all.size(), most_ - advice_.tried);
    if (count < all.size()) advice_.complete = false;
    advice_.tried += count;
    progress_.add_total(count);
    std::vector<std::optional<Tried>> tried(count);
    ParallelLoop(count, threads_, [&](std::size_t i) {
      tried[i] = project_one(all[i]);
      progress_.add(1);
    }).finish();
    std::vector<Tried> done;
    for (std::optional<Tried>& one : tried)
      if (one) done.push_back(std::move(*one));
    return done;
  }

  StorageOrder sequence(const AdviceCandidate& candidate, const BoundRequest& bound) const {
    const OrderChoice& order = *candidate.order;
    const auto known = order.row == nullptr ? sequences_.end() : sequences_.find(order.row->id);
    if (known != sequences_.end()) return known->second;
    return make_order(graph_, order, *candidate.method, bound, progress_);
  }

  std::optional<Tried> project_one(const AdviceCandidate& candidate) const {
    try {
      BoundRequest bound = space_.bind(candidate);
      bound.memory.budget = budget_;  // what the projection is judged by
      bound.parts = parts_;
      Progress own(progress_.stop_token());
      const Projection projection =
          project(graph_, *candidate.method, candidate.order->name, sequence(candidate, bound), bound, own,
                  request_.pass, {}, Keep::figures);
      const plan::PerSpace<plan::Peak>& peaks = projection.timeline.peaks;
      if (!mapped_ && projection.maps_files) return std::nullopt;
      Tried tried{candidate, {}};
      for (const Change& change : candidate.changes) tried.load.changes.push_back(change.text);
      tried.load.settings = space_.settings(candidate);
      tried.load.request = candidate.request;
      tried.load.request.methods = {std::string(candidate.method->id)};
      tried.load.request.orders = {candidate.order->name};
      tried.load.method = candidate.method;
      tried.load.order = candidate.order->name;
      for (std::size_t i = 0; i < plan::kSpaceCount; ++i) tried.load.peaks[i] = peaks[i].bytes;
      tried.load.held = held_peak(projection.timeline);
      set_time(tried.load, projection.seconds, projection.reads.bytes, stored_, bound.costs);
      tried.load.verdict = check_budget(projection, request_.bound.limits(projection.on_host));
      return tried;
    } catch (const Error& error) {
      // a load that cannot be done is no advice; a ring too small for the model is one example
      if (is_refusal(error)) return std::nullopt;
      throw;
    }
  }

  const graph::MetaGraph& graph_;
  const AdviceRequest& request_;
  const Budget budget_;
  const AdviceSpace space_;
  const std::shared_ptr<const NamedParts> parts_;
  Progress& progress_;
  const std::size_t threads_, most_;
  const bool mapped_;
  const std::uint64_t stored_;
  std::map<std::string_view, StorageOrder> sequences_;  // of orders that do not depend on the method
  std::vector<AdviceCandidate> ruled_out_;
  std::vector<Tried> fitting_;
  std::optional<Tried> nearest_;
  Advice advice_;
};

}  // namespace

void set_time(AdvisedLoad& load, double seconds, std::uint64_t read, std::uint64_t stored,
              const plan::CostModel& costs) {
  load.seconds = seconds;
  load.unread = stored - std::min(stored, read);
  load.seconds_of_all = seconds + static_cast<double>(load.unread) / costs.disk_read;
}

Advice advise(const graph::MetaGraph& graph, const AdviceRequest& request, Progress& progress,
              std::size_t threads, std::size_t most_projections) {
  progress.check_canceled();
  return Search(graph, request, progress, threads, most_projections).run();
}

}  // namespace loadline::load
