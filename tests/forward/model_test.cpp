// A file's own operators, and what is known of a model's forward pass.

#include "core/base/error.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/meta_graph.h"
#include "core/load/answer/projection.h"
#include "core/load/request/model_parts.h"
#include "core/plan/plan.h"
#include "tests/forward/graph_builder.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Which values share memory when a file's own operators run under a profile, and in which order they run.

namespace {

using testing::Builder;

const graph::SizePoly kB = graph::SizePoly::symbol(graph::kBatch),
                      kS = graph::SizePoly::symbol(graph::kSequence);

// Named as a file's operators might be; "View" and "Soft" have a rule, others have none.
forward::Profile profile_of(const std::string& more = "") {
  return forward::parse_profile(
      R"json({"profile": "test", "operators": "onnx", )json" + more +
          R"json( "ops": {"View": {"view": "1"}, "Soft": {"in_place": "1"}, "Const": {"without": "true"},
                   "Pick": {"temporaries": ["inputs == 2 ? e*n*c : out", "out"]}}})json",
      "test.json");
}

// What runs under the profile, checked as an importer's result would be.
graph::ForwardGraph run(const Builder& builder, const forward::Profile& profile = profile_of()) {
  graph::MetaGraph graph;
  for (int i = 0; i < 4; ++i) {
    graph.storages.push_back(graph::shapes_only_storage(4));
    graph.tensors.push_back({graph::Name(fmt::format("t{}", i)),
                             graph::DType::f32,
                             graph::Shape{1},
                             {},
                             graph::StorageId{static_cast<std::uint32_t>(i)},
                             0});
  }
  graph.forward = builder.graph();
  EXPECT_NO_THROW(graph::validate(graph));
  graph.forward = forward::with_profile(builder.graph(), profile);
  EXPECT_NO_THROW(graph::validate(graph));
  return *graph.forward;
}

// "b of a" for each value that shares the memory of another, in order.
std::string shares(const graph::ForwardGraph& graph) {
  std::string text;
  for (const graph::Value& value : graph.values)
    if (value.memory_of)
      text +=
          fmt::format("{}{} of {}", text.empty() ? "" : ", ", value.name, graph.value(*value.memory_of).name);
  return text;
}

std::string order(const graph::ForwardGraph& graph) {
  std::string text;
  for (const graph::Op& op : graph.ops) text += (text.empty() ? "" : " ") + op.name;
  return text;
}

std::uint64_t peak(const graph::ForwardGraph& graph) {
  const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 2, 3, 0));
  return forward::forward_peak(graph, forward::forward_usage(graph, forward::lifetimes(graph), sizes), sizes)
      .bytes;
}

TEST(FileGraph, ViewsShareTheMemoryOfTheFirstOfAChain) {
  const auto graph = Builder()
                         .op("Make", {"x"}, "a")
                         .op("View", {"a"}, "b", Builder::Sizes{graph::SizePoly(10), graph::SizePoly(100)})
                         .op("View", {"b"}, "c")
                         .op("Make", {"a"}, "other")
                         .op("Join", {"c", "other"}, "y")
                         .returns({"y"});
  const graph::ForwardGraph result = run(graph);
  EXPECT_EQ(shares(result), "b of a, c of a");
  const auto lives = forward::lifetimes(result);
  EXPECT_EQ(lives[1], (forward::OpRange{0, 5}));  // a, for as long as c is needed
  EXPECT_EQ(peak(result), 3 * 4000u);             // a, other, y
  // an input of the graph may be looked at differently, too
  EXPECT_EQ(shares(run(Builder().op("View", {"x"}, "a").op("Make", {"a"}, "y").returns({"y"}))), "a of x");
}

TEST(FileGraph, AViewOfAWeightIsNoneOfTheShapeBesideIt) {
  Builder graph;  // the first input is a weight, which Op::inputs leaves out: "shape" is the second
  graph.op("Make", {"x"}, "shape", Builder::Sizes{graph::SizePoly(2)}, graph::DType::i64);
  graph.op("View", {"shape"}, "v").weight(0).op("Make", {"v"}, "y").returns({"y"});
  EXPECT_EQ(shares(run(graph)), "");
}

TEST(FileGraph, WorksInPlaceOnlyOnWhatDiesThere) {
  EXPECT_EQ(
      shares(
          run(Builder().op("Make", {"x"}, "a").op("Soft", {"a"}, "b").op("Make", {"b"}, "y").returns({"y"}))),
      "b of a");
  // the input lives on
  EXPECT_EQ(shares(run(Builder()
                           .op("Make", {"x"}, "a")
                           .op("Soft", {"a"}, "b")
                           .op("Join", {"a", "b"}, "y")
                           .returns({"y"}))),
            "");
  // a view of the input lives on
  EXPECT_EQ(shares(run(Builder()
                           .op("Make", {"x"}, "a")
                           .op("View", {"a"}, "v")
                           .op("Soft", {"a"}, "b")
                           .op("Join", {"v", "b"}, "y")
                           .returns({"y"}))),
            "v of a");
  // nobody may write into an input of the graph
  EXPECT_EQ(shares(run(Builder().op("Soft", {"x"}, "b").op("Make", {"b"}, "y").returns({"y"}))), "");
  // nor into what is an output of it, and an output is in memory of its own
  EXPECT_EQ(shares(run(Builder()
                           .op("Make", {"x"}, "a")
                           .op("Soft", {"a"}, "b")
                           .op("Make", {"b"}, "y")
                           .returns({"a", "y"}))),
            "");
  EXPECT_EQ(shares(run(Builder().op("Make", {"x"}, "a").op("Soft", {"a"}, "y").returns({"y"}))), "");
  EXPECT_EQ(shares(run(Builder().op("Make", {"x"}, "a").op("View", {"a"}, "y").returns({"y"}))), "");
}

TEST(FileGraph, WorksInPlaceOnlyWhereSizesAreTheSame) {
  const auto with = [](const std::optional<Builder::Sizes>& from, const std::optional<Builder::Sizes>& to,
                       graph::DType dtype = graph::DType::f32) {
    return shares(run(Builder()
                          .op("Make", {"x"}, "a", from)
                          .op("Soft", {"a"}, "b", to, dtype)
                          .op("Make", {"b"}, "y")
                          .returns({"y"})));
  };
  const Builder::Sizes tokens = {kB, kS}, turned = {kS, kB};
  EXPECT_EQ(with(tokens, tokens), "b of a");
  EXPECT_EQ(with(tokens, tokens, graph::DType::i32), "b of a");  // as wide
  EXPECT_EQ(with(tokens, tokens, graph::DType::f16), "");
  EXPECT_EQ(with(tokens, turned), "");
  EXPECT_EQ(with(tokens, Builder::Sizes{kB, kB}), "");
  EXPECT_EQ(with(tokens, std::nullopt), "");
  EXPECT_EQ(with(std::nullopt, std::nullopt), "");
  EXPECT_EQ(with(tokens, tokens, graph::DType::i4), "");
}

TEST(FileGraph, OnlyOneOfTwoOutputsTakesAnInput) {
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Soft", {"a"}, "b").op("Soft", {"a"}, "c").op("Join", {"b", "c"}, "y");
  builder.returns({"y"});
  EXPECT_EQ(shares(run(builder)), "c of a");  // the later operator: until then a is needed

  // two outputs of one operator: the first has the rule, the second finds nothing given up
  graph::ForwardGraph two = builder.graph();
  two.ops[1].outputs.push_back(two.ops[2].outputs[0]);
  two.ops.erase(two.ops.begin() + 2);
  const graph::ForwardGraph result = forward::with_profile(two, profile_of(R"("reuse": "1",)"));
  EXPECT_EQ(shares(result), "b of a");
}

TEST(FileGraph, AnOpenSizeEqualsNoOther) {
  const auto with = [](const graph::SizePoly& size, bool open, bool half_declared = false) {
    const Builder::Sizes shape = {size, graph::SizePoly(9)};
    Builder builder;
    builder.op("Make", {"x"}, "a", shape).op("Soft", {"a"}, "b", shape);
    if (half_declared) builder.half_declared();
    graph::ForwardGraph graph = builder.op("Make", {"b"}, "y").returns({"y"}).graph();
    graph.sizes = {{.name = "x[0]", .taken_as = kB, .guessed = true, .open = open}};
    return shares(forward::with_profile(graph, profile_of()));
  };
  EXPECT_EQ(with(graph::SizePoly(7), true), "b of a");
  EXPECT_EQ(with(kB, true), "");
  EXPECT_EQ(with(kB, false), "b of a");
  EXPECT_EQ(with(kB, false, true), "");
  EXPECT_EQ(with(graph::SizePoly(7), false, true), "");
}

