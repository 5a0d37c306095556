// Graphs built in code; every one passes validate().
#include "tests/gui/sample_graphs.h"

#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"

#include <array>
#include <string>
#include <utility>

namespace loadline::gui {
namespace {

StorageId add_storage(MetaGraph& graph, std::uint32_t file, std::uint64_t bytes) {
  graph.storages.push_back(plain_storage(FileId{file}, graph.files[file].bytes, bytes));
  graph.files[file].bytes += bytes;
  return StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)};
}

MetaGraphPtr finished(MetaGraph graph) {
  validate(graph);
  return std::make_shared<const MetaGraph>(std::move(graph));
}

MetaGraph tiny() {
  MetaGraph graph;
  graph.format = "safetensors";
  graph.files.push_back({"tiny/model.safetensors", 0});
  const StorageId embedding = add_storage(graph, 0, 4096);
  const StorageId odd = add_storage(graph, 0, 64);
  graph.tensors = {{"model.embed_tokens.weight", DType::f32, {32, 32}, {}, embedding, 0},
                   {"model.layers.0.\x1b[31mred\xff", DType::bf16, {32}, {}, odd, 0},
                   {"lm_head.weight", DType::f32, {32, 32}, {}, embedding, 0}};
  graph.metadata = {{std::string(kConfigKey), std::string("{\n  \"model_type\": \"tiny\"\n}")},
                    {"layers", std::uint64_t{1}}};
  return graph;
}

}  // namespace

MetaGraphPtr tiny_graph() { return finished(tiny()); }

MetaGraphPtr unsound_graph() {
  MetaGraph graph = tiny();
  graph.missing = {"gone.weight"};
  graph.notes = {{Severity::info, {}, "other files are there too"},
                 {Severity::warning, "lm_head.weight", "looks odd"},
                 {Severity::error, {}, std::string(400, 'x') + " shard 2 is missing"}};
  return finished(std::move(graph));
}

