// Loaders that stream file data: through rings, through pinned pools, or file by file.
#include "core/load/methods/programs.h"
#include "core/load/methods/runai_buffers.h"

#include <algorithm>
#include <deque>

namespace loadline {
namespace {

TransferRing ring_of(MethodBuilder& b) {
  const LoadInputs& inputs = b.inputs();
  return {b.plan(), inputs.request.slots, inputs.request.staging_bytes / inputs.request.slots,
          b.all_cast_bytes()};
}

// The model's blocks exist; all weights go through the ring into them.
Plan through(MethodBuilder& b, TransferRing ring, const std::vector<BlockId>& model) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const StorageId id = b.order()[i];
    ring.send(id, b.bytes(id), model[i], b.unit(id), b.cast(id));
  }
  ring.close();
  return b.finish();
}

}  // namespace

Plan load_staged_ring(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all_cast(Space::device);
  return through(b, ring_of(b), model);
}

// Reads each file's body whole onto the device and keeps it: the tensors are views into it.
Plan load_fastsafetensors(MethodBuilder& b) {
  TransferRing ring = ring_of(b);
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<BlockId> body;
    for (const StorageId id : file) body.push_back(b.make(Space::device, id));
    for (std::size_t i = 0; i < file.size(); ++i)
      ring.send(file[i], b.bytes(file[i]), body[i], b.unit(file[i]));
    ring.flush();
  }
  ring.close();
  return b.finish();
}

namespace {

// The parameters exist already: each body lies on the device beside them until it is copied.
Plan copy_bodies(MethodBuilder& b, const std::vector<StorageOrder>& bodies) {
  std::vector<BlockId> model(b.graph().storages.size());
  for (const StorageId id : b.order()) model[index(id)] = b.make(Space::device, id);
  TransferRing ring = ring_of(b);
  for (const StorageOrder& ids : bodies) {
    std::vector<BlockId> body;
    for (const StorageId id : ids) body.push_back(b.make(Space::device, id, BlockUse::temporary));
    for (std::size_t i = 0; i < ids.size(); ++i) ring.send(ids[i], b.bytes(ids[i]), body[i], b.unit(ids[i]));
    ring.flush();
    for (std::size_t i = 0; i < ids.size(); ++i) b.move(model[index(ids[i])], body[i]);
    b.drop_all(body);
  }
  ring.close();
  return b.finish();
}

}  // namespace

Plan load_fastsafetensors_copy(MethodBuilder& b) { return copy_bodies(b, b.by_shard()); }

Plan load_fastsafetensors_all(MethodBuilder& b) { return copy_bodies(b, {b.order()}); }

// Tensors are packed into requests in load order. Some requests are in flight; the consumer still holds its
// last one when the next is submitted.
Plan load_runai(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  std::vector<std::uint64_t> sizes;
  for (const StorageId id : b.order()) sizes.push_back(b.bytes(id));
  const RunaiBuffers buffers = runai_buffers(sizes, b.inputs().request.runai_buffer);
  struct Request {
    BlockId block{};
    std::size_t from = 0, to = 0;  // positions in load order
  };
  std::deque<Request> flying;
  const auto consume = [&] {
    const Request& request = flying.front();
    std::uint64_t at = 0;
    for (std::size_t i = request.from; i < request.to; at += sizes[i++])
      copy(b.plan(), model[i], 0, request.block, at, sizes[i]);
    b.drop(request.block);
    flying.pop_front();
  };
  for (std::size_t from = 0, to = 0; from < sizes.size(); from = to) {
    std::uint64_t bytes = 0;
    for (; to < sizes.size() && (to == from || sizes[to] <= buffers.bytes - bytes); ++to) bytes += sizes[to];
    flying.push_back({alloc(b.plan(), {.space = Space::host,
                                       .bytes = bytes,
                                       .use = BlockUse::ring_slot,
                                       .storage = {},
                                       .label = "request of the streamer"}),
                      from, to});
    std::uint64_t at = 0;
    for (std::size_t i = from; i < to; at += sizes[i++])
      copy(b.plan(), flying.back().block, at, b.order()[i], 0, sizes[i]);
    if (flying.size() > buffers.count) consume();
  }
  while (!flying.empty()) consume();
  return b.finish();
}

// ServerlessLLM keeps the whole checkpoint in pinned chunks and copies from there to the device.
Plan load_pinned_pool(MethodBuilder& b) {
  const std::uint64_t chunk = b.inputs().request.staging_bytes / b.inputs().request.slots;
  const std::uint64_t chunks = (b.all_bytes() + chunk - 1) / chunk;
  constexpr std::uint64_t kMostSlots = UINT32_MAX;
  const std::vector<BlockId> model = b.make_all(Space::device);
  if (model.empty()) return b.finish();
  const auto slots = static_cast<std::uint32_t>(std::min(chunks, kMostSlots));
  return through(b, {b.plan(), slots, chunk, b.all_bytes()}, model);
}

}  // namespace loadline
