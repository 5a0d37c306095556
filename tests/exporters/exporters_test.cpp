// Every exporter, lists of jobs, and what a conversion loses.

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/forward/gguf/type_policy.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "core/load/order/optimal_order.h"
#include "exporters/convert.h"
#include "exporters/exporter.h"
#include "exporters/preflight.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/support/builders.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_models.h"
#include "tests/support/samples.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::export_tests {

// --- A small folder with every plain type.

graph::MetaGraphPtr open(const std::string& path) {
  return std::make_shared<const graph::MetaGraph>(importers::open_model(path, {}));
}

graph::MetaGraphPtr plain_model(const testing::TemporaryFolder& folder) {
  testing::SafetensorsHeader header;
  header.add("a.weight", "F32", "4,6", 96);
  header.add("b.weight", "BF16", "3,5", 30);
  header.add("c.weight", "F16", "7", 14);
  header.add("d.ids", "I64", "", 8);
  header.add("e.small", "I8", "5", 5);
  header.add("f.double", "F64", "2,1,1,3", 48);
  testing::write_file(folder / "in/config.json", R"({"model_type":"llama","hidden_size":4})");
  testing::write_file(folder / "in/model.safetensors",
                      testing::safetensors_bytes(header.text(), header.data_bytes()));
  return open(folder / "in/model.safetensors");
}

exporters::WriteReport convert(const graph::MetaGraphPtr& graph, const std::string& out,
                               const exporters::ExportOptions& options, const exporters::WriteOptions& write,
                               const exporters::Exporter* exporter) {
  Progress progress;
  if (exporter == nullptr) exporter = &exporters::exporter_for_output(out);
  return exporters::convert_model({graph, exporter, out, options, write}, progress);
}

graph::MetaGraphPtr sample_model(const testing::TemporaryFolder& folder) {
  testing::write_file(folder / "in/sample.safetensors", testing::sample_safetensors());
  return open(folder / "in/sample.safetensors");
}

std::string tensor_content(const graph::MetaGraphPtr& graph, const graph::Tensor& tensor) {
  const io::StorageReader reader(graph);
  std::string bytes(graph::tensor_bytes(*graph, tensor), '\0');
  reader.read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

const graph::Tensor& tensor_named(const graph::MetaGraph& graph, const std::string& name) {
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

void expect_law(const graph::MetaGraphPtr& graph, const std::string& out,
                const exporters::ExportOptions& asked, std::string_view to) {
  const exporters::Exporter& exporter =
      to.empty() ? exporters::exporter_for_output(out) : exporters::find_exporter(to);
  const exporters::ExportOptions options = [&] {
    exporters::ExportOptions kept = asked;
    if (exporters::takes_option(exporter, "names")) kept.keep_names = true;
    return kept;
  }();
  const exporters::Layout layout = exporter.layout(*graph, options, out);
  convert(graph, out, options, {}, &exporter);
  std::vector<std::string> written;
  for (const exporters::LayoutFile& file : layout.files) written.push_back(testing::read_file(file.path));
  convert(graph, out, options, {.overwrite = true}, &exporter);
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(testing::read_file(layout.files[i].path) == written[i], true) << layout.files[i].path;
  // of a split set, any part opens it whole
  const graph::MetaGraphPtr back = open(std::filesystem::exists(out) ? out : layout.files.back().path);
  EXPECT_EQ(*back, layout.result) << out;
  for (const graph::Tensor& tensor : back->tensors) {
    const graph::Tensor& source = tensor_named(*graph, tensor.name);
    ASSERT_EQ(graph::elements(tensor), graph::elements(source));  // GGUF has no rank 0
    std::string expected = tensor_content(graph, source);
    if (tensor.dtype != source.dtype) {
      std::string cast_bytes(graph::tensor_bytes(*back, tensor), '\0');
      graph::DType from = source.dtype;
      if (convert::is_code_type(from)) {  // floats of 8 bits
        std::string floats(sizeof(float) * expected.size(), '\0');
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto value =
              static_cast<float>(convert::code_values(from)[static_cast<std::uint8_t>(expected[i])]);
          std::memcpy(floats.data() + i * sizeof value, &value, sizeof value);
        }
        expected = floats;
        from = graph::DType::f32;
      }
      convert::cast(from, std::as_bytes(std::span(expected)), tensor.dtype,
                    std::as_writable_bytes(std::span(cast_bytes)));
      expected = cast_bytes;
    }
    EXPECT_EQ(tensor_content(back, tensor), expected) << tensor.name.view();
  }
}

}  // namespace loadline::export_tests