// The last operator's temporaries, as sizes.
std::string temporaries(const graph::ForwardGraph& graph, const forward::Profile& profile,
                        std::span<const graph::Tensor> tensors = {}) {
  const graph::ForwardGraph result = forward::with_profile(graph, profile, tensors);
  std::string text;
  for (const graph::ValueId id : result.ops.back().temporaries)
    text += graph::value_bytes(result.value(id)).value_or(graph::SizePoly(-1)).text(result.symbols) + ' ';
  for (const std::string& kind : result.unaccounted) text += kind + '?';
  return text;
}

TEST(FileGraph, RulesSeeShapesAndAttributes) {
  const auto rule = [](const std::string& temporary) {
    return forward::parse_profile(
        fmt::format(
            R"({{"profile": "p", "operators": "onnx", "kernels": {{"plain": ["Make"], "let": {{"parts": "group ?? 1", "all": "2 * parts"}}}},
                        "ops": {{"Fold": {{"temporaries": ["{}"]}}}}}})",
            temporary),
        "p.json");
  };
  graph::ForwardGraph graph = Builder()
                                  .op("Make", {"x"}, "a", Builder::Sizes{kB, graph::SizePoly(8)})
                                  .op("Fold", {"a"}, "y", Builder::Sizes{kB, kS}, graph::DType::f16)
                                  .returns({"y"})
                                  .graph();
  graph.opset = 17;
  graph::Op& fold = graph.ops[1];
  fold.arguments = {{fold.inputs[0], {}}, {}, {{}, graph::TensorId{0}}};
  fold.attributes = {
      {"group", std::int64_t{3}}, {"pads", std::vector<std::int64_t>{1, 2}}, {"mode", std::string("x")}};
  const std::vector<graph::Tensor> tensors = {
      {graph::Name("w"), graph::DType::f64, graph::Shape{4, 5}, {}, graph::StorageId{0}, 0}};
  const auto sizes = [&](const std::string& temporary) {
    return temporaries(graph, rule(temporary), tensors);
  };
  EXPECT_EQ(sizes("product(shape(1), 0)"), "8*B ");
  EXPECT_EQ(sizes("product(shape(3), 1) * width(3)"), "40 ");
  EXPECT_EQ(sizes("(shape(2) == null) * 7 + (width(4) == null) * 10"), "17 ");
  EXPECT_EQ(sizes("result(1)[1] * width(1)"), "4*S ");
  EXPECT_EQ(sizes("all + pads[1] + (mode == 'x') * 100 + opset"), "125 ");
  EXPECT_EQ(sizes("arguments * 10 + results"), "31 ");
  EXPECT_EQ(sizes("choose(parts, 2, 11, 12)"), "11 ");
  EXPECT_EQ(sizes("max(3, parts) + min(9, 4)"), "7 ");
  EXPECT_EQ(sizes("null"), "-1 ");  // unknown
}

TEST(FileGraph, SizesAreChosenWhenTheyAreKnown) {
  const forward::Profile profile = forward::parse_profile(
      R"json({"profile": "p", "operators": "onnx", "ops": {"Fold": {"temporaries": [
        "choose(product(shape(1), 0), 50, 1000, 9)", "choose(product(shape(1), 0), 50, 1000, 9)"]}}})json",
      "p.json");
  graph::ForwardGraph graph =
      Builder().op("Make", {"x"}, "a", Builder::Sizes{kB, kS}).op("Fold", {"a"}, "y").returns({"y"}).graph();
  graph.symbols.push_back("frames");
  const graph::ForwardGraph result = forward::with_profile(graph, profile);
  ASSERT_EQ(result.chosen.size(), 1u);  // the same size is one symbol
  const auto bytes = [&](std::uint64_t batch, std::uint64_t sequence) {
    return forward::value_sizes(result, forward::symbol_values(result, batch, sequence, 0, {}))
        .at(graph::index(result.ops[1].temporaries[0]));
  };
  EXPECT_EQ(bytes(5, 10), 9u);
  EXPECT_EQ(bytes(5, 11), 1000u);
}

TEST(FileGraph, WhatIsNotAccountedForIsNamed) {
  const forward::Profile profile = forward::parse_profile(
      R"json({"profile": "p", "operators": "onnx", "kernels": {"plain": ["Make"], "movers": ["Move"], "types": ["F32"]},
       "ops": {"Fold": {"for": "(group ?? 1) == 1", "attributes": ["group"], "temporaries": ["64"]}, "View": {"view": "1"}}})json",
      "p.json");
  const auto of = [&](const std::string& kind, graph::DType dtype,
                      const std::vector<std::pair<std::string, graph::Attribute>>& attributes = {}) {
    graph::ForwardGraph graph =
        Builder().op(kind, {"x"}, "y", Builder::Sizes{graph::SizePoly(4)}, dtype).returns({"y"}).graph();
    graph.ops[0].attributes = attributes;
    return temporaries(graph, profile);
  };
  EXPECT_EQ(of("Make", graph::DType::f32), "");
  EXPECT_EQ(of("Make", graph::DType::f16), "Make?");
  EXPECT_EQ(of("Move", graph::DType::f16), "");
  EXPECT_EQ(of("View", graph::DType::f16), "");
  EXPECT_EQ(of("Turn", graph::DType::f32), "Turn?");
  EXPECT_EQ(of("Fold", graph::DType::f32), "64 ");
  EXPECT_EQ(of("Fold", graph::DType::f32, {{"group", std::int64_t{1}}}), "64 ");
  EXPECT_EQ(of("Fold", graph::DType::f32, {{"group", std::int64_t{2}}}), "Fold?");
  EXPECT_EQ(of("Fold", graph::DType::f32, {{"activation", std::string("Relu")}}), "Fold.activation?");
  EXPECT_EQ(of("Make", graph::DType::f32, {{"axis", std::int64_t{1}}}), "Make.axis?");
  EXPECT_EQ(of("Move", graph::DType::f16, {{"axis", std::int64_t{1}}}), "Move.axis?");
  // a value that was not kept is not taken for one that is not set
  EXPECT_EQ(of("Fold", graph::DType::f32, {{"group", graph::Attribute()}}), "64 Fold.group?");
}

TEST(FileGraph, AnOperatorMayRunAsOthers) {
  const forward::Profile profile = forward::parse_profile(
      R"json({"profile": "p", "operators": "onnx", "kernels": {"plain": ["Make", "Join"]}, "reuse": "1",
       "ops": {"Soft": {"in_place": "1"}, "Gate": {"steps": ["Make 1", "Soft a", "Join 1 b"]}}})json",
      "p.json");
  graph::ForwardGraph graph =
      Builder().op("Make", {"x"}, "a").op("Gate", {"a"}, "b").op("Make", {"b"}, "y").returns({"y"}).graph();
  const graph::ForwardGraph result = forward::with_profile(graph, profile);
  std::string kinds;
  for (const graph::Op& op : result.ops) kinds += op.kind + ' ';
  EXPECT_EQ(kinds, "Make Make Soft Join Make ");
  EXPECT_EQ(shares(result), "b.Soft of b.Make");
  EXPECT_TRUE(result.unaccounted.empty());
  EXPECT_EQ(peak(result), 3 * 4000u);  // x is gone after a: a, its gate, b
}

TEST(FileGraph, AnInputUsedTwiceIsNotOverwritten) {
  graph::ForwardGraph graph =
      Builder().op("Make", {"x"}, "a").op("Soft", {"a"}, "b").op("Make", {"b"}, "y").returns({"y"}).graph();
  const graph::ValueId a = graph.ops[1].inputs[0];
  graph.ops[1].arguments = {{a, {}}};
  EXPECT_EQ(shares(forward::with_profile(graph, profile_of())), "b of a");
  graph.ops[1].arguments = {{a, {}}, {a, {}}};
  EXPECT_EQ(shares(forward::with_profile(graph, profile_of())), "");
  graph.ops[1].arguments = {{{}, graph::TensorId{0}}, {a, {}}};  // the rule means the weight
  EXPECT_EQ(shares(forward::with_profile(graph, profile_of())), "");
}

TEST(FileGraph, ReusesThePlaceGivenUpLastAndKeepsIt) {
  const Builder::Sizes small = {graph::SizePoly(10)};
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Make", {"a"}, "b").op("Make", {"b"}, "c");
  builder.op("Make", {"c"}, "d", small).op("Make", {"d"}, "e", small).op("Make", {"e"}, "f");
  builder.op("Make", {"f"}, "y").returns({"y"});
  EXPECT_EQ(shares(run(builder)), "");
  const graph::ForwardGraph result = run(builder, profile_of(R"("reuse": "1",)"));
  // c where a was; f where that was, rather than where b was, which was given up before
  EXPECT_EQ(shares(result), "c of a, f of a");
  EXPECT_EQ(forward::lifetimes(result)[1], (forward::OpRange{0, 7}));  // also while only d and e are needed
}

