// Transformers 4 and 5, GGUF files in it, accelerate, peft.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

// --- transformers: models filled from mapped files, and version 5's conversion on load.

namespace {

// One storage, or a whole expert group at the position of its first member.
struct Item {
  graph::StorageId storage{};
  const ExpertGroup* group = nullptr;
};

std::vector<Item> items_of(const MethodBuilder& b, const StorageOrder& order,
                           const std::vector<ExpertGroup>& groups) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> group_of(b.graph().storages.size(), kNone);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const graph::StorageId id : groups[g].storages) group_of[graph::index(id)] = g;
  std::vector<bool> met(groups.size(), false);
  std::vector<Item> items;
  for (const graph::StorageId id : order) {
    const std::size_t g = group_of[graph::index(id)];
    if (g == kNone)
      items.push_back({.storage = id});
    else if (!met[g])
      met[g] = true, items.push_back({.storage = id, .group = &groups[g]});
  }
  return items;
}

plan::BlockId make_fused(MethodBuilder& b, plan::Space space, std::string label, std::uint64_t bytes,
                         plan::BlockUse use) {
  return plan::alloc(b.plan(),
                     {.bytes = bytes, .space = space, .use = use, .storage = {}, .extra = std::move(label)});
}

std::uint64_t cast_bytes_of(const MethodBuilder& b, const ExpertGroup& group) {
  std::uint64_t sum = 0;
  for (const graph::StorageId id : group.storages) sum += b.cast_bytes(id);
  return sum;
}

// The blocks of a group's tensors, and which of them are copies of their own rather than mapped pages.
struct Sources {
  std::vector<plan::BlockId> blocks = {};
  std::vector<bool> copies = {};
};

// Stacks each column of a group of experts and lets go of its sources, then concatenates the columns.
plan::BlockId fuse_columns(MethodBuilder& b, const ExpertGroup& group, plan::Space space,
                           const Sources& sources) {
  std::vector<plan::BlockId> stacks;
  const bool single = group.columns == 1;
  for (std::size_t column = 0; column < group.columns; ++column) {
    const std::uint64_t part = b.cast_bytes(group.member(0, column));
    stacks.push_back(make_fused(b, space, single ? group.label : group.label + " (stack)",
                                part * group.experts(),
                                single ? plan::BlockUse::storage : plan::BlockUse::temporary));
    for (std::size_t expert = 0; expert < group.experts(); ++expert)
      plan::copy(b.plan(), stacks.back(), expert * part, sources.blocks[expert * group.columns + column], 0,
                 part);
    for (std::size_t expert = 0; expert < group.experts(); ++expert)
      if (const std::size_t at = expert * group.columns + column; sources.copies[at])
        b.drop(sources.blocks[at]);
  }
  if (single) return stacks.front();
  const plan::BlockId fused =
      make_fused(b, space, group.label, cast_bytes_of(b, group), plan::BlockUse::storage);
  std::uint64_t at = 0;
  for (std::size_t expert = 0; expert < group.experts(); ++expert)
    for (std::size_t column = 0; column < group.columns; ++column) {
      const std::uint64_t part = b.cast_bytes(group.member(0, column));
      plan::copy(b.plan(), fused, at, stacks[column], expert * part, part);
      at += part;
    }
  b.drop_all(stacks);
  return fused;
}

