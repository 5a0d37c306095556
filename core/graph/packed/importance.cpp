// Looks weights up by the tensor's name.
#include "core/graph/packed/importance.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"

#include <algorithm>
#include <cassert>

namespace loadline {

std::span<const float> column_importance(const ImportanceMatrix& matrix, std::string_view tensor,
                                         std::uint64_t columns, std::uint64_t expert, std::uint64_t experts) {
  assert(expert < experts);
  const auto found = std::ranges::lower_bound(matrix.tensors, tensor, {}, &TensorImportance::name);
  if (found == matrix.tensors.end() || found->name != tensor) return {};
  const std::span<const float> weights = found->weights;
  if (checked_mul(columns, experts) != weights.size())
    throw Error(ErrorCode::malformed, {.tensor = std::string(tensor)},
                "has {} columns in {} experts, the importance matrix has {} weights", columns, experts,
                weights.size());
  return weights.subspan(static_cast<std::size_t>(expert * columns), static_cast<std::size_t>(columns));
}

}  // namespace loadline
