// The content of an ONNX file as plain structs, and the scan that fills them.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/io/source_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::importers {

// --- The content of an ONNX file as plain structs: the result of the scan, not checked yet.

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

// Kept as such only if it holds tensors or graphs.
struct OnnxAttribute {
  std::string name;
  graph::Attribute plain;
  std::string first;           // the first elements of a list, for people
  std::uint64_t elements = 0;  // of that list
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
  std::string overload;  // of the function that it calls
  std::string doc;       // its beginning
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
  std::vector<std::pair<std::string, graph::Attribute>> settings;  // the other attributes
};

// A dimension: a value, a name, or neither if it is unknown.
struct OnnxDim {
  std::optional<std::int64_t> value;
  std::string name;
  bool open = false;  // the name is not the file's (name_open_sizes)
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
  std::string name, domain;
  std::string overload;  // tells functions of one name apart
  std::vector<std::string> inputs, outputs;
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

// --- Writes a model without its weights as protobuf bytes, for the onnx library's shape inference.

// The library of Debian 12 (onnx 1.12) knows the element types 1 to 16 and refuses a whole model that uses
// another. Each unknown type is written as a stand-in: a known type that the model does not use.
struct OnnxStandIns {
  static constexpr std::int64_t kMostKnown = 16;
  // The model's element type for `code` in the library's answer; 0 if it is ambiguous.
  std::int64_t original(std::int64_t code) const;

  std::array<std::int64_t, kMostKnown + 1> original_of = {};  // 0: stands for itself; -1: for several types
};

// Writes messages in one pass and patches in their lengths when they close.
class OnnxSkeleton {
 public:
  std::size_t size() const { return bytes_.size() + patches_.size() * sizeof(patches_[0]); }

  // Begins a message. Returns the argument for close().
  std::size_t open(std::uint32_t tag);
  void close(std::size_t content);
  void number(std::uint32_t tag, std::uint64_t value);
  void fixed32(std::uint32_t tag, std::uint32_t value);
  void text(std::uint32_t tag, std::string_view text);
  void element_type(std::uint32_t tag, std::int64_t code);
  // Appends bytes that are complete encoded fields.
  void fields(std::string_view bytes) { bytes_ += bytes; }
  // Forgets everything from position `size` on.
  void cut(std::size_t size);

  struct Result {
    std::string bytes;
    OnnxStandIns stand_ins;
  };
  Result finish() &&;

 private:
  struct Patch {
    std::size_t position;
    std::int64_t code;
  };
  void varint(std::uint64_t value);

  std::string bytes_;
  std::vector<Patch> patches_;  // bytes that hold a type above kMostKnown
  std::array<bool, OnnxStandIns::kMostKnown + 1> used_ = {};
};

// --- Scans an ONNX file in one lazy pass: keeps the structure and skips the payloads.

// Stands before the names of attributes that are too large for the skeleton, and in it without their values.
inline constexpr std::string_view kLeftOutAttribute = "left out ";

struct OnnxScan {
  OnnxModel model;
  // The model for shape inference. It contains the payloads of small integer tensors and of the smallest
  // floating ones (Resize's scales), because shapes depend on them. It has no other payloads and no training
  // graphs.
  OnnxSkeleton::Result skeleton;
};

// Repeated singular messages are merged as protobuf merges them; unknown fields are skipped. Throws
// Error{malformed | limit} as WireReader does, and for negative dimensions or more than kMostDimensions of
// them.
inline constexpr std::size_t kMostDimensions = 1024;
OnnxScan scan_onnx(const io::SourceFile& file);

}  // namespace loadline::importers
