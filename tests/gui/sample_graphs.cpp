// Graphs built in code; every one passes validate().
#include "tests/gui/sample_graphs.h"

#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"

#include <array>
#include <string>
#include <utility>

namespace loadline::gui {
namespace {

graph::StorageId add_storage(graph::MetaGraph& graph, std::uint32_t file, std::uint64_t bytes) {
  graph.storages.push_back(graph::plain_storage(graph::FileId{file}, graph.files[file].bytes, bytes));
  graph.files[file].bytes += bytes;
  return graph::StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)};
}

graph::MetaGraphPtr finished(graph::MetaGraph graph) {
  graph::validate(graph);
  return std::make_shared<const graph::MetaGraph>(std::move(graph));
}

graph::MetaGraph tiny() {
  graph::MetaGraph graph;
  graph.format = "safetensors";
  graph.files.push_back({"tiny/model.safetensors", 0});
  const graph::StorageId embedding = add_storage(graph, 0, 4096);
  const graph::StorageId odd = add_storage(graph, 0, 64);
  graph.tensors = {{"model.embed_tokens.weight", graph::DType::f32, {32, 32}, {}, embedding, 0},
                   {"model.layers.0.\x1b[31mred\xff", graph::DType::bf16, {32}, {}, odd, 0},
                   {"lm_head.weight", graph::DType::f32, {32, 32}, {}, embedding, 0}};
  graph.metadata = {{std::string(graph::kConfigKey), std::string("{\n  \"model_type\": \"tiny\"\n}")},
                    {"layers", std::uint64_t{1}}};
  return graph;
}

}  // namespace

graph::MetaGraphPtr tiny_graph() { return finished(tiny()); }

graph::MetaGraphPtr unsound_graph() {
  graph::MetaGraph graph = tiny();
  graph.missing = {"gone.weight"};
  graph.notes = {{graph::Severity::info, {}, "other files are there too"},
                 {graph::Severity::warning, "lm_head.weight", "looks odd"},
                 {graph::Severity::error, {}, std::string(400, 'x') + " shard 2 is missing"}};
  return finished(std::move(graph));
}

