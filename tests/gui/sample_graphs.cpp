// Graphs built in code; every one passes validate().
#include "tests/gui/sample_graphs.h"

#include "core/forward/families.h"
#include "core/forward/presets.h"
#include "core/graph/validate.h"

#include <array>
#include <string>

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

}  // namespace loadline::gui
