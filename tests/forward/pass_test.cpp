// Memory of a pass: allocators, arenas, the largest context; types of files for it.

#include "core/base/error.h"
#include "core/forward/gguf/type_policy.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "core/load/answer/answer.h"
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "tests/forward/graph_builder.h"
#include "tests/support/builders.h"
#include "tests/support/packing.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <random>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- What allocators make of values that come and go, against plain searches.

namespace {

using testing::Builder;

TEST(PassAllocators, APatternIsOneBufferBesideInputsAndOutputs) {
  const auto of = [](std::int64_t floats) { return Builder::Sizes{graph::SizePoly(floats)}; };
  Builder builder;  // a and b at once, then c at a's place and d behind b, until the output is made
  builder.op("Make", {"x"}, "a", of(100)).op("Make", {"a"}, "b", of(65)).op("Make", {"b"}, "c", of(120));
  builder.op("Join", {"b", "c"}, "d", of(1)).op("Make", {"d"}, "y", of(50)).returns({"y"});
  const graph::ForwardGraph& graph = builder.graph();
  const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
  // 400 bytes take 512, as do 260 and 480; 4 take 256
  EXPECT_EQ(allocators::reserved_bytes(forward::allocations_of(graph, forward::lifetimes(graph), sizes),
                                       allocators::AllocatorModel::onnxruntime),
            4000u + 512 + 512 + 256);
  EXPECT_EQ(allocators::reserved_bytes(forward::allocations_of(graph, forward::lifetimes(graph), sizes),
                                       allocators::AllocatorModel::exact),
            4000u + 400);
}

// The most bytes of one buffer: each value goes to the smallest gap that takes it, of equal ones to the last
// or the first, else behind the last block. What is free behind that, up to the most so far, may count as a
// gap.
std::uint64_t best_fit_searched(std::span<const forward::OpRange> lives, std::span<const std::uint64_t> bytes,
                                bool last_of_equals, bool tail_is_a_gap) {
  struct Block {
    std::uint64_t begin, end;
    std::uint32_t until;
  };
  std::uint32_t ops = 0;
  for (const forward::OpRange& life : lives) ops = std::max(ops, life.end);
  std::vector<Block> blocks;  // by offset
  std::uint64_t most = 0;
  for (std::uint32_t op = 0; op < ops; ++op) {
    for (std::size_t value = 0; value < lives.size(); ++value) {
      if (lives[value].empty() || lives[value].first != op) continue;
      std::uint64_t at = blocks.empty() ? 0 : blocks.back().end, waste = UINT64_MAX, free_from = 0;
      const auto try_gap = [&](std::uint64_t end) {
        if (end < free_from + bytes[value]) return;
        const std::uint64_t left = end - free_from - bytes[value];
        if (left > waste || (left == waste && !last_of_equals)) return;
        waste = left;
        at = free_from;
      };
      for (const Block& block : blocks) {
        try_gap(block.begin);
        free_from = block.end;
      }
      if (tail_is_a_gap) try_gap(most);
      blocks.push_back({at, at + bytes[value], lives[value].end});
      std::sort(blocks.begin(), blocks.end(),
                [](const Block& a, const Block& b) { return a.begin < b.begin; });
      most = std::max(most, blocks.back().end);
    }
    std::erase_if(blocks, [&](const Block& block) { return block.until == op + 1; });
  }
  return most;
}

TEST(PassAllocators, BestFitAgreesWithAPlainSearch) {
  std::mt19937 random(5);
  int tails = 0;  // graphs in which the gap behind the last block makes a difference
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    for (int i = 0; i < 60; ++i) {
      const std::string from = names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 9)];
      names.push_back(fmt::format("v{}", i));
      builder.op("Make", {from, names[names.size() - 2]}, names.back(),
                 Builder::Sizes{graph::SizePoly(64 * static_cast<std::int64_t>(1 + random() % 40))});
    }
    const graph::ForwardGraph& graph = builder.graph();
    const auto lives = forward::lifetimes(graph);
    const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
    std::vector<std::uint64_t> all, planned;
    const auto allocations = forward::allocations_of(graph, lives, sizes);
    std::vector<forward::OpRange> planned_lives;
    std::uint64_t beside = 0;
    for (std::size_t i = 0; i < lives.size(); ++i) {
      all.push_back(*sizes[i]);
      if (!allocations[i].planned) beside += *sizes[i];
      if (!allocations[i].planned) continue;
      planned.push_back(*sizes[i]);
      planned_lives.push_back(lives[i]);
    }
    EXPECT_EQ(allocators::reserved_bytes(allocations, allocators::AllocatorModel::ggml),
              best_fit_searched(lives, all, true, false));
    const std::uint64_t with_tail = best_fit_searched(planned_lives, planned, false, true);
    EXPECT_EQ(allocators::reserved_bytes(allocations, allocators::AllocatorModel::onnxruntime),
              beside + with_tail);
    tails += with_tail != best_fit_searched(planned_lives, planned, false, false);
  }
  EXPECT_GT(tails, 0);
}

