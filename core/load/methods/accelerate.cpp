// accelerate's load_checkpoint_and_dispatch: shard by shard, to the homes in a device map.
#include "core/load/methods/mapped_model.h"
#include "core/load/methods/programs.h"
#include "core/load/request/shards.h"

#include <utility>

#include <fmt/format.h>

namespace loadline {
namespace {

class Dispatch {
 public:
  explicit Dispatch(MethodBuilder& b)
      : b_(b), model_(b), pickled_(is_pickled(b.graph())), offloads_(b.inputs().placement.leaves_on_disk()) {
    for (std::size_t file = 0; file < model_.files().size(); ++file) {
      load_shard(model_.files()[file]);
      mark(b_.plan(), fmt::format("shard {} loaded", file + 1));
    }
    if (offloads_) read_back();
    release_last();
    model_.to_device();
  }

 private:
  // Without offloading, a weight that stays on the host in its stored type is the loaded tensor itself: a
  // view of a mapped shard, or a tensor of a shard that was read whole.
  bool stays(StorageId id) const { return b_.home(id) == Home::host && !b_.cast(id) && !offloads_; }

  // Safetensors files are mapped, once for each device, and yield one tensor at a time; pickled shards are
  // read whole. In both cases a shard's sources live until the shard is done.
  void load_shard(const StorageOrder& shard) {
    std::vector<BlockId> loaded, alive;
    if (pickled_)
      for (const StorageId id : shard) {
        loaded.push_back(b_.make(Space::host, id, stays(id) ? BlockUse::storage : BlockUse::temporary));
        b_.read(loaded.back(), id);
      }
    release_last();
    for (std::size_t i = 0; i < shard.size(); ++i) {
      if (stays(shard[i])) {
        if (!pickled_) model_.view(shard[i]);
        continue;
      }
      alive.push_back(pickled_ ? loaded[i] : b_.load(Space::page_cache, shard[i]));
      dispatch(shard[i], alive.back(), alive);
    }
    // the loop's variable holds the last tensor of a pickled shard until the next one is loaded
    if (pickled_ && !alive.empty() && alive.back() == loaded.back()) {
      last_ = alive.back();
      alive.pop_back();
    }
    b_.drop_all(alive);
  }

  void release_last() {
    if (last_) b_.drop(*std::exchange(last_, std::nullopt));
  }

  // Moves one tensor from its source to its home. Blocks that live until the shard is done are added to
  // `alive`.
  void dispatch(StorageId id, BlockId source, std::vector<BlockId>& alive) {
    const bool device = b_.home(id) == Home::device;
    if (device && b_.cast(id) && !pickled_) {
      alive.push_back(b_.make(Space::device, id, BlockUse::temporary));
      b_.move(alive.back(), source);
      b_.move_cast(b_.make_cast(Space::device, id), alive.back(), id);
      return;
    }
    if (!device && !offloads_) {
      b_.move_cast(b_.make_cast(Space::host, id), source, id);
      return;
    }
    std::optional<BlockId> cast;
    if (b_.cast(id)) {
      cast = b_.make_cast(Space::host, id, BlockUse::temporary);
      b_.move_cast(*cast, source, id);
    }
    if (device)
      b_.move(b_.make_cast(Space::device, id), cast.value_or(source));
    else
      offload_file(id);
    if (cast) b_.drop(*cast);
  }

  // An offloaded weight is written to, and read from, a mapped file of its own.
  void offload_file(StorageId id) { b_.drop(b_.load(Space::page_cache, id)); }

  // Once a map names the disk, what belongs on the host is offloaded too at first, and read back at the end.
  void read_back() {
    for (const StorageId id : b_.order()) {
      if (b_.home(id) != Home::host) continue;
      offload_file(id);
      b_.read_cast(b_.make_cast(Space::host, id), id);
    }
    mark(b_.plan(), "weights of the host read back");
  }

  MethodBuilder& b_;
  MappedModel model_;
  const bool pickled_;
  const bool offloads_;
  std::optional<BlockId> last_;
};

}  // namespace

Plan load_accelerate(MethodBuilder& b) {
  Dispatch dispatch(b);
  b.bring_offloaded();
  return b.finish();
}

}  // namespace loadline
