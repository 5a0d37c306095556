// Builds ONNX messages.
#include "tests/support/onnx_builder.h"

#include "core/graph/dtype_and_shape.h"

#include <fmt/format.h>

namespace loadline::testing::onnx {
namespace {

Proto opset(std::string_view domain, std::uint64_t version) {
  Proto proto;
  if (!domain.empty()) proto.text(1, domain);
  return proto.number(2, version);
}

Proto entry(std::string_view key, std::string_view text) { return Proto().text(1, key).text(2, text); }

Proto attribute(std::string_view name, std::uint64_t kind) { return Proto().text(1, name).number(20, kind); }

std::string pattern(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 7 + 3);
  return text;
}

// Five elements of each type: odd, so that packed types end inside a byte (6-bit types may not: left out).
void add_every_type(Proto& graph) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.onnx < 1 || info.id == DType::f6_e2m3 || info.id == DType::f6_e3m2) continue;
    const std::string name(info.name);
    if (info.id == DType::string) {
      graph.text(kInitializer, tensor("typed." + name, kString, {2}).text(6, "one").text(6, "two"));
      continue;
    }
    const auto bytes = static_cast<std::size_t>(packed_byte_size(info.id, 5).value());
    graph.text(kInitializer, raw_tensor("raw." + name, info.onnx, {5}, pattern(bytes)));
    Proto typed = tensor("typed." + name, info.onnx, {5});
    if (info.id == DType::f32 || info.id == DType::c64)
      typed.text(4, pattern(bytes));
    else if (info.id == DType::f64 || info.id == DType::c128)
      typed.text(10, pattern(bytes));
    else if (info.id == DType::i64)
      typed.varints(7, {1, 2, 3, 4, ~std::uint64_t{0}});
    else if (info.id == DType::u64 || info.id == DType::u32)
      typed.varints(11, {1, 2, 3, 4, 0xFFFFFFFF});
    else
      typed.varints(5, std::vector<std::uint64_t>(bytes / info.block_bytes, 1));
    graph.text(kInitializer, typed);
  }
}

void add_external(Proto& graph) {
  graph.text(kInitializer,
             external_tensor("external.a", kFloat, {4, 2},
                             {{"location", "sample.data"}, {"offset", "64"}, {"length", "32"}}));
  graph.text(kInitializer,
             external_tensor("external.tied", kFloat, {4, 2},
                             {{"location", "sample.data"}, {"offset", "64"}, {"length", "32"}}));
  graph.text(kInitializer, external_tensor("external.b", kFloat8, {3}, {{"location", "./sample.data"}}));
}

Proto branch(std::string_view name, std::string_view output) {
  return Proto()
      .text(kNode, node("Add", {"hidden", "bias"}, {"sum"}))
      .text(kNode, node("Constant", {}, {"one"})
                       .text(5, attribute_tensor("value", raw_tensor("", kFloat, {},
                                                                     std::string_view("\0\0\x80\x3F", 4)))))
      .text(kNode, node("Mul", {"sum", "one"}, {std::string(output)}))
      .text(2, name)
      .text(kInitializer, raw_tensor("bias", kFloat, {1}, "1234"))
      .text(kOutput, value(output, kFloat, {}));
}

}  // namespace

Proto tensor(std::string_view name, std::int64_t type, const Dims& dims) {
  Proto proto;
  for (const std::uint64_t dim : dims) proto.number(1, dim);
  proto.number(2, static_cast<std::uint64_t>(type));
  if (!name.empty()) proto.text(8, name);
  return proto;
}

Proto raw_tensor(std::string_view name, std::int64_t type, const Dims& dims, std::string_view bytes) {
  return tensor(name, type, dims).text(9, bytes);
}

Proto external_tensor(std::string_view name, std::int64_t type, const Dims& dims,
                      const std::vector<std::pair<std::string, std::string>>& entries) {
  Proto proto = tensor(name, type, dims);
  for (const auto& [key, text] : entries) proto.text(13, entry(key, text));
  return proto.number(14, 1);
}

Proto int64_tensor(std::string_view name, const std::vector<std::uint64_t>& values) {
  return tensor(name, kInt64, {values.size()}).varints(7, values);
}