TEST(FileGraph, ConstantsAndViewsOfThemAreWeights) {
  Builder builder;
  builder.op("Const", {}, "k").weight(1).op("View", {"k"}, "v").op("Make", {"v", "x"}, "y").weight(2);
  builder.returns({"y"});
  const graph::ForwardGraph result = run(builder);
  ASSERT_EQ(order(result), "y");
  EXPECT_EQ(result.ops[0].inputs.size(), 1u);
  EXPECT_EQ(result.ops[0].weights, (std::vector{graph::TensorId{2}, graph::TensorId{1}}));
  EXPECT_EQ(result.values.size(), 2u);
  // one that is an output of the graph takes memory
  EXPECT_EQ(order(run(Builder().op("Const", {}, "k").returns({"k"}))), "k");
  EXPECT_EQ(shares(run(Builder().op("Const", {}, "k").op("View", {"k"}, "y").returns({"y"}))), "");
}

TEST(FileGraph, TemporariesFollowFromInputsAndOutputs) {
  const Builder::Sizes mask = {kB, kS}, all = {graph::SizePoly(5), kB, kS};
  const auto pick = [&](const std::vector<std::string>& inputs) {
    Builder builder;
    builder.op("Make", {"x"}, "mask", mask, graph::DType::boolean)
        .op("Make", {"x"}, "p", all)
        .op("Make", {"x"}, "q", all);
    const graph::ForwardGraph graph = run(builder.op("Pick", inputs, "y", all).returns({"y"}));
    std::string text;
    for (const graph::ValueId id : graph.ops.back().temporaries)
      text += graph::value_bytes(graph.value(id))->text(graph.symbols) + ' ';
    return text;
  };
  EXPECT_EQ(pick({"mask", "p", "q"}), "20*B*S 20*B*S ");
  EXPECT_EQ(pick({"mask", "p"}), "4*B*S 20*B*S ");
  // nothing is made up where a size is not known
  EXPECT_TRUE(run(Builder().op("Pick", {"x"}, "y", std::nullopt).returns({"y"})).ops[0].temporaries.empty());
}

TEST(FileGraph, ATemporaryBeyond64BitsIsUnknown) {
  const Builder::Sizes wide = {graph::SizePoly(std::int64_t{1} << 31),
                               graph::SizePoly(std::int64_t{1} << 31)};
  Builder builder;
  builder.op("Make", {"x"}, "mask", wide, graph::DType::boolean)
      .op("Make", {"x"}, "p", Builder::Sizes{graph::SizePoly(2)});
  const graph::ForwardGraph graph = run(builder.op("Pick", {"mask", "p"}, "y").returns({"y"}));
  ASSERT_EQ(graph.ops[2].temporaries.size(), 2u);
  EXPECT_FALSE(graph.value(graph.ops[2].temporaries[0]).shape);
  EXPECT_TRUE(graph.value(graph.ops[2].temporaries[1]).shape);
  const std::vector<std::optional<std::uint64_t>> sizes =
      forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
  EXPECT_EQ(forward::forward_peak(graph, {}, sizes).unknown, 1u);
}

TEST(FileGraph, WorkIsBounded) {
  const auto fault = [](const graph::ForwardGraph& graph, const forward::Profile& profile) {
    return testing::facts_of([&] { forward::with_profile(graph, profile); });
  };
  graph::ForwardGraph graph =
      Builder().op("Const", {}, "k").op("Make", {"k", "x"}, "y").returns({"y"}).graph();
  graph.ops[0].weights.assign(200, graph::TensorId{0});
  const graph::Op user = graph.ops[1];
  for (int i = 0; i < 40'000; ++i) {
    graph.values.push_back(graph.value(user.outputs[0]));
    graph.ops.push_back(user);
    graph.ops.back().outputs = {graph::ValueId{static_cast<std::uint32_t>(graph.values.size() - 1)}};
  }
  EXPECT_EQ(fault(graph, profile_of()), "limit 4,000,000");
  graph.ops[0].weights.resize(2);
  EXPECT_EQ(forward::with_profile(graph, profile_of()).ops[7].weights.size(), 2u);
  std::string many = "1", sum = "1";
  for (int i = 1; i < 16; ++i) many += R"(", "1)";
  for (int i = 0; i < 400; ++i) sum += "+1";
  const auto rules = [](const std::string& rule) {
    return forward::parse_profile(
        fmt::format(R"({{"profile": "p", "operators": "onnx", "ops": {{"Make": {}}}}})", rule), "p.json");
  };
  EXPECT_EQ(fault(graph, rules(R"({"temporaries": [")" + many + "\"]}")), "limit 'p' 500,000");
  std::string sums = sum;
  for (int i = 1; i < 16; ++i) sums += R"(", ")" + sum;
  // where the work runs out depends on which operand the compiler evaluates first
  EXPECT_TRUE(
      fault(graph, rules(R"({"temporaries": [")" + sums + "\"]}")).starts_with("malformed p.json 1 "));
}

TEST(FileGraph, InputsStayWhereTheCallerHoldsThem) {
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Make", {"a", "never used"}, "b").op("Make", {"b"}, "y").returns({"y"});
  EXPECT_EQ(peak(run(builder)), 3 * 4000u);  // x, a second input, a
  EXPECT_EQ(peak(run(builder, profile_of(R"("hold_block_inputs": "1",)"))), 4 * 4000u);
  EXPECT_TRUE(forward::with_profile({}, profile_of(R"("hold_block_inputs": "1",)")).ops.empty());
}

TEST(FileGraph, RulesThatMakeNoSenseAreToldAtTheirPlace) {
  for (const char* rule : {R"({"in_place": "9"})", R"({"view": "'a'"})", R"({"temporaries": ["'much'"]})"}) {
    const forward::Profile profile = forward::parse_profile(
        fmt::format(R"({{"profile": "p", "operators": "onnx", "ops": {{"Make": {}}}}})", rule), "p.json");
    const graph::ForwardGraph graph =
        Builder().op("Make", {"x"}, "a").op("Make", {"a"}, "y").returns({"y"}).graph();
    const std::string facts = testing::facts_of([&] { forward::with_profile(graph, profile); });
    EXPECT_TRUE(facts.starts_with("malformed p.json 1 ")) << rule << ": " << facts;
  }
}

// An operator "Choose" between two bodies that use "a", and of what they make "y"; the first has an input of
// its own.
graph::ForwardGraph with_bodies(std::int64_t first, std::int64_t second) {
  graph::ForwardGraph graph =
      Builder().op("Make", {"x"}, "a").op("Choose", {"a"}, "y").returns({"y"}).graph();
  const auto value = [&](const std::string& name, std::int64_t size) {
    graph.values.push_back(
        {.name = name, .dtype = graph::DType::f32, .shape = Builder::Sizes{graph::SizePoly(size)}});
    return graph::ValueId{static_cast<std::uint32_t>(graph.values.size() - 1)};
  };
  const graph::ValueId a = graph.ops[0].outputs[0];
  for (const std::int64_t size : {first, second}) {
    graph::Body body;
    if (size == first) body.inputs = {value("i", 10)};
    const graph::ValueId b = value("b", size), c = value("c", size), d = value("d", 1000);
    body.ops.push_back({.kind = "Make", .name = "b", .inputs = {a}, .weights = {}, .outputs = {b}});
    body.ops.push_back({.kind = "Soft", .name = "c", .inputs = {b}, .weights = {}, .outputs = {c}});
    body.ops.push_back({.kind = "Make", .name = "d", .inputs = {c}, .weights = {}, .outputs = {d}});
    body.outputs = {d};
    graph.ops[1].bodies.push_back(static_cast<std::uint32_t>(graph.bodies.size()));
    graph.bodies.push_back(std::move(body));
  }
  return graph;
}

