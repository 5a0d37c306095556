// Which type each tensor of a quantized file gets, as data. Read from assets/types/*.json:
//
//   {"policy": "q4_k_m", "about": "...",
//    "file_type": 15,                  general.file_type of the file
//    "type": "q4_k",                   of tensors that no rule names
//    "plain": "q4_0",                  one type for all matrices, for names that the rules do not know;
//                                      without it such a model is refused
//    "weights": ["*weight"],           globs: other tensors keep their type,
//    "keep": ["*_norm.weight*"],       and so do these
//    "kinds": {"attn_v": ["*attn_v.weight*", ...], ...},   the first kind with a glob that matches;
//                                                          else "other"
//    "fallback": {"q4_k": "q5_0"},     for rows that do not divide into blocks; F16 where that does not
//                                      fit either
//    "let": {"eighth": "(n - n % 8) / 8", ...},            evaluated for each tensor where a rule asks
//                                                          for it
//    "rules": {"attn_v": "i < eighth ? 'q6_k' : type"}}    by kind: the name of a type
//
// Expressions see these names:
//   kind, name              of the tensor
//   position, number        of tensors of its kind, from 0 by layer and name; and how many there are
//   layer                   the number behind "blk."; null where there is none
//   columns, depth          the length of its rows; how many matrices it stacks
//   type                    the policy's own type, and fits('q4_k'): whether rows divide into its blocks
//   arch, layers, experts   of the model, and gqa: how many query heads share a key head
//   tied                    whether there is no tensor of the kind "output"
//   imatrix                 whether there is an importance matrix
//
// What the file "common" says holds for every policy that does not say otherwise. Rules follow llama.cpp's
// quantizer (src/llama-quant.cpp), compared with it tensor by tensor in tests/interop/test_type_policies.py.
#pragma once

#include "core/assets/expression.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

struct TypePolicy {
  std::string name = {};
  std::string about = {};
  std::optional<std::uint32_t> file_type = {};
  std::optional<graph::DType> type = {};  // nothing: what policies share, and none itself
  std::optional<graph::DType> plain = {};
  std::vector<std::string> weights = {};
  std::vector<std::string> keep = {};
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds = {};
  std::map<graph::DType, graph::DType> fallback = {};
  std::map<std::string, assets::Expression, std::less<>> let = {};
  std::map<std::string, assets::Expression, std::less<>> rules = {};
};
using TypePolicyPtr = std::shared_ptr<const TypePolicy>;

// Throws Error{malformed | limit} naming `path`, line and column.
TypePolicy parse_type_policy(std::string_view json, const std::string& path);
// As they are in the files.
std::span<const TypePolicy> built_in_type_policies();

// The names of the policies among the files.
std::vector<std::string> type_policy_names(std::span<const TypePolicy> files);
// The policy of that name, completed by the file "common". Throws Error{usage} that lists the names.
TypePolicyPtr find_type_policy(std::span<const TypePolicy> files, std::string_view name);
// What a file without a policy goes by: the file "common".
TypePolicyPtr common_type_policy(std::span<const TypePolicy> files);

// "Q4_K_M": the policy that a GGUF file names as its own (general.file_type), if a tensor has its type. Such
// a file holds several types, of which another may have more bytes. Empty for other models.
std::string quantization_name(const graph::MetaGraph& graph, std::span<const TypePolicy> files);

// What rules ask of the model.
struct PolicyModel {
  std::string architecture = {};
  std::int64_t layers = 0;
  std::int64_t experts = 0;
  std::int64_t gqa = 1;
  bool imatrix = false;
};
struct PolicyTensor {
  std::string_view name;
  std::span<const std::uint64_t> shape;  // the last dimension is the length of rows
};

// Whether a policy may change the type: the name is one of weights, and the tensor has two dimensions
// above 1.
bool may_change(const TypePolicy& policy, const PolicyTensor& tensor);
// Type of each tensor before fitting_type(); nothing for those that keep theirs. Throws Error{malformed} at
// the place of a rule that does not give a type.
std::vector<std::optional<graph::DType>> policy_types(const TypePolicy& policy, const PolicyModel& model,
                                                      std::span<const PolicyTensor> tensors);
// The type itself if rows of that length divide into its blocks, else its fallback.
graph::DType fitting_type(const TypePolicy& policy, graph::DType type, std::uint64_t columns);

}  // namespace loadline::forward
