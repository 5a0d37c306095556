// Turns the groups of a graph's tensors into packed weights; notes on those that only look like one.
#include "core/base/text.h"
#include "core/graph/packed/quantization.h"
#include "core/graph/packed/stored_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::graph {
namespace {

using packed::Fitted;
using packed::Group;
using packed::LayoutFit;
using packed::Slot;

class Finder {
 public:
  Finder(const MetaGraph& graph, const ReadSmallTensor& read) : graph_(graph), read_(read) {}

  LogicalTensors find() {
    const auto groups = packed::stored_parts(graph_);
    if (groups.empty()) return {};
    config_ = read_quantization_config(graph_);
    found_.tensors.reserve(groups.size());
    for (const auto& [base, group] : groups) fit(base, group);
    // companions mostly lie in the order of their codes
    if (!std::ranges::is_sorted(found_.tensors, {}, &LogicalTensor::codes))
      std::ranges::sort(found_.tensors, {}, &LogicalTensor::codes);
    std::ranges::sort(found_.notes, {}, [](const Note& note) { return note.tensor; });
    return std::move(found_);
  }

 private:
  void fit(std::string_view base, const Group& group) {
    std::optional<LayoutFit> layout = packed::fit_layout(graph_, config_, read_, base, group);
    if (!layout) return;
    const auto count = layout->fitted ? element_count(layout->fitted->shape) : std::nullopt;
    if (!count || *count >> 62 != 0)
      return found_.notes.push_back(make_note(
          Severity::warning, graph_.tensor(group.id(layout->codes)).name.str(),
          "looks like {}, but its {}: shown as stored", packing_name(layout->packing), parts_text(group)));
    found_.tensors.push_back(make(base, group, *layout, std::move(*layout->fitted)));
  }

  LogicalTensor make(std::string_view base, const Group& group, const LayoutFit& layout,
                     Fitted fitted) const {
    LogicalTensor weight;
    const Tensor& codes = graph_.tensor(group.id(layout.codes));
    if (layout.codes == Slot::weight)
      weight.name = codes.name;
    else
      weight.name = layout.codes == Slot::blocks ? Name(base) : Name(std::string(base) + ".weight");
    weight.packing = layout.packing;
    if (layout.packing == WeightPacking::gptq && config_.checkpoint_format == "gptq_v2")
      weight.packing = WeightPacking::gptq_v2;
    weight.shape = std::move(fitted.shape);
    weight.bits = fitted.bits;
    weight.block = std::move(fitted.block);
    weight.codes = group.id(layout.codes);
    weight.state = std::move(fitted.state);
    weight.dtype = fitted.dtype ? *fitted.dtype : config_.dtype.value_or(DType::f32);
    for (std::size_t i = 0; i < packed::kSlots; ++i) {
      const Slot slot = static_cast<Slot>(i);
      if (!group.has(slot)) continue;
      if (const auto kind = packed::companion_of(slot); kind && !weight.companion(*kind))
        weight.companions.push_back({*kind, group.id(slot)});
    }
    std::ranges::sort(weight.companions, {}, &CompanionTensor::kind);
    return weight;
  }

  // "parts do not fit together: qweight I32 [4, 4], scales F16 [1, 3]"
  std::string parts_text(const Group& group) const {
    std::string text;
    for (std::size_t i = 0; i < packed::kSlots; ++i)
      if (const Slot slot = static_cast<Slot>(i); group.has(slot)) {
        const Tensor& part = graph_.tensor(group.id(slot));
        const std::string_view name = part.name.view();
        text += fmt::format("{}{} {} [{}]", text.empty() ? "parts do not fit together: " : ", ",
                            safe_display(name.substr(name.rfind('.') + 1), 40), dtype_info(part.dtype).name,
                            fmt::join(part.shape, ","));
      }
    return text;
  }

  const MetaGraph& graph_;
  const ReadSmallTensor& read_;
  QuantizationConfig config_;
  LogicalTensors found_;
};

}  // namespace

LogicalTensors find_logical_tensors(const MetaGraph& graph, const ReadSmallTensor& read) {
  return Finder(graph, read).find();
}

}  // namespace loadline::graph
