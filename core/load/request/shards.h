// The shards that loaders read one after the other: the model's files, or the files that it would be saved as
// again.
#pragma once

#include "core/load/request/orders.h"

#include <cstdint>
#include <vector>

namespace loadline {

// The shard number of each storage. With `most` > 0, cuts along file order, independent of the load order, as
// save_pretrained does: a storage that would make the current shard larger than `most` bytes starts a new
// one. A storage larger than `most` is a shard of its own, and the shard before it goes on being filled. With
// 0 the shards are the files; storages without a file share one.
std::vector<std::uint32_t> shards_of(const MetaGraph& graph, std::uint64_t most);

// Whether the files are PyTorch's, of which many loaders read each whole instead of mapping it.
bool is_pickled(const MetaGraph& graph);

}  // namespace loadline