TEST(FileGraph, TheLargerBodyCounts) {
  graph::MetaGraph checked;
  checked.forward = with_bodies(5000, 7000);
  EXPECT_NO_THROW(graph::validate(checked));
  const graph::ForwardGraph graph = forward::with_profile(*checked.forward, profile_of());
  EXPECT_EQ(order(graph), "a y b c d b c d y");   // "y" first puts the loop's own input in
  EXPECT_EQ(shares(graph), "c of b, c of b");     // in place there as anywhere, but never what is outside
  EXPECT_EQ(peak(graph), 4000u + 28'000 + 4000);  // a, c, d: x is gone
  EXPECT_EQ(peak(forward::with_profile(with_bodies(9000, 7000), profile_of())), 4000u + 36'000 + 4000);
  checked.forward = graph;
  EXPECT_NO_THROW(graph::validate(checked));
}

TEST(FileGraph, KnowsTheOperatorsOfTheFile) {
  const graph::ForwardGraph file = with_bodies(5000, 7000);
  const forward::FilePass pass = forward::file_pass(file, profile_of());
  ASSERT_EQ(pass.ops.size(), pass.graph.ops.size());
  std::string places;
  for (const graph::OpPlace place : pass.ops)
    places += (place.body == graph::OpPlace::kMain ? "m" : std::to_string(place.body)) +
              std::to_string(place.at) + " ";
  EXPECT_EQ(places, "m0 m1 00 01 02 10 11 12 m1 ");  // the turn of the first body is of its operator
  for (std::size_t i = 0; i < file.values.size(); ++i) {
    ASSERT_TRUE(pass.values.at(i)) << file.values[i].name;
    EXPECT_EQ(pass.graph.value(*pass.values[i]).name, file.values[i].name);
  }
}

TEST(FileGraph, OperatorsOfBodiesAreAccountedFor) {
  const forward::Profile profile = forward::parse_profile(
      R"({"profile": "p", "operators": "onnx", "kernels": {"plain": ["Make"]}})", "p.json");
  EXPECT_EQ(forward::with_profile(with_bodies(5, 7), profile).unaccounted,
            (std::vector<std::string>{"Choose", "Soft"}));
}

TEST(FileGraph, BodiesShareNoPlacesWithWhatIsAround) {
  graph::ForwardGraph graph = with_bodies(1000, 1000);
  const graph::ForwardGraph result = forward::with_profile(graph, profile_of(R"("reuse": "1",)"));
  for (const graph::Value& value : result.values)
    EXPECT_EQ(value.memory_of ? result.value(*value.memory_of).name : "b", "b") << value.name;
  // a value of unknown size in a body is one in the whole
  graph.values.back().shape.reset();
  const graph::ForwardGraph unknown = forward::with_profile(graph, profile_of());
  EXPECT_EQ(forward::forward_peak(unknown, {},
                                  forward::value_sizes(unknown, graph::symbol_values(unknown, 1, 1, 0)))
                .unknown,
            1u);
}

TEST(OpOrder, LastListedFirstAndDirectlyBehindItsInputs) {
  Builder builder;
  builder.op("Make", {"x"}, "l1").op("Make", {"x"}, "r1").op("Make", {"l1"}, "l2").op("Make", {"r1"}, "r2");
  builder.op("Join", {"l2", "r2"}, "y").op("Make", {"l1"}, "unused").returns({"y"});
  const auto as = [&](const std::string& name) {
    return order(run(builder, profile_of(fmt::format(R"("order": "{}",)", name))));
  };
  EXPECT_EQ(as("listed"), "l1 r1 l2 r2 y unused");
  EXPECT_EQ(as("inputs_first"), "l1 l2 r1 r2 y unused");
  EXPECT_EQ(as("last_first"), "l1 unused r1 r2 l2 y");  // as onnxruntime 1.31 runs it
}

TEST(OpOrder, OneWithoutOutputsWaitsForItsInputs) {
  graph::ForwardGraph graph = Builder()
                                  .op("Make", {"x"}, "a")
                                  .op("Sink", {"a"}, "none")
                                  .op("Make", {"x"}, "y")
                                  .returns({"y"})
                                  .graph();
  graph.ops[1].outputs.clear();
  // y is asked for first, and the sink is listed before it, but its input is not made yet
  EXPECT_EQ(forward::op_order(graph, forward::OpOrder::inputs_first), (std::vector<std::uint32_t>{2, 0, 1}));
  EXPECT_EQ(forward::with_profile(graph, profile_of(R"("order": "inputs_first",)")).ops.size(), 3u);
  graph.ops[2].inputs = graph.ops[1].inputs;  // where both need the same it comes directly before
  EXPECT_EQ(forward::op_order(graph, forward::OpOrder::inputs_first), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(OpOrder, WhatIsEarlyComesFirstWithWhatItNeeds) {
  const graph::ForwardGraph graph = Builder()
                                        .op("Make", {"x"}, "a")
                                        .op("Make", {"x"}, "b")
                                        .op("Make", {"a"}, "c")
                                        .op("Sum", {"b", "c"}, "y")
                                        .returns({"y"})
                                        .graph();
  const auto with = [&](std::span<const std::uint32_t> early) {
    return forward::op_order(graph.ops, graph.outputs, forward::OpOrder::inputs_first, early);
  };
  EXPECT_EQ(with({}), (std::vector<std::uint32_t>{1, 0, 2, 3}));
  const std::uint32_t early[] = {2};
  EXPECT_EQ(with(early), (std::vector<std::uint32_t>{0, 2, 1, 3}));
}

// No order makes an operator run before its inputs, and no sharing lets two values that are needed at the
// same time have one place, unless one is a view of the other.
TEST(FileGraph, NothingIsOverwrittenWhileItIsNeeded) {
  std::mt19937 random(11);
  const forward::Profile profiles[] = {profile_of(R"("reuse": "1", "order": "last_first",)"),
                                       profile_of(R"("reuse": "1",)"),
                                       profile_of(R"("reuse": "1", "order": "inputs_first",)")};
  for (int round = 0; round < 300; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    const char* const kinds[] = {"Make", "Soft", "View", "Join"};
    for (int i = 0; i < 30; ++i) {
      const auto any = [&] {
        return names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 6)];
      };
      names.push_back(fmt::format("v{}", i));
      const std::string name = names.back();
      names.pop_back();
      builder.op(kinds[random() % 4], {any(), any()}, name);
      names.push_back(name);
    }
    builder.returns({names.back(), names[names.size() - 3]});
    const graph::ForwardGraph graph = run(builder, profiles[round % 3]);
    // run it: each operator writes its name where its output is, unless it is a view
    std::vector<std::string> memory(graph.values.size()), made(graph.values.size());
    const auto place = [&](graph::ValueId id) {
      return static_cast<std::size_t>(graph.value(id).memory_of.value_or(id));
    };
    made[static_cast<std::size_t>(graph.inputs[0])] = memory[place(graph.inputs[0])] = "x";
    for (const graph::Op& op : graph.ops) {
      for (const graph::ValueId id : op.inputs)
        ASSERT_EQ(memory[place(id)], made[static_cast<std::size_t>(id)]) << op.name << ' ' << shares(graph);
      const graph::ValueId out = op.outputs[0];
      const bool view = op.kind == "View" && place(out) == place(op.inputs[0]);
      if (!view) memory[place(out)] = op.name;
      made[static_cast<std::size_t>(out)] = memory[place(out)];
    }
    for (const graph::ValueId id : graph.outputs)
      EXPECT_EQ(memory[place(id)], made[static_cast<std::size_t>(id)]);
  }
}

TEST(FileGraph, DeepGraphsNeedNoStack) {
  Builder builder;
  constexpr int kDepth = 100'000;
  for (int i = 0; i < kDepth; ++i)
    builder.op("Soft", {i == 0 ? "x" : fmt::format("v{}", i - 1)}, fmt::format("v{}", i));
  builder.returns({fmt::format("v{}", kDepth - 1)});
  const graph::ForwardGraph graph =
      forward::with_profile(builder.graph(), forward::built_in_assets()->profile("onnxruntime"));
  EXPECT_EQ(graph.ops.size(), static_cast<std::size_t>(kDepth));
}

graph::MetaGraph onnx_graph() {
  graph::MetaGraph graph;
  graph.format = "onnx";
  graph.forward =
      Builder().op("Exp", {"x"}, "a").op("Softmax", {"a"}, "b").op("Exp", {"b"}, "y").returns({"y"}).graph();
  return graph;
}

TEST(Lifetimes, ACacheBeyondTheLimitIsTold) {
  graph::ForwardGraph graph = Builder().op("Make", {"x"}, "k").op("Make", {"k"}, "v").graph();
  for (const std::size_t i : {1u, 2u}) {
    graph.values[i].lane = graph::Lane::cache;
    graph.values[i].shape = Builder::Sizes{graph::SizePoly((std::int64_t{1} << 59) + 1)};
  }
  const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
  EXPECT_THROW(forward::forward_peak(graph, {}, sizes), Error);
  graph.values[2].shape = Builder::Sizes{graph::SizePoly(1)};
  EXPECT_EQ(
      forward::forward_peak(graph, {}, forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0)))
          .cache_bytes,
      (std::uint64_t{1} << 61) + 8);
}

