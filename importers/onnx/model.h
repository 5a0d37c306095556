// The content of an ONNX file as plain structs: the result of the scan, not checked yet.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

// Positions in OnnxModel's deques.
enum class OnnxTensorId : std::uint32_t {};
enum class OnnxGraphId : std::uint32_t {};

struct OnnxRange {
  std::uint64_t offset = 0;  // absolute, in the file
  std::uint64_t bytes = 0;
};

// The place of a repeated field of a TensorProto in the file.
struct OnnxNumbers {
  OnnxRange message;               // the TensorProto, or the part of it, that holds the field
  OnnxRange run;                   // the last packed run; for strings, from the first entry to the last
  std::uint64_t runs = 0;          // packed runs that are not empty
  std::uint64_t packed_bytes = 0;  // in all of them
  std::uint64_t singles = 0;       // entries that are not packed
  bool spread = false;             // the field lies in several parts of a TensorProto written in parts
};

struct OnnxTensor {
  std::uint64_t at = 0;  // first byte of its message
  std::string name;
  std::vector<std::uint64_t> dims;
  std::int64_t data_type = 0;
  std::int64_t data_location = 0;
  bool segment = false;
  std::uint32_t value_fields = 0;  // bit N: field N of TensorProto holds values
  std::optional<OnnxRange> raw;
  OnnxNumbers numbers;  // of the typed value field, if there is one
  std::vector<std::pair<std::string, std::string>> external;
};

struct OnnxSparse {
  std::optional<OnnxTensorId> values;
  std::optional<OnnxTensorId> indices;
};

// Only attributes that hold tensors or graphs are kept.
struct OnnxAttribute {
  std::string name;
  std::optional<OnnxTensorId> tensor;
  std::optional<OnnxGraphId> graph;
  std::optional<OnnxSparse> sparse;
  std::vector<OnnxTensorId> tensors;
  std::vector<OnnxGraphId> graphs;
  std::vector<OnnxSparse> sparses;
};

struct OnnxNode {
  std::string name;
  std::string op_type;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
};

// A dimension: a value, a name, or neither if it is unknown.
struct OnnxDim {
  std::optional<std::int64_t> value;
  std::string name;
};

struct OnnxType {
  std::int64_t elem_type = 0;  // 0: not a tensor, or not given
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxValue {
  std::string name;
  OnnxType type;
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensorId> initializers;
  std::vector<OnnxSparse> sparse_initializers;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::vector<OnnxValue> values;
};

struct OnnxFunction {
  std::string name;
  OnnxGraphId body{};                     // nodes only
  std::vector<OnnxAttribute> attributes;  // defaults
};

struct OnnxTraining {
  std::optional<OnnxGraphId> initialization;
  std::optional<OnnxGraphId> algorithm;
};

struct OnnxModel {
  std::optional<std::int64_t> ir_version;
  std::optional<std::int64_t> model_version;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::string doc;  // its beginning
  std::vector<std::pair<std::string, std::int64_t>> opsets;
  std::vector<std::pair<std::string, std::string>> properties;
  std::optional<OnnxGraphId> graph;
  std::vector<OnnxFunction> functions;
  std::vector<OnnxTraining> trainings;
  // deques, so that pointers to elements stay valid while the scan adds others
  std::deque<OnnxTensor> tensors;
  std::deque<OnnxGraph> graphs;

  const OnnxTensor& tensor(OnnxTensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  const OnnxGraph& operator[](OnnxGraphId id) const { return graphs[static_cast<std::size_t>(id)]; }
};

}  // namespace loadline
