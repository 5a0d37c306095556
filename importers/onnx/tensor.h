// Finds the bytes that hold the values of a scanned TensorProto.
#pragma once

#include "core/base/error.h"
#include "importers/importer.h"
#include "importers/onnx/external.h"
#include "importers/onnx/model.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

// Puts tensors into a graph. place() adds files and missing names; finish() adds tensors and storages in the
// order of their bytes. `source` and `graph` must outlive it.
class OnnxTensorPlacer {
 public:
  OnnxTensorPlacer(const Source& source, MetaGraph& graph)
      : source_(source), graph_(graph), external_(source, graph) {}

  // Throws Error{malformed} naming the tensor if its sizes, types and fields contradict each other.
  void place(OnnxTensorId id, const OnnxTensor& tensor, std::string name);
  // The graph's tensor for each OnnxTensorId below `count`; nothing if it was not placed.
  std::vector<std::optional<TensorId>> finish(std::size_t count);

 private:
  struct Placed {
    OnnxTensorId id;
    Tensor tensor;
    Storage storage;
  };
  Storage storage_of(const OnnxTensor& tensor, const std::string& name, DType dtype);
  Storage external_storage(const OnnxTensor& tensor, const std::string& name, DType dtype,
                           std::uint64_t needed);
  Storage raw_storage(const OnnxTensor& tensor, const std::string& name, DType dtype, std::uint64_t needed);
  Storage typed_storage(const OnnxTensor& tensor, const std::string& name, DType dtype, std::uint64_t needed);
  Storage string_storage(const OnnxTensor& tensor, const std::string& name, std::uint64_t count) const;

  template <typename... Values>
  Error malformed(const OnnxTensor& tensor, const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = source_.file->path(), .byte = tensor.at, .tensor = name},
                 detail, values...);
  }

  const Source& source_;
  MetaGraph& graph_;
  ExternalFiles external_;
  std::vector<Placed> placed_;
  std::vector<std::string> empty_;  // names of tensors without values
};

}  // namespace loadline
