// libFuzzer target for assets (LOADLINE_ASSET: "architecture" or "profile"): whatever the bytes are, reading
// them and running them over a small configuration gives operators that can be lowered and measured, or an
// Error.
#include "core/base/error.h"
#include "core/forward/family/architecture.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace loadline;

// Keys of most families, with the smallest numbers that go together.
constexpr std::string_view kConfig = R"json({"architectures":["LlamaForCausalLM"],"model_type":"llama",
  "hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"intermediate_size":12,
  "vocab_size":10,"n_embd":8,"n_layer":2,"n_head":2,"d_model":8,"num_layers":2,"num_heads":2,"d_kv":4,"d_ff":12,
  "max_position_embeddings":16,"sliding_window":4,"num_local_experts":3,"num_experts_per_tok":2,
  "kv_lora_rank":4,"q_lora_rank":4,"qk_nope_head_dim":4,"qk_rope_head_dim":2,"v_head_dim":4,"n_routed_experts":3,
  "moe_intermediate_size":6,"ffn_dim":12,"layer_types":["full_attention","sliding_attention"],
  "id2label":{"0":"a","1":"b"},"key":"{has(key)}","rope_scaling":{"factor":2.5},"torch_dtype":"bfloat16"})json";

const forward::ModelConfig& config() {
  static const forward::ModelConfig parsed(kConfig, "config.json");
  return parsed;
}

void measure(const forward::BoundModel& model, const forward::Profile& profile, graph::MetaGraph& graph) {
  graph.forward = forward::lower(model, profile);
  graph::validate(graph);
  const graph::ForwardGraph& forward = *graph.forward;
  const std::vector<forward::OpRange> lives = forward::lifetimes(forward);
  const auto sizes = forward::value_sizes(forward, graph::symbol_values(forward, 2, 5, 3));
  const forward::ForwardPeak peak =
      forward::forward_peak(forward, forward::forward_usage(forward, lives, sizes), sizes);
  if (allocators::reserved_bytes(forward::allocations_of(forward, lives, sizes),
                                 allocators::AllocatorModel::exact) < peak.bytes)
    std::abort();
  for (const allocators::AllocatorModel allocator :
       {allocators::AllocatorModel::ggml, allocators::AllocatorModel::onnxruntime,
        allocators::AllocatorModel::torch})
    allocators::reserved_bytes(forward::allocations_of(forward, lives, sizes), allocator);
}

// The tensors that a file would hold.
graph::MetaGraph file_of(const forward::BoundModel& model) {
  graph::MetaGraph graph;
  for (const forward::BoundWeight& weight : model.asked) {
    const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(
        graph::shapes_only_storage(*graph::byte_size(weight.dtype, *graph::element_count(weight.shape))));
    graph.tensors.push_back({graph::Name(weight.name), weight.dtype, weight.shape, {}, storage, 0});
  }
  return graph;
}

[[maybe_unused]] void run_architecture(std::string_view text) {
  const forward::Architecture architecture = forward::parse_architecture(text, "asset.json");
  const forward::BoundModel alone = forward::bind_architecture(architecture, config(), nullptr);
  graph::MetaGraph graph = file_of(alone);
  graph::validate(graph);
  constexpr std::size_t kMany = 500;  // one profile is slow enough then
  for (const char* id : {"hf_eager", "fused", "ggml"}) {
    if (alone.ops.size() > kMany && std::string_view(id) != "hf_eager") break;
    const forward::Profile& profile = forward::built_in_assets()->profile(id);
    const forward::BoundModel model =
        forward::bind_architecture(architecture, config(), &graph, profile.flags);
    forward::parameters(model, graph);
    measure(model, profile, graph);
    graph.forward.reset();
  }
}

// Operators as an ONNX file lists them.
graph::ForwardGraph listed() {
  graph::ForwardGraph graph;
  const auto value = [&](std::vector<graph::SizePoly> shape) {
    graph.values.push_back({.name = "v", .dtype = graph::DType::f32, .shape = std::move(shape)});
    return graph::ValueId{static_cast<std::uint32_t>(graph.values.size() - 1)};
  };
  const auto op = [&](const char* kind, std::vector<graph::ValueId> inputs) {
    const graph::ValueId out = value({graph::SizePoly::symbol(graph::kSequence), graph::SizePoly(8)});
    graph.ops.push_back(
        {.kind = kind, .name = "op", .inputs = std::move(inputs), .weights = {}, .outputs = {out}});
    return out;
  };
  graph.inputs = {value({graph::SizePoly::symbol(graph::kSequence), graph::SizePoly(8)})};
  graph::ValueId last = graph.inputs[0];
  const graph::ValueId constant = op("Constant", {});
  for (const char* kind : {"Reshape", "Softmax", "Cast", "Relu", "Reshape", "Conv", "Softmax"})
    last = op(kind, {last});
  last = op("Where", {last, constant, op("Identity", {graph.inputs[0]})});
  graph::Body body;  // of a loop: what is listed there once more, on an input of its own
  body.inputs = {value({graph::SizePoly::symbol(graph::kBatch), graph::SizePoly(8)})};
  const std::size_t first = graph.ops.size();
  for (const char* kind : {"Reshape", "Softmax", "Where"}) body.outputs = {op(kind, {last, body.inputs[0]})};
  body.ops.assign(graph.ops.begin() + static_cast<std::ptrdiff_t>(first), graph.ops.end());
  graph.ops.resize(first);
  graph.bodies.push_back(std::move(body));
  last = op("Loop", {last});
  graph.ops.back().bodies = {0};
  graph.outputs = {last};
  return graph;
}

[[maybe_unused]] void run_profile(std::string_view text) {
  const forward::Profile profile = forward::parse_profile(text, "profile.json");
  if (!profile.format.empty()) {
    graph::MetaGraph file;
    file.format = profile.format;
    file.forward = listed();
    const forward::ForwardModel model = forward::forward_model(file, *forward::built_in_assets(), profile);
    file.forward = model.graph;
    graph::validate(file);
    forward::forward_figures(model, 2, 5, 3);
    return;
  }
  const forward::Architecture& architecture = *forward::built_in_assets()->architecture(config());
  const forward::BoundModel alone =
      forward::bind_architecture(architecture, config(), nullptr, profile.flags);
  graph::MetaGraph graph = file_of(alone);
  measure(forward::bind_architecture(architecture, config(), &graph, profile.flags), profile, graph);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if constexpr (std::string_view(LOADLINE_ASSET) == "architecture")
      run_architecture(text);
    else
      run_profile(text);
  } catch (const Error&) {
  }
  return 0;
}
