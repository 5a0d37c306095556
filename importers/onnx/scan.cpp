// ONNX wire format (onnx/onnx.in.proto, 1.23): fields by number, with the message each holds.
//
//   ModelProto     1 ir_version  2 producer_name  3 producer_version  4 domain  5 model_version  6 doc_string
//                  7 graph  8 opset_import{1 domain 2 version}  14 metadata_props{1 key 2 value}
//                  20 training_info{1 initialization 2 algorithm}  25 functions
//   GraphProto     1 node  2 name  5 initializer  11 input  12 output  13 value_info  15 sparse_initializer
//   FunctionProto  1 name  4 input  5 output  6 attribute  7 node  9 opset_import  10 domain
//                  11 attribute_proto  12 value_info  13 overload
//   NodeProto      1 input  2 output  3 name  4 op_type  5 attribute  6 doc_string  7 domain
//                  8 overload
//   AttributeProto 1 name  2 f  3 i  4 s  5 t  6 g  7 floats  8 ints  9 strings  10 tensors  11 graphs
//                  20 type  21 ref_attr_name  22 sparse_tensor  23 sparse_tensors
//   TensorProto    1 dims  2 data_type  3 segment  4 float_data  5 int32_data  6 string_data  7 int64_data
//                  8 name  9 raw_data  10 double_data  11 uint64_data  13 external_data{1 key 2 value}
//                  14 data_location
//   SparseTensor   1 values  2 indices  3 dims
//   ValueInfoProto 1 name  2 type{1 tensor_type{1 elem_type 2 shape{1 dim{1 dim_value 2 dim_param}}}}
#include "core/base/error.h"
#include "importers/onnx/scanner.h"

#include <algorithm>
#include <set>

namespace loadline::importers {
namespace {

// Limit on the memory for a file's structure. Real graphs need a few MiB; a file of a billion empty operators
// must not fill the memory.
constexpr std::uint64_t kMostKept = 256 << 20;
constexpr std::uint64_t kMostDoc = 1000;

}  // namespace

// Depth costs entries of stack_, not calls: input drives no recursion.
OnnxScan OnnxScanner::run() {
  stack_.push_back({&model_, {0, file_.size()}});
  while (!stack_.empty()) {
    if (const auto field = reader_.next()) {
      std::visit([&](auto message) { take(*message, *field); }, stack_.back().message);
      if (kept_ + skeleton_.size() > kMostKept)
        throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field->at},
                    "what describes the model takes more than {} bytes of memory", kMostKept);
      continue;
    }
    const Frame done = stack_.back();
    stack_.pop_back();
    if (stack_.empty()) break;
    std::visit([&](auto message) { finish(*message, done); }, done.message);
    if (done.emitted) skeleton_.close(done.content);
    if (done.dropped) skeleton_.cut(done.start);
    name_left_out();
    reader_.leave();
  }
  add_missing_opsets();
  return {std::move(model_), std::move(skeleton_).finish()};
}

// Shape inference fails on a model that does not import an operator's domain.
void OnnxScanner::add_missing_opsets() {
  std::set<std::string_view> imported = {""};
  for (const Opset& opset : model_.opsets) imported.insert(opset.first);
  for (const OnnxGraph& graph : model_.graphs)
    for (const OnnxNode& node : graph.nodes) {
      if (!imported.insert(node.domain).second) continue;
      const std::size_t content = skeleton_.open(length_tag(8));
      skeleton_.text(length_tag(1), node.domain);
      skeleton_.number(varint_tag(2), 1);
      skeleton_.close(content);
    }
}

void OnnxScanner::take(OnnxModel& model, const io::WireField& field) {
  switch (field.tag) {
    case varint_tag(1):
      model.ir_version = static_cast<std::int64_t>(field.value);
      return copy_number(field);
    case length_tag(2):
      return text(field, model.producer_name);
    case length_tag(3):
      return text(field, model.producer_version);
    case length_tag(4):
      return text(field, model.domain);
    case varint_tag(5):
      model.model_version = static_cast<std::int64_t>(field.value);
      return;
    case length_tag(6):
      model.doc = bytes_of({field.offset, std::min(field.bytes, kMostDoc)});
      return;
    case length_tag(7):
      return enter(field, merged_graph(model.graph));
    case length_tag(8):
      return enter(field, &add(model.opsets));
    case length_tag(14):
      return enter(field, &add(model.properties), Emit::no);
    case length_tag(20):
      return enter(field, &add(model.trainings), Emit::no);
    case length_tag(25): {
      OnnxFunction& function = add(model.functions);
      function.body = add_graph();
      return enter(field, &function);
    }
    default:
      return;
  }
}

