// ONNX operators, and the inference of their shapes.

#include "core/graph/meta_graph.h"
#include "core/graph/op_place.h"
#include "importers/onnx/forward.h"
#include "importers/onnx/model.h"
#include "importers/onnx/onnx.h"
#include "tests/support/builders.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/sanitizers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::tests {

// --- Shape inference in a child process: what it finds, and that nothing it does reaches this process.

namespace {

using namespace testing::onnx;
using testing::memory_source;
using testing::Proto;

graph::MetaGraph read(const std::string& bytes) {
  graph::MetaGraph graph = importers::read_onnx(memory_source("m.onnx", bytes));
  graph::validate(graph);
  // no child is left behind
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  return graph;
}

// "F32 [B, 4]" of a value.
std::string type_of(const graph::MetaGraph& graph, std::string_view name) {
  for (const graph::Value& value : graph.forward->values) {
    if (value.name != name) continue;
    std::string text;
    if (value.shape)
      for (const graph::SizePoly& size : *value.shape)
        text += (text.empty() ? "" : ", ") + size.text(graph.forward->symbols);
    return fmt::format("{} {}", value.dtype ? graph::dtype_info(*value.dtype).name : "?",
                       value.shape ? "[" + text + "]" : "?");
  }
  return "no such value";
}

std::string floats(std::size_t count) { return std::string(4 * count, '\0'); }

TEST(OnnxInference, ShapesFlowThroughOperators) {
  const graph::MetaGraph graph =
      read(model(Proto()
                     .text(kNode, node("MatMul", {"x", "w"}, {"y"}))
                     .text(kNode, node("Transpose", {"y"}, {"t"}).text(5, attribute_ints("perm", {0, 2, 1})))
                     .text(kNode, node("Softmax", {"t"}, {"z"}))
                     .text(kInput, value("x", kFloat, {"batch", "seq", "8"}))
                     .text(kInitializer, raw_tensor("w", kFloat, {8, 16}, floats(128)))));
  EXPECT_EQ(type_of(graph, "y"), "F32 [B, S, 16]");
  EXPECT_EQ(type_of(graph, "t"), "F32 [B, 16, S]");
  EXPECT_EQ(type_of(graph, "z"), "F32 [B, 16, S]");
  EXPECT_TRUE(graph.notes.empty());
}

// (224 + 2 * 3 - 7) / 2 + 1 = 112; what the file computes from the names of the sides counts no more.
TEST(OnnxInference, ShapesBehindAPictureAreKnown) {
  const Proto graph = Proto()
                          .text(kNode, node("MaxPool", {"x"}, {"y"})
                                           .text(5, attribute_ints("kernel_shape", {7, 7}))
                                           .text(5, attribute_ints("strides", {2, 2}))
                                           .text(5, attribute_ints("pads", {3, 3, 3, 3})))
                          .text(kNode, node("Relu", {"y"}, {"z"}))
                          .text(kInput, value("x", kFloat, {"n", "3", "height", "width"}))
                          .text(kValueInfo, value("y", kFloat, {"n", "3", "floor(height/2)", "width // 2"}))
                          .text(kOutput, value("z", kFloat, {"n", "3", "floor(height/2)", "half"}));
  const graph::MetaGraph usual = read(model(graph));
  EXPECT_EQ(type_of(usual, "x"), "F32 [B, 3, 224, 224]");
  EXPECT_EQ(type_of(usual, "y"), "F32 [B, 3, 112, 112]");
  EXPECT_EQ(type_of(usual, "z"), "F32 [B, 3, 112, 112]");
  const graph::MetaGraph other =
      importers::read_onnx(memory_source("m.onnx", model(graph)), {.picture_side = 640});
  EXPECT_EQ(type_of(other, "z"), "F32 [B, 3, 320, 320]");
}

// A table of 49 positions is added to patches of 16 x 16: pictures of 112 x 112.
TEST(OnnxInference, SidesThatDoNotFitGiveWayToOthers) {
  const auto patches = [](std::uint64_t positions) {
    return model(
        Proto()
            .text(kNode, node("Conv", {"x", "w"}, {"c"}).text(5, attribute_ints("strides", {16, 16})))
            .text(kNode, node("Reshape", {"c", "to"}, {"r"}))
            .text(kNode, node("Add", {"r", "table"}, {"y"}))
            .text(kInput, value("x", kFloat, {"1", "3", "h", "w"}))
            .text(kInitializer, raw_tensor("w", kFloat, {8, 3, 16, 16}, floats(6144)))
            .text(kInitializer, int64_tensor("to", {1, 8, ~std::uint64_t{0}}))
            .text(kInitializer, raw_tensor("table", kFloat, {positions}, floats(positions))));
  };
  const graph::MetaGraph fits = read(patches(49));
  EXPECT_EQ(type_of(fits, "x"), "F32 [1, 3, 112, 112]");
  EXPECT_EQ(type_of(fits, "y"), "F32 [1, 8, 49]");
  ASSERT_FALSE(fits.notes.empty());
  EXPECT_NE(fits.notes.front().text.find("112"), std::string::npos) << fits.notes.front().text;
  const graph::MetaGraph none = read(patches(97));
  EXPECT_EQ(none.notes.front().severity, graph::Severity::warning) << none.notes.front().text;
  // what somebody chose stays, and is said to be wrong
  const graph::MetaGraph chosen =
      importers::read_onnx(memory_source("m.onnx", patches(49)), {.picture_side = 224});
  EXPECT_EQ(type_of(chosen, "x"), "F32 [1, 3, 224, 224]");
  EXPECT_EQ(chosen.notes.front().severity, graph::Severity::warning);
}

TEST(OnnxInference, SidesAreChosenByTheirNames) {
  const Proto graph =
      Proto()
          .text(kNode, node("MaxPool", {"x"}, {"y"}).text(5, attribute_ints("kernel_shape", {2, 2})))
          .text(kInput, value("x", kFloat, {"n", "3", "height", ""}));
  const graph::MetaGraph named = importers::read_onnx(
      memory_source("m.onnx", model(graph)), {.picture_sides = {{"height", 64}, {"x[3]", 48}, {"n", 5}}});
  EXPECT_EQ(type_of(named, "x"), "F32 [B, 3, 64, 48]");
  EXPECT_EQ(type_of(named, "y"), "F32 [B, 3, 63, 47]");
}

TEST(OnnxInference, WhatTheFileDoesNotSayIsMarked) {
  const graph::MetaGraph graph = read(model(Proto()
                                                .text(kNode, node("Relu", {"x"}, {"y"}))
                                                .text(kNode, node("Relu", {"y"}, {"z"}))
                                                .text(kInput, value("x", kFloat, {"batch", "8"}))
                                                .text(kValueInfo, value("y", kFloat, {"batch", ""}))));
  for (const graph::Value& one : graph.forward->values) {
    EXPECT_TRUE(one.shape) << one.name;
    EXPECT_EQ(one.half_declared, one.name == "y") << one.name;
  }
}

TEST(OnnxInference, ValuesOfSmallTensorsCount) {
  for (const Proto& shape :
       {int64_tensor("shape", {0, 4, 4}),
        raw_tensor("shape", kInt64, {3},
                   std::string("\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 24))}) {
    const graph::MetaGraph graph = read(model(Proto()
                                                  .text(kNode, node("Reshape", {"x", "shape"}, {"y"}))
                                                  .text(kInput, value("x", kFloat, {"batch", "16"}))
                                                  .text(kInitializer, shape)));
    EXPECT_EQ(type_of(graph, "y"), "F32 [B, 4, 4]");
  }
  const Proto constant =
      node("Constant", {}, {"shape"}).text(5, attribute_tensor("value", int64_tensor("", {2, 8})));
  const graph::MetaGraph graph = read(model(Proto()
                                                .text(kNode, constant)
                                                .text(kNode, node("Reshape", {"x", "shape"}, {"y"}))
                                                .text(kInput, value("x", kFloat, {"16"}))));
  EXPECT_EQ(type_of(graph, "y"), "F32 [2, 8]");
}

// The library would infer as if they were not there.
TEST(OnnxInference, AttributesThatTheLibraryDoesNotKnowAreNamed) {
  const auto pool = [](std::vector<std::uint64_t> dilations, bool declared = false) {
    Proto graph = Proto()
                      .text(kNode, node("AveragePool", {"x"}, {"y"})
                                       .text(5, attribute_ints("kernel_shape", {2, 2}))
                                       .text(5, attribute_ints("dilations", dilations)))
                      .text(kInput, value("x", kFloat, {"1", "1", "6", "6"}));
    if (declared) graph.text(kOutput, value("y", kFloat, {"1", "1", "4", "4"}));
    return read(model(graph.text(kNode, node("Relu", {"x"}, {"z"})), 19));
  };
  graph::MetaGraph graph = pool({2, 2});
  EXPECT_EQ(type_of(graph, "y"), "? ?");
  EXPECT_EQ(graph.forward->unaccounted, std::vector<std::string>{"AveragePool.dilations"});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_NE(graph.notes[0].text.find("AveragePool.dilations"), std::string::npos);
  graph = pool({1, 1});
  EXPECT_EQ(type_of(graph, "y"), "F32 [1, 1, 5, 5]");
  EXPECT_TRUE(graph.forward->unaccounted.empty());
  graph = pool({2, 2}, true);
  EXPECT_EQ(type_of(graph, "y"), "F32 [1, 1, 4, 4]");
  EXPECT_TRUE(graph.forward->unaccounted.empty());
}

TEST(OnnxInference, AttributesThatAreTooLongAreNamed) {
  // the axes as single fields: 20,000 bytes
  const graph::MetaGraph graph =
      read(model(Proto()
                     .text(kNode, node("Transpose", {"x"}, {"y"})
                                      .text(5, attribute_ints("perm", std::vector<std::uint64_t>(10'000, 0))))
                     .text(kInput, value("x", kFloat, {"2", "3"}))));
  EXPECT_EQ(type_of(graph, "y"), "? ?");
  EXPECT_EQ(graph.forward->unaccounted, std::vector<std::string>{"Transpose.perm"});
}

TEST(OnnxInference, ShapesMayBeExternalData) {
  const std::string values("\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 24);
  const std::string bytes = model(
      Proto()
          .text(kNode, node("Reshape", {"x", "shape"}, {"y"}))
          .text(kInput, value("x", kFloat, {"batch", "16"}))
          .text(kInitializer, external_tensor("shape", kInt64, {3}, {{"location", "./w"}, {"offset", "2"}})));
  const graph::MetaGraph graph = importers::read_onnx(memory_source("m.onnx", bytes, {{"w", "xx" + values}}));
  EXPECT_EQ(type_of(graph, "y"), "F32 [B, 4, 4]");
  // without the file the rest is still known
  EXPECT_EQ(type_of(importers::read_onnx(memory_source("m.onnx", bytes)), "x"), "F32 [B, 16]");
}

TEST(OnnxInference, OneOperatorThatFailsCostsOnlyItself) {
  // the sum of what cannot be summed, and a result that is no scalar
  const graph::MetaGraph graph =
      read(model(Proto()
                     .text(kNode, node("Relu", {"x"}, {"a"}))
                     .text(kNode, node("Add", {"a", "w"}, {"b"}))
                     .text(kNode, node("Relu", {"a"}, {"c"}))
                     .text(kNode, node("Relu", {"c"}, {"d"}))
                     .text(kInput, value("x", kFloat, {"2", "3"}))
                     .text(kOutput, value("b", kFloat, {"5", "7"}))
                     .text(kOutput, value("c", kFloat, {}))
                     .text(kInitializer, raw_tensor("w", kFloat, {4}, floats(4)))));
  EXPECT_EQ(type_of(graph, "a"), "F32 [2, 3]");
  EXPECT_EQ(type_of(graph, "b"), "F32 [5, 7]");
  EXPECT_EQ(type_of(graph, "c"), "F32 [2, 3]");
  EXPECT_EQ(type_of(graph, "d"), "F32 [2, 3]");
}

TEST(OnnxInference, OpenSizesHaveNames) {
  for (const char* const size : {"-1", ""}) {
    const graph::MetaGraph graph = read(model(Proto()
                                                  .text(kNode, node("Relu", {"x"}, {"a"}))
                                                  .text(kNode, node("Add", {"a", "z"}, {"y"}))
                                                  .text(kInput, value("x", kFloat, {size, "3", size}))
                                                  .text(kInput, value("z", kFloat, {size, "1", "1"}))
                                                  .text(kOutput, value("y", kFloat, {size, "3", size}))));
    EXPECT_EQ(type_of(graph, "a"), "F32 [B, 3, x[2]]") << size;
    EXPECT_EQ(type_of(graph, "y"), "F32 [B, 3, x[2]]") << size;
    ASSERT_EQ(graph.forward->sizes.size(), 3u);
    for (const graph::NamedSize& one : graph.forward->sizes) EXPECT_TRUE(one.open) << one.name;
  }
}

TEST(OnnxInference, OperatorsNewerThanTheLibraryHaveShapes) {
  const auto with = [](const Proto& graph, std::uint64_t opset) {
    return type_of(read(model(graph, opset)), "y");
  };
  const auto reduced = [&](std::uint64_t opset) {
    return with(Proto()
                    .text(kNode, node("ReduceMean", {"x", "axes"}, {"y"}))
                    .text(kInput, value("x", kFloat, {"2", "3", "4"}))
                    .text(kInitializer, int64_tensor("axes", {1})),
                opset);
  };
  EXPECT_EQ(reduced(18), "F32 [2, 1, 4]");
  EXPECT_EQ(with(Proto()
                     .text(kNode, node("GroupNormalization", {"x", "s", "s"}, {"y"}))
                     .text(kInput, value("x", kFloat, {"2", "4", "5"}))
                     .text(kInitializer, raw_tensor("s", kFloat, {4}, floats(4))),
                 21),
            "F32 [2, 4, 5]");
}

TEST(OnnxInference, LargeTensorsAreNotInTheSkeleton) {
  const std::string bytes =
      weights_model({raw_tensor("large", kInt64, {5000}, std::string(40'000, 'x')),
                     raw_tensor("floats", kFloat, {1000}, floats(1000)), int64_tensor("small", {7})});
  const importers::OnnxScan scan =
      importers::scan_onnx(io::SourceFile::from_memory("m.onnx", testing::as_bytes(bytes)));
  EXPECT_LT(scan.skeleton.bytes.size(), 200u);
  EXPECT_NE(scan.skeleton.bytes.find("floats"), std::string::npos);
}

TEST(OnnxInference, TypesTheLibraryDoesNotKnowKeepTheirShapes) {
  for (const auto& [code, name] : {std::pair(kFloat8, "F8_E4M3"), std::pair(kInt4, "I4"),
                                   std::pair(kFloat4, "F4"), std::pair(kInt2, "I2")}) {
    const graph::MetaGraph graph =
        read(model(Proto()
                       .text(kNode, node("Transpose", {"x"}, {"y"}))
                       .text(kNode, node("Cast", {"f"}, {"cast"}).text(5, attribute_int("to", code)))
                       .text(kNode, node("Relu", {"f"}, {"plain"}))
                       .text(kInput, value("x", code, {"batch", "3"}))
                       .text(kInput, value("f", kFloat, {"N"}))
                       .text(kInitializer, tensor("w", code, {4}).varints(5, {1, 1, 1, 1})),
                   21, 10));
    EXPECT_EQ(type_of(graph, "y"), fmt::format("{} [3, B]", name));
    EXPECT_EQ(type_of(graph, "cast"), fmt::format("{} [B]", name));
    EXPECT_EQ(type_of(graph, "plain"), "F32 [B]");
  }
}

TEST(OnnxInference, SeveralUnknownTypesAreToldApart) {
  Proto graph;
  const std::int64_t codes[] = {17, 18, 19, 20, 21, 22, 23, 24};
  for (const std::int64_t code : codes)
    graph.text(kInput, value(fmt::format("x{}", code), code, {"2"}))
        .text(kNode, node("Identity", {fmt::format("x{}", code)}, {fmt::format("y{}", code)}));
  const graph::MetaGraph read_graph = read(model(graph, 21, 11));
  for (const std::int64_t code : codes)
    EXPECT_EQ(
        type_of(read_graph, fmt::format("y{}", code)),
        fmt::format("{} [2]", graph::dtype_info(*graph::dtype_from(&graph::DTypeInfo::onnx, code)).name));
}

TEST(OnnxInference, MoreUnknownTypesThanStandInsKeepTheirShapes) {
  Proto graph;
  for (std::int64_t code = 17; code < 32; ++code)
    graph.text(kInput, value(fmt::format("x{}", code), code, {"2"}))
        .text(kNode, node("Identity", {fmt::format("x{}", code)}, {fmt::format("y{}", code)}));
  const graph::MetaGraph read_graph = read(model(graph, 21, 14));
  EXPECT_EQ(type_of(read_graph, "y17"), "F8_E4M3 [2]");
  EXPECT_EQ(type_of(read_graph, "y28"), "? [2]");  // shares its stand-in
  EXPECT_EQ(type_of(read_graph, "x28"), "F6_E3M2 [2]");
}

TEST(OnnxInference, OfAttributesTooLargeForTheSkeletonTheNamesAreLeft) {
  const std::string blob(1 << 20, 'e');
  const Proto engine = Proto().text(1, "ep_cache_context").number(20, 3).text(4, blob);
  const std::vector<std::uint64_t> many(100'000, 1);
  const std::string bytes =
      model(Proto()
                .text(kNode, node("EPContext", {}, {"y"}, "", "com.microsoft").text(5, engine))
                .text(kNode, node("Tree", {}, {"z"}).text(5, attribute_ints("ids", many)))
                .text(kNode, node("Tree", {}, {"u"}).text(5, Proto().text(1, "packed").varints(8, many))));
  const importers::OnnxScan scan =
      importers::scan_onnx(io::SourceFile::from_memory("m.onnx", testing::as_bytes(bytes)));
  EXPECT_LT(scan.skeleton.bytes.size(), 300u);
  EXPECT_NE(scan.skeleton.bytes.find("left out packed"), std::string::npos);
  EXPECT_NE(scan.skeleton.bytes.find("EPContext"), std::string::npos);
}

TEST(OnnxInference, NewOperatorSetsAndForeignDomainsOpen) {
  const std::string bytes = model(Proto()
                                      .text(kNode, node("MatMul", {"x", "w"}, {"y"}))
                                      .text(kNode, node("FancyAttention", {"y"}, {"z"}, "", "com.example"))
                                      .text(kNode, node("Relu", {"z"}, {"u"}))
                                      .text(kInput, value("x", kFloat, {"N", "2"}))
                                      .text(kInitializer, raw_tensor("w", kFloat, {2, 3}, floats(6)))
                                      .text(kOutput, value("u", kFloat, {"batch", "seq"})),
                                  21, 10);
  const graph::MetaGraph graph = read(bytes);
  EXPECT_EQ(type_of(graph, "y"), "F32 [B, 3]");
  EXPECT_EQ(type_of(graph, "z"), "? ?");
  EXPECT_EQ(type_of(graph, "u"), "F32 [B, S]");  // the file's own word
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].text, "the shapes of 1 of 4 values are unknown");
}

TEST(OnnxInference, ADivisionByZeroStaysInTheChild) {
  const graph::MetaGraph graph =
      read(model(Proto()
                     .text(kNode, node("MaxPool", {"x"}, {"y"})
                                      .text(5, attribute_ints("kernel_shape", {2, 2}))
                                      .text(5, attribute_ints("strides", {0, 0})))
                     .text(kNode, node("Relu", {"y"}, {"z"}))
                     .text(kInput, value("x", kFloat, {"1", "3", "8", "8"}))));
  EXPECT_EQ(type_of(graph, "y"), "? ?");
  ASSERT_EQ(graph.notes.size(), 2u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::info);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "8");
}

TEST(OnnxInference, FunctionsInCirclesStayInTheChild) {
  const auto function = [](std::string_view name, std::string_view calls) {
    return Proto()
        .text(25, Proto()
                      .text(1, name)
                      .text(4, "i")
                      .text(5, "o")
                      .text(7, node(calls, {"i"}, {"o"}, "", "f"))
                      .text(9, Proto().text(1, "f").number(2, 1))
                      .text(10, "f"))
        .bytes();
  };
  const std::string bytes =
      model(Proto().text(kNode, node("a", {"x"}, {"y"}, "", "f")).text(kInput, value("x", kFloat, {"2"}))) +
      Proto().text(8, Proto().text(1, "f").number(2, 1)).bytes() + function("a", "b") + function("b", "a");
  EXPECT_EQ(read(bytes).forward->ops.size(), 1u);
}

TEST(OnnxInference, AnInconsistentModelOpens) {
  const graph::MetaGraph graph =
      read(model(Proto()
                     .text(kNode, node("MatMul", {"x", "w"}, {"y"}))
                     .text(kNode, node("Relu", {"x"}, {"z"}))
                     .text(kInput, value("x", kFloat, {"2", "5"}))
                     .text(kInitializer, raw_tensor("w", kFloat, {2, 3}, floats(6)))));
  EXPECT_EQ(graph.forward->ops.size(), 2u);
  EXPECT_FALSE(graph.notes.empty());
}

// A chain of operators long enough that reading it takes a while.
std::string long_chain(int length) {
  Proto graph = Proto().text(kInput, value("v0", kFloat, {"2"}));
  for (int i = 0; i < length; ++i)
    graph.text(kNode, node("Relu", {fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)}));
  return model(graph);
}

TEST(OnnxInference, IsLeftOutForWhatReadsTensorsAlone) {
  importers::Source source = testing::memory_source("model.onnx", long_chain(3));
  source.weights_only = true;
  const graph::MetaGraph graph = importers::read_onnx(source);
  ASSERT_TRUE(graph.forward);
  EXPECT_EQ(graph.forward->ops.size(), 3u);
  for (const graph::Value& one : graph.forward->values)
    EXPECT_EQ(one.shape.has_value(), one.name == "v0") << one.name;
  const graph::MetaGraph whole = importers::read_onnx(testing::memory_source("model.onnx", long_chain(3)));
  for (const graph::Value& one : whole.forward->values) EXPECT_TRUE(one.shape) << one.name;
}

TEST(OnnxInference, ASlowModelIsGivenUp) {
  const std::string bytes = long_chain(200'000);
  const importers::Inference inference =
      importers::infer_shapes(bytes, {.time = std::chrono::milliseconds(100)});
  EXPECT_EQ(inference.failure, "it took more than 100 ms");
  EXPECT_TRUE(inference.model.empty());
}

// In a process of its own: the limit counts from what the process holds, and what earlier tests freed is
// room.
TEST(OnnxInference, AHungryModelIsGivenUp) {
  if (testing::kSanitized) GTEST_SKIP() << "sanitizers do not survive a limit of memory";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto infer = [] {
    const importers::Inference inference = importers::infer_shapes(long_chain(100'000), {.memory = 16 << 20});
    std::exit(!inference.failure.empty() && inference.model.empty() ? 0 : 1);
  };
  EXPECT_EXIT(infer(), ::testing::ExitedWithCode(0), "");
}

TEST(OnnxInference, AnAnswerThatIsTooLongIsGivenUp) {
  const importers::Inference inference = importers::infer_shapes(long_chain(1000), {.most_answer = 1000});
  EXPECT_EQ(inference.failure, "its answer has more than 1000 bytes");
}

TEST(OnnxInference, AModelThatIsTooLargeIsNotTried) {
  EXPECT_EQ(importers::infer_shapes(std::string(101, 'x'), {.most_model = 100}).failure,
            "the model without its weights has 101 bytes, the limit is 100");
  EXPECT_EQ(importers::infer_shapes("\xFF\xFF", {}).failure, "protobuf cannot parse it");
}

TEST(OnnxInference, TheChildReachesNoFiles) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    importers::confine_to_memory();
    const bool opened = ::open("/dev/null", O_RDONLY) >= 0;
    const bool refused = !opened && errno == EPERM && ::socket(AF_UNIX, SOCK_STREAM, 0) < 0;
    const std::vector<char> memory(1 << 24, 'm');  // memory there still is
    ::_exit(refused && memory.back() == 'm' ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(WEXITSTATUS(status), 0);
#endif
}

TEST(OnnxInference, NothingIsPrinted) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  importers::infer_shapes("\xFF\xFF", {});
  read(model(
      Proto().text(kNode, node("MatMul", {"x", "x"}, {"y"})).text(kInput, value("x", kFloat, {"2", "5"})),
      900));
  EXPECT_EQ(::testing::internal::GetCapturedStderr() + ::testing::internal::GetCapturedStdout(), "");
}

}  // namespace

// --- ONNX operators: what they use, sizes by name, and graphs that do not fit.

namespace {

// Without shape inference: onnx_inference_test has that.
graph::MetaGraph read_plain(std::string_view bytes) {
  graph::MetaGraph graph = importers::read_onnx(testing::memory_source("m.onnx", bytes), {false});
  graph::validate(graph);
  return graph;
}

std::string note_text(const graph::MetaGraph& graph, std::size_t number) {
  return number < graph.notes.size() ? graph.notes[number].text : "";
}

std::string shape_text(const graph::MetaGraph& graph, std::string_view value) {
  for (const graph::Value& one : graph.forward->values) {
    if (one.name != value || !one.shape) continue;
    std::string text;
    for (const graph::SizePoly& size : *one.shape)
      text += (text.empty() ? "" : ", ") + size.text(graph.forward->symbols);
    return text;
  }
  return "unknown";
}

TEST(OnnxForward, OperatorsUseValuesAndWeights) {
  const graph::MetaGraph graph = read_plain(sample_onnx());
  ASSERT_TRUE(graph.forward);
  const graph::ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.ops.size(), 4u);
  const auto weights = [&](const graph::Op& op) {
    std::set<std::string> names;
    for (const graph::TensorId id : op.weights) names.insert(graph.tensor(id).name);
    return names;
  };
  EXPECT_EQ(forward.ops[0].kind, "MatMul");
  EXPECT_EQ(weights(forward.ops[0]), std::set<std::string>{"weight"});
  EXPECT_EQ(forward.ops[1].kind, "local.Half");
  // the branches use "hidden" from outside, and bring weights of their own
  const graph::Op& choice = forward.ops[2];
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

TEST(OnnxForward, OperatorsKeepPositionsAndAttributes) {
  const graph::MetaGraph graph = read_plain(
      model(Proto()
                .text(kNode, node("Op", {"x", "", "w", "x"}, {"y"})
                                 .text(5, attribute_ints("pads", {1, 2}))
                                 .text(5, Proto().text(1, "mode").text(4, "linear").number(20, 3))
                                 .text(5, Proto().text(1, "axis").number(3, ~std::uint64_t{0}).number(20, 2))
                                 .text(5, Proto().text(1, "long").text(4, std::string(100, 'x'))))
                .text(kInput, value("x", kFloat, {"2"}))
                .text(kInitializer, raw_tensor("w", kFloat, {4}, floats(4)))));
  const graph::Op& op = graph.forward->ops.at(0);
  EXPECT_EQ(op.inputs.size(), 1u);
  ASSERT_EQ(op.arguments.size(), 4u);
  EXPECT_EQ(op.arguments[0].value, op.inputs[0]);
  EXPECT_EQ(op.arguments[1], graph::Argument{});
  EXPECT_EQ(op.arguments[2].weight, graph::TensorId{0});
  EXPECT_EQ(op.arguments[3], op.arguments[0]);
  const std::vector<std::pair<std::string, graph::Attribute>> expected = {
      {"pads", std::vector<std::int64_t>{1, 2}},
      {"mode", std::string("linear")},
      {"axis", std::int64_t{-1}},
      {".long", std::string(100, 'x')},  // for people: rules read no long texts
      {"long", {}}};
  EXPECT_EQ(op.attributes, expected);
}

// What no rule reads is text for people, cut, with its count.
TEST(OnnxForward, AttributesForPeopleAreCut) {
  std::string packed;
  for (int i = 0; i < 20; ++i) packed += std::string("\0\0\0\x3f", 4);  // 0.5
  const graph::MetaGraph graph = read_plain(
      model(Proto()
                .text(kNode, node("Op", {"x"}, {"y"})
                                 .text(6, "made by hand")
                                 .text(5, Proto().text(1, "scales").text(7, packed).number(20, 6))
                                 .text(5, Proto().text(1, "names").text(9, "a").text(9, "b").number(20, 8))
                                 .text(5, attribute_ints("many", std::vector<std::uint64_t>(70, 3))))
                .text(kInput, value("x", kFloat, {"2"}))));
  std::map<std::string, std::string> shown;
  for (const auto& [name, text] : graph.forward->ops.at(0).attributes)
    if (const auto* const words = std::get_if<std::string>(&text)) shown[name] = *words;
  EXPECT_EQ(shown["."], "made by hand");
  EXPECT_EQ(shown[".names"], "[a, b]");
  EXPECT_TRUE(shown[".scales"].starts_with("[0.5, 0.5") && shown[".scales"].ends_with(" 20 in all]"))
      << shown[".scales"];
  EXPECT_TRUE(shown[".many"].ends_with(" 70 in all]")) << shown[".many"];
}

TEST(OnnxForward, DimensionNamesBecomePolynomials) {
  const auto shape_of = [](const std::string& dim) {
    const graph::MetaGraph graph = read_plain(model(Proto()
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
std::string sizes_of(const Proto& graph) {
  const graph::MetaGraph read_graph = read_plain(model(graph));
  std::string text;
  for (const graph::NamedSize& size : read_graph.forward->sizes)
    text += fmt::format("{}{}={}{}", text.empty() ? "" : " ", size.name,
                        size.taken_as.text(read_graph.forward->symbols), size.guessed ? "?" : "");
  EXPECT_EQ(text.find('?') != std::string::npos,
            note_text(read_graph, 0).find("by where they stand") != std::string::npos);
  return text;
}
std::string sizes_text(const std::vector<Proto>& inputs) {
  Proto graph = Proto().text(kNode, node("Op", {}, {"y"}));
  for (const Proto& input : inputs) graph.text(kInput, input);
  return sizes_of(graph);
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

// Of an input that a cast brings to an operator of that kind.
std::string picture_sizes(const std::string& name, std::int64_t type, const std::vector<std::string>& dims,
                          const std::string& kind = "Conv") {
  return sizes_of(Proto()
                      .text(kNode, node("Cast", {name}, {"c"}))
                      .text(kNode, node(kind, {"c", "w"}, {"y"}))
                      .text(kInput, value(name, type, dims))
                      .text(kInitializer, raw_tensor("w", kFloat, {4}, floats(4))));
}

// The sides of a picture become numbers, so that shapes behind a convolution can be inferred.
TEST(OnnxForward, SidesOfPicturesAreTakenAsNumbers) {
  EXPECT_EQ(picture_sizes("x", kFloat, {"n", "3", "h", "w"}), "h=224? w=224? n=B?");
  EXPECT_EQ(picture_sizes("x", kFloat16, {"1", "h", "w", "3"}), "h=224? w=224?");
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "3", "", "-1"}), "x[2]=224? x[3]=224?");
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "3", "h", "64"}), "h=224?");
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "3", "h", "h"}), "h=224?");
  EXPECT_EQ(picture_sizes("pixel_values", kFloat, {"1", "1", "h", "w"}), "h=224? w=224?");
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "1", "h", "w"}), "h=224? w=224?") << "gray";
  EXPECT_EQ(picture_sizes("sample", kFloat, {"1", "4", "h", "w"}), "h=64? w=64?") << "latent";
  EXPECT_EQ(picture_sizes("image", kFloat, {"1", "4", "h", "w"}), "h=224? w=224?") << "transparent";
  // without such channels, or without an operator for pictures, it may be anything
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "2", "h", "w"}), "h=h w=w");
  EXPECT_EQ(picture_sizes("image", kFloat, {"1", "c", "h", "w"}), "c=c h=h w=w");
  EXPECT_EQ(picture_sizes("x", kInt64, {"1", "3", "h", "w"}), "h=h w=w");
  EXPECT_EQ(picture_sizes("x", kFloat, {"1", "3", "h", "w"}, "MatMul"), "h=h w=w");
  EXPECT_EQ(picture_sizes("x", kFloat, {"h", "3", "h", "h"}), "h=h");
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
  const graph::MetaGraph graph = read_plain(model(
      Proto()
          .text(kNode, node("Relu", {"x"}, {"hidden"}))
          .text(kNode,
                node("Loop", {}, {"y"})
                    .text(5, attribute_graph("body", Proto(inner).text(kInput, value("i", kInt64, {})))))
          .text(kInput, value("x", kFloat, {"8"}))
          .text(kOutput, value("y", kFloat, {"8"}))));
  const graph::ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.bodies.size(), 1u);
  const graph::Body& body = forward.bodies[0];
  EXPECT_EQ(forward.ops[1].bodies, std::vector<std::uint32_t>{0});
  ASSERT_EQ(body.ops.size(), 2u);
  EXPECT_EQ(forward.value(body.ops[0].inputs.at(0)).name, "hidden");
  EXPECT_EQ(body.ops[0].inputs[0], forward.ops[0].outputs[0]);
  EXPECT_EQ(shape_text(graph, "r"), "8");
  EXPECT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(body.outputs, body.ops[1].outputs);
}

