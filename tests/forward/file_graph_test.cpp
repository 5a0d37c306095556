// Which values share memory when a file's own operators run under a profile, and in which order they run.
#include "core/base/error.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/meta_graph.h"
#include "tests/forward/graph_builder.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::Builder;

const SizePoly kB = SizePoly::symbol(kBatch), kS = SizePoly::symbol(kSequence);

// Named as a file's operators might be; "View" and "Soft" have a rule, others have none.
Profile profile_of(const std::string& more = "") {
  return parse_profile(
      R"json({"profile": "test", "operators": "onnx", )json" + more +
          R"json( "ops": {"View": {"view": "1"}, "Soft": {"in_place": "1"}, "Const": {"without": "true"},
                   "Pick": {"temporaries": ["inputs == 2 ? e*n*c : out", "out"]}}})json",
      "test.json");
}

// What runs under the profile, checked as an importer's result would be.
ForwardGraph run(const Builder& builder, const Profile& profile = profile_of()) {
  MetaGraph graph;
  for (int i = 0; i < 4; ++i) {
    graph.storages.push_back(shapes_only_storage(4));
    graph.tensors.push_back(
        {Name(fmt::format("t{}", i)), DType::f32, Shape{1}, {}, StorageId{static_cast<std::uint32_t>(i)}, 0});
  }
  graph.forward = builder.graph();
  EXPECT_NO_THROW(validate(graph));
  graph.forward = with_profile(builder.graph(), profile);
  EXPECT_NO_THROW(validate(graph));
  return *graph.forward;
}

// "b of a" for each value that shares the memory of another, in order.
std::string shares(const ForwardGraph& graph) {
  std::string text;
  for (const Value& value : graph.values)
    if (value.memory_of)
      text +=
          fmt::format("{}{} of {}", text.empty() ? "" : ", ", value.name, graph.value(*value.memory_of).name);
  return text;
}

std::string order(const ForwardGraph& graph) {
  std::string text;
  for (const Op& op : graph.ops) text += (text.empty() ? "" : " ") + op.name;
  return text;
}

std::uint64_t peak(const ForwardGraph& graph) {
  const auto sizes = value_sizes(graph, symbol_values(graph, 2, 3, 0));
  return forward_peak(graph, forward_usage(graph, lifetimes(graph), sizes), sizes).bytes;
}

TEST(FileGraph, ViewsShareTheMemoryOfTheFirstOfAChain) {
  const auto graph = Builder()
                         .op("Make", {"x"}, "a")
                         .op("View", {"a"}, "b", Builder::Sizes{SizePoly(10), SizePoly(100)})
                         .op("View", {"b"}, "c")
                         .op("Make", {"a"}, "other")
                         .op("Join", {"c", "other"}, "y")
                         .returns({"y"});
  const ForwardGraph result = run(graph);
  EXPECT_EQ(shares(result), "b of a, c of a");
  const auto lives = lifetimes(result);
  EXPECT_EQ(lives[1], (OpRange{0, 5}));  // a, for as long as c is needed
  EXPECT_EQ(peak(result), 3 * 4000u);    // a, other, y
  // an input of the graph may be looked at differently, too
  EXPECT_EQ(shares(run(Builder().op("View", {"x"}, "a").op("Make", {"a"}, "y").returns({"y"}))), "a of x");
}

TEST(FileGraph, AViewOfAWeightIsNoneOfTheShapeBesideIt) {
  Builder graph;  // the first input is a weight, which Op::inputs leaves out: "shape" is the second
  graph.op("Make", {"x"}, "shape", Builder::Sizes{SizePoly(2)}, DType::i64);
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
                       DType dtype = DType::f32) {
    return shares(run(Builder()
                          .op("Make", {"x"}, "a", from)
                          .op("Soft", {"a"}, "b", to, dtype)
                          .op("Make", {"b"}, "y")
                          .returns({"y"})));
  };
  const Builder::Sizes tokens = {kB, kS}, turned = {kS, kB};
  EXPECT_EQ(with(tokens, tokens), "b of a");
  EXPECT_EQ(with(tokens, tokens, DType::i32), "b of a");  // as wide
  EXPECT_EQ(with(tokens, tokens, DType::f16), "");
  EXPECT_EQ(with(tokens, turned), "");
  EXPECT_EQ(with(tokens, Builder::Sizes{kB, kB}), "");
  EXPECT_EQ(with(tokens, std::nullopt), "");
  EXPECT_EQ(with(std::nullopt, std::nullopt), "");
  EXPECT_EQ(with(tokens, tokens, DType::i4), "");
}

