// GGUF files, plain and quantized.

#include "core/base/error.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/recipe.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "exporters/convert.h"
#include "exporters/gguf/gguf.h"
#include "exporters/preflight.h"
#include "exporters/synth.h"
#include "tests/exporters/export_support.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/plan_models.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- GGUF: exact bytes, metadata, split sets, slack, blocks of 4-bit floats, and what is refused.

namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::expect_law;
using export_tests::open;
using export_tests::plain_model;
using export_tests::tensor_named;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

// The format's own bytes, written out by hand.
TEST(GgufExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/plain.gguf");
  expect_law(plain, folder / "out/aligned.gguf", {.outtype = {}, .alignment = 4096, .max_shard_bytes = 0});
  expect_law(plain, folder / "out/half.gguf",
             {.outtype = graph::DType::f16, .alignment = 0, .max_shard_bytes = 0});
  testing::GgufBuilder all;
  all.key("general.architecture", "llama");
  for (const graph::DTypeInfo& info : graph::dtype_table())
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
  exporters::ExportOptions options;
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
std::map<std::string, std::vector<graph::MetaValue>> metadata_values(const graph::MetaGraph& graph) {
  std::map<std::string, std::vector<graph::MetaValue>> values;
  for (const graph::MetaEntry& entry : graph.metadata)
    if (const auto* const array = std::get_if<graph::MetaArray>(&entry.value))
      values[entry.key] = io::read_meta_array(graph, *array, 0, array->count);
    else
      values[entry.key] = {entry.value};
  return values;
}

TEST(GgufExport, CarriesEveryKeyOfAGgufFile) {
  const TemporaryFolder folder;
  for (const bool big_endian : {false, true}) {
    const std::string in = folder / fmt::format("in/{}.gguf", big_endian);
    write_file(in, annotated_gguf(big_endian, 0));
    const graph::MetaGraphPtr source = open(in);
    const std::string out = folder / fmt::format("out/{}.gguf", big_endian);
    const exporters::Layout layout = exporters::find_exporter("gguf").layout(*source, {}, out);
    EXPECT_LT(layout.files[0].header.size(), 4096u);  // what is large is copied, not held
    expect_law(source, out);
    const graph::MetaGraphPtr back = open(out);
    ASSERT_EQ(back->metadata.size(), source->metadata.size());
    for (std::size_t i = 0; i < source->metadata.size(); ++i) {
      EXPECT_EQ(back->metadata[i].key, source->metadata[i].key);
      EXPECT_EQ(graph::meta_type(back->metadata[i].value), graph::meta_type(source->metadata[i].value));
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
  const auto type_of = [&](std::optional<graph::DType> outtype) -> std::optional<graph::MetaValue> {
    const exporters::Layout layout = exporters::find_exporter("gguf").layout(
        *open(folder / "in.gguf"), {.outtype = outtype, .alignment = 0, .max_shard_bytes = 0}, "o.gguf");
    const graph::MetaValue* const value = graph::find_metadata(layout.result, "general.file_type");
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  EXPECT_EQ(type_of(std::nullopt),
            graph::MetaValue(std::uint32_t{7}));  // the writer knew more than the types say
  EXPECT_EQ(type_of(graph::DType::f32), graph::MetaValue(std::uint32_t{7}));  // most of it was and is F32
  EXPECT_EQ(type_of(graph::DType::f16), graph::MetaValue(std::uint32_t{1}));
  EXPECT_EQ(type_of(graph::DType::bf16), graph::MetaValue(std::uint32_t{32}));
  expect_law(open(folder / "in.gguf"), folder / "half.gguf",
             {.outtype = graph::DType::f16, .alignment = 128, .max_shard_bytes = 0});
  EXPECT_EQ(*graph::find_metadata(*open(folder / "half.gguf"), "general.alignment"),
            graph::MetaValue(std::uint32_t{128}));
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

exporters::ExportOptions parts_of(std::uint64_t bytes) {
  return {.outtype = {}, .alignment = 0, .max_shard_bytes = bytes};
}

TEST(GgufExport, SplitSetsObeyTheRoundTripLaw) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr plain = plain_model(folder);
  expect_law(plain, folder / "out/one.gguf", parts_of(1 << 20));
  EXPECT_TRUE(fs::exists(folder / "out/one.gguf"));  // what fits into one file is one file
  for (const std::uint64_t alignment : {0u, 4096u}) {
    exporters::ExportOptions options = {.outtype = {}, .alignment = alignment, .max_shard_bytes = 1};
    options.metadata_slack = 100;
    options.keep_names = true;
    const std::string out = folder / fmt::format("out/{}.gguf", alignment);
    expect_law(plain, out, options);
    const exporters::Layout layout = exporters::find_exporter("gguf").layout(*plain, options, out);
    ASSERT_EQ(layout.files.size(), plain->tensors.size());
    EXPECT_EQ(layout.files[1].path, folder / fmt::format("out/{}-00002-of-00006.gguf", alignment));
    const graph::MetaGraphPtr back = open(layout.files[3].path);
    for (const graph::Storage& storage : back->storages)
      EXPECT_EQ(storage.offset % std::max<std::uint64_t>(alignment, 32), 0u);
    // one file again, without a trace of the parts
    const std::string joined = folder / fmt::format("out/{}-joined.gguf", alignment);
    expect_law(back, joined, {});
    const graph::MetaGraphPtr whole = open(joined);
    for (const graph::MetaEntry& entry : whole->metadata)
      EXPECT_FALSE(entry.key.starts_with("split.")) << entry.key;
    expect_law(back, folder / fmt::format("out/{}-again.gguf", alignment), parts_of(6000));
  }
  write_file(folder / "in/annotated.gguf", annotated_gguf(false, 0));
  const graph::MetaGraphPtr annotated = open(folder / "in/annotated.gguf");
  expect_law(annotated, folder / "out/annotated.gguf", parts_of(1));
  EXPECT_EQ(metadata_values(*open(folder / "out/annotated-00002-of-00002.gguf")),
            metadata_values(*annotated));
}

// Two experts of three outputs and 64 inputs, as gpt-oss has them, and a matrix as ModelOpt has it.
graph::MetaGraphPtr four_bit_model(const TemporaryFolder& folder, std::uint8_t scale = 0x38) {
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

std::vector<float> floats_of(const graph::MetaGraphPtr& graph, const convert::Recipe& recipe) {
  const io::StorageReader storages(graph);
  const io::TensorReader tensors(storages);
  convert::RecipeReader reader(
      *graph,
      [&](graph::TensorId id, std::uint64_t at, std::span<std::byte> out) { tensors.read(id, at, out); },
      recipe, convert::RecipeReader::kLeastMemory);
  std::vector<float> floats(reader.bytes() / sizeof(float));
  reader.read(0, std::as_writable_bytes(std::span(floats)));
  return floats;
}

TEST(GgufExport, WeightsOfFourBitFloatsBecomeBlocksOfTheSameNumbers) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = four_bit_model(folder);
  ASSERT_EQ(graph->logical.size(), 2u);
  const std::string out = folder / "o.gguf";
  const exporters::Layout layout = exporters::find_exporter("gguf").layout(*graph, {}, out);
  convert(graph, out);
  const graph::MetaGraphPtr back = open(out);
  EXPECT_EQ(*back, layout.result);
  EXPECT_EQ(*graph::find_metadata(*back, "general.quantization_version"), graph::MetaValue(std::uint32_t{2}));
  EXPECT_EQ(back->tensors.size(), 4u);  // the experts, the matrix, its scale, and the plain one
  for (const graph::LogicalTensor& weight : graph->logical) {
    const graph::Tensor& blocks = tensor_named(*back, weight.name);
    const bool experts = weight.packing == graph::WeightPacking::mxfp4;
    EXPECT_EQ(blocks.dtype, experts ? graph::DType::mxfp4 : graph::DType::nvfp4);
    EXPECT_EQ(blocks.shape, experts ? graph::Shape({2, 3, 64}) : graph::Shape({2, 128}));
    convert::Recipe plain = convert::unpack(static_cast<std::uint32_t>(&weight - graph->logical.data()));
    if (experts) plain.then({.kind = convert::StepKind::transpose});
    const std::vector<float> expected = floats_of(graph, plain);
    convert::Recipe numbers =
        convert::take(graph::TensorId{static_cast<std::uint32_t>(&blocks - back->tensors.data())});
    numbers.then({.kind = convert::StepKind::dequantize});
    std::vector<float> found = floats_of(back, numbers);
    const float whole =
        experts ? 1
                : floats_of(graph, convert::take(*weight.companion(graph::Companion::global_scale))).front();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i] * whole, expected[i], std::abs(expected[i]) * 1e-6) << i;
  }
  // with an outtype they are unpacked, as before
  exporters::ExportOptions floats;
  floats.outtype = graph::DType::f32;
  const exporters::Layout unpacked = exporters::find_exporter("gguf").layout(*graph, floats, out);
  EXPECT_EQ(tensor_named(unpacked.result, "mlp.experts.down_proj").dtype, graph::DType::f32);
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
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {4000, 4000, 9000, 100, 100, 4000});
  graph::MetaGraph floats = *graph;
  for (graph::Tensor& tensor : floats.tensors) tensor.dtype = graph::DType::i8;
  exporters::ExportOptions options = parts_of(9000);
  options.metadata_slack = 0;
  std::vector<std::size_t> tensors;
  for (const exporters::LayoutFile& file :
       exporters::find_exporter("gguf").layout(floats, options, "o.gguf").files) {
    EXPECT_TRUE(file.bytes <= 9000 || file.slots.size() == 1);
    tensors.push_back(file.slots.size());
  }
  EXPECT_EQ(tensors, (std::vector<std::size_t>{2, 1, 3}));
  options.max_shard_bytes = 30'000;
  EXPECT_EQ(exporters::find_exporter("gguf").layout(floats, options, "o.gguf").files.size(), 1u);
}

TEST(GgufExport, SplitKeysOfTheSourceAreNotKeptInParts) {
  const TemporaryFolder folder;
  testing::GgufBuilder merged;  // as gguf-split --merge leaves it
  merged.key("general.architecture", "llama").key("split.no", merged.u16, merged.number(std::uint16_t{0}));
  merged.key("split.count", merged.u16, merged.number(std::uint16_t{0}));
  merged.key("split.tensors.count", merged.i32, merged.number(std::int32_t{2}));
  merged.tensor("a", {64}, 0, 256).tensor("b", {64}, 0, 256);
  write_file(folder / "in.gguf", merged.bytes());
  const graph::MetaGraphPtr graph = open(folder / "in.gguf");
  expect_law(graph, folder / "whole.gguf");
  EXPECT_EQ(read_file(folder / "whole.gguf"), read_file(folder / "in.gguf"));
  expect_law(graph, folder / "parts.gguf", parts_of(1));
  const std::string second = read_file(folder / "parts-00002-of-00002.gguf");
  EXPECT_EQ(second[16], 3);  // split.no, split.count, split.tensors.count
}

TEST(GgufExport, SlackIsTheLastKey) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr plain = plain_model(folder);
  const auto with = [&](std::optional<std::uint64_t> slack) {
    exporters::ExportOptions options;
    options.metadata_slack = slack;
    return options;
  };
  const auto slack_of = [](const graph::MetaGraphPtr& graph) {
    const std::string* const text = graph::find_text(*graph, "loadline.slack");
    return text == nullptr ? 0 : text->size();
  };
  expect_law(plain, folder / "default.gguf");
  EXPECT_EQ(slack_of(open(folder / "default.gguf")), 4096u);
  EXPECT_EQ(open(folder / "default.gguf")->metadata.back().key, "loadline.slack");
  expect_law(plain, folder / "most.gguf", with(1 << 20));
  // a copy keeps the slack of its source unless it is told otherwise
  const graph::MetaGraphPtr most = open(folder / "most.gguf");
  expect_law(most, folder / "copy.gguf");
  EXPECT_EQ(read_file(folder / "copy.gguf"), read_file(folder / "most.gguf"));
  expect_law(most, folder / "less.gguf", with(8));
  EXPECT_EQ(slack_of(open(folder / "less.gguf")), 8u);
  expect_law(most, folder / "none.gguf", with(0));
  EXPECT_EQ(graph::find_metadata(*open(folder / "none.gguf"), "loadline.slack"), nullptr);
}

