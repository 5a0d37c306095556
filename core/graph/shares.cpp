// A storage of one tensor, the usual case, counts whole; the ranges of other storages are swept by offset.
#include "core/graph/shares.h"

#include "core/graph/packed/find_logical.h"
#include "core/graph/validate.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace loadline {
namespace {

// The bytes of a storage from a tensor's first element to the end of its last, gaps included.
struct Range {
  StorageId storage{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  TensorId tensor{};
  std::size_t place = 0;  // position in `tensors`

  auto key() const { return std::tuple(storage, begin, ~end, tensor); }
};

Range range_of(const MetaGraph& graph, TensorId id, std::size_t place) {
  const Tensor& tensor = graph.tensor(id);
  const std::uint64_t size = graph.storage(tensor.storage).bytes;
  const std::uint64_t begin = std::min(tensor.offset, size);
  const std::uint64_t bytes = std::min(spanned_bytes(tensor).value_or(size), size - begin);
  return {tensor.storage, begin, begin + bytes, id, place};
}

// Elements that a tensor holds in storage: a view with repeated elements counts each of them once.
std::uint64_t held_elements(const Tensor& tensor) {
  const DTypeInfo& type = dtype_info(tensor.dtype);
  const std::uint64_t count = elements(tensor);
  if (tensor.strides.empty() || type.block_bytes == 0) return count;
  const std::uint64_t span = spanned_bytes(tensor).value_or(0);
  return std::min(count, span / type.block_bytes * type.block_elements);
}

// Calls `visit(range, bytes not covered by earlier ranges, whether it lies within an earlier range)`.
template <typename Visit>
void sweep(std::vector<Range>& ranges, Visit visit) {
  std::ranges::sort(ranges, [](const Range& a, const Range& b) { return a.key() < b.key(); });
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    const bool first = i == 0 || ranges[i - 1].storage != range.storage;
    if (first) reached = 0;
    const std::uint64_t from = std::max(range.begin, reached);
    visit(range, range.end > from ? range.end - from : 0, !first && range.end <= reached);
    reached = std::max(reached, range.end);
  }
}

// Whether several tensors use a storage.
std::vector<bool> shared_storages(const MetaGraph& graph,
                                  const std::vector<std::optional<TensorId>>& owners) {
  std::vector<bool> shared(graph.storages.size(), false);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::size_t storage = index(graph.tensors[i].storage);
    if (index(*owners[storage]) != i) shared[storage] = true;
  }
  return shared;
}

std::vector<Share> stored_shares(const MetaGraph& graph, std::span<const TensorId> tensors) {
  const auto owners = first_owner(graph);
  const std::vector<bool> shared = shared_storages(graph, owners);
  std::vector<Share> result(tensors.size());
  std::vector<Range> asked;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = graph.tensor(tensors[i]);
    if (shared[index(tensor.storage)])
      asked.push_back(range_of(graph, tensors[i], i));
    else
      result[i] = {graph.storage(tensor.storage).bytes, held_elements(tensor)};
  }
  if (asked.empty()) return result;
  sweep(asked, [&](const Range& range, std::uint64_t fresh, bool within) {
    result[range.place] = {fresh, within ? 0 : held_elements(graph.tensor(range.tensor))};
  });

  // bytes that no tensor of the graph covers, in `tensors` or not
  std::vector<Range> every;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    if (shared[index(graph.tensors[i].storage)])
      every.push_back(range_of(graph, TensorId{static_cast<std::uint32_t>(i)}, i));
  std::vector<std::uint64_t> covered(graph.storages.size(), 0);
  sweep(every,
        [&](const Range& range, std::uint64_t fresh, bool) { covered[index(range.storage)] += fresh; });
  for (const Range& range : asked) {
    const std::size_t storage = index(range.storage);
    if (owners[storage] == range.tensor)
      result[range.place].bytes += graph.storages[storage].bytes - covered[storage];
  }
  return result;
}

}  // namespace

std::vector<Share> shares(const MetaGraph& graph, std::span<const TensorId> tensors) {
  std::vector<Share> result = stored_shares(graph, tensors);
  if (graph.logical.empty()) return result;
  const auto positions = logical_positions(graph);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto position = positions[index(tensors[i])];
    if (!position || result[i].elements == 0) continue;
    const LogicalTensor& weight = graph.logical[*position];
    result[i].elements = weight.codes == tensors[i] ? elements(weight) : 0;
  }
  return result;
}

std::vector<Share> shares(const MetaGraph& graph) { return shares(graph, all_tensors(graph)); }

Share sum(std::span<const Share> parts) {
  return std::accumulate(parts.begin(), parts.end(), Share{}, [](Share total, const Share& part) {
    return Share{total.bytes + part.bytes, total.elements + part.elements};
  });
}

}  // namespace loadline
