// Load methods: how each framework or recipe moves weights from disk to a device, as plans.
#pragma once

#include "core/load/orders.h"
#include "core/load/placement.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loadline {

struct MethodOptions {
  std::uint64_t staging_bytes = 64ull << 20;  // of the whole ring
  std::uint32_t slots = 4;
  std::uint64_t activation_bytes = 0;  // Q: allocated on the device, where the method allocates it
  AllocatorModel allocator = AllocatorModel::exact;  // how the projection keeps the device's books
  std::uint64_t memory_limit = 40'000'000'000;       // of a streamer's buffer on the host
  std::optional<DType> cast = {};  // what floating point weights become on their way (storage_cast.h)
  Placement placement = {};        // for methods that offload
  std::uint64_t shard_bytes = 0;   // as if the files were shards of at most so many bytes; 0: as they are
  std::uint64_t flush_bytes = 0;   // ExecuTorch: staging buffers wait for so many bytes before they are sent
  bool doubled_ties = false;       // ExecuTorch: weights with two names are prepacked once for each
  unsigned spaces = space_bit(Space::device);  // whose sum the order `optimal` keeps lowest
  CostModel costs = {};
};

struct MethodTraits {
  bool casts = false;              // knows what to do with MethodOptions::cast
  bool offloads = false;           // follows MethodOptions::placement
  bool streams = false;            // weights come and go: they are not on the device at the end
  bool activations_first = false;  // they are allocated before the weights are there
  bool ring = false;               // MethodOptions::staging_bytes, slots
  bool limit = false;              // memory_limit
  bool shards = false;             // shard_bytes
  bool flushes = false;            // flush_bytes, doubled_ties
  bool order_free = false;         // no order has another peak, over whatever spaces and with any options
  // The device reads the files' own pages, which are staging in the plan: they must lie as they are
  // (maps_files()).
  bool imports = false;
};

// `summary` fits a table; `explanation` is one paragraph for a person who chooses. The symbols of a law, in
// bytes:
//
//   W   all weights as they are stored, each once; w* the largest storage of them
//   V   what stays on the device, as it lands there: W without a cast and a placement; v* the largest as it
//       lands
//   c*  the most that one storage takes as it is stored and as it lands together
//   S*  the largest shard, as it is stored
//   g*  the largest fused group, as it lands
//   x*  the largest unit of load_units(), a tied weight in each unit that uses it; y* the most that a unit
//       and the next one take together
//   B   the ring: its slots times the bytes of one
//   F   MethodOptions::flush_bytes; limit: MethodOptions::memory_limit
//   Q   the activations
//
// A law names the spaces that a load needs, and bounds each peak from above in every order; "cast:" and
// "disk:" are what holds where there is one and where a placement puts weights on disk, "whole slots" rounds
// up to them. What a placement keeps on the host is beside it, and so is what ExecuTorch holds for weights of
// two names (doubled_ties, and their host copies).
struct Method {
  std::string_view id;
  std::string_view summary;
  std::string_view peak_law;  // closed form, for people: "device W + Q, host w*"
  std::string_view explanation;
  // For make_plan() only. May throw Error{limit} for options that make the plan itself too large.
  Plan (*make)(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options);
  MethodTraits traits = {};
};

std::span<const Method> methods();
// What the symbols of the laws stand for, each as "W: all weights", for people.
std::string_view law_symbols();
// Throws Error{usage} that lists the ids.
const Method& find_method(std::string_view id);
// Throws Error{usage} unless the ring has 1 to 1024 slots of at least 4 KiB, at most 1 TiB in all, and
// activations are under 1 EiB.
void check_options(const MethodOptions& options);

// The method's plan. Throws Error{usage} as check_options(), Error{unsupported} for a cast or a placement
// that the method does not know, Error{limit} where the plan itself would be too large.
Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const MethodOptions& options);

}  // namespace loadline
