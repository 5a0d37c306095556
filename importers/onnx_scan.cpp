// ONNX wire format (onnx/onnx.in.proto, 1.23): fields by number, with the message each holds.
//
//   ModelProto     1 ir_version  2 producer_name  3 producer_version  4 domain  5 model_version  6 doc_string
//                  7 graph  8 opset_import{1 domain 2 version}  14 metadata_props{1 key 2 value}
//                  20 training_info{1 initialization 2 algorithm}  25 functions
//   GraphProto     1 node  2 name  5 initializer  11 input  12 output  13 value_info  15 sparse_initializer
//   FunctionProto  1 name  4 input  5 output  6 attribute  7 node  9 opset_import  10 domain
//                  11 attribute_proto  12 value_info  13 overload
//   NodeProto      1 input  2 output  3 name  4 op_type  5 attribute  7 domain  8 overload
//   AttributeProto 1 name  2 f  3 i  4 s  5 t  6 g  7 floats  8 ints  9 strings  10 tensors  11 graphs
//                  20 type  21 ref_attr_name  22 sparse_tensor  23 sparse_tensors
//   TensorProto    1 dims  2 data_type  3 segment  4 float_data  5 int32_data  6 string_data  7 int64_data
//                  8 name  9 raw_data  10 double_data  11 uint64_data  13 external_data{1 key 2 value}
//                  14 data_location
//   SparseTensor   1 values  2 indices  3 dims
//   ValueInfoProto 1 name  2 type{1 tensor_type{1 elem_type 2 shape{1 dim{1 dim_value 2 dim_param}}}}
#include "importers/onnx_scan.h"

#include "core/base/error.h"
#include "core/graph/dtype.h"
#include "importers/protobuf_wire.h"

#include <algorithm>
#include <limits>
#include <variant>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::uint32_t varint_tag(std::uint32_t number) { return wire_tag(number, WireType::varint); }
constexpr std::uint32_t length_tag(std::uint32_t number) { return wire_tag(number, WireType::length); }
constexpr std::uint32_t fixed32_tag(std::uint32_t number) { return wire_tag(number, WireType::fixed32); }
constexpr std::uint32_t fixed64_tag(std::uint32_t number) { return wire_tag(number, WireType::fixed64); }

// Memory for what is kept of a file. Real graphs take a few MiB; a file made of a billion empty operators
// must not take everything.
constexpr std::uint64_t kMostKept = 512 << 20;
constexpr std::uint64_t kMostText = 64 << 20;
constexpr std::uint64_t kMostDoc = 1000;
// What shape inference may need of attributes and tensors. Axes, pads and shapes are far smaller.
constexpr std::uint64_t kMostAttributeText = 1024;
constexpr std::uint64_t kMostAttributeBytes = 8 << 10;
constexpr std::uint64_t kMostInteger = 1024;  // elements
constexpr std::uint64_t kMostFloating = 16;
constexpr std::uint64_t kMostTensorBytes = 20 << 10;

// Types whose values can be shapes, axes, counts (integers) or scales (floats).
std::uint64_t most_elements(std::int64_t data_type) {
  const auto known = dtype_from_onnx(data_type);
  if (!known || data_type > OnnxStandIns::kMostKnown) return 0;
  const DTypeKind kind = dtype_info(*known).kind;
  if (kind == DTypeKind::integer || kind == DTypeKind::boolean) return kMostInteger;
  return kind == DTypeKind::floating ? kMostFloating : 0;
}

using Pair = std::pair<std::string, std::string>;
using Opset = std::pair<std::string, std::int64_t>;

// Messages with a field or two that need no struct of their own.
struct Shape {
  OnnxType* type;
};
struct TensorType {
  OnnxType* type;
};

class Scanner {
 public:
  explicit Scanner(const SourceFile& file) : file_(file), reader_(file, 0, file.size()) {}