TEST(ForwardModel, AFilesOwnOperatorsRunUnderAProfile) {
  const graph::MetaGraph graph = onnx_graph();
  const forward::ForwardModel model = forward::forward_model(
      graph, *forward::built_in_assets(), forward::default_profile(*forward::built_in_assets(), graph));
  EXPECT_EQ(model.source, forward::ForwardSource::file);
  EXPECT_EQ(model.profile, "onnxruntime");
  EXPECT_EQ(model.allocator, allocators::AllocatorModel::onnxruntime);
  EXPECT_EQ(forward::sharing_values(*model.graph), 1u);
  graph::MetaGraph plain = graph;  // operators without a rule run in its order, too
  plain.forward->ops[1].kind = "Exp";
  EXPECT_EQ(forward::forward_model(plain, *forward::built_in_assets(),
                                   forward::built_in_assets()->profile("onnxruntime"))
                .profile,
            "onnxruntime");
}

TEST(ForwardModel, OperatorsThatNoProfileIsForRunAsTheyAreListed) {
  graph::MetaGraph graph = onnx_graph();
  graph.format = "tflite";
  EXPECT_EQ(forward::default_profile(*forward::built_in_assets(), graph).id, "fused");
  const forward::ForwardModel model = forward::forward_model(graph, *forward::built_in_assets(),
                                                             forward::built_in_assets()->profile("fused"));
  EXPECT_EQ(model.source, forward::ForwardSource::file);
  EXPECT_EQ(model.profile, "");
  EXPECT_EQ(model.allocator, allocators::AllocatorModel::exact);
  EXPECT_EQ(*model.graph, *graph.forward);
  EXPECT_EQ(forward::default_profile(*forward::built_in_assets(), {}).id, "fused");
}

TEST(ForwardModel, AProfileOfFilesRunsNoArchitecture) {
  const forward::Profile& profile = forward::built_in_assets()->profile("onnxruntime");
  EXPECT_TRUE(forward::runs(profile, onnx_graph()));
  EXPECT_FALSE(forward::runs(profile, {}));
  EXPECT_FALSE(forward::runs(forward::built_in_assets()->profile("fused"), onnx_graph()));
  const auto refusal = [](const graph::MetaGraph& graph, const std::string& name) {
    try {
      forward::forward_model(graph, *forward::built_in_assets(), forward::built_in_assets()->profile(name));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({}, "onnxruntime"),
            "profile 'onnxruntime' runs operators that onnx files list; an architecture's take another");
  EXPECT_EQ(
      refusal(onnx_graph(), "fused"),
      "profile 'fused' runs an architecture's operators; those that this file lists take another, such as "
      "'onnxruntime'");
  graph::MetaGraph lite = onnx_graph();
  lite.format = "tflite";
  EXPECT_NE(refusal(lite, "onnxruntime"), "");
  EXPECT_EQ(refusal(lite, "fused"), "");
}

TEST(ForwardModel, WhyAFileHasNoOperatorsIsTold) {
  graph::MetaGraph graph;
  graph.format = "onnx";
  const auto remark = [&] {
    return forward::forward_model(graph, *forward::built_in_assets(),
                                  forward::default_profile(*forward::built_in_assets(), graph))
        .remark;
  };
  EXPECT_EQ(remark(), "the file lists no operators: sizes only");
  graph.notes.push_back(
      {graph::Severity::warning, {}, std::string(graph::kOperatorsLeftOut) + "Relu uses 'x'"});
  EXPECT_EQ(remark(), "the operators of the file were not read: Relu uses 'x'");
  graph = {};
  graph.format = "gguf";
  EXPECT_EQ(remark(), "no asset for this model: sizes only; the manual tells how to add one");
}

}  // namespace

// --- How much is claimed to be known of a model's forward pass, a user's assets, and load and pass as one
// plan.

namespace {

namespace fs = std::filesystem;

graph::MetaGraph preset_graph(std::string_view id) {
  return forward::config_graph(forward::find_preset(id)->config_json, "config.json");
}

forward::ForwardModel model_of(const graph::MetaGraph& graph) {
  return forward::forward_model(graph, *forward::built_in_assets(),
                                forward::built_in_assets()->profile("fused"));
}

TEST(ForwardModel, AKnownFamilyGivesFigures) {
  const graph::MetaGraph graph = preset_graph("llama-3-8b");
  const forward::ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, forward::ForwardSource::architecture);
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.cache_bytes_per_token, 131'072u);
  const auto figures = forward::forward_figures(model, 1, 2048, 0);
  ASSERT_TRUE(figures);
  const std::uint32_t at = figures->peak.op;
  EXPECT_EQ(forward::op_text(model.graph->ops[at]), "model.layers.0.g (act)");
  std::uint64_t sum = 0;
  for (const graph::ValueId id : forward::alive_during(model, *figures, at))
    sum += *figures->sizes[static_cast<std::size_t>(id)];
  EXPECT_EQ(sum, figures->peak.bytes);
  EXPECT_EQ(sum, figures->usage[at].passing());
  // the cache fills layer by layer
  EXPECT_EQ(figures->usage.back().cache, figures->peak.cache_bytes);
  EXPECT_LT(figures->usage[at].cache, figures->peak.cache_bytes);
}

TEST(ForwardModel, WhatIsChosenReplacesWhatTheProfileSays) {
  const graph::MetaGraph graph = preset_graph("llama-3-8b");
  const forward::ForwardAssets& assets = *forward::built_in_assets();
  const auto figures = [&](const forward::ForwardOptions& options) {
    return *forward::forward_figures(
        forward::forward_model(graph, assets, forward::chosen_profile(assets, graph, options)), 1, 2048, 0);
  };
  const forward::ForwardFigures plain = figures({});
  const forward::ForwardFigures wide = figures({.activation = graph::DType::f32});
  EXPECT_EQ(wide.peak.cache_bytes, plain.peak.cache_bytes);
  EXPECT_EQ(wide.peak.bytes, 2 * plain.peak.bytes);
  const forward::ForwardFigures narrow = figures({.cache = graph::DType::f8_e4m3});
  EXPECT_EQ(2 * narrow.peak.cache_bytes, plain.peak.cache_bytes);
  EXPECT_GE(figures({.all_logits = true}).peak.bytes, std::uint64_t{2048} * 128'256 * 2);
  // the pooler of an encoder looks at one row whatever is chosen
  const graph::MetaGraph bert = preset_graph("bert-base-uncased");
  const forward::ForwardModel all =
      forward::forward_model(bert, assets, forward::chosen_profile(assets, bert, {.all_logits = true}));
  const graph::Op& pooler = *std::find_if(all.graph->ops.begin(), all.graph->ops.end(),
                                          [](const graph::Op& op) { return op.name == "pooler.dense"; });
  EXPECT_EQ((*all.graph->value(pooler.outputs[0]).shape)[1], graph::SizePoly(1));
  EXPECT_THROW(figures({.cache = graph::DType::q8_0}), Error);
  EXPECT_THROW(figures({.profile = "none such"}), Error);
}

TEST(ForwardModel, AnAssetThatDoesNotFitIsNotBelieved) {
  graph::MetaGraph graph = preset_graph("llama-3-8b");
  graph.tensors[5].name = graph::Name("model.layers.0.mlp.other.weight");
  const forward::ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, forward::ForwardSource::estimate);
  EXPECT_EQ(testing::facts(model.remark), "'llama' 1 model.layers.0.self_attn.o_proj.weight");
  EXPECT_FALSE(model.graph);
  EXPECT_FALSE(forward::forward_figures(model, 1, 1, 0));
  graph::MetaGraph larger = preset_graph("demo");
  larger.storages.push_back(graph::shapes_only_storage(100 << 20));
  larger.tensors.push_back({graph::Name("other"),
                            graph::DType::u8,
                            graph::Shape{100 << 20},
                            {},
                            graph::StorageId{static_cast<std::uint32_t>(larger.storages.size() - 1)},
                            0});
  EXPECT_EQ(testing::facts(model_of(larger).remark), "'llama' 100.00 161.02");
}

TEST(ForwardModel, AnUnknownFamilyGivesAnEstimateOfItsCache) {
  graph::MetaGraph graph = preset_graph("demo");
  graph.metadata[0].value = std::string(
      R"({"architectures":["NewForCausalLM"],"n_layer":4,"n_head":8,"n_embd":64,"torch_dtype":"float16"})");
  const forward::ForwardModel model = model_of(graph);
  EXPECT_EQ(model.source, forward::ForwardSource::estimate);
  EXPECT_EQ(model.cache_bytes_per_token, 2u * 4 * 64 * 2);
  EXPECT_NE(model.remark.find("NewForCausalLM"), std::string::npos);
  graph.metadata.clear();
  EXPECT_EQ(model_of(graph).source, forward::ForwardSource::nothing);
}

forward::CacheEstimate cache_of(std::string_view fields) {
  const std::string config = fmt::format(
      R"({{"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":8,"dtype":"float16",{}}})", fields);
  return forward::estimated_cache(forward::ModelConfig(config, "config.json")).value();
}

using Parts = std::vector<forward::CachePart>;

