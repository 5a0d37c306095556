// LiteRT: tensors and operators of the first subgraph.

#include "core/base/checked_arithmetic.h"
#include "importers/flatbuffers/flatbuffer.h"
#include "importers/formats.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <tflite_generated.h>

namespace loadline::importers {

// --- Names of LiteRT's built-in operators.

namespace {

// clang-format off
constexpr auto kNames = std::to_array<std::string_view>({
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D",
    "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE", "EMBEDDING_LOOKUP",
    "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION",
    "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION",
    "LSTM", "MAX_POOL_2D", "MUL", "RELU",
    "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR",
    "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF",
    "TANH", "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL",
    "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD", "UNIDIRECTIONAL_SEQUENCE_RNN",
    "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE",
    "MEAN", "SUB", "DIV", "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP",
    "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM",
    "ARG_MAX", "MINIMUM", "LESS", "NEG",
    "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL",
    "SELECT", "SLICE", "SIN", "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL",
    "NOT_EQUAL", "LOG", "SUM", "SQRT",
    "RSQRT", "SHAPE", "POW", "ARG_MIN",
    "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK",
    "LOGICAL_OR", "ONE_HOT", "LOGICAL_AND", "LOGICAL_NOT",
    "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY",
    "SQUARE", "ZEROS_LIKE", "FILL", "FLOOR_MOD",
    "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE",
    "MIRROR_PAD", "ABS", "SPLIT_V", "UNIQUE",
    "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND",
    "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG",
    "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2",
    "DENSIFY", "SEGMENT_SUM", "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES",
    "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D",
    "CONV_3D", "IMAG", "REAL", "COMPLEX_ABS",
    "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE",
    "ASSIGN_VARIABLE", "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL", "BUCKETIZE",
    "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM",
    "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST",
    "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD",
    "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE",
    "STABLEHLO_CLAMP", "STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION",
    "STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL", "STABLEHLO_REDUCE", "STABLEHLO_ABS",
    "STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR",
    "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR",
    "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT",
    "STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE",
    "STABLEHLO_CONVERT", "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD",
    "STABLEHLO_IOTA", "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT",
    "STABLEHLO_WHILE", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE", "DILATE",
    "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE", "STABLEHLO_SHIFT_LEFT",
    "STABLEHLO_CBRT", "STABLEHLO_CASE",
});
// clang-format on

// "CONV_2D"; for an unknown code "BUILTIN_400".
std::string tflite_operator_name(std::int32_t code) {
  const auto at = static_cast<std::size_t>(code);
  return code >= 0 && at < kNames.size() ? std::string(kNames[at]) : "BUILTIN_" + std::to_string(code);
}

}  // namespace

// --- LiteRT model, .tflite (TensorFlow schema version 3; tflite.fbs).
//
//   [0, 4)  u32 root offset   [4, 8)  "TFL3"   then the flatbuffer
//
// Weights lie in Buffer.data inside the flatbuffer, or, in models over 2 GB, after it at Buffer.offset.

namespace {

constexpr unsigned kBuffers = 4;  // of the root table's fields, counted from 0

std::vector<FlatBytes> weight_ranges(const io::SourceFile& file, std::uint64_t size) {
  std::vector<FlatBytes> ranges = flat_byte_vectors(file, size, kBuffers, 0);
  const std::vector<FlatBytes> far = flat_far_ranges(file, size, kBuffers, 1, 2);
  ranges.insert(ranges.end(), far.begin(), far.end());
  return ranges;
}

class Reader : GraphReader {
 public:
  explicit Reader(const io::SourceFile& file)
      : GraphReader(file, "tflite"),
        flat_bytes_(std::min(file.size(), FlatImage::kMostSize)),
        image_(file, flat_bytes_, weight_ranges(file, flat_bytes_)),
        model_(flat_root<flatbuffers::Verifier>(image_, tflite::GetModel, "TFL3", file.path())) {}

