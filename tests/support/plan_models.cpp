// Models as plain values.
#include "tests/support/plan_models.h"

namespace loadline::testing {

MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  MetaGraph graph;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(shapes_only_storage(sizes[i]));
    graph.tensors.push_back(
        {"t" + std::to_string(i), DType::u8, {sizes[i]}, {}, StorageId{static_cast<std::uint32_t>(i)}, 0});
  }
  return graph;
}

MetaGraph model_of(const std::vector<Weight>& weights, DType dtype) {
  MetaGraph graph;
  graph.files.push_back({"model.safetensors", 0});
  std::uint64_t offset = 0;
  for (const Weight& weight : weights) {
    const StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    const std::uint64_t bytes = *byte_size(dtype, weight.rows * 32);
    graph.storages.push_back(plain_storage(FileId{0}, offset, bytes));
    graph.tensors.push_back({Name(weight.name), dtype, {weight.rows, 32}, {}, id, 0});
    offset += bytes;
  }
  graph.files[0].bytes = offset;
  return graph;
}

void tie(MetaGraph& graph, const std::string& name, std::uint32_t storage) {
  Tensor twin = graph.tensors[storage];
  twin.name = Name(name);
  graph.tensors.push_back(twin);
}

}  // namespace loadline::testing