// from_pretrained() of transformers 5: a pool of threads materializes the tensors in the order of their
// names, each thread with a cast copy on the host of its own. They run ahead of the loop that fuses experts.
// With weights on disk there is no pool, and each group is materialized when its turn comes.
class Conversion {
 public:
  // `on_host`: every parameter stays on the host for now, whatever its home.
  Conversion(MethodBuilder& b, MappedModel& model, bool on_host)
      : b_(b),
        model_(model),
        on_host_(on_host),
        groups_(b.parts().expert_groups()),
        workers_(loading_threads(b.bound())),
        made_(b.graph().storages.size()) {
    check_groups();
    const bool pool = !b.bound().placement.leaves_on_disk();
    // transformers 5 sorts a state dict by name before it converts anything
    const std::vector<Item> items = items_of(b_, b_.parts().by_name(), groups_);
    for (const Item& item : items) {
      if (item.group == nullptr) {
        convert(item.storage);
        continue;
      }
      for (const graph::StorageId id : item.group->storages) materialize(id);
      if (!pool) fuse(*item.group);
    }
    drop_casts();
    for (const Item& item : items)
      if (pool && item.group != nullptr) fuse(*item.group);
  }

 private:
  Home home(graph::StorageId id) const { return on_host_ ? Home::host : b_.home(id); }

  void check_groups() const {
    for (const ExpertGroup& group : groups_)
      for (const graph::StorageId id : group.storages)
        if (b_.home(id) != b_.home(group.storages.front()))
          throw Error(ErrorCode::unsupported,
                      "{} becomes one tensor: its parts cannot go to different places",
                      safe_display(group.label, 80));
  }

  void convert(graph::StorageId id) {
    const bool cast = b_.cast(id).has_value();
    if (home(id) == Home::device)
      to_device(id, plan::BlockUse::storage);
    else if (cast)
      keep(id, cast_copy(id, home(id) == Home::host ? plan::BlockUse::storage : plan::BlockUse::temporary));
    else if (home(id) == Home::host)
      model_.view(id);  // on disk it stays in its own file
  }

  // What goes to disk is written to a file of its own and freed.
  void keep(graph::StorageId id, plan::BlockId made) {
    home(id) == Home::host ? model_.own(id, made) : b_.drop(made);
  }

  plan::BlockId cast_copy(graph::StorageId id, plan::BlockUse use) {
    const plan::BlockId pages = model_.touch(id);
    const plan::BlockId made = b_.make_cast(plan::Space::host, id, use);
    b_.move_cast(made, pages, id);
    return made;
  }

  plan::BlockId to_device(graph::StorageId id, plan::BlockUse use) {
    plan::BlockId from{};
    if (b_.cast(id)) {
      if (casts_.size() == workers_) drop_smallest_cast();
      from = cast_copy(id, plan::BlockUse::temporary);
      casts_.push_back(from);
    } else {
      from = model_.touch(id);
    }
    const plan::BlockId made = b_.make_cast(plan::Space::device, id, use);
    b_.move(made, from);
    if (workers_ == 1) drop_casts();
    return made;
  }

  // A large tensor takes its thread long: meanwhile the other threads go on.
  void drop_smallest_cast() {
    const auto bytes = [&](plan::BlockId block) { return b_.plan().block(block).bytes; };
    const auto smallest = std::ranges::min_element(casts_, {}, bytes);
    b_.drop(*smallest);
    casts_.erase(smallest);
  }

  void drop_casts() { b_.drop_all(std::exchange(casts_, {})); }

  // A source of a fused tensor. On the host, one that needs no cast is a view of the mapping.
  void materialize(graph::StorageId id) {
    made_[graph::index(id)] = home(id) == Home::device ? to_device(id, plan::BlockUse::temporary)
                              : b_.cast(id)            ? cast_copy(id, plan::BlockUse::temporary)
                                                       : model_.touch(id);
  }

  void fuse(const ExpertGroup& group) {
    const graph::StorageId first = group.storages.front();
    const plan::Space space = home(first) == Home::device ? plan::Space::device : plan::Space::host;
    Sources sources;
    for (const graph::StorageId id : group.storages) {
      sources.blocks.push_back(made_[graph::index(id)]);
      sources.copies.push_back(space == plan::Space::device || b_.cast(id).has_value());
    }
    const plan::BlockId fused = fuse_columns(b_, group, space, sources);
    if (space == plan::Space::host) keep(first, fused);
  }