// The branch that is taken comes first, and operators in it read weights of their own and of the graph
// around.
TEST(OnnxForward, BranchesHaveAnOrderAndReadWeights) {
  const auto branch = [](const char* kind, const char* weight) {
    return Proto()
        .text(kNode, node(kind, {"x", weight}, {"o"}))
        .text(kInitializer, raw_tensor("own", kFloat, {8}, floats(8)))
        .text(kOutput, value("o", kFloat, {"8"}));
  };
  const graph::MetaGraph graph =
      read_plain(model(Proto()
                           .text(kNode, node("If", {"c"}, {"y"}, "choose")
                                            .text(5, attribute_graph("else_branch", branch("Sub", "outer")))
                                            .text(5, attribute_graph("then_branch", branch("Add", "own"))))
                           .text(kInput, value("x", kFloat, {"8"}))
                           .text(kInput, value("c", kBool, {}))
                           .text(kInitializer, raw_tensor("outer", kFloat, {8}, floats(8)))
                           .text(kOutput, value("y", kFloat, {"8"}))));
  const graph::ForwardGraph& forward = *graph.forward;
  const auto weight_of = [&](std::size_t number) {
    const graph::Op& op = forward.bodies.at(forward.ops.at(0).bodies.at(number)).ops.at(0);
    return op.kind + " " + graph.tensor(op.weights.at(0)).name.str();
  };
  EXPECT_EQ(weight_of(0), "Add choose/then_branch/own");
  EXPECT_EQ(weight_of(1), "Sub outer");
}