  graph::MetaGraph read() {
    graph_.metadata.push_back({"version", std::uint32_t{model_.version()}});
    if (const std::string description = flat_text(model_.description()); !description.empty())
      graph_.metadata.push_back({"description", description});
    for (std::uint32_t i = 0; i < flat_count(model_.metadata()); ++i)
      graph_.metadata.push_back(
          {fmt::format("metadata.{}", i), flat_text(model_.metadata()->Get(i)->name())});
    storages_.resize(flat_count(model_.buffers()));
    for (std::uint32_t i = 0; i < flat_count(model_.subgraphs()); ++i) {
      const tflite::SubGraph& subgraph = *model_.subgraphs()->Get(i);
      std::vector<std::optional<graph::TensorId>> weights = add_weights(subgraph, i);
      check_operators(subgraph, i);
      if (i == 0) Forward(*this, subgraph, weights).build();
    }
    return std::move(graph_);
  }

 private:
  // The storage of a buffer's bytes; nothing for an empty buffer.
  std::optional<FlatBytes> buffer_range(std::uint32_t number, const std::string& name) const {
    if (number >= flat_count(model_.buffers()))
      throw at_tensor(name, "lies in buffer {}, there are {}", number, flat_count(model_.buffers()));
    const tflite::Buffer& buffer = *model_.buffers()->Get(number);
    if (flat_count(buffer.data()) > 0)
      return FlatBytes{image_.offset_of(buffer.data()->Data()), buffer.data()->size()};
    if (buffer.offset() <= 1) return std::nullopt;
    if (!range_fits(buffer.offset(), buffer.size(), file_.size()))
      throw at_tensor(name, "buffer {} has {} bytes at {}, the file has {}", number, buffer.size(),
                      buffer.offset(), file_.size());
    return FlatBytes{buffer.offset(), buffer.size()};
  }

  graph::Shape read_shape(const tflite::Tensor& tensor, const std::string& name) const {
    std::vector<std::uint64_t> shape;
    for (std::uint32_t i = 0; i < flat_count(tensor.shape()); ++i) {
      const std::int32_t size = tensor.shape()->Get(i);
      if (size < 0) throw at_tensor(name, "dimension {} is {}", i, size);
      shape.push_back(static_cast<std::uint64_t>(size));
    }
    if (!graph::element_count(shape))
      throw at_tensor(name, "the shape [{}] overflows 64 bits", fmt::join(shape, ","));
    return shape;
  }

  // Names only serve people: they may be missing or repeated.
  std::string unique_name(std::string name, std::uint32_t subgraph, std::uint32_t number) {
    if (name.empty()) name = fmt::format("#{}", number);
    if (subgraph > 0) name = fmt::format("subgraph.{}.{}", subgraph, name);
    return names_.take(std::move(name));
  }

  // The subgraph's tensors that have stored data; nothing for the others.
  std::vector<std::optional<graph::TensorId>> add_weights(const tflite::SubGraph& subgraph,
                                                          std::uint32_t number) {
    std::vector<std::optional<graph::TensorId>> ids(flat_count(subgraph.tensors()));
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      const tflite::Tensor& tensor = *subgraph.tensors()->Get(i);
      if (tensor.buffer() == 0) continue;
      const auto range = buffer_range(tensor.buffer(), flat_text(tensor.name()));
      if (!range) continue;
      ids[i] = graph::TensorId{static_cast<std::uint32_t>(graph_.tensors.size())};
      add_weight(tensor, unique_name(flat_text(tensor.name()), number, i), *range);
    }
    return ids;
  }