Proto value(std::string_view name, std::int64_t type, const Names& dims) {
  Proto shape;
  for (const std::string& dim : dims) {
    Proto one;
    if (!dim.empty() && dim.size() < 19 && dim.find_first_not_of("0123456789") == std::string::npos)
      one.number(1, std::stoull(dim));
    else if (!dim.empty())
      one.text(2, dim);
    shape.text(1, one);
  }
  const Proto tensor_type = Proto().number(1, static_cast<std::uint64_t>(type)).text(2, shape);
  return Proto().text(1, name).text(2, Proto().text(1, tensor_type));
}

Proto node(std::string_view op, const Names& inputs, const Names& outputs, std::string_view name,
           std::string_view domain) {
  Proto proto;
  for (const std::string& input : inputs) proto.text(1, input);
  for (const std::string& output : outputs) proto.text(2, output);
  if (!name.empty()) proto.text(3, name);
  proto.text(4, op);
  if (!domain.empty()) proto.text(7, domain);
  return proto;
}

Proto attribute_int(std::string_view name, std::int64_t number) {
  return attribute(name, 2).number(3, static_cast<std::uint64_t>(number));
}

Proto attribute_ints(std::string_view name, const std::vector<std::uint64_t>& numbers) {
  Proto proto = attribute(name, 7);
  for (const std::uint64_t number : numbers) proto.number(8, number);
  return proto;
}

Proto attribute_tensor(std::string_view name, const Proto& held) { return attribute(name, 4).text(5, held); }

Proto attribute_graph(std::string_view name, const Proto& graph) { return attribute(name, 5).text(6, graph); }

std::string model(const Proto& graph, std::uint64_t version, std::uint64_t ir_version) {
  return Proto().number(1, ir_version).text(7, graph).text(8, opset("", version)).bytes();
}

std::string weights_model(const std::vector<Proto>& tensors) {
  Proto graph;
  for (const Proto& one : tensors) graph.text(kInitializer, one);
  return model(graph);
}

std::string sample_onnx() {
  Proto graph;
  graph.text(kNode, node("MatMul", {"x", "weight"}, {"hidden"}, "project"));
  graph.text(kNode, node("Half", {"hidden"}, {"half"}, "", "local"));
  graph.text(kNode, node("If", {"flag"}, {"chosen"}, "choose")
                        .text(5, attribute_graph("then_branch", branch("then", "out")))
                        .text(5, attribute_graph("else_branch", branch("else", "out"))));
  graph.text(kNode, node("Add", {"chosen", "half"}, {"y"}));
  graph.text(2, "sample");
  graph.text(kInitializer, raw_tensor("weight", kFloat, {4, 2}, pattern(32)));
  add_every_type(graph);
  add_external(graph);
  graph.text(kInitializer, raw_tensor("unknown", 99, {3}, "seven77"));
  graph.text(kInitializer, tensor("empty", kFloat, {0, 7}));
  graph.text(kInitializer, raw_tensor("esc\x07 aped", kUint8, {}, "a"));
  graph.text(kInput, value("x", kFloat, {"batch", "past_sequence_length + sequence_length", "4"}));
  graph.text(kInput, value("flag", kBool, {}));
  graph.text(kOutput, value("y", kFloat, {"batch", "", "2"}));
  graph.text(kValueInfo, value("hidden", kFloat, {"batch", "total_sequence_length", "2"}));
  graph.text(kSparse, Proto()
                          .text(1, raw_tensor("sparse", kFloat, {2}, "12345678"))
                          .text(2, int64_tensor("", {1, 5}))
                          .number(3, 6));

  const Proto constant =
      node("Constant", {}, {"two"})
          .text(5, attribute_tensor("value", raw_tensor("", kFloat, {}, std::string_view("\0\0\0\x40", 4))));
  const Proto function = Proto()
                             .text(1, "Half")
                             .text(4, "in")
                             .text(5, "out")
                             .text(7, constant)
                             .text(7, node("Div", {"in", "two"}, {"out"}))
                             .text(9, opset("", 17))
                             .text(10, "local");
  const Proto training =
      Proto().text(1, Proto().text(kInitializer, raw_tensor("weight", kFloat, {1}, "abcd")));
  return Proto()
      .number(1, 8)
      .text(2, "loadline")
      .text(3, "1.0")
      .text(4, "ai.example")
      .number(5, 3)
      .text(6, "a sample")
      .text(7, graph)
      .text(8, opset("", 17))
      .text(8, opset("local", 1))
      .text(14, entry("author", "nobody"))
      .text(20, training)
      .text(25, function)
      .bytes();
}

std::string sample_onnx_data() { return pattern(96); }

}  // namespace loadline::testing::onnx
