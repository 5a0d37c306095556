// transformers: a model built and filled shard by shard, and version 5's conversion on load.
#include "core/load/expert_groups.h"
#include "core/load/methods/programs.h"

namespace loadline {
namespace {

// One storage, or a whole expert group at the position of its first member.
struct Item {
  StorageId storage{};
  const ExpertGroup* group = nullptr;
};

std::vector<Item> items_of(const MethodBuilder& b, const std::vector<ExpertGroup>& groups) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> group_of(b.graph().storages.size(), kNone);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const StorageId id : groups[g].storages) group_of[index(id)] = g;
  std::vector<bool> met(groups.size(), false);
  std::vector<Item> items;
  for (const StorageId id : b.order()) {
    const std::size_t g = group_of[index(id)];
    if (g == kNone)
      items.push_back({.storage = id});
    else if (!met[g])
      met[g] = true, items.push_back({.storage = id, .group = &groups[g]});
  }
  return items;
}

BlockId make_fused(MethodBuilder& b, Space space, std::string label, std::uint64_t bytes, BlockUse use) {
  return alloc(b.plan(),
               {.space = space, .bytes = bytes, .use = use, .storage = {}, .label = std::move(label)});
}

std::uint64_t cast_bytes_of(const MethodBuilder& b, const ExpertGroup& group) {
  std::uint64_t sum = 0;
  for (const StorageId id : group.storages) sum += b.cast_bytes(id);
  return sum;
}

// Copies mapped pages to a block of its own on the device; a cast goes through a temporary host copy. The
// files stay open and mapped until the load is done.
BlockId materialise(MethodBuilder& b, StorageId id, BlockUse use, std::vector<BlockId>& mapped) {
  const BlockId pages = b.load(Space::page_cache, id);
  BlockId from = pages;
  if (b.cast(id)) {
    from = b.make_cast(Space::host, id, BlockUse::temporary);
    b.move_cast(from, pages, id);
  }
  const BlockId made = b.make_cast(Space::device, id, use);
  b.move(made, from);
  if (from != pages) b.drop(from);
  mapped.push_back(pages);
  return made;
}

// Loads all sources, stacks each column, then concatenates the columns; the lists of sources live to the end.
void fuse_from_lists(MethodBuilder& b, const ExpertGroup& group, std::vector<BlockId>& mapped) {
  std::vector<BlockId> sources;
  for (const StorageId id : group.storages)
    sources.push_back(materialise(b, id, BlockUse::temporary, mapped));
  const std::uint64_t bytes = cast_bytes_of(b, group);
  std::vector<BlockId> stacks;
  for (std::size_t column = 0; column < group.columns; ++column) {
    const std::uint64_t part = b.cast_bytes(group.member(0, column));
    const bool last = group.columns == 1;
    stacks.push_back(make_fused(b, Space::device, last ? group.label : group.label + " (stack)",
                                part * group.experts(), last ? BlockUse::storage : BlockUse::temporary));
    for (std::size_t expert = 0; expert < group.experts(); ++expert)
      copy(b.plan(), stacks.back(), expert * part, sources[expert * group.columns + column], 0, part);
  }
  if (group.columns > 1) {
    const BlockId fused = make_fused(b, Space::device, group.label, bytes, BlockUse::storage);
    std::uint64_t at = 0;
    for (std::size_t expert = 0; expert < group.experts(); ++expert)
      for (std::size_t column = 0; column < group.columns; ++column) {
        const std::uint64_t part = b.cast_bytes(group.member(0, column));
        copy(b.plan(), fused, at, stacks[column], expert * part, part);
        at += part;
      }
    b.drop_all(stacks);
  }
  b.drop_all(sources);
}

// Allocates the fused tensor first; each part is copied to its place in it.
void fuse_in_place(MethodBuilder& b, const ExpertGroup& group) {
  const BlockId fused = make_fused(b, Space::device, group.label, cast_bytes_of(b, group), BlockUse::storage);
  std::uint64_t at = 0;
  for (const StorageId id : group.storages) {
    const BlockId read = b.make_cast(Space::host, id, BlockUse::temporary);
    b.read_cast(read, id);
    copy(b.plan(), fused, at, read, 0, b.cast_bytes(id));
    at += b.cast_bytes(id);
    b.drop(read);
  }
}

}  // namespace

Plan load_from_pretrained(MethodBuilder& b) {
  std::vector<BlockId> model(b.graph().storages.size());
  for (const StorageId id : b.order()) model[index(id)] = b.make_cast(Space::host, id);
  mark(b.plan(), "built on the host");
  for (const StorageOrder& shard : b.by_shard()) {
    std::vector<BlockId> read;
    for (const StorageId id : shard) read.push_back(b.load(Space::host, id));
    for (std::size_t i = 0; i < shard.size(); ++i) b.move_cast(model[index(shard[i])], read[i], shard[i]);
    b.drop_all(read);
  }
  mark(b.plan(), "loaded on the host");
  for (const StorageId id : b.order()) {
    b.move(b.make_cast(Space::device, id), model[index(id)]);
    b.drop(model[index(id)]);
  }
  return b.finish();
}

Plan load_transformers_v5(MethodBuilder& b) {
  if (b.all_cast_bytes() > 0) {
    b.drop(make_fused(b, Space::device, "warm-up of the allocator", b.all_cast_bytes(), BlockUse::temporary));
    mark(b.plan(), "allocator warmed up");
  }
  const std::vector<ExpertGroup> groups = expert_groups(b.graph(), b.order());
  std::vector<BlockId> mapped;
  for (const Item& item : items_of(b, groups)) {
    if (item.group != nullptr)
      fuse_from_lists(b, *item.group, mapped);
    else
      materialise(b, item.storage, BlockUse::storage, mapped);
  }
  b.drop_all(mapped);
  return b.finish();
}

Plan load_fused_in_place(MethodBuilder& b) {
  const std::vector<ExpertGroup> groups = expert_groups(b.graph(), b.order());
  for (const Item& item : items_of(b, groups)) {
    if (item.group != nullptr) {
      fuse_in_place(b, *item.group);
      continue;
    }
    const BlockId read = b.make_cast(Space::host, item.storage, BlockUse::temporary);
    b.read_cast(read, item.storage);
    b.move(b.make_cast(Space::device, item.storage), read);
    b.drop(read);
  }
  return b.finish();
}

}  // namespace loadline