void OnnxScanner::take(OnnxGraph& graph, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      return enter(field, &add(graph.nodes));
    case length_tag(5):
      charge(sizeof(OnnxTensorId));
      return enter(field, tensor(graph.initializers.emplace_back(add_tensor(field))));
    case length_tag(11):
      return enter(field, &add(graph.inputs));
    case length_tag(12):
      return enter(field, &add(graph.outputs));
    case length_tag(13):
      return enter(field, &add(graph.values));
    case length_tag(15):
      return enter(field, &add(graph.sparse_initializers));
    default:
      return;
  }
}

void OnnxScanner::take(OnnxFunction& function, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      return kept_text(field, function.name);
    case length_tag(4):
      charge(sizeof(std::string));
      return kept_text(field, function.inputs.emplace_back());
    case length_tag(5):
      charge(sizeof(std::string));
      return kept_text(field, function.outputs.emplace_back());
    case length_tag(10):
      return kept_text(field, function.domain);
    case length_tag(6):
      if (emitting()) skeleton_.text(field.tag, text(field));
      return;
    case length_tag(13):
      return kept_text(field, function.overload);
    case length_tag(7):
      return enter(field, &add(graph(function.body)->nodes));
    case length_tag(9):
      return enter(field, &function_opset_);
    case length_tag(11):
      return enter(field, &add(function.attributes));
    default:
      return;
  }
}

void OnnxScanner::take(OnnxTraining& training, const io::WireField& field) {
  if (field.tag == length_tag(1)) enter(field, merged_graph(training.initialization), Emit::no);
  if (field.tag == length_tag(2)) enter(field, merged_graph(training.algorithm), Emit::no);
}

void OnnxScanner::take(OnnxNode& node, const io::WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      charge(sizeof(std::string));
      return kept_text(field, node.inputs.emplace_back());
    case length_tag(2):
      charge(sizeof(std::string));
      return kept_text(field, node.outputs.emplace_back());
    case length_tag(3):
      return text(field, node.name);
    case length_tag(4):
      return kept_text(field, node.op_type);
    case length_tag(5):
      return enter(field, &add(node.attributes));
    case length_tag(6):
      node.doc = bytes_of({field.offset, std::min(field.bytes, kMostDoc)});
      return charge(node.doc.size());
    case length_tag(7):
      return kept_text(field, node.domain);
    case length_tag(8):
      return kept_text(field, node.overload);
    default:
      return;
  }
}

void OnnxScanner::take(OnnxValue& value, const io::WireField& field) {
  if (field.tag == length_tag(1)) kept_text(field, value.name);
  if (field.tag == length_tag(2)) enter(field, &value.type);
}

void OnnxScanner::take(OnnxType& type, const io::WireField& field) {
  if (field.tag == length_tag(1)) {
    tensor_type_ = {&type};
    enter(field, &tensor_type_);
  } else if (field.type() == io::WireType::length && emitting() && field.bytes <= kMostAttributeBytes) {
    // a sequence, map or optional: it has no size, but an operator may extract tensors from it
    skeleton_.text(field.tag, text(field));
  }
}

void OnnxScanner::take(const TensorType& view, const io::WireField& field) {
  if (field.tag == varint_tag(1)) {
    view.type->elem_type = static_cast<std::int32_t>(field.value);
    if (emitting()) skeleton_.element_type(field.tag, view.type->elem_type);
  }
  if (field.tag == length_tag(2)) {
    view.type->has_shape = true;
    shape_ = {view.type};
    enter(field, &shape_);
  }
}

void OnnxScanner::take(const Shape& view, const io::WireField& field) {
  if (field.tag != length_tag(1)) return;
  if (view.type->dims.size() >= kMostDimensions)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field.at},
                "a value has more than {} dimensions", kMostDimensions);
  enter(field, &add(view.type->dims));
}

void OnnxScanner::take(OnnxDim& dim, const io::WireField& field) {
  if (field.tag == varint_tag(1)) {
    dim = {static_cast<std::int64_t>(field.value), {}};
    copy_number(field);
  }
  if (field.tag == length_tag(2)) {
    dim.value.reset();
    kept_text(field, dim.name);
  }
}

void OnnxScanner::take(Pair& entry, const io::WireField& field) {
  if (field.tag == length_tag(1)) text(field, entry.first);
  if (field.tag == length_tag(2)) text(field, entry.second);
}

void OnnxScanner::take(Opset& opset, const io::WireField& field) {
  if (field.tag == length_tag(1)) kept_text(field, opset.first);
  if (field.tag == varint_tag(2)) {
    opset.second = static_cast<std::int64_t>(field.value);
    copy_number(field);
  }
}

OnnxScan scan_onnx(const io::SourceFile& file) { return OnnxScanner(file).run(); }

}  // namespace loadline::importers
