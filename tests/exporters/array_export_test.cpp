// numpy arrays and archives, and ExecuTorch tensors.
#include "core/base/error.h"
#include "core/load/order/optimal_order.h"
#include "exporters/preflight.h"
#include "tests/exporters/export_support.h"
#include "tests/support/plan_models.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::expect_law;
using export_tests::open;
using export_tests::plain_model;
using export_tests::sample_model;
using testing::TemporaryFolder;
using testing::write_file;

TEST(NpzExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  expect_law(plain_model(folder), folder / "out/a.npz",
             {.outtype = DType::f32, .alignment = 0, .max_shard_bytes = 0});
  EXPECT_THROW(convert(plain_model(folder), folder / "out/b.npz"), Error);  // BF16
  const MetaGraphPtr written = open(folder / "out/a.npz");
  for (const Storage& storage : written->storages) EXPECT_EQ(storage.offset % 64, 0u);
  EXPECT_THROW(convert(plain_model(folder), folder / "out/c.npz",
                       {.outtype = DType::f32, .alignment = 65536, .max_shard_bytes = 0}),
               Error);
}

TEST(PtdExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/a.ptd");
  for (const std::uint64_t alignment : {1u, 16u, 4096u}) {
    const std::string out = folder / fmt::format("out/{}.ptd", alignment);
    ExportOptions options = {.outtype = DType::f16, .alignment = alignment, .max_shard_bytes = 0};
    options.order = written_order(*plain, "smallest");
    expect_law(plain, out, options);
    const MetaGraphPtr written = open(out);
    for (const Storage& storage : written->storages) EXPECT_EQ(storage.offset % alignment, 0u);
  }
  EXPECT_THROW(convert(sample_model(folder), folder / "out/f4.ptd"), Error);
}

TEST(PtdExport, TiedTensorsShareASegment) {
  const TemporaryFolder folder;
  write_file(folder / "raw", std::string(64, 'r'));
  MetaGraph graph;
  graph.files = {{folder / "raw", 64}};
  graph.storages = {plain_storage(FileId{0}, 0, 32), plain_storage(FileId{0}, 32, 32)};
  graph.tensors = {{"embed", DType::f32, {2, 4}, {}, StorageId{0}, 0},
                   {"norm", DType::f32, {8}, {}, StorageId{1}, 0},
                   {"head", DType::f32, {2, 4}, {}, StorageId{0}, 0},
                   {"blob", DType::opaque, {}, {}, StorageId{1}, 0}};
  const auto shared = std::make_shared<const MetaGraph>(graph);
  expect_law(shared, folder / "o.ptd");
  const MetaGraphPtr back = open(folder / "o.ptd");
  EXPECT_EQ(back->storages.size(), 3u);
  EXPECT_EQ(tied_groups(*back).size(), 1u);
  EXPECT_TRUE(preflight(*shared, find_exporter("ptd"), {}, folder / "p.ptd").left_out.empty());
}