// PyTorch's blocks, each segment a row of pieces that are searched one after the other.
TEST(PassAllocators, TorchAgreesWithAPlainSearch) {
  constexpr std::uint64_t kKi = 1 << 10, kMi = 1 << 20;
  struct Piece {
    std::uint64_t bytes;
    std::uint32_t until;  // 0: free
  };
  struct Segment {
    bool small;
    std::vector<Piece> pieces;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Builder builder;
    std::vector<std::string> names = {"x"};
    for (int i = 0; i < 80; ++i) {
      const std::string from = names[names.size() - 1 - random() % std::min<std::size_t>(names.size(), 12)];
      names.push_back(fmt::format("v{}", i));
      const std::int64_t unit = random() % 2 == 0 ? 100 : 100'000;  // floats: either pool
      builder.op("Make", {from, names[names.size() - 2]}, names.back(),
                 Builder::Sizes{graph::SizePoly(unit * static_cast<std::int64_t>(1 + random() % 30))});
    }
    const graph::ForwardGraph& graph = builder.graph();
    const auto lives = forward::lifetimes(graph);
    const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
    std::vector<Segment> segments;
    std::uint64_t reserved = 0;
    const auto place = [&](std::uint64_t asked, std::uint32_t until) {
      const std::uint64_t bytes = (asked + 511) / 512 * 512;
      const bool small = bytes <= kMi;
      Segment* in = nullptr;
      std::size_t best = 0;
      for (Segment& segment : segments)
        for (std::size_t i = 0; segment.small == small && i < segment.pieces.size(); ++i)
          if (segment.pieces[i].until == 0 && segment.pieces[i].bytes >= bytes &&
              (in == nullptr || segment.pieces[i].bytes < in->pieces[best].bytes))
            in = &segment, best = i;
      if (in == nullptr) {
        const std::uint64_t whole = small              ? 2 * kMi
                                    : bytes < 10 * kMi ? 20 * kMi
                                                       : (bytes + 2 * kMi - 1) / (2 * kMi) * (2 * kMi);
        reserved += whole;
        segments.push_back({small, {{whole, 0}}});
        in = &segments.back();
        best = 0;
      }
      const std::uint64_t rest = in->pieces[best].bytes - bytes;
      in->pieces[best].until = until;
      if (small ? rest < kKi / 2 : rest <= kMi) return;
      in->pieces[best].bytes = bytes;
      in->pieces.insert(in->pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1, {rest, 0});
    };
    for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
      for (std::size_t value = 0; value < lives.size(); ++value)
        if (!lives[value].empty() && lives[value].first == op) place(*sizes[value], lives[value].end);
      for (Segment& segment : segments) {
        std::vector<Piece> joined;
        for (Piece piece : segment.pieces) {
          if (piece.until == op + 1) piece.until = 0;
          if (!joined.empty() && joined.back().until == 0 && piece.until == 0)
            joined.back().bytes += piece.bytes;
          else
            joined.push_back(piece);
        }
        segment.pieces = std::move(joined);
      }
    }
    EXPECT_EQ(allocators::reserved_bytes(forward::allocations_of(graph, lives, sizes),
                                         allocators::AllocatorModel::torch),
              reserved);
  }
}