TEST(FileGraph, OnlyOneOfTwoOutputsTakesAnInput) {
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Soft", {"a"}, "b").op("Soft", {"a"}, "c").op("Join", {"b", "c"}, "y");
  builder.returns({"y"});
  EXPECT_EQ(shares(run(builder)), "c of a");  // the later operator: until then a is needed

  // two outputs of one operator: the first has the rule, the second finds nothing given up
  ForwardGraph two = builder.graph();
  two.ops[1].outputs.push_back(two.ops[2].outputs[0]);
  two.ops.erase(two.ops.begin() + 2);
  const ForwardGraph result = with_profile(two, profile_of(R"("reuse": "1",)"));
  EXPECT_EQ(shares(result), "b of a");
}

TEST(FileGraph, AShapeOnlyInferredCountsWhereItIsFixed) {
  const auto with = [](const Builder::Sizes& shape) {
    Builder builder;
    builder.op("Make", {"x"}, "a", shape).op("Soft", {"a"}, "b", shape).inferred();
    return shares(run(builder.op("Make", {"b"}, "y").returns({"y"})));
  };
  EXPECT_EQ(with({SizePoly(7), SizePoly(9)}), "b of a");
  EXPECT_EQ(with({kB, SizePoly(9)}), "");
}

TEST(FileGraph, ReusesThePlaceGivenUpLastAndKeepsIt) {
  const Builder::Sizes small = {SizePoly(10)};
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Make", {"a"}, "b").op("Make", {"b"}, "c");
  builder.op("Make", {"c"}, "d", small).op("Make", {"d"}, "e", small).op("Make", {"e"}, "f");
  builder.op("Make", {"f"}, "y").returns({"y"});
  EXPECT_EQ(shares(run(builder)), "");
  const ForwardGraph result = run(builder, profile_of(R"("reuse": "1",)"));
  // c where a was; f where that was, rather than where b was, which was given up before
  EXPECT_EQ(shares(result), "c of a, f of a");
  EXPECT_EQ(lifetimes(result)[1], (OpRange{0, 7}));  // also while only d and e are needed
}

TEST(FileGraph, ConstantsAndViewsOfThemAreWeights) {
  Builder builder;
  builder.op("Const", {}, "k").weight(1).op("View", {"k"}, "v").op("Make", {"v", "x"}, "y").weight(2);
  builder.returns({"y"});
  const ForwardGraph result = run(builder);
  ASSERT_EQ(order(result), "y");
  EXPECT_EQ(result.ops[0].inputs.size(), 1u);
  EXPECT_EQ(result.ops[0].weights, (std::vector{TensorId{2}, TensorId{1}}));
  EXPECT_EQ(result.values.size(), 2u);
  // one that is an output of the graph takes memory
  EXPECT_EQ(order(run(Builder().op("Const", {}, "k").returns({"k"}))), "k");
  EXPECT_EQ(shares(run(Builder().op("Const", {}, "k").op("View", {"k"}, "y").returns({"y"}))), "");
}

TEST(FileGraph, TemporariesFollowFromInputsAndOutputs) {
  const Builder::Sizes mask = {kB, kS}, all = {SizePoly(5), kB, kS};
  const auto pick = [&](const std::vector<std::string>& inputs) {
    Builder builder;
    builder.op("Make", {"x"}, "mask", mask, DType::boolean)
        .op("Make", {"x"}, "p", all)
        .op("Make", {"x"}, "q", all);
    const ForwardGraph graph = run(builder.op("Pick", inputs, "y", all).returns({"y"}));
    std::string text;
    for (const ValueId id : graph.ops.back().temporaries)
      text += value_bytes(graph.value(id))->text(graph.symbols) + ' ';
    return text;
  };
  EXPECT_EQ(pick({"mask", "p", "q"}), "20*B*S 20*B*S ");
  EXPECT_EQ(pick({"mask", "p"}), "4*B*S 20*B*S ");
  // nothing is made up where a size is not known
  EXPECT_TRUE(run(Builder().op("Pick", {"x"}, "y", std::nullopt).returns({"y"})).ops[0].temporaries.empty());
}

