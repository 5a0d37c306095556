// PyTorch checkpoints, zip and legacy: goldens, prefixes, values, and the hostile tables.
#include "core/base/error.h"
#include "importers/formats.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/hostile.h"
#include "tests/support/pickles.h"
#include "tests/support/samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using namespace testing::pickle;
using testing::Hostile;
using testing::import_bytes;
using testing::pattern;
using testing::Records;
using testing::tensor_named;
using testing::torch_zip;

const Records kOne = {{"data/0", pattern(16)}};

// A zip with one storage of 4 floats, whose pickle is `value`.
std::string file_of(const std::string& value, const Records& records = kOne) {
  return torch_zip(stream(value), records);
}
MetaGraph open(const std::string& value, const Records& records = kOne) {
  return import_bytes("m.pt", file_of(value, records));
}
std::string floats(std::int64_t numel = 4) { return storage("0", "FloatStorage", numel); }
std::string rebuild(std::string_view function, std::initializer_list<std::string> arguments) {
  return call(global("torch._utils", function), arguments);
}

TEST(Torch, SamplesEqualTheirGoldens) {
  testing::expect_golden("torch_sample.json", graph_json(import_bytes("m.pt", testing::sample_torch())));
  testing::expect_golden("torch_legacy_sample.json",
                         graph_json(import_bytes("m.pt", testing::sample_torch_legacy())));
}

TEST(Torch, EveryPrefixIsAClearError) {
  testing::expect_prefixes_refused("m.pt", testing::sample_torch());
  testing::expect_prefixes_refused("m.pt", testing::sample_torch_legacy());
}

TEST(Torch, EveryFlippedByteIsSurvived) {
  testing::expect_flips_survived("m.pt", testing::sample_torch_legacy(),
                                 testing::sample_torch_legacy().size());
  testing::expect_flips_survived("m.pt", testing::sample_torch(), testing::sample_torch().size());
}

TEST(Torch, APlainTensorAndListsHaveNames) {
  EXPECT_EQ(open(tensor(floats(), 0, {4}, {1})).tensors[0].name, "tensor");
  const MetaGraph graph = open(list({tensor(floats(), 0, {4}, {1}), tuple({tensor(floats(), 2, {2}, {1})})}));
  EXPECT_EQ(tensor_named(graph, "0").offset, 0u);
  EXPECT_EQ(tensor_named(graph, "1.0").offset, 8u);
  EXPECT_EQ(graph.storages.size(), 1u);
}

TEST(Torch, KeysOfEveryKindGiveNames) {
  const std::string t = tensor(floats(), 0, {4}, {1});
  const MetaGraph graph = open("}(" + number(7) + t + "\x88" + t + "N" + t + real(0.5) + t +
                               tuple({number(1), text("b")}) + t + global("torch", "float32") + t + "u");
  for (const char* name : {"7", "True", "None", "0.5", "[1, b]", "torch.float32"})
    EXPECT_NO_THROW(tensor_named(graph, name)) << name;
}

TEST(Torch, BigEndianFilesAreSwapped) {
  const std::string value = dict({{"f", tensor(storage("0", "FloatStorage", 4), 1, {3}, {1})},
                                  {"c", tensor(storage("1", "ComplexDoubleStorage", 1), 0, {1}, {1})},
                                  {"b", tensor(storage("2", "ByteStorage", 3), 0, {3}, {1})}});
  Records records = {
      {"byteorder", "big"}, {"data/0", pattern(16)}, {"data/1", pattern(16)}, {"data/2", pattern(3)}};
  const MetaGraph graph = open(value, records);
  EXPECT_EQ(graph.storages[0].encoding, Encoding::byte_swapped);
  EXPECT_EQ(graph.storages[0].unit, 4);
  EXPECT_EQ(graph.storages[1].unit, 8);
  EXPECT_EQ(graph.storages[2].encoding, Encoding::plain);
  // of an untyped storage torch itself swaps nothing
  const std::string untyped = tuple({text("storage"), global("torch.storage", "UntypedStorage"), text("0"),
                                     text("cpu"), number(16)}) +
                              "Q";
  const MetaGraph unsure =
      open(tensor_v3(untyped, 0, {8}, {1}, "uint16"), {{"byteorder", "big"}, {"data/0", pattern(16)}});
  EXPECT_TRUE(testing::has_note(unsure, Severity::error, "order of their numbers' bytes"));
}