TEST(PassAllocators, ManyHolesTakeNoQuadraticTime) {
  Builder builder;  // every other value goes, then each of as many is too large for the holes
  constexpr int kMany = 60'000;
  std::vector<std::string> kept, gone;
  for (int i = 0; i < kMany; ++i) {
    auto& names = i % 2 == 0 ? kept : gone;
    names.push_back(fmt::format("v{}", i));
    builder.op("Make", {"x"}, names.back(), Builder::Sizes{graph::SizePoly(8)});
  }
  builder.op("Join", gone, "all gone");
  for (int i = 0; i < kMany; ++i) {
    kept.push_back(fmt::format("w{}", i));
    builder.op("Make", {"x"}, kept.back(), Builder::Sizes{graph::SizePoly(16)});
  }
  const graph::ForwardGraph& graph = builder.op("Join", kept, "y").graph();
  const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, 1, 0));
  // a search of all holes for each would take 2 * 10^9 steps
  EXPECT_GT(allocators::reserved_bytes(forward::allocations_of(graph, forward::lifetimes(graph), sizes),
                                       allocators::AllocatorModel::ggml),
            60'000u * 64);
  EXPECT_GT(allocators::reserved_bytes(forward::allocations_of(graph, forward::lifetimes(graph), sizes),
                                       allocators::AllocatorModel::torch),
            60'000u * 512);
}

}  // namespace

// --- Type policies: what the files say, how rules are counted, and files that are wrong. That the types are
// those of llama.cpp is for tests/interop/test_type_policies.py to say.

namespace {

using Types = std::vector<std::optional<graph::DType>>;

forward::TypePolicyPtr built_in(std::string_view name) {
  return forward::find_type_policy(forward::built_in_type_policies(), name);
}

std::string fault(std::string_view json) {
  return testing::facts_of([&] { (void)forward::parse_type_policy(json, "p.json"); });
}

// A policy of one rule, completed as a user's own is.
std::vector<forward::TypePolicy> with_rule(std::string_view let, std::string_view rule) {
  std::vector<forward::TypePolicy> files;
  for (const forward::TypePolicy& file : forward::built_in_type_policies())
    if (!file.type) files.push_back(file);
  files.push_back(forward::parse_type_policy(
      fmt::format(R"({{"policy": "own", "type": "q4_k", "let": {{{}}}, "rules": {{"attn_v": "{}"}}}})", let,
                  rule),
      "own.json"));
  return files;
}

std::string rule_fault(std::string_view let, std::string_view rule) {
  const std::vector<forward::TypePolicy> files = with_rule(let, rule);
  const std::vector<std::uint64_t> shape = {256, 256};
  const std::vector<forward::PolicyTensor> tensors = {{"blk.0.attn_v.weight", shape}};
  return testing::facts_of(
      [&] { (void)forward::policy_types(*forward::find_type_policy(files, "own"), {}, tensors); });
}

TEST(TypePolicy, EveryBuiltInPolicyGivesTypes) {
  const std::vector<std::string> names = forward::type_policy_names(forward::built_in_type_policies());
  EXPECT_GE(names.size(), 19u);
  const std::vector<std::uint64_t> matrix = {512, 256}, experts = {8, 512, 256}, vector = {256};
  std::vector<forward::PolicyTensor> tensors;
  for (const char* const name : {"output.weight", "token_embd.weight", "blk.0.attn_q.weight",
                                 "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                                 "blk.0.ffn_up.weight", "blk.0.ffn_down.weight", "blk.0.ssm_in.weight"})
    tensors.push_back({name, matrix});
  tensors.push_back({"blk.0.ffn_down_exps.weight", experts});
  const std::size_t changing = tensors.size();
  tensors.push_back({"blk.0.attn_norm.weight", vector});
  tensors.push_back({"blk.0.ffn_gate_inp.weight", matrix});
  tensors.push_back({"blk.0.attn_q.bias", matrix});
  for (const std::string& name : names)
    for (const char* const architecture : {"llama", "falcon"})
      for (const std::int64_t layers : {0, 1, 80})
        for (const std::int64_t count : {0, 8})
          for (const bool imatrix : {false, true}) {
            const Types types =
                forward::policy_types(*built_in(name), {architecture, layers, count, 8, imatrix}, tensors);
            for (std::size_t i = 0; i < types.size(); ++i)
              EXPECT_EQ(types[i].has_value(), i < changing) << name << ' ' << tensors[i].name;
          }
}

TEST(TypePolicy, CountsByLayerAndName) {
  const std::vector<std::uint64_t> shape = {256, 256};
  std::vector<std::string> names;
  for (int layer = 15; layer >= 0; --layer) names.push_back(fmt::format("blk.{}.attn_v.weight", layer));
  std::vector<forward::PolicyTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, shape});
  const Types types = forward::policy_types(*built_in("q4_k_m"), {"llama", 16, 0, 4, false}, tensors);
  std::string sixes;
  for (int layer = 0; layer < 16; ++layer)
    if (types[static_cast<std::size_t>(15 - layer)] == graph::DType::q6_k) sixes += fmt::format("{} ", layer);
  EXPECT_EQ(sixes, "0 1 4 7 10 13 14 15 ");
}

TEST(TypePolicy, TiedEmbeddingsAreTheOutput) {
  const std::vector<std::uint64_t> shape = {320, 256}, odd = {320, 96};
  const std::vector<forward::PolicyTensor> tied = {{"token_embd.weight", shape}};
  const std::vector<forward::PolicyTensor> apart = {{"token_embd.weight", shape}, {"output.weight", shape}};
  EXPECT_EQ(forward::policy_types(*built_in("q4_k_m"), {}, tied), (Types{graph::DType::q6_k}));
  EXPECT_EQ(forward::policy_types(*built_in("q4_k_m"), {}, apart),
            (Types{graph::DType::q4_k, graph::DType::q6_k}));
  const std::vector<forward::PolicyTensor> thin = {{"output.weight", odd}};
  EXPECT_EQ(forward::policy_types(*built_in("q4_k_m"), {}, thin), (Types{graph::DType::q8_0}));
}

TEST(TypePolicy, FallsBackWhereRowsDoNotDivide) {
  const forward::TypePolicyPtr policy = built_in("q4_k_m");
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::q4_k, 512), graph::DType::q4_k);
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::q4_k, 96), graph::DType::q5_0);
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::q6_k, 96), graph::DType::q8_0);
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::q6_k, 80), graph::DType::f16);
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::q8_0, 48), graph::DType::f16);
  EXPECT_EQ(forward::fitting_type(*policy, graph::DType::f32, 7), graph::DType::f32);
  const std::vector<std::uint64_t> row = {1, 256}, column = {256, 1}, matrix = {1, 2, 256};
  EXPECT_FALSE(forward::may_change(*policy, {"a.weight", row}));
  EXPECT_TRUE(forward::may_change(*policy, {"a.weight", column}));
  EXPECT_TRUE(forward::may_change(*policy, {"a.weight", matrix}));
}

