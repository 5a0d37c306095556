// The table of orders.
#include "core/load/request/model_parts.h"

#include "core/base/lookup.h"
#include "core/load/request/orders.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace loadline {
namespace {

// Sorted by file and offset; storages without a file by their number.
StorageOrder file_order(const MetaGraph& graph) {
  StorageOrder order = used_storages(graph);
  std::ranges::stable_sort(order, [&](StorageId a, StorageId b) {
    const Storage &x = graph.storage(a), &y = graph.storage(b);
    return std::tie(x.file, x.offset) < std::tie(y.file, y.offset);
  });
  return order;
}

// Sorts by a key that is computed once for each storage; equal keys keep file order.
template <typename Key>
StorageOrder sorted_by(const MetaGraph& graph, Key key) {
  using Keyed = std::pair<decltype(key(StorageId{})), StorageId>;
  std::vector<Keyed> keyed;
  for (const StorageId id : file_order(graph)) keyed.emplace_back(key(id), id);
  std::ranges::stable_sort(keyed, [](const Keyed& a, const Keyed& b) { return a.first < b.first; });
  StorageOrder order;
  order.reserve(keyed.size());
  for (const Keyed& entry : keyed) order.push_back(entry.second);
  return order;
}

StorageOrder name_order(const MetaGraph& graph) {
  const auto owners = first_owner(graph);
  return sorted_by(graph,
                   [&](StorageId id) -> std::string_view { return graph.tensor(*owners[index(id)]).name; });
}

StorageOrder largest_order(const MetaGraph& graph) {
  return sorted_by(graph, [&](StorageId id) { return ~graph.storage(id).bytes; });
}

StorageOrder smallest_order(const MetaGraph& graph) {
  return sorted_by(graph, [&](StorageId id) { return graph.storage(id).bytes; });
}

StorageOrder forward_order(const MetaGraph& graph) {
  const auto owners = first_owner(graph);
  return sorted_by(graph, [&](StorageId id) { return forward_key(graph.tensor(*owners[index(id)]).name); });
}

// Head and embeddings, the largest tensors of most models, are loaded while there is room; all others keep
// file order. A full sort would lose sequential reads and gain little more.
StorageOrder heads_first_order(const MetaGraph& graph) {
  const auto owners = first_owner(graph);
  return sorted_by(graph, [&](StorageId id) {
    const Phase phase = phase_of(graph.tensor(*owners[index(id)]).name);
    return phase == Phase::head ? 0 : phase == Phase::embedding ? 1 : 2;
  });
}

constexpr std::array<Order, 7> kOrders = {{
    {"file", "as the bytes lie in the files (offset is another word for it): purely sequential reads",
     file_order},
    {"name", "alphabetical, as a sorted state dict", name_order},
    {"forward", "embeddings, layers by number, the rest, final norm, head", forward_order},
    {"heads_first", "head and embeddings, then as the bytes lie", heads_first_order},
    {"largest", "biggest tensor first", largest_order},
    {"smallest", "smallest tensor first", smallest_order},
    {"optimal", "the method's lowest peak, over the memory that counts; file order where nothing is gained",
     nullptr},
}};

}  // namespace

std::span<const Order> orders() { return kOrders; }

const Order& find_order(std::string_view id) {
  return find_row(orders(), id == "offset" ? "file" : id, "order");
}

}  // namespace loadline
