// ONNX files, and their external data.

#include "importers/onnx/onnx.h"

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"
#include "core/io/protobuf_wire.h"
#include "core/io/system_memory.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {

// --- ONNX: golden, every prefix, names, metadata, and the hostile table.

namespace {

using namespace testing::onnx;
using testing::Hostile;
using testing::memory_source;
using testing::Proto;
using testing::repeat;

// Without shape inference: onnx_inference_test has that.
graph::MetaGraph read(std::string_view bytes) {
  graph::MetaGraph graph =
      importers::read_onnx(memory_source("m.onnx", bytes, {{"sample.data", sample_onnx_data()}}), {false});
  graph::validate(graph);
  return graph;
}

std::string error_of(std::string_view bytes) {
  return testing::error_of([&] { read(bytes); });
}

std::vector<std::string> names_of(const graph::MetaGraph& graph) {
  std::vector<std::string> names;
  for (const graph::Tensor& tensor : graph.tensors) names.push_back(tensor.name);
  return names;
}

const graph::Tensor& tensor_named(const graph::MetaGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(),
                                  [&](const graph::Tensor& tensor) { return tensor.name == name; });
  if (found == graph.tensors.end()) throw std::runtime_error("no tensor " + std::string(name));
  return *found;
}

// The values of a tensor as bytes, through the reader that everything else uses.
std::string bytes_of(const std::string& model, std::string_view name) {
  testing::TemporaryFolder folder;
  testing::write_file(folder / "m.onnx", model);
  testing::write_file(folder / "sample.data", sample_onnx_data());
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(folder / "m.onnx", {}));
  const graph::Tensor& found = tensor_named(*graph, name);
  std::string bytes(graph::tensor_bytes(*graph, found), '\0');
  io::StorageReader(graph).read(found.storage, found.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(Onnx, SampleEqualsItsGolden) {
  testing::expect_golden("onnx_sample.json", graph_json(read(sample_onnx())));
}

TEST(Onnx, EveryPrefixIsAClearErrorOrAModel) {
  const std::string sample = sample_onnx();
  ASSERT_GT(sample.size(), 2000u);
  std::size_t models = 0;
  for (std::size_t length = 0; length < sample.size(); ++length) {
    const std::string error = error_of(std::string_view(sample).substr(0, length));
    if (!error.empty()) {
      ASSERT_EQ(error.rfind("m.onnx: ", 0), 0u) << error;
    }
    models += error.empty() ? 1 : 0;
  }
  EXPECT_EQ(models, 5u);  // after the graph, and after each field behind it
}

TEST(Onnx, EveryFlippedByteIsSurvived) {
  const std::string sample = sample_onnx();
  testing::expect_flips_survived("m.onnx", sample, sample.size(),
                                 [](std::string_view bytes) { read(bytes); });
}

TEST(Onnx, TypedFieldsDecodeToWhatRawDataHolds) {
  EXPECT_EQ(bytes_of(sample_onnx(), "typed.I64").substr(32), std::string(8, '\xFF'));
  EXPECT_EQ(bytes_of(sample_onnx(), "typed.F32"), bytes_of(sample_onnx(), "raw.F32"));
  EXPECT_EQ(bytes_of(sample_onnx(), "typed.F16"), repeat(std::string_view("\1\0", 2), 5));
  const auto typed = [](std::int64_t type, const Dims& dims, const std::vector<std::uint64_t>& values) {
    return bytes_of(weights_model({tensor("t", type, dims).varints(5, values)}), "t");
  };
  // negative numbers are varints of ten bytes; 4-bit ones come two to an entry, 2-bit ones four
  EXPECT_EQ(typed(kInt8, {2}, {~std::uint64_t{0}, 5}), "\xFF\x05");
  EXPECT_EQ(typed(kInt4, {3}, {0x21, 0x0F}), "\x21\x0F");
  EXPECT_EQ(typed(kInt2, {5}, {0xE4, 0x03}), "\xE4\x03");
  EXPECT_EQ(typed(kFloat8, {2}, {0x38, 0xB8}), "\x38\xB8");
  // one by one, packed, and both
  const std::string mixed =
      bytes_of(weights_model({tensor("t", kFloat, {3}).fixed32(4, 1).text(4, "abcd").fixed32(4, 2)}), "t");
  EXPECT_EQ(mixed, std::string_view("\1\0\0\0abcd\2\0\0\0", 12));
}

TEST(Onnx, SixBitNumbersInWholeGroupsHaveAType) {
  constexpr std::int64_t kFloat6 = 27;
  const auto type = [](const Proto& one) { return read(weights_model({one})).tensors[0].dtype; };
  EXPECT_EQ(type(raw_tensor("t", kFloat6, {2, 4}, "123456")), graph::DType::f6_e2m3);
  EXPECT_EQ(type(raw_tensor("t", kFloat6, {5}, "1234")), graph::DType::opaque);
  EXPECT_EQ(type(tensor("t", kFloat6, {4}).varints(5, {1, 2, 3, 4})), graph::DType::opaque);
  EXPECT_EQ(testing::facts_of([&] { read(weights_model({raw_tensor("t", kFloat6, {8}, "12345")})); }),
            "malformed m.onnx 6 't' 6 8 F6_E2M3 raw_data 5");
}

TEST(Onnx, OnePackedRunOfFixedNumbersCanBeMapped) {
  const graph::MetaGraph graph = read(sample_onnx());
  for (const char* name : {"typed.F32", "typed.F64", "typed.C64", "raw.F16", "external.a"})
    EXPECT_EQ(graph.storage(tensor_named(graph, name).storage).encoding, graph::Encoding::plain) << name;
  EXPECT_EQ(graph.storage(tensor_named(graph, "typed.I4").storage).encoding,
            graph::Encoding::protobuf_varints);
}

TEST(Onnx, MessagesInPartsAreMerged) {
  const Proto first = Proto().text(kInitializer, raw_tensor("a", kUint8, {2}, "12"));
  const Proto second = Proto().text(kInitializer, raw_tensor("b", kUint8, {2}, "34"));
  const std::string bytes = Proto().text(7, first).number(1, 7).text(7, second).number(1, 8).bytes();
  const graph::MetaGraph graph = read(bytes);
  EXPECT_EQ(names_of(graph), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(std::get<std::int64_t>(*graph::find_metadata(graph, "ir_version")), 8);  // the last one counts

  // an attribute's tensor in two parts: dimensions add up, the last raw_data counts
  const Proto parts = Proto()
                          .text(1, "value")
                          .text(5, Proto().number(1, 2).number(2, 2).text(9, "no"))
                          .text(5, Proto().number(1, 3).text(9, "abcdef"));
  const graph::MetaGraph merged =
      read(model(Proto().text(kNode, node("Constant", {}, {"c"}).text(5, parts))));
  EXPECT_EQ(merged.tensors[0].shape, (std::vector<std::uint64_t>{2, 3}));
}

TEST(Onnx, TensorsHaveReadablePaths) {
  const graph::MetaGraph graph = read(sample_onnx());
  const std::vector<std::string> names = names_of(graph);
  const std::set<std::string> found(names.begin(), names.end());
  for (const char* name :
       {"weight", "sparse", "sparse/indices", "choose/then_branch/bias", "choose/then_branch/one/value",
        "choose/else_branch/bias", "Half/two/value", "training/initialization/weight"})
    EXPECT_EQ(found.count(name), 1u) << name;
}

TEST(Onnx, EqualPathsAreTold) {
  const auto constant = [](std::string_view name, std::string_view output) {
    return node("Constant", {}, {std::string(output)}, name)
        .text(5, attribute_tensor("value", raw_tensor("", kUint8, {}, "1")));
  };
  const Proto graph = Proto()
                          .text(kNode, constant("c", "x"))
                          .text(kNode, constant("c", "y"))
                          .text(kNode, constant("", ""))
                          .text(kInitializer, raw_tensor("c/value", kUint8, {}, "2"));
  const std::vector<std::string> names = names_of(read(model(graph)));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
            (std::set<std::string>{"c/value", "c/value#2", "c/value#3", "Constant_2/value"}));
}

TEST(Onnx, MetadataIsKeptUnderItsKeys) {
  const graph::MetaGraph graph = read(sample_onnx());
  EXPECT_EQ(std::get<std::string>(*graph::find_metadata(graph, "producer_name")), "loadline");
  EXPECT_EQ(std::get<std::int64_t>(*graph::find_metadata(graph, "opset.ai.onnx")), 17);
  EXPECT_EQ(std::get<std::int64_t>(*graph::find_metadata(graph, "opset.local")), 1);
  EXPECT_EQ(std::get<std::string>(*graph::find_metadata(graph, "author")), "nobody");
  const auto property = [](std::string_view key) {
    return Proto().text(14, Proto().text(1, key).text(2, "{}")).bytes();
  };
  const graph::MetaGraph odd =
      read(model(Proto()) + property("config.json") + property("ir_version") + property("a") + property("a"));
  EXPECT_EQ(graph::find_metadata(odd, graph::kConfigKey), nullptr);
  EXPECT_EQ(odd.notes.size(), 3u);
  const graph::MetaGraph long_doc = read(model(Proto()) + Proto().text(6, std::string(5000, 'd')).bytes());
  EXPECT_EQ(std::get<std::string>(*graph::find_metadata(long_doc, "doc_string")).size(), 1000u);
}

TEST(Onnx, WhatIsOddButUsableIsNoted) {
  const auto note = [](const Proto& one) {
    const graph::MetaGraph graph = read(weights_model({one}));
    EXPECT_EQ(graph.notes.size(), 1u);
    return graph.notes.empty() ? graph::Note{} : graph.notes[0];
  };
  EXPECT_EQ(testing::facts(note(raw_tensor("t", kUint8, {2}, "123")).text), "2 raw_data 3");
  EXPECT_EQ(testing::facts(note(raw_tensor("t", kUint8, {0}, "123")).text), "0 raw_data 3");
  EXPECT_EQ(testing::facts(note(tensor("t", kInt32, {1}).varints(5, {1, 2})).text), "1 int32_data 2");
  EXPECT_EQ(testing::facts(note(raw_tensor("t", 99, {2}, "123")).text), "data_type 99");
  EXPECT_TRUE(read(weights_model({raw_tensor("t", kFloat, {1}, "").text(4, "1234")})).notes.empty());
  // raw_data that is empty is how TensorRT strips weights
  for (const Proto& one : {tensor("t", kFloat, {2}), raw_tensor("t", kFloat, {2}, "")}) {
    const graph::Note empty = note(one);
    EXPECT_EQ(empty.severity, graph::Severity::error);
    EXPECT_EQ(testing::facts(empty.text), "1 't'");
    EXPECT_EQ(read(weights_model({one})).missing, std::vector<std::string>{"t"});
  }
  EXPECT_EQ(note(raw_tensor("t", kUint8, {1}, "1").text(3, Proto().number(1, 0))).severity,
            graph::Severity::error);
}

TEST(Onnx, UnknownFieldsAreSkipped) {
  const std::string bytes = Proto()
                                .number(1, 8)
                                .text(7, Proto().text(100, "x").number(99, 1).text(
                                             kInitializer, raw_tensor("a", kUint8, {}, "1").fixed64(1000, 5)))
                                .fixed32(500, 1)
                                .bytes();
  EXPECT_EQ(read(bytes).tensors.size(), 1u);
  EXPECT_TRUE(read(bytes).notes.empty());
}

Proto nested_graphs(int depth) {
  Proto graph;
  for (int i = 0; i < depth; ++i)
    graph = Proto().text(kNode, node("If", {"c"}, {"o"}).text(5, attribute_graph("then_branch", graph)));
  return graph.text(kInput, value("c", kBool, {}));
}

TEST(Onnx, NestedGraphsAsDeepAsProtobufReads) {
  EXPECT_EQ(error_of(model(nested_graphs(30))), "");
  EXPECT_EQ(testing::facts_of([&] { read(model(nested_graphs(60))); }), "limit m.onnx 1160 100");
}

// Whatever the depth: written from the inside, front parts first, so that nothing is copied twice.
std::string deep_graphs(int depth) {
  std::vector<std::string> fronts;
  std::size_t length = 0;
  const auto wrap = [&](std::uint32_t field) {
    fronts.push_back(testing::varint_bytes(field << 3 | 2) + testing::varint_bytes(length));
    length += fronts.back().size();
  };
  for (int i = 0; i < depth; ++i)
    for (const std::uint32_t field : {6U, 5U, 1U}) wrap(field);  // graph in attribute in node
  wrap(7);
  std::string bytes;
  for (auto front = fronts.rbegin(); front != fronts.rend(); ++front) bytes += *front;
  return bytes;
}

std::vector<Hostile> hostile_table() {
  const auto one = [](const Proto& proto) { return weights_model({proto}); };
  const std::uint64_t minus_one = ~std::uint64_t{0};
  return {
      {"empty file", "", "malformed m.onnx"},
      {"no graph", Proto().number(1, 8).text(2, "x"), "malformed m.onnx"},
      {"cut off inside the graph", model(Proto().text(2, "name")).substr(0, 6), "malformed m.onnx 2 7 6 2"},
      {"length past the end", std::string("\x08\x08\x3A\xFF\x01", 5), "malformed m.onnx 2 7 255 0"},
      {"length 2^64-1", "\x3A" + testing::varint_bytes(minus_one),
       "malformed m.onnx 0 7 18446744073709551615 0"},
      {"a group", "\x08\x08\x3B\x3C", "malformed m.onnx 2 7 3"},
      {"wire type 7", "\x08\x08\x3F", "malformed m.onnx 2 7 7"},
      {"100,000 graphs deep", deep_graphs(100'000), "limit m.onnx 400 100"},
      // dimensions
      {"negative dimension", one(raw_tensor("t", kFloat, {minus_one}, "1234")), "malformed m.onnx 6 '' 0 -1"},
      {"negative packed dimension", one(Proto().varints(1, {2, minus_one}).number(2, 1)),
       "malformed m.onnx 6 '' 1 -1"},
      {"dimension 2^63", one(raw_tensor("t", kFloat, {1ULL << 63}, "1234")),
       "malformed m.onnx 6 '' 0 -9223372036854775808"},
      {"product 2^64", one(raw_tensor("t", kUint8, {1ULL << 32, 1ULL << 32}, "")),
       "malformed m.onnx 6 't' 4294967296,4294967296 64"},
      {"product wraps behind a zero",
       one(raw_tensor("t", kUint8, {1ULL << 32, 0, 1ULL << 32, 1ULL << 32}, "")),
       "malformed m.onnx 6 't' 4294967296,0,4294967296,4294967296 64"},
      {"bytes overflow", one(raw_tensor("t", kDouble, {1ULL << 62}, "")),
       "malformed m.onnx 6 't' 4611686018427387904 F64 64"},
      {"10,000 dimensions", one(Proto().varints(1, std::vector<std::uint64_t>(10'000, 1)).number(2, 1)),
       "limit m.onnx 8 '' 1024"},
      // raw_data
      {"raw_data too short", one(raw_tensor("t", kFloat, {2, 2}, "123456789012345")),
       "malformed m.onnx 6 't' 16 2,2 F32 raw_data 15"},
      {"raw_data of a huge tensor", one(raw_tensor("t", kFloat, {1000, 1000}, "1234")),
       "malformed m.onnx 6 't' 4000000 1000,1000 F32 raw_data 4"},
      {"odd int4 too short", one(raw_tensor("t", kInt4, {5}, "12")),
       "malformed m.onnx 6 't' 3 5 I4 raw_data 2"},
      {"odd int2 too short", one(raw_tensor("t", kInt2, {5}, "1")),
       "malformed m.onnx 6 't' 2 5 I2 raw_data 1"},
      {"strings in raw_data", one(raw_tensor("t", kString, {1}, "1234")), "malformed m.onnx 6 't' raw_data"},
      // fields
      {"no data_type", one(Proto().number(1, 1).text(8, "t").text(9, "1234")),
       "malformed m.onnx 6 't' data_type"},
      {"data_type UNDEFINED", one(raw_tensor("t", 0, {1}, "1234")), "malformed m.onnx 6 't' data_type"},
      {"two value fields", one(raw_tensor("t", kFloat, {1}, "1234").text(4, "1234")),
       "malformed m.onnx 6 't' float_data raw_data"},
      {"two typed fields", one(tensor("t", kInt32, {1}).varints(5, {1}).varints(7, {1})),
       "malformed m.onnx 6 't' int32_data int64_data"},
      {"floats in int32_data", one(tensor("t", kFloat, {1}).varints(5, {1})),
       "malformed m.onnx 6 't' F32 int32_data"},
      {"half in float_data", one(tensor("t", kFloat16, {1}).text(4, "1234")),
       "malformed m.onnx 6 't' F16 float_data"},
      {"uint32 in int64_data", one(tensor("t", kUint32, {1}).varints(7, {1})),
       "malformed m.onnx 6 't' U32 int64_data"},
      {"strings in int32_data", one(tensor("t", kString, {1}).varints(5, {1})),
       "malformed m.onnx 6 't' int32_data"},
      {"too few floats", one(tensor("t", kFloat, {3}).text(4, "12345678")),
       "malformed m.onnx 6 't' 3 3 F32 float_data 2"},
      {"half a float", one(tensor("t", kFloat, {1}).text(4, "12345")),
       "malformed m.onnx 6 't' float_data 5 4"},
      {"too few complex", one(tensor("t", kComplex64, {2}).text(4, "123456789012")),
       "malformed m.onnx 6 't' 4 2 C64 float_data 3"},
      {"too few int32", one(tensor("t", kInt32, {3}).varints(5, {1, 2})),
       "malformed m.onnx 6 't' 3 3 I32 int32_data 2"},
      {"too few int4", one(tensor("t", kInt4, {5}).varints(5, {1, 2})),
       "malformed m.onnx 6 't' 3 5 I4 int32_data 2"},
      {"far too few int32",
       one(tensor("t", kInt32, {100'000}).varints(5, std::vector<std::uint64_t>(20'000, 1))),
       "malformed m.onnx 10 't' 100000 100000 I32 int32_data 20000"},
      {"too few strings", one(tensor("t", kString, {3}).text(6, "a").text(6, "b")),
       "malformed m.onnx 6 't' 3 3 string_data 2"},
      {"values in two parts of a message",
       model(Proto().text(kNode, node("C", {}, {})
                                     .text(5, Proto()
                                                  .text(1, "v")
                                                  .text(5, tensor("", kInt32, {2}).varints(5, {1}))
                                                  .text(5, Proto().varints(5, {1}))))),
       "unsupported m.onnx 16 'v'"},
      {"data_location 2", one(tensor("t", kFloat, {1}).number(14, 2)),
       "malformed m.onnx 6 't' data_location 2"},
      // names
      {"initializer twice",
       weights_model({raw_tensor("t", kUint8, {}, "1"), raw_tensor("t", kUint8, {}, "2")}),
       "malformed m.onnx 16 't'"},
      {"sparse and dense of one name",
       model(Proto()
                 .text(kInitializer, raw_tensor("t", kUint8, {}, "1"))
                 .text(kSparse, Proto().text(1, raw_tensor("t", kUint8, {}, "1")))),
       "malformed m.onnx 18 't'"},
      {"initializer twice in a branch",
       model(Proto().text(
           kNode,
           node("If", {}, {"o"}, "i")
               .text(5, attribute_graph("b", Proto()
                                                 .text(kInitializer, raw_tensor("t", kUint8, {}, "1"))
                                                 .text(kInitializer, raw_tensor("t", kUint8, {}, "1")))))),
       "malformed m.onnx 38 't'"},
      // memory
      {"two million operators", model(Proto().raw(repeat(std::string_view("\x0A\0", 2), 2'000'000))),
       "limit m.onnx 2049131 268435456"},
  };
}

TEST(Onnx, HostileFilesGiveTheirError) {
  const std::vector<Hostile> table = hostile_table();
  EXPECT_GE(table.size(), 35u);
  testing::expect_errors(table, read);
}

TEST(Onnx, ErrorsNameTensorAndByte) {
  EXPECT_EQ(testing::facts_of([&] {
              read(weights_model({raw_tensor("t", kFloat, {16, 16}, "12")}));
            }),
            "malformed m.onnx 6 't' 1024 16,16 F32 raw_data 2");
}

TEST(Onnx, OddNamesAreKept) {
  const std::string names[] = {std::string("nul\0inside", 10), "\xFF\xFE not UTF-8", "", "a/../b",
                               std::string(10 << 20, 'n')};
  for (const std::string& name : names) {
    const graph::MetaGraph graph = read(weights_model({raw_tensor(name, kUint8, {}, "1")}));
    EXPECT_EQ(graph.tensors[0].name, name);
    EXPECT_NE(graph_json(graph), "");
  }
  // and shown without harm
  EXPECT_EQ(testing::facts_of([&] { read(weights_model({raw_tensor("\x1B[31m\xFF", kFloat, {1}, "1")})); }),
            "malformed m.onnx 6 '\\x1b[31m\\xff' 4 1 F32 raw_data 1");
}

TEST(Onnx, ManyTensorsStayLinear) {
  Proto graph;
  for (int i = 0; i < 100'000; ++i)
    graph.text(kInitializer, raw_tensor(fmt::format("{}", i), kUint8, {1}, "1"));
  EXPECT_EQ(read(model(graph)).tensors.size(), 100'000u);
}

TEST(Onnx, ManyEqualPathsStayLinear) {
  Proto graph;
  const Proto constant =
      node("Constant", {}, {}, "c").text(5, attribute_tensor("value", raw_tensor("", kUint8, {}, "1")));
  for (int i = 0; i < 100'000; ++i) graph.text(kNode, constant);
  EXPECT_EQ(read(model(graph)).tensors.size(), 100'000u);
}

// A file of 2^31 - 1 bytes that is a hole but for its fields: nothing of the hole is read.
TEST(Onnx, AModelOfTwoGibibytesCostsWhatItsHeaderCosts) {
  testing::TemporaryFolder folder;
  constexpr std::uint64_t kWeights = (1ULL << 31) - 200;
  const std::string before = Proto().number(1, 8).text(2, "hole").bytes();
  std::string head = Proto().number(1, kWeights).number(2, kUint8).text(8, "w").bytes() + "\x4A" +
                     testing::varint_bytes(kWeights);
  head = "\x2A" + testing::varint_bytes(head.size() + kWeights) + head;
  head = before + "\x3A" + testing::varint_bytes(head.size() + kWeights) + head;
  testing::write_file(folder / "m.onnx", head);
  std::filesystem::resize_file(folder / "m.onnx", head.size() + kWeights);
  const std::uint64_t read_before = io::read_bytes_counter();
  const graph::MetaGraph graph = importers::open_model(folder / "m.onnx", {});
  EXPECT_LT(io::read_bytes_counter() - read_before, 20'000u);
  EXPECT_EQ(graph.tensors[0].shape[0], kWeights);

  std::filesystem::resize_file(folder / "m.onnx", 1ULL << 31);
  EXPECT_EQ(testing::facts_of([&] { importers::open_model(folder / "m.onnx", {}); }),
            "limit m.onnx 2147483648 2147483647");
}

TEST(Onnx, ContentDecides) {
  const auto id = [](std::string name, std::string_view bytes) {
    return std::string(importers::importer_for(*memory_source(std::move(name), bytes).file).id);
  };
  EXPECT_EQ(id("no_extension", sample_onnx()), "onnx");
  EXPECT_EQ(id("m.onnx", model(Proto())), "onnx");
  EXPECT_EQ(id("m.onnx", Proto().text(7, Proto()).number(1, 8)), "onnx");
  EXPECT_EQ(id("m.onnx", testing::sample_safetensors()), "safetensors");
  EXPECT_EQ(importers::sniff_onnx(std::string_view("\x08\0\0\0TFL3", 8), "m.tflite"), importers::Match::no);
  EXPECT_EQ(importers::sniff_onnx(std::string_view("GGUF\3\0\0\0", 8), "m.gguf"), importers::Match::no);
  EXPECT_EQ(importers::sniff_onnx(std::string_view("PK\3\4\0\0\0\0", 8), "m.pt"), importers::Match::no);
  EXPECT_EQ(importers::sniff_onnx(std::string_view("\x80\2}q\0.", 6), "m.bin"), importers::Match::no);
  EXPECT_EQ(importers::sniff_onnx(std::string_view("{\"a\":1}", 7), "m.onnx"), importers::Match::no);
  EXPECT_EQ(importers::sniff_onnx({}, "m.onnx"), importers::Match::no);
}

}  // namespace

// --- ONNX external data: where it may lie, and what its numbers may say.

namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::write_file;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string model_with(const Entries& entries) {
  return weights_model({external_tensor("w", kUint8, {4}, entries)});
}
std::string model_at(const std::string& location) { return model_with({{"location", location}}); }

std::string opening_error(const std::string& path) {
  return testing::facts_of([&] { importers::open_model(path, {}); });
}

std::string weight_bytes(const std::string& path, std::size_t number = 0) {
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(path, {}));
  const graph::Tensor& tensor = graph->tensors.at(number);
  std::string bytes(graph::tensor_bytes(*graph, tensor), '\0');
  io::StorageReader(graph).read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(OnnxExternal, RangesOfAFile) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  const auto read = [&](const Entries& entries) {
    write_file(folder / "m.onnx", model_with(entries));
    return weight_bytes(folder / "m.onnx");
  };
  EXPECT_EQ(read({{"location", "w.data"}, {"offset", "3"}, {"length", "4"}}), "3456");
  EXPECT_EQ(read({{"location", "w.data"}, {"offset", "6"}}), "6789");
  EXPECT_EQ(read({{"location", "w.data"}}), "0123");
  EXPECT_EQ(read({{"location", "w.data"}, {"offset", "6"}, {"length", "0"}}), "6789");  // as none
  EXPECT_EQ(read({{"location", ".//w.data"}, {"basepath", "/x"}}), "0123");
}

TEST(OnnxExternal, IsWhatCountsBesideOtherValues) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123");
  write_file(folder / "m.onnx",
             weights_model({external_tensor("w", kUint8, {4}, {{"location", "w.data"}}).text(9, "abcd")}));
  EXPECT_EQ(weight_bytes(folder / "m.onnx"), "0123");  // as onnxruntime 1.32 and onnx 1.23 read it
  const graph::MetaGraph graph = importers::open_model(folder / "m.onnx", {});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "raw_data");
}

TEST(OnnxExternal, FilesInFoldersBelow) {
  TemporaryFolder folder;
  write_file(folder / "parts/w.data", "abcd");
  write_file(folder / "m.onnx", model_at("parts/w.data"));
  EXPECT_EQ(weight_bytes(folder / "m.onnx"), "abcd");
}

TEST(OnnxExternal, OneRangeIsOneStorage) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  const auto tensor_at = [](std::string_view name, const std::string& offset) {
    return external_tensor(name, kUint8, {4}, {{"location", "w.data"}, {"offset", offset}, {"length", "4"}});
  };
  write_file(folder / "m.onnx",
             weights_model({tensor_at("a", "2"), tensor_at("b", "2"), tensor_at("overlaps", "4")}));
  const graph::MetaGraph graph = importers::open_model(folder / "m.onnx", {});
  EXPECT_EQ(graph.storages.size(), 2u);
  EXPECT_EQ(graph::tied_groups(graph).size(), 1u);
  EXPECT_EQ(graph.files.size(), 2u);
  EXPECT_TRUE(graph.notes.empty());
}

TEST(OnnxExternal, AMissingFileLeavesShapes) {
  TemporaryFolder folder;
  write_file(folder / "m.onnx", model_at("w.data"));
  const graph::MetaGraph graph = importers::open_model(folder / "m.onnx", {});
  EXPECT_EQ(graph.missing, std::vector<std::string>{"w"});
  EXPECT_EQ(graph.tensors[0].shape, std::vector<std::uint64_t>{4});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::error);
  EXPECT_EQ(graph.notes[0].text, "'w.data' is missing; it held 1 tensor: 'w'");
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
}

TEST(OnnxExternal, OddEntriesAreNoted) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  write_file(folder / "m.onnx",
             model_with({{"location", "w.data"}, {"length", "6"}, {"checksum", "ab"}, {"__class__", "x"}}));
  const graph::MetaGraph graph = importers::open_model(folder / "m.onnx", {});
  ASSERT_EQ(graph.notes.size(), 3u);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "4 6");
  EXPECT_EQ(testing::facts(graph.notes[1].text), "'__class__'");
  EXPECT_EQ(graph.notes[2].severity, graph::Severity::info);
}

TEST(OnnxExternal, HostileEntriesGiveTheirError) {
  TemporaryFolder folder;
  fs::create_directories(folder / "model");
  write_file(folder / "secret", "secret");
  write_file(folder / "model/w.data", "0123456789");
  write_file(folder / "model/a..b", "0123456789");
  write_file(folder / "model/sub/x", "x");
  fs::create_symlink("../secret", folder / "model/link");
  fs::create_symlink("..", folder / "model/up");
  fs::create_symlink("/dev/zero", folder / "model/zero");
  fs::create_symlink("/proc/self/environ", folder / "model/environ");
  ASSERT_EQ(::mkfifo((folder / "model/fifo").c_str(), 0600), 0);
  const std::string model_path = folder / "model/m.onnx";
  const auto at = [](const std::string& location) { return model_at(location); };
  const auto with = [](Entries entries) {
    entries.insert(entries.begin(), {"location", "w.data"});
    return model_with(entries);
  };
  const std::vector<Hostile> table = {
      {"parent folder", at("../secret"), "malformed m.onnx 'secret'"},
      {"parent folder behind a folder", at("sub/../../secret"), "malformed m.onnx 'secret'"},
      {"parent folder inside", at("sub/../w.data"), "malformed m.onnx 'w.data'"},
      {"dots at the end", at("sub/.."), "malformed m.onnx '..'"},
      {"absolute", at("/etc/passwd"), "malformed m.onnx 'passwd'"},
      {"slashes", at("//etc/passwd"), "malformed m.onnx 'passwd'"},
      {"a drive", at("C:\\x"), "malformed m.onnx 'C:\\x'"},
      {"backslashes", at("..\\secret"), "malformed m.onnx '..\\secret'"},
      {"NUL", at(std::string("w.data\0.txt", 11)), "malformed m.onnx 'w.data\\x00.txt'"},
      {"empty", at(""), "malformed m.onnx 6 'w' ''"},
      {"a dot", at("."), "malformed m.onnx 6 'w' '.'"},
      {"in memory", at("#tensor"), "malformed m.onnx 6 'w' '#tensor'"},
      {"link to a file outside", at("link"), "unsupported link 'm.onnx' 'secret' >follow_links=on"},
      {"linked folder", at("up/secret"), "unsupported secret 'm.onnx' 'secret' >follow_links=on"},
      {"link to a device", at("zero"), "unsupported zero 'm.onnx' 'zero' >follow_links=on"},
      {"link into /proc", at("environ"), "unsupported environ 'm.onnx' 'environ' >follow_links=on"},
      {"fifo", at("fifo"), "unsupported fifo"},
      {"folder", at("sub"), "unsupported sub"},
      {"no location", model_with({{"offset", "0"}}), "malformed m.onnx 6 'w'"},
      {"location twice", with({{"location", "other"}}), "malformed m.onnx 6 'w' 'location'"},
      {"offset twice", with({{"offset", "0"}, {"offset", "4"}}), "malformed m.onnx 6 'w' 'offset'"},
      {"negative length", with({{"length", "-1"}}), "malformed m.onnx 6 'w' '-1' 2^64"},
      {"negative offset", with({{"offset", "-1"}}), "malformed m.onnx 6 'w' '-1' 2^64"},
      {"exponent", with({{"length", "1e3"}}), "malformed m.onnx 6 'w' '1e3' 2^64"},
      {"hexadecimal", with({{"offset", "0x4"}}), "malformed m.onnx 6 'w' '0x4' 2^64"},
      {"space", with({{"offset", " 4"}}), "malformed m.onnx 6 'w' ' 4' 2^64"},
      {"plus", with({{"offset", "+4"}}), "malformed m.onnx 6 'w' '+4' 2^64"},
      {"empty number", with({{"offset", ""}}), "malformed m.onnx 6 'w' '' 2^64"},
      {"over 64 bits", with({{"length", "99999999999999999999"}}),
       "malformed m.onnx 6 'w' '99999999999999999999' 2^64"},
      {"2^64-1", with({{"offset", "8"}, {"length", "18446744073709551615"}}),
       "malformed m.onnx 6 'w' 18446744073709551615 8 'w.data' 10"},
      {"a petabyte", with({{"length", "1125899906842624"}}),
       "malformed m.onnx 6 'w' 1125899906842624 0 'w.data' 10"},
      {"offset past the end", with({{"offset", "11"}}), "malformed m.onnx 6 'w' 11 'w.data' 10"},
      {"length past the end", with({{"offset", "7"}, {"length", "4"}}),
       "malformed m.onnx 6 'w' 4 7 'w.data' 10"},
      {"too few to the end", with({{"offset", "8"}}), "malformed m.onnx 6 'w' 4 4 U8 2"},
      {"length too small", with({{"length", "3"}}), "malformed m.onnx 6 'w' 4 4 U8 3"},
      {"strings", weights_model({external_tensor("w", kString, {1}, {{"location", "w.data"}})}),
       "malformed m.onnx 6 'w'"},
      {"product 2^64",
       weights_model({external_tensor("w", kUint8, {1ULL << 32, 1ULL << 32}, {{"location", "w.data"}})}),
       "malformed m.onnx 6 'w' 4294967296,4294967296 64"},
  };
  testing::expect_errors(table, [&](std::string_view bytes) {
    write_file(model_path, bytes);
    importers::open_model(model_path, {});
  });
  // what merely looks bad is a name
  write_file(model_path, at("a..b"));
  EXPECT_EQ(weight_bytes(model_path), "0123");
}

TEST(OnnxExternal, AFolderIsItsModel) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123");
  write_file(folder / "other.onnx", "nothing");
  write_file(folder / "model.onnx", model_at("w.data"));
  write_file(folder / "config.json", R"({"model_type":"llama"})");
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.files.size(), 2u);
  EXPECT_NE(graph::find_metadata(graph, graph::kConfigKey), nullptr);
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "'model.onnx' 'other.onnx'");
}