TEST(TypePolicy, FaultsNameTheirPlace) {
  EXPECT_EQ(fault(R"({"policy": "p"})"), "malformed p.json 1 1 'type'");
  EXPECT_EQ(fault(R"({"type": "q4_k"})"), "malformed p.json 1 1 'policy'");
  EXPECT_EQ(fault(R"({"policy": "", "type": "q4_k"})"), "malformed p.json 1 13 'policy'");
  EXPECT_EQ(fault("{\"policy\": \"p\",\n \"type\": \"q4_z\"}"), "malformed p.json 2 11 'q4_z'");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "opaque"})"), "malformed p.json 1 26 'opaque'");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "q4_k", "file_type": -1})"),
            "malformed p.json 1 46 'file_type' 32");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "q4_k", "file_type": 4294967296})"),
            "malformed p.json 1 46 'file_type' 32");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "q4_k", "rule": {}})"), "malformed p.json 1 41 'rule'");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "q4_k", "rules": {"output": "1 +"}})"), "malformed p.json 1 57");
  EXPECT_EQ(fault(R"({"policy": "p", "type": "q4_k", "fallback": {"x": "q4_0"}})"),
            "malformed p.json 1 52 'x'");
  EXPECT_EQ(fault("[]"), "malformed p.json 1 1");
  EXPECT_EQ(rule_fault("", "'q9'"), "malformed own.json 1 67 'q9'");
  EXPECT_EQ(rule_fault("", "7"), "malformed own.json 1 67 7");
  EXPECT_EQ(rule_fault("", "unknown"), "malformed own.json 1 67");
  EXPECT_EQ(rule_fault(R"("a": "b", "b": "a")", "a"), "malformed own.json 1 49 'a'");
  EXPECT_EQ(rule_fault(R"("a": "layers / 0")", "a"), "malformed own.json 1 56 0 0");
  std::string doubling = R"("a40": "1")";
  for (int i = 0; i < 40; ++i) doubling += fmt::format(R"(, "a{}": "a{} + a{}")", i, i + 1, i + 1);
  // where the work runs out depends on which operand the compiler evaluates first
  EXPECT_TRUE(rule_fault(doubling, "a0").starts_with("malformed own.json 1 "));
}