  void add_weight(const tflite::Tensor& tensor, const std::string& name, const FlatBytes& range) {
    graph::Tensor added;
    added.name = name;
    added.shape = read_shape(tensor, name);
    added.dtype = graph::dtype_from(&graph::DTypeInfo::tflite, tensor.type()).value_or(graph::DType::opaque);
    if (tensor.sparsity() != nullptr) {
      added.dtype = graph::DType::opaque;
      graph_.note(graph::Severity::info, name, "is stored sparse: shown as bytes");
    } else if (added.dtype == graph::DType::opaque) {
      graph_.note(graph::Severity::warning, name, "unknown tensor type {}: shown as bytes", tensor.type());
    }
    const auto needed = graph::packed_byte_size(added.dtype, graph::elements(added));
    if (!needed && graph::dtype_info(added.dtype).block_elements != 0)
      throw at_tensor(name, "[{}] overflows 64 bits", fmt::join(added.shape, ","));
    if (needed && *needed > range.bytes)
      throw at_tensor(name, "needs {} bytes for [{}] {}, its buffer has {}", *needed,
                      fmt::join(added.shape, ","), graph::dtype_info(added.dtype).name, range.bytes);
    if (needed && *needed < range.bytes)
      graph_.note(graph::Severity::warning, name, "takes {} of its buffer's {} bytes", *needed, range.bytes);
    std::optional<graph::StorageId>& storage = storages_[tensor.buffer()];
    if (!storage)
      storage = graph_.add_storage(graph::plain_storage(graph::FileId{0}, range.offset, range.bytes));
    added.storage = *storage;
    graph_.tensors.push_back(std::move(added));
  }

  void check_operators(const tflite::SubGraph& subgraph, std::uint32_t number) const {
    const std::size_t tensors = flat_count(subgraph.tensors());
    const auto check = [&](const flatbuffers::Vector<std::int32_t>* list, std::int32_t least,
                           std::string_view what) {
      for (std::uint32_t i = 0; i < flat_count(list); ++i)
        if (list->Get(i) < least || (list->Get(i) >= 0 && static_cast<std::size_t>(list->Get(i)) >= tensors))
          throw malformed("subgraph {}: {} names tensor {}, there are {}", number, what, list->Get(i),
                          tensors);
    };
    check(subgraph.inputs(), 0, "its input");
    check(subgraph.outputs(), 0, "its output");
    for (std::uint32_t i = 0; i < flat_count(subgraph.operators()); ++i) {
      const tflite::Operator& op = *subgraph.operators()->Get(i);
      if (op.opcode_index() >= flat_count(model_.operator_codes()))
        throw malformed("subgraph {}: operator {} has code {}, there are {}", number, i, op.opcode_index(),
                        flat_count(model_.operator_codes()));
      check(op.inputs(), -1, fmt::format("operator {}'s input", i));
      check(op.outputs(), 0, fmt::format("operator {}'s output", i));
    }
  }

  std::string operator_kind(const tflite::Operator& op) const {
    constexpr std::int32_t kCustom = 32;
    const tflite::OperatorCode& code = *model_.operator_codes()->Get(op.opcode_index());
    // operator codes were one byte at first; old files have only that field
    const std::int32_t number = std::max<std::int32_t>(code.builtin_code(), code.deprecated_builtin_code());
    return number == kCustom ? flat_text(code.custom_code()) : tflite_operator_name(number);
  }

  // The operators of one subgraph over its tensors without stored data.
  class Forward {
   public:
    Forward(Reader& reader, const tflite::SubGraph& subgraph,
            const std::vector<std::optional<graph::TensorId>>& weights)
        : reader_(reader),
          subgraph_(subgraph),
          weights_(weights),
          values_(weights.size()),
          made_(weights.size()) {}

    void build() {
      for (std::uint32_t i = 0; i < flat_count(subgraph_.inputs()); ++i)
        add_input(subgraph_.inputs()->Get(i));
      // values that no operator produces count as inputs too: variables, and tensors left empty
      std::vector<bool> output(values_.size());
      for (std::uint32_t i = 0; i < flat_count(subgraph_.operators()); ++i)
        for_each(subgraph_.operators()->Get(i)->outputs(),
                 [&](std::int32_t at) { output[index_of(at)] = true; });
      for (std::uint32_t i = 0; i < flat_count(subgraph_.operators()); ++i)
        for_each(subgraph_.operators()->Get(i)->inputs(), [&](std::int32_t at) {
          if (!output[index_of(at)] && !weights_[index_of(at)]) add_input(at);
        });
      for (std::uint32_t i = 0; i < flat_count(subgraph_.operators()); ++i)
        if (!add_operator(*subgraph_.operators()->Get(i)))
          return reader_.graph_.note(
              graph::Severity::warning, {},
              "operator {} uses or makes a tensor out of order: operators are not shown", i);
      for_each(subgraph_.outputs(), [&](std::int32_t at) {
        if (made_[index_of(at)]) forward_.outputs.push_back(*values_[index_of(at)]);
      });
      if (changing_ > 0)
        reader_.graph_.note(graph::Severity::info, {}, "{} {} may change size: shown as stored", changing_,
                            changing_ == 1 ? "value" : "values");
      reader_.graph_.forward = std::move(forward_);
    }

