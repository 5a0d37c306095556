// Shape inference by onnx's library: the model without its weights, what runtimes do not infer.

#include "core/base/text.h"
#include "core/io/protobuf_wire.h"
#include "importers/onnx/forward.h"
#include "importers/onnx/model.h"

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <exception>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/core.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

namespace loadline::importers {

// --- Writes protobuf wire data with lengths of a fixed width.

namespace {

// A length as a varint of five bytes, the longest that protobuf's readers accept for a length.
constexpr std::size_t kLengthBytes = 5;

// Candidates for stand-ins, the least used types first.
constexpr std::array<std::int64_t, 9> kStandIns = {4, 12, 13, 5, 15, 14, 11, 2, 3};

}  // namespace

std::int64_t OnnxStandIns::original(std::int64_t code) const {
  if (code < 0 || code > kMostKnown) return 0;
  const std::int64_t held = original_of[static_cast<std::size_t>(code)];
  return held == 0 ? code : std::max<std::int64_t>(held, 0);
}

void OnnxSkeleton::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

std::size_t OnnxSkeleton::open(std::uint32_t tag) {
  varint(tag);
  bytes_.append(kLengthBytes, '\0');
  return bytes_.size();
}

void OnnxSkeleton::close(std::size_t content) {
  std::size_t length = bytes_.size() - content;
  for (std::size_t i = 0; i < kLengthBytes; ++i, length >>= 7)
    bytes_[content - kLengthBytes + i] =
        static_cast<char>((length & 0x7F) | (i + 1 < kLengthBytes ? 0x80 : 0));
}

void OnnxSkeleton::number(std::uint32_t tag, std::uint64_t value) {
  varint(tag);
  varint(value);
}

void OnnxSkeleton::fixed32(std::uint32_t tag, std::uint32_t value) {
  varint(tag);
  for (int i = 0; i < 4; ++i, value >>= 8) bytes_ += static_cast<char>(value & 0xFF);
}

void OnnxSkeleton::text(std::uint32_t tag, std::string_view text) {
  varint(tag);
  varint(text.size());
  bytes_ += text;
}

void OnnxSkeleton::element_type(std::uint32_t tag, std::int64_t code) {
  varint(tag);
  const bool known = code >= 0 && code <= OnnxStandIns::kMostKnown;
  if (known)
    used_[static_cast<std::size_t>(code)] = true;
  else
    patches_.push_back({bytes_.size(), code});
  bytes_ += static_cast<char>(known ? code : 0);
}

void OnnxSkeleton::cut(std::size_t size) {
  bytes_.resize(size);
  while (!patches_.empty() && patches_.back().position >= size) patches_.pop_back();
}

OnnxSkeleton::Result OnnxSkeleton::finish() && {
  Result result;
  std::map<std::int64_t, std::int64_t> chosen;
  auto next = kStandIns.begin();
  for (const Patch& patch : patches_) {
    const auto [found, fresh] = chosen.try_emplace(patch.code, kStandIns.back());
    if (fresh) {
      next = std::find_if(next, kStandIns.end(),
                          [&](std::int64_t code) { return !used_[static_cast<std::size_t>(code)]; });
      const bool alone = next != kStandIns.end();
      if (alone) found->second = *next++;
      result.stand_ins.original_of[static_cast<std::size_t>(found->second)] = alone ? patch.code : -1;
    }
    bytes_[patch.position] = static_cast<char>(found->second);
  }
  result.bytes = std::move(bytes_);
  return result;
}

// --- Runs onnx 1.12's shape inference.

namespace {

using Clock = std::chrono::steady_clock;

// The library knows opset 17. Operators that came later, or changed what their shapes follow from, are
// written as known ones with results of the same shapes.
struct StandInOperator {
  std::string_view kind;
  std::int64_t since;  // opset
  std::string_view as;
  int inputs;  // those that count, from the first; 0: all
};
constexpr StandInOperator kStandInOperators[] = {
    {"ReduceMean", 18, "ReduceSum", 0},
    {"ReduceMax", 18, "ReduceSum", 0},
    {"ReduceMin", 18, "ReduceSum", 0},
    {"ReduceProd", 18, "ReduceSum", 0},
    {"ReduceL1", 18, "ReduceSum", 0},
    {"ReduceL2", 18, "ReduceSum", 0},
    {"ReduceLogSum", 18, "ReduceSum", 0},
    {"ReduceLogSumExp", 18, "ReduceSum", 0},
    {"ReduceSumSquare", 18, "ReduceSum", 0},
    {"BitwiseAnd", 18, "Add", 0},
    {"BitwiseOr", 18, "Add", 0},
    {"BitwiseXor", 18, "Add", 0},
    {"BitwiseNot", 18, "Identity", 1},
    {"Mish", 18, "Identity", 1},
    {"GroupNormalization", 18, "Identity", 1},
    {"Gelu", 20, "Identity", 1},
    {"RMSNormalization", 23, "Identity", 1},
    {"RotaryEmbedding", 23, "Identity", 1},
    {"Swish", 24, "Identity", 1},
    {"TensorScatter", 24, "Identity", 1},
};

// Attributes that the library does not know and that change nothing of shapes and types; with a value, only
// if they have it: a number, numbers that are all that one, or a text. Of a stand-in, under its own name.
struct HarmlessAttribute {
  std::string_view kind;
  std::string_view name;
  std::string_view value = {};
};
constexpr HarmlessAttribute kHarmless[] = {
    {"AveragePool", "dilations", "1"},
    {"Cast", "round_mode"},
    {"Cast", "saturate"},
    {"CastLike", "round_mode"},
    {"CastLike", "saturate"},
    {"DequantizeLinear", "block_size"},
    {"DequantizeLinear", "output_dtype", "0"},
    {"Gelu", "approximate"},
    {"GroupNormalization", "epsilon"},
    {"GroupNormalization", "num_groups"},
    {"GroupNormalization", "stash_type"},
    {"LpPool", "ceil_mode", "0"},
    {"LpPool", "dilations", "1"},
    {"QuantizeLinear", "block_size"},
    {"QuantizeLinear", "output_dtype", "0"},
    {"QuantizeLinear", "precision"},
    {"QuantizeLinear", "saturate"},
    {"RMSNormalization", "axis"},
    {"RMSNormalization", "epsilon"},
    {"RMSNormalization", "stash_type"},
    {"Range", "stash_type"},
    {"Resize", "antialias"},
    {"Resize", "keep_aspect_ratio_policy", "stretch"},
    {"RotaryEmbedding", "interleaved"},
    {"RotaryEmbedding", "num_heads"},
    {"RotaryEmbedding", "rotary_embedding_dim"},
    {"SpaceToDepth", "mode"},
    {"Split", "num_outputs"},  // as many as there are; parts of two sizes are an error of the library
    {"Swish", "alpha"},
    {"TensorScatter", "axis"},
    {"TensorScatter", "mode"},
};

bool is_harmless(std::string_view kind, const onnx::AttributeProto& attribute) {
  return std::ranges::any_of(kHarmless, [&](const HarmlessAttribute& row) {
    if (row.kind != kind || row.name != attribute.name()) return false;
    const auto number = text_as<std::int64_t>(row.value);
    if (row.value.empty() || attribute.s() == row.value) return true;
    return number && attribute.i() == *number * static_cast<int>(attribute.ints_size() == 0) &&
           std::ranges::all_of(attribute.ints(), [&](std::int64_t one) { return one == *number; });
  });
}

// Whether the last window of a pool may begin behind the input: the library counts such a window, and newer
// versions of it do not.
bool may_count_empty_window(const onnx::NodeProto& node) {
  std::vector<std::int64_t> kernel, strides;
  bool ceils = false, pads = false;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const std::vector<std::int64_t> list(attribute.ints().begin(), attribute.ints().end());
    if (attribute.name() == "ceil_mode") ceils = attribute.i() != 0;
    if (attribute.name() == "kernel_shape") kernel = list;
    if (attribute.name() == "strides") strides = list;
    if (attribute.name() == "pads")
      pads = std::ranges::any_of(list, [](std::int64_t pad) { return pad != 0; });
    if (attribute.name() == "auto_pad") pads = pads || attribute.s() != "NOTSET";
  }
  if (!ceils || !node.op_type().ends_with("Pool")) return false;
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (i >= kernel.size() || kernel[i] < strides[i]) return true;
  return pads;
}

constexpr const char* kSetAside = "set aside";  // a domain that has no operators

// Sets an operator aside that has an attribute which the library does not know or takes otherwise: it would
// infer another shape. Adds "Resize.axes" to `unread`.
void check_attributes(onnx::NodeProto& node, std::string_view kind, std::int64_t opset,
                      std::set<std::string>& unread) {
  const onnx::OpSchema* const schema =
      opset > 0 && opset <= INT_MAX
          ? onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), onnx::ONNX_DOMAIN)
          : nullptr;
  if (schema == nullptr) return;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (schema->attributes().contains(attribute.name()) || is_harmless(kind, attribute)) continue;
    std::string_view name = attribute.name();
    if (name.starts_with(kLeftOutAttribute)) name.remove_prefix(kLeftOutAttribute.size());
    unread.insert(fmt::format("{}.{}", kind, name));
    node.set_domain(kSetAside);
  }
  if (may_count_empty_window(node)) {
    unread.insert(fmt::format("{}.ceil_mode", kind));
    node.set_domain(kSetAside);
  }
}

