// The forward graph: operators over values whose sizes are polynomials in batch, sequence and past.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::graph {

// --- Sizes that depend on the batch, the sequence and the past: polynomials with integer coefficients.

// The position of a name in a symbol table (ForwardGraph::symbols).
enum class SymbolId : std::uint16_t {};

// A sum of terms, each a coefficient times a product of symbols: 2*B*S + 64. Kept in normal form (terms
// sorted, none zero), so that equal sizes compare equal. Coefficients may be negative: S - 1.
class SizePoly {
 public:
  SizePoly() = default;  // zero
  explicit SizePoly(std::int64_t constant);
  static SizePoly symbol(SymbolId id);

  // Nothing if a coefficient does not fit in 64 bits or the result has more than kMostTerms terms.
  static std::optional<SizePoly> sum(const SizePoly& a, const SizePoly& b);
  static std::optional<SizePoly> product(const SizePoly& a, const SizePoly& b);

  // The value of a polynomial without symbols, else nothing.
  std::optional<std::int64_t> constant() const;
  // The symbol of a polynomial that is a single symbol, else nothing.
  std::optional<SymbolId> as_symbol() const;
  // The value with values[i] for symbol i. Nothing if it is negative, does not fit in 64 bits, or a symbol
  // has no value.
  std::optional<std::uint64_t> evaluate(std::span<const std::uint64_t> values) const;
  bool mentions(SymbolId id) const;
  // "2*B*S + 64", "S - 1", "0"; a symbol past the end of `symbols` is "?".
  std::string text(std::span<const std::string> symbols) const;

  bool operator==(const SizePoly&) const = default;

  static constexpr std::size_t kMostTerms = 64;
  static constexpr std::size_t kMostFactors = 16;

 private:
  struct Term {
    std::vector<SymbolId> factors;  // sorted, with repetition; empty for the constant
    std::int64_t coefficient = 0;
    bool operator==(const Term&) const = default;
  };
  static std::optional<SizePoly> normal(std::vector<Term> terms);
  std::vector<Term> terms_;
};

// --- The forward graph of a model: operators over values whose sizes may depend on batch, sequence and past.

// The position of a tensor in MetaGraph::tensors.
enum class TensorId : std::uint32_t {};
enum class ValueId : std::uint32_t {};

// The purpose of a value's memory.
enum class Lane : std::uint8_t {
  activation,  // lives from the operator that makes it to the last operator that uses it
  cache,       // persists from one forward pass to the next: keys and values, states
  temporary,   // belongs to one operator
};
std::string_view lane_name(Lane lane);

// A value of the forward pass: the output of an operator, or an input of the graph.
struct Value {
  std::string name = {};
  std::optional<DType> dtype = {};                  // nothing if unknown
  std::optional<std::vector<SizePoly>> shape = {};  // outermost first; nothing if unknown
  Lane lane = Lane::activation;
  std::optional<ValueId> memory_of =
      {};  // an earlier value whose memory this one shares: a view, or in place
  // A runtime does not know the shape before it runs: the file leaves open sizes that vary, or the sides of
  // pictures, or has the shape computed in a way that onnxruntime does not follow.
  bool half_declared = false;
  bool operator==(const Value&) const = default;
};

// What a file sets for an operator: one number, text or list of whole numbers. Nothing: something else.
using Attribute = std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::int64_t>>;

// What stands at one position of an operator's inputs: a value, a weight, or nothing.
struct Argument {
  std::optional<ValueId> value = {};
  std::optional<TensorId> weight = {};
  bool operator==(const Argument&) const = default;
};

