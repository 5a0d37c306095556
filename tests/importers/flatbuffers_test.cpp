// Headers that are read in place: flatbuffers and safetensors.

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/system_memory.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/flat_builder.h"
#include "tests/support/graph_json.h"

#include <cstring>
#include <filesystem>
#include <regex>
#include <string_view>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- ExecuTorch (.ptd, .pte) and LiteRT (.tflite): goldens, prefixes and hostile tables.

namespace {

using testing::FlatSegment;
using testing::Hostile;
using testing::LiteModel;
using testing::LiteTensor;
using testing::memory_source;
using testing::PtdTensor;
using testing::PteProgram;

graph::MetaGraph read(std::string_view bytes) { return importers::import_source(memory_source("m", bytes)); }

void expect_prefixes_survive(const std::string& bytes, std::size_t step) {
  for (std::size_t length = 0; length < bytes.size(); length += step) {
    const std::string error = testing::error_of([&] { read(std::string_view(bytes).substr(0, length)); });
    if (!error.empty()) {
      ASSERT_EQ(error.rfind("m: ", 0), 0u) << error;
    }
  }
}

void expect_flips_survive(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int flip : {0x01, 0x40, 0xFF}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      testing::error_of([&] { graph::validate(read(flipped)); });
    }
}

std::string sample_ptd() {
  return testing::ptd_bytes({{0, 24}, {128, 24}, {256, 5}},
                            {{"w", 0, 6, {2, 3}, {0, 1}},
                             {"tied", 0, 6, {3, 2}, {0, 1}},
                             {"turned", 1, 6, {2, 3}, {1, 0}},
                             {"blob", 2, 0, {}, {}, false},
                             {"quantized", 2, 12, {5}, {0}}},
                            261);
}

TEST(Ptd, SampleEqualsItsGolden) {
  testing::expect_golden("ptd_sample.json", graph_json(read(sample_ptd())));
  expect_prefixes_survive(sample_ptd(), 1);
  expect_flips_survive(sample_ptd());
}

TEST(Ptd, HostileFilesGiveTheirError) {
  const std::string good = sample_ptd();
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = good;
    testing::put(bytes, at, value);
    return bytes;
  };
  const auto one = [](PtdTensor tensor, FlatSegment segment = {0, 24}) {
    return testing::ptd_bytes({segment}, {std::move(tensor)}, 24);
  };
  testing::expect_errors(
      {
          {"no header magic", with(8, std::uint32_t{0}), "malformed m 8 'FH01'"},
          {"header of 39 bytes", with(12, std::uint32_t{39}), "malformed m 12 39 40"},
          {"flatbuffer past the end", with(24, std::uint64_t{1} << 40),
           "malformed m 16 1099511627776 48 773"},
          {"flatbuffer wraps", with(24, ~std::uint64_t{7}), "malformed m 16 18446744073709551608 48 773"},
          {"segments past the end", with(40, std::uint64_t{1} << 40), "malformed m 32 1099511627776 512 773"},
          {"segment base wraps", with(32, ~std::uint64_t{7}), "malformed m 32 261 18446744073709551608 773"},
          {"root outside", with(0, std::uint32_t{1} << 30), "malformed m"},
          {"segment wraps", one({"t", 0, 6, {6}, {0}}, {~std::uint64_t{7}, 24}),
           "malformed m 0 24 18446744073709551608 24"},
          {"segment too long", one({"t", 0, 6, {6}, {0}}, {0, 25}), "malformed m 0 25 0 24"},
          {"segment index", one({"t", 1, 6, {6}, {0}}), "malformed m 't' 1 1"},
          {"segment index 2^32-1", one({"t", ~0U, 6, {6}, {0}}), "malformed m 't' 4294967295 1"},
          {"negative size", one({"t", 0, 6, {-1}, {0}}), "malformed m 't' -1"},
          {"sizes overflow", one({"t", 0, 6, {INT32_MAX, INT32_MAX, INT32_MAX}, {0, 1, 2}}),
           "malformed m 't' 2147483647,2147483647,2147483647 64"},
          {"sizes overflow in bytes", one({"t", 0, 6, {INT32_MAX, INT32_MAX, 4}, {0, 1, 2}}),
           "malformed m 't' 2147483647,2147483647,4 64"},
          {"too large", one({"t", 0, 6, {7}, {0}}), "malformed m 't' 28 7 F32 24"},
          {"dim_order shorter", one({"t", 0, 6, {2, 3}, {0}}), "malformed m 't' dim_order 1 2"},
          {"dim_order longer", one({"t", 0, 6, {6}, {0, 1}}), "malformed m 't' dim_order 2 1"},
          {"dim_order twice", one({"t", 0, 6, {2, 3}, {1, 1}}), "malformed m 't' dim_order 1,1 2"},
          {"dim_order outside", one({"t", 0, 6, {2, 3}, {0, 200}}), "malformed m 't' dim_order 0,200 2"},
          {"rank 17", one({"t", 0, 6, std::vector<std::int32_t>(17, 1), {}}), "malformed m 't' 17 16"},
          {"the same key", testing::ptd_bytes({{0, 24}}, {{"t", 0, 6, {6}, {0}}, {"t", 0, 6, {3}, {0}}}, 24),
           "malformed m 't'"},
      },
      read);
}

