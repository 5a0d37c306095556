// ONNX operators: what they use, sizes by name, and graphs that do not fit.
#include "core/graph/meta_graph.h"
#include "importers/onnx/onnx.h"
#include "tests/support/builders.h"
#include "tests/support/hostile.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using namespace testing::onnx;
using testing::Proto;

// Without shape inference: onnx_inference_test has that.
MetaGraph read(std::string_view bytes) {
  MetaGraph graph = read_onnx(testing::memory_source("m.onnx", bytes), {false});
  validate(graph);
  return graph;
}

std::string note_text(const MetaGraph& graph, std::size_t number) {
  return number < graph.notes.size() ? graph.notes[number].text : "";
}

std::string shape_text(const MetaGraph& graph, std::string_view value) {
  for (const Value& one : graph.forward->values) {
    if (one.name != value || !one.shape) continue;
    std::string text;
    for (const SizePoly& size : *one.shape)
      text += (text.empty() ? "" : ", ") + size.text(graph.forward->symbols);
    return text;
  }
  return "unknown";
}

TEST(OnnxForward, OperatorsUseValuesAndWeights) {
  const MetaGraph graph = read(sample_onnx());
  ASSERT_TRUE(graph.forward);
  const ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.ops.size(), 4u);
  const auto weights = [&](const Op& op) {
    std::set<std::string> names;
    for (const TensorId id : op.weights) names.insert(graph.tensor(id).name);
    return names;
  };
  EXPECT_EQ(forward.ops[0].kind, "MatMul");
  EXPECT_EQ(weights(forward.ops[0]), std::set<std::string>{"weight"});
  EXPECT_EQ(forward.ops[1].kind, "local.Half");
  // the branches use "hidden" from outside, and bring weights of their own
  const Op& choice = forward.ops[2];
  EXPECT_EQ(choice.kind, "If");
  ASSERT_EQ(choice.inputs.size(), 2u);
  EXPECT_EQ(forward.value(choice.inputs[1]).name, "hidden");
  EXPECT_EQ(weights(choice),
            (std::set<std::string>{"choose/then_branch/bias", "choose/then_branch/one/value",
                                   "choose/else_branch/bias", "choose/else_branch/one/value"}));
  EXPECT_EQ(shape_text(graph, "x"), "B, S + P, 4");
  EXPECT_EQ(shape_text(graph, "hidden"), "B, S + P, 2");
  EXPECT_EQ(shape_text(graph, "y"), "unknown");
}

TEST(OnnxForward, DimensionNamesBecomePolynomials) {
  const auto shape_of = [](const std::string& dim) {
    const MetaGraph graph = read(model(Proto()
                                           .text(kNode, node("Relu", {"x"}, {"y"}))
                                           .text(kInput, value("x", kFloat, {dim}))
                                           .text(kOutput, value("y", kFloat, {}))));
    return shape_text(graph, "x");
  };
  for (const char* name : {"batch", "batch_size", "N", "b"}) EXPECT_EQ(shape_of(name), "B") << name;
  for (const char* name : {"sequence", "seq", "sequence_length", "seq_len", "s"})
    EXPECT_EQ(shape_of(name), "S") << name;
  for (const char* name : {"past_sequence_length", "past_seq_len", "past"})
    EXPECT_EQ(shape_of(name), "P") << name;
  EXPECT_EQ(shape_of("total_sequence_length"), "S + P");
  EXPECT_EQ(shape_of("past_sequence_length + sequence_length"), "S + P");
  EXPECT_EQ(shape_of("past_sequence_length + 1"), "P + 1");
  EXPECT_EQ(shape_of("2*batch*seq - 3"), "2*B*S - 3");
  EXPECT_EQ(shape_of("-1 + heads*4"), "4*heads - 1");
  EXPECT_EQ(shape_of("12"), "12");
  // whatever else it is, it is a name
  for (const char* name :
       {"floor(s/2)", "a + ", "a b", "+", "* a", "s0 // 2", "2x", "a++b", "99999999999999999999"})
    EXPECT_EQ(shape_of(name), name);
  EXPECT_EQ(shape_of("unk__12"), "unknown");
  EXPECT_EQ(shape_of("9223372036854775807 * 2"), "unknown");
}

// "s77=B? t=S": what the names of a file are taken as; "?" for a guess.
std::string sizes_text(const std::vector<Proto>& inputs) {
  Proto graph = Proto().text(kNode, node("Op", {}, {"y"}));
  for (const Proto& input : inputs) graph.text(kInput, input);
  const MetaGraph read_graph = read(model(graph));
  std::string text;
  for (const NamedSize& size : read_graph.forward->sizes)
    text += fmt::format("{}{}={}{}", text.empty() ? "" : " ", size.name,
                        size.taken_as.text(read_graph.forward->symbols), size.guessed ? "?" : "");
  EXPECT_EQ(text.find('?') != std::string::npos,
            note_text(read_graph, 0).find("sizes by where they stand") != std::string::npos);
  return text;
}

