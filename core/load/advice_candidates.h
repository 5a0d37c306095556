// What could be changed about a load that does not fit, before anybody knows whether it helps.
#pragma once

#include "core/load/order_file.h"
#include "core/load/projection.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// A load that was asked for.
struct AskedLoad {
  const Method* method = nullptr;
  OrderChoice order = {};
};

struct AdviceRequest {
  std::vector<AskedLoad> loads = {};  // those that do not fit, and those that stream; nearest to a fit first
  LoadInputs inputs = {};             // its request's methods and orders are not looked at
  Budget budget = {};
  const ForwardPass* pass = nullptr;
};

// How much a change takes from who asked, least first.
enum class Take : std::uint8_t { order, buffer, shards, method, type, off_device, streaming };

struct Change {
  Take take = Take::order;
  // How far it goes, compared among changes that take the same: bytes of precision, of a buffer, of what
  // leaves the device; 1 for a method that reads other files.
  std::uint64_t degree = 0;
  std::string text = {};
};

// Weights off the device, and the option of a load that puts them there.
struct PlacementChoice {
  Placement placement = {};
  std::string_view option = {};
  std::string value = {};
  std::string text = {};
  std::uint64_t off_device = 0;  // bytes; what goes to disk counts twice
};

// A load, and how it differs from one that was asked for.
struct AdviceCandidate {
  const Method* method = nullptr;
  const OrderChoice* order = nullptr;
  LoadRequest request = {};                    // with what was changed
  const PlacementChoice* placement = nullptr;  // null: as asked
  std::vector<Change> changes = {};            // what takes most first

  bool streams() const { return method->traits.streams; }
};

// Which candidates are looked at together; a later stage takes more than an earlier one.
enum class AdviceStage : std::uint8_t { one_change, two_changes, streaming, streaming_and_another };

// The candidates of a request. Refers to graph and request, which must outlive it, as must it the candidates.
class AdviceSpace {
 public:
  AdviceSpace(const MetaGraph& graph, const AdviceRequest& request);
  AdviceSpace(const AdviceSpace&) = delete;
  AdviceSpace& operator=(const AdviceSpace&) = delete;

  // Each load once, with the changes that take least; by what they take, least first.
  std::vector<AdviceCandidate> candidates(AdviceStage stage) const;
  LoadInputs inputs(const AdviceCandidate& candidate) const;
  // The options of this load that are not as they were asked for: ids and values.
  std::vector<std::pair<std::string_view, std::string>> settings(const AdviceCandidate& candidate) const;
  // device_lower_bound() of what a candidate casts and places; 0 for one that streams.
  std::uint64_t device_bound(const AdviceCandidate& candidate) const;

 private:
  AdviceCandidate asked(const AskedLoad& load) const;
  std::vector<AdviceCandidate> changed(const AdviceCandidate& base) const;
  std::vector<AdviceCandidate> changed_again(const std::vector<AdviceCandidate>& ones) const;
  void add_orders(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_buffers(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_shards(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_methods(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_types(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;
  void add_placements(const AdviceCandidate& base, std::vector<AdviceCandidate>& list) const;

  void find_types();
  void find_placements();
  void place_layers(std::uint64_t room);
  void place_map(std::uint64_t room);
  void keep(PlacementChoice choice);
  const Placement& chosen(const PlacementChoice* placement) const;
  std::uint64_t bound(const std::optional<DType>& cast, const PlacementChoice* placement) const;

  const MetaGraph& graph_;
  const AdviceRequest& request_;
  std::vector<OrderChoice> orders_;  // the table's
  std::uint64_t weights_ = 0;
  std::uint64_t largest_file_ = 0;
  bool all_stream_ = false;
  std::uint64_t pass_ = 0;                              // what the forward pass needs at most
  std::vector<std::pair<DType, std::uint64_t>> types_;  // narrower than what was asked for; bytes saved
  std::vector<std::unique_ptr<const PlacementChoice>> placements_;
  std::map<std::pair<std::optional<DType>, const PlacementChoice*>, std::uint64_t> bounds_;
};

// Whether `a` takes less than `b`, as far as their changes say.
bool takes_less(const AdviceCandidate& a, const AdviceCandidate& b);

}  // namespace loadline
