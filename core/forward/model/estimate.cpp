// The usual names of weights tell how wide the widest linear layer is.
#include "core/assets/expression.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/forward_model.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace loadline::forward {
namespace {

// Whether a part of the name says that not every row passes through this weight.
bool sees_some_rows(std::string_view name) {
  constexpr std::array<std::string_view, 9> kParts = {"embed",  "embd",  "wte",     "wpe",  "lm_head",
                                                      "pooler", "score", "classif", "logit"};
  const auto within = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  // "experts.3.up_proj" is one of many experts; "shared_experts.up_proj" sees every row
  for (std::size_t at = name.find("expert"); at != std::string_view::npos; at = name.find("expert", at + 1)) {
    const std::size_t dot = name.find('.', at);
    const char next = dot == std::string_view::npos || dot + 1 == name.size() ? ' ' : name[dot + 1];
    if (next >= '0' && next <= '9') return true;
  }
  return std::ranges::any_of(kParts, within);
}

// Bytes of one element of a layer's output: from the configuration, else the weight's. Quantized weights give
// 16-bit outputs.
std::uint64_t output_bytes(const std::optional<graph::DType>& configured, graph::DType weight) {
  const graph::DTypeInfo& info = graph::dtype_info(configured.value_or(weight));
  return info.kind == graph::DTypeKind::floating && info.block_elements == 1 ? std::max(info.block_bytes, 2u)
                                                                             : 2;
}

}  // namespace

std::optional<std::uint64_t> activation_bound_per_token(const graph::MetaGraph& graph,
                                                        const ModelConfig& config) {
  constexpr std::uint64_t kMostWidth = std::uint64_t{1} << 32;  // no layer is wider
  const auto vocabulary = config.first_count({"vocab_size", "n_vocab", "padded_vocab_size"});
  const std::optional<graph::DType> configured =
      graph::dtype_from(&graph::DTypeInfo::torch, config.dtype_name(""));
  std::optional<std::uint64_t> widest;
  for (const graph::Tensor& tensor : graph.tensors) {
    const std::string_view name = tensor.name.view();
    const graph::DTypeKind kind = graph::dtype_info(tensor.dtype).kind;
    // the shapes of other packed weights do not give the width
    if (kind != graph::DTypeKind::floating && kind != graph::DTypeKind::block) continue;
    if (tensor.shape.size() != 2 || !name.ends_with(".weight") || sees_some_rows(name)) continue;
    const std::uint64_t output = tensor.shape[0];  // or the width of the input, which is alive as well
    if (output == 0 || output > kMostWidth || tensor.shape[1] == 0) continue;
    if (vocabulary && (output == *vocabulary || tensor.shape[1] == *vocabulary)) continue;
    widest = std::max(widest.value_or(0), output * output_bytes(configured, tensor.dtype));
  }
  return widest;
}

}  // namespace loadline::forward
