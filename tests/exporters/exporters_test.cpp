// Exporters and the writer: the round-trip law, exact bytes, refusals, and failures that leave nothing.
#include "core/base/error.h"
#include "core/convert/cast.h"
#include "core/io/meta_array.h"
#include "core/io/storage_reader.h"
#include "exporters/convert.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

MetaGraphPtr open(const std::string& path) { return std::make_shared<const MetaGraph>(open_model(path, {})); }

MetaGraphPtr sample_model(const TemporaryFolder& folder) {
  write_file(folder / "in/sample.safetensors", testing::sample_safetensors());
  return open(folder / "in/sample.safetensors");
}

// A model with only what GGUF can hold, and a config.
MetaGraphPtr plain_model(const TemporaryFolder& folder) {
  testing::SafetensorsHeader header;
  header.add("a.weight", "F32", "4,6", 96);
  header.add("b.weight", "BF16", "3,5", 30);
  header.add("c.weight", "F16", "7", 14);
  header.add("d.ids", "I64", "", 8);
  header.add("e.small", "I8", "5", 5);
  header.add("f.double", "F64", "2,1,1,3", 48);
  write_file(folder / "in/config.json", R"({"model_type":"llama","hidden_size":4})");
  write_file(folder / "in/model.safetensors", testing::safetensors_bytes(header.text(), header.data_bytes()));
  return open(folder / "in/model.safetensors");
}

WriteReport convert(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options = {},
                    const WriteOptions& write = {}) {
  Progress progress;
  return convert_model(graph, exporter_for_output(out), options, out, write, progress);
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
void expect_law(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options = {}) {
  const Layout layout = exporter_for_output(out).layout(*graph, options, out);
  convert(graph, out, options);
  const MetaGraphPtr back = open(out);
  EXPECT_EQ(*back, layout.result) << out;
  for (const Tensor& tensor : back->tensors) {
    const Tensor& source = tensor_named(*graph, tensor.name);
    ASSERT_EQ(elements(tensor), elements(source));  // GGUF has no rank 0
    std::string expected = tensor_content(graph, source);
    if (tensor.dtype != source.dtype) {
      std::string cast_bytes(tensor_bytes(*back, tensor), '\0');
      cast(source.dtype, std::as_bytes(std::span(expected)), tensor.dtype,
           std::as_writable_bytes(std::span(cast_bytes)));
      expected = cast_bytes;
    }
    EXPECT_EQ(tensor_content(back, tensor), expected) << tensor.name;
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
    for (const TensorSlot& slot : file.slots) names.push_back(graph->tensor(slot.tensor).name);
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
  convert(open(folder / "in/named.safetensors"), folder / "o.gguf");
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
    for (const TensorSlot& slot : layout.files[0].slots) {
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
  EXPECT_NE(error_of({"x", DType::f32, {1}, {}, StorageId{0}, 0},
                     {.outtype = {}, .alignment = 0, .max_shard_bytes = 5}),
            "");
}

TEST(Writer, TheSameBytesEveryTimeAndInAnyBuffer) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100'000, 3, 0, 70'001, 1'000'000});
  std::vector<std::uint64_t> hashes;
  for (const std::uint64_t budget : {1u << 16, 200'000u, 64u << 20}) {
    WriteOptions write;
    write.memory_budget = budget;
    write.overwrite = true;
    write.verify = true;
    const WriteReport report = convert(graph, folder / "o.safetensors", {}, write);
    EXPECT_LE(report.buffer_bytes, std::max<std::uint64_t>(budget, 128 << 10));
    EXPECT_TRUE(report.verified);
    EXPECT_EQ(report.bytes_written, fs::file_size(folder / "o.safetensors"));
    hashes.push_back(report.files[0].xxh3);
  }
  EXPECT_EQ(std::set<std::uint64_t>(hashes.begin(), hashes.end()).size(), 1u);
}

TEST(Writer, CastsInSmallPiecesAsInOne) {
  const TemporaryFolder folder;
  std::string header =
      R"({"odd":{"dtype":"U8","shape":[7],"data_offsets":[400000,400007]},"w":{"dtype":"F32","shape":[100000],"data_offsets":[0,400000]}})";
  write_file(folder / "in.safetensors", testing::safetensors_bytes(header, 400'007));
  const MetaGraphPtr graph = open(folder / "in.safetensors");
  WriteOptions small, large;
  small.memory_budget = 1 << 16;
  convert(graph, folder / "s.safetensors", {.outtype = DType::bf16, .alignment = 0, .max_shard_bytes = 0},
          small);
  convert(graph, folder / "l.safetensors", {.outtype = DType::bf16, .alignment = 0, .max_shard_bytes = 0},
          large);
  EXPECT_EQ(read_file(folder / "s.safetensors"), read_file(folder / "l.safetensors"));
}

TEST(Writer, RefusesWhatTheDiskHasNoRoomFor) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {10});
  Layout layout = find_exporter("safetensors").layout(*graph, {}, folder / "new/out.safetensors");
  layout.files[0].bytes = std::uint64_t{1} << 60;
  const ReadTensor never = [](TensorId, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
  Progress progress;
  try {
    write_layout(layout, *graph, never, {}, progress);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what())
                  .find("needs 1.00 EiB (1152921504606846976 bytes) in all, the disk of '" +
                        folder.path().string() + "' has "),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(folder / "new"));
}

TEST(Writer, LeavesExistingTargetsAloneUnlessForced) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  write_file(folder / "out/o.gguf", "precious");
  EXPECT_THROW(convert(graph, folder / "out/o.gguf"), Error);
  EXPECT_EQ(read_file(folder / "out/o.gguf"), "precious");
  WriteOptions force;
  force.overwrite = true;
  convert(graph, folder / "out/o.gguf", {}, force);
  EXPECT_EQ(read_file(folder / "out/o.gguf").substr(0, 4), "GGUF");
}