namespace loadline::tests {

// --- Exporters: the round-trip law for every row of the table, options, orders, safetensors and torch.

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
  const exporters::Exporter& exporter = exporters::find_exporter(GetParam());
  std::string bytes(8192, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_file(folder / "in/m.onnx", testing::onnx::weights_model(
                                       {testing::onnx::raw_tensor("a", testing::onnx::kFloat, {2048}, bytes),
                                        testing::onnx::raw_tensor("b", testing::onnx::kInt8, {5}, "12345")}));
  const graph::MetaGraphPtr source = open(folder / "in/m.onnx");
  expect_law(source, folder / ("out/m" + std::string(exporter.extension)), {}, exporter.id);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryExporter, ::testing::ValuesIn([] {
                           std::vector<std::string_view> ids;
                           for (const exporters::Exporter& exporter : exporters::exporters())
                             ids.push_back(exporter.id);
                           return ids;
                         }()),
                         [](const auto& row) { return std::string(row.param); });

TEST(SafetensorsExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr sample = sample_model(folder);
  expect_law(sample, folder / "out/a.safetensors");
  expect_law(sample, folder / "out/folder");
  expect_law(sample, folder / "out/shards", {.outtype = {}, .alignment = 0, .max_shard_bytes = 600});
  expect_law(sample, folder / "out/tiny_shards", {.outtype = {}, .alignment = 0, .max_shard_bytes = 1});
  expect_law(sample, folder / "out/aligned.safetensors",
             {.outtype = {}, .alignment = 4096, .max_shard_bytes = 0});
  expect_law(sample, folder / "out/half.safetensors",
             {.outtype = graph::DType::f16, .alignment = 0, .max_shard_bytes = 0});
  const graph::MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/with_config");
  expect_law(plain, folder / "out/wide.safetensors",
             {.outtype = graph::DType::f32, .alignment = 0, .max_shard_bytes = 0});
}

TEST(TorchExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  expect_law(plain_model(folder), folder / "out/a.pt");
  EXPECT_THROW(convert(sample_model(folder), folder / "out/f4.pt"), Error);
  expect_law(plain_model(folder), folder / "out/c.pt",
             {.outtype = graph::DType::bf16, .alignment = 64, .max_shard_bytes = 0});
  const graph::MetaGraphPtr written = open(folder / "out/a.pt");
  for (const graph::Storage& storage : written->storages) EXPECT_EQ(storage.offset % 4096, 0u);
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
  const graph::MetaGraphPtr graph = plain_model(folder);
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
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {40, 40, 40, 500, 10, 10});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, folder / "out");
  std::vector<std::vector<std::string>> shards;
  for (const exporters::LayoutFile& file : layout.files) {
    std::vector<std::string> names;
    for (const exporters::Slot& slot : file.slots) names.push_back(slot.name);
    if (!names.empty()) shards.push_back(names);
  }
  EXPECT_EQ(shards, (std::vector<std::vector<std::string>>{{"t0", "t1"}, {"t3"}, {"t2", "t4", "t5"}}));
  EXPECT_TRUE(layout.files.back().path.ends_with("model.safetensors.index.json"));
  EXPECT_THROW(exporters::find_exporter("safetensors")
                   .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, "x.safetensors"),
               Error);
}

TEST(SafetensorsExport, RefusesWhatItCannotHold) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(144)};
  graph.tensors = {{"q", graph::DType::q4_k, {256}, {}, graph::StorageId{0}, 0}};
  EXPECT_THROW(exporters::find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
  graph.tensors = {{"__metadata__", graph::DType::u8, {144}, {}, graph::StorageId{0}, 0}};
  EXPECT_THROW(exporters::find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
  // two views of few bytes whose elements do not fit in any file
  const std::uint64_t many = std::uint64_t{1} << 61;
  graph.tensors = {{"a", graph::DType::u8, {many}, {0}, graph::StorageId{0}, 0},
                   {"b", graph::DType::u8, {many}, {0}, graph::StorageId{0}, 1}};
  EXPECT_THROW(exporters::find_exporter("safetensors").layout(graph, {}, "o.safetensors"), Error);
}

TEST(SafetensorsExport, ViewsOfOneStorageAreWrittenEachWithItsOwnBytes) {
  const testing::TemporaryFolder folder;
  std::string bytes(24, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  testing::write_file(folder / "raw", bytes);
  graph::MetaGraph graph;
  graph.files = {{folder / "raw", 24}};
  graph.storages = {graph::plain_storage(graph::FileId{0}, 0, 24)};
  graph.tensors = {{"all", graph::DType::u8, {24}, {}, graph::StorageId{0}, 0},
                   {"part", graph::DType::u8, {4}, {}, graph::StorageId{0}, 20},
                   {"transposed", graph::DType::u8, {3, 2}, {1, 3}, graph::StorageId{0}, 6},
                   {"tied", graph::DType::u8, {3, 2}, {1, 3}, graph::StorageId{0}, 6}};
  Progress progress;
  const std::string out = folder / "out.safetensors";
  exporters::convert_model(
      {std::make_shared<const graph::MetaGraph>(graph), &exporters::find_exporter("safetensors"), out},
      progress);
  const std::string written = testing::read_file(out);
  const graph::MetaGraph result = importers::open_model(out, {});
  std::map<std::string, std::string> held;
  for (const graph::Tensor& tensor : result.tensors)
    held[tensor.name] = written.substr(result.storage(tensor.storage).offset, graph::elements(tensor));
  EXPECT_EQ(held,
            (std::map<std::string, std::string>{
                {"all", bytes}, {"part", bytes.substr(20)}, {"transposed", "\x06\x09\x07\x0a\x08\x0b"}}));
}

TEST(SafetensorsExport, TiesKeepTheirFirstName) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(16)};
  graph.tensors = {{"embed", graph::DType::u8, {16}, {}, graph::StorageId{0}, 0},
                   {"head", graph::DType::u8, {16}, {}, graph::StorageId{0}, 0}};
  const exporters::Layout layout = exporters::find_exporter("safetensors").layout(graph, {}, "o.safetensors");
  ASSERT_EQ(layout.result.tensors.size(), 1u);
  EXPECT_EQ(layout.result.tensors[0].name, "embed");
}