// Of a configuration that leaves no doubt.
Parts parts_of(std::string_view fields) {
  const forward::CacheEstimate cache = cache_of(fields);
  EXPECT_EQ(cache.least, cache.most) << fields;
  EXPECT_EQ(cache.reasons, std::vector<std::string>()) << fields;
  return cache.most.parts;
}

TEST(CacheEstimate, LayersMayDiffer) {
  const auto each = [](std::uint64_t bytes) { return Parts{{.bytes = bytes}}; };
  constexpr std::uint64_t kHead = 2 * 2 * 8;  // key and value of 8 numbers in 2 bytes
  EXPECT_EQ(parts_of(R"("x":0)"), each(4 * 8 * kHead));
  EXPECT_EQ(parts_of(R"("num_key_value_heads":2)"), each(4 * 2 * kHead));
  EXPECT_EQ(parts_of(R"("num_key_value_heads":[0,2,0,1])"), each(3 * kHead));
  EXPECT_EQ(parts_of(R"("num_key_value_heads":[0,2,0,1],"pads_values":1)"), each(3 * kHead / 2 + 2 * kHead));
  EXPECT_EQ(parts_of(R"("num_key_value_heads":[1,2])"), each(4 * 8 * kHead));  // a list of too few layers
  EXPECT_EQ(parts_of(R"("head_dim":16,"v_head_dim":0)"), each(4 * 8 * kHead));
  EXPECT_EQ(parts_of(R"("num_kv_shared_layers":3)"), each(8 * kHead));
  EXPECT_EQ(parts_of(R"("num_kv_shared_layers":9)"), Parts());
  EXPECT_EQ(parts_of(R"("per_layer_config":{"0":{"head_dim":16},"03":{"head_dim":4},"3":{"head_dim":16}})"),
            each((2 + 1 + 1 + 2) * 8 * kHead));
  EXPECT_EQ(parts_of(R"("multi_query":true)"), each(4 * kHead));
  EXPECT_EQ(parts_of(R"("multi_query_attention":true,"multi_query_group_num":2)"), each(4 * 2 * kHead));
  EXPECT_EQ(parts_of(R"("num_attention_groups":2)"), each(4 * 2 * kHead));
  EXPECT_EQ(parts_of(R"("block_configs":[{"attention":{"n_heads_in_group":8}},{"attention":{"no_op":true}},
                        {"attention":{"n_heads_in_group":4}},{"attention":{"replace_with_linear":true}}])"),
            each(3 * kHead));
  EXPECT_EQ(parts_of(R"("kv_lora_rank":32,"qk_rope_head_dim":8,"v_head_dim":16)"), each(4 * 40 * 2));
  EXPECT_EQ(parts_of(R"("kv_lora_rank":32,"index_topk":9,"index_head_dim":16,
                        "indexer_types":["full","shared","shared","full"])"),
            each((4 * 32 + 2 * 16) * 2));
  EXPECT_EQ(parts_of(R"("model_type":"mimo_v2_flash","num_key_value_heads":2,"sliding_window":100,
                        "layer_types":["full_attention","sliding_attention","sliding_attention","full_attention"])"),
            (Parts{{.bytes = 2 * 2 * kHead}, {.bytes = 2 * 4 * kHead, .window = 100}}));
}

TEST(CacheEstimate, WindowsOfSeveralWidthsAndEntriesForSeveralTokens) {
  const forward::CacheEstimate windows = cache_of(R"("sliding_window":100,"conv_L_cache":3,
      "layer_types":["sliding_attention","sliding_attention","full_attention","conv"])");
  EXPECT_EQ(windows.most.parts, (Parts{{.bytes = 256}, {.bytes = 512, .window = 100}}));
  EXPECT_EQ(windows.most.state, 3u * 64 * 2);
  EXPECT_EQ(windows.most.bytes(10), 10u * 768 + 384);
  EXPECT_EQ(windows.most.bytes(1000), 1000u * 256 + 100 * 512 + 384);
  EXPECT_EQ(windows.most.bytes(UINT64_MAX), std::nullopt);
  EXPECT_EQ(windows.most.each(), 768u);
  EXPECT_EQ(windows.most.each(100), 256u);
  constexpr forward::CachePart kWindowed = {.bytes = 2 * 256, .window = 100};
  EXPECT_EQ(parts_of(R"("sliding_window":100,"sliding_window_pattern":2)"),
            (Parts{{.bytes = 512}, kWindowed}));
  EXPECT_EQ(parts_of(R"("sliding_window":100,"sliding_window_pattern":"LG")"),
            (Parts{{.bytes = 512}, kWindowed}));
  EXPECT_EQ(parts_of(R"("sliding_window":100,"use_sliding_window":true,"max_window_layers":2)"),
            (Parts{{.bytes = 512}, kWindowed}));
  EXPECT_EQ(parts_of(R"("sliding_window":100,"use_sliding_window":false)"), (Parts{{.bytes = 1024}}));
  EXPECT_EQ(parts_of(R"("sliding_window":100,"sliding_window_pattern":[1,1,0,1],"swa_head_dim":4)"),
            (Parts{{.bytes = 256}, {.bytes = 3 * 8 * 2 * (4 + 4), .window = 100}}));
  const forward::CacheEstimate compressed = cache_of(
      R"("head_dim":32,"sliding_window":100,"compress_ratios":[0,4,128,0],"num_key_value_heads":1,"index_head_dim":8)");
  EXPECT_EQ(compressed.most.parts, (Parts{{.bytes = 40 * 2, .tokens = 4},
                                          {.bytes = 32 * 2, .tokens = 128},
                                          {.bytes = 4 * 32 * 2, .window = 100}}));
  EXPECT_EQ(compressed.most.parts, compressed.least.parts);
  EXPECT_EQ(compressed.least.state, 0u);  // tokens that wait to become an entry
  EXPECT_EQ(compressed.most.state, 2u * 40 * 10 * 2 + 2 * 32 * 127 * 2);
}

// What the keys of GGUF files say: a state in each layer, or in those without attention.
TEST(CacheEstimate, StatesOfGgufFiles) {
  EXPECT_EQ(cache_of(R"("recurrent_state":10)").most.state, 4u * 40);
  EXPECT_EQ(cache_of(R"("recurrent_state":10)").least, cache_of(R"("recurrent_state":10)").most);
  EXPECT_EQ(cache_of(R"("recurrent_state":10,"full_attention_interval":2)").most.state, 2u * 40);
  EXPECT_EQ(cache_of(R"("recurrent_state":10,"num_key_value_heads":[0,0,0,1])").most.bytes(5),
            5u * 32 + 3 * 40);
}

// Bytes that the caches of transformers 5.23 hold of models in bfloat16, on torch's meta device.
struct Judged {
  const char* fields;
  std::uint64_t after_128, after_1100;
};
constexpr Judged kJudged[] = {
    {R"("num_hidden_layers":8,"layer_types":["linear_attention","linear_attention","linear_attention","full_attention",
        "linear_attention","linear_attention","linear_attention","full_attention"],"head_dim":32,
        "linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":16,"linear_value_head_dim":16,
        "linear_conv_kernel_dim":4)",
     96'256, 593'920},  // Qwen3.5, Qwen3-Next
    {R"("num_hidden_layers":8,"head_dim":16,"mamba_d_ssm":64,"mamba_n_heads":4,"mamba_d_head":16,"mamba_d_state":8,
        "mamba_n_groups":1,"mamba_d_conv":4,"mamba_expand":2)",
     152'576, 1'147'904},  // Falcon-H1
    {R"("num_hidden_layers":8,"mamba_n_heads":8,"mamba_d_head":16,"mamba_d_state":8,"mamba_n_groups":1,
        "mamba_d_conv":4,"mamba_expand":2,"attn_layer_indices":[2,6])",
     64'256, 313'088},  // Bamba
    {R"("num_hidden_layers":8,"mamba_d_state":8,"mamba_d_conv":4,"mamba_expand":2,"attn_layer_period":4,
        "attn_layer_offset":1)",
     63'488, 312'320},  // Jamba
    {R"("num_hidden_layers":8,"conv_L_cache":3,"layer_types":["conv","conv","full_attention","conv","conv","conv",
        "full_attention","conv"])",
     35'072, 283'904},  // LFM2
    {R"("num_hidden_layers":8,"head_dim":16,"linear_attn_alpha_factor":1,"layer_types":["full_attention",
        "linear_attention","full_attention","linear_attention","full_attention","linear_attention","full_attention",
        "linear_attention"])",
     73'728, 571'392},  // MiniMax
    {R"("num_hidden_layers":12,"head_dim":16,"sliding_window":128,"attention_k_eq_v":true,"global_head_dim":32,
        "num_global_key_value_heads":1,"sliding_window_pattern":6)",
     195'328, 444'160},  // Gemma 4
    {R"("num_hidden_layers":8,"num_key_value_heads":4,"kv_lora_rank":32,"qk_rope_head_dim":8,"v_head_dim":12)",
     81'920, 704'000},  // GLM-4.7-Flash
    {R"("num_hidden_layers":8,"sliding_window":128)", 130'048,
     130'048},  // PhiMoE: all layers have the window
    {R"("num_hidden_layers":8,"attention_chunk_size":128,"layer_types":["chunked_attention","chunked_attention",
        "chunked_attention","full_attention","chunked_attention","chunked_attention","chunked_attention",
        "full_attention"])",
     130'304, 379'136},  // Llama 4
    {R"("hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"ssm_state_size":128,
        "mamba_num_heads":128,"mamba_head_dim":64,"n_groups":8,"conv_kernel":4,"expand":2,
        "hybrid_override_pattern":"M-*E")",
     4'800'512, 8'781'824},  // Nemotron-H
    {R"("hidden_size":2304,"num_hidden_layers":27,"num_attention_heads":32,"num_key_value_heads":32,
        "kv_lora_rank":512,"qk_rope_head_dim":64,"linear_attn_config":{"full_attn_layers":[4,8,12,16,20,24],
        "num_heads":32,"head_dim":128,"short_conv_kernel_size":4})",
     46'989'312, 53'707'776},  // Kimi Linear
    {R"("hidden_size":4096,"num_hidden_layers":48,"num_attention_heads":32,"dim_head":128,"prompt_length":32,
        "prompt_types":32)",
     125'829'120, 890'241'024},  // CPM-Ant
    {R"("hidden_size":5120,"num_hidden_layers":4,"num_attention_heads":128,"kv_lora_rank":512,
        "qk_rope_head_dim":64,"index_topk":2048,"index_head_dim":128,"layer_types":["indexed_attention",
        "indexed_attention","indexed_attention","indexed_attention"],"rope_parameters":{
        "indexed_attention":{"rope_type":"default"}})",
     851'968, 7'321'600},  // Dots 3 Note, four of its layers
};

