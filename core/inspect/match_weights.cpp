// Pairs weights through an index of names.
#include "core/graph/name_index.h"
#include "core/graph/packed/find_logical.h"
#include "core/inspect/model_differences.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

NameIndex index_of(const std::vector<Weight>& weights) {
  NameIndex index(weights.size());
  for (std::uint32_t i = 0; i < weights.size(); ++i)
    index.add(weights[i].name, weights[i].name.hash(), i,
              [&](std::uint32_t at) { return weights[at].name.view(); });
  return index;
}

std::optional<std::uint32_t> find(const std::vector<Weight>& weights, const NameIndex& index,
                                  std::string_view name) {
  return index.find(name, name_hash(name), [&](std::uint32_t at) { return weights[at].name.view(); });
}

// By tensor: the other names of the same bytes.
std::vector<std::uint32_t> group_of_tensor(const MetaGraph& graph,
                                           const std::vector<std::vector<TensorId>>& groups) {
  std::vector<std::uint32_t> result(graph.tensors.size(), kNone);
  for (std::uint32_t i = 0; i < groups.size(); ++i)
    for (const TensorId id : groups[i]) result[index(id)] = i;
  return result;
}

// Pairs weights of one model, `alone`, with weights of the other through the names they are tied to.
template <typename Add>
void pair_tied(const MetaGraph& graph, const std::vector<Weight>& weights,
               const std::vector<Weight>& of_other, std::vector<std::uint32_t>& alone, Add add) {
  const auto groups = tied_groups(graph);
  if (groups.empty() || alone.empty()) return;
  const auto group = group_of_tensor(graph, groups);
  const NameIndex other = index_of(of_other);
  std::erase_if(alone, [&](std::uint32_t position) {
    const Weight& weight = weights[position];
    if (weight.packed || weight.recipe || group[index(weight.tensor)] == kNone) return false;
    for (const TensorId id : groups[group[index(weight.tensor)]])
      if (const auto found = find(of_other, other, graph.tensor(id).name.view())) {
        add(position, *found);
        return true;
      }
    return false;
  });
}

}  // namespace

std::vector<Weight> model_weights(const MetaGraph& graph) {
  const auto packed = logical_positions(graph);
  std::vector<Weight> weights;
  weights.reserve(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId id{i};
    if (!packed[i]) {
      const Tensor& tensor = graph.tensors[i];
      weights.push_back({tensor.name, tensor.dtype, tensor.shape, id});
    } else if (const LogicalTensor& weight = graph.logical[*packed[i]]; weight.codes == id) {
      weights.push_back({weight.name, weight.dtype, weight.shape, id, packed[i]});
    }
  }
  return weights;
}

Weight computed_weight(const MetaGraph& graph, Name name, Recipe recipe) {
  Form form = recipe_forms(graph, recipe).back();
  const std::vector<TensorId> read = recipe_tensors(graph, recipe);
  return {std::move(name),
          form.dtype,
          std::move(form.shape),
          read.empty() ? TensorId{} : read.front(),
          {},
          std::make_shared<const Recipe>(std::move(recipe))};
}

std::uint64_t weight_bytes(const MetaGraph& graph, const Weight& weight) {
  if (weight.recipe) return byte_size(weight.dtype, element_count(weight.shape).value_or(0)).value_or(0);
  return weight.packed ? packed_bytes(graph, graph.logical[*weight.packed])
                       : tensor_bytes(graph, graph.tensor(weight.tensor));
}

std::string weight_type(const MetaGraph& graph, const Weight& weight) {
  if (!weight.packed) return std::string(dtype_info(weight.dtype).name);
  const LogicalTensor& packed = graph.logical[*weight.packed];
  return fmt::format("{} {}-bit", packing_name(packed.packing), packed.bits);
}

Matching match_weights(const MetaGraph& a, const MetaGraph& b) {
  return match_weights(a, model_weights(a), b, model_weights(b));
}

Matching match_weights(const MetaGraph& a, std::vector<Weight> of_a, const MetaGraph& b,
                       std::vector<Weight> of_b) {
  Matching result;
  result.a = std::move(of_a);
  result.b = std::move(of_b);
  const NameIndex names = index_of(result.b);
  std::vector<bool> paired(result.b.size(), false);
  for (std::uint32_t i = 0; i < result.a.size(); ++i) {
    const auto found = find(result.b, names, result.a[i].name.view());
    if (found && !paired[*found]) {
      paired[*found] = true;
      result.pairs.push_back({i, *found});
    } else {
      result.only_a.push_back(i);
    }
  }
  for (std::uint32_t i = 0; i < result.b.size(); ++i)
    if (!paired[i]) result.only_b.push_back(i);

  const std::size_t by_name = result.pairs.size();
  pair_tied(a, result.a, result.b, result.only_a, [&](std::uint32_t in_a, std::uint32_t in_b) {
    result.pairs.push_back({in_a, in_b});
  });
  pair_tied(b, result.b, result.a, result.only_b, [&](std::uint32_t in_b, std::uint32_t in_a) {
    result.pairs.push_back({in_a, in_b});
  });
  result.tied = result.pairs.size() - by_name;
  std::ranges::stable_sort(result.pairs, {}, &WeightPair::a);
  return result;
}

bool packed_alike(const MetaGraph& a, const Weight& of_a, const MetaGraph& b, const Weight& of_b) {
  if (!of_a.packed || !of_b.packed) return false;
  const LogicalTensor &x = a.logical[*of_a.packed], &y = b.logical[*of_b.packed];
  if (x.packing != y.packing || x.bits != y.bits || x.dtype != y.dtype || x.block != y.block ||
      x.companions.size() != y.companions.size())
    return false;
  const auto same = [&](TensorId i, TensorId j) {
    return a.tensor(i).dtype == b.tensor(j).dtype && a.tensor(i).shape == b.tensor(j).shape;
  };
  for (std::size_t i = 0; i < x.companions.size(); ++i)
    if (x.companions[i].kind != y.companions[i].kind || !same(x.companions[i].tensor, y.companions[i].tensor))
      return false;
  return same(x.codes, y.codes);
}

bool same_shape(const Shape& a, const Shape& b) {
  const auto single = [](const Shape& shape) {
    return shape.empty() || (shape.size() == 1 && shape[0] == 1);
  };
  return a == b || (single(a) && single(b));
}

}  // namespace loadline