TEST(OnnxForward, NamesThatSayNothingAreGuessedByWhereTheyStand) {
  EXPECT_EQ(sizes_text({value("input_ids", kInt64, {"s77", "s27"}),
                        value("attention_mask", kInt64, {"s77", "s27"})}),
            "s77=B? s27=S?");
  EXPECT_EQ(sizes_text({value("mask", kBool, {"b0", "s0"}), value("ids", kInt32, {"x", "y"})}),
            "x=B? y=S? b0=b0 s0=s0");
  EXPECT_EQ(sizes_text({value("x", kInt64, {"s77", "s27"})}), "s77=B? s27=S?");  // there is no other
  EXPECT_EQ(sizes_text({value("tokens", kInt64, {"1", "s27"})}), "s27=S?");
  EXPECT_EQ(sizes_text({value("tokens", kInt64, {"batch", "s27"})}), "s27=S? batch=B");
  EXPECT_EQ(sizes_text({value("image", kFloat, {"n", "3", "height", "width"})}),
            "n=B? height=height width=width");
  EXPECT_EQ(sizes_text({value("x", kFloat16, {"s5"})}), "s5=B?");
  EXPECT_EQ(sizes_text({value("x", kFloat, {"T", "80"})}), "T=S?");
}

TEST(OnnxForward, NothingIsGuessedWhereItIsNotPlain) {
  // another name says what the batch is
  EXPECT_EQ(sizes_text({value("pixels", kFloat, {"images", "3"}), value("ids", kInt64, {"batch", "seq"})}),
            "images=images batch=B seq=S");
  EXPECT_EQ(sizes_text({value("x", kFloat, {"T", "seq"})}), "T=B? seq=S");  // as any other name
  EXPECT_EQ(sizes_text({value("square", kFloat, {"n", "n"})}), "n=n");
  EXPECT_EQ(sizes_text({value("positions", kInt64, {"p", "q"}), value("z", kInt64, {"2"})}), "p=p q=q");
  EXPECT_EQ(sizes_text({value("pixels", kUint8, {"p", "q"})}), "p=p q=q");
  EXPECT_EQ(sizes_text({value("ids", kInt64, {"p", "q", "r"})}), "p=p q=q r=r");
  EXPECT_EQ(sizes_text({value("x", kFloat, {"a", "c", "d", "e", "f"})}), "a=a c=c d=d e=e f=f");
  EXPECT_EQ(sizes_text({value("x", kFloat, {"2*n", "8"})}), "n=n");
}

TEST(OnnxForward, GraphsInOperatorsAreBodies) {
  const Proto inner = Proto()
                          .text(kNode, node("Relu", {"hidden"}, {"r"}))
                          .text(kNode, node("Add", {"r", "x"}, {"o"}))
                          .text(kValueInfo, value("r", kFloat, {"8"}))
                          .text(kOutput, value("o", kFloat, {"8"}));
  const MetaGraph graph = read(model(
      Proto()
          .text(kNode, node("Relu", {"x"}, {"hidden"}))
          .text(kNode,
                node("Loop", {}, {"y"})
                    .text(5, attribute_graph("body", Proto(inner).text(kInput, value("i", kInt64, {})))))
          .text(kInput, value("x", kFloat, {"8"}))
          .text(kOutput, value("y", kFloat, {"8"}))));
  const ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.bodies.size(), 1u);
  const Body& body = forward.bodies[0];
  EXPECT_EQ(forward.ops[1].bodies, std::vector<std::uint32_t>{0});
  ASSERT_EQ(body.ops.size(), 2u);
  EXPECT_EQ(forward.value(body.ops[0].inputs.at(0)).name, "hidden");
  EXPECT_EQ(body.ops[0].inputs[0], forward.ops[0].outputs[0]);
  EXPECT_EQ(shape_text(graph, "r"), "8");
  EXPECT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(body.outputs, body.ops[1].outputs);
}