TEST(GgufExport, LaysTensorsOutContiguouslyAndPadded) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = plain_model(folder);
  for (const std::uint64_t alignment : {0u, 64u, 4096u}) {
    exporters::ExportOptions options;
    options.alignment = alignment;
    options.keep_names = true;
    const exporters::Layout layout = exporters::find_exporter("gguf").layout(*graph, options, "o.gguf");
    const std::uint64_t unit = alignment == 0 ? 32 : alignment;
    std::uint64_t at = layout.files[0].header.size();
    EXPECT_EQ(at % unit, 0u);
    for (const exporters::Slot& slot : layout.files[0].slots) {
      EXPECT_EQ(slot.offset, at);
      at += (slot.bytes + unit - 1) / unit * unit;
    }
    EXPECT_EQ(layout.files[0].bytes, at);
    EXPECT_EQ(std::get<std::string>(*graph::find_metadata(layout.result, "general.architecture")), "llama");
    EXPECT_EQ(std::get<std::uint32_t>(*graph::find_metadata(layout.result, "general.alignment")), unit);
  }
}

TEST(GgufExport, RefusesAndNamesTheTensor) {
  const auto error_of = [](graph::Tensor tensor, const exporters::ExportOptions& options = {}) {
    graph::MetaGraph graph;
    graph.storages = {graph::shapes_only_storage(1 << 20)};
    tensor.storage = graph::StorageId{0};
    graph.tensors = {std::move(tensor)};
    return testing::facts_of([&] { exporters::find_exporter("gguf").layout(graph, options, "o.gguf"); });
  };
  EXPECT_EQ(error_of({"ok", graph::DType::f32, {2, 2, 2, 2}, {}, graph::StorageId{0}, 0}), "");
  EXPECT_EQ(error_of({"mask", graph::DType::boolean, {2}, {}, graph::StorageId{0}, 0}), "unsupported 'mask'");
  EXPECT_EQ(error_of({"five", graph::DType::f32, {1, 1, 1, 1, 1}, {}, graph::StorageId{0}, 0}),
            "unsupported 'five' 5 4");
  EXPECT_EQ(error_of({std::string(63, 'n'), graph::DType::f32, {1}, {}, graph::StorageId{0}, 0}), "");
  EXPECT_EQ(error_of({std::string(64, 'n'), graph::DType::f32, {1}, {}, graph::StorageId{0}, 0}),
            "unsupported 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' 64 1 63");
  EXPECT_EQ(error_of({"bad\xFF", graph::DType::f32, {1}, {}, graph::StorageId{0}, 0}),
            "unsupported 'bad\\xff' UTF-8");
  EXPECT_EQ(error_of({"d", graph::DType::f32, {std::uint64_t{1} << 63, 0}, {}, graph::StorageId{0}, 0}),
            "unsupported 'd' 9223372036854775808");
  EXPECT_EQ(error_of({"u", graph::DType::u8, {1}, {}, graph::StorageId{0}, 0}), "unsupported 'u' U8");
  exporters::ExportOptions slack;
  slack.metadata_slack = (1 << 20) + 1;
  EXPECT_NE(error_of({"x", graph::DType::f32, {1}, {}, graph::StorageId{0}, 0}, slack), "");
}

}  // namespace

