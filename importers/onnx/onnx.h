// Reading ONNX: options, names of tensors, places of their bytes.
#pragma once

#include "core/base/error.h"
#include "importers/formats.h"
#include "importers/importer.h"
#include "importers/onnx/model.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

// --- Options for reading ONNX models.

struct OnnxOptions {
  // If false, no process is started, and values have only the shapes that the file gives.
  bool infer_shapes = true;
  std::uint64_t picture_side = 0;  // 0: a usual one, or what else the file can take
  std::vector<NamedSide> picture_sides = {};
};
graph::MetaGraph read_onnx(const Source& source, const OnnxOptions& options);

// --- Makes a unique, readable name for every tensor of an ONNX file.

// Parallel to model.tensors:
//   an initializer of the graph    its own name; a sparse one NAME (values) and NAME/indices
//   in an operator's attribute     NODE/attribute, NODE/attribute/0 in a list
//   in an attribute's graph        NODE/then_branch/NAME, and so on inwards
//   in a function                  FUNCTION/NODE/attribute, FUNCTION/attribute for a default
//   for training                   training/initialization/NAME, training/algorithm/NAME
// NODE is the operator's name, else its first output, else its type and position. If two names are equal, the
// later one gets "#2". Throws Error{malformed} if two initializers of one graph have the same name, and
// Error{limit} if all names together exceed kMostNameBytes.
inline constexpr std::uint64_t kMostNameBytes = 256 << 20;
std::vector<std::string> onnx_tensor_names(const OnnxModel& model, std::string_view file);

// --- External data of ONNX: tensors whose bytes lie in files beside the ONNX file.

struct ExternalRange {
  graph::FileId file = graph::kNoFile;  // kNoFile: the file is missing
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // from the offset to `length`, or to the end of the file
  bool has_length = false;
};

// The location of external data as a clean relative name for open_sibling ("./a//b" becomes "a/b"). A name
// that leaves the folder stays as it is, and open_sibling refuses it. "" if the tensor gives no location.
std::string external_location(const OnnxTensor& tensor);

// Opens each external file once and adds it to graph.files. Reports missing files as notes and their tensors
// in graph.missing. `source` and `graph` must outlive it.
class ExternalFiles {
 public:
  ExternalFiles(const Source& source, graph::MetaGraph& graph) : source_(source), graph_(graph) {}

  // The place of the tensor's bytes. Throws Error{malformed} for unsafe or contradictory external data; the
  // rules are in tensors.cpp.
  ExternalRange find(const OnnxTensor& tensor, const std::string& name);
  // Call once, after the last find().
  void add_notes();

 private:
  struct Opened {
    graph::FileId file = graph::kNoFile;
    std::uint64_t bytes = 0;
    std::vector<std::string> wanted_by;  // names of the tensors in it, if the file is missing
  };
  Opened& open(const std::string& location, const OnnxTensor& tensor, const std::string& name);

  const Source& source_;
  graph::MetaGraph& graph_;
  std::map<std::string, Opened> files_;
  std::set<std::string> unknown_keys_;
  std::uint64_t checksums_ = 0;
};

// --- Finds the bytes that hold the values of a scanned TensorProto.

// Puts tensors into a graph. place() adds files and missing names; finish() adds tensors and storages in the
// order of their bytes. `source` and `graph` must outlive it.
class OnnxTensorPlacer {
 public:
  OnnxTensorPlacer(const Source& source, graph::MetaGraph& graph)
      : source_(source), graph_(graph), external_(source, graph) {}

  // Throws Error{malformed} naming the tensor if its sizes, types and fields contradict each other.
  void place(OnnxTensorId id, const OnnxTensor& tensor, std::string name);
  // The graph's tensor for each OnnxTensorId below `count`; nothing if it was not placed.
  std::vector<std::optional<graph::TensorId>> finish(std::size_t count);

 private:
  struct Placed {
    OnnxTensorId id;
    graph::Tensor tensor;
    graph::Storage storage;
  };
  graph::Storage storage_of(const OnnxTensor& tensor, const std::string& name, graph::DType dtype);
  graph::Storage external_storage(const OnnxTensor& tensor, const std::string& name, graph::DType dtype,
                                  std::uint64_t needed);
  graph::Storage raw_storage(const OnnxTensor& tensor, const std::string& name, graph::DType dtype,
                             std::uint64_t needed);
  graph::Storage typed_storage(const OnnxTensor& tensor, const std::string& name, graph::DType dtype,
                               std::uint64_t needed);
  graph::Storage string_storage(const OnnxTensor& tensor, const std::string& name, std::uint64_t count) const;

  template <typename... Values>
  Error malformed(const OnnxTensor& tensor, const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = source_.file->path(), .byte = tensor.at, .tensor = name},
                 detail, values...);
  }

  const Source& source_;
  graph::MetaGraph& graph_;
  ExternalFiles external_;
  std::vector<Placed> placed_;
  std::vector<std::string> empty_;  // names of tensors without values
};

}  // namespace loadline::importers
