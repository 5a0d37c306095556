// Which values share memory when a file's own operators run under a profile, and in which order they run.
#include "core/forward/file_graph.h"

#include "core/base/error.h"
#include "core/forward/forward_model.h"
#include "core/forward/lifetimes.h"
#include "core/forward/memory_model.h"
#include "core/graph/validate.h"

#include <algorithm>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

const SizePoly kB = SizePoly::symbol(kBatch), kS = SizePoly::symbol(kSequence);

// Values by name: an operator's unknown inputs become inputs of the graph.
class Builder {
 public:
  using Sizes = std::vector<SizePoly>;

  Builder& op(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output,
              const std::optional<Sizes>& shape = Sizes{SizePoly(1000)}, DType dtype = DType::f32) {
    Op op = {.kind = kind, .name = output, .inputs = {}, .weights = {}, .outputs = {}};
    for (const std::string& name : inputs) {
      const bool fresh = ids_.count(name) == 0;
      op.inputs.push_back(value(name, Sizes{SizePoly(1000)}, DType::f32));
      if (fresh) graph_.inputs.push_back(op.inputs.back());
    }
    op.outputs.push_back(value(output, shape, dtype));
    graph_.ops.push_back(std::move(op));
    return *this;
  }
  Builder& weight(std::uint32_t tensor) {
    graph_.ops.back().weights.push_back(TensorId{tensor});
    return *this;
  }
  Builder& inferred() {
    graph_.values.back().inferred = true;
    return *this;
  }
  Builder& returns(const std::vector<std::string>& names) {
    for (const std::string& name : names) graph_.outputs.push_back(ids_.at(name));
    return *this;
  }
  const ForwardGraph& graph() const { return graph_; }

 private:
  ValueId value(const std::string& name, const std::optional<Sizes>& shape, DType dtype) {
    const auto [at, fresh] =
        ids_.try_emplace(name, ValueId{static_cast<std::uint32_t>(graph_.values.size())});
    if (fresh) graph_.values.push_back({.name = name, .dtype = dtype, .shape = shape});
    return at->second;
  }
  ForwardGraph graph_;
  std::map<std::string, ValueId> ids_;
};

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

TEST(MemoryModel, APatternIsOneBufferBesideInputsAndOutputs) {
  const auto of = [](std::int64_t floats) { return Builder::Sizes{SizePoly(floats)}; };
  Builder builder;  // a and b at once, then c at a's place and d behind b, until the output is made
  builder.op("Make", {"x"}, "a", of(100)).op("Make", {"a"}, "b", of(65)).op("Make", {"b"}, "c", of(120));
  builder.op("Join", {"b", "c"}, "d", of(1)).op("Make", {"d"}, "y", of(50)).returns({"y"});
  const ForwardGraph& graph = builder.graph();
  const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  // 400 bytes take 512, as do 260 and 480; 4 take 256
  EXPECT_EQ(reserved_bytes(graph, lifetimes(graph), sizes, MemoryModel::pattern), 4000u + 512 + 512 + 256);
  EXPECT_EQ(reserved_bytes(graph, lifetimes(graph), sizes, MemoryModel::sum), 4000u + 400);
  EXPECT_EQ(memory_model("pattern"), MemoryModel::pattern);
}

// The smallest hole that takes it, the first of equals, and the end only if none does: against a plain
// search.
TEST(MemoryModel, BestFitAgreesWithAPlainSearch) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    for (int i = 0; i < 60; ++i) {
      const std::string from = names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 9)];
      names.push_back(fmt::format("v{}", i));
      builder.op("Make", {from, names[names.size() - 2]}, names.back(),
                 Builder::Sizes{SizePoly(8 * static_cast<std::int64_t>(1 + random() % 40))});
    }
    const ForwardGraph& graph = builder.graph();
    const auto lives = lifetimes(graph);
    const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
    struct Block {
      std::uint64_t begin, end;
      std::uint32_t until;
    };
    std::vector<Block> blocks;  // by offset
    std::uint64_t most = 0;
    for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
      for (std::size_t value = 0; value < lives.size(); ++value) {
        if (lives[value].empty() || lives[value].first != op) continue;
        const std::uint64_t bytes = *sizes[value];
        std::uint64_t at = blocks.empty() ? 0 : blocks.back().end, waste = UINT64_MAX, free_from = 0;
        for (const Block& block : blocks) {
          const std::uint64_t gap = block.begin - free_from;
          if (gap >= bytes && gap - bytes < waste) {
            waste = gap - bytes;
            at = free_from;
          }
          free_from = block.end;
        }
        blocks.push_back({at, at + bytes, lives[value].end});
        std::sort(blocks.begin(), blocks.end(),
                  [](const Block& a, const Block& b) { return a.begin < b.begin; });
        most = std::max(most, blocks.back().end);
      }
      std::erase_if(blocks, [&](const Block& block) { return block.until == op + 1; });
    }
    EXPECT_EQ(reserved_bytes(graph, lives, sizes, MemoryModel::best_fit), most);
  }
}