// For every type in every format: what an error advises is tried, and where it advises nothing, nothing
// helps.
TEST(Exporters, ATypeIsHeldOrItsErrorAdvisesWhatWorks) {
  std::size_t held = 0, advised = 0, refused = 0;
  for (const graph::DTypeInfo& type : graph::dtype_table()) {
    const auto bytes = graph::byte_size(type.id, 1024);
    if (type.id == graph::DType::opaque || !bytes) continue;  // of no fixed size
    graph::MetaGraph graph;
    graph.format = "safetensors";
    graph.storages = {graph::shapes_only_storage(*bytes)};
    graph.tensors = {{"t", type.id, {4, 256}, {}, graph::StorageId{0}, 0}};
    for (const exporters::Exporter& exporter : exporters::exporters()) {
      if (exporter.id == "onnx") continue;  // only an ONNX model has what such a file needs
      const auto outcome = [&](std::optional<graph::DType> outtype) -> std::optional<Error> {
        try {
          exporter.layout(graph, {.outtype = outtype}, "x");
          return std::nullopt;
        } catch (const Error& error) {
          return error;
        }
      };
      const std::optional<Error> error = outcome(std::nullopt);
      if (!error) {
        ++held;
      } else if (error->remedy()) {
        EXPECT_EQ(error->remedy()->option, "outtype");
        EXPECT_FALSE(outcome(graph::dtype_named(error->remedy()->value))) << type.name << ' ' << exporter.id;
        ++advised;
      } else {
        for (const graph::DType outtype : {graph::DType::f32, graph::DType::f16, graph::DType::bf16})
          EXPECT_TRUE(outcome(outtype)) << type.name << ' ' << exporter.id;
        ++refused;
      }
    }
  }
  EXPECT_GT(held, 100u);
  EXPECT_GT(advised, 20u);
  EXPECT_GT(refused, 10u);
}

TEST(Exporters, OptionsThatAFormatDoesNotTakeAreErrors) {
  const auto bind = [](const std::string& out, std::string_view option, std::string_view word) {
    exporters::ConvertRequest request;
    set_option(*find_option(exporters::convert_options(), option), request, word);
    return exporters::bind_conversion(nullptr, request, out, {});
  };
  EXPECT_EQ(bind("o.gguf", "metadata_slack", "64").options.metadata_slack, 64u);
  EXPECT_THROW(bind("o.safetensors", "metadata_slack", "64"), Error);
  EXPECT_THROW(bind("o.pt", "metadata_slack", "64"), Error);
  EXPECT_THROW(bind("o.pt", "max_shard_size", "1"), Error);
  EXPECT_THROW(bind("o.onnx", "outtype", "f16"), Error);
  EXPECT_THROW(bind("o.safetensors", "order", "largest"), Error);
  // a quantized type: the one that is advised instead is one that the format has
  exporters::ConvertEnvironment environment;
  environment.policies = forward::built_in_type_policies();
  const std::pair<const char*, const char*> rows[] = {{"o.npz", "f32"}, {"o.ptd", "bf16"}, {"o.pt", "bf16"}};
  for (const auto& [out, advised] : rows) {
    exporters::ConvertRequest request;
    request.outtype = "q8_0";
    const std::string facts =
        testing::facts_of([&, &path = out] { bind_conversion(nullptr, request, path, environment); });
    EXPECT_TRUE(facts.ends_with(fmt::format(" >outtype={}", advised))) << facts;
  }
  EXPECT_TRUE(exporters::takes_option(exporters::find_exporter("gguf"), "metadata_slack"));
  EXPECT_FALSE(exporters::takes_option(exporters::find_exporter("npz"), "metadata_slack"));
  EXPECT_TRUE(exporters::takes_option(exporters::find_exporter("npz"), "verify"));  // one of no format
}

std::vector<std::string> names_of(const graph::MetaGraph& graph) {
  std::vector<std::string> names;
  for (const graph::Tensor& tensor : graph.tensors) names.emplace_back(tensor.name.view());
  return names;
}

TEST(Exporters, WriteTensorsInAnyOrder) {
  const TemporaryFolder folder;
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
  const graph::MetaGraphPtr graph = open(folder / "in2/m.safetensors");
  // the largest lies twice for a moment, best while there is nothing else
  graph::MetaGraph halves;
  halves.files = {{"m", 430}};
  halves.storages = {graph::plain_storage(graph::FileId{0}, 0, 10),
                     graph::plain_storage(graph::FileId{0}, 10, 20),
                     graph::plain_storage(graph::FileId{0}, 30, 400)};
  halves.tensors = {{"a", graph::DType::bf16, {5}, {}, graph::StorageId{0}, 0},
                    {"b", graph::DType::bf16, {10}, {}, graph::StorageId{1}, 0},
                    {"c", graph::DType::bf16, {200}, {}, graph::StorageId{2}, 0}};
  EXPECT_EQ(load::written_order(halves, "optimal").front(), graph::StorageId{2});
  int number = 0;
  for (const auto& [order, names] : expected)
    for (const char* const extension : {".gguf", ".pt", ".npz"}) {
      exporters::ExportOptions options;
      options.order = load::written_order(*graph, order);
      const std::string out = folder / fmt::format("out/{}{}", number++, extension);
      expect_law(graph, out, options);
      EXPECT_EQ(names_of(*open(out)), names) << out << " " << order;
    }
  exporters::ExportOptions options;
  options.order = load::written_order(*graph, "largest");
  // across the parts of a split set
  options.max_shard_bytes = 1;
  expect_law(graph, folder / "out/parts.gguf", options);
  EXPECT_EQ(names_of(*open(folder / "out/parts-00004-of-00006.gguf")), expected.at("largest"));
}

