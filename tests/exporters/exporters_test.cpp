// Exporters: the round-trip law, exact bytes, and what they refuse.
#include "core/base/error.h"
#include "core/convert/cast.h"
#include "core/convert/codes.h"
#include "core/io/meta_array.h"
#include "core/io/storage_reader.h"
#include "core/io/tensor_reader.h"
#include "core/load/written_order.h"
#include "exporters/common.h"
#include "exporters/convert_options.h"
#include "exporters/preflight.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_models.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::open;
using export_tests::plain_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

MetaGraphPtr sample_model(const TemporaryFolder& folder) {
  write_file(folder / "in/sample.safetensors", testing::sample_safetensors());
  return open(folder / "in/sample.safetensors");
}

std::string tensor_content(const MetaGraphPtr& graph, const Tensor& tensor) {
  const StorageReader reader(graph);
  std::string bytes(tensor_bytes(*graph, tensor), '\0');
  reader.read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

const Tensor& tensor_named(const MetaGraph& graph, const std::string& name) {
  for (const Tensor& tensor : graph.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

// import(write(layout)) == layout.result, and every tensor's bytes are what they were.
void expect_law(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options = {},
                std::string_view to = "") {
  const Exporter& exporter = to.empty() ? exporter_for_output(out) : find_exporter(to);
  const Layout layout = exporter.layout(*graph, options, out);
  convert(graph, out, options, {}, &exporter);
  // of a split set, any part opens it whole
  const MetaGraphPtr back = open(fs::exists(out) ? out : layout.files.back().path);
  EXPECT_EQ(*back, layout.result) << out;
  for (const Tensor& tensor : back->tensors) {
    const Tensor& source = tensor_named(*graph, tensor.name);
    ASSERT_EQ(elements(tensor), elements(source));  // GGUF has no rank 0
    std::string expected = tensor_content(graph, source);
    if (tensor.dtype != source.dtype) {
      std::string cast_bytes(tensor_bytes(*back, tensor), '\0');
      DType from = source.dtype;
      if (is_code_type(from)) {  // floats of 8 bits
        std::string floats(sizeof(float) * expected.size(), '\0');
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto value = static_cast<float>(code_values(from)[static_cast<std::uint8_t>(expected[i])]);
          std::memcpy(floats.data() + i * sizeof value, &value, sizeof value);
        }
        expected = floats;
        from = DType::f32;
      }
      cast(from, std::as_bytes(std::span(expected)), tensor.dtype,
           std::as_writable_bytes(std::span(cast_bytes)));
      expected = cast_bytes;
    }
    EXPECT_EQ(tensor_content(back, tensor), expected) << tensor.name.view();
  }
}

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

// A branch with an initialiser of its own, weights above and below the size that stays inside, in raw_data
// and in typed fields, two tensors on one external range, and a field that no version knows.
void write_onnx_model(const std::string& path) {
  namespace onnx = testing::onnx;
  std::string big(8192, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 7);
  std::vector<std::uint64_t> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i << (i % 40);
  testing::Proto branch, graph;
  branch.text(onnx::kNode, onnx::node("Identity", {"inner"}, {"b"}));
  branch.text(onnx::kInitializer, onnx::raw_tensor("inner", onnx::kFloat, {512}, big.substr(0, 2048)));
  branch.text(onnx::kOutput, onnx::value("b", onnx::kFloat, {"512"}));
  testing::Proto constant = onnx::node("Constant", {}, {"c"}, "constant");
  constant.text(5, onnx::attribute_tensor("value", onnx::raw_tensor("", onnx::kFloat, {2048}, big)));
  testing::Proto choice = onnx::node("If", {"x"}, {"y"}, "choice");
  choice.text(5, onnx::attribute_graph("then_branch", branch));
  choice.text(5, onnx::attribute_graph("else_branch", branch));
  graph.text(onnx::kNode, constant).text(onnx::kNode, choice);
  graph.text(onnx::kInitializer, onnx::raw_tensor("large", onnx::kFloat, {64, 32}, big));
  graph.text(onnx::kInitializer, onnx::raw_tensor("least", onnx::kUint8, {1024}, big.substr(1, 1024)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("small", onnx::kUint8, {1023}, big.substr(1, 1023)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("nothing", onnx::kFloat, {0, 4}, ""));
  graph.text(onnx::kInitializer, onnx::int64_tensor("typed", numbers));
  const auto outside = [&](const char* name, const onnx::Dims& dims, const char* offset, const char* length) {
    graph.text(onnx::kInitializer,
               onnx::external_tensor(name, onnx::kFloat, dims,
                                     {{"location", "./w.bin"}, {"offset", offset}, {"length", length}}));
  };
  outside("tied", {16, 32}, "16", "2048");
  outside("head", {32, 16}, "16", "2048");
  outside("bias", {4}, "4000", "16");
  graph.text(onnx::kInput, onnx::value("x", onnx::kBool, {}));
  graph.text(onnx::kOutput, onnx::value("y", onnx::kFloat, {"512"}));
  graph.text(2000, "of a later version");
  write_file(path, onnx::model(graph));
  write_file(fs::path(path).parent_path() / "w.bin", big);
}

TEST(OnnxExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_file(folder / "in/sample.onnx", testing::onnx::sample_onnx());
  write_file(folder / "in/sample.data", testing::onnx::sample_onnx_data());
  write_onnx_model(folder / "in/model.onnx");
  ExportOptions within, aligned;
  within.inline_weights = true;
  aligned.alignment = 65536;
  for (const char* const name : {"sample", "model"}) {
    const MetaGraphPtr source = open(folder / fmt::format("in/{}.onnx", name));
    expect_law(source, folder / fmt::format("out/{}.onnx", name));
    expect_law(source, folder / fmt::format("wide/{}.onnx", name), aligned);
    aligned.order = written_order(*source, "largest");
    expect_law(source, folder / fmt::format("ordered/{}.onnx", name), aligned);
    aligned.order.clear();
    expect_law(source, folder / fmt::format("one/{}.onnx", name), within);
    EXPECT_FALSE(fs::exists(folder / fmt::format("one/{}.onnx.data", name)));
    // and back from there
    expect_law(open(folder / fmt::format("out/{}.onnx", name)), folder / fmt::format("back/{}.onnx", name),
               within);
    expect_law(open(folder / fmt::format("one/{}.onnx", name)), folder / fmt::format("again/{}.onnx", name));
  }
  EXPECT_TRUE(fs::exists(folder / "again/model.onnx.data"));
}

TEST(OnnxExport, MovesWeightsAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const MetaGraphPtr source = open(folder / "in/model.onnx");
  const Layout layout = find_exporter("onnx").layout(*source, {}, folder / "o.onnx");
  std::map<std::string, std::uint64_t> outside;
  for (const Tensor& tensor : layout.result.tensors) {
    const Storage& storage = layout.result.storage(tensor.storage);
    if (storage.file == FileId{1}) outside[tensor.name] = storage.offset;
    if (storage.file == FileId{1}) EXPECT_EQ(storage.offset % 4096, 0u);
  }
  EXPECT_EQ(outside.at("tied"), outside.at("head"));
  std::set<std::string> names;
  for (const auto& [name, offset] : outside) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"choice/else_branch/inner", "choice/then_branch/inner", "head",
                                          "large", "least", "tied", "typed"}));
  EXPECT_LT(layout.files.back().header.size(), 8192u);  // values within the file are copied, not held
  EXPECT_EQ(layout.files.back().slots.size(), 2u);      // the constant's, and the bias that is inside now
  // a model whose weights are all small or inside stays as it is, byte by byte
  write_file(folder / "in/plain.onnx", testing::onnx::weights_model({testing::onnx::raw_tensor(
                                           "w", testing::onnx::kFloat, {2048}, std::string(8192, 'w'))}));
  ExportOptions within;
  within.inline_weights = true;
  expect_law(open(folder / "in/plain.onnx"), folder / "plain.onnx", within);
  EXPECT_EQ(read_file(folder / "plain.onnx"), read_file(folder / "in/plain.onnx"));
  EXPECT_NE(read_file(folder / "in/model.onnx").find("of a later version"), std::string::npos);
  convert(source, folder / "o.onnx");
  EXPECT_NE(read_file(folder / "o.onnx").find("of a later version"), std::string::npos);
}

TEST(OnnxExport, Refuses) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  EXPECT_THROW(convert(plain, folder / "o.onnx"), Error);  // has no operators
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const MetaGraphPtr source = open(folder / "in/model.onnx");
  EXPECT_THROW(convert(source, folder / "a..b.onnx"), Error);
  EXPECT_THROW(
      convert(source, folder / "o.onnx", {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0}),
      Error);
  EXPECT_THROW(
      convert(source, folder / "o.onnx", {.outtype = {}, .alignment = 1 << 17, .max_shard_bytes = 0}), Error);
  // 2^31 bytes within one file
  const std::uint64_t large = std::uint64_t{1} << 30;
  const auto weight = [&](const char* name, std::uint64_t offset) {
    return testing::onnx::external_tensor(
        name, testing::onnx::kUint8, {large},
        {{"location", "w.bin"}, {"offset", std::to_string(offset)}, {"length", std::to_string(large)}});
  };
  write_file(folder / "big/m.onnx", testing::onnx::weights_model({weight("a", 0), weight("b", large)}));
  write_file(folder / "big/w.bin", "");
  fs::resize_file(folder / "big/w.bin", 2 * large);
  ExportOptions within;
  within.inline_weights = true;
  try {
    find_exporter("onnx").layout(*open(folder / "big/m.onnx"), within, folder / "o.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit);
    EXPECT_NE(std::string(error.what()).find("protobuf's limit is 2147483646"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(find_exporter("onnx").layout(*open(folder / "big/m.onnx"), {}, folder / "o.onnx"));
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

// The format's own bytes, written out by hand.
TEST(GgufExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/plain.gguf");
  expect_law(plain, folder / "out/aligned.gguf", {.outtype = {}, .alignment = 4096, .max_shard_bytes = 0});
  expect_law(plain, folder / "out/half.gguf", {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0});
  testing::GgufBuilder all;
  all.key("general.architecture", "llama");
  for (const DTypeInfo& info : dtype_table())
    if (info.ggml >= 0)
      all.tensor(std::string(info.name), {info.block_elements, 3}, static_cast<std::uint32_t>(info.ggml),
                 3 * info.block_bytes);
  write_file(folder / "in/all.gguf", all.bytes());
  expect_law(open(folder / "in/all.gguf"), folder / "out/all.gguf");
}

TEST(GgufExport, WritesTheseBytes) {
  const TemporaryFolder folder;
  write_file(folder / "in/named.safetensors",
             testing::safetensors_bytes(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24));
  ExportOptions options;
  options.metadata_slack = 0;
  convert(open(folder / "in/named.safetensors"), folder / "o.gguf", options);
  std::string expected;
  const auto u32 = [&](std::uint32_t v) { expected.append(reinterpret_cast<const char*>(&v), 4); };
  const auto u64 = [&](std::uint64_t v) { expected.append(reinterpret_cast<const char*>(&v), 8); };
  const auto text = [&](std::string_view v) { u64(v.size()), expected += v; };
  expected += "GGUF";
  u32(3), u64(1), u64(4);
  text("general.architecture"), u32(8), text("unknown");
  text("general.name"), u32(8), text("named");
  text("general.alignment"), u32(4), u32(32);
  text("general.file_type"), u32(4), u32(0);
  text("w"), u32(2), u64(3), u64(2), u32(0), u64(0);
  expected.resize((expected.size() + 31) / 32 * 32, '\0');
  expected += testing::safetensors_bytes("", 24).substr(8);
  expected.resize((expected.size() + 31) / 32 * 32, '\0');
  EXPECT_EQ(read_file(folder / "o.gguf"), expected);
}

// Every scalar type, arrays of every kind, and a text that is too long to be kept.
std::string annotated_gguf(bool big_endian, std::uint32_t file_type) {
  testing::GgufBuilder b(big_endian);
  b.key("general.name", "annotated").key("general.architecture", "llama").key("general.file_type", file_type);
  b.alignment(64).key("empty text", "");
  b.key("u8", b.u8, b.number(std::uint8_t{200})).key("i8", b.i8, b.number(std::int8_t{-3}));
  b.key("u16", b.u16, b.number(std::uint16_t{60'000})).key("i16", b.i16, b.number(std::int16_t{-300}));
  b.key("i32", b.i32, b.number(std::int32_t{-70'000})).key("f32", b.f32, b.number(1e-5F));
  b.key("bool", b.boolean, b.number(std::uint8_t{1})).key("u64", b.u64, b.number(~std::uint64_t{0}));
  b.key("i64", b.i64, b.number(INT64_MIN)).key("f64", b.f64, b.number(0.1));
  std::vector<std::string> tokens = {"<s>", "", "\xE2\x96\x81the", std::string(200'000, 'x')};
  for (int i = 0; i < 20'000; ++i) tokens.push_back("token " + std::to_string(i));
  b.strings("tokenizer.ggml.tokens", tokens).strings("no strings", {});
  const auto numbers = [&](const char* key, std::uint32_t type, auto first, std::uint64_t count) {
    std::string bytes = b.number(type) + b.number(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      bytes += b.number(first);
      first = static_cast<decltype(first)>(first + 1);
    }
    b.key(key, b.array, bytes);
  };
  numbers("bytes", b.u8, std::uint8_t{3}, 9);
  numbers("shorts", b.i16, std::int16_t{-3}, 9);
  numbers("scores", b.f32, 0.5F, 50'001);
  numbers("wide", b.u64, std::uint64_t{1} << 40, 9);
  b.key("long text", std::string((1 << 20) + 3, 't')).key("after it", std::uint32_t{7});
  b.tensor("a", {5, 3}, 0, 60).tensor("b", {7}, 1, 14);
  return b.bytes();
}

// Values as they are, elements of arrays read.
std::map<std::string, std::vector<MetaValue>> metadata_values(const MetaGraph& graph) {
  std::map<std::string, std::vector<MetaValue>> values;
  for (const MetaEntry& entry : graph.metadata)
    if (const auto* const array = std::get_if<MetaArray>(&entry.value))
      values[entry.key] = read_meta_array(graph, *array, 0, array->count);
    else
      values[entry.key] = {entry.value};
  return values;
}

TEST(GgufExport, CarriesEveryKeyOfAGgufFile) {
  const TemporaryFolder folder;
  for (const bool big_endian : {false, true}) {
    const std::string in = folder / fmt::format("in/{}.gguf", big_endian);
    write_file(in, annotated_gguf(big_endian, 0));
    const MetaGraphPtr source = open(in);
    const std::string out = folder / fmt::format("out/{}.gguf", big_endian);
    const Layout layout = find_exporter("gguf").layout(*source, {}, out);
    EXPECT_LT(layout.files[0].header.size(), 4096u);  // what is large is copied, not held
    expect_law(source, out);
    const MetaGraphPtr back = open(out);
    ASSERT_EQ(back->metadata.size(), source->metadata.size());
    for (std::size_t i = 0; i < source->metadata.size(); ++i) {
      EXPECT_EQ(back->metadata[i].key, source->metadata[i].key);
      EXPECT_EQ(meta_type(back->metadata[i].value), meta_type(source->metadata[i].value));
    }
    EXPECT_EQ(metadata_values(*back), metadata_values(*source));
    EXPECT_EQ(back->storages.front().offset % 64, 0u);
    const auto header = static_cast<std::size_t>(source->storages.front().offset);
    if (!big_endian) EXPECT_EQ(read_file(out).substr(0, header), read_file(in).substr(0, header));
  }
}

TEST(GgufExport, KeepsItsFileTypeTrue) {
  const TemporaryFolder folder;
  write_file(folder / "in.gguf", annotated_gguf(false, 7));
  const auto type_of = [&](std::optional<DType> outtype) -> std::optional<MetaValue> {
    const Layout layout = find_exporter("gguf").layout(
        *open(folder / "in.gguf"), {.outtype = outtype, .alignment = 0, .max_shard_bytes = 0}, "o.gguf");
    const MetaValue* const value = find_metadata(layout.result, "general.file_type");
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  EXPECT_EQ(type_of(std::nullopt), MetaValue(std::uint32_t{7}));  // the writer knew more than the types say
  EXPECT_EQ(type_of(DType::f32), MetaValue(std::uint32_t{7}));    // most of it was and is F32
  EXPECT_EQ(type_of(DType::f16), MetaValue(std::uint32_t{1}));
  EXPECT_EQ(type_of(DType::bf16), MetaValue(std::uint32_t{32}));
  expect_law(open(folder / "in.gguf"), folder / "half.gguf",
             {.outtype = DType::f16, .alignment = 128, .max_shard_bytes = 0});
  EXPECT_EQ(*find_metadata(*open(folder / "half.gguf"), "general.alignment"), MetaValue(std::uint32_t{128}));
}

TEST(GgufExport, AddsNoKeyToAGgufFile) {
  const TemporaryFolder folder;
  write_file(folder / "in.gguf",
             testing::GgufBuilder().key("general.architecture", "x").tensor("a", {3}, 0, 12).bytes());
  expect_law(open(folder / "in.gguf"), folder / "out.gguf");
  const auto header = static_cast<std::size_t>(open(folder / "in.gguf")->storages.front().offset);
  EXPECT_EQ(read_file(folder / "out.gguf").substr(0, header),
            read_file(folder / "in.gguf").substr(0, header));
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

ExportOptions parts_of(std::uint64_t bytes) {
  return {.outtype = {}, .alignment = 0, .max_shard_bytes = bytes};
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

TEST(GgufExport, SplitSetsObeyTheRoundTripLaw) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/one.gguf", parts_of(1 << 20));
  EXPECT_TRUE(fs::exists(folder / "out/one.gguf"));  // what fits into one file is one file
  for (const std::uint64_t alignment : {0u, 4096u}) {
    ExportOptions options = {.outtype = {}, .alignment = alignment, .max_shard_bytes = 1};
    options.metadata_slack = 100;
    const std::string out = folder / fmt::format("out/{}.gguf", alignment);
    expect_law(plain, out, options);
    const Layout layout = find_exporter("gguf").layout(*plain, options, out);
    ASSERT_EQ(layout.files.size(), plain->tensors.size());
    EXPECT_EQ(layout.files[1].path, folder / fmt::format("out/{}-00002-of-00006.gguf", alignment));
    const MetaGraphPtr back = open(layout.files[3].path);
    for (const Storage& storage : back->storages)
      EXPECT_EQ(storage.offset % std::max<std::uint64_t>(alignment, 32), 0u);
    // one file again, without a trace of the parts
    const std::string joined = folder / fmt::format("out/{}-joined.gguf", alignment);
    expect_law(back, joined, {});
    const MetaGraphPtr whole = open(joined);
    for (const MetaEntry& entry : whole->metadata) EXPECT_FALSE(entry.key.starts_with("split.")) << entry.key;
    expect_law(back, folder / fmt::format("out/{}-again.gguf", alignment), parts_of(6000));
  }
  write_file(folder / "in/annotated.gguf", annotated_gguf(false, 0));
  const MetaGraphPtr annotated = open(folder / "in/annotated.gguf");
  expect_law(annotated, folder / "out/annotated.gguf", parts_of(1));
  EXPECT_EQ(metadata_values(*open(folder / "out/annotated-00002-of-00002.gguf")),
            metadata_values(*annotated));
}

// Two experts of three outputs and 64 inputs, as gpt-oss has them, and a matrix as ModelOpt has it.
MetaGraphPtr four_bit_model(const TemporaryFolder& folder, std::uint8_t scale = 0x38) {
  testing::SafetensorsHeader header;
  header.add("mlp.experts.down_proj_blocks", "U8", "2,3,2,16", 192);
  header.add("mlp.experts.down_proj_scales", "U8", "2,3,2", 12);
  header.add("q.weight", "U8", "2,64", 128);
  header.add("q.weight_scale", "F8_E4M3", "2,8", 16);
  header.add("q.weight_scale_2", "F32", "", 4);
  header.add("short.weight", "F32", "2", 8);
  std::string bytes(360, '\0');
  for (std::size_t i = 0; i < 332; ++i) bytes[i] = static_cast<char>(i * 37 + i / 16);
  for (std::size_t i = 192; i < 204; ++i) bytes[i] = static_cast<char>(120 + i % 9);
  for (std::size_t i = 332; i < 348; ++i) bytes[i] = static_cast<char>(scale + i % 5);
  std::string file = testing::safetensors_bytes(header.text(), 360);
  file.replace(file.size() - 360, 360, bytes);
  write_file(folder / "four.safetensors", file);
  return open(folder / "four.safetensors");
}

std::vector<float> floats_of(const MetaGraphPtr& graph, const Recipe& recipe) {
  const StorageReader storages(graph);
  const TensorReader tensors(storages);
  RecipeReader reader(
      *graph, [&](TensorId id, std::uint64_t at, std::span<std::byte> out) { tensors.read(id, at, out); },
      recipe, RecipeReader::kLeastMemory);
  std::vector<float> floats(reader.bytes() / sizeof(float));
  reader.read(0, std::as_writable_bytes(std::span(floats)));
  return floats;
}

TEST(GgufExport, WeightsOfFourBitFloatsBecomeBlocksOfTheSameNumbers) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = four_bit_model(folder);
  ASSERT_EQ(graph->logical.size(), 2u);
  const std::string out = folder / "o.gguf";
  const Layout layout = find_exporter("gguf").layout(*graph, {}, out);
  convert(graph, out);
  const MetaGraphPtr back = open(out);
  EXPECT_EQ(*back, layout.result);
  EXPECT_EQ(*find_metadata(*back, "general.quantization_version"), MetaValue(std::uint32_t{2}));
  EXPECT_EQ(back->tensors.size(), 4u);  // the experts, the matrix, its scale, and the plain one
  for (const LogicalTensor& weight : graph->logical) {
    const Tensor& blocks = tensor_named(*back, weight.name);
    const bool experts = weight.packing == WeightPacking::mxfp4;
    EXPECT_EQ(blocks.dtype, experts ? DType::mxfp4 : DType::nvfp4);
    EXPECT_EQ(blocks.shape, experts ? Shape({2, 3, 64}) : Shape({2, 128}));
    Recipe plain = unpack(static_cast<std::uint32_t>(&weight - graph->logical.data()));
    if (experts) plain.then({.kind = StepKind::transpose});
    const std::vector<float> expected = floats_of(graph, plain);
    Recipe numbers = take(TensorId{static_cast<std::uint32_t>(&blocks - back->tensors.data())});
    numbers.then({.kind = StepKind::dequantise});
    std::vector<float> found = floats_of(back, numbers);
    const float whole =
        experts ? 1 : floats_of(graph, take(*weight.companion(Companion::global_scale))).front();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i] * whole, expected[i], std::abs(expected[i]) * 1e-6) << i;
  }
  // with an outtype they are unpacked, as before
  ExportOptions floats;
  floats.outtype = DType::f32;
  const Layout unpacked = find_exporter("gguf").layout(*graph, floats, out);
  EXPECT_EQ(tensor_named(unpacked.result, "mlp.experts.down_proj").dtype, DType::f32);
}

TEST(GgufExport, ScalesThatBlocksCannotHoldAreErrors) {
  const TemporaryFolder folder;
  EXPECT_THROW(convert(four_bit_model(folder, 0x90), folder / "negative.gguf"), Error);
  EXPECT_THROW(convert(four_bit_model(folder, 0x7E), folder / "nan.gguf"), Error);
  EXPECT_FALSE(fs::exists(folder / "nan.gguf"));
  EXPECT_NO_THROW(convert(four_bit_model(folder, 0x10), folder / "small.gguf"));
}

TEST(GgufExport, PartsAreNoLargerThanAsked) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {4000, 4000, 9000, 100, 100, 4000});
  MetaGraph floats = *graph;
  for (Tensor& tensor : floats.tensors) tensor.dtype = DType::i8;
  ExportOptions options = parts_of(9000);
  options.metadata_slack = 0;
  std::vector<std::size_t> tensors;
  for (const LayoutFile& file : find_exporter("gguf").layout(floats, options, "o.gguf").files) {
    EXPECT_TRUE(file.bytes <= 9000 || file.slots.size() == 1);
    tensors.push_back(file.slots.size());
  }
  EXPECT_EQ(tensors, (std::vector<std::size_t>{2, 1, 3}));
  options.max_shard_bytes = 30'000;
  EXPECT_EQ(find_exporter("gguf").layout(floats, options, "o.gguf").files.size(), 1u);
}

TEST(GgufExport, SplitKeysOfTheSourceAreNotKeptInParts) {
  const TemporaryFolder folder;
  testing::GgufBuilder merged;  // as gguf-split --merge leaves it
  merged.key("general.architecture", "llama").key("split.no", merged.u16, merged.number(std::uint16_t{0}));
  merged.key("split.count", merged.u16, merged.number(std::uint16_t{0}));
  merged.key("split.tensors.count", merged.i32, merged.number(std::int32_t{2}));
  merged.tensor("a", {64}, 0, 256).tensor("b", {64}, 0, 256);
  write_file(folder / "in.gguf", merged.bytes());
  const MetaGraphPtr graph = open(folder / "in.gguf");
  expect_law(graph, folder / "whole.gguf");
  EXPECT_EQ(read_file(folder / "whole.gguf"), read_file(folder / "in.gguf"));
  expect_law(graph, folder / "parts.gguf", parts_of(1));
  const std::string second = read_file(folder / "parts-00002-of-00002.gguf");
  EXPECT_EQ(second[16], 3);  // split.no, split.count, split.tensors.count
}

TEST(GgufExport, SlackIsTheLastKey) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  const auto with = [&](std::optional<std::uint64_t> slack) {
    ExportOptions options;
    options.metadata_slack = slack;
    return options;
  };
  const auto slack_of = [](const MetaGraphPtr& graph) {
    const std::string* const text = find_text(*graph, "loadline.slack");
    return text == nullptr ? 0 : text->size();
  };
  expect_law(plain, folder / "default.gguf");
  EXPECT_EQ(slack_of(open(folder / "default.gguf")), 4096u);
  EXPECT_EQ(open(folder / "default.gguf")->metadata.back().key, "loadline.slack");
  expect_law(plain, folder / "most.gguf", with(1 << 20));
  // a copy keeps the slack of its source unless it is told otherwise
  const MetaGraphPtr most = open(folder / "most.gguf");
  expect_law(most, folder / "copy.gguf");
  EXPECT_EQ(read_file(folder / "copy.gguf"), read_file(folder / "most.gguf"));
  expect_law(most, folder / "less.gguf", with(8));
  EXPECT_EQ(slack_of(open(folder / "less.gguf")), 8u);
  expect_law(most, folder / "none.gguf", with(0));
  EXPECT_EQ(find_metadata(*open(folder / "none.gguf"), "loadline.slack"), nullptr);
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

TEST(GgufExport, LaysTensorsOutContiguouslyAndPadded) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  for (const std::uint64_t alignment : {0u, 64u, 4096u}) {
    const Layout layout = find_exporter("gguf").layout(
        *graph, {.outtype = {}, .alignment = alignment, .max_shard_bytes = 0}, "o.gguf");
    const std::uint64_t unit = alignment == 0 ? 32 : alignment;
    std::uint64_t at = layout.files[0].header.size();
    EXPECT_EQ(at % unit, 0u);
    for (const Slot& slot : layout.files[0].slots) {
      EXPECT_EQ(slot.offset, at);
      at += (slot.bytes + unit - 1) / unit * unit;
    }
    EXPECT_EQ(layout.files[0].bytes, at);
    EXPECT_EQ(std::get<std::string>(*find_metadata(layout.result, "general.architecture")), "llama");
    EXPECT_EQ(std::get<std::uint32_t>(*find_metadata(layout.result, "general.alignment")), unit);
  }
}

TEST(GgufExport, RefusesAndNamesTheTensor) {
  const auto error_of = [](Tensor tensor, const ExportOptions& options = {}) -> std::string {
    MetaGraph graph;
    graph.storages = {shapes_only_storage(1 << 20)};
    tensor.storage = StorageId{0};
    graph.tensors = {std::move(tensor)};
    try {
      find_exporter("gguf").layout(graph, options, "o.gguf");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of({"ok", DType::f32, {2, 2, 2, 2}, {}, StorageId{0}, 0}), "");
  EXPECT_EQ(error_of({"mask", DType::boolean, {2}, {}, StorageId{0}, 0}),
            "tensor 'mask': GGUF has no dtype BOOL");
  EXPECT_EQ(error_of({"five", DType::f32, {1, 1, 1, 1, 1}, {}, StorageId{0}, 0}),
            "tensor 'five': has rank 5, GGUF holds at most 4");
  EXPECT_EQ(error_of({std::string(63, 'n'), DType::f32, {1}, {}, StorageId{0}, 0}), "");
  EXPECT_NE(error_of({std::string(64, 'n'), DType::f32, {1}, {}, StorageId{0}, 0}).find("has 64 bytes"),
            std::string::npos);
  EXPECT_NE(error_of({"bad\xFF", DType::f32, {1}, {}, StorageId{0}, 0}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(error_of({"d", DType::f32, {std::uint64_t{1} << 63, 0}, {}, StorageId{0}, 0}).find("signed"),
            std::string::npos);
  EXPECT_NE(error_of({"u", DType::u8, {1}, {}, StorageId{0}, 0}).find("no dtype U8"), std::string::npos);
  ExportOptions slack;
  slack.metadata_slack = (1 << 20) + 1;
  EXPECT_NE(error_of({"x", DType::f32, {1}, {}, StorageId{0}, 0}, slack), "");
}

}  // namespace
}  // namespace loadline