// --- Quantized GGUF output: policies on mapped models and on GGUF sources, rules of the user, importance
// matrices, the keys that say so, and what is refused.

namespace {

exporters::ConvertRequest request(const std::vector<std::pair<std::string, std::string>>& options) {
  exporters::ConvertRequest request;
  for (const auto& [id, word] : options)
    set_option(*find_option(exporters::convert_options(), id), request, word);
  return request;
}
exporters::Conversion bound(graph::MetaGraphPtr graph, const exporters::ConvertRequest& request,
                            const std::string& out = "o.gguf") {
  exporters::ConvertEnvironment environment;
  environment.policies = forward::built_in_type_policies();
  return exporters::bind_conversion(std::move(graph), request, out, environment);
}
exporters::ExportOptions options(const std::vector<std::pair<std::string, std::string>>& words) {
  return bound(nullptr, request(words)).options;
}

std::string refusal(const std::function<exporters::Conversion()>& conversion) {
  return testing::facts_of([&] { (void)exporters::preflight(conversion()); });
}
std::string refusal(const graph::MetaGraphPtr& graph, const exporters::ExportOptions& options,
                    const std::string& out = "o.gguf") {
  return refusal([&] {
    return exporters::Conversion{graph, &exporters::exporter_for_output(out), out, options};
  });
}

std::shared_ptr<const graph::ImportanceFile> importance(std::vector<graph::TensorImportance> entries) {
  return std::make_shared<const graph::ImportanceFile>(
      graph::ImportanceFile{"m.imatrix", {std::move(entries), {"wiki.txt"}, 7}});
}

class GgufTypes : public ::testing::Test {
 protected:
  void SetUp() override {
    Progress progress;
    exporters::synthesize(
        forward::config_graph(
            R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
      "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": 64, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"})",
            "config.json"),
        folder_ / "m", {.seed = 1, .max_shard_bytes = 0, .overwrite = false}, progress);
    model_ = open(folder_ / "m");
  }
  graph::MetaGraphPtr written(exporters::ExportOptions options) {
    convert(model_, folder_ / "o.gguf", options, {.overwrite = true});
    return open(folder_ / "o.gguf");
  }
  exporters::ExportOptions mapped(std::vector<std::pair<std::string, std::string>> words) {
    words.emplace_back("names", "auto");
    return options(words);
  }
  static std::map<graph::DType, int> count(const graph::MetaGraph& graph) {
    std::map<graph::DType, int> types;
    for (const graph::Tensor& tensor : graph.tensors) ++types[tensor.dtype];
    return types;
  }