// One operator. A list of operators has an order in which every input is made before it is used.
struct Op {
  std::string kind;  // "MatMul", "com.microsoft.Attention"
  std::string name;  // may be empty
  std::vector<ValueId> inputs;
  std::vector<TensorId> weights;
  std::vector<ValueId> outputs;
  std::vector<ValueId> temporaries = {};
  std::vector<ValueId> held = {};  // no longer used, but still referenced by the operator's caller
  std::vector<std::uint32_t> bodies =
      {};  // positions in ForwardGraph::bodies; outer values that the bodies use are inputs of the operator
  std::vector<Argument> arguments = {};  // inputs and weights as the file lists them; empty: the inputs
  std::vector<std::pair<std::string, Attribute>> attributes = {};  // of a file's own operator
  bool operator==(const Op&) const = default;
};

// A graph inside an operator: a branch, or one iteration of a loop. Its values are in ForwardGraph::values.
struct Body {
  std::vector<Op> ops;
  std::vector<ValueId> inputs;  // set by the operator; values of the enclosing graph are used directly
  std::vector<ValueId> outputs;
  bool operator==(const Body&) const = default;
};

// A size that the file names, and its interpretation: B, S, P, S + P or a symbol of its own.
struct NamedSize {
  std::string name;
  SizePoly taken_as;
  bool guessed = false;  // interpreted by its position in a shape, not by its name
  bool open = false;     // the file gives no name: this one is made of an input's name and a position
  bool operator==(const NamedSize&) const = default;
};

// The first symbols of every graph: batch, new tokens, tokens already in the cache.
inline constexpr SymbolId kBatch{0};
inline constexpr SymbolId kSequence{1};
inline constexpr SymbolId kPast{2};

// A symbol whose value follows from other symbols: `then` if `size` is more than `bound`, else `otherwise`.
// min(S + P, 4096) is 4096 if S + P is more than 4096, else S + P.
struct ChosenSize {
  SymbolId symbol{};
  SizePoly size = {}, bound = {}, then = {}, otherwise = {};
  bool operator==(const ChosenSize&) const = default;
};

// What a graph of a training step adds to a forward pass. Bytes do not depend on batch or sequence.
struct TrainingParts {
  DType type = DType::f32;           // of activations, and of weights and their gradients but adapters'
  std::uint64_t parameters = 0;      // that are trained
  std::uint64_t adapter_bytes = 0;   // weights of adapters, which no file of the model holds
  std::uint64_t gradient_bytes = 0;  // once all are there
  std::uint64_t state_bytes = 0;     // of the optimizer
  std::uint32_t backward = 0;        // the first operator behind the loss
  std::uint32_t update = 0;          // the optimizer's step, the last operator
  bool operator==(const TrainingParts&) const = default;
};

struct ForwardGraph {
  std::vector<std::string> symbols = {"B", "S", "P"};  // followed by the file's own names
  std::vector<ChosenSize> chosen = {};                 // in the order of their symbols
  std::vector<NamedSize> sizes = {};                   // each name once
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Body> bodies = {};  // each belongs to one operator of the graph or of another body
  std::int64_t opset = 0;         // the version of the file's own operators; 0: unknown
  // Kinds of operators that the profile does not account for, sorted: sizes of the pass are then an estimate.
  std::vector<std::string> unaccounted = {};
  std::optional<TrainingParts> training = {};  // nothing: a forward pass alone
  bool operator==(const ForwardGraph&) const = default;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
};

// A number for each symbol: batch, sequence and past as given; chosen sizes computed; the file's own names
// are 1.
std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past);
// The same values with those of chosen sizes computed anew from the others.
std::vector<std::uint64_t> with_chosen(const ForwardGraph& graph, std::vector<std::uint64_t> values);

// The deepest allowed nesting of bodies.
inline constexpr std::size_t kMostBodyDepth = 8;
// The first words of the Note that says why a file's operators were not read.
inline constexpr std::string_view kOperatorsLeftOut = "the operators of the file were not read: ";

// Bytes of a value. Nothing if its dtype or shape is unknown or its dtype has no fixed size.
std::optional<SizePoly> value_bytes(const Value& value);

}  // namespace loadline::graph