PteProgram sample_program() {
  return {.tensors = {{1, {2, 3}},
                      {2, {2}, 4},
                      {1, {2, 3}},
                      {0, {9}},
                      {1, {3, 2}, 6, {1, 0}},
                      {1, {2}, 6, {}, true},
                      {3, {1}, 22, {}, false, "odd"}},
          .segments = {{0, 64}, {128, 16}, {256, 8}},
          .constant_offsets = {0, 0, 32, 48},
          .mutable_offsets = {0, 8},
          .named_data = {{"extra", 2}},
          .delegates = {2},
          .planned = {0, 600, 24},
          .data_bytes = 264};
}

TEST(Pte, SampleEqualsItsGolden) {
  const std::string bytes = testing::pte_bytes(sample_program());
  testing::expect_golden("pte_sample.json", graph_json(read(bytes)));
  expect_prefixes_survive(bytes, 1);
  expect_flips_survive(bytes);
}

TEST(Pte, ConstantsInsideTheFlatbuffer) {
  const std::string constant(5000, 'c');
  const std::string bytes = testing::pte_bytes({.tensors = {{1, {10}}, {2, {1250}}},
                                                .inline_constants = {"", std::string(40, 'x'), constant},
                                                .inline_delegates = {"blob"}});
  const graph::MetaGraph graph = read(bytes);
  ASSERT_EQ(graph.tensors.size(), 3u);
  EXPECT_EQ(bytes.substr(graph.storages[1].offset, 5000), constant);
  EXPECT_EQ(bytes.substr(graph.storages[2].offset, 4), "blob");
  EXPECT_EQ(graph.tensors[2].name, "forward.delegate.0.Inline");
}

TEST(Pte, ExternalTensorsComeFromTheFileBeside) {
  const std::string program = testing::pte_bytes(
      {.tensors = {{0, {2, 3}, 6, {}, false, "w", true}, {0, {1}, 6, {}, false, "gone", true}}});
  const auto open = [&](std::vector<std::pair<std::string, std::string>> siblings) {
    return importers::import_source(memory_source("net.pte", program, std::move(siblings)));
  };
  for (const char* name : {"net.ptd", "_default_external_constant.ptd"}) {
    const graph::MetaGraph graph = open({{name, sample_ptd()}});
    EXPECT_EQ(graph.files.size(), 2u);
    EXPECT_EQ(graph.tensors.size(), 5u);
    EXPECT_EQ(graph.missing, std::vector<std::string>{"gone"});
    EXPECT_EQ(graph.notes.back().severity, graph::Severity::error);
  }
  EXPECT_EQ(open({}).missing, (std::vector<std::string>{"gone", "w"}));
}

