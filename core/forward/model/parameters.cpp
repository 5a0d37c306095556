// Sums the weights of operators, and the tensors that the architecture does not describe.
#include "core/forward/model/parameters.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_set>

namespace loadline {
namespace {

bool is_scale(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".weight_scale_inv", ".weight_scale", "_scales"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// A sum of elements that counts each weight once, at its first name.
class Sum {
 public:
  explicit Sum(const MetaGraph& graph) : graph_(graph) {}

  void add(const BoundWeight& weight) {
    if (is_scale(weight.name)) return;
    if (weight.tensor ? !first_at(*weight.tensor) : !names_.insert(weight.name).second) return;
    const bool packed = weight.dtype == DType::u8 && weight.name.ends_with("_blocks");
    add(element_count(weight.shape).value_or(0));
    if (packed) add(element_count(weight.shape).value_or(0));
  }
  void add(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    if (!is_scale(tensor.name) && first_at(id)) add(elements(tensor));
  }
  std::uint64_t value() const { return sum_; }

 private:
  void add(std::uint64_t count) { sum_ = checked_add(sum_, count).value_or(UINT64_MAX); }
  bool first_at(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    return places_.emplace(index(tensor.storage), tensor.offset).second;
  }

  const MetaGraph& graph_;
  std::set<std::pair<std::size_t, std::uint64_t>> places_;
  std::unordered_set<std::string_view> names_;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t parameters(const BoundModel& model, const MetaGraph& graph) {
  Sum sum(graph);
  for (const BoundOp& op : model.ops)
    for (const BoundWeight& weight : op.weights) sum.add(weight);
  for (const TensorId id : model.claims.ignored) sum.add(id);
  for (const TensorId id : model.claims.unclaimed) sum.add(id);
  return sum.value();
}

}  // namespace loadline