graph::MetaGraph packed_model() {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(64), graph::shapes_only_storage(4),
                    graph::shapes_only_storage(8)};
  graph.tensors = {{"codes", graph::DType::f8_e4m3, {8, 8}, {}, graph::StorageId{0}, 0},
                   {"scale", graph::DType::f32, {1}, {}, graph::StorageId{1}, 0},
                   {"plain", graph::DType::f32, {2}, {}, graph::StorageId{2}, 0}};
  graph.logical.resize(1);
  graph.logical[0].name = "weight";
  graph.logical[0].shape = {8, 8};
  graph.logical[0].codes = graph::TensorId{0};
  graph.logical[0].companions = {{graph::Companion::scales, graph::TensorId{1}}};
  return graph;
}

TEST(Exporters, PackedWeightsAreOrderedByTheirCodes) {
  const graph::MetaGraph graph = packed_model();
  exporters::ExportOptions options;
  options.outtype = graph::DType::f16;
  options.order = {graph::StorageId{2}, graph::StorageId{1}, graph::StorageId{0}};
  std::vector<std::string> names;
  for (const exporters::Slot& slot : exporters::output_slots(graph, options))
    names.emplace_back(slot.name.view());
  EXPECT_EQ(names, (std::vector<std::string>{"plain", "weight"}));
}

// Every format that unpacks asks for the settings of the packing.
TEST(Exporters, SettingsOfPackingsThatNobodyReadsAreErrors) {
  graph::MetaGraph graph = packed_model();
  const auto facts = [&](const exporters::Exporter& exporter, const exporters::ExportOptions& options) {
    return testing::facts_of([&] { (void)exporter.layout(graph, options, "out/model"); });
  };
  for (const char* const id : {"safetensors", "torch", "npz", "npy", "ptd"}) {
    const exporters::Exporter& exporter = exporters::find_exporter(id);
    EXPECT_NE(exporter.options.find("ignore"), std::string_view::npos) << id;
    exporters::ExportOptions options;
    options.outtype = graph::DType::f16;
    graph.metadata = {{std::string(graph::kConfigKey), R"({"quantization_config":{"quant_method":"fp8"}})"}};
    EXPECT_EQ(facts(exporter, options), "") << id;
    graph.metadata = {
        {std::string(graph::kConfigKey), R"({"quantization_config":{"quant_method":"fp8","of_nobody":3}})"}};
    EXPECT_NE(facts(exporter, options).find("quantization_config.of_nobody"), std::string::npos) << id;
    options.ignored_settings = {"quantization_config.of_*"};
    const exporters::Layout layout = exporter.layout(graph, options, "out/model");
    EXPECT_EQ(std::ranges::count(layout.notes, graph::Severity::warning, &graph::Note::severity), 1) << id;
  }
}

TEST(SafetensorsExport, KeepsTheTextsOfItsSource) {
  const TemporaryFolder folder;
  testing::SafetensorsHeader header(R"({"format":"np","a \"key\"":"line\nline"})");
  header.add("w", "U8", "3", 3);
  write_file(folder / "in.safetensors", testing::safetensors_bytes(header.text(), header.data_bytes()));
  const graph::MetaGraphPtr source = open(folder / "in.safetensors");
  convert(source, folder / "out.safetensors");
  EXPECT_EQ(open(folder / "out.safetensors")->metadata, source->metadata);
  EXPECT_EQ(source->metadata.size(), 2u);
}

}  // namespace

// --- numpy arrays and archives, and ExecuTorch tensors.