TEST(Torch, WhatMeansNothingHereIsNoted) {
  const MetaGraph conjugated = open(
      rebuild("_rebuild_tensor_v2", {storage("0", "ComplexFloatStorage", 2), number(0), tuple({number(2)}),
                                     tuple({number(1)}), "\x89", "}", dict({{"conj", "\x88"}})}));
  EXPECT_TRUE(testing::has_note(conjugated, Severity::error, "conjugated"));
  const MetaGraph opaque =
      open(dict({{"w", tensor_v3(floats(), 0, {4}, {1}, "complex32")},
                 {"n", global("numpy.core.multiarray", "scalar") + tuple({text("x")}) + "R"}}));
  EXPECT_EQ(opaque.tensors[0].dtype, DType::opaque);
  EXPECT_TRUE(testing::has_note(opaque, Severity::warning, "'numpy.core.multiarray.scalar': left out"));
  EXPECT_TRUE(testing::has_note(open(dict({}), kOne), Severity::warning, "1 storage that no tensor uses"));
}

TEST(Torch, EmptyTensorsMayBeginAnywhere) {
  const MetaGraph graph =
      open(dict({{"a", tensor(floats(), 4, {0, 7}, {7, 1})}, {"b", tensor(floats(), 900, {0}, {1})}}));
  EXPECT_EQ(graph.tensors[0].offset, 16u);
  EXPECT_EQ(graph.tensors[1].offset, 16u);
  EXPECT_TRUE(graph.tensors[0].strides.empty());
}

TEST(Torch, MetadataCannotStandInForTheConfig) {
  const MetaGraph graph = open(dict({{"config.json", text("{}")}, {"a", number(1)}, {"a", number(2)}}));
  EXPECT_EQ(find_metadata(graph, kConfigKey), nullptr);
  EXPECT_EQ(graph.metadata.size(), 1u);
}

// A list that holds itself, as the arguments of a constructor inside a constructor.
TEST(Torch, ConstructorsInsideEachOtherEnd) {
  const std::string type = global("torch._tensor", "_rebuild_from_type_v2");
  const std::string inner = global("torch._utils", "_rebuild_from_type_v2");
  const std::string cycle = "]q\1(" + inner + "Nh\1Ne";
  EXPECT_NE(testing::error_of([&] { open(type + "(" + inner + "N" + cycle + "NtR", {}); }), "");
}

TEST(Torch, OnlySizesAreSizes) {
  const std::string thing = global("__main__", "Thing") + ")R";
  const std::string view =
      global("torch._utils", "_rebuild_tensor_v2") + "(" + floats() + number(0) + thing + ")\x89}tR";
  EXPECT_NE(testing::error_of([&] { open(dict({{"w", view}})); }).find("is no tuple"), std::string::npos);
}

TEST(Torch, OtherMembersAreNeverRead) {
  const std::string evil = stream(call(global("os", "system"), {text("id")}));
  Records records = kOne;
  for (const char* name : {"config.p", "evil.pkl", "data/0.txt", "code.py"}) records.emplace_back(name, evil);
  EXPECT_EQ(open(dict({{"w", tensor(floats(), 0, {4}, {1})}}), records).tensors.size(), 1u);
}

