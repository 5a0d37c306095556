// Findings about files: each on a model made to have it, and none on one made well.
#include "core/inspect/doctor.h"

#include "core/base/error.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

// A file of `bytes` bytes that repeats nothing, and a graph over it.
class Model {
 public:
  explicit Model(std::uint64_t bytes, std::string name = "m.bin") {
    std::string content;
    for (std::uint64_t i = 0; i < bytes; ++i) content.push_back(static_cast<char>((i * 2654435761U) >> 13));
    write_file(folder_ / name, content);
    graph_.files.push_back({folder_ / name, bytes});
  }
  Model& tensor(const char* name, DType dtype, std::uint64_t elements, std::uint64_t offset) {
    const std::uint64_t bytes = byte_size(dtype, elements).value();
    graph_.storages.push_back(plain_storage(FileId{0}, offset, bytes));
    graph_.tensors.push_back(
        {name, dtype, {elements}, {}, StorageId{static_cast<std::uint32_t>(graph_.storages.size() - 1)}, 0});
    return *this;
  }
  MetaGraph& graph() { return graph_; }
  const TemporaryFolder& folder() const { return folder_; }
  std::vector<Finding> findings() const {
    Progress progress;
    return diagnose(StorageReader(std::make_shared<const MetaGraph>(graph_)), progress);
  }
  // The one of that id; nothing found is a count of 0.
  Finding finding(std::string_view id) const {
    for (const Finding& found : findings())
      if (found.id == id) return found;
    return {};
  }

 private:
  TemporaryFolder folder_;
  MetaGraph graph_;
};

TEST(Doctor, FindsNothingInAWellMadeFile) {
  Model model(3 * 8192);
  model.tensor("embed", DType::f32, 2048, 0)
      .tensor("layers.0.w", DType::f32, 2048, 8192)
      .tensor("lm_head", DType::f32, 2048, 16384);
  EXPECT_TRUE(model.findings().empty());
}

TEST(Doctor, HolesOfSparseFilesAreNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "sparse.bin";
  constexpr std::uint64_t kEach = std::uint64_t{1} << 36;  // more than could be read in a test
  write_file(path, std::string(8192, 'x'));
  std::filesystem::resize_file(path, 8192 + 2 * kEach);
  auto graph = std::make_shared<MetaGraph>();
  graph->files.push_back({path, 8192 + 2 * kEach});
  for (const auto& [offset, bytes] :
       {std::pair(std::uint64_t{0}, std::uint64_t{8192}), {8192, kEach}, {8192 + kEach, kEach}}) {
    graph->storages.push_back(plain_storage(FileId{0}, offset, bytes));
    const auto id = static_cast<std::uint32_t>(graph->tensors.size());
    graph->tensors.push_back({"t" + std::to_string(id), DType::u8, {bytes}, {}, StorageId{id}, 0});
  }
  Progress progress;
  const std::vector<Finding> findings = diagnose(StorageReader(graph), progress);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "unwritten");
  EXPECT_EQ(findings[0].count, 2u);
  EXPECT_EQ(findings[0].bytes, 2 * kEach);
}

