// Load methods: how each framework or recipe moves weights from disk to a device, as plans.
#pragma once

#include "core/load/orders.h"
#include "core/load/placement.h"
#include "core/load/request.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loadline {

// What the plan of a load is made from: a request, and what it means for one model.
struct LoadInputs {
  LoadRequest request = {};
  Placement placement = {};                    // as the request asks for it, by storage
  unsigned spaces = space_bit(Space::device);  // whose sum the order `optimal` keeps lowest
  CostModel costs = {};
};

struct MethodTraits {
  bool casts = false;              // LoadRequest::cast
  bool offloads = false;           // follows LoadInputs::placement
  bool streams = false;            // weights come and go: they are not on the device at the end
  bool activations_first = false;  // they are allocated before the weights are there
  bool ring = false;               // staging_bytes, slots
  bool limit = false;              // runai_buffer
  bool shards = false;             // shard_bytes
  bool flushes = false;            // the flush threshold, doubled ties
  bool order_free = false;         // no order has another peak, over whatever spaces and with any options
  // The device reads the files' own pages, which are staging in the plan: they must lie as they are
  // (maps_files()).
  bool imports = false;
};

// `summary` fits a table; `explanation` is one paragraph for a person who chooses. The law bounds the peak of
// each space from above in every order; law.h has its grammar and symbols.
struct Method {
  std::string_view id;
  std::string_view summary;
  std::string_view peak_law;  // closed form: "device W + Q, host w*"
  std::string_view explanation;
  // For make_plan() only. May throw Error{limit} for options that make the plan itself too large.
  Plan (*make)(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);
  MethodTraits traits = {};
  bool common = false;  // among those shown where nobody names any
  // Whether bytes of several tensors wait for each other, so that a turn depends on those before it.
  bool (*waits)(const LoadRequest& request) = nullptr;
};

std::span<const Method> methods();
// Throws Error{usage} that lists the ids.
const Method& find_method(std::string_view id);
// The method's plan. Throws Error{usage} as check_request(), Error{unsupported} for a cast or a placement
// that the method does not know, Error{limit} where the plan itself would be too large.
Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const LoadInputs& inputs);

}  // namespace loadline
