// libFuzzer target for maps between Hugging Face models and GGUF files (assets/gguf): whatever the bytes are,
// reading them, mapping a small checkpoint, and reading the file's keys back give tensors, keys and a
// configuration, or an Error.
#include "core/base/error.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>

#include <fmt/core.h>

namespace {

using namespace loadline;

// Keys of most families, with the smallest numbers that go together.
constexpr std::string_view kConfig = R"json({{"architectures":["{0}"],"model_type":"{1}",
  "hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"intermediate_size":12,
  "head_dim":4,"vocab_size":10,"n_embd":8,"n_layer":2,"n_head":2,"n_positions":2048,"max_trained_positions":2048,"n_inner":12,"n_ctx":16,
  "d_model":8,"num_layers":2,"num_heads":2,"d_kv":4,"d_ff":12,"feed_forward_proj":"gated-gelu",
  "max_position_embeddings":16,"sliding_window":4,"num_local_experts":3,"num_experts":3,"num_experts_per_tok":2,
  "kv_lora_rank":4,"q_lora_rank":4,"qk_nope_head_dim":4,"qk_rope_head_dim":2,"v_head_dim":4,"n_routed_experts":3,
  "n_shared_experts":1,"first_k_dense_replace":1,"moe_intermediate_size":6,"shared_expert_intermediate_size":6,
  "rms_norm_eps":1e-6,"layer_norm_eps":1e-5,"rope_theta":10000,"partial_rotary_factor":0.5,"rotary_pct":0.5,
  "layer_types":["full_attention","sliding_attention"],"rope_scaling":{{"rope_type":"yarn","factor":2.5}},
  "torch_dtype":"bfloat16"}})json";

struct Checkpoint {
  forward::ModelConfig config;
  graph::MetaGraph graph;  // empty if no architecture has this configuration
};

// By the family's first class and type of model.
const Checkpoint& checkpoint_of(const forward::GgufFamily& family) {
  static std::map<std::string, Checkpoint> made;
  const auto first = [](const std::vector<std::string>& names) {
    return names.empty() || names[0].size() > 40 || names[0].find_first_of("\"\\") != std::string::npos
               ? std::string()
               : names[0];
  };
  const std::string text = fmt::format(kConfig, first(family.classes), first(family.model_types));
  constexpr std::size_t kMany = 100;
  if (made.size() > kMany) made.clear();
  const auto known = made.find(text);
  if (known != made.end()) return known->second;
  Checkpoint checkpoint{forward::ModelConfig(text, "config.json"), {}};
  try {
    checkpoint.graph = forward::config_graph(text, "config.json", *forward::built_in_assets());
  } catch (const Error&) {
  }
  return made.emplace(text, std::move(checkpoint)).first->second;
}

// The file that the map describes; of a tensor that is made of several, the shape of the first.
graph::MetaGraph file_of(const forward::GgufMap& map, const graph::MetaGraph& checkpoint) {
  graph::MetaGraph file;
  file.format = "gguf";
  file.metadata.push_back({"general.architecture", map.architecture});
  file.metadata.push_back(
      {"tokenizer.ggml.tokens", graph::MetaArray{.element = graph::MetaType::string, .count = 10}});
  for (const forward::MappedKey& key : map.keys)
    if (key.value.number() != nullptr)
      file.metadata.push_back({key.name, *key.value.number()});
    else if (key.value.real() != nullptr)
      file.metadata.push_back({key.name, *key.value.real()});
    else if (key.value.text() != nullptr)
      file.metadata.push_back({key.name, *key.value.text()});
  for (const forward::MappedTensor& tensor : map.tensors) {
    const forward::NameStep& first = tensor.steps.front();
    const graph::Shape shape = first.kind == forward::NameStepKind::source
                                   ? checkpoint.tensor(first.tensor).shape
                                   : graph::Shape(std::vector<std::uint64_t>{first.values.size()});
    const graph::StorageId storage{static_cast<std::uint32_t>(file.storages.size())};
    file.storages.push_back(
        graph::shapes_only_storage(*graph::byte_size(graph::DType::f32, *graph::element_count(shape))));
    file.tensors.push_back({graph::Name(tensor.name), graph::DType::f32, shape, {}, storage, 0});
  }
  return file;
}

void run(std::string_view text) {
  const forward::GgufFamily family = forward::parse_gguf_family(text, "asset.json");
  const Checkpoint& checkpoint = checkpoint_of(family);
  const graph::MetaGraph file =
      file_of(forward::map_to_gguf(family, checkpoint.config, checkpoint.graph), checkpoint.graph);
  const auto config = forward::gguf_config(file, family);
  if (config) forward::bind_gguf(*config, file, *forward::built_in_assets());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    run(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error&) {
  }
  return 0;
}
