// Turns the groups of a graph's tensors into packed weights; notes on those that only look like one.
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/graph/packed/quantization.h"
#include "core/graph/packed/stored_parts.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
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
  Finder(const MetaGraph& graph, const ReadSmallTensor& read) : graph_(graph) {
    if (read)
      read_ = [this, &read](TensorId id) {
        const std::lock_guard lock(mutex_);
        return read(id);
      };
  }

  LogicalTensors find(const packed::StoredModules& modules) {
    if (modules.size() == 0) return {};
    config_ = read_quantization_config(graph_);
    fit_all(modules);
    std::erase_if(found_.tensors, [](const LogicalTensor& weight) { return weight.codes == kNoWeight; });
    // companions mostly lie in the order of their codes
    if (!std::ranges::is_sorted(found_.tensors, {}, &LogicalTensor::codes))
      std::ranges::sort(found_.tensors, {}, &LogicalTensor::codes);
    std::ranges::sort(found_.notes, {}, [](const Note& note) { return note.tensor; });
    return std::move(found_);
  }

 private:
  static constexpr TensorId kNoWeight{packed::kNone};

  // Fits each module to its place in found_.tensors, on several threads if there are many.
  void fit_all(const packed::StoredModules& modules) {
    constexpr std::size_t kTurn = 2048, kMostThreads = 8;
    found_.tensors.resize(modules.size());
    const std::size_t turns = (modules.size() + kTurn - 1) / kTurn;
    ParallelLoop(turns, std::min(turns, std::clamp<std::size_t>(cores(), 2, kMostThreads)),
                 [&](std::size_t turn) {
                   const std::size_t end = std::min((turn + 1) * kTurn, modules.size());
                   Recent recent;
                   for (std::size_t i = turn * kTurn; i < end; ++i)
                     found_.tensors[i] = fit(modules.name(i), modules.group(i), recent);
                 })
        .finish();
  }

  // The last modules of which the types and shapes alone say what they are: thousands are like one of them.
  struct Like {
    Group group;
    LogicalTensor weight;
  };
  struct Recent {
    std::array<std::optional<Like>, 2> modules;
    std::size_t older = 0;
  };

  bool is_like(const Group& a, const Group& b) const {
    if (!a.has_same_as(b)) return false;
    bool same = true;
    a.for_each([&](Slot slot) {
      const Tensor &one = graph_.tensor(a.id(slot)), &other = graph_.tensor(b.id(slot));
      same = same && one.dtype == other.dtype && one.shape == other.shape;
    });
    return same;
  }

  // A weight whose codes are kNoWeight: the module's parts make up none.
  LogicalTensor fit(std::string_view base, const Group& group, Recent& recent) {
    for (const std::optional<Like>& like : recent.modules)
      if (like && is_like(like->group, group)) return placed(like->weight, base, group, Slot::weight);
    LogicalTensor none;
    none.codes = kNoWeight;
    std::optional<LayoutFit> layout = packed::fit_layout(graph_, config_, read_, base, group);
    if (!layout) return none;
    const auto count = layout->fitted ? element_count(layout->fitted->shape) : std::nullopt;
    if (count && *count >> 62 == 0) {
      LogicalTensor weight = without_place(layout->packing, std::move(*layout->fitted));
      // no byte of a tensor and no name decides on these
      if (layout->packing == WeightPacking::scaled)
        recent.modules[std::exchange(recent.older, 1 - recent.older)] = Like{group, weight};
      return placed(std::move(weight), base, group, layout->codes);
    }
    const std::lock_guard lock(mutex_);
    found_.notes.push_back(make_note(Severity::warning, graph_.tensor(group.id(layout->codes)).name.str(),
                                     "looks like {}, but its {}: shown as stored",
                                     packing_name(layout->packing), parts_text(group)));
    return none;
  }

  LogicalTensor without_place(WeightPacking packing, Fitted fitted) const {
    LogicalTensor weight;
    weight.packing = packing;
    if (packing == WeightPacking::gptq && config_.checkpoint_format == "gptq_v2")
      weight.packing = WeightPacking::gptq_v2;
    weight.shape = std::move(fitted.shape);
    weight.bits = fitted.bits;
    weight.block = std::move(fitted.block);
    weight.set_state(fitted.state);
    weight.dtype = fitted.dtype ? *fitted.dtype : config_.dtype.value_or(DType::f32);
    return weight;
  }

  // The weight that the parts of a module make up.
  LogicalTensor placed(LogicalTensor weight, std::string_view base, const Group& group, Slot codes) const {
    if (codes == Slot::weight)
      weight.name = graph_.tensor(group.id(codes)).name;
    else
      weight.name = codes == Slot::blocks ? Name(base) : Name(std::string(base) + ".weight");
    weight.codes = group.id(codes);
    std::array<CompanionTensor, kCompanions> companions;
    const auto begin = companions.begin();
    auto end = begin;
    group.for_each([&](Slot slot) {
      const auto kind = packed::companion_of(slot);
      if (kind && std::ranges::find(begin, end, *kind, &CompanionTensor::kind) == end)
        *end++ = {*kind, group.id(slot)};
    });
    std::ranges::sort(begin, end, {}, &CompanionTensor::kind);
    weight.companions = ShortList<CompanionTensor, 1>(std::span<const CompanionTensor>(begin, end));
    return weight;
  }

  // "parts do not fit together: qweight I32 [4, 4], scales F16 [1, 3]"
  std::string parts_text(const Group& group) const {
    std::string text;
    group.for_each([&](Slot slot) {
      const Tensor& part = graph_.tensor(group.id(slot));
      const std::string_view name = part.name.view();
      text += fmt::format("{}{} {} [{}]", text.empty() ? "parts do not fit together: " : ", ",
                          safe_display(name.substr(name.rfind('.') + 1), 40), dtype_info(part.dtype).name,
                          fmt::join(part.shape, ","));
    });
    return text;
  }

  const MetaGraph& graph_;
  QuantizationConfig config_;
  LogicalTensors found_;
  std::mutex mutex_;  // for reading, and for found_.notes
  ReadSmallTensor read_;
};

}  // namespace

LogicalTensors find_logical_tensors(const MetaGraph& graph, const ReadSmallTensor& read) {
  return packed::find_logical_tensors(graph, packed::StoredModules(graph), read);
}

LogicalTensors packed::find_logical_tensors(const MetaGraph& graph, const StoredModules& modules,
                                            const ReadSmallTensor& read) {
  return Finder(graph, read).find(modules);
}

}  // namespace loadline::graph