TEST(Pte, HostileFilesGiveTheirError) {
  const std::string good = testing::pte_bytes(sample_program());
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = good;
    testing::put(bytes, at, value);
    return bytes;
  };
  const auto program = [](auto change) {
    PteProgram changed = sample_program();
    change(changed);
    return testing::pte_bytes(changed);
  };
  testing::expect_errors(
      {
          {"header of 23 bytes", with(12, std::uint32_t{23}), "malformed m 12 23 24"},
          {"program past the end", with(16, std::uint64_t{1} << 62),
           "malformed m 16 4611686018427387904 1288"},
          {"segment base past the end", with(24, ~std::uint64_t{7}),
           "malformed m 24 18446744073709551608 1288"},
          {"segments too long", with(32, ~std::uint64_t{0}), "malformed m 32 18446744073709551615 264 1024"},
          {"root outside", with(0, ~0U), "malformed m 4294967295 944"},
          {"constant offset 2^64-8",
           program([](PteProgram& p) { p.constant_offsets[1] = ~std::uint64_t{7}; }),
           "malformed m 'constant.1' 24 18446744073709551608 0 64"},
          {"constant past its segment", program([](PteProgram& p) { p.constant_offsets[1] = 60; }),
           "malformed m 'constant.1' 24 60 0 64"},
          {"constant index 2^32-1", program([](PteProgram& p) { p.tensors[0].buffer = ~0U; }),
           "malformed m 'constant.4294967295' 4294967295 4"},
          {"segment index", program([](PteProgram& p) { p.named_data[0].second = 7; }),
           "malformed m 'extra' 7 3"},
          {"delegate's segment", program([](PteProgram& p) { p.delegates[0] = ~0U; }),
           "malformed m 'forward.delegate.0.Backend' 4294967295 3"},
          {"segment wraps", program([](PteProgram& p) { p.segments[0].offset = ~std::uint64_t{7}; }),
           "malformed m 0 64 18446744073709551608 264"},
          {"sizes overflow", program([](PteProgram& p) {
             p.tensors[0].sizes = {INT32_MAX, INT32_MAX, INT32_MAX};
           }),
           "malformed m 'constant.1' 2147483647,2147483647,2147483647 64"},
          {"negative arena", program([](PteProgram& p) { p.planned[2] = -8; }), "malformed m 0 2 -8"},
          {"arenas overflow", program([](PteProgram& p) {
             p.planned = {0, INT64_MAX, INT64_MAX, INT64_MAX};
           }),
           "malformed m 0 3 9223372036854775807"},
          {"negative size", program([](PteProgram& p) { p.tensors[0].sizes = {-2}; }),
           "malformed m 'constant.1' -2"},
          {"dim_order longer", program([](PteProgram& p) {
             p.tensors[0].dim_order = {0, 1, 2};
           }),
           "malformed m 'constant.1' dim_order 3 2"},
          {"dim_order shorter", program([](PteProgram& p) { p.tensors[0].dim_order = {0}; }),
           "malformed m 'constant.1' dim_order 1 2"},
          {"both kinds of constants", program([](PteProgram& p) {
             p.inline_constants = {"", "x"};
           }),
           "malformed m"},
          {"mutable offset", program([](PteProgram& p) { p.mutable_offsets[1] = 12; }),
           "malformed m 'mutable.1' 8 12 1 16"},
          {"inline constant too short",
           testing::pte_bytes({.tensors = {{1, {11}}}, .inline_constants = {"", std::string(40, 'x')}}),
           "malformed m 'constant.1' 44 1 40"},
          {"inline constant index",
           testing::pte_bytes({.tensors = {{2, {1}}}, .inline_constants = {"", "abcd"}}),
           "malformed m 'constant.2' 2 2"},
          {"external without a name", testing::pte_bytes({.tensors = {{0, {1}, 6, {}, false, "", true}}}),
           "malformed m"},
      },
      read);
}

LiteModel sample_model() {
  return {.tensors = {{"x", {1, 4}, 0, 0, {-1, 4}},
                      {"w", {4, 3}, 0, 1},
                      {"b", {3}, 0, 2},
                      {"y", {1, 3}},
                      {"y", {1, 3}, 9},
                      {"four", {5}, 17, 3},
                      {"", {3}, 0, 2},
                      {"words", {2}, 5, 4},
                      {"later", {2}, 99, 3}},
          .ops = {{9, {0, 1, 2, -1}, {3}}, {-1, {3, 5}, {4}}},
          .inputs = {0},
          .outputs = {4},
          .buffers = {"", std::string(48, 'w'), std::string(12, 'b'), "abc", "text"}};
}

TEST(Tflite, SampleEqualsItsGolden) {
  const std::string bytes = testing::tflite_bytes(sample_model());
  const graph::MetaGraph graph = read(bytes);
  testing::expect_golden("tflite_sample.json", graph_json(graph));
  EXPECT_EQ(bytes.substr(graph.storages[0].offset, 48), std::string(48, 'w'));
  expect_prefixes_survive(bytes, 1);
  expect_flips_survive(bytes);
}

