// Rings, pools and requests; layers one by one; no copy on the host.

#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace loadline::load {

// --- Loaders that stream file data: through rings, through pinned pools, or file by file.

namespace {

TransferRing ring_of(MethodBuilder& b) {
  const BoundRequest& bound = b.bound();
  return {b.plan(), bound.request.slots, bound.request.staging_bytes / bound.request.slots,
          b.all_cast_bytes()};
}

// The model's blocks exist; all weights go through the ring into them.
plan::Plan through(MethodBuilder& b, TransferRing ring, const std::vector<plan::BlockId>& model) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const graph::StorageId id = b.order()[i];
    ring.send(id, b.bytes(id), model[i], b.unit(id), b.cast(id));
  }
  ring.close();
  return b.finish();
}

}  // namespace

plan::Plan load_staged_ring(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all_cast(plan::Space::device);
  const std::uint64_t weights = b.all_cast_bytes();
  const LoadRequest& request = b.bound().request;
  return through(b, {b.plan(), request.slots, own_slot_bytes(request, weights), weights}, model);
}

// Reads each file's body whole onto the device and keeps it: the tensors are views into it.
plan::Plan load_fastsafetensors(MethodBuilder& b) {
  TransferRing ring = ring_of(b);
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<plan::BlockId> body;
    for (const graph::StorageId id : file) body.push_back(b.make(plan::Space::device, id));
    for (std::size_t i = 0; i < file.size(); ++i)
      ring.send(file[i], b.bytes(file[i]), body[i], b.unit(file[i]));
    ring.flush();
  }
  ring.close();
  return b.finish();
}

namespace {

// The parameters exist already: each body lies on the device beside them until it is copied.
plan::Plan copy_bodies(MethodBuilder& b, const std::vector<StorageOrder>& bodies) {
  std::vector<plan::BlockId> model(b.graph().storages.size());
  for (const graph::StorageId id : b.order()) model[graph::index(id)] = b.make(plan::Space::device, id);
  TransferRing ring = ring_of(b);
  for (const StorageOrder& ids : bodies) {
    std::vector<plan::BlockId> body;
    for (const graph::StorageId id : ids)
      body.push_back(b.make(plan::Space::device, id, plan::BlockUse::temporary));
    for (std::size_t i = 0; i < ids.size(); ++i) ring.send(ids[i], b.bytes(ids[i]), body[i], b.unit(ids[i]));
    ring.flush();
    for (std::size_t i = 0; i < ids.size(); ++i) b.move(model[graph::index(ids[i])], body[i]);
    b.drop_all(body);
  }
  ring.close();
  return b.finish();
}

}  // namespace

plan::Plan load_fastsafetensors_copy(MethodBuilder& b) { return copy_bodies(b, b.by_shard()); }

plan::Plan load_fastsafetensors_all(MethodBuilder& b) { return copy_bodies(b, {b.order()}); }

// Tensors are packed into requests in load order. Some requests are in flight; the consumer still holds its
// last one when the next is submitted.
plan::Plan load_runai(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all(plan::Space::device);
  std::vector<std::uint64_t> sizes;
  for (const graph::StorageId id : b.order()) sizes.push_back(b.bytes(id));
  const RunaiBuffers buffers = runai_buffers(sizes, b.bound().request.runai_buffer);
  struct Request {
    plan::BlockId block{};
    std::size_t from = 0, to = 0;  // positions in load order
  };
  std::deque<Request> flying;
  const auto consume = [&] {
    const Request& request = flying.front();
    std::uint64_t at = 0;
    for (std::size_t i = request.from; i < request.to; at += sizes[i++])
      plan::copy(b.plan(), model[i], 0, request.block, at, sizes[i]);
    b.drop(request.block);
    flying.pop_front();
  };
  for (std::size_t from = 0, to = 0; from < sizes.size(); from = to) {
    std::uint64_t bytes = 0;
    for (; to < sizes.size() && (to == from || sizes[to] <= buffers.bytes - bytes); ++to) bytes += sizes[to];
    flying.push_back({plan::alloc(b.plan(), {.bytes = bytes,
                                             .space = plan::Space::host,
                                             .use = plan::BlockUse::ring_slot,
                                             .storage = {},
                                             .extra = "request of the streamer"}),
                      from, to});
    std::uint64_t at = 0;
    for (std::size_t i = from; i < to; at += sizes[i++])
      plan::copy(b.plan(), flying.back().block, at, b.order()[i], 0, sizes[i]);
    if (flying.size() > buffers.count) consume();
  }
  while (!flying.empty()) consume();
  return b.finish();
}