  TemporaryFolder folder_;
  graph::MetaGraphPtr model_;
};

TEST_F(GgufTypes, EveryPolicyObeysTheRoundTripLaw) {
  for (const std::string& name : forward::type_policy_names(forward::built_in_type_policies())) {
    const exporters::ExportOptions as = mapped({{"outtype", name}});
    const exporters::Layout layout = exporters::find_exporter("gguf").layout(*model_, as, folder_ / "o.gguf");
    const graph::MetaGraphPtr read = written(as);
    EXPECT_EQ(*read, layout.result) << name;
    EXPECT_EQ(tensor_named(*read, "blk.1.attn_norm.weight").dtype, graph::DType::f32) << name;
    const graph::MetaValue* const type = graph::find_metadata(*read, "general.file_type");
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(*type, graph::MetaValue(*as.policy->file_type)) << name;
    EXPECT_EQ(*graph::find_metadata(*read, "general.quantization_version"), graph::MetaValue(2u));
  }
}

TEST_F(GgufTypes, APolicyChoosesTypesOnAMappedModel) {
  const graph::MetaGraphPtr read = written(mapped({{"outtype", "q4_k_m"}}));
  EXPECT_EQ(tensor_named(*read, "output.weight").dtype, graph::DType::q6_k);
  EXPECT_EQ(tensor_named(*read, "token_embd.weight").dtype, graph::DType::q4_k);
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_q.weight").dtype, graph::DType::q4_k);
  EXPECT_EQ(tensor_named(*read, "blk.3.attn_v.weight").dtype, graph::DType::q6_k);
  // rows of 96 have no blocks of 256
  EXPECT_EQ(tensor_named(*read, "blk.0.ffn_down.weight").dtype, graph::DType::q5_0);
  EXPECT_EQ(tensor_named(*read, "blk.3.ffn_down.weight").dtype, graph::DType::q8_0);
}

TEST_F(GgufTypes, AGgufFileIsQuantizedAgain) {
  convert(model_, folder_ / "8.gguf", mapped({{"outtype", "q8_0"}}));
  const graph::MetaGraphPtr eight = open(folder_ / "8.gguf");
  const exporters::Preflight planned =
      exporters::preflight(bound(eight, request({{"outtype", "q4_k_m"}}), folder_ / "4.gguf"));
  ASSERT_EQ(planned.layout.notes.size(), 2u);
  EXPECT_EQ(testing::facts(planned.layout.notes[1].text), "Q8_0");
  const auto& files = planned.layout.result;
  EXPECT_EQ(tensor_named(files, "blk.0.attn_q.weight").dtype, graph::DType::q4_k);
  EXPECT_EQ(*graph::find_metadata(files, "general.file_type"), graph::MetaValue(15u));
  // the same type: the blocks are copied
  const exporters::Layout same =
      exporters::find_exporter("gguf").layout(*eight, options({{"outtype", "q8_0"}}), folder_ / "s.gguf");
  for (const exporters::Slot& slot : same.files[0].slots)
    EXPECT_TRUE(convert::copied_tensor(slot.recipe)) << slot.name.view();
  convert(eight, folder_ / "4.gguf", options({{"outtype", "q4_k_m"}}));
  EXPECT_EQ(*open(folder_ / "4.gguf"),
            exporters::find_exporter("gguf")
                .layout(*eight, options({{"outtype", "q4_k_m"}}), folder_ / "4.gguf")
                .result);
}

TEST_F(GgufTypes, PlainTypesAreForNamesThatAreKept) {
  const graph::MetaGraphPtr read = written(options({{"outtype", "q8_0"}, {"names", "keep"}}));
  EXPECT_EQ(tensor_named(*read, "model.embed_tokens.weight").dtype, graph::DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "model.layers.0.mlp.down_proj.weight").dtype, graph::DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "model.layers.0.input_layernorm.weight").dtype, graph::DType::bf16);
  EXPECT_EQ(refusal(model_, options({{"outtype", "q4_k_m"}, {"names", "keep"}})),
            "unsupported q4_k_m llama.cpp >names=auto");
}

