// PyTorch: load_state_dict, map_location, mmap, assign, casts.

#include "core/load/methods/builder.h"

#include <utility>

namespace loadline::load {

// --- PyTorch recipes, from the naive one to those that need no memory beside the weights.

namespace {

// Moves weights from the host to the device parameter by parameter, as Module.to() does. Those that a
// placement keeps on the host stay where they are.
std::vector<plan::BlockId> move_all(MethodBuilder& b, const std::vector<plan::BlockId>& from) {
  std::vector<plan::BlockId> moved;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (b.home(b.order()[i]) == Home::host) continue;
    moved.push_back(plan::alloc(b.plan(), b.plan().block(from[i]).bytes, plan::Space::device,
                                plan::BlockUse::storage, b.order()[i]));
    b.move(moved.back(), from[i]);
    b.drop(from[i]);
  }
  plan::mark(b.plan(), "model on the device");
  return moved;
}

std::vector<plan::BlockId> read_all(MethodBuilder& b, plan::BlockUse use) {
  const std::vector<plan::BlockId> read = b.make_all(plan::Space::host, use);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  return read;
}

// Loads a second copy of all weights onto the device, tensor by tensor through the host, as torch.load does
// with map_location; then copies it over the model.
plan::Plan state_dict_over(MethodBuilder& b, const std::vector<plan::BlockId>& model) {
  std::vector<plan::BlockId> loaded;
  for (const graph::StorageId id : b.order()) {
    const plan::BlockId read = b.load(plan::Space::host, id);
    loaded.push_back(b.make(plan::Space::device, id, plan::BlockUse::temporary));
    b.move(loaded.back(), read);
    b.drop(read);
  }
  plan::mark(b.plan(), "state dict on the device");
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[i]);
  b.drop_all(loaded);
  return b.finish();
}

}  // namespace

// The state dict is a variable of the caller: it lives until the model has moved.
plan::Plan load_to_device(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.build();
  const std::vector<plan::BlockId> state = read_all(b, plan::BlockUse::temporary);
  plan::mark(b.plan(), "state dict on the host");
  for (std::size_t i = 0; i < model.size(); ++i) b.move_cast(model[i], state[i], b.order()[i]);
  move_all(b, model);
  b.drop_all(state);
  return b.finish();
}

plan::Plan load_shard_by_shard(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.build();
  b.fill_by_shard(model, plan::Space::host);
  move_all(b, model);
  return b.finish();
}

// assign=True makes the state dict's tensors the parameters.
plan::Plan load_meta_assign(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = read_all(b, plan::BlockUse::storage);
  plan::mark(b.plan(), "loaded on the host");
  move_all(b, model);
  return b.finish();
}

// The bytes of a file, and a copy of each tensor out of them.
plan::Plan load_safetensors_bytes(MethodBuilder& b) {
  std::vector<plan::BlockId> weights(b.graph().storages.size());
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<plan::BlockId> read;
    for (const graph::StorageId id : file) read.push_back(b.load(plan::Space::host, id));
    for (std::size_t i = 0; i < file.size(); ++i) {
      weights[graph::index(file[i])] = b.make(plan::Space::host, file[i]);
      b.move(weights[graph::index(file[i])], read[i]);
    }
    b.drop_all(read);
  }
  plan::mark(b.plan(), "loaded on the host");
  std::vector<plan::BlockId> model;
  for (const graph::StorageId id : b.order()) model.push_back(weights[graph::index(id)]);
  move_all(b, model);
  return b.finish();
}

plan::Plan load_state_dict(MethodBuilder& b) { return state_dict_over(b, move_all(b, b.build())); }

// to_empty() gives each parameter memory of its own: a head that was the embedding is that no longer.
plan::Plan load_meta_map_location(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all(plan::Space::device);
  b.untied_head(plan::Space::device, plan::BlockUse::storage);
  plan::mark(b.plan(), "empty model on the device");
  return state_dict_over(b, model);
}

plan::Plan load_sequential(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = move_all(b, b.build());
  const std::vector<plan::BlockId> read = read_all(b, plan::BlockUse::temporary);
  plan::mark(b.plan(), "state dict on the host");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const plan::BlockId temporary = b.make(plan::Space::device, b.order()[i], plan::BlockUse::temporary);
    b.move(temporary, read[i]);
    b.move(model[i], temporary);
    b.drop(temporary);
  }
  b.drop_all(read);
  return b.finish();
}

// The mapped tensors are the parameters.
plan::Plan load_mmap_assign(MethodBuilder& b) {
  MappedModel model(b);
  for (const graph::StorageId id : b.order()) model.view(id);
  model.to_device();
  return b.finish();
}

plan::Plan load_mmap_copy(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.build();
  b.fill_by_shard(model, plan::Space::page_cache);
  move_all(b, model);
  return b.finish();
}

plan::Plan load_mmap_state_dict(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = move_all(b, b.build());
  std::vector<plan::BlockId> loaded(b.graph().storages.size());
  for (const StorageOrder& shard : b.by_shard()) {
    std::vector<plan::BlockId> mapped;
    for (const graph::StorageId id : shard) {
      mapped.push_back(b.load(plan::Space::page_cache, id));
      loaded[graph::index(id)] = b.make(plan::Space::device, id, plan::BlockUse::temporary);
      b.move(loaded[graph::index(id)], mapped.back());
    }
    b.drop_all(mapped);
  }
  plan::mark(b.plan(), "state dict on the device");
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[graph::index(b.order()[i])]);
  for (const graph::StorageId id : b.order()) b.drop(loaded[graph::index(id)]);
  return b.finish();
}

plan::Plan load_per_tensor(MethodBuilder& b) {
  const std::vector<plan::BlockId> model = b.make_all_cast(plan::Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const graph::StorageId id = b.order()[i];
    plan::BlockId read = b.make(plan::Space::host, id, plan::BlockUse::temporary);
    b.read(read, id);
    if (b.cast(id)) {
      const plan::BlockId stored =
          std::exchange(read, b.make_cast(plan::Space::host, id, plan::BlockUse::temporary));
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
plan::Plan load_cast_on_host(MethodBuilder& b) {
  const std::vector<plan::BlockId> read = b.make_all(plan::Space::host, plan::BlockUse::temporary);
  for (std::size_t i = 0; i < read.size(); ++i) b.read(read[i], b.order()[i]);
  plan::mark(b.plan(), "file data on the host");
  for (std::size_t i = 0; i < read.size(); ++i) {
    b.move_cast(b.make_cast(plan::Space::device, b.order()[i]), read[i], b.order()[i]);
    b.drop(read[i]);
  }
  return b.finish();
}

// A tensor arrives on the device in its stored type, then is cast into a block of its own beside it.
plan::Plan load_cast_on_device(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) {
    const plan::BlockId read = b.load(plan::Space::host, id);
    const plan::BlockId stored = b.make(plan::Space::device, id, plan::BlockUse::temporary);
    b.move(stored, read);
    b.drop(read);
    b.move_cast(b.make_cast(plan::Space::device, id), stored, id);
    b.drop(stored);
  }
  return b.finish();
}

}  // namespace loadline::load
