// PyTorch recipes.

#include "core/load/methods/builder.h"

#include <utility>

namespace loadline {

// --- PyTorch recipes, from the naive one to those that need no memory beside the weights.

namespace {

// Moves weights from the host to the device parameter by parameter, as Module.to() does. Those that a
// placement keeps on the host stay where they are.
std::vector<BlockId> move_all(MethodBuilder& b, const std::vector<BlockId>& from) {
  std::vector<BlockId> moved;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (b.home(b.order()[i]) == Home::host) continue;
    moved.push_back(alloc(b.plan(), {.space = Space::device,
                                     .bytes = b.plan().block(from[i]).bytes,
                                     .use = BlockUse::storage,
                                     .storage = b.order()[i]}));
    b.move(moved.back(), from[i]);
    b.drop(from[i]);
  }
  mark(b.plan(), "model on the device");
  return moved;
}

std::vector<BlockId> read_all(MethodBuilder& b, BlockUse use) {
  const std::vector<BlockId> read = b.make_all(Space::host, use);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  return read;
}

// Loads a second copy of all weights onto the device, tensor by tensor through the host, as torch.load does
// with map_location; then copies it over the model.
Plan state_dict_over(MethodBuilder& b, const std::vector<BlockId>& model) {
  std::vector<BlockId> loaded;
  for (const StorageId id : b.order()) {
    const BlockId read = b.load(Space::host, id);
    loaded.push_back(b.make(Space::device, id, BlockUse::temporary));
    b.move(loaded.back(), read);
    b.drop(read);
  }
  mark(b.plan(), "state dict on the device");
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[i]);
  b.drop_all(loaded);
  return b.finish();
}

}  // namespace

// The state dict is a variable of the caller: it lives until the model has moved.
Plan load_to_device(MethodBuilder& b) {
  const std::vector<BlockId> model = b.build();
  const std::vector<BlockId> state = read_all(b, BlockUse::temporary);
  mark(b.plan(), "state dict on the host");
  for (std::size_t i = 0; i < model.size(); ++i) b.move_cast(model[i], state[i], b.order()[i]);
  move_all(b, model);
  b.drop_all(state);
  return b.finish();
}

Plan load_shard_by_shard(MethodBuilder& b) {
  const std::vector<BlockId> model = b.build();
  b.fill_by_shard(model, Space::host);
  move_all(b, model);
  return b.finish();
}

// assign=True makes the state dict's tensors the parameters.
Plan load_meta_assign(MethodBuilder& b) {
  const std::vector<BlockId> model = read_all(b, BlockUse::storage);
  mark(b.plan(), "loaded on the host");
  move_all(b, model);
  return b.finish();
}

// The bytes of a file, and a copy of each tensor out of them.
Plan load_safetensors_bytes(MethodBuilder& b) {
  std::vector<BlockId> weights(b.graph().storages.size());
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<BlockId> read;
    for (const StorageId id : file) read.push_back(b.load(Space::host, id));
    for (std::size_t i = 0; i < file.size(); ++i) {
      weights[index(file[i])] = b.make(Space::host, file[i]);
      b.move(weights[index(file[i])], read[i]);
    }
    b.drop_all(read);
  }
  mark(b.plan(), "loaded on the host");
  std::vector<BlockId> model;
  for (const StorageId id : b.order()) model.push_back(weights[index(id)]);
  move_all(b, model);
  return b.finish();
}

Plan load_state_dict(MethodBuilder& b) { return state_dict_over(b, move_all(b, b.build())); }

// to_empty() gives each parameter memory of its own: a head that was the embedding is that no longer.
Plan load_meta_map_location(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  b.untied_head(Space::device, BlockUse::storage);
  mark(b.plan(), "empty model on the device");
  return state_dict_over(b, model);
}

Plan load_sequential(MethodBuilder& b) {
  const std::vector<BlockId> model = move_all(b, b.build());
  const std::vector<BlockId> read = read_all(b, BlockUse::temporary);
  mark(b.plan(), "state dict on the host");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId temporary = b.make(Space::device, b.order()[i], BlockUse::temporary);
    b.move(temporary, read[i]);
    b.move(model[i], temporary);
    b.drop(temporary);
  }
  b.drop_all(read);
  return b.finish();
}

// The mapped tensors are the parameters.
Plan load_mmap_assign(MethodBuilder& b) {
  MappedModel model(b);
  for (const StorageId id : b.order()) model.view(id);
  model.to_device();
  return b.finish();
}

Plan load_mmap_copy(MethodBuilder& b) {
  const std::vector<BlockId> model = b.build();
  b.fill_by_shard(model, Space::page_cache);
  move_all(b, model);
  return b.finish();
}

Plan load_mmap_state_dict(MethodBuilder& b) {
  const std::vector<BlockId> model = move_all(b, b.build());
  std::vector<BlockId> loaded(b.graph().storages.size());
  for (const StorageOrder& shard : b.by_shard()) {
    std::vector<BlockId> mapped;
    for (const StorageId id : shard) {
      mapped.push_back(b.load(Space::page_cache, id));
      loaded[index(id)] = b.make(Space::device, id, BlockUse::temporary);
      b.move(loaded[index(id)], mapped.back());
    }
    b.drop_all(mapped);
  }
  mark(b.plan(), "state dict on the device");
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[index(b.order()[i])]);
  for (const StorageId id : b.order()) b.drop(loaded[index(id)]);
  return b.finish();
}

Plan load_per_tensor(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all_cast(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const StorageId id = b.order()[i];
    BlockId read = b.make(Space::host, id, BlockUse::temporary);
    b.read(read, id);
    if (b.cast(id)) {
      const BlockId stored = std::exchange(read, b.make_cast(Space::host, id, BlockUse::temporary));
      b.move_cast(read, stored, id);
      b.drop(stored);
    }
    b.move(model[i], read);
    b.drop(read);
  }
  return b.finish();
}

// --- Loads that differ in where weights are cast: on the host or on the device.

// The host first holds all weights in their stored type. Each is cast onto the device, then its source is
// freed.
Plan load_cast_on_host(MethodBuilder& b) {
  const std::vector<BlockId> read = b.make_all(Space::host, BlockUse::temporary);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  mark(b.plan(), "file data on the host");
  for (std::size_t i = 0; i < read.size(); ++i) {
    b.move_cast(b.make_cast(Space::device, b.order()[i]), read[i], b.order()[i]);
    b.drop(read[i]);
  }
  return b.finish();
}

// A tensor arrives on the device in its stored type, then is cast into a block of its own beside it.
Plan load_cast_on_device(MethodBuilder& b) {
  for (const StorageId id : b.order()) {
    const BlockId read = b.load(Space::host, id);
    const BlockId stored = b.make(Space::device, id, BlockUse::temporary);
    b.move(stored, read);
    b.drop(read);
    b.move_cast(b.make_cast(Space::device, id), stored, id);
    b.drop(stored);
  }
  return b.finish();
}

}  // namespace loadline