TEST_F(GgufTypes, OtherFormatsRefuse) {
  for (const char* const out : {"o.safetensors", "o.pt", "o.npz", "o.ptd"}) {
    const auto refused = [&](const std::string& option, const std::string& word) {
      return refusal([&] { return bound(model_, request({{option, word}}), out); });
    };
    const std::string_view other = out == std::string_view("o.npz") ? "f32" : "bf16";  // numpy has no bf16
    EXPECT_EQ(refused("outtype", "q4_0"), fmt::format("unsupported q4_0 >outtype={}", other)) << out;
    EXPECT_EQ(refused("type", "a=q4_0"), "usage") << out;
    EXPECT_EQ(refused("imatrix", "m.imatrix"), "usage") << out;
  }
}

TEST_F(GgufTypes, TheLastRuleThatMatchesWins) {
  const graph::MetaGraphPtr read = written(mapped(
      {{"outtype", "q4_k_m"}, {"type", "attn_q=q8_0; layer:1-2 attn_q=q5_k; name:output.weight=f16"}}));
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_q.weight").dtype, graph::DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "blk.1.attn_q.weight").dtype, graph::DType::q5_k);
  EXPECT_EQ(tensor_named(*read, "blk.3.attn_q.weight").dtype, graph::DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "output.weight").dtype, graph::DType::f16);
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_k.weight").dtype, graph::DType::q4_k);
  // vectors stay whatever matches; without an outtype all else stays, too
  const graph::MetaGraphPtr some = written(mapped({{"type", "blk=q4_k;size:>=1=q8_0;blk=q4_0"}}));
  EXPECT_EQ(tensor_named(*some, "blk.0.attn_norm.weight").dtype, graph::DType::f32);
  EXPECT_EQ(tensor_named(*some, "output.weight").dtype, graph::DType::q8_0);
  EXPECT_EQ(count(*some)[graph::DType::q4_0], 4 * 7);
  const exporters::Layout none =
      exporters::find_exporter("gguf").layout(*model_, mapped({{"type", "nothing=q8_0"}}), "o.gguf");
  ASSERT_EQ(none.notes.size(), 2u);  // the other says that there is no tokenizer
  EXPECT_EQ(testing::facts(none.notes[0].text), "'nothing'");
}