TEST(FileGraph, ATemporaryBeyond64BitsIsUnknown) {
  const Builder::Sizes wide = {SizePoly(std::int64_t{1} << 31), SizePoly(std::int64_t{1} << 31)};
  Builder builder;
  builder.op("Make", {"x"}, "mask", wide, DType::boolean).op("Make", {"x"}, "p", Builder::Sizes{SizePoly(2)});
  const ForwardGraph graph = run(builder.op("Pick", {"mask", "p"}, "y").returns({"y"}));
  ASSERT_EQ(graph.ops[2].temporaries.size(), 2u);
  EXPECT_FALSE(graph.value(graph.ops[2].temporaries[0]).shape);
  EXPECT_TRUE(graph.value(graph.ops[2].temporaries[1]).shape);
  const std::vector<std::optional<std::uint64_t>> sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  EXPECT_EQ(forward_peak(graph, {}, sizes).unknown, 1u);
}

TEST(FileGraph, WorkIsBounded) {
  const auto fails_with = [](const ForwardGraph& graph, const Profile& profile, const char* detail) {
    try {
      with_profile(graph, profile);
      ADD_FAILURE() << detail;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(detail), std::string::npos) << error.what();
    }
  };
  ForwardGraph graph = Builder().op("Const", {}, "k").op("Make", {"k", "x"}, "y").returns({"y"}).graph();
  graph.ops[0].weights.assign(200, TensorId{0});
  const Op user = graph.ops[1];
  for (int i = 0; i < 40'000; ++i) {
    graph.values.push_back(graph.value(user.outputs[0]));
    graph.ops.push_back(user);
    graph.ops.back().outputs = {ValueId{static_cast<std::uint32_t>(graph.values.size() - 1)}};
  }
  fails_with(graph, profile_of(), "operators use weights of constants 4,000,000 times or more");
  graph.ops[0].weights.resize(2);
  EXPECT_EQ(with_profile(graph, profile_of()).ops[7].weights.size(), 2u);
  std::string many = "1", sum = "1";
  for (int i = 1; i < 16; ++i) many += R"(", "1)";
  for (int i = 0; i < 400; ++i) sum += "+1";
  const auto rules = [](const std::string& rule) {
    return parse_profile(
        fmt::format(R"({{"profile": "p", "operators": "onnx", "ops": {{"Make": {}}}}})", rule), "p.json");
  };
  fails_with(graph, rules(R"({"temporaries": [")" + many + "\"]}"), "gives more than 500,000 temporaries");
  std::string sums = sum;
  for (int i = 1; i < 16; ++i) sums += R"(", ")" + sum;
  fails_with(graph, rules(R"({"temporaries": [")" + sums + "\"]}"), "too many operations");
}

TEST(FileGraph, InputsStayWhereTheCallerHoldsThem) {
  Builder builder;
  builder.op("Make", {"x"}, "a").op("Make", {"a", "never used"}, "b").op("Make", {"b"}, "y").returns({"y"});
  EXPECT_EQ(peak(run(builder)), 3 * 4000u);  // x, a second input, a
  EXPECT_EQ(peak(run(builder, profile_of(R"("hold_block_inputs": "1",)"))), 4 * 4000u);
  EXPECT_TRUE(with_profile({}, profile_of(R"("hold_block_inputs": "1",)")).ops.empty());
}

TEST(FileGraph, RulesThatMakeNoSenseAreToldAtTheirPlace) {
  for (const char* rule : {R"({"in_place": "9"})", R"({"view": "'a'"})", R"({"temporaries": ["'much'"]})"}) {
    const Profile profile = parse_profile(
        fmt::format(R"({{"profile": "p", "operators": "onnx", "ops": {{"Make": {}}}}})", rule), "p.json");
    try {
      with_profile(Builder().op("Make", {"x"}, "a").op("Make", {"a"}, "y").returns({"y"}).graph(), profile);
      ADD_FAILURE() << rule;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::malformed);
      EXPECT_NE(std::string(error.what()).find("p.json: line 1, column"), std::string::npos) << error.what();
    }
  }
}