TEST(Doctor, Alignment) {
  Model model(40'000);
  model.tensor("a", DType::f32, 100, 2).tensor("b", DType::f16, 100, 502).tensor("c", DType::u8, 64, 1024);
  EXPECT_EQ(model.finding("alignment").count, 1u);
  EXPECT_EQ(model.finding("alignment").bytes, 400u);
  EXPECT_EQ(model.finding("vector_alignment").count, 1u);
  EXPECT_EQ(index(*model.finding("vector_alignment").example), 1u);
}

TEST(Doctor, PagesSharedWithNeighbours) {
  Model model(40'000);
  model.tensor("a", DType::u8, 4096, 100)
      .tensor("b", DType::u8, 10, 8192)
      .tensor("c", DType::u8, 4097, 12288);
  EXPECT_EQ(model.finding("page_straddle").count, 1u);
  EXPECT_EQ(model.finding("page_straddle").bytes, 4096u);
}

TEST(Doctor, OrderOfUseAgainstOrderOnDisk) {
  Model model(40'000);
  model.tensor("lm_head.weight", DType::u8, 64, 0)
      .tensor("layers.1.w", DType::u8, 64, 64)
      .tensor("layers.0.w", DType::u8, 64, 128)
      .tensor("embed_tokens.weight", DType::u8, 64, 192);
  EXPECT_EQ(model.finding("order").count, 3u);
  EXPECT_NE(model.finding("order").text.find("3 of 3 steps"), std::string::npos);
}

TEST(Doctor, HolesAndTrailingBytes) {
  Model model(40'000);
  model.graph().format = "safetensors";
  model.tensor("a", DType::u8, 64, 64).tensor("b", DType::u8, 64, 256).tensor("c", DType::u8, 64, 8192);
  EXPECT_EQ(model.finding("holes").count, 1u);  // the other is what aligning takes
  EXPECT_EQ(model.finding("holes").bytes, 8192u - 320);
  EXPECT_EQ(model.finding("trailing").bytes, 40'000u - 8256);
  EXPECT_EQ(model.finding("trailing").files.size(), 1u);
  model.graph().format = "torch";  // its directory lies there
  EXPECT_EQ(model.finding("trailing").count, 0u);
}

TEST(Doctor, DuplicatesByContent) {
  Model model(1);
  std::string content(3 * 8192, 'a');
  content.replace(8192, 8192, std::string(8192, 'b'));
  const std::string path = model.folder() / "m.bin";
  write_file(path, content);
  model.graph().files = {{path, content.size()}};
  model.tensor("x", DType::u8, 8192, 0)
      .tensor("y", DType::u8, 8192, 8192)
      .tensor("z", DType::u8, 8192, 16384);
  EXPECT_EQ(model.finding("duplicates").count, 1u);
  EXPECT_EQ(model.finding("duplicates").bytes, 8192u);
  content.back() = '!';  // alike at the beginning only
  write_file(path, content);
  EXPECT_EQ(model.finding("duplicates").count, 0u);
}

// As large as a model: not read whole to be proved alike.
TEST(Doctor, LargeDuplicatesAreTakenBySamples) {
  constexpr std::uint64_t kEach = std::uint64_t{3} << 30;
  Model model(1);
  const std::string path = model.folder() / "m.bin";
  std::filesystem::resize_file(path, 2 * kEach);
  // a hole with nothing in it would not be read at all
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const std::uint64_t at : {std::uint64_t{0}, kEach})
    file.seekp(static_cast<std::streamoff>(at)).put('x');
  file.close();
  model.graph().files = {{path, 2 * kEach}};
  model.tensor("x", DType::u8, kEach, 0).tensor("y", DType::u8, kEach, kEach);
  EXPECT_EQ(model.finding("duplicates").bytes, kEach);
  EXPECT_NE(model.finding("duplicates").text.find("by samples"), std::string::npos);
}

TEST(Doctor, ViewsThatLeaveMostUnused) {
  Model model(100'000);
  model.tensor("view", DType::u8, 90'000, 0);
  model.graph().tensors[0].shape = {100};
  EXPECT_EQ(model.finding("unused_bytes").bytes, 89'900u);
  model.graph().tensors.push_back(model.graph().tensors[0]);  // the same bytes by another name
  model.graph().tensors.back().name = "tied";
  EXPECT_EQ(model.finding("unused_bytes").bytes, 89'900u);
}

TEST(Doctor, EncodedStorages) {
  Model model(100);
  model.tensor("w", DType::i16, 32, 0);
  model.graph().storages[0].encoding = Encoding::byte_swapped;
  model.graph().storages[0].unit = 2;
  EXPECT_EQ(model.finding("encoded").count, 1u);
  EXPECT_NE(model.finding("encoded").text.find("1 big-endian"), std::string::npos);
}

TEST(Doctor, MissingAndUnclaimed) {
  Model model(100, "m.index.json");
  write_file(model.folder() / "m-00001-of-00002.safetensors", std::string(64, 'x'));
  write_file(model.folder() / "m-00002-of-00002.safetensors", std::string(64, 'x'));
  write_file(model.folder() / "notes.txt", "x");
  model.graph().files.push_back({model.folder() / "m-00001-of-00002.safetensors", 64});
  model.tensor("w", DType::u8, 64, 0);
  model.graph().storages[0].file = FileId{1};
  model.graph().missing = {"gone"};
  EXPECT_EQ(model.finding("missing").severity, Severity::error);
  const Finding unclaimed = model.finding("unclaimed");
  EXPECT_EQ(unclaimed.count, 1u);
  EXPECT_EQ(unclaimed.bytes, 64u);
  EXPECT_TRUE(unclaimed.files.at(0).ends_with("m-00002-of-00002.safetensors"));
  EXPECT_EQ(model.findings().front().id, "missing");  // the gravest first
}

TEST(Doctor, ShapesAloneHaveNoFindings) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(10)};
  graph.tensors = {{"t", DType::u8, {10}, {}, StorageId{0}, 0}};
  Progress progress;
  EXPECT_TRUE(diagnose(StorageReader(std::make_shared<const MetaGraph>(graph)), progress).empty());
}

TEST(Doctor, CanBeCancelled) {
  Model model(40'000);
  model.tensor("a", DType::u8, 8192, 0).tensor("b", DType::u8, 8192, 8192);
  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  EXPECT_THROW(diagnose(StorageReader(std::make_shared<const MetaGraph>(model.graph())), progress), Error);
}

}  // namespace
}  // namespace loadline