TEST_F(GgufTypes, WordsThatAreNoTypesAreRefused) {
  const auto fault = [](const std::string& id, const std::string& word) {
    return testing::facts_of([&] { (void)request({{id, word}}); });
  };
  EXPECT_EQ(fault("outtype", "q4_k"), "usage 'q4_k'");
  EXPECT_EQ(fault("outtype", "common"), "usage 'common'");
  EXPECT_EQ(fault("type", "attn_q"), "usage 'attn_q' attn_v q8_0");
  EXPECT_EQ(fault("type", "=q8_0"), "usage '=q8_0' attn_v q8_0");
  EXPECT_EQ(fault("type", "a="), "usage ''");
  EXPECT_EQ(fault("type", "a=iq2_xs"), "usage 'iq2_xs'");
  EXPECT_EQ(fault("type", "color:red=q8_0"), "usage 'color:red' 'color'");
  const auto* const row = find_option(exporters::convert_options(), "type");
  exporters::ConvertRequest blank;
  EXPECT_THROW(set_option_value(*row, blank, std::vector<std::string>{"  =q8_0"}), Error);
  EXPECT_EQ(print_option(row->kind, row->get(request({{"type", "a=q8_0;b c=f16"}})), row->separator),
            "a=q8_0; b c=f16");
  const auto* const outtype = find_option(exporters::convert_options(), "outtype");
  for (const char* const word : {"f16", "q4_k_m", "none"})
    EXPECT_EQ(print_option(outtype->kind, outtype->get(request({{"outtype", word}}))), word);
  exporters::ConvertRequest twice = request({{"outtype", "q8_0"}});
  set_option(*outtype, twice, "bf16");
  EXPECT_EQ(bound(nullptr, twice).options.policy, nullptr);
  EXPECT_EQ(bound(nullptr, twice).options.outtype, graph::DType::bf16);
  set_option(*outtype, twice, "none");
  EXPECT_TRUE(bound(nullptr, twice).options.keeps_types());
}

