// accelerate's load_checkpoint_and_dispatch: shard by shard, to the homes in a device map.
#include "core/load/methods/programs.h"

#include <fmt/format.h>

namespace loadline {
namespace {

BlockId load_whole(MethodBuilder& b, StorageId id, BlockUse use) {
  const BlockId read = b.make(Space::host, id, use);
  b.read(read, id);
  return read;
}

// Moves one tensor from its source to its home. Blocks that live until the shard is done are added to
// `alive`.
void dispatch(MethodBuilder& b, StorageId id, BlockId source, std::vector<BlockId>& alive) {
  if (b.home(id) == Home::disk) {
    // offloaded to a file: straight from the loaded host copy, or through a temporary one
    if (b.plan().block(source).space == Space::host && !b.cast(id)) return;
    const BlockId written = b.make_cast(Space::host, id, BlockUse::temporary);
    b.move_cast(written, source, id);
    b.drop(written);
  } else if (b.home(id) == Home::host) {
    b.move_cast(b.make_cast(Space::host, id), source, id);
  } else if (!b.cast(id)) {
    b.move(b.make(Space::device, id), source);
  } else {
    alive.push_back(b.make(Space::device, id, BlockUse::temporary));
    b.move(alive.back(), source);
    const BlockId stored = alive.back();
    b.move_cast(b.make_cast(Space::device, id), stored, id);
  }
}

void load_shard(MethodBuilder& b, const StorageOrder& shard, bool pickled) {
  // in a pickled shard, an uncast tensor that stays on the host is the loaded tensor itself
  const auto stays = [&](StorageId id) { return pickled && b.home(id) == Home::host && !b.cast(id); };
  std::vector<BlockId> loaded;
  if (pickled)
    for (const StorageId id : shard)
      loaded.push_back(load_whole(b, id, stays(id) ? BlockUse::storage : BlockUse::temporary));
  std::vector<BlockId> alive;
  for (std::size_t i = 0; i < shard.size(); ++i) {
    const StorageId id = shard[i];
    if (stays(id)) continue;
    BlockId source{};
    if (pickled) {
      source = loaded[i];
    } else {
      source = b.make(Space::page_cache, id, BlockUse::temporary);
      b.read(source, id);
    }
    alive.push_back(source);
    dispatch(b, id, source, alive);
  }
  b.drop_all(alive);
}

}  // namespace

// Safetensors files are mapped and yield one tensor at a time; pickled shards are loaded whole. In both cases
// a shard's sources live until the shard is done, beside their casts.
Plan load_accelerate(MethodBuilder& b) {
  const bool pickled = b.graph().format.starts_with("torch");
  std::size_t number = 0;
  for (const StorageOrder& shard : b.by_shard()) {
    load_shard(b, shard, pickled);
    mark(b.plan(), fmt::format("shard {} loaded", ++number));
  }
  return b.finish();
}

}  // namespace loadline
