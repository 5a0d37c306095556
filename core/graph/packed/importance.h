// How much the columns of a model's weights matter, as measured on text: an importance matrix of llama.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The mean square of what each column of a weight was multiplied with. Finite and not negative.
struct TensorImportance {
  std::string name;            // of the weight, in GGUF's names: "blk.0.attn_q.weight"
  std::vector<float> weights;  // one for each column, expert after expert where there are several
  bool operator==(const TensorImportance&) const = default;
};

struct ImportanceMatrix {
  std::vector<TensorImportance> tensors;  // sorted by name, each name once
  std::vector<std::string> datasets;      // the texts that were measured
  std::uint64_t chunks = 0;               // parts of them; 0 where the file does not say
  bool operator==(const ImportanceMatrix&) const = default;
};

// The weights of the columns of one expert of a tensor; expert 0 of 1 where it has none. Empty if the matrix
// does not list the tensor. Throws Error{malformed} naming the tensor if it lists another number of columns.
std::span<const float> column_importance(const ImportanceMatrix& matrix, std::string_view tensor,
                                         std::uint64_t columns, std::uint64_t expert, std::uint64_t experts);

}  // namespace loadline
