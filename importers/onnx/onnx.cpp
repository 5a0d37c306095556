// ONNX (onnx/onnx 1.23: onnx.in.proto, docs/IR.md): the whole file is one protobuf message, a ModelProto,
// whose fields importers/onnx/scan.cpp lists.
//
//   08 V            ir_version, first where fields come in order; there is no magic
//   3A L graph      operators, and weights as TensorProtos: inside, or (location, offset, length) of a file
//                   beside it (importers/onnx/external.cpp)
//
// A file of 2^31 bytes or more is not a valid protobuf message.
#include "importers/onnx/onnx.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/text_hash.h"
#include "core/io/protobuf_wire.h"
#include "importers/file_graph.h"
#include "importers/onnx/forward.h"
#include "importers/onnx/infer.h"
#include "importers/onnx/names.h"
#include "importers/onnx/scan.h"
#include "importers/onnx/tensor.h"

#include <algorithm>
#include <climits>

namespace loadline {
namespace {

void add_metadata(OnnxModel& model, MetaGraph& graph) {
  TextSet keys = {std::string(kConfigKey)};  // a file cannot stand in for config.json
  const auto add = [&](std::string key, MetaValue value) {
    if (keys.insert(key).second)
      graph.metadata.push_back({std::move(key), std::move(value)});
    else
      graph.note(Severity::warning, {}, "metadata '{}' was left out: the key is taken",
                 safe_display(key, 100));
  };
  const auto add_text = [&](std::string key, std::string& text) {
    if (!text.empty()) add(std::move(key), std::move(text));
  };
  if (model.ir_version) add("ir_version", *model.ir_version);
  add_text("producer_name", model.producer_name);
  add_text("producer_version", model.producer_version);
  add_text("domain", model.domain);
  if (model.model_version) add("model_version", *model.model_version);
  add_text("doc_string", model.doc);
  for (const auto& [domain, version] : model.opsets)
    add("opset." + (domain.empty() ? "ai.onnx" : domain), version);
  for (auto& [key, value] : model.properties) add(std::move(key), std::move(value));
}

void note_sparse(const OnnxModel& model, MetaGraph& graph) {
  std::size_t count = 0;
  for (const OnnxGraph& one : model.graphs) count += one.sparse_initializers.size();
  if (count > 0)
    graph.note(Severity::info, {}, "{} sparse initialiser{} kept as values and indices", count,
               count == 1 ? "" : "s");
}

// Shapes may also be external data. Those tensors join the skeleton as a second part of its graph, which
// protobuf merges with the first. Of two tensors with one name the library takes the later.
void add_external_shapes(const Source& source, const OnnxModel& model,
                         const std::vector<std::optional<TensorId>>& tensor_of, const MetaGraph& graph,
                         std::string& skeleton) {
  constexpr std::uint64_t kMostElements = 1024;
  std::size_t left = 256;  // each costs opening a file
  OnnxSkeleton part;
  const std::size_t content = part.open(wire_tag(7, WireType::length));
  for (const OnnxTensorId id : model[*model.graph].initializers) {
    const OnnxTensor& tensor = model.tensor(id);
    const auto placed = tensor_of[static_cast<std::size_t>(id)];
    if (tensor.data_location != 1 || tensor.data_type > OnnxStandIns::kMostKnown || !placed) continue;
    const Tensor& known = graph.tensor(*placed);
    const Storage& storage = graph.storage(known.storage);
    if (dtype_info(known.dtype).kind != DTypeKind::integer || elements(known) > kMostElements ||
        storage.file == kNoFile)
      continue;
    const auto file = left > 0 ? source.open_sibling(external_location(tensor)) : nullptr;
    if (!file) break;
    --left;
    const std::size_t inner = part.open(wire_tag(5, WireType::length));
    for (const std::uint64_t dim : tensor.dims) part.number(wire_tag(1, WireType::varint), dim);
    part.element_type(wire_tag(2, WireType::varint), tensor.data_type);
    part.text(wire_tag(8, WireType::length), tensor.name);
    part.text(wire_tag(9, WireType::length), file->text_at(storage.offset, storage.bytes));
    part.close(inner);
  }
  part.close(content);
  skeleton += std::move(part).finish().bytes;
}

// The library's result. If there is none, a note gives the reason.
OnnxModel infer(const OnnxSkeleton::Result& skeleton, MetaGraph& graph) {
  const auto note = [&](std::string_view why) {
    graph.note(Severity::info, {}, "shapes were not inferred, only those in the file are known: {}",
               safe_display(why, 300));
    return OnnxModel();
  };
  const Inference inference = infer_shapes(skeleton.bytes, {});
  if (!inference.failure.empty()) return note(inference.failure);
  const auto bytes = std::as_bytes(std::span(inference.model));
  try {
    return scan_onnx(SourceFile::from_memory("shape inference", {bytes.begin(), bytes.end()})).model;
  } catch (const Error& error) {
    return note(error.what());
  }
}

// The tag bytes that can follow the ir_version of a ModelProto in a file.
bool is_model_tag(char c) {
  return std::string_view("\x12\x1A\x22\x28\x32\x3A\x42\x72\xA2\xCA\xD2").find(c) != std::string_view::npos;
}

// Whether bytes[1] is a length and text of that length follows: almost always a producer's name.
bool holds_text(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const std::size_t length = static_cast<unsigned char>(bytes[1]);
  const std::string_view text = bytes.substr(2);
  return length > 0 && length < 0x80 && text.size() > length && is_model_tag(text[length]) &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length),
                     [](char c) { return c >= 0x20 && c < 0x7F; });
}

}  // namespace

