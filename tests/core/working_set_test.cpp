// What stays needed after a load, what cannot be dropped, and what llama.cpp holds besides the tensors.
#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "core/load/request/model_parts.h"
#include "core/plan/reserved_memory.h"
#include "tests/support/plan_models.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

constexpr std::uint64_t kRow = 32 * 2;  // bytes

MetaGraph small_model() {
  return testing::model_of({{"token_embd.weight", 50},
                            {"blk.0.ffn_up.weight", 10},
                            {"blk.1.ffn_up.weight", 20},
                            {"output_norm.weight", 1},
                            {"output.weight", 40}});
}

LoadRow row_of(const MetaGraph& graph, LoadRequest request) {
  const BoundRequest bound = bind_request(graph, request, {});
  Progress progress;
  const Projection projection =
      project(graph, *bound.methods.front(), find_order("file"), bound.inputs, progress);
  return make_row(projection, bound, Labels(graph), 0);
}

TEST(WorkingSet, MappedWeightsCountOnceTheyAreUsed) {
  const MetaGraph graph = small_model();
  LoadRequest request = {.methods = {"llama_cpp_mmap"}, .gpu_layers = 1, .memory = MemoryKind::unified};
  const std::uint64_t device = 41 * kRow, host = 80 * kRow;
  request.device_budget = device + 100;
  EXPECT_TRUE(row_of(graph, request).fits());  // nothing uses the weights yet
  request.activation_bytes = 100;
  const LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.pass_reads.mapped, host);
  EXPECT_EQ(row.verdict.unified_over, host);
  EXPECT_EQ(row.reread, host);
  request.device_budget = device + 100 + host;
  EXPECT_TRUE(row_of(graph, request).fits());
  EXPECT_EQ(row_of(graph, request).reread, 0u);
  request.page_cache_budget = host - 1;
  EXPECT_EQ(row_of(graph, request).reread, host);
}

TEST(WorkingSet, ATokenReadsItsRowOfAnEmbedding) {
  MetaGraph graph = small_model();
  graph.tensors[0].shape = {100'000, 32};
  graph.storages[0].bytes = 100'000 * kRow;
  const LoadRequest request = {.sequence = 3};
  EXPECT_EQ(WeightReads(graph, request, {}, false).of(StorageId{0}), 3u * (64 << 10));
  EXPECT_EQ(WeightReads(graph, request, {}, false).of(StorageId{1}), 10 * kRow);
  graph.tensors.pop_back();  // the embedding is the head as well
  EXPECT_EQ(WeightReads(graph, request, {}, false).of(StorageId{0}), 100'000 * kRow);
}

TEST(WorkingSet, WeightsOnDiskAreReadAgain) {
  const MetaGraph graph = small_model();
  LoadRequest request = {.methods = {"accelerate"}, .activation_bytes = 10};
  request.place = {{"name:blk*", Home::disk}};
  const LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.pass_reads.disk, 30 * kRow);
  // the pass brings the largest of them to the device
  EXPECT_EQ(row.peaks[index(Space::device)].bytes, 91 * kRow + 20 * kRow + 10);
}

TEST(MappedPages, ThatMayStayMakeARange) {
  const MetaGraph graph = testing::graph_of({100, 300});
  LoadRequest request = {.methods = {"mmap_assign"},
                         .memory = MemoryKind::unified,
                         .device_budget = 500,
                         .mapped_pages = MappedPages::anonymous};
  LoadRow row = row_of(graph, request);
  EXPECT_EQ(row.verdict.unified_peak, 400u);
  EXPECT_EQ(row.verdict.unified_high, 800u);
  EXPECT_EQ(row.verdict.at_risk, 300u);
  EXPECT_TRUE(row.verdict.unified_fits);
  EXPECT_FALSE(row.fits());
  request.device_budget = 800;
  EXPECT_TRUE(row_of(graph, request).fits());
  request.device_budget = 500;
  request.mapped_pages = MappedPages::droppable;
  EXPECT_TRUE(row_of(graph, request).fits());
  // the data sheet of such a machine says so
  const LoadRequest spark = {.methods = {"mmap_assign"}, .target = "dgx-spark-128gb"};
  EXPECT_TRUE(bind_request(graph, spark, {}).budget.pages_may_stay);
}

TEST(MallocRange, KeepsWhatIsBelowTheLargestThreshold) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const MetaGraph graph = testing::graph_of({10 * kMiB, 40 * kMiB, 20 * kMiB});
  LoadRequest request = {.methods = {"per_tensor"}, .allocator = AllocatorModel::malloc};
  const LoadRow row = row_of(graph, request);
  ASSERT_TRUE(row.reserved_high);
  EXPECT_GE(*row.reserved_high, 50 * kMiB);  // 10 kept when 40 are mapped
  EXPECT_LT(*row.reserved_high, 51 * kMiB);
  EXPECT_GE(*row.reserved_high, row.peaks[index(Space::host)].bytes);
  request.host_budget = 45 * kMiB;
  EXPECT_GT(row_of(graph, request).verdict.at_risk, 0u);
}

TEST(GgmlCpu, RepacksMatricesWithAKernel) {
  MetaGraph graph = small_model();
  for (Tensor& tensor : graph.tensors) tensor.dtype = DType::q4_0;
  graph.tensors[2].dtype = DType::q8_0;
  using Flags = std::vector<bool>;
  graph.tensors[1].shape = {8, 32};
  graph.tensors[2].shape = {16, 32};
  graph.tensors[4].shape = {12, 32};
  EXPECT_EQ(repacked_storages(graph, std::nullopt), Flags(5, false));
  EXPECT_EQ(repacked_storages(graph, CpuRepack::x86), (Flags{false, true, false, false, false}));
  EXPECT_EQ(repacked_storages(graph, CpuRepack::arm), (Flags{false, true, true, false, true}));
  EXPECT_EQ(repacked_head(graph, CpuRepack::x86), 0u);
  graph.tensors.pop_back();
  graph.tensors[0].shape = {8, 32};
  EXPECT_EQ(repacked_head(graph, CpuRepack::x86), graph.storages[0].bytes);
}

TEST(GgmlCpu, AVocabularyCountsByItsTokens) {
  MetaGraph graph = small_model();
  EXPECT_EQ(vocabulary_bytes(graph), 0u);
  graph.metadata.push_back(
      {"tokenizer.ggml.tokens", MetaArray{MetaType::string, false, FileId{0}, 1000, 0, 0}});
  graph.metadata.push_back(
      {"tokenizer.ggml.merges", MetaArray{MetaType::string, false, FileId{0}, 100, 0, 0}});
  EXPECT_EQ(vocabulary_bytes(graph), 1000u * 243 + 100u * 235);
  const LoadRow row = row_of(graph, {.methods = {"llama_cpp_mmap"}});
  EXPECT_EQ(row.peaks[index(Space::host)].bytes, vocabulary_bytes(graph));
}

TEST(SharedEmbedding, NeedsTheModelToTieIt) {
  MetaGraph graph = testing::model_of({{"model.embed_tokens.weight", 4}, {"model.layers.0.a", 1}});
  EXPECT_EQ(shared_embedding(graph), StorageId{0});
  graph.metadata.push_back({std::string(kConfigKey), std::string(R"({"tie_word_embeddings": false})")});
  EXPECT_EQ(shared_embedding(graph), std::nullopt);
  graph.metadata.back().value = std::string(R"({"model_type": "bert"})");
  EXPECT_EQ(shared_embedding(graph), std::nullopt);
}

}  // namespace
}  // namespace loadline