// Gives a name to each size of an input that has none, and forgets negative sizes. The first size of all
// inputs is one: OnnxSymbols takes each for the batch.
void name_open_sizes(onnx::GraphProto& graph) {
  std::string batch;
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (!input.type().tensor_type().has_shape()) continue;
    onnx::TensorShapeProto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i)
      if (auto& dim = *shape.mutable_dim(i);
          dim.has_dim_value() ? dim.dim_value() < 0 : dim.dim_param().empty()) {
        const std::string name = open_size_name(input.name(), static_cast<std::size_t>(i));
        if (i == 0 && batch.empty()) batch = name;
        dim.set_dim_param(i == 0 ? batch : name);
      }
  }
  for (auto* const list : {graph.mutable_value_info(), graph.mutable_output()})
    for (onnx::ValueInfoProto& value : *list)
      if (value.type().tensor_type().has_shape())
        for (auto& dim : *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
          if (dim.has_dim_value() && dim.dim_value() < 0) dim.clear_value();
}

// Replaces what the library knows otherwise, also inside operators, and names each operator of the graph by
// its number, for the library's messages. Parsing has bounded the depth. Attributes that it does not know are
// added to `unread`.
void prepare(onnx::GraphProto& graph, std::int64_t opset, bool inside, std::set<std::string>& unread) {
  for (int i = 0; i < graph.node_size(); ++i) {
    onnx::NodeProto& node = *graph.mutable_node(i);
    node.set_name(inside ? std::string() : fmt::format("#{}", i));
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) prepare(*attribute.mutable_g(), opset, true, unread);
      for (onnx::GraphProto& one : *attribute.mutable_graphs()) prepare(one, opset, true, unread);
    }
    if (!is_onnx_domain(node.domain())) continue;
    const std::string kind = node.op_type();
    const auto row = std::ranges::find_if(kStandInOperators, [&](const StandInOperator& one) {
      return one.kind == kind && opset >= one.since;
    });
    if (row != std::end(kStandInOperators)) {
      node.set_op_type(std::string(row->as));
      if (row->inputs > 0 && node.input_size() > row->inputs)
        node.mutable_input()->DeleteSubrange(row->inputs, node.input_size() - row->inputs);
    }
    check_attributes(node, kind, opset, unread);
  }
}