TEST(TypePolicy, AUsersOwnReplacesABuiltInOne) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "types");
  testing::write_file(folder / "types/mine.json", R"({"policy": "q4_k_m", "type": "q5_k"})");
  testing::write_file(folder / "types/wrong.json", R"({"policy": "wrong"})");
  const auto assets = forward::load_assets(folder / "");
  EXPECT_EQ(forward::find_type_policy(assets->type_policies, "q4_k_m")->type, graph::DType::q5_k);
  EXPECT_EQ(forward::find_type_policy(assets->type_policies, "q4_k_s")->type, graph::DType::q4_k);
  ASSERT_EQ(assets->faults.size(), 1u);
  EXPECT_EQ(testing::facts(assets->faults[0]), "wrong.json 1 1 'type'");
  EXPECT_EQ(testing::facts_of([&] { (void)forward::find_type_policy(assets->type_policies, "q4_k"); }),
            "usage 'q4_k'");
  EXPECT_THROW((void)forward::find_type_policy(assets->type_policies, "common"), Error);
}

}  // namespace

// --- The largest context against projections of loads with passes of that many tokens, and of one more.

namespace {

graph::MetaGraph model() {
  return forward::config_graph(
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,
          "num_key_value_heads":2,"intermediate_size":96,"vocab_size":200,"torch_dtype":"float16",
          "max_position_embeddings":4096})",
      "config.json");
}

load::LoadAnswer ask(const graph::MetaGraph& graph, load::LoadRequest request) {
  Progress progress;
  load::AnswerOptions options;
  options.advise = false;
  return load::answer(graph, request, {}, options, progress);
}

// Whether load and pass fit by a projection of both.
bool fits(const graph::MetaGraph& graph, load::LoadRequest request, const load::LoadRow& row,
          std::uint64_t tokens, std::optional<std::uint64_t> piece) {
  request.max_context = false;
  request.methods = {std::string(row.method->id)};
  request.orders = {row.order};
  request.sequence = std::min(tokens, piece.value_or(tokens));
  request.past = tokens - request.sequence;
  return ask(graph, request).rows[0].fits();
}

void expect_exact(const graph::MetaGraph& graph, load::LoadRequest request) {
  request.max_context = true;
  const load::LoadAnswer found = ask(graph, request);
  ASSERT_TRUE(found.context);
  ASSERT_EQ(found.context->missing, "");
  std::size_t limited = 0;
  for (const load::LoadRow& row : found.rows) {
    if (row.refusal) continue;
    SCOPED_TRACE(row.method->id);
    // no budget here limits a load that stays on the host
    if (row.method->traits.host_only && found.bound->memory.kind == plan::MemoryKind::discrete) continue;
    ASSERT_TRUE(row.context_max);
    const std::uint64_t most = *row.context_max;
    if (most > 0) EXPECT_TRUE(fits(graph, request, row, most, found.context->micro_batch)) << most;
    // what a pass reads of a mapped embedding is counted whole
    if (row.pass_reads.mapped == 0 && most < load::kMostTokens)
      EXPECT_FALSE(fits(graph, request, row, most + 1, found.context->micro_batch)) << most;
    if (most > 0 && most < load::kMostTokens) ++limited;
  }
  EXPECT_GT(limited, 0u);
}

