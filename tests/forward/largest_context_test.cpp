// The largest context against projections of loads with passes of that many tokens, and of one more.
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/load/answer/answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

MetaGraph model() {
  return config_graph(
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,
          "num_key_value_heads":2,"intermediate_size":96,"vocab_size":200,"torch_dtype":"float16",
          "max_position_embeddings":4096})",
      "config.json");
}

LoadAnswer ask(const MetaGraph& graph, LoadRequest request) {
  Progress progress;
  AnswerOptions options;
  options.advise = false;
  return answer(graph, request, {}, options, progress);
}

// Whether load and pass fit by a projection of both.
bool fits(const MetaGraph& graph, LoadRequest request, const LoadRow& row, std::uint64_t tokens,
          std::optional<std::uint64_t> piece) {
  request.max_context = false;
  request.methods = {std::string(row.method->id)};
  request.orders = {row.order};
  request.sequence = std::min(tokens, piece.value_or(tokens));
  request.past = tokens - request.sequence;
  return ask(graph, request).rows[0].fits();
}

void expect_exact(const MetaGraph& graph, LoadRequest request) {
  request.max_context = true;
  const LoadAnswer found = ask(graph, request);
  ASSERT_TRUE(found.context);
  ASSERT_EQ(found.context->missing, "");
  std::size_t limited = 0;
  for (const LoadRow& row : found.rows) {
    if (row.refusal) continue;
    SCOPED_TRACE(row.method->id);
    ASSERT_TRUE(row.context_max);
    const std::uint64_t most = *row.context_max;
    if (most > 0) EXPECT_TRUE(fits(graph, request, row, most, found.context->micro_batch)) << most;
    // what a pass reads of a mapped embedding is counted whole
    if (row.pass_reads.mapped == 0 && most < kMostTokens)
      EXPECT_FALSE(fits(graph, request, row, most + 1, found.context->micro_batch)) << most;
    if (most > 0 && most < kMostTokens) ++limited;
  }
  EXPECT_GT(limited, 0u);
}

TEST(LargestContext, IsExact) {
  const MetaGraph graph = model();
  const std::uint64_t weights = storage_bytes(graph);
  for (const std::uint64_t budget : {weights + 100'000, 3 * weights, 20 * weights}) {
    SCOPED_TRACE(budget);
    LoadRequest request;
    request.methods = {"all"};
    request.device_budget = budget;
    expect_exact(graph, request);
    request.sequence = 7;
    expect_exact(graph, request);
    request.batch = 3;
    request.forward.profile = "ggml";
    expect_exact(graph, request);
    request.memory = MemoryKind::unified;
    expect_exact(graph, request);
  }
}

TEST(LargestContext, SaysWhatIsMissing) {
  const MetaGraph graph = model();
  LoadRequest request;
  request.max_context = true;
  EXPECT_EQ(ask(graph, request).context->missing, "it needs a budget");
  request.host_budget = 1 << 30;
  EXPECT_EQ(ask(graph, request).context->missing, "no budget limits the memory that the pass is in");
  request.device_budget = 1 << 30;
  const LoadAnswer found = ask(graph, request);
  EXPECT_EQ(found.context->missing, "");
  EXPECT_EQ(found.context->positions, 4096u);
  EXPECT_FALSE(found.context->micro_batch);
  request.forward.profile = "ggml";
  EXPECT_EQ(ask(graph, request).context->micro_batch, 512u);

  MetaGraph bare = graph;
  bare.metadata.clear();
  EXPECT_EQ(ask(bare, request).context->missing, "no config.json lies beside the weights: sizes only");
  request.activation_bytes = 100;
  EXPECT_THROW(ask(graph, request), Error);
}

// Without operators, the estimate of the cache gives an upper bound.
TEST(LargestContext, IsAnUpperBoundByTheCacheAlone) {
  MetaGraph graph = model();
  const auto config = [&](std::string_view more) {
    graph.metadata[0].value = fmt::format(
        R"({{"architectures":["New"],"num_hidden_layers":2,"num_attention_heads":2,"hidden_size":16,)"
        R"("dtype":"float16"{}}})",
        more);
  };
  LoadRequest request;
  request.max_context = true;
  request.batch = 3;
  request.methods = {"direct"};
  request.device_budget = storage_bytes(graph) + 100'000;
  config("");
  const LoadAnswer found = ask(graph, request);
  EXPECT_TRUE(found.context->cache_only);
  EXPECT_FALSE(found.context->micro_batch);
  EXPECT_EQ(found.rows[0].context_max, 100'000u / (3 * 2 * 2 * 16 * 2));
  config(R"(,"num_key_value_heads":[2,0],"layer_types":["mamba","mamba"],"recurrent_state":4)");
  EXPECT_EQ(ask(graph, request).context->missing, "the cache of the model does not grow with the tokens");
}

TEST(LargestContext, IsNothingWhereTheLoadDoesNotFit) {
  const MetaGraph graph = model();
  LoadRequest request;
  request.max_context = true;
  request.methods = {"direct"};
  request.device_budget = storage_bytes(graph) - 1;
  EXPECT_EQ(ask(graph, request).rows[0].context_max, 0u);
}

}  // namespace
}  // namespace loadline