TEST(PtdExport, RefusesAndNamesTheTensor) {
  const auto error_of = [](std::string name, DType dtype, Shape shape) -> std::string {
    MetaGraph graph;
    graph.storages = {shapes_only_storage(std::uint64_t{1} << 40)};
    graph.tensors = {{std::move(name), dtype, std::move(shape), {}, StorageId{0}, 0}};
    try {
      find_exporter("ptd").layout(graph, {}, "o.ptd");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of("w", DType::f32, {1}), "");
  EXPECT_NE(error_of("w", DType::f32, {std::uint64_t{1} << 31}).find("2147483648"), std::string::npos);
  EXPECT_NE(error_of("w", DType::f32, Shape(std::vector<std::uint64_t>(17, 1))).find("rank 17"),
            std::string::npos);
  EXPECT_NE(error_of("w", DType::q4_0, {32}).find("no dtype Q4_0"), std::string::npos);
  EXPECT_NE(error_of(std::string("w\0x", 3), DType::f32, {1}), "");
}

TEST(NpyExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const auto all_floats = [](std::uint64_t alignment) {
    return ExportOptions{.outtype = DType::f32, .alignment = alignment, .max_shard_bytes = 0};
  };
  const MetaGraphPtr plain = plain_model(folder);
  for (const std::uint64_t alignment : {0u, 64u, 4096u, 8192u}) {
    const std::string out = folder / fmt::format("out/{}", alignment);
    expect_law(plain, out, all_floats(alignment), "npy");
    const MetaGraphPtr written = open(out);
    EXPECT_EQ(model_name(*written), std::to_string(alignment));  // the folder's
    for (const Storage& storage : written->storages)
      EXPECT_EQ(storage.offset % std::max<std::uint64_t>(alignment, 64), 0u);
  }
  EXPECT_THROW(find_exporter("npy").layout(*plain, {}, folder / "b"), Error);  // BF16
  EXPECT_THROW(find_exporter("npy").layout(*plain, all_floats(16384), folder / "b"), Error);
  EXPECT_EQ(open(folder / "out/0/a.weight.npy")->tensors.size(), 1u);  // a file by itself is itself
}

TEST(NpyExport, NamesOfTensorsLeadNowhereElse) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"..",    "../up", "/root",   "a/b",       "a%2Fb",
                                          "con:1", "x\\y",  ".hidden", "b\xFF\x80", "\xC3\xA9",
                                          "l\n",   "10",    "9",       "scheduler"};
  std::string bytes(names.size() * 4, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  write_file(folder / "raw", bytes);
  MetaGraph graph;
  graph.files = {{folder / "raw", bytes.size()}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const StorageId storage = graph.add_storage(plain_storage(FileId{0}, 4 * i, 4));
    graph.tensors.push_back({names[i], DType::i32, {}, {}, storage, 0});
  }
  const auto shared = std::make_shared<const MetaGraph>(graph);
  expect_law(shared, folder / "deep/out", {}, "npy");
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "deep"))
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), folder / "deep").string());
  EXPECT_EQ(files.size(), names.size());
  EXPECT_TRUE(files.contains("out/%2E..npy"));
  EXPECT_TRUE(files.contains("out/%2E.%2Fup.npy"));
  EXPECT_TRUE(files.contains("out/a%252Fb.npy"));
  for (const std::string& name : {std::string(), std::string(252, 'n'), std::string(90, '/')}) {
    graph.tensors[0].name = name;
    EXPECT_THROW(find_exporter("npy").layout(graph, {}, folder / "x"), Error) << name;
  }
  graph.tensors[0].name = std::string(251, 'n');
  EXPECT_NO_THROW(find_exporter("npy").layout(graph, {}, folder / "x"));
}

TEST(NpyExport, ArraysOfAnotherModelAreRefused) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {4, 4});
  write_file(folder / "out/other.npy", "");
  EXPECT_THROW(convert(graph, folder / "out", {}, {.overwrite = true}, &find_exporter("npy")), Error);
  fs::remove(folder / "out/other.npy");
  expect_law(graph, folder / "out", {}, "npy");
  EXPECT_THROW(convert(graph, folder / "out", {}, {}, &find_exporter("npy")), Error);  // exists
  EXPECT_NO_THROW(convert(graph, folder / "out", {}, {.overwrite = true}, &find_exporter("npy")));
}

TEST(ZipExport, LargeArchivesUseZip64) {
  const TemporaryFolder folder;
  MetaGraph graph = testing::graph_of({5ull << 30, 8, 5ull << 30, 16});
  const Layout layout = find_exporter("npz").layout(graph, {}, folder / "big.npz");
  Progress progress;
  const ReadTensor never = [](TensorId, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
  write_layout(layout, graph, never, {.sparse = true}, progress);
  EXPECT_EQ(*open(folder / "big.npz"), layout.result);
}

}  // namespace
}  // namespace loadline