TEST(LargestContext, IsExact) {
  const graph::MetaGraph graph = model();
  const std::uint64_t weights = graph::storage_bytes(graph);
  for (const std::uint64_t budget : {weights + 100'000, 3 * weights, 20 * weights}) {
    SCOPED_TRACE(budget);
    load::LoadRequest request;
    request.methods = {"all"};
    request.device_budget = budget;
    expect_exact(graph, request);
    request.sequence = 7;
    expect_exact(graph, request);
    request.batch = 3;
    request.forward.profile = "ggml";
    expect_exact(graph, request);
    request.memory = plan::MemoryKind::unified;
    expect_exact(graph, request);
  }
}

TEST(LargestContext, SaysWhatIsMissing) {
  const graph::MetaGraph graph = model();
  load::LoadRequest request;
  request.max_context = true;
  EXPECT_EQ(ask(graph, request).context->missing, "it needs a budget");
  request.host_budget = 1 << 30;
  EXPECT_EQ(ask(graph, request).context->missing, "no budget limits the memory that the pass is in");
  request.device_budget = 1 << 30;
  const load::LoadAnswer found = ask(graph, request);
  EXPECT_EQ(found.context->missing, "");
  EXPECT_EQ(found.context->positions, 4096u);
  EXPECT_FALSE(found.context->micro_batch);
  request.forward.profile = "ggml";
  EXPECT_EQ(ask(graph, request).context->micro_batch, 512u);

  graph::MetaGraph bare = graph;
  bare.metadata.clear();
  EXPECT_EQ(ask(bare, request).context->missing, "there is no config.json beside the weights: sizes only");
  request.activation_bytes = 100;
  EXPECT_THROW(ask(graph, request), Error);
}

// Without operators, the estimate of the cache gives an upper bound.
TEST(LargestContext, IsAnUpperBoundByTheCacheAlone) {
  graph::MetaGraph graph = model();
  const auto config = [&](std::string_view more) {
    graph.metadata[0].value = fmt::format(
        R"({{"architectures":["New"],"num_hidden_layers":2,"num_attention_heads":2,"hidden_size":16,)"
        R"("dtype":"float16"{}}})",
        more);
  };
  load::LoadRequest request;
  request.max_context = true;
  request.batch = 3;
  request.methods = {"direct"};
  request.device_budget = graph::storage_bytes(graph) + 100'000;
  config("");
  const load::LoadAnswer found = ask(graph, request);
  EXPECT_TRUE(found.context->cache_only);
  EXPECT_FALSE(found.context->micro_batch);
  EXPECT_EQ(found.rows[0].context_max, 100'000u / (3 * 2 * 2 * 16 * 2));
  config(R"(,"num_key_value_heads":[2,0],"layer_types":["mamba","mamba"],"recurrent_state":4)");
  EXPECT_EQ(ask(graph, request).context->missing, "the cache of the model does not grow with the tokens");
}

TEST(LargestContext, IsNothingWhereTheLoadDoesNotFit) {
  const graph::MetaGraph graph = model();
  load::LoadRequest request;
  request.max_context = true;
  request.methods = {"direct"};
  request.device_budget = graph::storage_bytes(graph) - 1;
  EXPECT_EQ(ask(graph, request).rows[0].context_max, 0u);
}

}  // namespace

// --- The values of every family's forward pass in one arena.

namespace {

// Falcon's score matrices are where bounded effort ends above its lower bound.
bool may_be_above_the_bound(const std::string& name, std::uint64_t sequence) {
  return name == "falcon-7b hf_eager" && sequence == 2048;
}

// Every family packs, keeps the rules and is at the least height that there is.
void expect_packs(std::uint64_t sequence) {
  const auto assets = forward::built_in_assets();
  std::set<std::string> families;
  for (const testing::DescribedModel& described : testing::described_models())
    for (const char* profile : {"fused", "hf_eager"}) {
      SCOPED_TRACE(described.name + " " + profile);
      const forward::ForwardModel model =
          forward::forward_model(described.graph, *assets, assets->profile(profile));
      ASSERT_TRUE(model.graph) << model.remark;
      families.insert(model.family);
      const packing::Problem problem = testing::pass_problem(model, 1, sequence);
      const packing::Packing packing = pack(problem, {.effort = packing::Effort::bounded});
      EXPECT_EQ(packing.verdict, packing::Verdict::feasible);
      const auto fault = packing::find_fault(problem, packing.offsets);
      EXPECT_FALSE(fault) << *fault;
      EXPECT_GT(packing.lower_bound(), 0u);
      if (!may_be_above_the_bound(described.name + " " + profile, sequence)) {
        EXPECT_EQ(packing.height(), packing.lower_bound());
        EXPECT_TRUE(packing.proven_optimal());
      }
      EXPECT_LE(packing.height(), packing::greedy_by_size_height(problem).value());
    }
  EXPECT_EQ(families.size(), assets->architectures.size());
}

TEST(PassPacking, EveryFamilyPacksAFewTokens) { expect_packs(7); }
TEST(PassPacking, EveryFamilyPacksManyTokens) { expect_packs(2048); }

}  // namespace

}  // namespace loadline::tests