TEST_F(GgufTypes, ImportanceGoesByTheNamesOfTheOutput) {
  exporters::ExportOptions as = mapped({{"outtype", "q4_k_s"}});
  const std::vector<float> weights(256, 1.5F);
  as.importance = importance({{"blk.0.attn_q.weight", weights}, {"token_embd.weight", {1, 2, 3}}});
  const exporters::Layout layout = exporters::find_exporter("gguf").layout(*model_, as, "o.gguf");
  for (const exporters::Slot& slot : layout.files[0].slots)
    EXPECT_EQ(slot.recipe.steps.back().importance != nullptr, slot.name.view() == "blk.0.attn_q.weight");
  ASSERT_EQ(layout.notes.size(), 3u);
  EXPECT_EQ(testing::facts(layout.notes[1].text),
            "'m.imatrix' 29 'token_embd.weight' 'blk.0.attn_k.weight' 'blk.0.attn_v.weight' 26");
  const graph::MetaGraph& result = layout.result;
  EXPECT_EQ(*graph::find_metadata(result, "quantize.imatrix.file"),
            graph::MetaValue(std::string("m.imatrix")));
  EXPECT_EQ(*graph::find_metadata(result, "quantize.imatrix.dataset"),
            graph::MetaValue(std::string("wiki.txt")));
  EXPECT_EQ(*graph::find_metadata(result, "quantize.imatrix.entries_count"), graph::MetaValue(2u));
  EXPECT_EQ(*graph::find_metadata(result, "quantize.imatrix.chunks_count"), graph::MetaValue(7u));
  // the wrong number of weights
  for (const std::size_t wrong : {0u, 1u, 255u, 257u, 512u}) {
    as.importance = importance({{"blk.0.attn_q.weight", std::vector<float>(wrong, 1.0F)}});
    EXPECT_EQ(refusal(model_, as),
              fmt::format("malformed m.imatrix 'blk.0.attn_q.weight' {} 256 256 1", wrong));
  }
  as.importance = importance({{"model.layers.0.self_attn.q_proj.weight", weights}});
  EXPECT_EQ(refusal(model_, as), "unsupported m.imatrix 39");
  // types that do not use it
  as = mapped({{"outtype", "q8_0"}});
  as.importance = importance({{"blk.0.attn_q.weight", weights}});
  const exporters::Layout unused = exporters::find_exporter("gguf").layout(*model_, as, "o.gguf");
  ASSERT_EQ(unused.notes.size(), 2u);
  EXPECT_EQ(testing::facts(unused.notes[0].text), "'m.imatrix'");
}

