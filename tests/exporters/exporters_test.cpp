// Exporters: the round-trip law for every row of the table, options, orders, safetensors and torch.
#include "core/base/error.h"
#include "core/load/order/optimal_order.h"
#include "exporters/convert.h"
#include "exporters/exporter.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_models.h"

#include <cstring>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using export_tests::convert;
using export_tests::expect_law;
using export_tests::open;
using export_tests::plain_model;
using export_tests::sample_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

// Every row of the table, with a source that it can write.
class EveryExporter : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryExporter, ObeysTheLawAndWritesTheSameBytesAgain) {
  const TemporaryFolder folder;
  const Exporter& exporter = find_exporter(GetParam());
  std::string bytes(8192, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_file(folder / "in/m.onnx", testing::onnx::weights_model(
                                       {testing::onnx::raw_tensor("a", testing::onnx::kFloat, {2048}, bytes),
                                        testing::onnx::raw_tensor("b", testing::onnx::kInt8, {5}, "12345")}));
  const MetaGraphPtr source = open(folder / "in/m.onnx");
  expect_law(source, folder / ("out/m" + std::string(exporter.extension)), {}, exporter.id);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryExporter, ::testing::ValuesIn([] {
                           std::vector<std::string_view> ids;
                           for (const Exporter& exporter : exporters()) ids.push_back(exporter.id);
                           return ids;
                         }()),
                         [](const auto& row) { return std::string(row.param); });

TEST(SafetensorsExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const MetaGraphPtr sample = sample_model(folder);
  expect_law(sample, folder / "out/a.safetensors");
  expect_law(sample, folder / "out/folder");
  expect_law(sample, folder / "out/shards", {.outtype = {}, .alignment = 0, .max_shard_bytes = 600});
  expect_law(sample, folder / "out/tiny_shards", {.outtype = {}, .alignment = 0, .max_shard_bytes = 1});
  expect_law(sample, folder / "out/aligned.safetensors",
             {.outtype = {}, .alignment = 4096, .max_shard_bytes = 0});
  expect_law(sample, folder / "out/half.safetensors",
             {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0});
  const MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/with_config");
  expect_law(plain, folder / "out/wide.safetensors",
             {.outtype = DType::f32, .alignment = 0, .max_shard_bytes = 0});
}

TEST(TorchExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  expect_law(plain_model(folder), folder / "out/a.pt");
  EXPECT_THROW(convert(sample_model(folder), folder / "out/f4.pt"), Error);
  expect_law(plain_model(folder), folder / "out/c.pt",
             {.outtype = DType::bf16, .alignment = 64, .max_shard_bytes = 0});
  const MetaGraphPtr written = open(folder / "out/a.pt");
  for (const Storage& storage : written->storages) EXPECT_EQ(storage.offset % 4096, 0u);
}

TEST(SafetensorsExport, WritesTheReferencesOrderAndPadding) {
  const TemporaryFolder folder;
  convert(plain_model(folder), folder / "o.safetensors");
  const std::string bytes = read_file(folder / "o.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string header = bytes.substr(8, length);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"format":"pt"},)"
            R"("d.ids":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
            R"("f.double":{"dtype":"F64","shape":[2,1,1,3],"data_offsets":[8,56]},)"
            R"("a.weight":{"dtype":"F32","shape":[4,6],"data_offsets":[56,152]},)"
            R"("b.weight":{"dtype":"BF16","shape":[3,5],"data_offsets":[152,182]},)"
            R"("c.weight":{"dtype":"F16","shape":[7],"data_offsets":[182,196]},)"
            R"("e.small":{"dtype":"I8","shape":[5],"data_offsets":[196,201]}})");
}

TEST(SafetensorsExport, AlignsTheStartOfData) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  for (const std::uint64_t alignment : {64u, 4096u, 65536u}) {
    const std::string out = folder / fmt::format("a{}.safetensors", alignment);
    convert(graph, out, {.outtype = {}, .alignment = alignment, .max_shard_bytes = 0});
    EXPECT_EQ(open(out)->storages.front().offset % alignment, 0u);
  }
  EXPECT_THROW(
      convert(graph, folder / "x.safetensors", {.outtype = {}, .alignment = 48, .max_shard_bytes = 0}),
      Error);
}