namespace {

namespace fs = std::filesystem;

TEST(NpzExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  expect_law(plain_model(folder), folder / "out/a.npz",
             {.outtype = graph::DType::f32, .alignment = 0, .max_shard_bytes = 0});
  EXPECT_THROW(convert(plain_model(folder), folder / "out/b.npz"), Error);  // BF16
  const graph::MetaGraphPtr written = open(folder / "out/a.npz");
  for (const graph::Storage& storage : written->storages) EXPECT_EQ(storage.offset % 64, 0u);
  EXPECT_THROW(convert(plain_model(folder), folder / "out/c.npz",
                       {.outtype = graph::DType::f32, .alignment = 65536, .max_shard_bytes = 0}),
               Error);
}

TEST(PtdExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/a.ptd");
  for (const std::uint64_t alignment : {1u, 16u, 4096u}) {
    const std::string out = folder / fmt::format("out/{}.ptd", alignment);
    exporters::ExportOptions options = {
        .outtype = graph::DType::f16, .alignment = alignment, .max_shard_bytes = 0};
    options.order = load::written_order(*plain, "smallest");
    expect_law(plain, out, options);
    const graph::MetaGraphPtr written = open(out);
    for (const graph::Storage& storage : written->storages) EXPECT_EQ(storage.offset % alignment, 0u);
  }
  EXPECT_THROW(convert(sample_model(folder), folder / "out/f4.ptd"), Error);
}

// torch's format holds them as two tensors of one storage, ExecuTorch's as two names of one segment.
TEST(Exporters, TiedTensorsStayTied) {
  const TemporaryFolder folder;
  write_file(folder / "raw", std::string(64, 'r'));
  graph::MetaGraph graph;
  graph.files = {{folder / "raw", 64}};
  graph.storages = {graph::plain_storage(graph::FileId{0}, 0, 32),
                    graph::plain_storage(graph::FileId{0}, 32, 32)};
  graph.tensors = {{"embed", graph::DType::f32, {2, 4}, {}, graph::StorageId{0}, 0},
                   {"norm", graph::DType::f32, {8}, {}, graph::StorageId{1}, 0},
                   {"head", graph::DType::f32, {2, 4}, {}, graph::StorageId{0}, 0},
                   {"blob", graph::DType::opaque, {}, {}, graph::StorageId{1}, 0}};
  const auto shared = std::make_shared<const graph::MetaGraph>(graph);
  auto floats = std::make_shared<graph::MetaGraph>(graph);
  floats->tensors.pop_back();
  expect_law(floats, folder / "o.pt");
  const graph::MetaGraphPtr archive = open(folder / "o.pt");
  EXPECT_EQ(archive->storages.size(), 2u);
  ASSERT_EQ(graph::tied_groups(*archive).size(), 1u);
  EXPECT_EQ(archive->tensor(graph::tied_groups(*archive)[0][1]).name, "head");
  expect_law(shared, folder / "o.ptd");
  const graph::MetaGraphPtr back = open(folder / "o.ptd");
  EXPECT_EQ(back->storages.size(), 3u);
  EXPECT_EQ(graph::tied_groups(*back).size(), 1u);
  EXPECT_TRUE(
      exporters::preflight({shared, &exporters::find_exporter("ptd"), folder / "p.ptd"}).left_out.empty());
}

TEST(PtdExport, RefusesAndNamesTheTensor) {
  const auto error_of = [](std::string name, graph::DType dtype, graph::Shape shape) {
    graph::MetaGraph graph;
    graph.storages = {graph::shapes_only_storage(std::uint64_t{1} << 40)};
    graph.tensors = {{std::move(name), dtype, std::move(shape), {}, graph::StorageId{0}, 0}};
    return testing::facts_of([&] { exporters::find_exporter("ptd").layout(graph, {}, "o.ptd"); });
  };
  EXPECT_EQ(error_of("w", graph::DType::f32, {1}), "");
  EXPECT_EQ(error_of("w", graph::DType::f32, {std::uint64_t{1} << 31}),
            "unsupported 'w' 2147483648 2147483647");
  EXPECT_EQ(error_of("w", graph::DType::f32, graph::Shape(std::vector<std::uint64_t>(17, 1))),
            "unsupported 'w' 17 16");
  EXPECT_EQ(error_of("w", graph::DType::q4_0, {32}), "unsupported 'w' Q4_0 >outtype=f32");
  EXPECT_NE(error_of(std::string("w\0x", 3), graph::DType::f32, {1}), "");
}

TEST(NpyExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const auto all_floats = [](std::uint64_t alignment) {
    return exporters::ExportOptions{
        .outtype = graph::DType::f32, .alignment = alignment, .max_shard_bytes = 0};
  };
  const graph::MetaGraphPtr plain = plain_model(folder);
  for (const std::uint64_t alignment : {0u, 64u, 4096u, 8192u}) {
    const std::string out = folder / fmt::format("out/{}", alignment);
    expect_law(plain, out, all_floats(alignment), "npy");
    const graph::MetaGraphPtr written = open(out);
    EXPECT_EQ(graph::model_name(*written), std::to_string(alignment));  // the folder's
    for (const graph::Storage& storage : written->storages)
      EXPECT_EQ(storage.offset % std::max<std::uint64_t>(alignment, 64), 0u);
  }
  EXPECT_THROW(exporters::find_exporter("npy").layout(*plain, {}, folder / "b"), Error);  // BF16
  EXPECT_THROW(exporters::find_exporter("npy").layout(*plain, all_floats(16384), folder / "b"), Error);
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
  graph::MetaGraph graph;
  graph.files = {{folder / "raw", bytes.size()}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const graph::StorageId storage = graph.add_storage(graph::plain_storage(graph::FileId{0}, 4 * i, 4));
    graph.tensors.push_back({names[i], graph::DType::i32, {}, {}, storage, 0});
  }
  const auto shared = std::make_shared<const graph::MetaGraph>(graph);
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
    EXPECT_THROW(exporters::find_exporter("npy").layout(graph, {}, folder / "x"), Error) << name;
  }
  graph.tensors[0].name = std::string(251, 'n');
  EXPECT_NO_THROW(exporters::find_exporter("npy").layout(graph, {}, folder / "x"));
}

TEST(NpyExport, ArraysOfAnotherModelAreRefused) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {4, 4});
  write_file(folder / "out/other.npy", "");
  EXPECT_THROW(convert(graph, folder / "out", {}, {.overwrite = true}, &exporters::find_exporter("npy")),
               Error);
  fs::remove(folder / "out/other.npy");
  expect_law(graph, folder / "out", {}, "npy");
  EXPECT_THROW(convert(graph, folder / "out", {}, {}, &exporters::find_exporter("npy")), Error);  // exists
  EXPECT_NO_THROW(convert(graph, folder / "out", {}, {.overwrite = true}, &exporters::find_exporter("npy")));
}