TEST(CacheEstimate, HoldsWhatTransformersKeeps) {
  for (const Judged& row : kJudged) {
    const std::string config =
        fmt::format(R"({{{},"dtype":"bfloat16"{}}})", row.fields,
                    std::string_view(row.fields).find("hidden_size") != std::string_view::npos
                        ? ""
                        : R"(,"hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2)");
    const auto cache = forward::estimated_cache(forward::ModelConfig(config, "config.json"));
    ASSERT_TRUE(cache) << config;
    for (const auto& [tokens, right] : {std::pair(128u, row.after_128), std::pair(1100u, row.after_1100)}) {
      const std::uint64_t least = cache->least.bytes(tokens).value(),
                          most = cache->most.bytes(tokens).value();
      EXPECT_LE(least, right + right / 100) << config;  // windows hold one token less there
      EXPECT_GE(most, right) << config;
      if (cache->reasons.empty()) EXPECT_LE(most, right + right / 100) << config;
    }
  }
}

TEST(CacheEstimate, WhatIsNotKnownIsARangeWithAReason) {
  const auto reasons = [](std::string_view fields, std::uint64_t least, std::uint64_t most) {
    const forward::CacheEstimate cache = cache_of(fields);
    EXPECT_EQ(cache.least.bytes(1000), least) << fields;
    EXPECT_EQ(cache.most.bytes(1000), most) << fields;
    return cache.reasons;
  };
  using Reasons = std::vector<std::string>;
  constexpr std::uint64_t kLayer = 1000 * 8 * 2 * 2 * 8, kState = 64 * 512 * 4;
  EXPECT_EQ(reasons(R"("sliding_window":100)", 4 * kLayer / 10, 4 * kLayer),
            (Reasons{"a window is set, but not in which layers"}));
  EXPECT_EQ(
      reasons(R"("layer_types":["new_kind","full_attention","full_attention","moe"])", 2 * kLayer,
              3 * kLayer + kState),
      (Reasons{"layers of the kind 'new_kind' are not known", "the size of recurrent states is not known"}));
  EXPECT_EQ(reasons(R"("layer_types":["mamba","full_attention","full_attention","mlp"])", 2 * kLayer,
                    2 * kLayer + kState),
            (Reasons{"the size of recurrent states is not known"}));
  EXPECT_EQ(reasons(R"("cross_attention_layers":[2])", 3 * kLayer, 4 * kLayer),
            (Reasons{"layers of cross-attention hold what an encoder gives"}));
  EXPECT_EQ(reasons(R"("is_encoder_decoder":true)", 8 * kLayer, 8 * kLayer),
            (Reasons{"the text that the encoder reads is taken to be as long"}));
  EXPECT_EQ(reasons(R"("is_encoder_decoder":true,"cross_num_key_value_heads":4,"cross_head_dim":8)",
                    6 * kLayer, 6 * kLayer),
            (Reasons{"the text that the encoder reads is taken to be as long"}));
  EXPECT_EQ(reasons(R"("architectures":["NewModel"])", 0, 4 * kLayer),
            (Reasons{"NewModel may keep nothing of a text"}));
  EXPECT_EQ(reasons(R"("architectures":["NewForMaskedLM"])", 0, 0), Reasons());
}

TEST(CacheEstimate, WhatTheKeysDoNotSayIsNotGuessed) {
  const auto of = [](std::string_view config) {
    return forward::estimated_cache(forward::ModelConfig(std::string(config), "config.json"));
  };
  EXPECT_FALSE(of("{}"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":64})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":6,"num_attention_heads":8})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4000000000,"hidden_size":64,"num_attention_heads":8})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":-8})"));
  EXPECT_FALSE(of(R"({"num_hidden_layers":4,"hidden_size":64,"num_heads":8,"qk_dim_factor":0.5})"));  // xLSTM
  const auto xlstm =
      of(R"({"num_hidden_layers":4,"hidden_size":96,"num_heads":8,"qk_dim_factor":0.5,"v_dim_factor":1.0})");
  ASSERT_TRUE(xlstm);
  EXPECT_EQ(xlstm->most.bytes(9), 4 * 4 * 8 * (8 * 16 + 8 + 1));  // 48 of keys are 64, 96 of values 128
  EXPECT_EQ(xlstm->least, xlstm->most);
  const auto rwkv = of(R"({"model_type":"rwkv","num_hidden_layers":4,"hidden_size":64,"dtype":"bfloat16"})");
  ASSERT_TRUE(rwkv);
  EXPECT_EQ(rwkv->most.bytes(9), 4 * 64 * (2 * 2 + 3 * 4));
  // of a part that stands for the text
  const std::string text = R"({"layers":2,"embed_dim":64,"attention_heads":8})",
                    usual = R"({"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":8})";
  for (const std::string& config :
       {text, R"({"hidden_size":8,"text_config":)" + usual + "}",
        R"({"vlm_config":{"text_config":)" + text + "}}", R"({"decoder_config":)" + text + "}"})
    EXPECT_TRUE(of(config)) << config;
  const auto widest = of(R"({"num_hidden_layers":10000,"head_dim":1048576,"num_attention_heads":1048576})");
  ASSERT_TRUE(widest);
  EXPECT_FALSE(widest->most.bytes(1'000'000));
  // products of absurd sizes are no sizes
  const auto absurd =
      of(R"({"num_hidden_layers":9,"head_dim":8,"num_attention_heads":8,"linear_num_heads":1048576,
      "linear_head_dim":1048576,"linear_conv_kernel_dim":1048576,"full_attention_interval":3})");
  ASSERT_TRUE(absurd);
  EXPECT_EQ(absurd->least.state, 0u);
}

void add_weight(graph::MetaGraph& graph, std::string_view name, const graph::Shape& shape,
                graph::DType dtype = graph::DType::bf16) {
  graph.storages.push_back(
      graph::shapes_only_storage(*graph::byte_size(dtype, *graph::element_count(shape))));
  graph.tensors.push_back({graph::Name(name),
                           dtype,
                           shape,
                           {},
                           graph::StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)},
                           0});
}