TEST(SafetensorsExport, SplitsGreedilyAndWritesTheIndexLast) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {40, 40, 40, 500, 10, 10});
  const Layout layout =
      find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, folder / "out");
  std::vector<std::vector<std::string>> shards;
  for (const LayoutFile& file : layout.files) {
    std::vector<std::string> names;
    for (const Slot& slot : file.slots) names.push_back(slot.name);
    if (!names.empty()) shards.push_back(names);
  }
  EXPECT_EQ(shards, (std::vector<std::vector<std::string>>{{"t0", "t1"}, {"t3"}, {"t2", "t4", "t5"}}));
  EXPECT_TRUE(layout.files.back().path.ends_with("model.safetensors.index.json"));
  EXPECT_THROW(find_exporter("safetensors")
                   .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, "x.safetensors"),
               Error);
}

TEST(SafetensorsExport, RefusesWhatItCannotHold) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(144)};
  graph.tensors = {{"q", DType::q4_k, {256}, {}, StorageId{0}, 0}};
  EXPECT_THROW(find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
  graph.tensors = {{"__metadata__", DType::u8, {144}, {}, StorageId{0}, 0}};
  EXPECT_THROW(find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
  // two views of few bytes whose elements do not fit in any file
  const std::uint64_t many = std::uint64_t{1} << 61;
  graph.tensors = {{"a", DType::u8, {many}, {0}, StorageId{0}, 0},
                   {"b", DType::u8, {many}, {0}, StorageId{0}, 1}};
  EXPECT_THROW(find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
}

TEST(SafetensorsExport, ViewsOfOneStorageAreWrittenEachWithItsOwnBytes) {
  const testing::TemporaryFolder folder;
  std::string bytes(24, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  testing::write_file(folder / "raw", bytes);
  MetaGraph graph;
  graph.files = {{folder / "raw", 24}};
  graph.storages = {plain_storage(FileId{0}, 0, 24)};
  graph.tensors = {{"all", DType::u8, {24}, {}, StorageId{0}, 0},
                   {"part", DType::u8, {4}, {}, StorageId{0}, 20},
                   {"transposed", DType::u8, {3, 2}, {1, 3}, StorageId{0}, 6},
                   {"tied", DType::u8, {3, 2}, {1, 3}, StorageId{0}, 6}};
  Progress progress;
  const std::string out = folder / "out.safetensors";
  convert_model(std::make_shared<const MetaGraph>(graph), find_exporter("safetensors"), {}, out, {},
                progress);
  const std::string written = testing::read_file(out);
  const MetaGraph result = open_model(out, {});
  std::map<std::string, std::string> held;
  for (const Tensor& tensor : result.tensors)
    held[tensor.name] = written.substr(result.storage(tensor.storage).offset, elements(tensor));
  EXPECT_EQ(held,
            (std::map<std::string, std::string>{
                {"all", bytes}, {"part", bytes.substr(20)}, {"transposed", "\x06\x09\x07\x0a\x08\x0b"}}));
}

TEST(SafetensorsExport, TiesKeepTheirFirstName) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(16)};
  graph.tensors = {{"embed", DType::u8, {16}, {}, StorageId{0}, 0},
                   {"head", DType::u8, {16}, {}, StorageId{0}, 0}};
  const Layout layout = find_exporter("safetensors").layout(graph, {}, "o.safetensors");
  ASSERT_EQ(layout.result.tensors.size(), 1u);
  EXPECT_EQ(layout.result.tensors[0].name, "embed");
}

TEST(Exporters, OptionsThatAFormatDoesNotTakeAreErrors) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  ExportOptions options;
  options.metadata_slack = 64;
  EXPECT_THROW(convert(plain, folder / "o.safetensors", options), Error);
  EXPECT_THROW(convert(plain, folder / "o.pt", options), Error);
  EXPECT_THROW(convert(plain, folder / "o.pt", {.outtype = {}, .alignment = 0, .max_shard_bytes = 1}), Error);
  EXPECT_TRUE(takes_option(find_exporter("gguf"), "metadata_slack"));
  EXPECT_FALSE(takes_option(find_exporter("npz"), "metadata_slack"));
  EXPECT_TRUE(takes_option(find_exporter("npz"), "verify"));  // one of no format
}

std::vector<std::string> names_of(const MetaGraph& graph) {
  std::vector<std::string> names;
  for (const Tensor& tensor : graph.tensors) names.emplace_back(tensor.name.view());
  return names;
}