TEST(Torch, RepeatedTextsDoNotFillTheMemory) {
  std::string value = "}(" + text("a") + text(std::string(60'000, 'x')) + "q\1";
  for (int i = 0; i < 5000; ++i) value += text(fmt::format("{}", i)) + "h\1";
  const MetaGraph graph = open(value + "u");
  EXPECT_LT(graph.metadata.size(), 100u);
  EXPECT_TRUE(testing::has_note(graph, Severity::info, "texts beyond 4194304 bytes"));
}

TEST(Torch, OldContainersAreRefusedByName) {
  std::string tar(1024, '\0');
  tar.replace(0, 8, "sys_info").replace(257, 5, "ustar");
  testing::expect_hostile(
      "m.pt", {{"PYTORCH1", "PYTORCH1" + std::string(100, '\0'), "a PYTORCH1 container"},
               {"tar", tar, "a tar archive"},
               {"TorchScript", torch_zip(stream("}"), {{"constants.pkl", stream(")")}}), "TorchScript"},
               {"7z", "7z\xBC\xAF\x27\x1C" + std::string(100, '\0'), "not a format"},
               {"a bare pickle", stream("}"), "magic number"},
               {"a zip of something else", testing::zip_bytes({{.name = "x/y.txt", .content = "z"}}),
                "without 'x/data.pkl'"}});
}

std::vector<Hostile> container_table() {
  const std::string value = dict({{"w", tensor(floats(), 0, {4}, {1})}});
  const auto changed = [&](auto change) {
    std::vector<testing::ZipSpec> members = testing::torch_members(
        stream(value), {{"byteorder", "little"}, {"data/0", pattern(16)}, {"version", "3\n"}});
    change(members);
    return testing::zip_bytes(members, {.zip64 = true});
  };
  using Members = std::vector<testing::ZipSpec>;
  return {
      {"no storage", file_of(value, {}), "names a storage 'data/0', which the archive does not hold"},
      {"storage too short", file_of(value, {{"data/0", pattern(15)}}), "has 15 bytes, the pickle says 16"},
      {"storage too long", file_of(value, {{"data/0", pattern(17)}}), "has 17 bytes, the pickle says 16"},
      {"compressed storage", changed([](Members& m) { m[2].deflate = true; }), "is compressed"},
      {"bad checksum of data.pkl", changed([](Members& m) { m[0].crc = 5; }), "has checksum"},
      {"another local name", changed([](Members& m) { m[2].local_name = "model/data/1"; }), "another name"},
      {"encrypted", changed([](Members& m) { m[0].flags = 1; }), "encrypted"},
      {"flag 5", changed([](Members& m) { m[0].flags = 1 << 5; }), "flags"},
      {"another root", changed([](Members& m) { m[2].name = "other/data/0"; }), "lies outside 'model/'"},
      {"two data.pkl", changed([](Members& m) { m[1].name = "model/data.pkl"; }), "occurs twice"},
      {"two data.pkl but for case", changed([](Members& m) { m[1].name = "model/Data.PKL"; }),
       "occurs twice"},
      {"traversal", changed([](Members& m) { m[1].name = "model/../../x"; }), "no clean relative path"},
      {"odd byte order", changed([](Members& m) { m[1].content = "middle"; }), "says 'middle'"},
      {"byte order of 1 MB", changed([](Members& m) { m[1].content = std::string(1 << 20, 'l'); }),
       "the limit is 64"},
      {"version 11", changed([](Members& m) { m[3].content = "11\n"; }), "version 11"},
      {"version 0", changed([](Members& m) { m[3].content = "0\n"; }), "is no version"},
      {"version text", changed([](Members& m) { m[3].content = "3 or so"; }), "is no version"},
      {"bytes after the pickle", torch_zip(stream(value) + "x", kOne), "1 bytes follow the pickle"},
      {"a second pickle", torch_zip(stream(value) + stream(global("os", "system")), kOne),
       "bytes follow the pickle"},
      {"code in it", file_of(dict({{"w", call(global("posix", "system"), {text("id")})}})),
       "names 'posix.system'"},
      {"7z after the payload", file_of(value) + "7z\xBC\xAF\x27\x1C", "no end record"},
      {"a deflated pickle that is too large", changed([](Members& m) {
         m[0].deflate = true;
         m[0].bytes = 0x7FFFFFFF;
       }),
       "claims 2147483647 bytes out of"},
  };
}

std::vector<Hostile> storage_table() {
  const auto of_storage = [](const std::string& id) { return file_of(tensor(id + "Q", 0, {4}, {1})); };
  const auto id = [&](const std::string& type, const std::string& key, const std::string& numel) {
    return of_storage(tuple({text("storage"), type, key, text("cpu"), numel}));
  };
  const std::string type = global("torch", "FloatStorage");
  return {
      {"numel too large", id(type, text("0"), number(5)), "has 16 bytes, the pickle says 20"},
      {"numel too small", id(type, text("0"), number(3)), "has 16 bytes, the pickle says 12"},
      {"numel 2^62", id(type, text("0"), number(std::int64_t{1} << 62)), "overflow 64 bits"},
      {"negative numel", id(type, text("0"), number(-1)), "numel is no whole number"},
      {"numel is a text", id(type, text("0"), text("4")), "numel is no whole number"},
      {"key is None", id(type, "N", number(4)), "key is no string"},
      {"key is a path", id(type, text("../data.pkl"), number(4)),
       "'data/../data.pkl', which the archive does not"},
      {"unknown class", id(global("torch", "StringStorage"), text("0"), number(4)), "'torch.StringStorage'"},
      {"class of another module", id(global("evil", "FloatStorage"), text("0"), number(4)),
       "'evil.FloatStorage'"},
      {"class is a text", id(text("torch.FloatStorage"), text("0"), number(4)), "a storage of class"},
      {"four values", of_storage(tuple({text("storage"), type, text("0"), text("cpu")})), "4 values"},
      {"empty id", of_storage(")"), "0 values"},
      {"another kind", of_storage(tuple({text("file"), type, text("0"), text("cpu"), number(4)})),
       "begin with 'file'"},
      {"a whole module",
       of_storage(tuple({text("module"), global("my", "Net"), text("net.py"), text("code")})),
       "a whole pickled model of class 'my.Net'"},
      {"two sizes", file_of(tuple({tensor(floats(4), 0, {4}, {1}), tensor(floats(3), 0, {3}, {1})})),
       "4 elements of F32 once, 3 of F32"},
      {"two types",
       file_of(tuple({tensor(floats(4), 0, {4}, {1}), tensor(storage("0", "IntStorage", 4), 0, {4}, {1})})),
       "4 of I32 another time"},
  };
}

std::vector<Hostile> tensor_table() {
  const auto of = [](std::int64_t offset, std::initializer_list<std::int64_t> size,
                     std::initializer_list<std::int64_t> stride) {
    return file_of(tensor(floats(), offset, size, stride));
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  return {
      {"one element too many", of(0, {5}, {1}), "needs 20 bytes for [5] with strides [1] from element 0"},
      {"offset past the end", of(1, {4}, {1}), "needs 20 bytes"},
      {"offset 2^62", of(huge, {1}, {1}), "needs more than 2^64 bytes"},
      {"offset 2^63-1", of(std::numeric_limits<std::int64_t>::max(), {1}, {1}), "needs more than 2^64 bytes"},
      {"negative offset", of(-1, {1}, {1}), "storage offset is no whole number"},
      {"negative size", of(0, {-1}, {1}), "its size is no whole number"},
      {"negative stride", of(3, {4}, {-1}), "its stride is no whole number"},
      {"stride past the end", of(0, {2}, {4}), "needs 20 bytes"},
      {"stride 2^62", of(0, {3}, {huge}), "needs more than 2^64 bytes"},
      {"stride that wraps to 0", of(0, {5, 5}, {huge, huge}), "needs more than 2^64 bytes"},
      {"size product 2^64", of(0, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {0, 0}),
       "overflows 64 bits"},
      {"size product behind a zero", of(0, {huge, 0, huge}, {0, 0, 0}), "overflows 64 bits"},
      {"expanded over 2^64 bytes", of(0, {huge}, {0}), "overflows 64 bits"},
      {"fewer strides", of(0, {2, 2}, {1}), "1 strides for rank 2"},
      {"65 dimensions",
       file_of(rebuild("_rebuild_tensor_v2",
                       {floats(), number(0), "(" + testing::repeat("K\1", 65) + "t", ")", "\x89", "}"})),
       "65 dimensions"},
      {"size is a number",
       file_of(rebuild("_rebuild_tensor_v2", {floats(), number(0), number(4), ")", "\x89", "}"})),
       "its size is no tuple"},
      {"three arguments", file_of(rebuild("_rebuild_tensor_v2", {floats(), number(0), ")"})),
       "from 3 values"},
      {"no storage", file_of(rebuild("_rebuild_tensor_v2", {text("x"), number(0), ")", ")", "\x89", "}"})),
       "from what is no storage"},
      {"v3 without its dtype",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}"})),
       "_rebuild_tensor_v3 with 6 values"},
      {"v3 with a text",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}", text("f")})),
       "is no dtype of torch"},
      {"v3 wider than its storage", file_of(tensor_v3(floats(), 0, {3}, {1}, "float64")), "needs 24 bytes"},
      {"strided f4", file_of(tensor_v3(floats(), 0, {2, 2}, {1, 2}, "float4_e2m1fn_x2")),
       "a strided view of packed"},
      {"an unknown rebuild function", file_of(rebuild("_rebuild_new_kind", {floats()})),
       "'torch._utils._rebuild_new_kind'"},
      {"from_type_v2 of code",
       file_of(call(global("torch._tensor", "_rebuild_from_type_v2"),
                    {global("evil", "run"), global("torch", "Tensor"), tuple({floats()}), "}"})),
       "is made by 'evil.run'"},
      {"a tensor in a foreign object",
       file_of(dict({{"net", global("__main__", "Net") + ")\x81" +
                                 dict({{"w", tensor(floats(), 0, {4}, {1})}}) + "b"}})),
       "holds tensors inside an object of class '__main__.Net'"},
      {"one name twice",
       file_of(dict({{"w", tensor(floats(), 0, {4}, {1})}, {"w", tensor(floats(), 0, {2}, {1})}})),
       "the name occurs twice"},
      {"one name by two paths",
       file_of(dict(
           {{"a.b", tensor(floats(), 0, {4}, {1})}, {"a", dict({{"b", tensor(floats(), 0, {2}, {1})}})}})),
       "the name occurs twice"},
  };
}

// Values that lead to each other without end.
std::vector<Hostile> sharing_table() {
  std::string doubling = list({tensor(floats(), 0, {4}, {1})}) + "q" + std::string(1, '\0');
  for (char i = 0; i < 60; ++i)
    doubling = "](" + doubling + "h" + std::string(1, i) + "eq" + std::string(1, static_cast<char>(i + 1));
  std::string cycle =
      "]q" + std::string(1, '\0') + "(h" + std::string(1, '\0') + tensor(floats(), 0, {4}, {1}) + "e";
  const std::string long_key(60'000, 'k');
  const auto names_of = [&](const std::string& value) {
    std::string items;
    for (int i = 0; i < 20'000; ++i) items += text(fmt::format("{}", i)) + value;
    return file_of("}(" + text(long_key) + "}(" + items + "uu");
  };
  return {
      {"a list that holds itself", file_of(cycle), "nested more than 500 deep"},
      {"lists that double 60 times", file_of(doubling), "more than 16 bytes for each byte of the pickle"},
      {"one tensor under 200,000 names",
       file_of("](" + tensor(floats(), 0, {4}, {1}) + std::string("q\0", 2) +
               testing::repeat(std::string("h\0", 2), 200'000) + "e"),
       "more than 16 bytes for each byte of the pickle"},
      {"keys of 60 kB along a path", file_of(dict({{long_key, dict({{long_key, number(1)}})}})),
       "a name of 120001"},
      {"kept names of 1 GB together", names_of(number(1)), "more than 16 bytes for each byte of the pickle"},
      {"names of 1 GB together", names_of("N"), "names of more than 134217728 bytes"},
  };
}

TEST(Torch, HostileFilesGiveTheirError) {
  for (const auto& table : {container_table(), storage_table(), tensor_table(), sharing_table()})
    testing::expect_hostile("m.pt", table);
}

TEST(Torch, PackedFourBitShapesDoubleWithoutWrapping) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(testing::import_error(
                "m.pt", file_of(tensor_v3(floats(), 0, {most, 0, 4}, {1, 1, 1}, "float4_e2m1fn_x2"))),
            "");
  EXPECT_EQ(open(tensor_v3(floats(), 0, {2, 4}, {4, 1}, "float4_e2m1fn_x2")).tensors[0].shape,
            (std::vector<std::uint64_t>{2, 8}));
}

std::string legacy(const std::string& value, const std::string& keys, const std::string& payload) {
  return testing::legacy_preamble() + stream(value) + stream(keys) + payload;
}

TEST(TorchLegacy, HostileFilesGiveTheirError) {
  const auto at = [](const std::string& view = "N") {
    return tensor(legacy_storage("k", "FloatStorage", 4, view), 0, {2}, {1});
  };
  const std::string keys = list({text("k")});
  const std::string payload = testing::little_endian(4, 8) + pattern(16);
  const std::string preamble = testing::legacy_preamble();
  const std::string magic = preamble.substr(0, 15);
  const auto window = [](std::int64_t offset, std::int64_t size) {
    return tuple({text("v"), number(offset), number(size)});
  };
  testing::expect_hostile(
      "m.pt",
      {{"another protocol version", magic + stream(number(7)) + stream("}"),
        "protocol version other than 1001"},
       {"magic goes on", magic.substr(0, 14) + "N.", "not all of its pickle"},
       {"no machine", magic + stream("M\xe9\x03") + stream("N"), "third pickle is no dict"},
       {"code in the machine", magic + stream("M\xe9\x03") + stream(global("os", "system")),
        "names 'os.system'"},
       {"code in the keys", legacy(at(), global("os", "system"), payload), "names 'os.system'"},
       {"keys are no list", legacy(at(), "}", payload), "is no list"},
       {"key not listed", legacy(at(), "]", ""), "does not list storage 'k'"},
       {"key twice", legacy(at(), list({text("k"), text("k")}), payload + payload),
        "lists storage 'k' twice"},
       {"key of no tensor", legacy(at(), list({text("x")}), payload), "'x' that the pickle does not use"},
       {"numel differs", legacy(at(), keys, testing::little_endian(5, 8) + pattern(20)),
        "5 elements here, the pickle says 4"},
       {"numel negative", legacy(at(), keys, std::string(8, '\xFF') + pattern(16)), "-1 elements here"},
       {"payload cut", legacy(at(), keys, payload.substr(0, 20)), "takes 16 bytes, 12 follow"},
       {"no payload", legacy(at(), keys, ""), "number of elements"},
       {"five values in an id", legacy(tensor(storage("k", "FloatStorage", 4), 0, {2}, {1}), keys, payload),
        "5 values"},
       {"a whole model",
        legacy(tuple({text("module"), global("my", "Net"), text("a"), text("b")}) + "Q", keys, payload),
        "a whole pickled model of class 'my.Net'"},
       {"a whole model as torch wrote it",
        legacy(tuple({text("module"), global("my", "Net"), text("a"), text("b")}) + "Q)\x81", keys, payload),
        "a whole pickled model of class 'my.Net'"},
       {"view past its storage", legacy(at(window(3, 2)), keys, payload), "a view of 2 elements at 3"},
       {"view of 2^63-1", legacy(at(window(std::numeric_limits<std::int64_t>::max(), 2)), keys, payload),
        "a view of 2 elements"},
       {"view with a text", legacy(at(text("v")), keys, payload), "no tuple of three"},
       {"tensor past its view", legacy(at(window(1, 1)), keys, payload), "its storage has 4"},
       {"storage of 2^62 floats",
        legacy(tensor(legacy_storage("k", "FloatStorage", std::int64_t{1} << 62), 0, {2}, {1}), keys,
               payload),
        "overflow 64 bits"}});
}

TEST(TorchLegacy, TrailingBytesOpenButMayNotBeUsed) {
  const MetaGraph graph = import_bytes("m.pt", testing::sample_torch_legacy() + "more");
  EXPECT_TRUE(testing::has_note(graph, Severity::error, "4 bytes after the last storage"));
}

TEST(Torch, ManyTensorsStayLinear) {
  std::string items = "}(";
  Records records;
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = fmt::format("{}", i);
    items += text("layers." + key) + tensor(storage(key, "ByteStorage", 1), 0, {1}, {1});
    records.emplace_back("data/" + key, "x");
  }
  EXPECT_EQ(open(items + "u", records).tensors.size(), 50'000u);
}

}  // namespace
}  // namespace loadline
