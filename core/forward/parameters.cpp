// A sum over the weights of operators.
#include "core/forward/parameters.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

namespace loadline {
namespace {

bool is_scale(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".weight_scale_inv", ".weight_scale", "_scales"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

std::uint64_t parameters(const BoundModel& model) {
  std::uint64_t sum = 0;
  std::unordered_set<std::string_view> counted;
  for (const BoundOp& op : model.ops)
    for (const BoundWeight& weight : op.weights) {
      if (is_scale(weight.name) || !counted.insert(weight.name).second) continue;
      const bool packed = weight.dtype == DType::u8 && weight.name.ends_with("_blocks");
      sum += element_count(weight.shape).value_or(0) * (packed ? 2 : 1);
    }
  return sum;
}

}  // namespace loadline