  MethodBuilder& b_;
  MappedModel& model_;
  const bool on_host_;
  const std::vector<ExpertGroup>& groups_;
  const std::size_t workers_;         // without threads if weights stay on disk
  std::vector<plan::BlockId> casts_;  // one for each worker
  std::vector<plan::BlockId> made_;   // by storage: the source of a fused tensor
};

// Allocates the fused tensor first; each part is copied to its place in it.
void fuse_in_place(MethodBuilder& b, const ExpertGroup& group) {
  const plan::BlockId fused =
      make_fused(b, plan::Space::device, group.label, cast_bytes_of(b, group), plan::BlockUse::storage);
  std::uint64_t at = 0;
  for (const graph::StorageId id : group.storages) {
    const plan::BlockId read = b.make_cast(plan::Space::host, id, plan::BlockUse::temporary);
    b.read_cast(read, id);
    plan::copy(b.plan(), fused, at, read, 0, b.cast_bytes(id));
    at += b.cast_bytes(id);
    b.drop(read);
  }
}

// Loads mapped files one after the other. Weights that are `copied` or cast become tensors of their own, the
// others views; then the model moves to the device.
plan::Plan load_mapped_files(MethodBuilder& b, bool copied) {
  MappedModel model(b);
  for (std::size_t file = 0; file < model.files().size(); ++file) {
    for (const graph::StorageId id : model.files()[file]) {
      if (!copied && !b.cast(id)) {
        model.view(id);
        continue;
      }
      const plan::BlockId pages = model.touch(id);
      const plan::BlockId made = b.make_cast(plan::Space::host, id);
      b.move_cast(made, pages, id);
      model.own(id, made);
    }
    model.close(file);
  }
  plan::mark(b.plan(), "loaded on the host");
  model.to_device();
  return b.finish();
}

}  // namespace

// The model is built with memory that nothing has touched: it becomes resident as it is filled.
plan::Plan load_transformers_v4_early(MethodBuilder& b) { return load_mapped_files(b, true); }

plan::Plan load_transformers_v4(MethodBuilder& b) { return load_mapped_files(b, false); }

plan::Plan load_transformers_v5(MethodBuilder& b) {
  std::uint64_t lands = 0;
  for (const graph::StorageId id : b.order()) lands += b.home(id) == Home::device ? b.cast_bytes(id) : 0;
  if (lands > 0) {
    b.drop(make_fused(b, plan::Space::device, "warm-up of the allocator", lands, plan::BlockUse::temporary));
    plan::mark(b.plan(), "allocator warmed up");
  }
  MappedModel model(b);
  Conversion(b, model, false);
  model.close();
  model.to_device();
  b.bring_offloaded();
  return b.finish();
}

plan::Plan load_transformers_v5_to(MethodBuilder& b) {
  MappedModel model(b);
  Conversion(b, model, true);
  model.close();
  plan::mark(b.plan(), "loaded on the host");
  model.to_device();
  return b.finish();
}

plan::Plan load_fused_in_place(MethodBuilder& b) {
  const std::vector<ExpertGroup>& groups = b.parts().expert_groups();
  for (const Item& item : items_of(b, b.order(), groups)) {
    if (item.group != nullptr) {
      fuse_in_place(b, *item.group);
      continue;
    }
    const plan::BlockId read = b.make_cast(plan::Space::host, item.storage, plan::BlockUse::temporary);
    b.read_cast(read, item.storage);
    b.move(b.make_cast(plan::Space::device, item.storage), read);
    b.drop(read);
  }
  return b.finish();
}

// --- accelerate's load_checkpoint_and_dispatch: shard by shard, to the homes in a device map.

