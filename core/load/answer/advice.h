// The smallest change that makes a load fit.
#pragma once

#include "core/load/answer/projection.h"
#include "core/load/request/bind_request.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::load {

// --- The changes that can be tried on a load that does not fit, before any of them is projected.

struct AdviceRequest {
  BoundRequest bound = {};
  // Loads that do not fit or that stream, nearest to a fit first: row m * orders + o is method m in order o.
  std::vector<std::size_t> rows = {};
  const plan::ForwardPass* pass = nullptr;

  const Method& method(std::size_t row) const { return *bound.methods[row / bound.orders.size()]; }
  const OrderChoice& order(std::size_t row) const { return bound.orders[row % bound.orders.size()]; }
};

// What a change costs the user, cheapest first.
enum class ChangeKind : std::uint8_t { order, buffer, shards, method, type, off_device, streaming };

struct Change {
  ChangeKind kind = ChangeKind::order;
  // The size of the change, compared among changes of the same kind: bytes by which a type, a buffer or
  // shards shrink, or that leave the device.
  std::uint64_t degree = 0;
  std::string text = {};
};

// A placement with weights off the device, and the load option that produces it.
struct PlacementChoice {
  Placement placement = {};
  std::string_view option = {};
  std::string value = {};
  std::string text = {};
  std::uint64_t off_device = 0;  // bytes; weights on disk count twice
};

// A load and its changes from one of the original request.
struct AdviceCandidate {
  const Method* method = nullptr;
  const OrderChoice* order = nullptr;
  LoadRequest request = {};                    // with the changes made
  const PlacementChoice* placement = nullptr;  // null: as in the original request
  std::vector<Change> changes = {};            // the largest change first

  bool streams() const { return method->traits.streams; }
};

// Which candidates are tried together; a later stage changes more than an earlier one.
enum class AdviceStage : std::uint8_t { one_change, two_changes, streaming, streaming_and_another };

// Generates the candidates of a request. Graph and request must outlive it; it must outlive its candidates.
class AdviceSpace {
 public:
  AdviceSpace(const graph::MetaGraph& graph, const AdviceRequest& request);
  AdviceSpace(const AdviceSpace&) = delete;
  AdviceSpace& operator=(const AdviceSpace&) = delete;

  // The stage's candidates, the cheapest changes first. Each load appears once, with its cheapest changes.
  std::vector<AdviceCandidate> candidates(AdviceStage stage) const;
  // The original request with the candidate's changes.
  BoundRequest bind(const AdviceCandidate& candidate) const;
  // Ids and values of the candidate's options that differ from the original request; method and order always.
  std::vector<std::pair<std::string_view, std::string>> settings(const AdviceCandidate& candidate) const;
  // device_lower_bound() for the candidate's cast and placement; 0 for a method that streams.
  std::uint64_t device_bound(const AdviceCandidate& candidate) const;

 private:
  AdviceCandidate asked(std::size_t row) const;
  std::vector<AdviceCandidate> changed(const AdviceCandidate& base) const;
  std::vector<AdviceCandidate> changed_again(const std::vector<AdviceCandidate>& ones) const;
  void add_orders(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_buffers(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_shards(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_methods(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_types(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_placements(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;

  void find_runtimes();
  void find_types();
  void find_placements();
  void place_everything();
  void place_layers(std::uint64_t room);
  void place_map(std::uint64_t room);
  void place_experts();
  void keep(PlacementChoice choice);
  const Placement& chosen(const PlacementChoice* placement) const;
  std::uint64_t lower_bound(const std::optional<graph::DType>& cast, const PlacementChoice* placement) const;

  const graph::MetaGraph& graph_;
  const AdviceRequest& request_;
  const Budget budget_;
  std::vector<OrderChoice> orders_;  // those of the table
  std::uint64_t weights_ = 0;
  std::uint64_t largest_file_ = 0;
  bool all_stream_ = false;
  std::set<Runtime> runtimes_;  // of the methods that may be advised
  std::uint64_t pass_ = 0;      // most device bytes that the forward pass adds
  // Types that may be advised, and what lands on the device in the types of the request, in bytes.
  std::vector<std::pair<graph::DType, std::uint64_t>> types_;
  std::map<std::optional<graph::DType>, std::uint64_t> landed_;
  std::vector<std::unique_ptr<const PlacementChoice>> placements_;
  std::map<std::pair<std::optional<graph::DType>, const PlacementChoice*>, std::uint64_t> bounds_;
};

// Whether the changes of `a` are smaller than those of `b`: by kind, then by degree.
bool takes_less(const AdviceCandidate& a, const AdviceCandidate& b);

// --- Finds the smallest change that makes a load fit its budgets. Candidate changes are projected, not
// judged by rules of thumb.

struct AdvisedLoad {
  std::vector<std::string> changes = {};  // for display; the largest change first
  // `settings`: ids and values of the options that differ from the original request; always includes method
  // and order. `request`: the whole changed request.
  std::vector<std::pair<std::string_view, std::string>> settings = {};
  LoadRequest request = {};
  const Method* method = nullptr;
  std::string order = {};
  plan::PerSpace<std::uint64_t> peaks = {};
  std::uint64_t held = 0;  // the peak of device, host and staging together
  double seconds = 0;      // of the load
  // Stored bytes of weights that the load leaves in their files, and the load's time with them: a load that
  // reads on demand and one that reads everything are compared by that.
  std::uint64_t unread = 0;
  double seconds_of_all = 0;
  BudgetVerdict verdict = {};
  std::shared_ptr<const BoundRequest> bound = {};  // of Advice::loads: the method alone, in that order
  std::optional<std::uint64_t> context_max =
      {};  // as LoadRow::context_max, at most the model's positions; if it was asked for
};

// Sets seconds, unread and seconds_of_all of a load that reads `read` of `stored` bytes in so many seconds.
void set_time(AdvisedLoad& load, double seconds, std::uint64_t read, std::uint64_t stored,
              const plan::CostModel& costs);

struct Advice {
  std::vector<AdvisedLoad> loads = {};      // all fit; best first
  std::optional<AdvisedLoad> nearest = {};  // if nothing fits: the load least over its budgets
  std::size_t tried = 0;                    // number of loads projected
  bool complete = true;                     // false: the search ended at its limit of projections
};

inline constexpr std::size_t kMostAdvice = 4;

// Searches for loads that fit: first one change, then two changes if nothing fits. Methods that keep no
// weights on the device (streaming) come next, alone and, if still nothing fits, with another change. Ranks
// by the size of the changes (takes_less), then by `seconds_of_all`, then by `held`. Of loads whose changes
// are of the same kinds, lists at most three: first one for each option that places weights, then others of
// different methods. Where one change fits, experts on the host stand beside it although their method may be
// a second change. Candidates that device_lower_bound() rules out are projected only if nothing fits and they
// could be the nearest. Runs at most `most_projections` projections, `threads` at a time. Progress counts
// projections. Throws Error{canceled}.
Advice advise(const graph::MetaGraph& graph, const AdviceRequest& request, Progress& progress,
              std::size_t threads = 2, std::size_t most_projections = 600);

}  // namespace loadline::load