TEST(ZipExport, LargeArchivesUseZip64) {
  const TemporaryFolder folder;
  graph::MetaGraph graph = testing::graph_of({5ull << 30, 8, 5ull << 30, 16});
  const exporters::Layout layout = exporters::find_exporter("npz").layout(graph, {}, folder / "big.npz");
  Progress progress;
  const io::ReadTensor never = [](graph::TensorId, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
  exporters::write_layout(layout, graph, never, {.sparse = true}, progress);
  EXPECT_EQ(*open(folder / "big.npz"), layout.result);
}

}  // namespace

// --- Lists of jobs, right and wrong, and the state beside them.

namespace {

std::string fault(const std::string& json) {
  return testing::facts_of([&] { (void)exporters::parse_batch(json, "jobs.json"); });
}
std::string job(const std::string& more) { return R"({"jobs": [{"in": "a", "out": "b")" + more + "}]}"; }

TEST(BatchFile, OptionsOfTheFileThenOfTheJob) {
  const auto jobs = exporters::parse_batch(R"({
    "options": {"outtype": "bf16", "force": true},
    "jobs": [{"in": "/models/a", "out": "b.gguf"},
             {"in": "org/name", "out": "/c", "options": {"outtype": "f16", "align": 4096, "max_shard_size": "5GB"}}]})",
                                           "/lists/jobs.json");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].in, "/models/a");
  EXPECT_EQ(jobs[0].out, "/lists/b.gguf");
  EXPECT_EQ(jobs[0].request.outtype, "bf16");
  EXPECT_TRUE(jobs[0].request.write.overwrite);
  EXPECT_EQ(jobs[1].in, "org/name");
  EXPECT_EQ(jobs[1].out, "/c");
  EXPECT_EQ(jobs[1].request.outtype, "f16");
  EXPECT_EQ(jobs[1].request.layout.alignment, 4096u);
  EXPECT_EQ(jobs[1].request.layout.max_shard_bytes, 5'000'000'000u);
}

TEST(BindConversion, UnderstandsEveryWordOnce) {
  const auto graph = std::make_shared<const graph::MetaGraph>(
      forward::config_graph(forward::find_preset("demo")->config_json, "config.json"));
  exporters::ConvertEnvironment environment;
  environment.policies = forward::built_in_type_policies();
  environment.order = [](const graph::MetaGraph&, const std::string& order) {
    EXPECT_EQ(order, "largest");
    return std::vector<graph::StorageId>{graph::StorageId{3}};
  };
  environment.importance = [](const std::string& path) {
    return std::make_shared<const graph::ImportanceFile>(graph::ImportanceFile{path, {}});
  };
  environment.share = [] { return exporters::WriteShare{1, 4}; };
  environment.follow_links = true;
  exporters::ConvertRequest request;
  const auto bind = [&](const std::optional<std::string>& out) {
    return exporters::bind_conversion(graph, request, out, environment);
  };
  EXPECT_EQ(bind(std::nullopt).exporter->id, "safetensors");
  EXPECT_TRUE(bind(std::nullopt).out.ends_with("-loadline.safetensors"));
  EXPECT_TRUE(bind("x").options.follow_links);
  EXPECT_TRUE(bind("x").options.keeps_types());
  EXPECT_THROW(bind(""), Error);
  request.outtype = "f16";
  EXPECT_EQ(bind("x.npz").options.outtype, graph::DType::f16);
  request.outtype = "q4_k_m";
  EXPECT_THROW(bind("x.npz"), Error);
  request.order = "largest";
  request.imatrix = "m.imatrix";
  request.write.share = exporters::WriteShare{0, 0};
  const exporters::Conversion bound = bind("x.gguf");
  EXPECT_EQ(bound.options.policy->name, "q4_k_m");
  EXPECT_FALSE(bound.options.outtype);
  EXPECT_EQ(bound.options.order, std::vector<graph::StorageId>{graph::StorageId{3}});
  EXPECT_EQ(bound.options.importance->path, "m.imatrix");
  EXPECT_EQ(bound.write.share->count, 4u);
  EXPECT_THROW(bind("x.safetensors"), Error);  // which has no order of its own choice
  request.to = "torch";
  EXPECT_THROW(bind("x.gguf"), Error);
  request = {};
  request.write.share = exporters::WriteShare{0, 0};
  environment.share = {};
  EXPECT_THROW(bind("x"), Error);
}

TEST(BatchFile, ExistingInputsCountFromTheFile) {
  const TemporaryFolder folder;
  write_file(folder / "a.safetensors", "");
  const auto jobs =
      exporters::parse_batch(R"({"jobs": [{"in": "a.safetensors", "out": "x/y"}]})", folder / "jobs.json");
  EXPECT_EQ(jobs[0].in, folder / "a.safetensors");
  EXPECT_EQ(jobs[0].out, folder / "x/y");
}

TEST(BatchFile, AConsumedInputKeepsItsNameAndNoOtherFileTakesItsPlace) {
  const TemporaryFolder folder;
  const std::string list = folder / "lists/jobs.json";
  write_file(folder / "lists/a.safetensors", "");
  const std::string json =
      R"({"jobs": [{"in": "./a.safetensors", "out": "b.npz", "options": {"consume": true}}]})";
  const auto parse = [&] { return exporters::parse_batch(json, list).at(0); };
  exporters::BatchState(list).set_done(parse(), {}, {});
  fs::remove(folder / "lists/a.safetensors");
  EXPECT_EQ(parse().source, folder / "lists/a.safetensors");
  EXPECT_TRUE(exporters::BatchState(list).is_done(parse()));
  // a file of the working folder is not the one that was meant
  const std::string elsewhere = fs::relative(folder / "mine.safetensors").string();
  write_file(folder / "mine.safetensors", "");
  const auto named =
      exporters::parse_batch(R"({"jobs": [{"in": ")" + elsewhere + R"(", "out": "b"}]})", list);
  EXPECT_EQ(named.at(0).in, folder / ("lists/" + elsewhere));
}