TEST(Writer, AFolderHoldsOneModelAfterwards) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {40, 40, 40, 40});
  const auto write = [&](std::uint64_t shard, bool force) {
    WriteOptions options;
    options.overwrite = force;
    convert(graph, folder / "out", {.outtype = {}, .alignment = 0, .max_shard_bytes = shard}, options);
  };
  write(40, false);  // four shards and an index
  EXPECT_EQ(entries(folder / "out"), 5u);
  EXPECT_THROW(write(0, false), Error);  // would be shadowed by the index
  EXPECT_EQ(entries(folder / "out"), 5u);
  write_file(folder / "out/tokenizer.json", "{}");
  write(80, true);
  EXPECT_EQ(entries(folder / "out"), 4u);  // two shards, an index, the tokenizer
  EXPECT_EQ(open(folder / "out")->files.size(), 3u);
  write(0, true);
  EXPECT_EQ(entries(folder / "out"), 2u);
  EXPECT_EQ(open(folder / "out")->tensors.size(), 4u);
}

TEST(Writer, AnotherModelsIndexIsLeftAlone) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {40});
  write_file(folder / "out/other.safetensors.index.json", "{}");
  WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "out", {}, force), Error);
  EXPECT_EQ(entries(folder / "out"), 1u);
}

TEST(Writer, ATargetThatAppearsMeanwhileIsNotReplaced) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100, 100});
  const Layout layout =
      find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, folder / "out");
  const std::string second = layout.files[1].path;
  const ReadTensor racing = [&](TensorId, std::uint64_t, std::span<std::byte>) {
    write_file(second, "somebody else's");
  };
  Progress progress;
  EXPECT_THROW(write_layout(layout, *graph, racing, {}, progress), Error);
  EXPECT_EQ(read_file(second), "somebody else's");
  EXPECT_EQ(entries(folder / "out"), 1u);  // what had been published was taken back
}

TEST(Writer, KeepsTheModeOfWhatItReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "o.gguf", "old");
  fs::permissions(folder / "o.gguf", fs::perms::owner_read | fs::perms::owner_write);
  WriteOptions force;
  force.overwrite = true;
  convert(plain_model(folder), folder / "o.gguf", {}, force);
  EXPECT_EQ(fs::status(folder / "o.gguf").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Writer, NeverWritesOntoItsInput) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  const std::string before = read_file(folder / "in/model.safetensors");
  WriteOptions force;
  force.overwrite = true;
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  for (const std::string& out : {folder / "in/model.safetensors", folder / "in/../in/model.safetensors",
                                 folder / "link.safetensors", folder / "in"})
    EXPECT_THROW(convert(graph, out, {}, force), Error) << out;
  EXPECT_EQ(read_file(folder / "in/model.safetensors"), before);
}