TEST(Exporters, WriteTensorsInAnyOrder) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  write_file(folder / "order.txt", "f.double\nb.weight\n");
  const std::map<std::string, std::vector<std::string>> expected = {
      {"largest", {"a.weight", "f.double", "b.weight", "c.weight", "d.ids", "e.small"}},
      {"smallest", {"e.small", "d.ids", "c.weight", "b.weight", "f.double", "a.weight"}},
      {"name", {"a.weight", "b.weight", "c.weight", "d.ids", "e.small", "f.double"}},
      {"file", {"d.ids", "f.double", "a.weight", "b.weight", "c.weight", "e.small"}},
      {folder / "order.txt", {"f.double", "b.weight", "d.ids", "a.weight", "c.weight", "e.small"}}};
  std::string header_order = R"({"d.ids":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("f.double":{"dtype":"F64","shape":[2,1,1,3],"data_offsets":[8,56]},)"
                             R"("a.weight":{"dtype":"F32","shape":[4,6],"data_offsets":[56,152]},)"
                             R"("b.weight":{"dtype":"F16","shape":[3,5],"data_offsets":[152,182]},)"
                             R"("c.weight":{"dtype":"F16","shape":[7],"data_offsets":[182,196]},)"
                             R"("e.small":{"dtype":"I8","shape":[5],"data_offsets":[196,201]}})";
  write_file(folder / "in2/m.safetensors", testing::safetensors_bytes(header_order, 201));
  const MetaGraphPtr graph = open(folder / "in2/m.safetensors");
  // the largest lies twice for a moment, best while there is nothing else
  MetaGraph halves;
  halves.files = {{"m", 430}};
  halves.storages = {plain_storage(FileId{0}, 0, 10), plain_storage(FileId{0}, 10, 20),
                     plain_storage(FileId{0}, 30, 400)};
  halves.tensors = {{"a", DType::bf16, {5}, {}, StorageId{0}, 0},
                    {"b", DType::bf16, {10}, {}, StorageId{1}, 0},
                    {"c", DType::bf16, {200}, {}, StorageId{2}, 0}};
  EXPECT_EQ(written_order(halves, "optimal").front(), StorageId{2});
  int number = 0;
  for (const auto& [order, names] : expected)
    for (const char* const extension : {".gguf", ".pt", ".npz"}) {
      ExportOptions options;
      options.order = written_order(*graph, order);
      const std::string out = folder / fmt::format("out/{}{}", number++, extension);
      expect_law(graph, out, options);
      EXPECT_EQ(names_of(*open(out)), names) << out << " " << order;
    }
  ExportOptions options;
  options.order = written_order(*graph, "largest");
  EXPECT_THROW(convert(plain, folder / "o.safetensors", options), Error);
  // across the parts of a split set
  options.max_shard_bytes = 1;
  expect_law(graph, folder / "out/parts.gguf", options);
  EXPECT_EQ(names_of(*open(folder / "out/parts-00004-of-00006.gguf")), expected.at("largest"));
}

TEST(Exporters, PackedWeightsAreOrderedByTheirCodes) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(64), shapes_only_storage(4), shapes_only_storage(8)};
  graph.tensors = {{"codes", DType::f8_e4m3, {8, 8}, {}, StorageId{0}, 0},
                   {"scale", DType::f32, {1}, {}, StorageId{1}, 0},
                   {"plain", DType::f32, {2}, {}, StorageId{2}, 0}};
  graph.logical.resize(1);
  graph.logical[0].name = "weight";
  graph.logical[0].shape = {8, 8};
  graph.logical[0].codes = TensorId{0};
  graph.logical[0].companions = {{Companion::scales, TensorId{1}}};
  ExportOptions options;
  options.outtype = DType::f16;
  options.order = {StorageId{2}, StorageId{1}, StorageId{0}};
  std::vector<std::string> names;
  for (const Slot& slot : output_slots(graph, options)) names.emplace_back(slot.name.view());
  EXPECT_EQ(names, (std::vector<std::string>{"plain", "weight"}));
}

TEST(SafetensorsExport, KeepsTheTextsOfItsSource) {
  const TemporaryFolder folder;
  testing::SafetensorsHeader header(R"({"format":"np","a \"key\"":"line\nline"})");
  header.add("w", "U8", "3", 3);
  write_file(folder / "in.safetensors", testing::safetensors_bytes(header.text(), header.data_bytes()));
  const MetaGraphPtr source = open(folder / "in.safetensors");
  convert(source, folder / "out.safetensors");
  EXPECT_EQ(open(folder / "out.safetensors")->metadata, source->metadata);
  EXPECT_EQ(source->metadata.size(), 2u);
}

}  // namespace
}  // namespace loadline
