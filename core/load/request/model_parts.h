// The parts of a model as a load sees them (layers, the embedding that is also the head, shards), and the
// orders in which it visits them.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace loadline::load {

// --- Splits a model into the units that a forward pass uses one after the other: embeddings, layers, norm,
// head.

// Where in a forward pass a tensor is first used, judged by its name.
enum class Phase : std::uint8_t { embedding, layer, rest, final_norm, head };
Phase phase_of(std::string_view name);

// Sort key that puts names in forward order: by phase, encoders and vision towers before the stack that
// attends to them, layers by number.
std::tuple<Phase, int, std::uint64_t> forward_key(std::string_view name);

struct LoadUnit {
  std::string label;  // "layer 3", "embedding", "head"
  Phase phase = Phase::rest;
  std::vector<graph::StorageId> storages = {};  // in the order given
  std::uint64_t bytes = 0;
};

// The storages that some tensor uses, in the order of the graph.
std::vector<graph::StorageId> used_storages(const graph::MetaGraph& graph);

// The units in forward order. `order` lists storages of this graph that a tensor uses, each once; a unit
// keeps its storages in that order. A storage belongs to the unit of its first tensor.
std::vector<LoadUnit> load_units(const graph::MetaGraph& graph, const std::vector<graph::StorageId>& order);

// --- The embedding that doubles as the head: one weight with two uses.

// The storage of such an embedding; absent if the model has a head of its own, or none at all. A model counts
// as one with a shared embedding if the names of embedding and head share a storage, or if it stores an
// embedding and no head. Encoders with "bert" in model_type or general.architecture need no head; neither
// does a model whose configuration says tie_word_embeddings: false.
std::optional<graph::StorageId> shared_embedding(const graph::MetaGraph& graph);

// --- Load orders: the sequence in which a load visits the storages of a model.

// A permutation of all storages that a tensor uses.
using StorageOrder = std::vector<graph::StorageId>;

struct Order {
  std::string_view id;
  std::string_view summary;
  // Null if the order depends on the method; make_order() (optimal_order.h) handles both kinds.
  StorageOrder (*make)(const graph::MetaGraph& graph);
};

std::span<const Order> orders();
// Accepts "offset" as another name of "file". Throws Error{usage} that lists the ids.
const Order& find_order(std::string_view id);

// --- The shards that loaders read one after the other: the model's files, or the files that it would be
// saved as again.

// The shard number of each storage. With `most` > 0, cuts along file order, independent of the load order, as
// save_pretrained does: a storage that would make the current shard larger than `most` bytes starts a new
// one. A storage larger than `most` is a shard of its own, and the shard before it goes on being filled. With
// 0 the shards are the files; storages without a file share one.
std::vector<std::uint32_t> shards_of(const graph::MetaGraph& graph, std::uint64_t most);

// Whether the files are PyTorch's, of which many loaders read each whole instead of mapping it.
bool is_pickled(const graph::MetaGraph& graph);

}  // namespace loadline::load