TEST(Writer, NeverRemovesItsInputThroughALink) {
  const TemporaryFolder folder;
  plain_model(folder);  // in/model.safetensors and in/config.json
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  const MetaGraphPtr graph = open(folder / "link.safetensors");
  WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "in", {.outtype = {}, .alignment = 0, .max_shard_bytes = 50}, force),
               Error);
  EXPECT_EQ(entries(folder / "in"), 2u);
  Progress progress;
  EXPECT_THROW(convert_model(open(folder / "in/model.safetensors"), find_exporter("gguf"), {},
                             folder / "in/config.json", force, progress),
               Error);
}

TEST(Writer, AKilledExportLeavesTheTargetAsItWas) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {300'000});
  write_file(folder / "kept.safetensors", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const ReadTensor dying = [](TensorId, std::uint64_t offset, std::span<std::byte>) {
      if (offset > 0) ::raise(SIGKILL);
    };
    Progress progress;
    WriteOptions options;
    options.overwrite = true;
    options.memory_budget = 1 << 16;
    write_layout(find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors"), *graph, dying,
                 options, progress);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
}

TEST(Writer, FailuresAndCancellationLeaveNothing) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {300'000, 300'000});
  const Layout layout = find_exporter("safetensors")
                            .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 300'000},
                                    folder / "new/deep/out");
  write_file(folder / "kept.safetensors", "old");
  WriteOptions options;
  options.memory_budget = 1 << 16;
  options.overwrite = true;
  // fails while the second shard is written
  const ReadTensor failing = [](TensorId id, std::uint64_t, std::span<std::byte>) {
    if (id == TensorId{1}) throw Error(ErrorCode::io, "the disk went away");
  };
  Progress progress;
  EXPECT_THROW(write_layout(layout, *graph, failing, options, progress), Error);
  EXPECT_FALSE(fs::exists(folder / "new"));

  std::stop_source stop;
  Progress cancelled(stop.get_token());
  std::uint64_t calls = 0;
  const ReadTensor stopping = [&](TensorId, std::uint64_t, std::span<std::byte>) {
    if (++calls == 5) stop.request_stop();
  };
  const Layout single = find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors");
  EXPECT_THROW(write_layout(single, *graph, stopping, options, cancelled), Error);
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
  EXPECT_EQ(entries(folder.path()), 2u);  // the model and the kept file
}

TEST(Convert, RefusesUnsoundModelsAndModelsWithoutWeights) {
  const TemporaryFolder folder;
  write_file(folder / "t.safetensors",
             testing::safetensors_bytes(R"({"t":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 9));
  EXPECT_THROW(convert(open(folder / "t.safetensors"), folder / "o.safetensors"), Error);
  MetaGraph shapes;
  shapes.storages = {shapes_only_storage(4)};
  shapes.tensors = {{"t", DType::u8, {4}, {}, StorageId{0}, 0}};
  EXPECT_THROW(convert(std::make_shared<const MetaGraph>(shapes), folder / "o.safetensors"), Error);
  EXPECT_FALSE(fs::exists(folder / "o.safetensors"));
}

TEST(Convert, TheOutputsNamePicksTheFormat) {
  EXPECT_EQ(exporter_for_output("a/b.gguf").id, "gguf");
  EXPECT_EQ(exporter_for_output("b.safetensors").id, "safetensors");
  EXPECT_EQ(exporter_for_output("models/Llama-3.1-8B").id, "safetensors");
  EXPECT_EQ(exporter_for_output("folder").id, "safetensors");
  EXPECT_THROW(exporter_for_output("model.onnx"), Error);
  EXPECT_THROW(exporter_for_output(""), Error);
}

}  // namespace
}  // namespace loadline