// A hard link cannot be told from a file: see onnx_external.cpp.
TEST(OnnxExternal, HardLinksAreFiles) {
  TemporaryFolder folder;
  write_file(folder / "blob", "0123");
  write_file(folder / "m.onnx", model_at("w.data"));
  fs::create_hard_link(folder / "blob", folder / "w.data");
  EXPECT_EQ(weight_bytes(folder / "m.onnx"), "0123");
}

TEST(OnnxExternal, LinksOfTheUserOpenWhenAsked) {
  TemporaryFolder folder;
  write_file(folder / "elsewhere/blob", "0123");
  write_file(folder / "model/m.onnx", model_at("w.data"));
  fs::create_symlink("../elsewhere/blob", folder / "model/w.data");
  EXPECT_EQ(opening_error(folder / "model/m.onnx"), "unsupported w.data 'm.onnx' 'blob' >follow_links=on");
  importers::ResolveOptions options;
  options.follow_links = true;
  EXPECT_EQ(importers::open_model(folder / "model/m.onnx", options).files.size(), 2u);
}

// hub/models--o--n/{blobs, snapshots/C/onnx/*}: links out of the snapshot into blobs/, through one more into
// the cache's shared blobs/, and nowhere else.
class OnnxHubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "hub/models--o--n/blobs/model", model_at("model.onnx_data"));
    write_file(folder_ / "hub/models--o--n/blobs/data", "0123");
    write_file(folder_ / "hub/blobs/shared", "4567");
    write_file(folder_ / "hub/models--other/blobs/data", "89ab");
    fs::create_directories(snapshot_);
    fs::create_symlink("../../../blobs/model", snapshot_ / "model.onnx");
  }
  void link_data(const std::string& target) {
    fs::remove(snapshot_ / "model.onnx_data");
    fs::create_symlink(target, snapshot_ / "model.onnx_data");
  }
  TemporaryFolder folder_;
  fs::path snapshot_ = folder_.path() / "hub/models--o--n/snapshots/c0ffee/onnx";
};