// The same as take_picture_sides() has done to the scanned model.
void put_sides(onnx::GraphProto& graph, std::span<const PictureSide> sides) {
  for (onnx::ValueInfoProto& input : *graph.mutable_input())
    for (const PictureSide& side : sides)
      if (auto& type = *input.mutable_type()->mutable_tensor_type();
          input.name() == side.input && type.shape().dim_size() > static_cast<int>(side.position))
        type.mutable_shape()->mutable_dim(static_cast<int>(side.position))->set_dim_value(side.pixels);
  for (auto* const list : {graph.mutable_input(), graph.mutable_value_info(), graph.mutable_output()})
    for (onnx::ValueInfoProto& value : *list) {
      if (!value.type().tensor_type().has_shape()) continue;
      auto& type = *value.mutable_type()->mutable_tensor_type();
      bool computed = false;
      for (auto& dim : *type.mutable_shape()->mutable_dim())
        for (const PictureSide& side : sides) {
          if (side.name.empty() || dim.dim_param().empty()) continue;
          if (dim.dim_param() == side.name)
            dim.set_dim_value(side.pixels);
          else
            computed = computed || mentions(dim.dim_param(), side.name);
        }
      if (computed) type.clear_shape();
    }
}

// The text of a field that the library's version of the format does not have; empty if it is not there.
std::string newer_text(const google::protobuf::Message& message, int number) {
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i)
    if (const google::protobuf::UnknownField& field = fields.field(i);
        field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      return field.length_delimited();
  return {};
}