TEST(ForwardModel, AnUnknownFamilyGetsALowerBoundOfItsActivations) {
  graph::MetaGraph graph = preset_graph("demo");
  EXPECT_FALSE(model_of(graph).activation_bound_per_token);  // known: a peak says more
  EXPECT_FALSE(forward::activation_lower_bound(model_of(graph), 1, 16));
  const auto bound_with = [&](std::string_view config) {
    graph.metadata[0].value = std::string(config);
    const forward::ForwardModel model = model_of(graph);
    EXPECT_FALSE(forward::forward_figures(model, 1, 16, 0));
    return forward::activation_lower_bound(model, 2, 16);
  };
  constexpr std::string_view kUnknown = R"({"architectures":["New"],"vocab_size":8192})";
  EXPECT_EQ(bound_with(kUnknown),
            2u * 16 * 1408 * 2);  // the feed-forward's width, as BF16 as the weights are
  EXPECT_EQ(bound_with(R"({"architectures":["New"],"vocab_size":8192,"dtype":"float32"})"),
            2u * 16 * 1408 * 4);
  // none of these sees all tokens, or has a row for each number that it gives
  add_weight(graph, "model.other_embedding.weight", {9000, 512});
  add_weight(graph, "output.weight", {8192, 512});
  add_weight(graph, "pooler.dense.weight", {9000, 512});
  add_weight(graph, "model.layers.0.mlp.experts.3.up_proj.weight", {9000, 512});
  add_weight(graph, "model.layers.0.mlp.packed.weight", {9000, 1}, graph::DType::u8);
  add_weight(graph, "model.layers.0.mlp.conv.weight", {9000, 4, 1});
  EXPECT_EQ(bound_with(kUnknown), 2u * 16 * 1408 * 2);
  add_weight(graph, "model.layers.0.mlp.shared_experts.up_proj.weight", {2000, 512});
  EXPECT_EQ(bound_with(kUnknown), 2u * 16 * 2000 * 2);
  EXPECT_THROW(forward::activation_lower_bound(model_of(graph), UINT64_MAX / 2, 4), Error);
  graph.metadata.clear();
  EXPECT_FALSE(forward::activation_lower_bound(model_of(graph), 1, 16));
}

TEST(ForwardModel, AUsersAssetWinsByWhateverItMatches) {
  const testing::TemporaryFolder folder;
  fs::create_directories(folder.path() / "architectures");
  std::ofstream(folder.path() / "architectures/mine.json")
      << R"({"family":"mine","model_types":["llama"],"main":["x = embed ids @own[10,4]"]})";
  const auto assets = forward::load_assets(folder.path().string());
  const auto family = [&](std::string_view config) {
    const forward::Architecture* const found =
        assets->architecture(forward::ModelConfig(config, "config.json"));
    return found == nullptr ? "" : found->family;
  };
  EXPECT_EQ(family(R"({"model_type":"llama","architectures":["LlamaForCausalLM"]})"), "mine");
  EXPECT_EQ(family(R"({"model_type":"qwen3","architectures":["Qwen3ForCausalLM"]})"), "llama");
  EXPECT_EQ(family(R"({"model_type":"none"})"), "");
}

TEST(ForwardModel, AUsersAssetsTakeThePlaceOfBuiltInOnes) {
  const testing::TemporaryFolder folder;
  fs::create_directories(folder.path() / "architectures");
  fs::create_directories(folder.path() / "profiles");
  std::ofstream(folder.path() / "architectures/mine.json")
      << R"({"family":"llama","model_types":["llama"],"main":["x = embed ids @own[10,4]"]})";
  std::ofstream(folder.path() / "architectures/broken.json") << R"({"family":)";
  std::ofstream(folder.path() / "profiles/mine.json") << R"({"profile":"mine"})";
  const auto assets = forward::load_assets(folder.path().string());
  const graph::MetaGraph graph = forward::config_graph(R"({"model_type":"llama"})", "c", *assets);
  ASSERT_EQ(graph.tensors.size(), 1u);
  EXPECT_EQ(graph.tensors[0].name, "own.weight");
  EXPECT_EQ(assets->profile("mine").id, "mine");
  EXPECT_THROW(assets->profile("no_such"), Error);
  ASSERT_EQ(assets->faults.size(), 1u);
  EXPECT_NE(assets->faults[0].find("broken.json"), std::string::npos);
  EXPECT_TRUE(forward::load_assets("/no/such/folder")->faults.empty());
}

TEST(ForwardPass, FollowsTheLoadInOnePlan) {
  const graph::MetaGraph graph = preset_graph("demo");
  const forward::ForwardModel model = model_of(graph);
  const plan::ForwardPass pass = {&*model.graph, graph::symbol_values(*model.graph, 1, 256, 0)};
  const auto figures = forward::forward_figures(model, 1, 256, 0);
  const load::Method& method = load::find_method("staged_ring");
  const load::Order& order = load::find_order("file");
  Progress progress;
  const load::Projection load = load::project(graph, method, order, {});
  const load::Projection both = load::project(graph, method, order, {}, progress, &pass);
  EXPECT_EQ(both.plan.marks.back().label, "first token");
  // the cache of every layer lies beside the weights at the end, with the logits
  const std::uint64_t logits = 8192 * 2;
  EXPECT_EQ(both.timeline.final_bytes[plan::index(plan::Space::device)],
            load.timeline.final_bytes[plan::index(plan::Space::device)] + figures->peak.cache_bytes + logits);
  EXPECT_GE(both.timeline.peaks[plan::index(plan::Space::device)].bytes,
            graph::storage_bytes(graph) + figures->peak.bytes);
  EXPECT_EQ(load::device_lower_bound(graph, {}, &pass),
            both.timeline.peaks[plan::index(plan::Space::device)].bytes);
}

// With a past, the caches of all layers are there before the first operator.
TEST(ForwardPass, ThePastIsThereFromTheStart) {
  const graph::MetaGraph graph = preset_graph("demo");
  const forward::ForwardModel model = model_of(graph);
  plan::Plan plan;
  plan::append_forward_pass(plan, {&*model.graph, graph::symbol_values(*model.graph, 1, 1, 4096)});
  std::uint64_t before_the_first_free = 0;
  for (const plan::Step& step : plan.steps) {
    if (step.verb == plan::Verb::free) break;
    before_the_first_free += plan.blocks[static_cast<std::size_t>(step.block)].bytes;
  }
  EXPECT_GE(before_the_first_free, forward::forward_figures(model, 1, 1, 4096)->peak.cache_bytes);
}

// Where a method allocates activations before the weights are there, the pass's memory is one block by then:
// 2W + A + w against W + A.
TEST(ForwardPass, IsThereFirstWhereTheMethodAllocatesItFirst) {
  const graph::MetaGraph graph = preset_graph("demo");
  const forward::ForwardModel model = model_of(graph);
  const plan::ForwardPass pass = {&*model.graph, graph::symbol_values(*model.graph, 1, 256, 0)};
  const std::uint64_t weights = graph::storage_bytes(graph);
  const std::uint64_t activations = load::device_lower_bound(graph, {}, &pass) - weights;
  std::uint64_t most = 0;
  for (const graph::Storage& storage : graph.storages) most = std::max(most, storage.bytes);
  const auto timeline = [&](const char* method) {
    Progress progress;
    return load::project(graph, load::find_method(method), load::find_order("largest"), {}, progress, &pass)
        .timeline;
  };
  EXPECT_EQ(timeline("executorch_before").unified.bytes, 2 * weights + activations + most);
  EXPECT_EQ(timeline("executorch_after").unified.bytes, weights + std::max(activations, 2 * most));
  const plan::Timeline streamed = timeline("layer_streaming");
  EXPECT_EQ(streamed.final_bytes[plan::index(plan::Space::device)], activations);
  EXPECT_GE(streamed.peaks[plan::index(plan::Space::device)].bytes, most + activations);
  EXPECT_LT(streamed.peaks[plan::index(plan::Space::device)].bytes, weights + activations);
}

// The ladder holds where config.json does not fit: what it does say, and why there is no more.
TEST(ForwardModel, AConfigurationThatDoesNotFitLeavesAnEstimate) {
  const std::string config = R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,
    "num_attention_heads":4,"intermediate_size":96,"vocab_size":100,"torch_dtype":"float32"})";
  graph::MetaGraph graph = forward::config_graph(config, "config.json");
  const auto remark_with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    changed.replace(changed.find(from), from.size(), to);
    graph.metadata[0].value = changed;
    const auto assets = forward::built_in_assets();
    const forward::ForwardModel model = forward::forward_model(graph, *assets, assets->profile("fused"));
    EXPECT_FALSE(model.graph);
    EXPECT_EQ(model.source, model.cache_bytes_per_token ? forward::ForwardSource::estimate
                                                        : forward::ForwardSource::nothing);
    return model.remark;
  };
  const std::string list = remark_with(R"("vocab_size":100)", R"("vocab_size":100,"layer_types":["x"])");
  EXPECT_TRUE(testing::facts(list).starts_with("config.json 'layer_types' 1 1 0 llama.json ")) << list;
  const std::string text = remark_with("64", "\"wide\"");
  EXPECT_NE(text.find("'hidden_size'"), std::string::npos) << text;
  const std::string broken = remark_with("96,", "96");
  EXPECT_EQ(broken.find("json.exception"), std::string::npos);
  EXPECT_TRUE(testing::facts(broken).starts_with("config.json 2 ")) << broken;
}

}  // namespace

}  // namespace loadline::tests
