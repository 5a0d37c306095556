// Shape inference by onnx's library in a confined process: the model without its weights, fork, limits.

#include "core/base/checked_arithmetic.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/io/protobuf_wire.h"
#include "importers/onnx/forward.h"
#include "importers/onnx/model.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

// --- Runs onnx 1.12's shape inference in a forked child with limits (fork(2), setrlimit(2), prctl(2)).

namespace {

using Clock = std::chrono::steady_clock;

// The child sends one byte, then the answer or the reason of its failure, then closes the pipe.
constexpr char kAnswered = 'A';
constexpr char kRefused = 'R';
constexpr std::size_t kMostReason = 300;

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

// With data propagation: values of small tensors are followed through Shape, Gather and Concat, with which
// exporters compute target shapes. An operator whose shapes cannot be inferred is set aside, and the others
// are tried again. If too many fail, all are tried without data propagation. Returns the attributes that the
// library does not know.
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
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "Rprotobuf cannot parse it";
  const std::set<std::string> unread = infer(model, sides);
  onnx::ModelProto answer;
  move_values(*model.mutable_graph(), *answer.mutable_graph());
  for (const std::string& one : unread) answer.add_metadata_props()->set_key(one);
  return kAnswered + answer.SerializeAsString();
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = io::uninterrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (wrote <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void limit(decltype(RLIMIT_AS) what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(what, &both);
}

// Runs in the child and never returns. This program's handlers must not run there, and nothing may be
// printed.
[[noreturn]] void child(std::string_view model, int out, std::uint64_t address_space,
                        const InferenceLimits& limits, std::span<const PictureSide> sides) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // No other file stays open: a second child's pipe, inherited here, would keep its reader waiting.
  constexpr int kOut = STDERR_FILENO + 1;
  ::dup2(out, kOut);
  ::close_range(kOut + 1, ~0U, 0);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE, SIGXCPU})
    ::signal(signal, SIG_DFL);
  if (const int nowhere = ::open("/dev/null", O_RDWR); nowhere >= 0)
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, address_space);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.time.count() / 1000 + 1));
  confine_to_memory();
  std::string answer;
  try {
    answer = run_library(model, sides);
  } catch (const std::exception& error) {
    // not a string: there may be no memory for one, and what is thrown here must not leave the child
    write_all(kOut, std::string_view(&kRefused, 1));
    write_all(kOut, std::string_view(error.what()).substr(0, kMostReason));
  } catch (...) {
    write_all(kOut, "Rthe library threw something unknown");
  }
  write_all(kOut, answer);
  ::_exit(0);
}

// This process's virtual memory in bytes; 0 if unknown. It differs by terabytes with and without
// sanitizers.
std::uint64_t own_address_space() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Reads until the end of the pipe. Gives the reason if the end does not come in time or the answer is too
// large.
struct Received {
  std::string bytes;
  std::string failure;
};
Received receive(int in, const InferenceLimits& limits, Clock::time_point deadline) {
  Received received;
  std::array<char, 64 << 10> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      received.failure = fmt::format("it took more than {} ms", limits.time.count());
      return received;
    }
    pollfd waiting{in, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) <= 0) continue;
    const ssize_t got = io::uninterrupted([&] { return ::read(in, buffer.data(), buffer.size()); });
    if (got <= 0) return received;
    received.bytes.append(buffer.data(), static_cast<std::size_t>(got));
    if (received.bytes.size() > limits.most_answer) {
      received.failure = fmt::format("its answer has more than {} bytes", limits.most_answer);
      return received;
    }
  }
}

Inference failed(std::string why) { return {{}, std::move(why)}; }

}  // namespace

Inference infer_shapes(std::string_view model, const InferenceLimits& limits,
                       std::span<const PictureSide> sides) {
  if (model.size() > limits.most_model)
    return failed(fmt::format("the model without its weights has {} bytes, the limit is {}", model.size(),
                              limits.most_model));
  const std::uint64_t space = own_address_space();
  const auto most = checked_add(space, limits.memory);
  int ends[2] = {-1, -1};
  if (space == 0 || !most || ::pipe2(ends, O_CLOEXEC) != 0)
    return failed("no process for it could be prepared");
  const io::UniqueFd in(ends[0]);
  io::UniqueFd out(ends[1]);
  const Clock::time_point deadline = Clock::now() + limits.time;
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("no process for it: {}", std::strerror(errno)));
  if (pid == 0) child(model, out.get(), *most, limits, sides);
  out = io::UniqueFd();

  Received received = receive(in.get(), limits, deadline);
  ::kill(pid, SIGKILL);  // has ended already, unless it was too slow or sent too much
  int status = 0;
  (void)io::uninterrupted([&] { return ::waitpid(pid, &status, 0); });
  if (!received.failure.empty()) return failed(std::move(received.failure));
  if (received.bytes.starts_with(kAnswered) && WIFEXITED(status)) return {received.bytes.substr(1), {}};
  if (received.bytes.starts_with(kRefused)) return failed(received.bytes.substr(1, kMostReason));
  if (WIFSIGNALED(status)) return failed(fmt::format("it was stopped by signal {}", WTERMSIG(status)));
  return failed("it gave no answer");
}

}  // namespace loadline::importers