TEST(OnnxForward, BodiesAsDeepAsTheyMayBe) {
  Proto deep = Proto().text(kNode, node("Relu", {"x"}, {"o"}));
  for (int i = 0; i < 20; ++i)
    deep = Proto().text(kNode, node("If", {"x"}, {"o"}).text(5, attribute_graph("then_branch", deep)));
  const graph::MetaGraph graph = read_plain(model(deep.text(kInput, value("x", kFloat, {"8"}))));
  EXPECT_EQ(graph.forward->bodies.size(), graph::kMostBodyDepth);
  EXPECT_TRUE(graph::setting_for_people(graph.forward->bodies.front().ops.front(), graph::kNotDrawn))
      << "the innermost says what is left out";
  // in the innermost one something is unknown
  EXPECT_TRUE(
      std::any_of(graph.forward->bodies.begin(), graph.forward->bodies.end(), [&](const graph::Body& body) {
        return std::any_of(body.ops.begin(), body.ops.end(),
                           [](const graph::Op& op) { return !op.temporaries.empty(); });
      }));
}

TEST(OnnxForward, ManySymbolsEnd) {
  Proto graph = Proto().text(kNode, node("Relu", {"x0"}, {"y"}));
  for (int i = 0; i < 10'000; ++i)
    graph.text(kInput, value(fmt::format("x{}", i), kFloat, {fmt::format("dim{}", i)}));
  const graph::MetaGraph read_graph = read_plain(model(graph));
  EXPECT_LE(read_graph.forward->symbols.size(), 4096u);
  EXPECT_EQ(read_graph.forward->inputs.size(), 10'000u);
}

TEST(OnnxForward, OperatorsThatDoNotFitAreLeftOutWithAReason) {
  const auto why = [](const Proto& graph) {
    const graph::MetaGraph read_graph = read_plain(model(graph));
    EXPECT_FALSE(read_graph.forward);
    return note_text(read_graph, 0);
  };
  const Proto relu = node("Relu", {"x"}, {"y"}, "r");
  EXPECT_EQ(testing::facts(why(Proto().text(kNode, relu))), "'r' 'x'");
  EXPECT_EQ(testing::facts(why(Proto()
                                   .text(kNode, node("Relu", {"y"}, {"z"}))
                                   .text(kNode, relu)
                                   .text(kInput, value("x", kFloat, {})))),
            "'' 'y'");
  EXPECT_EQ(
      testing::facts(why(Proto().text(kNode, relu).text(kNode, relu).text(kInput, value("x", kFloat, {})))),
      "'y' 'r'");
  EXPECT_EQ(
      testing::facts(why(
          Proto().text(kNode, node("Rand", {}, {"w"})).text(kInitializer, raw_tensor("w", kUint8, {}, "1")))),
      "'w' ''");
  EXPECT_EQ(
      testing::facts(why(Proto().text(kNode, node("Rand", {}, {"w"})).text(kOutput, value("q", kFloat, {})))),
      "'q'");
  const Proto inner = Proto().text(kNode, node("Relu", {"nowhere"}, {"o"}));
  EXPECT_EQ(testing::facts(why(
                Proto().text(kNode, node("If", {}, {"w"}).text(5, attribute_graph("then_branch", inner))))),
            "'' 'nowhere'");
}

TEST(OnnxForward, InitializersAmongTheInputsAreWeights) {
  // IR version 3 lists every initializer as an input, too
  const graph::MetaGraph graph =
      read_plain(model(Proto()
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

// Each call has the operators of its function, with the names of the call; the pass counts the call as one.
TEST(OnnxForward, FunctionsAreInsideOfTheirCalls) {
  const Proto function = Proto()
                             .text(1, "scaled")
                             .text(4, "given")
                             .text(4, "by")
                             .text(4, "left_out")
                             .text(5, "result")
                             .text(7, node("Mul", {"given", "by"}, {"product"}))
                             .text(7, node("Clip", {"product", "left_out"}, {"result"}))
                             .text(10, "f");
  // "left_out" is a value of the graph around, which the function does not see
  const std::string file = model(Proto()
                                     .text(kNode, node("Relu", {"x"}, {"left_out"}))
                                     .text(kNode, node("scaled", {"left_out", "w"}, {"y"}, "first", "f"))
                                     .text(kNode, node("scaled", {"y", "x"}, {"z"}, "second", "f"))
                                     .text(kInput, value("x", kFloat, {"8"}))
                                     .text(kInitializer, raw_tensor("w", kFloat, {8}, floats(8)))
                                     .text(kOutput, value("z", kFloat, {"8"}))) +
                           Proto().text(25, function).bytes();
  const graph::MetaGraph graph = read_plain(file);
  const graph::ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.ops.size(), 3u);
  ASSERT_EQ(forward.bodies.size(), 2u);
  EXPECT_EQ(graph::body_name(forward.ops[1], 0), "function");
  const graph::Body& first = forward.bodies.at(forward.ops[1].bodies.at(0));
  ASSERT_EQ(first.ops.size(), 2u);
  EXPECT_EQ(first.ops[0].inputs, forward.ops[0].outputs) << "what the call gives";
  EXPECT_EQ(first.ops[0].arguments.at(1).weight, graph::TensorId{0});
  EXPECT_EQ(first.ops[1].inputs, first.ops[0].outputs) << "left_out is left out";
  EXPECT_EQ(first.outputs, first.ops[1].outputs);
  const graph::Body& second = forward.bodies.at(forward.ops[2].bodies.at(0));
  EXPECT_EQ(second.ops[0].inputs.at(0), forward.ops[1].outputs.at(0));
  EXPECT_EQ(graph::bodies_that_run(forward), (std::vector<bool>{false, false}));
  for (const graph::Note& note : graph.notes)
    EXPECT_EQ(note.text.find(" of 6 "), std::string::npos)
        << "values of functions are not counted: " << note.text;
}

TEST(OnnxForward, OverloadsTellFunctionsOfOneNameApart) {
  std::string functions;
  for (const auto& [overload, kind] : {std::pair("one", "Relu"), std::pair("two", "Neg")})
    functions += Proto()
                     .text(25, Proto()
                                   .text(1, "f")
                                   .text(4, "i")
                                   .text(5, "o")
                                   .text(7, node(kind, {"i"}, {"o"}))
                                   .text(10, "f")
                                   .text(13, overload))
                     .bytes();
  const graph::MetaGraph graph =
      read_plain(model(Proto()
                           .text(kNode, node("f", {"x"}, {"y"}, "", "f").text(8, "two"))
                           .text(kNode, node("f", {"y"}, {"z"}, "", "f").text(8, "one"))
                           .text(kNode, node("f", {"z"}, {"u"}, "", "f"))
                           .text(kInput, value("x", kFloat, {"8"}))) +
                 functions);
  const graph::ForwardGraph& forward = *graph.forward;
  ASSERT_EQ(forward.ops.size(), 3u);
  ASSERT_EQ(forward.bodies.size(), 2u);
  EXPECT_EQ(forward.bodies.at(forward.ops[0].bodies.at(0)).ops.at(0).kind, "Neg");
  EXPECT_EQ(forward.bodies.at(forward.ops[1].bodies.at(0)).ops.at(0).kind, "Relu");
  EXPECT_TRUE(forward.ops[2].bodies.empty()) << "no function has no overload";
}

// A value in a graph inside a function may have a shape: it is neither among the unknown nor taken off them.
TEST(OnnxForward, ValuesOfFunctionsAreNotAmongTheUnknown) {
  const Proto branch =
      Proto().text(kNode, node("Relu", {"c"}, {"r"})).text(kOutput, value("r", kFloat, {"8"}));
  const Proto choice = node("If", {"c"}, {"o"}).text(5, attribute_graph("then_branch", branch));
  const std::string function =
      Proto().text(25, Proto().text(1, "f").text(4, "c").text(5, "o").text(7, choice).text(10, "f")).bytes();
  const graph::MetaGraph graph = read_plain(
      model(Proto().text(kNode, node("f", {"c"}, {"y"}, "", "f")).text(kInput, value("c", kFloat, {"8"}))) +
      function);
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].text, "the shapes of 1 of 2 values are unknown");
}

// What stands in graphs inside a function counts, too, and so do the letters of names.
TEST(OnnxForward, FunctionsAreLeftOutWhereTheyAreTooMuch) {
  const auto drawn_calls = [](const Proto& inside, std::size_t calls) {
    const std::string function =
        Proto()
            .text(25, Proto().text(1, "f").text(4, "c").text(5, "o").text(7, inside).text(10, "f"))
            .bytes();
    Proto graph = Proto().text(kInput, value("c", kFloat, {"8"}));
    for (std::size_t i = 0; i < calls; ++i)
      graph.text(kNode, node("f", {"c"}, {"y" + std::to_string(i)}, "", "f"));
    const graph::MetaGraph read = read_plain(model(graph) + function);
    std::size_t nodes = 0;
    if (!read.forward) return std::ptrdiff_t{-1};
    for (const graph::Body& body : read.forward->bodies) nodes += body.ops.size();
    EXPECT_LE(nodes, 20'000u);
    EXPECT_EQ(read.forward->ops.size(), calls);
    return std::ranges::count_if(read.forward->ops, [](const graph::Op& op) { return !op.bodies.empty(); });
  };
  Proto branch;
  for (int i = 0; i < 999; ++i) branch.text(kNode, node("Relu", {"c"}, {"r" + std::to_string(i)}));
  EXPECT_EQ(drawn_calls(node("If", {"c"}, {"o"}).text(5, attribute_graph("then_branch", branch)), 30), 20);
  EXPECT_EQ(drawn_calls(node("Relu", {"c"}, {"o"}, std::string(1 << 20, 'n')), 30), 15)
      << "16 MiB, of which a call takes one and a byte";
}

// A name that begins with a dot would be taken for what Loadline itself says.
TEST(OnnxForward, NoAttributeOfAFileIsForPeople) {
  const graph::MetaGraph graph =
      read_plain(model(Proto()
                           .text(kNode, node("Relu", {"x"}, {"y"}).text(5, attribute_ints(".function", {1})))
                           .text(kInput, value("x", kFloat, {"8"}))));
  const auto& attributes = graph.forward->ops.at(0).attributes;
  ASSERT_EQ(attributes.size(), 1u);
  EXPECT_FALSE(graph::is_for_people(attributes[0].first)) << attributes[0].first;
}

// Functions that call each other are read, and followed as deep as graphs are.
TEST(OnnxForward, FunctionsInCirclesAreRead) {
  const auto function = [](std::string_view name, std::string_view calls) {
    return Proto()
        .text(25, Proto().text(1, name).text(5, "o").text(7, node(calls, {}, {"o"}, "", "f")).text(10, "f"))
        .bytes();
  };
  const std::string calls = model(Proto().text(kNode, node("a", {}, {"y"}, "", "f")));
  EXPECT_EQ(read_plain(calls + function("a", "a")).forward->ops.size(), 1u);
  EXPECT_EQ(read_plain(calls + function("a", "b") + function("b", "a")).forward->ops.size(), 1u);
  const Proto branch = Proto().text(kNode, node("a", {}, {"o"}, "", "f"));
  const Proto choice = node("If", {"c"}, {"o"}).text(5, attribute_graph("then_branch", branch));
  const std::string through =
      Proto().text(25, Proto().text(1, "a").text(4, "c").text(5, "o").text(7, choice).text(10, "f")).bytes();
  EXPECT_EQ(read_plain(calls + through).forward->ops.size(), 1u);
}

}  // namespace

}  // namespace loadline::tests