// The library knows functions by domain and name alone: overloads get names of their own, and so do calls of
// them. Parsing has bounded the depth.
template <typename Nodes>
void name_overloads(Nodes& nodes) {
  constexpr int kOverload = 8;
  for (onnx::NodeProto& node : nodes) {
    if (const std::string overload = newer_text(node, kOverload); !overload.empty())
      node.set_op_type(node.op_type() + ":" + overload);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) name_overloads(*attribute.mutable_g()->mutable_node());
      for (onnx::GraphProto& one : *attribute.mutable_graphs()) name_overloads(*one.mutable_node());
    }
  }
}

void name_overloads(onnx::ModelProto& model) {
  constexpr int kOverload = 13;
  name_overloads(*model.mutable_graph()->mutable_node());
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    if (const std::string overload = newer_text(function, kOverload); !overload.empty())
      function.set_name(function.name() + ":" + overload);
    name_overloads(*function.mutable_node());
  }
}

std::set<std::string> prepare(onnx::ModelProto& model, std::span<const PictureSide> sides) {
  name_overloads(model);
  std::int64_t opset = 0;
  for (const auto& import : model.opset_import())
    if (is_onnx_domain(import.domain())) opset = import.version();
  std::set<std::string> unread;
  prepare(*model.mutable_graph(), opset, false, unread);
  if (!sides.empty()) put_sides(*model.mutable_graph(), sides);
  name_open_sizes(*model.mutable_graph());
  return unread;
}

// Takes an operator out of the inference of its graph. A result that the file calls a scalar, as some writers
// do where they know no shape, loses that first.
void set_aside(onnx::GraphProto& graph, onnx::NodeProto& node) {
  bool scalar = false;
  for (auto* const list : {graph.mutable_value_info(), graph.mutable_output()})
    for (onnx::ValueInfoProto& value : *list) {
      const bool made = std::ranges::find(node.output(), value.name()) != node.output().end();
      if (!made || !value.type().tensor_type().has_shape() ||
          value.type().tensor_type().shape().dim_size() > 0)
        continue;
      value.mutable_type()->mutable_tensor_type()->clear_shape();
      scalar = true;
    }
  if (!scalar) node.set_domain(kSetAside);
}

