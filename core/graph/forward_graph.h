// What a model computes: operators over values whose sizes may depend on batch, sequence and past.
#pragma once

#include "core/graph/dtype.h"
#include "core/graph/size_poly.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// The position of a tensor in MetaGraph::tensors.
enum class TensorId : std::uint32_t {};
enum class ValueId : std::uint32_t {};

// An activation: made by an operator or given as an input.
struct Value {
  std::string name;
  std::optional<DType> dtype;                  // nothing where the file does not say
  std::optional<std::vector<SizePoly>> shape;  // outermost first; nothing where it is unknown
  bool operator==(const Value&) const = default;
};

// One operator, in an order in which every input is made before it is used.
struct Op {
  std::string kind;  // "MatMul", "com.microsoft.Attention"
  std::string name;  // may be empty
  std::vector<ValueId> inputs;
  std::vector<TensorId> weights;
  std::vector<ValueId> outputs;
  bool operator==(const Op&) const = default;
};

// The first symbols of every graph: batch, new tokens, tokens already in the cache.
inline constexpr SymbolId kBatch{0};
inline constexpr SymbolId kSequence{1};
inline constexpr SymbolId kPast{2};

struct ForwardGraph {
  std::vector<std::string> symbols = {"B", "S", "P"};  // then the file's own names
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  bool operator==(const ForwardGraph&) const = default;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
};

// Bytes of a value, or nothing while its dtype or shape is unknown or its size has no fixed unit.
std::optional<SizePoly> value_bytes(const Value& value);

}  // namespace loadline
