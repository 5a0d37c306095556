// PyTorch recipes, from the naive one to those that need no memory beside the weights.
#include "core/load/methods/programs.h"

#include <utility>

namespace loadline {
namespace {

// Moves from host to device parameter by parameter, as Module.to() does.
std::vector<BlockId> move_all(MethodBuilder& b, const std::vector<BlockId>& from) {
  std::vector<BlockId> moved;
  for (std::size_t i = 0; i < from.size(); ++i) {
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

// Initialises a model in host memory, then moves it to the device.
std::vector<BlockId> build_then_move(MethodBuilder& b) {
  const std::vector<BlockId> built = b.make_all(Space::host);
  mark(b.plan(), "built on the host");
  return move_all(b, built);
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

Plan load_to_device(MethodBuilder& b) {
  std::vector<BlockId> model;
  for (const StorageId id : b.order()) {
    if (!b.cast(id)) {
      model.push_back(b.make(Space::host, id));
      b.read(model.back(), id);
      continue;
    }
    const BlockId read = b.load(Space::host, id);
    model.push_back(b.make_cast(Space::host, id));
    b.move_cast(model.back(), read, id);
    b.drop(read);
  }
  mark(b.plan(), "loaded on the host");
  move_all(b, model);
  return b.finish();
}

Plan load_state_dict(MethodBuilder& b) { return state_dict_over(b, build_then_move(b)); }

Plan load_meta_map_location(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::device);
  mark(b.plan(), "empty model on the device");
  return state_dict_over(b, model);
}

Plan load_sequential(MethodBuilder& b) {
  const std::vector<BlockId> model = build_then_move(b);
  std::vector<BlockId> read;
  for (const StorageId id : b.order()) read.push_back(b.load(Space::host, id));
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

Plan load_mmap_assign(MethodBuilder& b) {
  std::vector<BlockId> mapped;
  for (const StorageId id : b.order()) {
    mapped.push_back(b.load(Space::page_cache, id));
    b.move(b.make(Space::device, id), mapped.back());
  }
  b.drop_all(mapped);
  return b.finish();
}

Plan load_mmap_copy(MethodBuilder& b) {
  const std::vector<BlockId> model = b.make_all(Space::host);
  mark(b.plan(), "built on the host");
  std::vector<BlockId> mapped;
  for (std::size_t i = 0; i < model.size(); ++i) {
    mapped.push_back(b.load(Space::page_cache, b.order()[i]));
    b.move(model[i], mapped.back());
  }
  b.drop_all(mapped);
  mark(b.plan(), "loaded on the host");
  move_all(b, model);
  return b.finish();
}

Plan load_mmap_state_dict(MethodBuilder& b) {
  const std::vector<BlockId> model = build_then_move(b);
  std::vector<BlockId> mapped, loaded;
  for (const StorageId id : b.order()) {
    mapped.push_back(b.load(Space::page_cache, id));
    loaded.push_back(b.make(Space::device, id, BlockUse::temporary));
    b.move(loaded.back(), mapped.back());
  }
  mark(b.plan(), "state dict on the device");
  b.drop_all(mapped);
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[i]);
  b.drop_all(loaded);
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

}  // namespace loadline