// The number that prepare() gave to the operator of which a message of the library speaks.
std::optional<int> blamed(std::string_view message, int operators) {
  constexpr std::string_view kName = "node name: #";
  const std::size_t at = message.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = message.substr(at + kName.size());
  const auto number = text_as<int>(digits.substr(0, digits.find_first_not_of("0123456789")));
  return number && *number < operators ? number : std::nullopt;
}

// --- onnxruntime (1.32) follows the values of small tensors by the same functions, which there see no
// constants: a target shape that is Concat(Slice(Shape(x)), [-1]) stays unknown, Concat(Shape(x), Shape(y))
// does not. It has functions of its own for numbers without a shape, which see constants. (Measured:
// tests/interop/test_onnx_peak.py.)

using Types = std::unordered_map<std::string_view, const onnx::TypeProto*>;

std::unordered_set<std::string_view> constants_of(const onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> names;
  for (const onnx::TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node())
    if (node.op_type() == "Constant" && node.output_size() == 1) names.insert(node.output(0));
  return names;
}

// The type of a value or a weight that may hold a shape: whole numbers, in a list or one alone.
std::optional<onnx::TypeProto> type_of_shape(const std::string& name, const Types& types) {
  const auto found = types.find(name);
  if (found == types.end()) return std::nullopt;
  const onnx::TypeProto& type = *found->second;
  const std::int64_t code = type.tensor_type().elem_type();
  const bool whole = code == onnx::TensorProto::INT64 || code == onnx::TensorProto::INT32;
  return whole && type.tensor_type().has_shape() && type.tensor_type().shape().dim_size() < 2
             ? std::optional(type)
             : std::nullopt;
}

// Whether onnxruntime loses the value of such an operator, whose result has that type.
bool loses_value(const onnx::NodeProto& node, const std::unordered_set<std::string_view>& constants,
                 const onnx::TypeProto& result) {
  const std::string& kind = node.op_type();
  const auto is_constant = [&](const std::string& name) { return constants.contains(name); };
  if (kind == "Slice") return node.input_size() > 1;
  if (kind == "Cast" || kind == "Squeeze" || kind == "Unsqueeze") return is_constant(node.input(0));
  if (kind != "Concat" && kind != "Gather" && kind != "Add" && kind != "Sub" && kind != "Mul") return false;
  return std::ranges::any_of(node.input(), is_constant) && result.tensor_type().shape().dim_size() > 0;
}

// Adds the values whose shape onnxruntime does not know to `remarks`: from the same inference once more,
// where such operators take an input of the graph that nobody knows.
void add_unfollowed(const onnx::ModelProto& original, const onnx::ModelProto& inferred,
                    const onnx::ShapeInferenceOptions& follow_values, std::set<std::string>& remarks) {
  Types types;
  std::deque<onnx::TypeProto> weights;
  for (const onnx::TensorProto& tensor : original.graph().initializer()) {
    onnx::TypeProto::Tensor& type = *weights.emplace_back().mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    for (const std::int64_t side : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(side);
    type.mutable_shape();
    types[tensor.name()] = &weights.back();
  }
  for (const auto* const list : {&inferred.graph().value_info(), &inferred.graph().input()})
    for (const onnx::ValueInfoProto& value : *list) types[value.name()] = &value.type();
  const auto constants = constants_of(original.graph());
  onnx::ModelProto model;
  for (int i = 0; i < original.graph().node_size(); ++i) {
    const onnx::NodeProto& node = original.graph().node(i);
    if (node.input_size() == 0 || node.output_size() != 1 || !is_onnx_domain(node.domain())) continue;
    const auto result = type_of_shape(node.output(0), types);
    const auto taken = result ? type_of_shape(node.input(0), types) : std::nullopt;
    if (!taken || !loses_value(node, constants, *result)) continue;
    if (!model.has_graph()) model = original;
    onnx::ValueInfoProto& unknown = *model.mutable_graph()->add_input();
    unknown.set_name(fmt::format("{} of {}", node.input(0), i));
    *unknown.mutable_type() = *taken;
    model.mutable_graph()->mutable_node(i)->set_input(0, unknown.name());
  }
  if (!model.has_graph()) return;
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), follow_values);
  } catch (const std::exception&) {
    return;
  }
  Types known;
  for (const onnx::ValueInfoProto& value : model.graph().value_info()) known[value.name()] = &value.type();
  for (const onnx::ValueInfoProto& value : inferred.graph().value_info()) {
    const auto found = known.find(value.name());
    if (found == known.end() || found->second->SerializeAsString() != value.type().SerializeAsString())
      remarks.insert(std::string(kUnfollowed) + value.name());
  }
}