graph::MetaGraphPtr talkative_graph() {
  graph::MetaGraph graph = tiny();
  for (int i = 0; i < 60'000; ++i)
    graph.notes.push_back({graph::Severity::warning, "lm_head.weight", "odd " + std::to_string(i)});
  for (int i = 0; i < 5'000; ++i)
    graph.metadata.push_back({"key " + std::to_string(i), std::string(i % 10 == 0 ? 20'000 : 20, 'x')});
  return finished(std::move(graph));
}

graph::MetaGraphPtr llama_70b_graph() {
  constexpr std::uint64_t kShard = 5'000'000'000;
  graph::MetaGraph graph =
      forward::config_graph(forward::find_preset("llama-3.1-70b")->config_json, "config.json");
  graph.format = "safetensors";
  graph.files.clear();
  for (graph::Storage& storage : graph.storages) {
    if (graph.files.empty() || graph.files.back().bytes + storage.bytes > kShard)
      graph.files.push_back({"llama/model-" + std::to_string(graph.files.size() + 1) + ".safetensors", 0});
    storage.file = graph::FileId{static_cast<std::uint32_t>(graph.files.size() - 1)};
    storage.offset = graph.files.back().bytes;
    graph.files.back().bytes += storage.bytes;
  }
  return finished(std::move(graph));
}

graph::MetaGraphPtr many_tensors(std::size_t count) {
  constexpr std::array<graph::DType, 5> kTypes = {graph::DType::bf16, graph::DType::f32, graph::DType::i8,
                                                  graph::DType::f8_e4m3, graph::DType::f16};
  constexpr std::array<const char*, 5> kModules = {"attn.q_proj", "mlp.experts", "norm", "odd",
                                                   "mlp.up_proj"};
  graph::MetaGraph graph;
  graph.format = "safetensors";
  for (int file = 0; file < 12; ++file)
    graph.files.push_back({"many/model-" + std::to_string(file) + ".safetensors", 0});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = i % kTypes.size();
    const std::uint64_t side = 1 + i * 7919 % 64;
    const std::string name = "model.layers." + std::to_string(i / 600) + "." + kModules[kind] + "." +
                             std::to_string(i) + ".weight";
    const std::uint64_t bytes = *graph::byte_size(kTypes[kind], side * 16);
    const graph::StorageId storage = add_storage(graph, static_cast<std::uint32_t>(i * 12 / count), bytes);
    graph.tensors.push_back({name, kTypes[kind], {side, 16}, {}, storage, 0});
  }
  return finished(std::move(graph));
}

graph::MetaGraphPtr shapes_graph() {
  return finished(forward::config_graph(forward::find_preset("llama-3.2-1b")->config_json, "config.json"));
}

graph::MetaGraphPtr encoded_graph() {
  graph::MetaGraph graph = tiny();
  graph.format = "torch";
  const auto encoded = [&](graph::Encoding encoding, std::uint8_t unit, std::uint64_t bytes) {
    const graph::StorageId id = add_storage(graph, 0, bytes);
    graph.storages[graph::index(id)].encoding = encoding;
    graph.storages[graph::index(id)].unit = unit;
    return id;
  };
  const graph::StorageId plain = add_storage(graph, 0, 1 << 20);
  graph.tensors.push_back({"view", graph::DType::f32, {256, 512}, {1, 256}, plain, 0});
  graph.tensors.push_back({"part", graph::DType::f32, {16}, {}, plain, 4096});
  graph.tensors.push_back(
      {"packed", graph::DType::f32, {16}, {}, encoded(graph::Encoding::deflate, 1, 64), 0});
  graph.tensors.push_back(
      {"swapped", graph::DType::f32, {16}, {}, encoded(graph::Encoding::byte_swapped, 4, 64), 0});
  graph.tensors.push_back(
      {"lost", graph::DType::u8, {64}, {}, encoded(graph::Encoding::unreadable, 1, 64), 0});
  return finished(std::move(graph));
}

graph::MetaGraphPtr operator_graph(std::size_t layers) {
  graph::MetaGraph graph = tiny();
  graph.format = "onnx";
  graph::ForwardGraph forward;
  const auto poly = [](std::int64_t size) { return graph::SizePoly(size); };
  const auto value = [&](std::string name, std::optional<std::vector<graph::SizePoly>> shape) {
    forward.values.push_back({std::move(name), graph::DType::f32, std::move(shape)});
    return graph::ValueId{static_cast<std::uint32_t>(forward.values.size() - 1)};
  };
  const graph::SizePoly batch = graph::SizePoly::symbol(graph::kBatch);
  const graph::SizePoly sequence = graph::SizePoly::symbol(graph::kSequence);
  graph::ValueId hidden = value("tokens", std::vector<graph::SizePoly>{batch, sequence});
  forward.inputs = {hidden};
  const auto op = [&](std::string kind, std::vector<graph::ValueId> inputs,
                      std::vector<graph::TensorId> weights, std::vector<graph::ValueId> outputs) {
    const std::string name = kind + " " + std::to_string(forward.ops.size());
    forward.ops.push_back({std::move(kind), name, std::move(inputs), std::move(weights), std::move(outputs)});
  };
  const graph::ValueId embedded = value("embedded", std::vector<graph::SizePoly>{batch, sequence, poly(32)});
  op("Gather", {hidden}, {graph::TensorId{0}}, {embedded});
  hidden = embedded;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    const graph::ValueId product =
        value(layer + ".product", std::vector<graph::SizePoly>{batch, sequence, poly(32)});
    op("MatMul", {hidden}, {graph::TensorId{0}, graph::TensorId{1}, graph::TensorId{2}}, {product});
    const graph::ValueId odd = value(layer + ".\x1b[31m\xff", std::nullopt);
    op("com.example.Odd", {product, hidden}, {}, {odd});
    const graph::ValueId left =
        value(layer + ".left", std::vector<graph::SizePoly>{batch, sequence, poly(16)});
    const graph::ValueId right =
        value(layer + ".right", std::vector<graph::SizePoly>{batch, sequence, poly(16)});
    op("Split", {product, odd}, {}, {left, right});
    const graph::ValueId sum = value(layer + ".sum", std::vector<graph::SizePoly>{batch, sequence, poly(32)});
    op("Concat", {left, right}, {}, {sum});
    hidden = sum;
  }
  forward.outputs = {hidden};
  graph.forward = std::move(forward);
  return finished(std::move(graph));
}

graph::MetaGraphPtr annotated_graph(std::size_t entries) {
  graph::MetaGraph graph = tiny();
  graph.metadata.push_back({"one line", std::string(R"({"a": [1, 2, {"b": "x, \"y\": {"}], "c": {}})")});
  graph.metadata.push_back({"long", std::string(200'000, 'x')});
  graph.metadata.push_back({"odd \x1b[31m", std::string("\x1b[31m red\r\n\xff\n")});
  graph.metadata.push_back({"empty", std::string()});
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string key = "key " + std::to_string(i);
    if (i % 3 == 0) graph.metadata.push_back({key, std::uint64_t{i}});
    if (i % 3 == 1) graph.metadata.push_back({key, static_cast<double>(i) / 3});
    if (i % 3 == 2) graph.metadata.push_back({key, "text " + std::to_string(i)});
  }
  return finished(std::move(graph));
}

graph::MetaGraphPtr preset_graph(const char* id) {
  return std::make_shared<const graph::MetaGraph>(
      forward::config_graph(forward::find_preset(id)->config_json, "config.json"));
}

graph::MetaGraphPtr lacking_graph() {
  graph::MetaGraph graph = *llama_70b_graph();
  std::erase_if(graph.tensors,
                [](const graph::Tensor& tensor) { return tensor.name == "model.norm.weight"; });
  return finished(std::move(graph));
}

graph::MetaGraphPtr unread_setting_graph() {
  std::string json(forward::find_preset("llama-3.2-1b")->config_json);
  json.insert(json.find('{') + 1, "\"nobody_reads_this\": 7,");
  return finished(forward::config_graph(json, "config.json"));
}

graph::MetaGraphPtr unknown_family_graph() {
  graph::MetaGraph graph = *tiny_graph();
  graph.metadata.push_back(
      {std::string(graph::kConfigKey),
       std::string(R"({"model_type": "nobody_knows", "architectures": ["NobodyKnowsForCausalLM"],
                       "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4})")});
  return std::make_shared<const graph::MetaGraph>(std::move(graph));
}

ConvertTask conversion(std::string to, std::string out, const exporters::WriteOptions& write) {
  ConvertTask task;
  task.request.to = std::move(to);
  task.request.write = write;
  task.out = std::move(out);
  return task;
}

}  // namespace loadline::gui