// ServerlessLLM keeps the whole checkpoint in pinned chunks and copies from there to the device.
plan::Plan load_pinned_pool(MethodBuilder& b) {
  const std::uint64_t chunk = b.bound().request.staging_bytes / b.bound().request.slots;
  const std::uint64_t chunks = (b.all_bytes() + chunk - 1) / chunk;
  constexpr std::uint64_t kMostSlots = UINT32_MAX;
  const std::vector<plan::BlockId> model = b.make_all(plan::Space::device);
  if (model.empty()) return b.finish();
  const auto slots = static_cast<std::uint32_t>(std::min(chunks, kMostSlots));
  return through(b, {b.plan(), slots, chunk, b.all_bytes()}, model);
}

// --- Layer streaming: weights come to the device, are used once and are freed.

namespace {

// Units in forward order. A weight that a later unit uses again, under another name, is loaded again with it.
std::vector<LoadUnit> units_of(const MethodBuilder& b) {
  const graph::MetaGraph& graph = b.graph();
  std::vector<LoadUnit> units = b.parts().units(b.order());
  for (const std::vector<graph::TensorId>& group : b.parts().tied_groups()) {
    const graph::StorageId storage = graph.tensor(group.front()).storage;
    if (b.bytes(storage) == 0) continue;
    for (std::size_t i = 1; i < group.size(); ++i) {
      const auto key = phase_of(graph.tensor(group[i]).name);
      if (key != Phase::head && key != Phase::embedding) continue;  // inside a layer it is still loaded
      const auto unit = std::ranges::find_if(units, [&](const LoadUnit& u) { return u.phase == key; });
      if (unit == units.end()) {
        const auto place = std::ranges::find_if(units, [&](const LoadUnit& u) { return u.phase > key; });
        units.insert(place, {key == Phase::head ? "head" : "embedding", key, {storage}, b.bytes(storage)});
      } else if (std::ranges::find(unit->storages, storage) == unit->storages.end()) {
        unit->storages.push_back(storage);
        unit->bytes += b.bytes(storage);
      }
    }
  }
  return units;
}

std::vector<plan::BlockId> read_unit(MethodBuilder& b, const LoadUnit& unit) {
  std::vector<plan::BlockId> read;
  for (const graph::StorageId id : unit.storages) read.push_back(b.load(plan::Space::host, id));
  return read;
}

plan::Plan stream(MethodBuilder& b, bool prefetch) {
  b.activations();
  const std::vector<LoadUnit> units = units_of(b);
  std::vector<plan::BlockId> ahead;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::vector<plan::BlockId> read =
        i > 0 && prefetch ? std::exchange(ahead, {}) : read_unit(b, units[i]);
    if (prefetch && i + 1 < units.size()) ahead = read_unit(b, units[i + 1]);
    std::vector<plan::BlockId> used;
    for (std::size_t k = 0; k < read.size(); ++k) {
      used.push_back(b.make(plan::Space::device, units[i].storages[k]));
      b.move(used.back(), read[k]);
    }
    plan::mark(b.plan(), units[i].label + " runs");
    b.drop_all(used);
    b.drop_all(read);
  }
  return std::move(b.plan());
}

}  // namespace

plan::Plan load_layer_streaming(MethodBuilder& b) { return stream(b, false); }

plan::Plan load_layer_streaming_prefetch(MethodBuilder& b) { return stream(b, true); }

// --- Loads without a copy on the host: reads into mapped device memory, and file pages that the device
// imports.

plan::Plan load_direct(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all(plan::Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) b.read(model[i], b.order()[i]);
  return b.finish();
}

// A tensor's pages are mapped, imported as device-visible memory, copied from and released. While imported
// they cannot be evicted, so they count as staging, not page cache.
plan::Plan load_host_import(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all(plan::Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const plan::BlockId pages = b.load(plan::Space::staging, b.order()[i]);
    b.move(model[i], pages);
    b.drop(pages);
  }
  return b.finish();
}

}  // namespace loadline::load
