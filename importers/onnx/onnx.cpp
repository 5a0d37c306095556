// The importer: names of tensors, and all steps in their order.
#include "importers/onnx/onnx.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/names/file_names.h"
#include "core/io/protobuf_wire.h"
#include "importers/importer.h"
#include "importers/onnx/forward.h"
#include "importers/onnx/model.h"

#include <algorithm>
#include <climits>
#include <deque>
#include <iterator>
#include <optional>

#include <fmt/core.h>

namespace loadline::importers {

// --- Walks all graphs of a model without recursion, with a list of the graphs still to visit.

namespace {

class Namer {
 public:
  Namer(const OnnxModel& model, std::string_view file)
      : model_(model), file_(file), names_(model.tensors.size()) {}

  std::vector<std::string> run() {
    if (model_.graph) add_graph(*model_.graph, "");
    visit_all();  // the graph itself first: its names stay as they are
    for (const OnnxFunction& function : model_.functions) {
      const std::string overload = function.overload.empty() ? "" : ":" + function.overload;
      const std::string path = function.name + overload + "/";
      for (const OnnxAttribute& attribute : function.attributes) name_attribute(attribute, path);
      add_graph(function.body, path);
    }
    for (std::size_t i = 0; i < model_.trainings.size(); ++i) {
      const std::string path = i == 0 ? "training/" : fmt::format("training/{}/", i);
      const OnnxTraining& training = model_.trainings[i];
      if (training.initialization) add_graph(*training.initialization, path + "initialization/");
      if (training.algorithm) add_graph(*training.algorithm, path + "algorithm/");
    }
    visit_all();
    return std::move(names_);
  }

 private:
  struct Visit {
    OnnxGraphId graph;
    std::string path;
  };

  void add_graph(OnnxGraphId graph, std::string path) {
    charge(path);
    to_visit_.push_back({graph, std::move(path)});
  }

  void charge(std::string_view text) {
    bytes_ += text.size();
    if (bytes_ > kMostNameBytes)
      throw Error(ErrorCode::limit, {.file = std::string(file_)},
                  "the names of its tensors take more than {} bytes", kMostNameBytes);
  }

  void visit_all() {
    while (!to_visit_.empty()) {
      const Visit visit = std::move(to_visit_.back());
      to_visit_.pop_back();
      const OnnxGraph& graph = model_[visit.graph];
      name_initializers(graph, visit.path);
      for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const OnnxNode& node = graph.nodes[i];
        if (node.attributes.empty()) continue;
        const std::string path = visit.path + node_name(node, i) + "/";
        charge(path);
        for (const OnnxAttribute& attribute : node.attributes) name_attribute(attribute, path);
      }
    }
  }

  static std::string node_name(const OnnxNode& node, std::size_t position) {
    if (!node.name.empty()) return node.name;
    if (!node.outputs.empty() && !node.outputs.front().empty()) return node.outputs.front();
    return fmt::format("{}_{}", node.op_type, position);
  }

  void name_initializers(const OnnxGraph& graph, const std::string& path) {
    graph::TextViewSet here;
    const auto own_name = [&](OnnxTensorId id) -> const std::string& {
      const OnnxTensor& tensor = model_.tensor(id);
      if (!here.insert(tensor.name).second)
        throw Error(ErrorCode::malformed,
                    {.file = std::string(file_), .byte = tensor.at, .tensor = path + tensor.name},
                    "two initializers of one graph have this name");
      return tensor.name;
    };
    for (const OnnxTensorId id : graph.initializers) set(id, path + own_name(id));
    for (const OnnxSparse& sparse : graph.sparse_initializers) {
      const std::string name = path + (sparse.values ? own_name(*sparse.values) : "");
      if (sparse.values) set(*sparse.values, name);
      if (sparse.indices) set(*sparse.indices, name + "/indices");
    }
  }

