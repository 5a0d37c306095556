// What is asked of a load: by which methods, in which order, onto which memory, and what follows.
#pragma once

#include "core/allocators/allocator.h"
#include "core/forward/forward_model.h"
#include "core/forward/pass_sizes.h"
#include "core/load/placement.h"
#include "core/plan/memory_views.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// What a system needs for itself: bytes, or a share of the memory.
struct Reserve {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;
  std::uint64_t of(std::uint64_t memory) const { return bytes + memory / 100 * percent; }
  bool operator==(const Reserve&) const = default;
};

// A plain value; load_options() describes each member as a row of a table. Nothing in it depends on a model:
// bind_request() says what it means for one.
struct LoadRequest {
  std::vector<std::string> methods = {};  // ids, or "all"; empty: those that the front end shows by default
  std::vector<std::string> orders = {"file"};  // ids, "all", or files that list tensors

  // What some methods read. Bytes.
  std::uint64_t staging_bytes = 64ull << 20;    // of the whole ring
  std::uint32_t slots = 4;                      // of the ring
  std::uint64_t runai_buffer = 40'000'000'000;  // of the Run:ai streamer, on the host
  std::uint64_t shard_bytes = 0;                // as if saved in shards of at most that; 0: as they are
  std::uint64_t flush_bytes = 0;                // ExecuTorch: staging is sent once it holds so many bytes
  bool doubled_ties = false;                    // ExecuTorch: a weight with two names is packed for each
  std::optional<DType> cast = {};               // what floating point weights become (storage_cast.h)

  // Where weights go, at most one of these; none: everything to the device.
  std::optional<std::uint64_t> gpu_layers = {};
  std::optional<MemoryMap> auto_map = {};
  std::vector<PlaceRule> place = {};

  // What the load has to fit into. Absent budgets are those of the target, or none.
  std::string target = {};                          // a device's data sheet (targets.h); empty: none
  std::optional<MemoryKind> memory = {};            // absent: the target's, or discrete
  std::optional<std::uint64_t> device_budget = {};  // unified memory: of all that it must hold
  std::optional<std::uint64_t> host_budget = {};    // host and staging together
  std::optional<Reserve> reserve = {};  // taken off the budget that decides; absent: the target's own
  std::optional<std::uint64_t> page_cache_budget = {};
  std::optional<std::uint64_t> require_peak = {};  // the most that the deciding peak may be

  AllocatorModel allocator = AllocatorModel::exact;  // simulated beside the bytes requested
  std::string rates = {};  // empty: those measured on this machine, if any; "assumed"; or a file

  // What follows the load: activations as one block, or a forward pass.
  std::uint64_t activation_bytes = 0;
  std::uint64_t batch = 1;
  std::uint64_t sequence = 0;          // new tokens of each sequence; 0: no pass
  std::uint64_t past = 0;              // tokens of each that are cached already
  std::vector<SizeChoice> sizes = {};  // by an ONNX file's own names
  ForwardOptions forward = {};

  bool operator==(const LoadRequest&) const = default;
};

inline constexpr std::uint64_t kMostTokens = 1 << 24;  // of batch, sequence and past

// Whether a forward pass is asked for.
inline bool asks_for_pass(const LoadRequest& request) {
  return request.sequence > 0 || !request.sizes.empty();
}
// Whether weights may go elsewhere than to the device.
inline bool places_weights(const LoadRequest& request) {
  return request.gpu_layers || request.auto_map || !request.place.empty();
}

// Throws Error{usage} for members that contradict each other or that no load can have: a ring without 1 to
// 1024 slots of at least 4 KiB or of more than 1 TiB, activations over 1 EiB or beside a pass, two ways to
// place weights, a host budget of unified memory.
void check_request(const LoadRequest& request);

}  // namespace loadline