   private:
    static std::size_t index_of(std::int32_t at) { return static_cast<std::size_t>(at); }

    template <typename Body>
    static void for_each(const flatbuffers::Vector<std::int32_t>* list, Body body) {
      for (std::uint32_t i = 0; i < flat_count(list); ++i)
        if (list->Get(i) >= 0) body(list->Get(i));  // -1: left out
    }

    graph::ValueId value(std::int32_t at) {
      std::optional<graph::ValueId>& id = values_[index_of(at)];
      if (id) return *id;
      const tflite::Tensor& tensor = *subgraph_.tensors()->Get(static_cast<std::uint32_t>(at));
      graph::Value value;
      value.name = flat_text(tensor.name());
      value.dtype = graph::dtype_from(&graph::DTypeInfo::tflite, tensor.type());
      value.shape.emplace();
      for (const std::uint64_t size : reader_.read_shape(tensor, value.name))
        value.shape->push_back(graph::SizePoly(static_cast<std::int64_t>(size)));
      const auto* const signature = tensor.shape_signature();
      if (signature != nullptr && std::ranges::find(*signature, -1) != signature->end()) ++changing_;
      id = graph::ValueId{static_cast<std::uint32_t>(forward_.values.size())};
      forward_.values.push_back(std::move(value));
      return *id;
    }

    void add_input(std::int32_t at) {
      if (weights_[index_of(at)] || made_[index_of(at)]) return;
      made_[index_of(at)] = true;
      forward_.inputs.push_back(value(at));
    }

    // False if the operators are not in the order that a forward graph requires.
    bool add_operator(const tflite::Operator& from) {
      graph::Op op;
      op.kind = reader_.operator_kind(from);
      bool ordered = true;
      for_each(from.inputs(), [&](std::int32_t at) {
        if (weights_[index_of(at)])
          op.weights.push_back(*weights_[index_of(at)]);
        else if (made_[index_of(at)])
          op.inputs.push_back(value(at));
        else
          ordered = false;
      });
      for_each(from.outputs(), [&](std::int32_t at) {
        ordered = ordered && !made_[index_of(at)] && !weights_[index_of(at)];
        made_[index_of(at)] = true;
        op.outputs.push_back(value(at));
      });
      if (!op.outputs.empty()) op.name = forward_.value(op.outputs.front()).name;
      forward_.ops.push_back(std::move(op));
      return ordered;
    }

    Reader& reader_;
    const tflite::SubGraph& subgraph_;
    const std::vector<std::optional<graph::TensorId>>& weights_;
    std::vector<std::optional<graph::ValueId>> values_;
    std::vector<bool> made_;
    graph::ForwardGraph forward_;
    std::size_t changing_ = 0;
  };

  std::uint64_t flat_bytes_;
  FlatImage image_;
  const tflite::Model& model_;
  std::vector<std::optional<graph::StorageId>> storages_;  // by buffer
  UniqueNames names_;
};

}  // namespace

Match sniff_tflite(std::string_view head, std::string_view) {
  return head.size() >= 8 && head.substr(4).starts_with("TFL3") ? Match::yes : Match::no;
}

graph::MetaGraph read_tflite(const Source& source) { return Reader(*source.file).read(); }

}  // namespace loadline::importers
