// The shards that loaders take one after the other: the model's files, or what they would be saved as again.
#pragma once

#include "core/load/orders.h"

#include <cstdint>
#include <vector>

namespace loadline {

// By storage, the number of its shard. With `most` they are cut along file order, once and whatever order is
// loaded, as save_pretrained does: a new one where the next storage would make it larger than `most` bytes. A
// storage that is larger by itself is a shard of its own, and the one before it goes on being filled. With 0
// they are the files; storages without a file share one.
std::vector<std::uint32_t> shards_of(const MetaGraph& graph, std::uint64_t most);

}  // namespace loadline