MetaGraphPtr talkative_graph() {
  MetaGraph graph = tiny();
  for (int i = 0; i < 60'000; ++i)
    graph.notes.push_back({Severity::warning, "lm_head.weight", "odd " + std::to_string(i)});
  for (int i = 0; i < 5'000; ++i)
    graph.metadata.push_back({"key " + std::to_string(i), std::string(i % 10 == 0 ? 20'000 : 20, 'x')});
  return finished(std::move(graph));
}

MetaGraphPtr llama_70b_graph() {
  constexpr std::uint64_t kShard = 5'000'000'000;
  MetaGraph graph = config_graph(find_preset("llama-3.1-70b")->config_json, "config.json");
  graph.format = "safetensors";
  graph.files.clear();
  for (Storage& storage : graph.storages) {
    if (graph.files.empty() || graph.files.back().bytes + storage.bytes > kShard)
      graph.files.push_back({"llama/model-" + std::to_string(graph.files.size() + 1) + ".safetensors", 0});
    storage.file = FileId{static_cast<std::uint32_t>(graph.files.size() - 1)};
    storage.offset = graph.files.back().bytes;
    graph.files.back().bytes += storage.bytes;
  }
  return finished(std::move(graph));
}

MetaGraphPtr many_tensors(std::size_t count) {
  constexpr std::array<DType, 5> kTypes = {DType::bf16, DType::f32, DType::i8, DType::f8_e4m3, DType::f16};
  constexpr std::array<const char*, 5> kModules = {"attn.q_proj", "mlp.experts", "norm", "odd",
                                                   "mlp.up_proj"};
  MetaGraph graph;
  graph.format = "safetensors";
  for (int file = 0; file < 12; ++file)
    graph.files.push_back({"many/model-" + std::to_string(file) + ".safetensors", 0});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = i % kTypes.size();
    const std::uint64_t side = 1 + i * 7919 % 64;
    const std::string name = "model.layers." + std::to_string(i / 600) + "." + kModules[kind] + "." +
                             std::to_string(i) + ".weight";
    const std::uint64_t bytes = *byte_size(kTypes[kind], side * 16);
    const StorageId storage = add_storage(graph, static_cast<std::uint32_t>(i * 12 / count), bytes);
    graph.tensors.push_back({name, kTypes[kind], {side, 16}, {}, storage, 0});
  }
  return finished(std::move(graph));
}

MetaGraphPtr shapes_graph() {
  return finished(config_graph(find_preset("llama-3.2-1b")->config_json, "config.json"));
}

MetaGraphPtr encoded_graph() {
  MetaGraph graph = tiny();
  graph.format = "torch";
  const auto encoded = [&](Encoding encoding, std::uint8_t unit, std::uint64_t bytes) {
    const StorageId id = add_storage(graph, 0, bytes);
    graph.storages[index(id)].encoding = encoding;
    graph.storages[index(id)].unit = unit;
    return id;
  };
  const StorageId plain = add_storage(graph, 0, 1 << 20);
  graph.tensors.push_back({"view", DType::f32, {256, 512}, {1, 256}, plain, 0});
  graph.tensors.push_back({"part", DType::f32, {16}, {}, plain, 4096});
  graph.tensors.push_back({"packed", DType::f32, {16}, {}, encoded(Encoding::deflate, 1, 64), 0});
  graph.tensors.push_back({"swapped", DType::f32, {16}, {}, encoded(Encoding::byte_swapped, 4, 64), 0});
  graph.tensors.push_back({"lost", DType::u8, {64}, {}, encoded(Encoding::unreadable, 1, 64), 0});
  return finished(std::move(graph));
}

MetaGraphPtr operator_graph(std::size_t layers) {
  MetaGraph graph = tiny();
  graph.format = "onnx";
  ForwardGraph forward;
  const auto poly = [](std::int64_t size) { return SizePoly(size); };
  const auto value = [&](std::string name, std::optional<std::vector<SizePoly>> shape) {
    forward.values.push_back({std::move(name), DType::f32, std::move(shape)});
    return ValueId{static_cast<std::uint32_t>(forward.values.size() - 1)};
  };
  const SizePoly batch = SizePoly::symbol(kBatch);
  const SizePoly sequence = SizePoly::symbol(kSequence);
  ValueId hidden = value("tokens", std::vector<SizePoly>{batch, sequence});
  forward.inputs = {hidden};
  const auto op = [&](std::string kind, std::vector<ValueId> inputs, std::vector<TensorId> weights,
                      std::vector<ValueId> outputs) {
    const std::string name = kind + " " + std::to_string(forward.ops.size());
    forward.ops.push_back({std::move(kind), name, std::move(inputs), std::move(weights), std::move(outputs)});
  };
  const ValueId embedded = value("embedded", std::vector<SizePoly>{batch, sequence, poly(32)});
  op("Gather", {hidden}, {TensorId{0}}, {embedded});
  hidden = embedded;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    const ValueId product = value(layer + ".product", std::vector<SizePoly>{batch, sequence, poly(32)});
    op("MatMul", {hidden}, {TensorId{0}, TensorId{1}, TensorId{2}}, {product});
    const ValueId odd = value(layer + ".\x1b[31m\xff", std::nullopt);
    op("com.example.Odd", {product, hidden}, {}, {odd});
    const ValueId left = value(layer + ".left", std::vector<SizePoly>{batch, sequence, poly(16)});
    const ValueId right = value(layer + ".right", std::vector<SizePoly>{batch, sequence, poly(16)});
    op("Split", {product, odd}, {}, {left, right});
    const ValueId sum = value(layer + ".sum", std::vector<SizePoly>{batch, sequence, poly(32)});
    op("Concat", {left, right}, {}, {sum});
    hidden = sum;
  }
  forward.outputs = {hidden};
  graph.forward = std::move(forward);
  return finished(std::move(graph));
}

MetaGraphPtr annotated_graph(std::size_t entries) {
  MetaGraph graph = tiny();
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

MetaGraphPtr preset_graph(const char* id) {
  return std::make_shared<const MetaGraph>(config_graph(find_preset(id)->config_json, "config.json"));
}

MetaGraphPtr unknown_family_graph() {
  MetaGraph graph = *tiny_graph();
  graph.metadata.push_back(
      {std::string(kConfigKey),
       std::string(R"({"model_type": "nobody_knows", "architectures": ["NobodyKnowsForCausalLM"],
                       "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4})")});
  return std::make_shared<const MetaGraph>(std::move(graph));
}

ConvertTask conversion(std::string to, std::string out, const WriteOptions& write) {
  ConvertTask task;
  task.request.to = std::move(to);
  task.request.write = write;
  task.out = std::move(out);
  return task;
}

}  // namespace loadline::gui