TEST(MemoryModel, ManyHolesTakeNoQuadraticTime) {
  Builder builder;  // every other value goes, then each of as many is too large for the holes
  constexpr int kMany = 60'000;
  std::vector<std::string> kept, gone;
  for (int i = 0; i < kMany; ++i) {
    auto& names = i % 2 == 0 ? kept : gone;
    names.push_back(fmt::format("v{}", i));
    builder.op("Make", {"x"}, names.back(), Builder::Sizes{SizePoly(8)});
  }
  builder.op("Join", gone, "all gone");
  for (int i = 0; i < kMany; ++i) {
    kept.push_back(fmt::format("w{}", i));
    builder.op("Make", {"x"}, kept.back(), Builder::Sizes{SizePoly(16)});
  }
  const ForwardGraph& graph = builder.op("Join", kept, "y").graph();
  const auto sizes = value_sizes(graph, symbol_values(graph, 1, 1, 0));
  // a search of all holes for each would take 2 * 10^9 steps
  EXPECT_GT(reserved_bytes(graph, lifetimes(graph), sizes, MemoryModel::best_fit), 60'000u * 64);
}

MetaGraph onnx_graph() {
  MetaGraph graph;
  graph.format = "onnx";
  graph.forward =
      Builder().op("Exp", {"x"}, "a").op("Softmax", {"a"}, "b").op("Exp", {"b"}, "y").returns({"y"}).graph();
  return graph;
}

TEST(ForwardModel, AFilesOwnOperatorsRunUnderAProfile) {
  const MetaGraph graph = onnx_graph();
  const ForwardModel model =
      forward_model(graph, *built_in_assets(), default_profile(*built_in_assets(), graph));
  EXPECT_EQ(model.source, ForwardSource::file);
  EXPECT_EQ(model.profile, "onnxruntime");
  EXPECT_EQ(model.allocator, MemoryModel::pattern);
  EXPECT_EQ(sharing_values(*model.graph), 1u);
  MetaGraph plain = graph;  // operators without a rule run in its order, too
  plain.forward->ops[1].kind = "Exp";
  EXPECT_EQ(forward_model(plain, *built_in_assets(), built_in_assets()->profile("onnxruntime")).profile,
            "onnxruntime");
}

TEST(ForwardModel, AProfileThatIsNotForAFilesOperatorsChangesNothing) {
  MetaGraph graph = onnx_graph();
  const ForwardModel model = forward_model(graph, *built_in_assets(), built_in_assets()->profile("ggml"));
  EXPECT_EQ(model.source, ForwardSource::file);
  EXPECT_EQ(model.profile, "");
  EXPECT_EQ(model.allocator, MemoryModel::sum);
  EXPECT_EQ(*model.graph, *graph.forward);
  graph.format = "tflite";
  EXPECT_EQ(default_profile(*built_in_assets(), graph).id, "fused");
  EXPECT_EQ(default_profile(*built_in_assets(), {}).id, "fused");
}

TEST(ForwardModel, AProfileOfFilesRunsNoArchitecture) {
  const Profile& profile = built_in_assets()->profile("onnxruntime");
  EXPECT_TRUE(runs(profile, onnx_graph()));
  EXPECT_FALSE(runs(profile, {}));
  EXPECT_FALSE(runs(built_in_assets()->profile("fused"), onnx_graph()));
  try {
    forward_model({}, *built_in_assets(), profile);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_STREQ(error.what(),
                 "profile 'onnxruntime' runs operators that onnx files list; an architecture's take another");
  }
}

}  // namespace
}  // namespace loadline
