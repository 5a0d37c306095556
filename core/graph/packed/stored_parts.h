// The stored tensors that may make up packed weights, grouped by the module that they belong to.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/graph/packed/quantization.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::graph::packed {

// What a tensor is to its module, by the ending of its name.
enum class Slot : std::uint8_t {
  weight,
  qweight,
  weight_packed,
  blocks,
  scales,
  qzeros,
  g_idx,
  biases,
  absmax,
  quant_map,
  nested_absmax,
  nested_quant_map,
  quant_state,
  scb,
  weight_format,
  weight_scale,
  weight_scale_inv,
  weight_scale_2,
  weight_global_scale,
  weight_zero_point,
  weight_shape,
  weight_g_idx,
  input_scale,
  input_global_scale,
};
inline constexpr std::size_t kSlots = 24;
// No tensor.
inline constexpr std::uint32_t kNone = UINT32_MAX;

// What a part holds beside the codes; nothing for the codes themselves.
std::optional<Companion> companion_of(Slot slot);

// The tensors of one module.
class Group {
 public:
  void put(Slot slot, std::uint32_t tensor) {
    tensors_[static_cast<std::size_t>(slot)] = tensor;
    held_ |= bit(slot);
  }
  bool has(Slot slot) const { return (held_ & bit(slot)) != 0; }
  bool has_same_as(const Group& other) const { return held_ == other.held_; }
  bool has_all(Slot a, Slot b, Slot c) const { return (~held_ & (bit(a) | bit(b) | bit(c))) == 0; }
  TensorId id(Slot slot) const { return TensorId{tensors_[static_cast<std::size_t>(slot)]}; }

  // In the order of the enum: calls each(slot) for the slots that hold a tensor.
  template <typename Each>
  void for_each(Each each) const {
    for (std::uint32_t rest = held_; rest != 0; rest &= rest - 1)
      each(static_cast<Slot>(std::countr_zero(rest)));
  }

 private:
  static constexpr std::uint32_t bit(Slot slot) { return 1U << static_cast<unsigned>(slot); }
  static_assert(kSlots <= 32);

  std::array<std::uint32_t, kSlots> tensors_ = {};
  std::uint32_t held_ = 0;
};

// The modules that have a companion, in the order of their first companions.
class StoredModules {
 public:
  explicit StoredModules(const MetaGraph& graph);

  std::size_t size() const { return modules_.size(); }
  // Points into the graph.
  std::string_view name(std::size_t module) const {
    return graph_.tensors[modules_[module].tensor].name.view().substr(0, modules_[module].name_bytes);
  }
  Group group(std::size_t module) const;

 private:
  struct Module {
    std::uint32_t tensor = kNone;  // whose name begins with the module's
    std::uint32_t name_bytes = 0;
    std::uint32_t weight = kNone;
    std::uint32_t last = kNone;  // of its companions
  };
  struct Part {
    std::uint32_t tensor = kNone;
    std::uint32_t before = kNone;  // the module's companion before this one
    Slot slot{};
  };

  auto name_of() const {
    return [this](std::uint32_t position) { return name(position); };
  }
  // `ending` tells apart what a companion's name ends in.
  void add(std::string_view name, Slot slot, std::size_t ending, std::size_t tensor);
  void add_companions();
  void add_weights();

  const MetaGraph& graph_;
  std::vector<Module> modules_;
  std::vector<Part> parts_;
  NameIndex index_;         // of the modules' names, until all have their tensors
  bool indexed_ = false;    // whether they are in it already
  std::size_t ending_ = 0;  // of the first companion
  bool blocks_ = false;
};

// As graph::find_logical_tensors(), of a graph's modules that are known.
LogicalTensors find_logical_tensors(const MetaGraph& graph, const StoredModules& modules,
                                    const ReadSmallTensor& read);

// What a packing makes of a group.
struct Fitted {
  Shape shape;
  std::uint32_t bits = 0;
  Shape block;
  std::optional<DType> dtype = {};
  std::string state = {};
};

// The first layout whose parts a group has, in the types that it asks for.
struct LayoutFit {
  WeightPacking packing{};
  Slot codes{};
  std::optional<Fitted> fitted = {};  // absent: the shapes do not match
};
// Nothing if no layout applies. `base` is the name of the module.
std::optional<LayoutFit> fit_layout(const MetaGraph& graph, const QuantizationConfig& config,
                                    const ReadSmallTensor& read, std::string_view base, const Group& group);

}  // namespace loadline::graph::packed