namespace {

class Dispatch {
 public:
  explicit Dispatch(MethodBuilder& b)
      : b_(b), model_(b), pickled_(is_pickled(b.graph())), offloads_(b.bound().placement.leaves_on_disk()) {
    for (std::size_t file = 0; file < model_.files().size(); ++file) {
      load_shard(model_.files()[file]);
      plan::mark(b_.plan(), fmt::format("shard {} loaded", file + 1));
    }
    if (offloads_) read_back();
    release_last();
    model_.to_device();
  }

 private:
  // Without offloading, a weight that stays on the host in its stored type is the loaded tensor itself: a
  // view of a mapped shard, or a tensor of a shard that was read whole.
  bool stays(graph::StorageId id) const { return b_.home(id) == Home::host && !b_.cast(id) && !offloads_; }

  // Safetensors files are mapped, once for each device, and yield one tensor at a time; pickled shards are
  // read whole. In both cases a shard's sources live until the shard is done.
  void load_shard(const StorageOrder& shard) {
    std::vector<plan::BlockId> loaded, alive;
    if (pickled_)
      for (const graph::StorageId id : shard) {
        loaded.push_back(
            b_.make(plan::Space::host, id, stays(id) ? plan::BlockUse::storage : plan::BlockUse::temporary));
        b_.read(loaded.back(), id);
      }
    release_last();
    for (std::size_t i = 0; i < shard.size(); ++i) {
      if (stays(shard[i])) {
        if (!pickled_) model_.view(shard[i]);
        continue;
      }
      alive.push_back(pickled_ ? loaded[i] : b_.load(plan::Space::page_cache, shard[i]));
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
  void dispatch(graph::StorageId id, plan::BlockId source, std::vector<plan::BlockId>& alive) {
    const bool device = b_.home(id) == Home::device;
    if (device && b_.cast(id) && !pickled_) {
      alive.push_back(b_.make(plan::Space::device, id, plan::BlockUse::temporary));
      b_.move(alive.back(), source);
      b_.move_cast(b_.make_cast(plan::Space::device, id), alive.back(), id);
      return;
    }
    if (!device && !offloads_) {
      b_.move_cast(b_.make_cast(plan::Space::host, id), source, id);
      return;
    }
    std::optional<plan::BlockId> cast;
    if (b_.cast(id)) {
      cast = b_.make_cast(plan::Space::host, id, plan::BlockUse::temporary);
      b_.move_cast(*cast, source, id);
    }
    if (device)
      b_.move(b_.make_cast(plan::Space::device, id), cast.value_or(source));
    else
      offload_file(id);
    if (cast) b_.drop(*cast);
  }

  // An offloaded weight is written to, and read from, a mapped file of its own.
  void offload_file(graph::StorageId id) { b_.drop(b_.load(plan::Space::page_cache, id)); }

  // Once a map names the disk, what belongs on the host is offloaded too at first, and read back at the end.
  void read_back() {
    for (const graph::StorageId id : b_.order()) {
      if (b_.home(id) != Home::host) continue;
      offload_file(id);
      b_.read_cast(b_.make_cast(plan::Space::host, id), id);
    }
    plan::mark(b_.plan(), "weights of the host read back");
  }

  MethodBuilder& b_;
  MappedModel model_;
  const bool pickled_;
  const bool offloads_;
  std::optional<plan::BlockId> last_;
};

}  // namespace

plan::Plan load_accelerate(MethodBuilder& b) {
  Dispatch dispatch(b);
  b.bring_offloaded();
  return b.finish();
}

// --- GGUF files through transformers, as of 5.23: from_pretrained(gguf_file=...) of an architecture whose
// blocks it does not keep, as llama, qwen2 and gemma.

// The file is mapped. Tensor by tensor its blocks become F32 numbers, a copy of these becomes the parameter,
// cast if a type is asked for. The numbers of one tensor live until those of the next are made.
plan::Plan load_transformers_gguf(MethodBuilder& b) {
  const graph::DType to = b.bound().request.cast.value_or(graph::DType::f32);
  const auto widen = unpacking_casts(b.graph(), graph::DType::f32), narrow = unpacking_casts(b.graph(), to);
  const auto wide = unpacked_bytes(b.graph(), graph::DType::f32), last_bytes = unpacked_bytes(b.graph(), to);
  const auto make = [&](graph::StorageId id, std::uint64_t bytes, plan::BlockUse use) {
    return plan::alloc(b.plan(), bytes, plan::Space::host, use, id);
  };
  // Python holds each length, word and number of the vocabulary as an array
  const std::uint64_t vocabulary = python_vocabulary_bytes(b.graph());
  std::vector<plan::BlockId> held;
  if (vocabulary > 0)
    held.push_back(make_fused(b, plan::Space::host, "vocabulary", vocabulary, plan::BlockUse::temporary));
  std::optional<plan::BlockId> before;
  StorageOrder order = b.order();
  std::ranges::sort(order);  // the reader has an order of its own: that of the file
  for (const graph::StorageId id : order) {
    const std::size_t at = graph::index(id);
    const plan::BlockId blocks = b.load(plan::Space::page_cache, id);
    held.push_back(blocks);
    const plan::BlockId numbers = make(id, wide[at], plan::BlockUse::temporary);
    plan::copy(b.plan(), numbers, 0, blocks, 0, b.bytes(id), widen[at]);
    if (before) b.drop(*before);
    before = numbers;
    const bool done = to == graph::DType::f32;
    const plan::BlockId copied =
        make(id, wide[at], done ? plan::BlockUse::storage : plan::BlockUse::temporary);
    b.move(copied, numbers);
    if (done) continue;
    const plan::BlockId cast = make(id, last_bytes[at], plan::BlockUse::storage);
    plan::copy(b.plan(), cast, 0, blocks, 0, b.bytes(id), narrow[at]);
    b.drop(copied);
  }
  if (before) b.drop(*before);
  plan::mark(b.plan(), "blocks unpacked");
  b.drop_all(held);
  return b.finish();
}

// --- peft, as of 0.21, on a model that from_pretrained() of transformers 5 left on the host: views of its
// files.

namespace {

void attach(MethodBuilder& b, const std::vector<Adapter>& adapters, std::vector<plan::BlockId>& made) {
  for (const Adapter& adapter : adapters)
    made.push_back(make_fused(b, plan::Space::host, "adapter", adapter.bytes, plan::BlockUse::value));
  if (!adapters.empty()) plan::mark(b.plan(), "adapters attached");
}

}  // namespace

plan::Plan load_peft_attach(MethodBuilder& b) {
  std::vector<plan::BlockId> made;
  attach(b, adapters_of(b.graph(), b.bound().request), made);
  for (const graph::StorageId id : b.order()) b.view(id);
  return b.finish();
}

// The product is added in place. A mapped weight that is written becomes a copy of its own.
plan::Plan load_peft_merge(MethodBuilder& b) {
  const std::vector<Adapter> adapters = adapters_of(b.graph(), b.bound().request);
  std::vector<plan::BlockId> made;
  attach(b, adapters, made);
  std::vector<bool> merged(b.graph().storages.size(), false);
  for (const Adapter& adapter : adapters) {
    const std::uint64_t bytes = b.bytes(adapter.weight);
    if (bytes == 0) continue;
    merged[graph::index(adapter.weight)] = true;
    const plan::BlockId product = make_fused(b, plan::Space::host, "product of an adapter",
                                             adapter.merge_bytes(bytes), plan::BlockUse::temporary);
    const plan::BlockId pages = b.load(plan::Space::page_cache, adapter.weight);
    b.move(b.make(plan::Space::host, adapter.weight), pages);
    b.drop(pages);
    b.drop(product);
  }
  plan::mark(b.plan(), "adapters merged");
  b.drop_all(made);
  for (const graph::StorageId id : b.order())
    if (!merged[graph::index(id)]) b.view(id);
  return b.finish();
}

}  // namespace loadline::load
