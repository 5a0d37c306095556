// Loaders that stream file data: through rings, through pinned pools, or file by file.
#include "core/load/methods/programs.h"

#include <algorithm>

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
    ring.send(id, b.bytes(id), model[i], b.cast(id));
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
    for (std::size_t i = 0; i < file.size(); ++i) ring.send(file[i], b.bytes(file[i]), body[i]);
    ring.flush();
  }
  ring.close();
  return b.finish();
}

// The parameters exist already: each file's body lies on the device beside them until it is copied.
Plan load_fastsafetensors_copy(MethodBuilder& b) {
  std::vector<BlockId> model(b.graph().storages.size());
  for (const StorageId id : b.order()) model[index(id)] = b.make(Space::device, id);
  TransferRing ring = ring_of(b);
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<BlockId> body;
    for (const StorageId id : file) body.push_back(b.make(Space::device, id, BlockUse::temporary));
    for (std::size_t i = 0; i < file.size(); ++i) ring.send(file[i], b.bytes(file[i]), body[i]);
    ring.flush();
    for (std::size_t i = 0; i < file.size(); ++i) b.move(model[index(file[i])], body[i]);
    b.drop_all(body);
  }
  ring.close();
  return b.finish();
}

// One host buffer, filled by threads and emptied by the loop over the tensors. Its size is at least the
// largest tensor and at most all weights.
Plan load_runai(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  const std::uint64_t room =
      std::min(std::max(b.inputs().request.runai_buffer, b.most_bytes()), b.all_bytes());
  if (model.empty()) return b.finish();
  const BlockId buffer = alloc(b.plan(), {.space = Space::host,
                                          .bytes = room,
                                          .use = BlockUse::ring_slot,
                                          .storage = {},
                                          .label = "streamer's buffer"});
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const std::uint64_t bytes = b.bytes(b.order()[i]);
    if (at + bytes > room) at = 0;
    copy(b.plan(), buffer, at, b.order()[i], 0, bytes);
    copy(b.plan(), model[i], 0, buffer, at, bytes);
    at += bytes;
  }
  b.drop(buffer);
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