// An operator "Choose" between two bodies that use "a", and of what they make "y"; the first has an input of
// its own.
ForwardGraph with_bodies(std::int64_t first, std::int64_t second) {
  ForwardGraph graph = Builder().op("Make", {"x"}, "a").op("Choose", {"a"}, "y").returns({"y"}).graph();
  const auto value = [&](const std::string& name, std::int64_t size) {
    graph.values.push_back({.name = name, .dtype = DType::f32, .shape = Builder::Sizes{SizePoly(size)}});
    return ValueId{static_cast<std::uint32_t>(graph.values.size() - 1)};
  };
  const ValueId a = graph.ops[0].outputs[0];
  for (const std::int64_t size : {first, second}) {
    Body body;
    if (size == first) body.inputs = {value("i", 10)};
    const ValueId b = value("b", size), c = value("c", size), d = value("d", 1000);
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
  MetaGraph checked;
  checked.forward = with_bodies(5000, 7000);
  EXPECT_NO_THROW(validate(checked));
  const ForwardGraph graph = with_profile(*checked.forward, profile_of());
  EXPECT_EQ(order(graph), "a y b c d b c d y");   // "y" first puts the loop's own input in
  EXPECT_EQ(shares(graph), "c of b, c of b");     // in place there as anywhere, but never what is outside
  EXPECT_EQ(peak(graph), 4000u + 28'000 + 4000);  // a, c, d: x is gone
  EXPECT_EQ(peak(with_profile(with_bodies(9000, 7000), profile_of())), 4000u + 36'000 + 4000);
  checked.forward = graph;
  EXPECT_NO_THROW(validate(checked));
}

TEST(FileGraph, BodiesShareNoPlacesWithWhatIsAround) {
  ForwardGraph graph = with_bodies(1000, 1000);
  const ForwardGraph result = with_profile(graph, profile_of(R"("reuse": "1",)"));
  for (const Value& value : result.values)
    EXPECT_EQ(value.memory_of ? result.value(*value.memory_of).name : "b", "b") << value.name;
  // a value of unknown size in a body is one in the whole
  graph.values.back().shape.reset();
  const ForwardGraph unknown = with_profile(graph, profile_of());
  EXPECT_EQ(forward_peak(unknown, {}, value_sizes(unknown, symbol_values(unknown, 1, 1, 0))).unknown, 1u);
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
  ForwardGraph graph = Builder()
                           .op("Make", {"x"}, "a")
                           .op("Sink", {"a"}, "none")
                           .op("Make", {"x"}, "y")
                           .returns({"y"})
                           .graph();
  graph.ops[1].outputs.clear();
  // y is asked for first, and the sink is listed before it, but its input is not made yet
  EXPECT_EQ(op_order(graph, OpOrder::inputs_first), (std::vector<std::uint32_t>{2, 0, 1}));
  EXPECT_EQ(with_profile(graph, profile_of(R"("order": "inputs_first",)")).ops.size(), 3u);
  graph.ops[2].inputs = graph.ops[1].inputs;  // where both need the same it comes directly before
  EXPECT_EQ(op_order(graph, OpOrder::inputs_first), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(OpOrder, WhatIsEarlyComesFirstWithWhatItNeeds) {
  const ForwardGraph graph = Builder()
                                 .op("Make", {"x"}, "a")
                                 .op("Make", {"x"}, "b")
                                 .op("Make", {"a"}, "c")
                                 .op("Sum", {"b", "c"}, "y")
                                 .returns({"y"})
                                 .graph();
  const auto with = [&](std::span<const std::uint32_t> early) {
    return op_order(graph.ops, graph.outputs, OpOrder::inputs_first, early);
  };
  EXPECT_EQ(with({}), (std::vector<std::uint32_t>{1, 0, 2, 3}));
  const std::uint32_t early[] = {2};
  EXPECT_EQ(with(early), (std::vector<std::uint32_t>{0, 2, 1, 3}));
}

// No order makes an operator run before its inputs, and no sharing lets two values that are needed at the
// same time have one place, unless one is a view of the other.
TEST(FileGraph, NothingIsOverwrittenWhileItIsNeeded) {
  std::mt19937 random(11);
  const Profile profiles[] = {profile_of(R"("reuse": "1", "order": "last_first",)"),
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
    const ForwardGraph graph = run(builder, profiles[round % 3]);
    // run it: each operator writes its name where its output is, unless it is a view
    std::vector<std::string> memory(graph.values.size()), made(graph.values.size());
    const auto place = [&](ValueId id) {
      return static_cast<std::size_t>(graph.value(id).memory_of.value_or(id));
    };
    made[static_cast<std::size_t>(graph.inputs[0])] = memory[place(graph.inputs[0])] = "x";
    for (const Op& op : graph.ops) {
      for (const ValueId id : op.inputs)
        ASSERT_EQ(memory[place(id)], made[static_cast<std::size_t>(id)]) << op.name << ' ' << shares(graph);
      const ValueId out = op.outputs[0];
      const bool view = op.kind == "View" && place(out) == place(op.inputs[0]);
      if (!view) memory[place(out)] = op.name;
      made[static_cast<std::size_t>(out)] = memory[place(out)];
    }
    for (const ValueId id : graph.outputs) EXPECT_EQ(memory[place(id)], made[static_cast<std::size_t>(id)]);
  }
}

TEST(FileGraph, DeepGraphsNeedNoStack) {
  Builder builder;
  constexpr int kDepth = 100'000;
  for (int i = 0; i < kDepth; ++i)
    builder.op("Soft", {i == 0 ? "x" : fmt::format("v{}", i - 1)}, fmt::format("v{}", i));
  builder.returns({fmt::format("v{}", kDepth - 1)});
  const ForwardGraph graph = with_profile(builder.graph(), built_in_assets()->profile("onnxruntime"));
  EXPECT_EQ(graph.ops.size(), static_cast<std::size_t>(kDepth));
}

MetaGraph onnx_graph() {
  MetaGraph graph;
  graph.format = "onnx";
  graph.forward =
      Builder().op("Exp", {"x"}, "a").op("Softmax", {"a"}, "b").op("Exp", {"b"}, "y").returns({"y"}).graph();
  return graph;
}

TEST(Lifetimes, ACacheBeyondTheLimitIsTold) {
  ForwardGraph graph = Builder().op("Make", {"x"}, "k").op("Make", {"k"}, "v").graph();
  for (const std::size_t i : {1u, 2u}) {
    graph.values[i].lane = Lane::cache;
    graph.values[i].shape = Builder::Sizes{SizePoly((std::int64_t{1} << 59) + 1)};
  }
  const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  EXPECT_THROW(forward_peak(graph, {}, sizes), Error);
  graph.values[2].shape = Builder::Sizes{SizePoly(1)};
  EXPECT_EQ(forward_peak(graph, {}, value_sizes(graph, symbol_values(graph, 1, 1, 0))).cache_bytes,
            (std::uint64_t{1} << 61) + 8);
}

TEST(ForwardModel, AFilesOwnOperatorsRunUnderAProfile) {
  const MetaGraph graph = onnx_graph();
  const ForwardModel model =
      forward_model(graph, *built_in_assets(), default_profile(*built_in_assets(), graph));
  EXPECT_EQ(model.source, ForwardSource::file);
  EXPECT_EQ(model.profile, "onnxruntime");
  EXPECT_EQ(model.allocator, AllocatorModel::onnxruntime);
  EXPECT_EQ(sharing_values(*model.graph), 1u);
  MetaGraph plain = graph;  // operators without a rule run in its order, too
  plain.forward->ops[1].kind = "Exp";
  EXPECT_EQ(forward_model(plain, *built_in_assets(), built_in_assets()->profile("onnxruntime")).profile,
            "onnxruntime");
}

TEST(ForwardModel, OperatorsThatNoProfileIsForRunAsTheyAreListed) {
  MetaGraph graph = onnx_graph();
  graph.format = "tflite";
  EXPECT_EQ(default_profile(*built_in_assets(), graph).id, "fused");
  const ForwardModel model = forward_model(graph, *built_in_assets(), built_in_assets()->profile("fused"));
  EXPECT_EQ(model.source, ForwardSource::file);
  EXPECT_EQ(model.profile, "");
  EXPECT_EQ(model.allocator, AllocatorModel::exact);
  EXPECT_EQ(*model.graph, *graph.forward);
  EXPECT_EQ(default_profile(*built_in_assets(), {}).id, "fused");
}

TEST(ForwardModel, AProfileOfFilesRunsNoArchitecture) {
  const Profile& profile = built_in_assets()->profile("onnxruntime");
  EXPECT_TRUE(runs(profile, onnx_graph()));
  EXPECT_FALSE(runs(profile, {}));
  EXPECT_FALSE(runs(built_in_assets()->profile("fused"), onnx_graph()));
  const auto refusal = [](const MetaGraph& graph, const std::string& name) {
    try {
      forward_model(graph, *built_in_assets(), built_in_assets()->profile(name));
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
  MetaGraph lite = onnx_graph();
  lite.format = "tflite";
  EXPECT_NE(refusal(lite, "onnxruntime"), "");
  EXPECT_EQ(refusal(lite, "fused"), "");
}

TEST(ForwardModel, WhyAFileHasNoOperatorsIsTold) {
  MetaGraph graph;
  graph.format = "onnx";
  const auto remark = [&] {
    return forward_model(graph, *built_in_assets(), default_profile(*built_in_assets(), graph)).remark;
  };
  EXPECT_EQ(remark(), "the file lists no operators: sizes only");
  graph.notes.push_back({Severity::warning, {}, std::string(kOperatorsLeftOut) + "Relu uses 'x'"});
  EXPECT_EQ(remark(), "the operators are left out: Relu uses 'x'");
  graph = {};
  graph.format = "gguf";
  EXPECT_EQ(remark(), "no asset for this model: sizes only; the manual tells how to add one");
}

}  // namespace
}  // namespace loadline