TEST(OnnxForward, BodiesAsDeepAsTheyMayBe) {
  Proto deep = Proto().text(kNode, node("Relu", {"x"}, {"o"}));
  for (int i = 0; i < 20; ++i)
    deep = Proto().text(kNode, node("If", {"x"}, {"o"}).text(5, attribute_graph("then_branch", deep)));
  const MetaGraph graph = read(model(deep.text(kInput, value("x", kFloat, {"8"}))));
  EXPECT_EQ(graph.forward->bodies.size(), kMostBodyDepth);
  // in the innermost one something is unknown
  EXPECT_TRUE(std::any_of(graph.forward->bodies.begin(), graph.forward->bodies.end(), [&](const Body& body) {
    return std::any_of(body.ops.begin(), body.ops.end(),
                       [](const Op& op) { return !op.temporaries.empty(); });
  }));
}

TEST(OnnxForward, ManySymbolsEnd) {
  Proto graph = Proto().text(kNode, node("Relu", {"x0"}, {"y"}));
  for (int i = 0; i < 10'000; ++i)
    graph.text(kInput, value(fmt::format("x{}", i), kFloat, {fmt::format("dim{}", i)}));
  const MetaGraph read_graph = read(model(graph));
  EXPECT_LE(read_graph.forward->symbols.size(), 4096u);
  EXPECT_EQ(read_graph.forward->inputs.size(), 10'000u);
}

TEST(OnnxForward, OperatorsThatDoNotFitAreLeftOutWithAReason) {
  const auto why = [](const Proto& graph) {
    const MetaGraph read_graph = read(model(graph));
    EXPECT_FALSE(read_graph.forward);
    return note_text(read_graph, 0);
  };
  const Proto relu = node("Relu", {"x"}, {"y"}, "r");
  EXPECT_NE(why(Proto().text(kNode, relu)).find("Relu 'r' uses 'x' before it is made"), std::string::npos);
  EXPECT_NE(why(Proto()
                    .text(kNode, node("Relu", {"y"}, {"z"}))
                    .text(kNode, relu)
                    .text(kInput, value("x", kFloat, {})))
                .find("uses 'y' before"),
            std::string::npos);
  EXPECT_NE(why(Proto().text(kNode, relu).text(kNode, relu).text(kInput, value("x", kFloat, {})))
                .find("'y' is made twice"),
            std::string::npos);
  EXPECT_NE(
      why(Proto().text(kNode, node("Rand", {}, {"w"})).text(kInitializer, raw_tensor("w", kUint8, {}, "1")))
          .find("'w' is made twice"),
      std::string::npos);
  EXPECT_NE(why(Proto().text(kNode, node("Rand", {}, {"w"})).text(kOutput, value("q", kFloat, {})))
                .find("output 'q' is never made"),
            std::string::npos);
  const Proto inner = Proto().text(kNode, node("Relu", {"nowhere"}, {"o"}));
  EXPECT_NE(why(Proto().text(kNode, node("If", {}, {"w"}).text(5, attribute_graph("then_branch", inner))))
                .find("uses 'nowhere'"),
            std::string::npos);
}

TEST(OnnxForward, InitialisersAmongTheInputsAreWeights) {
  // IR version 3 lists every initialiser as an input, too
  const MetaGraph graph = read(model(Proto()
                                         .text(kNode, node("Add", {"x", "w"}, {"y"}))
                                         .text(kInput, value("x", kFloat, {"1"}))
                                         .text(kInput, value("w", kFloat, {"1"}))
                                         .text(kOutput, value("w", kFloat, {"1"}))
                                         .text(kInitializer, raw_tensor("w", kFloat, {1}, "1234")),
                                     8, 3));
  EXPECT_EQ(graph.forward->inputs.size(), 1u);
  EXPECT_EQ(graph.forward->ops[0].weights.size(), 1u);
  EXPECT_TRUE(graph.forward->outputs.empty());
}

// Functions that call each other are only read, never followed.
TEST(OnnxForward, FunctionsInCirclesAreRead) {
  const auto function = [](std::string_view name, std::string_view calls) {
    return Proto()
        .text(25, Proto().text(1, name).text(5, "o").text(7, node(calls, {}, {"o"}, "", "f")).text(10, "f"))
        .bytes();
  };
  const std::string calls = model(Proto().text(kNode, node("a", {}, {"y"}, "", "f")));
  EXPECT_EQ(read(calls + function("a", "a")).forward->ops.size(), 1u);
  EXPECT_EQ(read(calls + function("a", "b") + function("b", "a")).forward->ops.size(), 1u);
  const Proto branch = Proto().text(kNode, node("a", {}, {"o"}, "", "f"));
  const Proto choice = node("If", {"c"}, {"o"}).text(5, attribute_graph("then_branch", branch));
  const std::string through =
      Proto().text(25, Proto().text(1, "a").text(4, "c").text(5, "o").text(7, choice).text(10, "f")).bytes();
  EXPECT_EQ(read(calls + through).forward->ops.size(), 1u);
}

}  // namespace
}  // namespace loadline
