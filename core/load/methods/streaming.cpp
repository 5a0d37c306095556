// Loaders that stream: rings, pools, files whole.
#include "core/load/method_builder.h"
#include "core/load/methods/programs.h"

#include <algorithm>

namespace loadline {
namespace {

TransferRing ring_of(MethodBuilder& b) {
  const LoadInputs& inputs = b.inputs();
  return {b.plan(), inputs.request.slots, inputs.request.staging_bytes / inputs.request.slots,
          b.all_cast_bytes()};
}

// The model is there; everything goes through the ring.
Plan through(MethodBuilder& b, TransferRing ring, const std::vector<BlockId>& model) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const StorageId id = b.order()[i];
    ring.send(id, b.bytes(id), model[i], b.cast(id));
  }
  ring.close();
  return b.finish();
}

}  // namespace

Plan load_staged_ring(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::vector<BlockId> model = b.make_all_cast(Space::device);
  return through(b, ring_of(b), model);
}

// The tensors are views into the files' bodies, which are read whole, one after the other, and kept.
Plan load_fastsafetensors(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
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

// Parameters exist already: each file's body is on the device beside them until it is copied.
Plan load_fastsafetensors_copy(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  std::vector<BlockId> model(graph.storages.size());
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

// One buffer that threads fill and the loop over the tensors empties: at least the largest tensor, at most
// everything.
Plan load_runai(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::vector<BlockId> model = b.make_all(Space::device);
  const std::uint64_t room = std::min(std::max(inputs.request.runai_buffer, b.most_bytes()), b.all_bytes());
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

// ServerlessLLM keeps the whole checkpoint in pinned chunks and fills the device from there.
Plan load_pinned_pool(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs) {
  MethodBuilder b(graph, order, inputs);
  const std::uint64_t chunk = inputs.request.staging_bytes / inputs.request.slots;
  const std::uint64_t chunks = (b.all_bytes() + chunk - 1) / chunk;
  constexpr std::uint64_t kMostSlots = UINT32_MAX;
  const std::vector<BlockId> model = b.make_all(Space::device);
  if (model.empty()) return b.finish();
  const auto slots = static_cast<std::uint32_t>(std::min(chunks, kMostSlots));
  return through(b, {b.plan(), slots, chunk, b.all_bytes()}, model);
}

}  // namespace loadline
