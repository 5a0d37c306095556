// Load methods: how each framework or recipe moves weights from disk to a device, written as plans.
#pragma once

#include "core/load/request/orders.h"
#include "core/load/request/placement.h"
#include "core/load/request/request.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"

#include <span>
#include <string_view>

namespace loadline {

// The inputs of a load's plan: the request, and its meaning for one model.
struct LoadInputs {
  LoadRequest request = {};
  Placement placement = {};                    // the requested placement, by storage
  unsigned spaces = space_bit(Space::device);  // order `optimal` minimises the peak of their sum
  CostModel costs = {};
};

// Threads of transformers 5 that materialise tensors; without a pool, 1, if weights stay on disk.
std::uint32_t loading_threads(const LoadInputs& inputs);

class MethodBuilder;

struct MethodTraits {
  bool casts = false;              // supports LoadRequest::cast
  bool offloads = false;           // supports LoadInputs::placement, by rules
  bool disk = false;               // supports weights left on disk; with `offloads` only
  bool layers = false;             // supports LoadRequest::gpu_layers; with `offloads` only
  bool maps = false;               // supports LoadRequest::auto_map; with `offloads` only
  bool streams = false;            // weights come and go; they are not on the device at the end
  bool activations_first = false;  // activations are allocated before the weights
  bool ring = false;               // supports the staging ring's size and slots
  bool limit = false;              // supports a limit of its buffer
  bool shards = false;             // depends on shards
  bool views = false;              // weights off the device stay in their mapped files
  bool workers = false;            // supports a number of threads that each hold a cast tensor
  bool repacks = false;            // supports repacking for the CPU
  bool flushes = false;            // supports a flush threshold and doubled ties
  bool order_free = false;         // every order has the same peak, for all spaces and options
  // The device reads the files' own pages, which count as staging in the plan. The files must be mappable
  // (mapping_refusal()).
  bool imports = false;
};

// `summary` fits a table cell. The law is an upper bound for the peak of each space in every order; law.h
// gives its grammar and symbols.
struct Method {
  std::string_view id;
  std::string_view summary;
  std::string_view peak_law;  // closed form: "device W + Q, host w*"
  // Called by make_plan() only. May throw Error{limit} for options that make the plan itself too large.
  Plan (*make)(MethodBuilder& builder);
  MethodTraits traits = {};
  bool common = false;  // shown when the request names no method
  // Whether a buffer collects bytes of several tensors before it moves on, so that a turn depends on earlier
  // turns.
  bool (*waits)(const LoadRequest& request) = nullptr;
};

// Whether the method supports the kind of placement that a request asks for.
bool supports_placement(const Method& method, const LoadRequest& request);

std::span<const Method> methods();
// Throws Error{usage} for an id that methods had before; it names what that has become.
void refuse_old_method(std::string_view id);
// Throws Error{usage} that lists the ids, or as refuse_old_method().
const Method& find_method(std::string_view id);
// The method's plan. Throws Error{usage} as check_request() does, Error{unsupported} for a cast or a
// placement that the method does not support, Error{limit} if the plan itself would be too large. The plan
// takes over the memory of `used`, whose contents are dropped.
Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const LoadInputs& inputs, Plan used = {});

}  // namespace loadline