  // Depth costs entries of stack_, not calls: input drives no recursion.
  OnnxScan run() {
    stack_.push_back({&model_, {0, file_.size()}});
    while (!stack_.empty()) {
      if (const auto field = reader_.next()) {
        std::visit([&](auto message) { take(*message, *field); }, stack_.back().message);
        if (kept_ + skeleton_.size() > kMostKept)
          throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field->at},
                      fmt::format("what describes the model takes more than {} bytes of memory", kMostKept));
        continue;
      }
      const Frame done = stack_.back();
      stack_.pop_back();
      if (stack_.empty()) break;
      std::visit([&](auto message) { finish(*message, done); }, done.message);
      if (done.emitted) skeleton_.close(done.content);
      if (done.dropped) skeleton_.cut(done.start);
      reader_.leave();
    }
    return {std::move(model_), std::move(skeleton_).finish()};
  }

 private:
  using Message = std::variant<OnnxModel*, OnnxGraph*, OnnxFunction*, OnnxTraining*, OnnxNode*,
                               OnnxAttribute*, OnnxTensor*, OnnxSparse*, OnnxValue*, OnnxType*, OnnxDim*,
                               Pair*, Opset*, const TensorType*, const Shape*>;

  // A message that is being read. `message` points into model_ (or at one of the views below): what it
  // lies in does not grow while the scan is inside.
  struct Frame {
    Message message;
    OnnxRange range;
    bool emitted = true;      // into the skeleton
    std::size_t start = 0;    // in the skeleton: of the message with its tag,
    std::size_t content = 0;  // of what is in it
    bool dropped = false;     // not in the skeleton after all
    std::uint64_t attribute_bytes = 0;
    std::size_t number_at = 0;  // in the skeleton: of an attribute's number, 0 if it has none
    std::int64_t number = 0;
  };

  enum class Emit { no, yes };

  void enter(const WireField& field, Message message, Emit emit = Emit::yes) {
    Frame frame{message, {field.offset, field.bytes}};
    frame.emitted = emit == Emit::yes && stack_.back().emitted && !stack_.back().dropped;
    frame.start = skeleton_.size();
    if (frame.emitted) frame.content = skeleton_.open(field.tag);
    reader_.enter(field);
    stack_.push_back(frame);
  }

  void charge(std::uint64_t bytes) { kept_ += bytes; }

  template <typename T>
  T& add(std::vector<T>& list) {
    charge(sizeof(T));
    return list.emplace_back();
  }

  OnnxTensorId add_tensor(const WireField& field) {
    charge(sizeof(OnnxTensor));
    model_.tensors.emplace_back().at = field.offset;
    return OnnxTensorId{static_cast<std::uint32_t>(model_.tensors.size() - 1)};
  }
  OnnxGraphId add_graph() {
    charge(sizeof(OnnxGraph));
    model_.graphs.emplace_back();
    return OnnxGraphId{static_cast<std::uint32_t>(model_.graphs.size() - 1)};
  }
  OnnxTensor* tensor(OnnxTensorId id) { return &model_.tensors[static_cast<std::size_t>(id)]; }
  OnnxGraph* graph(OnnxGraphId id) { return &model_.graphs[static_cast<std::size_t>(id)]; }
  // A singular message that occurs again is continued: protobuf merges them.
  OnnxTensor* merged_tensor(std::optional<OnnxTensorId>& id, const WireField& field) {
    if (!id) id = add_tensor(field);
    return tensor(*id);
  }
  OnnxGraph* merged_graph(std::optional<OnnxGraphId>& id) {
    if (!id) id = add_graph();
    return graph(*id);
  }

  std::string text(const WireField& field) {
    charge(field.bytes);
    return reader_.text(field, kMostText, "a name or a text");
  }
  std::string kept_text(const WireField& field) {
    std::string held = text(field);
    if (emitting()) skeleton_.text(field.tag, held);
    return held;
  }
  void copy_number(const WireField& field) {
    if (emitting()) skeleton_.number(field.tag, field.value);
  }
  bool emitting() const { return stack_.back().emitted && !stack_.back().dropped; }
  // Everything read by field is undone at the message's end.
  void drop() { stack_.back().dropped = stack_.back().emitted; }

  std::string bytes_of(OnnxRange range) {
    std::string bytes(static_cast<std::size_t>(range.bytes), '\0');
    file_.read_at(range.offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  void take(OnnxModel& model, const WireField& field);
  void take(OnnxGraph& graph, const WireField& field);
  void take(OnnxFunction& function, const WireField& field);
  void take(OnnxTraining& training, const WireField& field);
  void take(OnnxNode& node, const WireField& field);
  void take(OnnxAttribute& attribute, const WireField& field);
  void take_plain(OnnxAttribute& attribute, const WireField& field);
  void take(OnnxTensor& tensor, const WireField& field);
  void take_values(OnnxTensor& tensor, const WireField& field);
  void take(OnnxSparse& sparse, const WireField& field);
  void take(OnnxValue& value, const WireField& field);
  void take(OnnxType& type, const WireField& field);
  void take(const TensorType& view, const WireField& field);
  void take(const Shape& view, const WireField& field);
  void take(OnnxDim& dim, const WireField& field);
  void take(Pair& entry, const WireField& field);
  void take(Opset& opset, const WireField& field);

  template <typename T>
  void finish(T&, const Frame&) {}
  void finish(OnnxAttribute& a, const Frame& frame);
  void finish(OnnxTensor& tensor, const Frame& frame);

  void add_dimension(OnnxTensor& tensor, std::uint64_t at, std::uint64_t value);
  void copy_attribute_bytes(const WireField& field, std::uint64_t bytes);

  const SourceFile& file_;
  WireReader reader_;
  OnnxModel model_;
  OnnxSkeleton skeleton_;
  std::vector<Frame> stack_;
  // Types do not nest, so one view of each kind is enough.
  TensorType tensor_type_{nullptr};
  Shape shape_{nullptr};
  Opset function_opset_;  // read for the skeleton alone
  std::uint64_t kept_ = 0;
};

void Scanner::take(OnnxModel& model, const WireField& field) {
  switch (field.tag) {
    case varint_tag(1):
      model.ir_version = static_cast<std::int64_t>(field.value);
      return copy_number(field);
    case length_tag(2):
      model.producer_name = text(field);
      return;
    case length_tag(3):
      model.producer_version = text(field);
      return;
    case length_tag(4):
      model.domain = text(field);
      return;
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

void Scanner::take(OnnxGraph& graph, const WireField& field) {
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

void Scanner::take(OnnxFunction& function, const WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      function.name = kept_text(field);
      return;
    case length_tag(4):
    case length_tag(5):
    case length_tag(6):
    case length_tag(10):
    case length_tag(13):
      if (emitting()) skeleton_.text(field.tag, text(field));
      return;
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

void Scanner::take(OnnxTraining& training, const WireField& field) {
  if (field.tag == length_tag(1)) enter(field, merged_graph(training.initialization), Emit::no);
  if (field.tag == length_tag(2)) enter(field, merged_graph(training.algorithm), Emit::no);
}

void Scanner::take(OnnxNode& node, const WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      charge(sizeof(std::string));
      node.inputs.push_back(kept_text(field));
      return;
    case length_tag(2):
      charge(sizeof(std::string));
      node.outputs.push_back(kept_text(field));
      return;
    case length_tag(3):
      node.name = text(field);
      return;
    case length_tag(4):
      node.op_type = kept_text(field);
      return;
    case length_tag(5):
      return enter(field, &add(node.attributes));
    case length_tag(7):
      node.domain = kept_text(field);
      return;
    case length_tag(8):
      if (emitting()) skeleton_.text(field.tag, text(field));
      return;
    default:
      return;
  }
}

void Scanner::take(OnnxAttribute& attribute, const WireField& field) {
  switch (field.tag) {
    case length_tag(5):
      return enter(field, merged_tensor(attribute.tensor, field));
    case length_tag(6):
      return enter(field, merged_graph(attribute.graph));
    case length_tag(10):
      charge(sizeof(OnnxTensorId));
      return enter(field, tensor(attribute.tensors.emplace_back(add_tensor(field))));
    case length_tag(11):
      charge(sizeof(OnnxGraphId));
      return enter(field, graph(attribute.graphs.emplace_back(add_graph())));
    case length_tag(22):
      if (!attribute.sparse) attribute.sparse.emplace();
      return enter(field, &*attribute.sparse);
    case length_tag(23):
      return enter(field, &add(attribute.sparses));
    default:
      return take_plain(attribute, field);
  }
}

// What is kept for shape inference alone.
void Scanner::take_plain(OnnxAttribute& attribute, const WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      attribute.name = kept_text(field);
      return;
    case varint_tag(3):
      stack_.back().number_at = skeleton_.size();
      stack_.back().number = static_cast<std::int64_t>(field.value);
      return copy_number(field);
    case varint_tag(20):
      return copy_number(field);
    case fixed32_tag(2):
    case fixed32_tag(7):
      return copy_attribute_bytes(field, 5);
    case varint_tag(8):
      return copy_attribute_bytes(field, 2);
    case length_tag(4):
    case length_tag(9):
      return field.bytes <= kMostAttributeText ? copy_attribute_bytes(field, field.bytes) : drop();
    case length_tag(7):
    case length_tag(8):
    case length_tag(21):
      return copy_attribute_bytes(field, field.bytes);
    default:
      return;
  }
}

// An attribute too large to be copied whole is left out whole: half a list would give wrong shapes.
void Scanner::copy_attribute_bytes(const WireField& field, std::uint64_t bytes) {
  Frame& frame = stack_.back();
  frame.attribute_bytes += bytes;
  if (frame.attribute_bytes > kMostAttributeBytes) return drop();
  if (!emitting()) return;
  if (field.type() == WireType::length)
    skeleton_.text(field.tag, reader_.text(field, kMostAttributeBytes, "an attribute"));
  else if (field.type() == WireType::varint)
    skeleton_.number(field.tag, field.value);
  else
    skeleton_.fixed32(field.tag, static_cast<std::uint32_t>(field.value));
}

// Element types hide in numbers, too: Cast's "to".
void Scanner::finish(OnnxAttribute& a, const Frame& frame) {
  const bool names_type = a.name == "to" || a.name == "dtype" || a.name == "output_dtype";
  if (names_type && frame.emitted && frame.number_at != 0 && frame.number > OnnxStandIns::kMostKnown) {
    // again, as an element type: of a singular field the last one counts
    skeleton_.element_type(varint_tag(3), frame.number);
  }
  if (a.tensor || a.graph || a.sparse || !a.tensors.empty() || !a.graphs.empty() || !a.sparses.empty())
    return;
  // the usual case: nothing to keep. The attribute is the last of its owner, one below it on the stack.
  const Message owner = stack_.back().message;
  auto& attributes = std::holds_alternative<OnnxNode*>(owner) ? std::get<OnnxNode*>(owner)->attributes
                                                              : std::get<OnnxFunction*>(owner)->attributes;
  attributes.pop_back();
  if (attributes.empty()) attributes.shrink_to_fit();
  kept_ -= sizeof(OnnxAttribute);
}

void Scanner::add_dimension(OnnxTensor& tensor, std::uint64_t at, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error(
        ErrorCode::malformed, {.file = file_.path(), .byte = at, .tensor = tensor.name},
        fmt::format("dimension {} is negative: {}", tensor.dims.size(), static_cast<std::int64_t>(value)));
  if (tensor.dims.size() >= kMostDimensions)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = at, .tensor = tensor.name},
                fmt::format("has more than {} dimensions", kMostDimensions));
  charge(sizeof value);
  tensor.dims.push_back(value);
  if (emitting()) skeleton_.number(varint_tag(1), value);
}

void Scanner::take(OnnxTensor& tensor, const WireField& field) {
  switch (field.tag) {
    case varint_tag(1):
      return add_dimension(tensor, field.at, field.value);
    case length_tag(1):
      reader_.enter(field);
      while (!reader_.at_end()) add_dimension(tensor, field.at, reader_.varint());
      return reader_.leave();
    case varint_tag(2):
      tensor.data_type = static_cast<std::int32_t>(field.value);
      if (emitting()) skeleton_.element_type(field.tag, tensor.data_type);
      return;
    case length_tag(3):
      tensor.segment = true;
      return;
    case length_tag(8):
      tensor.name = kept_text(field);
      return;
    case length_tag(9):
      tensor.raw = OnnxRange{field.offset, field.bytes};
      tensor.value_fields |= 1U << field.number();
      return;
    case length_tag(13):
      return enter(field, &add(tensor.external), Emit::no);
    case varint_tag(14):
      tensor.data_location = static_cast<std::int32_t>(field.value);
      return;
    default:
      return take_values(tensor, field);
  }
}

// Typed values are counted, not read. Fields 4 float, 5 int32, 6 string, 7 int64, 10 double, 11 uint64.
void Scanner::take_values(OnnxTensor& tensor, const WireField& field) {
  bool packed = false;
  switch (field.tag) {
    case length_tag(4):
    case length_tag(5):
    case length_tag(7):
    case length_tag(10):
    case length_tag(11):
      if (field.bytes == 0) return;
      packed = true;
      break;
    case fixed32_tag(4):
    case varint_tag(5):
    case length_tag(6):
    case varint_tag(7):
    case fixed64_tag(10):
    case varint_tag(11):
      break;
    default:
      return;
  }
  tensor.value_fields |= 1U << field.number();
  OnnxNumbers& numbers = tensor.numbers;
  const OnnxRange message = stack_.back().range;
  if (numbers.message.offset != message.offset && numbers.runs + numbers.singles > 0) numbers.spread = true;
  numbers.message = message;
  if (packed) {
    numbers.runs += 1;
    numbers.packed_bytes += field.bytes;
    numbers.run = {field.offset, field.bytes};
    return;
  }
  if (numbers.singles++ == 0) numbers.run.offset = field.at;
  if (field.type() == WireType::length) numbers.run.bytes = field.end() - numbers.run.offset;
}

// Small tensors that shapes may depend on go into the skeleton as they are, values and all.
void Scanner::finish(OnnxTensor& tensor, const Frame& frame) {
  if (!frame.emitted || frame.range.bytes > kMostTensorBytes || tensor.data_location != 0) return;
  const auto count = element_count(tensor.dims);
  if (!count || *count > most_elements(tensor.data_type)) return;
  skeleton_.cut(frame.content);
  skeleton_.fields(bytes_of(frame.range));
}

void Scanner::take(OnnxSparse& sparse, const WireField& field) {
  switch (field.tag) {
    case length_tag(1):
      return enter(field, merged_tensor(sparse.values, field));
    case length_tag(2):
      return enter(field, merged_tensor(sparse.indices, field));
    case varint_tag(3):
      return copy_number(field);
    case length_tag(3):
      reader_.enter(field);
      while (!reader_.at_end())
        if (const std::uint64_t value = reader_.varint(); emitting()) skeleton_.number(varint_tag(3), value);
      return reader_.leave();
    default:
      return;
  }
}

void Scanner::take(OnnxValue& value, const WireField& field) {
  if (field.tag == length_tag(1)) value.name = kept_text(field);
  if (field.tag == length_tag(2)) enter(field, &value.type);
}

void Scanner::take(OnnxType& type, const WireField& field) {
  if (field.tag == length_tag(1)) {
    tensor_type_ = {&type};
    enter(field, &tensor_type_);
  } else if (field.type() == WireType::length && emitting() && field.bytes <= kMostAttributeBytes) {
    // a sequence, a map, an optional: no size, but an operator may take it apart
    skeleton_.text(field.tag, text(field));
  }
}

void Scanner::take(const TensorType& view, const WireField& field) {
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

void Scanner::take(const Shape& view, const WireField& field) {
  if (field.tag != length_tag(1)) return;
  if (view.type->dims.size() >= kMostDimensions)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field.at},
                fmt::format("a value has more than {} dimensions", kMostDimensions));
  enter(field, &add(view.type->dims));
}

void Scanner::take(OnnxDim& dim, const WireField& field) {
  if (field.tag == varint_tag(1)) {
    dim = {static_cast<std::int64_t>(field.value), {}};
    copy_number(field);
  }
  if (field.tag == length_tag(2)) dim = {std::nullopt, kept_text(field)};
}

void Scanner::take(Pair& entry, const WireField& field) {
  if (field.tag == length_tag(1)) entry.first = text(field);
  if (field.tag == length_tag(2)) entry.second = text(field);
}

void Scanner::take(Opset& opset, const WireField& field) {
  if (field.tag == length_tag(1)) opset.first = kept_text(field);
  if (field.tag == varint_tag(2)) {
    opset.second = static_cast<std::int64_t>(field.value);
    copy_number(field);
  }
}

}  // namespace

OnnxScan scan_onnx(const SourceFile& file) { return Scanner(file).run(); }

}  // namespace loadline
