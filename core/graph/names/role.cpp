// The words by which names tell.
#include "core/graph/names/role.h"

#include "core/base/text.h"
#include "core/graph/names/module_tree.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

namespace loadline {
namespace {

// `low` is in lower case.
bool has_any(std::string_view low, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return low.find(part) != std::string_view::npos; });
}

}  // namespace

std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, kRoleCount> kNames = {"embedding", "attention", "mlp",
                                                               "norm",      "head",      "other"};
  return kNames[static_cast<std::size_t>(role)];
}

Role tensor_role(std::string_view name) {
  const std::string low = lower_case(name);
  // "attention.norm" and "embeddings.LayerNorm" are norms: the most specific part is tested first
  if (has_any(low, {"norm", "ln_", ".ln", "layer_norm"})) return Role::norm;
  if (has_any(low, {"lm_head", "out_head", "output.weight", "classifier", "pooler", "score.weight"}) &&
      !layer_number(name))
    return Role::head;
  if (has_any(low, {"attn", "attention", ".att.", "q_proj", "k_proj", "v_proj", "o_proj"}))
    return Role::attention;
  if (has_any(low, {"mlp", "ffn", "feed_forward", ".ff.", "gate_proj", "up_proj", "down_proj", "expert",
                    "intermediate", "output.dense"}))
    return Role::mlp;
  if (has_any(low, {"embed", "embd", "wte", "wpe", "tok_emb"})) return Role::embedding;
  return Role::other;
}

}  // namespace loadline