  void name_sparse(const OnnxSparse& sparse, const std::string& path) {
    if (sparse.values) set(*sparse.values, path + "/values");
    if (sparse.indices) set(*sparse.indices, path + "/indices");
  }

  void name_attribute(const OnnxAttribute& attribute, const std::string& path) {
    const std::string name = path + attribute.name;
    if (attribute.tensor) set(*attribute.tensor, name);
    if (attribute.graph) add_graph(*attribute.graph, name + "/");
    if (attribute.sparse) name_sparse(*attribute.sparse, name);
    for (std::size_t i = 0; i < attribute.tensors.size(); ++i)
      set(attribute.tensors[i], fmt::format("{}/{}", name, i));
    for (std::size_t i = 0; i < attribute.graphs.size(); ++i)
      add_graph(attribute.graphs[i], fmt::format("{}/{}/", name, i));
    for (std::size_t i = 0; i < attribute.sparses.size(); ++i)
      name_sparse(attribute.sparses[i], fmt::format("{}/{}", name, i));
  }

  void set(OnnxTensorId id, std::string name) {
    charge(name);
    const std::size_t asked = name.size();
    std::string& given = names_[static_cast<std::size_t>(id)];
    given = taken_.take(std::move(name));
    if (given.size() != asked) charge(given);
  }

