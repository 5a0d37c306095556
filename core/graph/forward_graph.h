// What a model computes: operators over values whose sizes may depend on batch, sequence and past.
#pragma once

#include "core/graph/dtype.h"
#include "core/graph/size_poly.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The position of a tensor in MetaGraph::tensors.
enum class TensorId : std::uint32_t {};
enum class ValueId : std::uint32_t {};

// What a value's memory is for.
enum class Lane : std::uint8_t {
  activation,  // lives from the operator that makes it to the last that uses it
  cache,       // persists from one forward pass to the next: keys and values, states
  temporary,   // belongs to one operator
};
std::string_view lane_name(Lane lane);

// Made by an operator or given as an input.
struct Value {
  std::string name = {};
  std::optional<DType> dtype = {};                  // nothing where the file does not say
  std::optional<std::vector<SizePoly>> shape = {};  // outermost first; nothing where it is unknown
  Lane lane = Lane::activation;
  std::optional<ValueId> memory_of =
      {};                 // an earlier value whose memory this one shares: a view, or in place
  bool inferred = false;  // the shape is not in the file, it follows from others there
  bool operator==(const Value&) const = default;
};

// One operator, in an order in which every input is made before it is used.
struct Op {
  std::string kind;  // "MatMul", "com.microsoft.Attention"
  std::string name;  // may be empty
  std::vector<ValueId> inputs;
  std::vector<TensorId> weights;
  std::vector<ValueId> outputs;
  std::vector<ValueId> temporaries = {};
  std::vector<ValueId> held = {};  // not used any more, but still referred to by whoever called the operator
  std::vector<std::uint32_t> bodies =
      {};  // of those in ForwardGraph::bodies; it has their outer values as inputs
  bool operator==(const Op&) const = default;
};

// A graph inside an operator: a branch, or the turn of a loop. Its values are among the whole graph's.
struct Body {
  std::vector<Op> ops;
  std::vector<ValueId> inputs;  // what the operator puts in; values of the graph around it are used directly
  std::vector<ValueId> outputs;
  bool operator==(const Body&) const = default;
};

// A name that a file has for a size, and what it is taken as: B, S, P, S + P or a symbol of its own.
struct NamedSize {
  std::string name;
  SizePoly taken_as;
  bool guessed = false;  // by where it stands, not by the name
  bool operator==(const NamedSize&) const = default;
};

// The first symbols of every graph: batch, new tokens, tokens already in the cache.
inline constexpr SymbolId kBatch{0};
inline constexpr SymbolId kSequence{1};
inline constexpr SymbolId kPast{2};

// A symbol whose value follows from others': the smaller of a size and a number, min(S + P, 4096).
struct LeastOf {
  SymbolId symbol{};
  SizePoly of = {};
  std::uint64_t most = 0;
  bool operator==(const LeastOf&) const = default;
};

struct ForwardGraph {
  std::vector<std::string> symbols = {"B", "S", "P"};  // then the file's own names
  std::vector<LeastOf> least = {};                     // in the order of their symbols
  std::vector<NamedSize> sizes = {};                   // each name once
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Body> bodies = {};  // each of one operator, of the graph or of another body
  bool operator==(const ForwardGraph&) const = default;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
};

// A value for each symbol: these three, what follows from them, and 1 for a name that the file gives.
std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past);

// How deep bodies may lie in bodies.
inline constexpr std::size_t kMostBodyDepth = 8;
// How a Note begins that tells why the operators of a file are not there.
inline constexpr std::string_view kOperatorsLeftOut = "the operators are left out: ";

// Bytes of a value, or nothing while its dtype or shape is unknown or its size has no fixed unit.
std::optional<SizePoly> value_bytes(const Value& value);

}  // namespace loadline