TEST(Tflite, DataBehindTheFlatbufferIsFound) {
  LiteModel model = {.tensors = {{"far", {4}, 0, 1}}};
  model.far_buffers = {{4000, 16}};
  std::string bytes = testing::tflite_bytes(model);
  bytes.resize(4000);
  bytes += std::string(16, 'f');
  const graph::MetaGraph graph = read(bytes);
  EXPECT_EQ(graph.storages.at(0).offset, 4000u);
  EXPECT_EQ(graph.storages.at(0).bytes, 16u);
}

TEST(Tflite, MuchDataBehindTheFlatbufferIsNotRead) {
  constexpr std::uint64_t kWeights = std::uint64_t{3} << 30;
  const testing::TemporaryFolder folder;
  LiteModel model = {.tensors = {{"far", {1 << 10, 3 << 18}, 0, 1}}};
  model.far_buffers = {{4096, kWeights}};
  const std::string path = folder / "far.tflite";
  testing::write_file(path, testing::tflite_bytes(model));
  std::filesystem::resize_file(path, 4096 + kWeights);
  const std::uint64_t before = io::read_bytes_counter();
  EXPECT_EQ(importers::open_model(path, {}).storages.at(0).bytes, kWeights);
  EXPECT_LT(io::read_bytes_counter() - before, 100'000u);
}

TEST(Tflite, OperatorsOutOfOrderAreLeftOut) {
  LiteModel model = sample_model();
  std::swap(model.ops[0], model.ops[1]);
  const graph::MetaGraph graph = read(testing::tflite_bytes(model));
  EXPECT_FALSE(graph.forward);
  EXPECT_EQ(testing::facts(graph.notes.back().text), "0");
}

TEST(Tflite, HostileFilesGiveTheirError) {
  const auto model = [](auto change) {
    LiteModel changed = sample_model();
    change(changed);
    return testing::tflite_bytes(changed);
  };
  testing::expect_errors(
      {
          {"root outside",
           [&] {
             std::string b = model([](LiteModel&) {});
             testing::put(b, 0, ~0U);
             return b;
           }(),
           "malformed m 4294967295 912"},
          {"input -2", model([](LiteModel& m) { m.ops[0].inputs[3] = -2; }), "malformed m 0 0 -2 9"},
          {"input INT_MIN", model([](LiteModel& m) { m.ops[0].inputs[0] = INT32_MIN; }),
           "malformed m 0 0 -2147483648 9"},
          {"output -1", model([](LiteModel& m) { m.ops[0].outputs[0] = -1; }), "malformed m 0 0 -1 9"},
          {"input past the end", model([](LiteModel& m) { m.ops[0].inputs[0] = 9; }), "malformed m 0 0 9 9"},
          {"graph input -1", model([](LiteModel& m) { m.inputs[0] = -1; }), "malformed m 0 -1 9"},
          {"graph output past the end", model([](LiteModel& m) { m.outputs[0] = INT32_MAX; }),
           "malformed m 0 2147483647 9"},
          {"buffer index", model([](LiteModel& m) { m.tensors[1].buffer = 5; }), "malformed m 'w' 5 5"},
          {"negative dimension", model([](LiteModel& m) {
             m.tensors[1].shape = {-4, 3};
           }),
           "malformed m 'w' 0 -4"},
          {"shape overflows", model([](LiteModel& m) {
             m.tensors[1].shape = {INT32_MAX, INT32_MAX, INT32_MAX};
           }),
           "malformed m 'w' 2147483647,2147483647,2147483647 64"},
          {"shape overflows in bytes", model([](LiteModel& m) {
             m.tensors[1].shape = {INT32_MAX, INT32_MAX, 4};
           }),
           "malformed m 'w' 2147483647,2147483647,4 64"},
          {"too small a buffer", model([](LiteModel& m) {
             m.tensors[1].shape = {4, 4};
           }),
           "malformed m 'w' 64 4,4 F32 48"},
          {"far buffer past the end", model([](LiteModel& m) {
             m.tensors[1].buffer = 5;
             m.far_buffers = {{1 << 20, 48}};
           }),
           "malformed m 'w' 5 48 1048576 952"},
          {"far buffer wraps", model([](LiteModel& m) {
             m.tensors[1].buffer = 5;
             m.far_buffers = {{~std::uint64_t{7}, 48}};
           }),
           "malformed m 'w' 5 48 18446744073709551608 952"},
      },
      read);
}

// Weights inside the flatbuffer cost neither memory nor reading, however many there are.
TEST(FlatImage, LeavesWeightsOut) {
  constexpr std::size_t kWeights = 60 << 20;
  const testing::TemporaryFolder folder;
  const std::string path = folder / "big.tflite";
  testing::write_file(path, testing::tflite_bytes({.tensors = {{"w", {kWeights / 4}, 0, 1}},
                                                   .buffers = {"", std::string(kWeights, 'w')}}));
  const std::uint64_t read_before = io::read_bytes_counter();
  const graph::MetaGraph graph = importers::open_model(path, {});
  EXPECT_LT(io::read_bytes_counter() - read_before, 100'000u);
  EXPECT_EQ(graph.storages.at(0).bytes, kWeights);
}

TEST(UniqueNames, NumberWhatWasGivenBefore) {
  importers::UniqueNames names;
  EXPECT_EQ(names.take("w"), "w");
  EXPECT_EQ(names.take("w#2"), "w#2");
  EXPECT_EQ(names.take("w"), "w#3");
  EXPECT_EQ(names.take("w"), "w#4");
  EXPECT_EQ(names.take(""), "");
  EXPECT_EQ(names.take(""), "#2");
}

}  // namespace

// --- safetensors: golden, every prefix, and the hostile table.

namespace {

using testing::expect_golden;
using testing::repeat;
using testing::safetensors_bytes;

graph::MetaGraph read_tensors(std::string_view bytes) {
  return importers::import_source(memory_source("m.safetensors", bytes));
}

std::string error_of(std::string_view bytes) { return testing::import_error("m.safetensors", bytes); }

TEST(Safetensors, SampleEqualsItsGolden) {
  const graph::MetaGraph graph = read_tensors(testing::sample_safetensors());
  expect_golden("safetensors_sample.json", graph_json(graph));
}

TEST(Safetensors, EveryPrefixIsAClearError) {
  const std::string sample = testing::sample_safetensors();
  ASSERT_GT(sample.size(), 4000u);
  testing::expect_prefixes_refused("m.safetensors", sample);
}

TEST(Safetensors, EveryFlippedHeaderByteIsSurvived) {
  const std::string sample = testing::sample_safetensors();
  testing::expect_flips_survived("m.safetensors", sample, sample.size() - 1900);
}

TEST(Safetensors, MinimalFilesOpen) {
  EXPECT_TRUE(read_tensors(safetensors_bytes("{}      ", 0)).tensors.empty());
  const graph::MetaGraph scalar =
      read_tensors(safetensors_bytes(R"({"test":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(scalar.tensors[0].dtype, graph::DType::i32);
  EXPECT_EQ(graph::elements(scalar.tensors[0]), 1u);
  // the reference tolerates white space before the object
  EXPECT_TRUE(read_tensors(safetensors_bytes("\t\n {}", 0)).notes.empty());
}

TEST(Safetensors, UnknownDtypesAreOpaque) {
  const graph::MetaGraph graph =
      read_tensors(safetensors_bytes(R"({"t":{"dtype":"F3_NEW","shape":[5],"data_offsets":[0,7]}})", 7));
  EXPECT_EQ(graph.tensors[0].dtype, graph::DType::opaque);
  EXPECT_EQ(graph::tensor_bytes(graph, graph.tensors[0]), 7u);
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
}

TEST(Safetensors, TrailingBytesOpenButMayNotBeUsed) {
  const graph::MetaGraph graph =
      read_tensors(safetensors_bytes(R"({"t":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 9));
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::error);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "m.safetensors 4 66 70");
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
}

TEST(Safetensors, UnknownFieldsAreNoted) {
  const graph::MetaGraph graph = read_tensors(
      safetensors_bytes(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{"y":[]}}})", 1));
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
}

std::string one(std::string_view entry, std::size_t data) {
  return safetensors_bytes(fmt::format("{{\"t\":{}}}", entry), data);
}

std::vector<Hostile> hostile_table() {
  const std::string ok = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const auto two = [](std::string_view a, std::string_view b, std::size_t data) {
    return safetensors_bytes(
        fmt::format(
            R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[{}]}},"b":{{"dtype":"U8","shape":[4],"data_offsets":[{}]}}}})",
            a, b),
        data);
  };
  return {
      // the length
      {"empty file", "", "malformed m.safetensors 0 8 0"},
      {"seven bytes", std::string(7, '\0'), "malformed m.safetensors 0 8 7"},
      {"zero length", std::string(8, '\0'), "malformed m.safetensors 8"},
      {"length past the end", safetensors_bytes(100, "{}", 0), "malformed m.safetensors 0 100 2"},
      {"length one past the end", safetensors_bytes(3, "{}", 0), "malformed m.safetensors 0 3 2"},
      {"length 2^64-1", safetensors_bytes(~std::uint64_t{0}, "{}", 0),
       "limit m.safetensors 0 18446744073709551615 100000000"},
      {"length 2^64-8 wraps 8+N", safetensors_bytes(~std::uint64_t{7}, "{}", 0),
       "limit m.safetensors 0 18446744073709551608 100000000"},
      {"length 2^63", safetensors_bytes(std::uint64_t{1} << 63, "{}", 0),
       "limit m.safetensors 0 9223372036854775808 100000000"},
      {"length over the cap", safetensors_bytes(100'000'001, "{}", 0),
       "limit m.safetensors 0 100000001 100000000"},
      {"length at the cap", safetensors_bytes(100'000'000, "{}", 0), "malformed m.safetensors 0 100000000 2"},
      // JSON
      {"not JSON", safetensors_bytes("{nonsense", 0), "malformed m.safetensors 8"},
      {"an array", safetensors_bytes("[{}]", 0), "malformed m.safetensors 8"},
      {"text after the object", safetensors_bytes("{}{}", 0), "malformed m.safetensors 8"},
      {"NUL padding", safetensors_bytes(std::string("{}\0\0", 4), 0), "malformed m.safetensors 8"},
      {"unclosed", safetensors_bytes(R"({"t":{"dtype":"U8")", 0), "malformed m.safetensors 8"},
      {"invalid UTF-8 in a name", safetensors_bytes("{\"\xFF\":{}}", 0), "malformed m.safetensors 8 UTF-8"},
      {"lone surrogate escape", safetensors_bytes(R"({"\ud800":{}})", 0), "malformed m.safetensors 8"},
      {"control character in a name", safetensors_bytes("{\"a\nb\":{}}", 0), "malformed m.safetensors 8"},
      {"single quotes", safetensors_bytes("{'t':1}", 0), "malformed m.safetensors 8"},
      {"trailing comma", safetensors_bytes(R"({"t":1,})", 0), "malformed m.safetensors 8"},
      {"nested 100,000 deep",
       safetensors_bytes("{\"t\":" + repeat("[", 100'000) + repeat("]", 100'000) + "}", 0),
       "malformed m.safetensors 8"},
      {"nested 100,000 deep, unclosed", safetensors_bytes("{\"t\":" + repeat("{\"a\":", 100'000), 0),
       "malformed m.safetensors 8"},
      // entries
      {"entry is a number", one("5", 0), "malformed m.safetensors 9 't'"},
      {"entry is null", one("null", 0), "malformed m.safetensors 9 't'"},
      {"entry is an array", one("[]", 0), "malformed m.safetensors 9 't'"},
      {"no dtype", one(R"({"shape":[4],"data_offsets":[0,4]})", 4), "malformed m.safetensors 9 't'"},
      {"no shape", one(R"({"dtype":"U8","data_offsets":[0,4]})", 4), "malformed m.safetensors 9 't'"},
      {"no offsets", one(R"({"dtype":"U8","shape":[4]})", 4), "malformed m.safetensors 9 't' data_offsets"},
      {"dtype is a number", one(R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't'"},
      {"shape is a string", one(R"({"dtype":"U8","shape":"4","data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't'"},
      {"negative dimension", one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 0 2^64-1"},
      {"fractional dimension", one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 0 2^64-1"},
      {"exponent dimension", one(R"({"dtype":"U8","shape":[4e0],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 0 2^64-1"},
      {"dimension 2^64", one(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 8"},
      {"dimension is a string", one(R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 0 2^64-1"},
      {"nested shape", one(R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 0 2^64-1"},
      {"one offset", one(R"({"dtype":"U8","shape":[4],"data_offsets":[4]})", 4),
       "malformed m.safetensors 9 't' data_offsets 1 2"},
      {"three offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})", 4),
       "malformed m.safetensors 9 't' data_offsets 3 2"},
      {"negative offset", one(R"({"dtype":"U8","shape":[4],"data_offsets":[-1,3]})", 4),
       "malformed m.safetensors 9 't' data_offsets 0 2^64-1"},
      {"offsets reversed", one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})", 4),
       "malformed m.safetensors 9 't' 0 4"},
      {"duplicate name", safetensors_bytes(fmt::format(R"({{"t":{0},"t":{0}}})", ok), 4),
       "malformed m.safetensors 61 't'"},
      {"duplicate name through an escape",
       safetensors_bytes(fmt::format(R"({{"t":{0},"\u0074":{0}}})", ok), 4), "malformed m.safetensors 9 't'"},
      {"duplicate dtype", one(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't'"},
      {"duplicate shape", one(R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't'"},
      {"duplicate offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' data_offsets"},
      // metadata
      {"half a byte", safetensors_bytes(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
       "malformed m.safetensors 9 'a' 3 F4"},
      {"metadata is a list", safetensors_bytes(R"({"__metadata__":[]})", 0),
       "malformed m.safetensors 9 '__metadata__'"},
      {"metadata value is a number", safetensors_bytes(R"({"__metadata__":{"a":1}})", 0),
       "malformed m.safetensors 9 '__metadata__' 'a'"},
      {"metadata value is an object", safetensors_bytes(R"({"__metadata__":{"a":{}}})", 0),
       "malformed m.safetensors 9 '__metadata__' 'a'"},
      {"metadata value is null", safetensors_bytes(R"({"__metadata__":{"a":null}})", 0),
       "malformed m.safetensors 9 '__metadata__' 'a'"},
      {"metadata twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})", 0),
       "malformed m.safetensors 27 '__metadata__'"},
      {"metadata key twice", safetensors_bytes(R"({"__metadata__":{"a":"","a":""}})", 0),
       "malformed m.safetensors 9 '__metadata__' 'a'"},
      // sizes and places
      {"fewer bytes than the shape needs", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 16 4 F32 4"},
      {"more bytes than the shape needs", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,32]})", 32),
       "malformed m.safetensors 9 't' 16 4 F32 32"},
      {"shape product 2^64", one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "malformed m.safetensors 9 't' 4294967296,4294967296 64"},
      {"shape product wraps behind a zero",
       one(R"({"dtype":"U8","shape":[4294967296,0,4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "malformed m.safetensors 9 't' 4294967296,0,4294967296,4294967296 64"},
      {"byte product 2^64", one(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", 0),
       "malformed m.safetensors 9 't' 2305843009213693952 F64 64"},
      {"F4 doubling", one(R"({"dtype":"F4","shape":[9223372036854775807],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 9223372036854775807 F4"},
      {"odd F4", one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})", 2),
       "malformed m.safetensors 9 't' 3 F4"},
      {"F6 of 2", one(R"({"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]})", 2),
       "malformed m.safetensors 9 't' 2 F6_E2M3"},
      {"1000x1000 over four bytes", one(R"({"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]})", 4),
       "malformed m.safetensors 9 't' 4000000 1000,1000 F32 4"},
      {"data past the end", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3),
       "malformed m.safetensors 9 't' 4 3"},
      {"data far past the end",
       one(R"({"dtype":"U8","shape":[9007199254740992],"data_offsets":[0,9007199254740992]})", 3),
       "malformed m.safetensors 9 't' 9007199254740992 3"},
      {"offset 2^64-1",
       one(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]})", 3),
       "malformed m.safetensors 9 't' 18446744073709551615 3"},
      {"opaque dtype past the end", one(R"({"dtype":"X","shape":[4],"data_offsets":[0,400]})", 3),
       "malformed m.safetensors 9 't' 400 3"},
      {"does not begin at 0", one(R"({"dtype":"U8","shape":[4],"data_offsets":[1,5]})", 5),
       "malformed m.safetensors 9 't' 1 0"},
      {"overlap", two("0,4", "2,6", 6), "malformed m.safetensors 61 'b' 2 4"},
      {"the same bytes twice", two("0,4", "0,4", 4), "malformed m.safetensors 61 'b' 0 4"},
      {"one inside the other", two("0,4", "1,5", 8), "malformed m.safetensors 61 'b' 1 4"},
      {"hole", two("0,4", "6,10", 10), "malformed m.safetensors 61 'b' 6 4"},
  };
}

TEST(Safetensors, HostileFilesGiveTheirError) {
  const std::vector<Hostile> table = hostile_table();
  EXPECT_GE(table.size(), 50u);
  testing::expect_hostile("m.safetensors", table);
}

TEST(Safetensors, ErrorsNameTensorAndByte) {
  const std::string bytes = one(R"({"dtype":"F32","shape":[16,16],"data_offsets":[0,1000]})", 1000);
  EXPECT_EQ(error_of(bytes),
            "m.safetensors: byte 9: tensor 't': needs 1024 bytes for [16,16] F32, offsets give 1000");
}

// What a header with 17 bytes of data opens as, or why it does not; where is left out.
std::string outcome(const std::string& header) {
  try {
    return graph_json(read_tensors(safetensors_bytes(header, 17)));
  } catch (const Error& error) {
    return std::regex_replace(error.what(), std::regex("byte [0-9]+: "), "");
  }
}

// A blank behind the first brace leaves the whole header to the parser.
TEST(Safetensors, WhatIsReadWithoutTheParserIsWhatTheParserReads) {
  const std::string plain =
      R"("__metadata__":{"format":"pt","a":"b"},"w.x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("y":{"dtype":"U8","shape":[],"data_offsets":[16,17]},"z":{"dtype":"U8","shape":[0],"data_offsets":[17,17]}})";
  const auto compare = [](const std::string& text) {
    EXPECT_EQ(outcome("{" + text + " "), outcome("{ " + text)) << text;
  };
  compare(plain);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (const char other : std::string_view("{}[]:,\"\\ 01-.eu\n\x01\x7F\xC3", 20)) {
      std::string text = plain;
      text[i] = other;
      compare(text);
    }
    compare(plain.substr(0, i) + plain.substr(i + 1));
    compare(plain.substr(0, i) + plain[i] + plain.substr(i));
  }
  for (const std::string_view number :
       {"00", "01", "18446744073709551615", "18446744073709551616", "-0", "1e1"})
    compare(std::string(plain).replace(plain.find("16]"), 2, number));
}

TEST(Safetensors, ManyTinyEntriesStayLinear) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i == 0 ? "" : ",",
                          i, i, i + 1);
  EXPECT_EQ(read_tensors(safetensors_bytes(header + "}", 200'000)).tensors.size(), 200'000u);
}

TEST(Safetensors, ManyMetadataKeysStayLinear) {
  std::string header = R"({"__metadata__":{)";
  for (int i = 0; i < 300'000; ++i) header += fmt::format(R"({}"key {}":"")", i == 0 ? "" : ",", i);
  EXPECT_EQ(read_tensors(safetensors_bytes(header + "}}", 0)).metadata.size(), 300'000u);
}

TEST(Safetensors, TheHeaderCannotStandInForTheConfig) {
  const graph::MetaGraph graph =
      read_tensors(safetensors_bytes(R"({"__metadata__":{"config.json":"{}","format":"pt"}})", 0));
  EXPECT_EQ(graph::find_metadata(graph, graph::kConfigKey), nullptr);
  EXPECT_EQ(graph.notes.size(), 1u);
}

TEST(Safetensors, MetadataMayBeNull) {
  const graph::MetaGraph graph = read_tensors(
      safetensors_bytes(R"({"__metadata__":null,"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2));
  EXPECT_EQ(graph.tensors.size(), 1u);
  EXPECT_TRUE(graph.metadata.empty() && graph.notes.empty());
}

TEST(Safetensors, AHugeNameIsJustAName) {
  const std::string name(10 << 20, 'n');
  const graph::MetaGraph graph = read_tensors(
      safetensors_bytes("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  EXPECT_EQ(graph.tensors[0].name, name);
}

TEST(Sniff, ContentDecides) {
  const importers::Importer& importer =
      importers::importer_for(*memory_source("no_extension", testing::sample_safetensors()).file);
  EXPECT_EQ(importer.id, "safetensors");
  EXPECT_THROW(importers::import_source(memory_source("x.bin", "PK\3\4 something else entirely")), Error);
  EXPECT_THROW(importers::import_source(memory_source("x", "")), Error);
}

}  // namespace

}  // namespace loadline::tests