  const OnnxModel& model_;
  std::string_view file_;
  std::vector<std::string> names_;
  std::vector<Visit> to_visit_;
  UniqueNames taken_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> onnx_tensor_names(const OnnxModel& model, std::string_view file) {
  return Namer(model, file).run();
}

// --- ONNX (onnx/onnx 1.23: onnx.in.proto, docs/IR.md): the whole file is one protobuf message, a ModelProto,
// whose fields importers/onnx/scan.cpp lists.
//
//   08 V            ir_version, first where fields come in order; there is no magic
//   3A L graph      operators, and weights as TensorProtos: inside, or (location, offset, length) of a file
//                   beside it (importers/onnx/tensors.cpp)
//
// A file of 2^31 bytes or more is not a valid protobuf message.

namespace {

void add_metadata(OnnxModel& model, graph::MetaGraph& graph) {
  graph::TextSet keys = {std::string(graph::kConfigKey)};  // a file cannot stand in for config.json
  const auto add = [&](std::string key, graph::MetaValue value) {
    if (keys.insert(key).second)
      graph.metadata.push_back({std::move(key), std::move(value)});
    else
      graph.note(graph::Severity::warning, {}, "metadata '{}' was left out: the key is taken",
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

void note_sparse(const OnnxModel& model, graph::MetaGraph& graph) {
  std::size_t count = 0;
  for (const OnnxGraph& one : model.graphs) count += one.sparse_initializers.size();
  if (count > 0)
    graph.note(graph::Severity::info, {}, "{} sparse initializer{} kept as values and indices", count,
               count == 1 ? "" : "s");
}

// Shapes may also be external data. Those tensors join the skeleton as a second part of its graph, which
// protobuf merges with the first. Of two tensors with one name the library takes the later.
void add_external_shapes(const Source& source, const OnnxModel& model,
                         const std::vector<std::optional<graph::TensorId>>& tensor_of,
                         const graph::MetaGraph& graph, std::string& skeleton) {
  constexpr std::uint64_t kMostElements = 1024;
  std::size_t left = 256;  // each costs opening a file
  OnnxSkeleton part;
  const std::size_t content = part.open(io::wire_tag(7, io::WireType::length));
  for (const OnnxTensorId id : model[*model.graph].initializers) {
    const OnnxTensor& tensor = model.tensor(id);
    const auto placed = tensor_of[static_cast<std::size_t>(id)];
    if (tensor.data_location != 1 || tensor.data_type > OnnxStandIns::kMostKnown || !placed) continue;
    const graph::Tensor& known = graph.tensor(*placed);
    const graph::Storage& storage = graph.storage(known.storage);
    if (graph::dtype_info(known.dtype).kind != graph::DTypeKind::integer ||
        graph::elements(known) > kMostElements || storage.file == graph::kNoFile)
      continue;
    const auto file = left > 0 ? source.open_sibling(external_location(tensor)) : nullptr;
    if (!file) break;
    --left;
    const std::size_t inner = part.open(io::wire_tag(5, io::WireType::length));
    for (const std::uint64_t dim : tensor.dims) part.number(io::wire_tag(1, io::WireType::varint), dim);
    part.element_type(io::wire_tag(2, io::WireType::varint), tensor.data_type);
    part.text(io::wire_tag(8, io::WireType::length), tensor.name);
    part.text(io::wire_tag(9, io::WireType::length), file->text_at(storage.offset, storage.bytes));
    part.close(inner);
  }
  part.close(content);
  skeleton += std::move(part).finish().bytes;
}

// The library's result. If there is none, a note gives the reason.
OnnxModel infer(const OnnxSkeleton::Result& skeleton, std::span<const PictureSide> sides,
                graph::MetaGraph& graph) {
  const auto note = [&](std::string_view why) {
    graph.note(graph::Severity::info, {}, "shapes were not inferred, only those in the file are known: {}",
               safe_display(why, 300));
    return OnnxModel();
  };
  const Inference inference = infer_shapes(skeleton.bytes, {}, sides);
  if (!inference.failure.empty()) return note(inference.failure);
  const auto bytes = std::as_bytes(std::span(inference.model));
  try {
    return scan_onnx(io::SourceFile::from_memory("shape inference", {bytes.begin(), bytes.end()})).model;
  } catch (const Error& error) {
    return note(error.what());
  }
}

// If operators cannot take what follows from the usual sides of pictures, tries others; a note says what came
// of it. The sides, the graphs of the model and the inferred ones are then those that fit.
void check_sides(OnnxScan& scan, const std::deque<OnnxGraph>& untouched, const OnnxOptions& options,
                 std::vector<PictureSide>& sides, OnnxModel& inferred, graph::MetaGraph& graph) {
  const std::string conflict = shape_conflict(scan.model, inferred);
  if (conflict.empty() || sides.empty()) return;
  // of a side that nobody has named
  const auto chosen = [&](const PictureSide& side) {
    return std::ranges::any_of(options.picture_sides, [&](const NamedSide& named) {
      return named.name == side.name || named.name == open_size_name(side.input, side.position);
    });
  };
  const auto open = std::ranges::find_if_not(sides, chosen);
  const std::int64_t usual = open == sides.end() ? sides.front().pixels : open->pixels;
  constexpr std::uint64_t kOthers[] = {32,  64,  112, 128, 28,  96,  160, 192, 227, 240, 256,  260,
                                       288, 299, 300, 320, 336, 378, 384, 416, 448, 480, 512,  518,
                                       560, 600, 608, 640, 672, 768, 800, 896, 960, 980, 1024, 1280};
  // each trial infers all shapes anew; a clock would make the answer depend on the machine
  constexpr std::size_t kManyNodes = 1'000, kFewTrials = 8;
  const std::size_t nodes = scan.model[*scan.model.graph].nodes.size();
  const std::size_t trials = options.picture_side > 0 || open == sides.end() ? 0
                             : nodes > kManyNodes                            ? kFewTrials
                                                                             : std::size(kOthers);
  for (std::size_t i = 0; i < trials; ++i) {
    if (static_cast<std::int64_t>(kOthers[i]) == usual) continue;
    OnnxModel trial = scan.model;
    trial.graphs = untouched;
    const std::vector<PictureSide> tried = take_picture_sides(trial, kOthers[i], options.picture_sides);
    name_open_sizes(trial);
    graph::MetaGraph unnoted;
    OnnxModel answer = infer(scan.skeleton, tried, unnoted);
    if (!answer.graph || !shape_conflict(trial, answer, true).empty()) continue;
    graph.note(graph::Severity::info, {}, "pictures have sides of {}: with {}, {} cannot take its inputs",
               kOthers[i], usual, safe_display(conflict, 100));
    scan.model.graphs = std::move(trial.graphs);
    inferred = std::move(answer);
    sides = tried;
    return;
  }
  graph.note(graph::Severity::warning, {},
             "pictures with sides of {} do not fit: {} cannot take its inputs, so shapes behind it are wrong "
             "or unknown",
             usual, safe_display(conflict, 100));
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
  const bool named = graph::has_ending_of(path, "onnx");
  constexpr char kMostVersion = 0x7F;
  const bool version =
      head.size() > 2 && head[0] == 0x08 && head[1] > 0 && head[1] < kMostVersion && is_model_tag(head[2]);
  if (version && (named || (head[2] == 0x12 && holds_text(head.substr(2))))) return Match::yes;
  if (version) return Match::maybe;
  return named && !head.empty() && (is_model_tag(head[0]) || head[0] == 0x08) ? Match::maybe : Match::no;
}

graph::MetaGraph read_onnx(const Source& source) {
  return read_onnx(source, {.infer_shapes = !source.weights_only,
                            .picture_side = source.picture_side,
                            .picture_sides = source.picture_sides});
}

graph::MetaGraph read_onnx(const Source& source, const OnnxOptions& options) {
  const io::SourceFile& file = *source.file;
  if (file.size() >= INT_MAX)
    throw Error(ErrorCode::limit, {.file = file.path()},
                "has {} bytes; protobuf's limit is {}, larger models have external data", file.size(),
                INT_MAX);
  OnnxScan scan = scan_onnx(file);
  OpenPictures pictures;
  const std::vector<std::string> known = values_with_shapes(scan.model);
  std::optional<std::deque<OnnxGraph>> untouched;
  if (has_open_pictures(scan.model)) untouched = scan.model.graphs;
  pictures.sides = take_picture_sides(scan.model, options.picture_side, options.picture_sides);
  if (options.picture_side > 0 && pictures.sides.empty())
    throw Error(ErrorCode::usage, {.file = file.path()},
                "a side of pictures was chosen, and the file has no picture of which a side is open");
  pictures.known.insert(known.begin(), known.end());
  name_open_sizes(scan.model);
  const OnnxModel& model = scan.model;
  if (!model.graph) throw Error(ErrorCode::malformed, {.file = file.path()}, "holds no graph: no ONNX model");

  graph::MetaGraph graph = file_graph(file, "onnx");
  OnnxTensorPlacer placer(source, graph);
  std::vector<std::string> names = onnx_tensor_names(model, file.path());
  for (std::size_t i = 0; i < names.size(); ++i)
    placer.place(OnnxTensorId{static_cast<std::uint32_t>(i)}, model.tensors[i], std::move(names[i]));
  const std::vector<std::optional<graph::TensorId>> tensor_of = placer.finish(model.tensors.size());

  note_sparse(model, graph);

  OnnxModel inferred;
  if (options.infer_shapes && needs_inference(model)) {
    add_external_shapes(source, model, tensor_of, graph, scan.skeleton.bytes);
    inferred = infer(scan.skeleton, pictures.sides, graph);
    if (!pictures.sides.empty()) {
      graph::MetaGraph again;  // its notes are the same
      const OnnxModel open = infer(scan.skeleton, {}, again);
      if (untouched && shape_conflict(scan.model, open).empty())
        check_sides(scan, *untouched, options, pictures.sides, inferred, graph);
      for (std::string& name : values_with_shapes(open)) pictures.known.insert(std::move(name));
    }
  }
  add_forward(model, tensor_of, inferred, scan.skeleton.stand_ins, pictures, graph);
  add_metadata(scan.model, graph);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline::importers