TEST(BatchFile, AModelOfTheHubIsKnownByItsNameEverywhere) {
  const TemporaryFolder folder;
  // stands for org/name; ends at the root first, whatever the working folder is
  const std::string name = "../../../../../../../.." + folder.path().string() + "/model";
  const auto parse = [&](std::string_view list) {
    const std::string json =
        R"({"jobs": [{"in": ")" + name + R"(", "out": ")" + (folder / "o.npz") + R"("}]})";
    return exporters::parse_batch(json, folder / list, [&](const std::string& asked) {
      return asked == name ? std::optional(folder / "cache") : std::nullopt;
    });
  };
  const exporters::BatchJob job = parse("here/jobs.json").at(0);
  EXPECT_EQ(job.in, name);
  EXPECT_EQ(job.source, name);
  const std::string list = folder / "jobs.json";
  exporters::BatchState(list).set_done(job, {}, {});
  EXPECT_TRUE(exporters::BatchState(list).is_done(parse("there/jobs.json").at(0)));
  // what the working folder has of that name does not hide it, what the folder of the list has does
  write_file(folder / "model", "");
  EXPECT_EQ(parse("here/jobs.json").at(0).in, folder / "cache");
  EXPECT_TRUE(exporters::BatchState(list).is_done(parse("there/jobs.json").at(0)));
  fs::create_directory(folder / "here");  // the name leads from there to the same file
  EXPECT_FALSE(exporters::BatchState(list).is_done(parse("here/jobs.json").at(0)));
}