TEST_F(GgufTypes, SumsUpByTypeAndKind) {
  const exporters::Layout layout =
      exporters::find_exporter("gguf").layout(*model_, mapped({{"outtype", "q4_k_m"}}), "o.gguf");
  std::uint64_t bytes = 0, tensors = 0;
  for (const exporters::TypeShare& share : exporters::type_shares(layout)) {
    bytes += share.bytes;
    tensors += share.tensors;
    if (share.type == graph::DType::q4_k)
      EXPECT_DOUBLE_EQ(exporters::bits_per_weight(share.bytes, share.weights), 4.5);
  }
  std::uint64_t expected = 0;
  for (const exporters::Slot& slot : layout.files[0].slots) expected += slot.bytes;
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(tensors, layout.files[0].slots.size());
  std::string values;
  for (const exporters::TensorGroup& group : exporters::tensor_groups(*model_, layout))
    if (group.pattern == "blk.*.attn_v.weight")
      for (const std::uint64_t layer : group.layers)
        values += fmt::format("{}:{} ", layer, graph::dtype_info(group.share.type).name);
  EXPECT_EQ(values, "0:Q4_K 1:Q4_K 2:Q6_K 3:Q6_K ");
  EXPECT_DOUBLE_EQ(exporters::bits_per_weight(7, 0), 0);
}

TEST(DeclaredTransform, OnlyACopyKeepsRotatedWeights) {
  const TemporaryFolder folder;
  testing::GgufBuilder builder;
  builder.key("general.architecture", "llama").key("prism.hadamard.version", 1U);
  builder.tensor("blk.0.attn_q.weight", {32, 2}, 8, 68);
  testing::write_file(folder / "in/r.gguf", builder.bytes());
  const graph::MetaGraphPtr rotated = open(folder / "in/r.gguf");
  ASSERT_EQ(rotated->notes.size(), 1u);
  EXPECT_EQ(rotated->notes[0].severity, graph::Severity::warning);
  EXPECT_EQ(testing::facts(rotated->notes[0].text), "'prism.hadamard.version'");
  EXPECT_EQ(refusal(rotated, {}, folder / "o.gguf"), "");
  for (const exporters::ExportOptions& as :
       {options({{"outtype", "f16"}}), options({{"outtype", "q4_0"}}), options({{"type", "attn_q=q4_0"}})})
    EXPECT_EQ(refusal(rotated, as, folder / "o.gguf"), "unsupported 'prism.hadamard.version'");
  EXPECT_EQ(refusal(rotated, {}, folder / "o.safetensors"), "unsupported 'prism.hadamard.version'");
}

}  // namespace

}  // namespace loadline::tests