// With data propagation: values of small tensors are followed through Shape, Gather and Concat, with which
// exporters compute target shapes. An operator whose shapes cannot be inferred is set aside, and the others
// are tried again. If too many fail, all are tried without data propagation. Returns the attributes that the
// library does not know, and the values of add_unfollowed().
std::set<std::string> infer(onnx::ModelProto& model, std::span<const PictureSide> sides) {
  constexpr int kMostTries = 24;
  constexpr std::chrono::milliseconds kMostTime{1500};  // of all but the last try
  const Clock::time_point begin = Clock::now();
  const onnx::ShapeInferenceOptions follow_values(/*check_type=*/false, /*strict_mode=*/0,
                                                  /*data_prop=*/true);
  std::set<std::string> unread = prepare(model, sides);
  onnx::ModelProto original = model;
  original.add_opset_import()->set_domain(kSetAside);
  original.mutable_opset_import()->rbegin()->set_version(1);
  for (int tries = 0; tries < kMostTries && Clock::now() - begin < kMostTime; ++tries) {
    model = original;
    try {
      onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), follow_values);
      add_unfollowed(original, model, follow_values, unread);
      return unread;
    } catch (const std::exception& error) {
      const auto number = blamed(error.what(), original.graph().node_size());
      if (!number) break;
      set_aside(*original.mutable_graph(), *original.mutable_graph()->mutable_node(*number));
    }
  }
  model = original;
  onnx::shape_inference::InferShapes(model);
  return unread;
}

// Keeps only the types of values, and the operators that contain graphs, for the values inside. All operators
// would double the answer. As deep as protobuf allows nested messages.
void move_values(onnx::GraphProto& from, onnx::GraphProto& to) {
  to.mutable_value_info()->Swap(from.mutable_value_info());
  to.mutable_output()->Swap(from.mutable_output());
  for (onnx::NodeProto& node : *from.mutable_node()) {
    onnx::NodeProto* holder = nullptr;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g() && attribute.graphs_size() == 0) continue;
      if (holder == nullptr) holder = to.add_node();
      onnx::AttributeProto& same = *holder->add_attribute();
      if (attribute.has_g()) move_values(*attribute.mutable_g(), *same.mutable_g());
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) move_values(graph, *same.add_graphs());
    }
  }
}

std::string run_library(std::string_view bytes, std::span<const PictureSide> sides) {
  google::protobuf::SetLogHandler(nullptr);
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw std::runtime_error("protobuf cannot parse it");
  const std::set<std::string> unread = infer(model, sides);
  onnx::ModelProto answer;
  move_values(*model.mutable_graph(), *answer.mutable_graph());
  for (const std::string& one : unread) answer.add_metadata_props()->set_key(one);
  return answer.SerializeAsString();
}

}  // namespace

Inference infer_shapes(std::string_view model, const InferenceLimits& limits,
                       std::span<const PictureSide> sides) {
  if (model.size() > limits.most_model)
    return {{},
            fmt::format("the model without its weights has {} bytes, the limit is {}", model.size(),
                        limits.most_model)};
  return run_confined([&] { return run_library(model, sides); }, limits);
}

}  // namespace loadline::importers