TEST_F(OnnxHubCache, LinksIntoTheRepositorysBlobsOpen) {
  link_data("../../../blobs/data");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "0123");
}

TEST_F(OnnxHubCache, LinksIntoTheSharedBlobsOpen) {
  link_data("../../../../blobs/shared");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "4567");
  // in two hops
  fs::create_symlink("../../blobs/shared", folder_.path() / "hub/models--o--n/blobs/hop");
  link_data("../../../blobs/hop");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "4567");
}

TEST_F(OnnxHubCache, NamesMayLeadIntoFoldersOfTheSnapshot) {
  link_data("../../../../blobs/shared");
  write_file(folder_ / "hub/models--o--n/blobs/root", model_at("onnx/model.onnx_data"));
  fs::create_symlink("../../blobs/root", snapshot_.parent_path() / "model.onnx");
  EXPECT_EQ(weight_bytes((snapshot_.parent_path() / "model.onnx").string()), "4567");
  // and a folder of it may be a link itself, as long as it ends in the cache's blobs
  fs::create_directory_symlink(folder_.path() / "hub/models--other", snapshot_.parent_path() / "other");
  write_file(folder_ / "hub/models--o--n/blobs/bad", model_at("other/blobs/data"));
  fs::create_symlink("../../blobs/bad", snapshot_.parent_path() / "bad.onnx");
  EXPECT_EQ(opening_error((snapshot_.parent_path() / "bad.onnx").string()),
            "unsupported data 'bad.onnx' 'data' >follow_links=on");
}

TEST_F(OnnxHubCache, OtherRepositoriesStayClosed) {
  link_data("../../../../models--other/blobs/data");
  EXPECT_EQ(opening_error((snapshot_ / "model.onnx").string()),
            "unsupported model.onnx_data 'model.onnx' 'data' >follow_links=on");
}

TEST_F(OnnxHubCache, TheLinkDecidesAndNotItsTarget) {
  // beside the blob of the model lies a file of the right name that is not meant
  write_file(folder_ / "hub/models--o--n/blobs/model.onnx_data", "nope");
  link_data("../../../blobs/data");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "0123");
}

}  // namespace

}  // namespace loadline::tests