// Yes: an ir_version, a model's tag after it, and either the extension .onnx or the text of a producer's
// name. Maybe: the ir_version and a tag alone, or the extension and a plausible first byte.
Match sniff_onnx(std::string_view head, std::string_view path) {
  const bool named = path.ends_with(".onnx");
  constexpr char kMostVersion = 0x7F;
  const bool version =
      head.size() > 2 && head[0] == 0x08 && head[1] > 0 && head[1] < kMostVersion && is_model_tag(head[2]);
  if (version && (named || (head[2] == 0x12 && holds_text(head.substr(2))))) return Match::yes;
  if (version) return Match::maybe;
  return named && !head.empty() && (is_model_tag(head[0]) || head[0] == 0x08) ? Match::maybe : Match::no;
}

MetaGraph read_onnx(const Source& source) { return read_onnx(source, {}); }

MetaGraph read_onnx(const Source& source, const OnnxOptions& options) {
  const SourceFile& file = *source.file;
  if (file.size() >= INT_MAX)
    throw Error(ErrorCode::limit, {.file = file.path()},
                "has {} bytes; protobuf's limit is {}, larger models have external data", file.size(),
                INT_MAX);
  OnnxScan scan = scan_onnx(file);
  const OnnxModel& model = scan.model;
  if (!model.graph) throw Error(ErrorCode::malformed, {.file = file.path()}, "holds no graph: no ONNX model");

  MetaGraph graph = file_graph(file, "onnx");
  OnnxTensorPlacer placer(source, graph);
  std::vector<std::string> names = onnx_tensor_names(model, file.path());
  for (std::size_t i = 0; i < names.size(); ++i)
    placer.place(OnnxTensorId{static_cast<std::uint32_t>(i)}, model.tensors[i], std::move(names[i]));
  const std::vector<std::optional<TensorId>> tensor_of = placer.finish(model.tensors.size());

  note_sparse(model, graph);

  OnnxModel inferred;
  if (options.infer_shapes && needs_inference(model)) {
    add_external_shapes(source, model, tensor_of, graph, scan.skeleton.bytes);
    inferred = infer(scan.skeleton, graph);
  }
  add_forward(model, tensor_of, inferred, scan.skeleton.stand_ins, graph);
  add_metadata(scan.model, graph);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
