// Which weights of two models have which type, and what that costs.
#pragma once

#include "core/inspect/model_differences.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// Weights whose names differ only in numbers, and whose types are the same in each model.
struct TypeGroup {
  std::string pattern;  // numbers are "N": "blk.N.ffn_down.weight"
  std::string a, b;     // weight_type()
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes_a = 0, bytes_b = 0;
  std::vector<std::uint64_t> layers;  // the first number in each name, without repeats, in increasing order
  bool all_layers = true;             // no other group has the same pattern
};

// Pairs of equal shape, in the order of their first weight in A.
std::vector<TypeGroup> type_groups(const MetaGraph& a, const MetaGraph& b, const Matching& match);

// "0-3, 8, 10"
std::string ranges_text(const std::vector<std::uint64_t>& numbers);

// Tensors of one model that are one range of bytes there, and that are not so in the other model: names, in
// groups. `other` may lack some of them; then it stores the weight once.
std::vector<std::vector<std::string>> ties_missing(const MetaGraph& graph, const MetaGraph& other);

}  // namespace loadline
