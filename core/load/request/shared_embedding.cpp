// Finds the weight that a model uses as embedding and as head.
#include "core/load/request/shared_embedding.h"

#include "core/graph/packed/config_text.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {
namespace {

// bert, nomic-bert, modern-bert, ...: llama.cpp gives these no head. An unknown family is taken for a
// decoder.
bool is_bert(const MetaGraph& graph) {
  const std::optional<std::string> family = model_family(graph);
  return family && family->find("bert") != std::string::npos;
}

}  // namespace

std::optional<StorageId> shared_embedding(const MetaGraph& graph) {
  bool head = false;
  std::optional<StorageId> embedding;
  for (const Tensor& tensor : graph.tensors) {
    const std::string_view name = tensor.name.view();
    head = head || phase_of(name) == Phase::head;
    if (!embedding && (name == "token_embd.weight" || name.ends_with("embed_tokens.weight") ||
                       name.ends_with("wte.weight")))
      embedding = tensor.storage;
  }
  if (!head) {
    const bool headless = !embedding || is_bert(graph) || config_flag(graph, "tie_word_embeddings") == false;
    return headless ? std::nullopt : embedding;
  }
  for (const std::vector<TensorId>& group : tied_groups(graph)) {
    const auto any = [&](Phase phase) {
      return std::ranges::any_of(group,
                                 [&](TensorId id) { return phase_of(graph.tensor(id).name) == phase; });
    };
    if (any(Phase::embedding) && any(Phase::head)) return graph.tensor(group.front()).storage;
  }
  return std::nullopt;
}

}  // namespace loadline