TEST(BatchFile, FaultsNameTheLine) {
  EXPECT_EQ(fault(""), "malformed jobs.json 1 1 '[' '{'");
  EXPECT_EQ(fault("{}"), "malformed jobs.json 1 1 'jobs'");
  EXPECT_EQ(fault(R"({"jobs": {}})"), "malformed jobs.json 1 10 'jobs'");
  EXPECT_EQ(fault(R"({"jobs": [3]})"), "malformed jobs.json 1 11");
  EXPECT_EQ(fault(R"({"jobs": [{"in": "a"}]})"), "malformed jobs.json 1 11 'out'");
  EXPECT_EQ(fault(R"({"jobs": [{"in": "", "out": "b"}]})"), "malformed jobs.json 1 19 'in'");
  EXPECT_EQ(fault(R"({"jobs": [], "job": 1})"), "malformed jobs.json 1 21 'job'");
  EXPECT_EQ(fault(job(R"(,
  "options": {"outype": "f16"})")),
            "malformed jobs.json 2 26 'outype'");
  EXPECT_EQ(fault(job(R"(, "options": {"outtype": "q4_k"})")), "malformed jobs.json 1 59 'outtype' 'q4_k'");
  EXPECT_EQ(fault(job(R"(, "options": {"outtype": ["f16"]})")), "malformed jobs.json 1 58 'outtype'");
  EXPECT_EQ(fault(job(R"(, "options": {"force": "perhaps"})")), "malformed jobs.json 1 57 'force' 'perhaps'");
  EXPECT_EQ(fault(job(R"(, "options": {"memory_budget": "1GiB"})")),
            "malformed jobs.json 1 65 'memory_budget'");
  EXPECT_EQ(fault(R"({"jobs": [{"in": "a", "out": "b"}, {"in": "c", "out": "./d/../b"}]})"),
            "malformed jobs.json 1 56 'b'");
  EXPECT_NE(fault("{\"jobs\": " + std::string(100'000, '[') + "}"), "");
}

class State : public ::testing::Test {
 protected:
  State() {
    write_file(folder / "in", "source");
    write_file(folder / "out", "result");
    done.in = done.source = folder / "in";
    done.out = folder / "out";
    done.options = {{"outtype", "f16"}};
    const std::string read[] = {done.in}, written[] = {done.out};
    exporters::BatchState(list).set_done(done, read, written);
  }
  bool is_done(const exporters::BatchJob& of) { return exporters::BatchState(list).is_done(of); }

  TemporaryFolder folder;
  std::string list = folder / "jobs.json";
  exporters::BatchJob done;
};

TEST_F(State, WhatIsDoneStaysDone) {
  EXPECT_TRUE(is_done(done));
  exporters::BatchState again(list);
  again.set_done(done, {}, {});
  EXPECT_TRUE(is_done(done));
}

TEST_F(State, AnotherRequestIsNotDone) {
  exporters::BatchJob other = done;
  other.options = {{"outtype", "bf16"}};
  EXPECT_FALSE(is_done(other));
  other = done;
  other.source += "2";
  EXPECT_FALSE(is_done(other));
  other = done;
  other.out += "2";
  EXPECT_FALSE(is_done(other));
}

TEST_F(State, ChangedFilesAreNotDone) {
  write_file(folder / "out", "result, longer");
  EXPECT_FALSE(is_done(done));
  std::filesystem::remove(folder / "out");
  EXPECT_FALSE(is_done(done));
}

TEST_F(State, ATouchedSourceIsNotDone) {
  std::filesystem::last_write_time(folder / "in",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_FALSE(is_done(done));
}

TEST_F(State, DamagedStatesAreRefused) {
  const std::string path = exporters::BatchState::path_of(list), whole = testing::read_file(path);
  for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
    write_file(path, whole.substr(0, cut));
    EXPECT_THROW(exporters::BatchState state(list), Error) << cut;
  }
  for (const char* text :
       {"[]", "{\"done\": 3}", "{\"done\": [{}]}", R"({"done": [{"out": 1, "request": "", "files": []}]})",
        R"({"done": [{"out": "", "request": "", "files": [{"path": "x", "bytes": "y"}]}]})"}) {
    write_file(path, text);
    EXPECT_THROW(exporters::BatchState state(list), Error) << text;
  }
}

}  // namespace

// --- What a conversion is said to lose.

namespace {

using Sentences = std::vector<std::string>;

graph::MetaGraph graph_of(std::string format, std::vector<graph::DType> dtypes) {
  graph::MetaGraph graph;
  graph.format = std::move(format);
  for (const graph::DType dtype : dtypes) {
    const auto number = static_cast<std::uint32_t>(graph.tensors.size());
    graph.storages.push_back(graph::shapes_only_storage(*graph::byte_size(dtype, 256)));
    graph.tensors.push_back({"t" + std::to_string(number), dtype, {256}, {}, graph::StorageId{number}, 0});
  }
  return graph;
}

Sentences left_out(const graph::MetaGraph& graph, std::string_view format,
                   std::optional<graph::DType> outtype = {}) {
  return loadline::exporters::left_out(graph, exporters::find_exporter(format),
                                       {.outtype = outtype, .alignment = 0, .max_shard_bytes = 0});
}

TEST(LeftOut, NothingIsSaidWhereNothingIsLost) {
  graph::MetaGraph graph = graph_of("safetensors", {graph::DType::f32, graph::DType::i8, graph::DType::f16});
  graph.metadata = {{"note", std::string("text")}, {std::string(graph::kConfigKey), std::string("{}")}};
  EXPECT_EQ(left_out(graph, "safetensors", graph::DType::bf16), Sentences());
  graph.format = "gguf";
  graph.metadata = {{"n", std::uint32_t{1}}, {"a", graph::MetaArray{}}};
  EXPECT_EQ(left_out(graph, "gguf"), Sentences());
}

TEST(LeftOut, TiesAndKeys) {
  graph::MetaGraph graph = graph_of("gguf", {graph::DType::f32, graph::DType::f32});
  graph.tensors[1].storage = graph::StorageId{0};
  graph.metadata = {{"n", std::uint32_t{1}}, {"a\x1b", graph::MetaArray{}}, {"text", std::string("kept")}};
  EXPECT_EQ(left_out(graph, "safetensors"),
            (Sentences{"1 tensor is tied to another and written once: 't1'",
                       "2 metadata keys are not written, safetensors has no place for them: 'n', 'a\\x1b'"}));
}

TEST(LeftOut, WhatTheOuttypeCannotChange) {
  const graph::MetaGraph graph =
      graph_of("gguf", {graph::DType::f4_e2m1, graph::DType::f8_e8m0, graph::DType::f8_e8m0,
                        graph::DType::f32, graph::DType::f6_e2m3, graph::DType::i32});
  EXPECT_EQ(left_out(graph, "gguf", graph::DType::f16),
            (Sentences{"4 tensors are not cast to F16: F4, F6_E2M3, F8_E8M0 stay as stored"}));
  EXPECT_EQ(
      left_out(graph_of("gguf", {graph::DType::iq2_xxs, graph::DType::iq1_m}), "gguf", graph::DType::f16),
      Sentences());
  EXPECT_EQ(left_out(graph_of("x", {graph::DType::f8_e8m0}), "safetensors", graph::DType::f32),
            (Sentences{"1 tensor is not cast to F32: F8_E8M0 stays as stored"}));
  EXPECT_EQ(left_out(graph, "gguf"), Sentences());
}

TEST(LeftOut, ScalesOfQuantizedTensors) {
  // a number beside the tensor; what became a tensor itself is written too
  graph::MetaGraph torch = graph_of("torch", {graph::DType::i8, graph::DType::f32});
  torch.metadata = {{"t0.scale", 0.5}, {"t1.scale", 0.5}};
  EXPECT_EQ(left_out(torch, "safetensors").back(),
            "1 quantized tensor is written as integers, without scale and zero point: 't0'");
  // torch's own are written as the numbers that they stand for
  for (const std::string& sentence :
       left_out(testing::import_bytes("m.pt", testing::sample_torch()), "safetensors"))
    EXPECT_EQ(sentence.find("quantized"), std::string::npos) << sentence;
  graph::MetaGraph graph = graph_of("tflite", {graph::DType::i8, graph::DType::i32, graph::DType::u8,
                                               graph::DType::i4, graph::DType::i16, graph::DType::f32});
  EXPECT_EQ(left_out(graph, "safetensors"), (Sentences{"4 integer tensors are written without the scale and "
                                                       "zero point that LiteRT keeps beside quantized ones"
                                                       ": 't0', 't2', 't3' and 1 more"}));
}

}  // namespace

}  // namespace loadline::tests
