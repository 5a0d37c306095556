// PyTorch: checkpoints, their pickles, and exported programs.

#include "core/io/system_memory.h"
#include "importers/formats.h"
#include "importers/wire/pickle.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/samples.h"
#include "tests/support/sanitizers.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- PyTorch checkpoints, zip and legacy: goldens, prefixes, values, and the hostile tables.

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
graph::MetaGraph open(const std::string& value, const Records& records = kOne) {
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
  const graph::MetaGraph graph =
      open(list({tensor(floats(), 0, {4}, {1}), tuple({tensor(floats(), 2, {2}, {1})})}));
  EXPECT_EQ(tensor_named(graph, "0").offset, 0u);
  EXPECT_EQ(tensor_named(graph, "1.0").offset, 8u);
  EXPECT_EQ(graph.storages.size(), 1u);
}

TEST(Torch, KeysOfEveryKindGiveNames) {
  const std::string t = tensor(floats(), 0, {4}, {1});
  const graph::MetaGraph graph =
      open("}(" + number(7) + t + "\x88" + t + "N" + t + real(0.5) + t + tuple({number(1), text("b")}) + t +
           global("torch", "float32") + t + "u");
  for (const char* name : {"7", "True", "None", "0.5", "[1, b]", "torch.float32"})
    EXPECT_NO_THROW(tensor_named(graph, name)) << name;
}

TEST(Torch, BigEndianFilesAreSwapped) {
  const std::string value = dict({{"f", tensor(storage("0", "FloatStorage", 4), 1, {3}, {1})},
                                  {"c", tensor(storage("1", "ComplexDoubleStorage", 1), 0, {1}, {1})},
                                  {"b", tensor(storage("2", "ByteStorage", 3), 0, {3}, {1})}});
  Records records = {
      {"byteorder", "big"}, {"data/0", pattern(16)}, {"data/1", pattern(16)}, {"data/2", pattern(3)}};
  const graph::MetaGraph graph = open(value, records);
  EXPECT_EQ(graph.storages[0].encoding, graph::Encoding::byte_swapped);
  EXPECT_EQ(graph.storages[0].unit, 4);
  EXPECT_EQ(graph.storages[1].unit, 8);
  EXPECT_EQ(graph.storages[2].encoding, graph::Encoding::plain);
  // of an untyped storage torch itself swaps nothing
  const std::string untyped = tuple({text("storage"), global("torch.storage", "UntypedStorage"), text("0"),
                                     text("cpu"), number(16)}) +
                              "Q";
  const graph::MetaGraph unsure =
      open(tensor_v3(untyped, 0, {8}, {1}, "uint16"), {{"byteorder", "big"}, {"data/0", pattern(16)}});
  EXPECT_TRUE(testing::has_note(unsure, graph::Severity::error, "order of their numbers' bytes"));
}

TEST(Torch, WhatMeansNothingHereIsNoted) {
  const graph::MetaGraph conjugated = open(
      rebuild("_rebuild_tensor_v2", {storage("0", "ComplexFloatStorage", 2), number(0), tuple({number(2)}),
                                     tuple({number(1)}), "\x89", "}", dict({{"conj", "\x88"}})}));
  EXPECT_TRUE(testing::has_note(conjugated, graph::Severity::error, "conjugated"));
  const graph::MetaGraph opaque =
      open(dict({{"w", tensor_v3(floats(), 0, {4}, {1}, "complex32")},
                 {"n", global("numpy.core.multiarray", "scalar") + tuple({text("x")}) + "R"}}));
  EXPECT_EQ(opaque.tensors[0].dtype, graph::DType::opaque);
  EXPECT_TRUE(
      testing::has_note(opaque, graph::Severity::warning, "'numpy.core.multiarray.scalar': left out"));
  EXPECT_TRUE(
      testing::has_note(open(dict({}), kOne), graph::Severity::warning, "1 storage that no tensor uses"));
}

TEST(Torch, EmptyTensorsMayBeginAnywhere) {
  const graph::MetaGraph graph =
      open(dict({{"a", tensor(floats(), 4, {0, 7}, {7, 1})}, {"b", tensor(floats(), 900, {0}, {1})}}));
  EXPECT_EQ(graph.tensors[0].offset, 16u);
  EXPECT_EQ(graph.tensors[1].offset, 16u);
  EXPECT_TRUE(graph.tensors[0].strides.empty());
}

TEST(Torch, MetadataCannotStandInForTheConfig) {
  const graph::MetaGraph graph =
      open(dict({{"config.json", text("{}")}, {"a", number(1)}, {"a", number(2)}}));
  EXPECT_EQ(graph::find_metadata(graph, graph::kConfigKey), nullptr);
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
  EXPECT_EQ(testing::facts_of([&] { open(dict({{"w", view}})); }), "malformed m.pt 'w'");
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
  const graph::MetaGraph graph = open(value + "u");
  EXPECT_LT(graph.metadata.size(), 100u);
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::info, "texts beyond 4194304 bytes"));
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
      {"traversal", changed([](Members& m) { m[1].name = "model/../../x"; }), "not a clean relative path"},
      {"odd byte order", changed([](Members& m) { m[1].content = "middle"; }), "says 'middle'"},
      {"byte order of 1 MB", changed([](Members& m) { m[1].content = std::string(1 << 20, 'l'); }),
       "the limit is 64"},
      {"version 11", changed([](Members& m) { m[3].content = "11\n"; }), "version 11"},
      {"version 0", changed([](Members& m) { m[3].content = "0\n"; }), "is not a version"},
      {"version text", changed([](Members& m) { m[3].content = "3 or so"; }), "is not a version"},
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
      {"negative numel", id(type, text("0"), number(-1)), "numel is not a whole number"},
      {"numel is a text", id(type, text("0"), text("4")), "numel is not a whole number"},
      {"key is None", id(type, "N", number(4)), "key is not a string"},
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
      {"negative offset", of(-1, {1}, {1}), "storage offset is not a whole number"},
      {"negative size", of(0, {-1}, {1}), "its size is not a whole number"},
      {"negative stride", of(3, {4}, {-1}), "its stride is not a whole number"},
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
       "its size is not a tuple"},
      {"three arguments", file_of(rebuild("_rebuild_tensor_v2", {floats(), number(0), ")"})),
       "from 3 values"},
      {"no storage", file_of(rebuild("_rebuild_tensor_v2", {text("x"), number(0), ")", ")", "\x89", "}"})),
       "from a value that is not a storage"},
      {"v3 without its dtype",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}"})),
       "_rebuild_tensor_v3 with 6 values"},
      {"v3 with a text",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}", text("f")})),
       "is not a dtype of torch"},
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
       {"no machine", magic + stream("M\xe9\x03") + stream("N"), "third pickle is not a dict"},
       {"code in the machine", magic + stream("M\xe9\x03") + stream(global("os", "system")),
        "names 'os.system'"},
       {"code in the keys", legacy(at(), global("os", "system"), payload), "names 'os.system'"},
       {"keys are not list", legacy(at(), "}", payload), "is not a list"},
       {"key not listed", legacy(at(), "]", ""), "does not list storage 'k'"},
       {"key twice", legacy(at(), list({text("k"), text("k")}), payload + payload),
        "lists storage 'k' twice"},
       {"key of no tensor", legacy(at(), list({text("x")}), payload), "'x' that the pickle does not use"},
       {"numel differs", legacy(at(), keys, testing::little_endian(5, 8) + pattern(20)),
        "5 elements here, the pickle says 4"},
       {"numel negative", legacy(at(), keys, std::string(8, '\xFF') + pattern(16)), "-1 elements here"},
       {"payload cut", legacy(at(), keys, payload.substr(0, 20)), "needs 16 bytes, 12 are left"},
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
       {"view with a text", legacy(at(text("v")), keys, payload), "not a tuple of three"},
       {"tensor past its view", legacy(at(window(1, 1)), keys, payload), "its storage has 4"},
       {"storage of 2^62 floats",
        legacy(tensor(legacy_storage("k", "FloatStorage", std::int64_t{1} << 62), 0, {2}, {1}), keys,
               payload),
        "overflow 64 bits"}});
}

TEST(TorchLegacy, TrailingBytesOpenButMayNotBeUsed) {
  const graph::MetaGraph graph = import_bytes("m.pt", testing::sample_torch_legacy() + "more");
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, "4 bytes after the last storage"));
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

// --- The pickle evaluator on its own: values, sharing, and what it refuses.

namespace {

using Kind = importers::PickleValue::Kind;

importers::Pickle evaluate(const std::string& bytes) {
  const io::SourceFile file = io::SourceFile::from_memory("p", testing::as_bytes(bytes));
  io::Cursor cursor(file);
  return importers::Pickle(cursor);
}

TEST(PickleValues, Scalars) {
  const importers::Pickle pickle =
      evaluate(stream(tuple({"N", "\x88", "\x89", number(7), "M\xFF\xFF", "J\xFE\xFF\xFF\xFF", number(-5),
                             std::string("\x8A\x00", 2), real(0.25), text("x"), std::string("U\x02yz"),
                             global("__builtin__", "unicode")})));
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 12u);
  EXPECT_TRUE(items[0].is(Kind::none));
  EXPECT_EQ(items[1].number(), 1u);
  EXPECT_EQ(items[2].number(), 0u);
  EXPECT_EQ(pickle.integer(items[3]), 7);
  EXPECT_EQ(pickle.integer(items[4]), 65535);
  EXPECT_EQ(pickle.integer(items[5]), -2);
  EXPECT_EQ(pickle.integer(items[6]), -5);
  EXPECT_EQ(pickle.integer(items[7]), 0);
  EXPECT_EQ(pickle.real(items[8]), 0.25);
  EXPECT_EQ(pickle.text(items[9]), "x");
  EXPECT_EQ(pickle.text(items[10]), "yz");
  EXPECT_TRUE(pickle.is_global(items[11], "builtins.str"));
}

TEST(PickleValues, LongNumbersFitOrDoNot) {
  const auto kind = [](const std::string& digits) -> std::string {
    const importers::Pickle pickle =
        evaluate(stream("\x8A" + std::string(1, static_cast<char>(digits.size())) + digits));
    return pickle.root().is(Kind::integer) ? std::to_string(pickle.integer(pickle.root())) : "too large";
  };
  EXPECT_EQ(kind(std::string(7, '\xFF') + "\x7F"), std::to_string(0x7FFFFFFFFFFFFFFF));
  EXPECT_EQ(kind(std::string(8, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(8, '\xFF') + std::string(1, '\0')), "too large");  // 2^64-1
  EXPECT_EQ(kind(std::string(16, '\xFF')), "-1");
  EXPECT_EQ(kind(std::string(7, '\0') + "\x80" + std::string(1, '\0')), "too large");  // 2^63
}

TEST(PickleValues, NamesOfPython2AreTodays) {
  const std::pair<std::string, std::string_view> names[] = {
      {global("__builtin__", "long"), "builtins.int"},
      {global("__builtin__", "xrange"), "builtins.range"},
      {global("copy_reg", "_reconstructor"), "copyreg._reconstructor"}};
  for (const auto& [opcode, name] : names) {
    const importers::Pickle pickle = evaluate(stream(opcode));
    EXPECT_EQ(pickle.text(pickle.root()), name);
  }
}

TEST(PickleValues, ContainersAreShared) {
  // a list that holds itself, and twice a dict
  const importers::Pickle pickle = evaluate(stream("]q" + std::string(1, '\0') + "(h" + std::string(1, '\0') +
                                                   "}q\x01h\x01"
                                                   "e"));
  const importers::PickleValue root = pickle.root();
  const auto items = pickle.items(root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].number(), root.number());
  EXPECT_EQ(items[1].number(), items[2].number());
}

TEST(PickleValues, DictsOfEveryMaking) {
  const std::string pairs = list({tuple({text("a"), number(1)}), list({text("b"), number(2)})});
  const importers::Pickle pickle =
      evaluate(stream(tuple({dict({{"a", number(1)}}), call(global("collections", "OrderedDict"), {pairs}),
                             call(global("collections", "Counter"), {dict({{"a", number(1)}})}),
                             call(global("collections", "defaultdict"), {global("a", "b")})})));
  const auto items = pickle.items(pickle.root());
  const std::size_t sizes[] = {2, 4, 2, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(items[i].is(Kind::dict));
    EXPECT_EQ(pickle.items(items[i]).size(), sizes[i]);
  }
}

TEST(PickleValues, ObjectsAreNotMade) {
  const importers::Pickle pickle = evaluate(
      stream(global("my.module", "Class") + tuple({number(1)}) + "\x81" + dict({{"x", number(2)}}) + "b"));
  const importers::PickleObject* object = pickle.object(pickle.root());
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(pickle.text(object->callee), "my.module.Class");
  EXPECT_EQ(pickle.items(object->arguments).size(), 1u);
  EXPECT_TRUE(object->state.is(Kind::dict));
}

TEST(PickleValues, DictSubclassesKeepTheirItems) {
  const importers::Pickle pickle =
      evaluate(stream(global("my", "Dict") + ")\x81(" + text("a") + number(1) + "u"));
  EXPECT_EQ(pickle.items(pickle.object(pickle.root())->state).size(), 2u);
}

TEST(PickleRefuses, WhatOnlyHarms) {
  const std::string tensor_call = tensor(storage("0", "FloatStorage", 1), 0, {1}, {1});
  const std::vector<testing::Hostile> table = {
      // code
      {"posix system", stream(call(global("posix", "system"), {text("id")})), "names 'posix.system'"},
      {"os system", stream(global("os", "system")), "names 'os.system'"},
      {"builtins exec", stream(call(global("builtins", "exec"), {text("x")})), "names 'builtins.exec'"},
      {"__builtin__ eval", stream(call(global("__builtin__", "eval"), {text("x")})), "names 'builtins.eval'"},
      {"getattr", stream(global("__builtin__", "getattr")), "names 'builtins.getattr'"},
      {"subprocess Popen", stream(global("subprocess", "Popen")), "runs code"},
      {"pip main", stream(global("pip", "main")), "runs code"},
      {"a submodule", stream(global("pip._internal", "main")), "runs code"},
      {"pkgutil resolve_name", stream(global("pkgutil", "resolve_name")), "runs code"},
      {"runpy", stream(global("runpy", "_run_code")), "runs code"},
      {"operator attrgetter", stream(global("operator", "attrgetter")), "runs code"},
      {"nested in a tensor's arguments",
       stream(
           call(global("torch._utils", "_rebuild_tensor_v2"), {call(global("os", "popen"), {text("id")})})),
       "names 'os.popen'"},
      {"after a valid prefix", stream(tuple({tensor_call, global("nt", "system")})), "names 'nt.system'"},
      // opcodes outside the subset
      {"STACK_GLOBAL", stream(text("posix") + text("system") + "\x93"), "opcode 0x93"},
      {"INST", stream("(iposix\nsystem\n"), "opcode 0x69"},
      {"OBJ", stream("(" + global("a", "b") + "o"), "opcode 0x6f"},
      {"EXT1", stream("\x82\x01"), "opcode 0x82"},
      {"POP hides a call", stream(global("a", "b") + ")R0N"), "opcode 0x30"},
      {"DUP", stream("N2"), "opcode 0x32"},
      {"FRAME", "\x80\x02\x95" + std::string(8, '\0') + "N.", "opcode 0x95"},
      {"protocol 4", "\x80\x04N.", "protocol 4"},
      {"text integer", stream("I1\n"), "opcode 0x49"},
      {"PERSID", stream("Pid\n"), "opcode 0x50"},
      // types
      {"SETITEM on a list", stream("]" + number(1) + number(2) + "s"),
       "SETITEM on a value that is not a dict"},
      {"SETITEMS on a tensor", stream(tensor_call + "(" + number(1) + number(2) + "u"),
       "SETITEM on a torch._utils"},
      {"SETITEM on a tuple", stream(")" + number(1) + number(2) + "s"),
       "SETITEM on a value that is not a dict"},
      {"APPEND to a dict", stream("}" + number(1) + "a"), "APPEND on a value that is not a list"},
      {"APPENDS to a tensor", stream(tensor_call + "(" + number(1) + "e"), "APPEND on a torch._utils"},
      {"SETITEMS with an odd count", stream("}(" + number(1) + "u"), "a key that has no value"},
      {"BUILD on a tensor", stream(tensor_call + "}b"), "BUILD on torch._utils"},
      {"BUILD on a number", stream(number(1) + "}b"), "BUILD on a value that is not an object"},
      {"REDUCE of a number", stream(number(1) + ")R"), "calls a value that is not a global"},
      {"REDUCE of an object", stream(call(global("a", "b"), {}) + ")R"),
       "calls a value that is not a global"},
      {"REDUCE with a list", stream(global("a", "b") + "]R"), "without a tuple of arguments"},
      {"NEWOBJ of a number", stream(number(1) + ")\x81"), "calls a value that is not a global"},
      {"OrderedDict of a text", stream(call(global("collections", "OrderedDict"), {text("x")})),
       "than pairs"},
      {"OrderedDict of triples",
       stream(call(global("collections", "OrderedDict"), {list({tuple({"N", "N", "N"})})})), "than pairs"},
      {"persistent id that is a text", stream(text("x") + "Q"), "not a tuple"},
      // stack and memo
      {"empty", "", "without its end"},
      {"no STOP", "\x80\x02N", "without its end"},
      {"STOP on nothing", "\x80\x02.", "STOP with 0 values"},
      {"STOP on two", "\x80\x02NN.", "STOP with 2 values"},
      {"STOP above a mark", "\x80\x02(N.", "STOP with 1 values"},
      {"TUPLE without a mark", stream("Nt"), "a mark that is not there"},
      {"TUPLE2 of one", stream("N\x86"), "from an empty stack"},
      {"TUPLE1 through a mark", stream("N(\x85"), "from an empty stack"},
      {"SETITEM of two", stream("}Ns"), "from an empty stack"},
      {"BINGET of nothing", stream("h\x05"), "memo slot 5, which was never set"},
      {"LONG_BINGET far away", stream("j\xFF\xFF\xFF\xFF"), "memo slot 4294967295"},
      {"LONG_BINPUT far away", stream("Nr\xFF\xFF\xFF\xFF"), "memo slot 4294967295 after 0"},
      {"BINGET in a gap", stream("Nq\x05h\x03"), "memo slot 3, which was never set"},
      // lengths
      {"text past the end",
       "\x80\x02X\xFF\xFF\xFF\x7F"
       "abc",
       "needs 2147483647 bytes"},
      {"text of 4 GiB",
       "\x80\x02X\xFF\xFF\xFF\xFF"
       "abc",
       "needs 4294967295 bytes"},
      {"number of 255 bytes", "\x80\x02\x8A\xFF" + std::string(255, '1') + ".",
       "more than 32 bytes in a number"},
      {"global without its end",
       "\x80\x02"
       "cabc",
       "a global's name"},
      {"global without a name",
       "\x80\x02"
       "c\n\n.",
       "without a name"},
      {"global of 2000 bytes",
       "\x80\x02"
       "c" +
           std::string(2000, 'a') + "\nb\n.",
       "more than 1000 bytes"},
      {"100,000 marks", "\x80\x02" + std::string(100'000, '('), "more than 10000 marks"},
      {"5,000,000 values on the stack", "\x80\x02" + std::string(5'000'000, 'N'),
       "more than 4000000 values on"},
      {"copies of a dict",
       stream("](}" + std::string("q\0(", 3) + std::string(20'000, 'N') + "u" +
              global("collections", "OrderedDict") + "q\1" +
              testing::repeat(std::string("h\1h\0\x85R", 6), 100) + "e"),
       "more than 24 bytes of memory for each of its own"},
      {"3,000,000 lists", "\x80\x02" + testing::repeat("]\x85", 3'000'000), "more than 8000000 values"},
      {"many lists", "\x80\x02](" + testing::repeat("](" + std::string(500, ']') + "e", 20'000),
       "more than 8000000 values"},
  };
  for (const testing::Hostile& row : table) {
    const std::string error = testing::error_of([&] { evaluate(row.bytes); });
    EXPECT_NE(error.find(row.expected), std::string::npos) << row.name << ": '" << error << "'";
  }
}

TEST(PickleValues, NumbersAndTextsOfEverySize) {
  const std::int64_t edges[] = {(1 << 26) - 1,  1 << 26,    -(1 << 26),
                                -(1 << 26) - 1, 0x7FFFFFFF, -0x7FFFFFFF - 1};
  for (const std::int64_t edge : edges) {
    const importers::Pickle pickle = evaluate(stream(number(edge)));
    EXPECT_EQ(pickle.integer(pickle.root()), edge);
  }
  const std::size_t lengths[] = {0, 1, 999, 1000, 65'535, 65'536, 200'000};
  for (const std::size_t bytes : lengths) {
    const importers::Pickle pickle = evaluate(stream(tuple({text(std::string(bytes, 'x')), text("after")})));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[0]), std::string(bytes, 'x'));
    EXPECT_EQ(pickle.text(pickle.items(pickle.root())[1]), "after");
  }
  // more than a block holds, and long ones
  std::string texts;
  for (int i = 0; i < 20'000; ++i) texts += text("name " + std::to_string(i));
  const importers::Pickle many = evaluate(stream("(" + texts + "t"));
  ASSERT_EQ(many.items(many.root()).size(), 20'000u);
  for (std::size_t i = 0; i < 20'000; ++i)
    ASSERT_EQ(many.text(many.items(many.root())[i]), "name " + std::to_string(i));
}

TEST(PickleValues, TuplesOfEverySize) {
  const std::size_t sizes[] = {0, 1, 8, 9, 999, 1000, 16'383, 50'000};
  for (const std::size_t size : sizes) {
    const importers::Pickle pickle =
        evaluate(stream("(" + testing::repeat("(" + std::string(size, 'N') + "t", 40) + "t"));
    for (const importers::PickleValue tuple : pickle.items(pickle.root()))
      ASSERT_EQ(pickle.items(tuple).size(), size);
  }
}

TEST(PickleValues, TakeASmallMultipleOfTheirStream) {
  if (testing::kThreadSanitizer)
    GTEST_SKIP() << "the thread sanitizer keeps a multiple of each byte beside it";
  constexpr std::size_t kBytes = 2'000'000;
  const auto filled = [](const std::string& unit) {
    return stream("](" + testing::repeat(unit, kBytes / unit.size()) + "e");
  };
  const std::string streams[] = {
      stream(std::string(kBytes / 2, ']') + std::string(kBytes / 2 - 1, 'a')),  // each in the one before
      filled("]"),
      filled("]Na"),
      filled("}NNs"),
      filled("N\x85"),
      filled("G12345678"),
      filled(text("")),
  };
  for (const std::string& bytes : streams) {
    const std::uint64_t before = io::read_process_memory().rss_anon;
    const importers::Pickle pickle = evaluate(bytes);
    EXPECT_LT(io::read_process_memory().rss_anon, before + (90 << 20)) << bytes.substr(0, 10);
    EXPECT_FALSE(pickle.items(pickle.root()).empty());
  }
}

TEST(PickleValues, EqualTuplesOfNumbersMayBeOne) {
  const importers::Pickle pickle =
      evaluate(stream(tuple({tuple({number(1), number(2)}), tuple({number(1), number(2)}),
                             tuple({number(2), number(1)}), tuple({number(1), "\x88"})})));
  const auto items = pickle.items(pickle.root());
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(pickle.integer(pickle.items(items[2])[0]), 2);
  EXPECT_TRUE(pickle.items(items[3])[1].is(Kind::boolean));
}

TEST(PickleRefuses, DeepNestingNeedsNoStack) {
  // 1,000,000 lists, each in the one before
  const std::string lists(1'000'000, ']');
  EXPECT_TRUE(evaluate("\x80\x02" + lists + std::string(999'999, 'a') + ".").root().is(Kind::list));
}

}  // namespace

// --- torch.export archives: golden, prefixes, models of several names, and the hostile table.

namespace {

using testing::pt2_entry;

const Records kRest = {
    {"data/weights/weight_0", pattern(24)}, {"archive_format", "pt2"}, {"archive_version", "0"}};

std::string archive_of(const std::string& config, const Records& records = kRest) {
  return testing::pt2_zip(config, records);
}

TEST(Pt2, SampleEqualsItsGolden) {
  testing::expect_golden("pt2_sample.json", graph_json(import_bytes("m.pt2", testing::sample_pt2())));
}

TEST(Pt2, EveryPrefixIsAClearError) { testing::expect_prefixes_refused("m.pt2", testing::sample_pt2()); }

TEST(Pt2, EveryFlippedByteIsSurvived) {
  testing::expect_flips_survived("m.pt2", testing::sample_pt2(), testing::sample_pt2().size());
}

TEST(Pt2, SeveralModelsKeepTheirNamesApart) {
  Records records = kRest;
  records.emplace_back("data/weights/other_weights_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "weight_0", "6", "1")));
  const graph::MetaGraph graph =
      import_bytes("m.pt2", archive_of(pt2_entry("w", "weight_0", "2,3", "3,1"), records));
  EXPECT_EQ(testing::tensor_named(graph, "model.w").shape.size(), 2u);
  EXPECT_EQ(testing::tensor_named(graph, "other.w").shape.size(), 1u);
  EXPECT_EQ(graph.storages.size(), 1u);
}

TEST(Pt2, ConfigsOfOlderWritersAreRead) {
  Records records = kRest;
  records.emplace_back("data/weights/model_model_param_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("old", "weight_0", "6", "1")));
  EXPECT_EQ(import_bytes("m.pt2", archive_of("", records)).tensors.at(0).name, "old");
}

TEST(Pt2, FakeWeightsHaveShapesOnly) {
  Records records = kRest;
  records[0].second.clear();
  const graph::MetaGraph graph =
      import_bytes("m.pt2", archive_of(pt2_entry("w", "weight_0", "2,3", "3,1"), records));
  EXPECT_EQ(graph.storage(graph.tensors[0].storage).file, graph::kNoFile);
  EXPECT_EQ(graph.storage(graph.tensors[0].storage).bytes, 24u);
}

TEST(Pt2, WhatIsNotReadIsNoted) {
  Records records = kRest;
  records.emplace_back("data/aotinductor/model/x.so",
                       "\x7F"
                       "ELF");
  records.emplace_back("models/model.json", "{}");
  std::string pickled = pt2_entry("p", "weight_0", "6", "1");
  pickled.replace(pickled.find("\"use_pickle\": false"), 19, "\"use_pickle\": true");
  std::string sparse = pt2_entry("s", "weight_0", "6", "1");
  sparse.replace(sparse.find("\"layout\": 7"), 11, "\"layout\": 1");
  const graph::MetaGraph graph = import_bytes(
      "m.pt2",
      archive_of(pickled + "," + sparse + "," + pt2_entry("o", "weight_0", "6", "1", 0, 99), records));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "compiled code"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::info, "the exported graph is not read"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, "a pickled object"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, "has layout 1"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "unknown dtype 99"));
  EXPECT_EQ(graph.tensors.size(), 1u);
}

TEST(Pt2, HostileFilesGiveTheirError) {
  const auto with = [](std::size_t record, const std::string& content) {
    Records records = kRest;
    records[record].second = content;
    return archive_of(pt2_entry("w", "weight_0", "6", "1"), records);
  };
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string entry = pt2_entry("w", "weight_0", "6", "1");
    return archive_of(entry.replace(entry.find(from), from.size(), to));
  };
  const auto sized = [](std::string_view sizes, std::string_view strides, int offset = 0) {
    return archive_of(pt2_entry("w", "weight_0", sizes, strides, offset));
  };
  std::vector<testing::ZipSpec> compressed = testing::torch_members(
      fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "weight_0", "6", "1")), kRest);
  compressed[0].name = "model/data/weights/model_weights_config.json";
  compressed[1].deflate = true;
  testing::expect_hostile(
      "m.pt2",
      {{"another format", with(1, "pt3"), "without an archive_format 'pt2'"},
       {"no format", archive_of("", {kRest[0], kRest[2]}), "without an archive_format 'pt2'"},
       {"version 1", with(2, "1"), "version '1'"},
       {"a compressed weight", testing::zip_bytes(compressed), "is compressed"},
       {"config is not JSON", archive_of("nonsense"), "is not a JSON object"},
       {"config nested deep", archive_of("\"a\": " + testing::repeat("[", 100'000)), "is not a JSON object"},
       {"entry is a number", archive_of("\"w\": 5"), "its entry in the config is not an object"},
       {"no path", changed("\"path_name\": \"weight_0\",", ""), "path_name is not a string"},
       {"path outside", changed("\"weight_0\"", "\"../../../etc/passwd\""),
        "which the archive does not hold"},
       {"absent weight", changed("\"weight_0\"", "\"weight_7\""), "which the archive does not hold"},
       {"use_pickle is a text", changed("\"use_pickle\": false", "\"use_pickle\": \"no\""),
        "use_pickle is not a boolean"},
       {"no meta", changed("\"tensor_meta\"", "\"meta\""), "tensor_meta is not an object"},
       {"symbolic size", changed("\"as_int\": 6", "\"as_expr\": \"s0\""), "sizes is not a whole number"},
       {"negative size", sized("-6", "1"), "sizes is not a whole number"},
       {"fractional size", sized("6.0", "1"), "sizes is not a whole number"},
       {"size 2^64", sized("18446744073709551616", "1"), "is not a JSON object"},
       {"sizes are a number", changed("\"sizes\": [{\"as_int\": 6}]", "\"sizes\": 6"),
        "sizes is not an array"},
       {"layout is a text", changed("\"layout\": 7", "\"layout\": \"x\""), "layout is not a whole number"},
       {"dtype is negative", changed("\"dtype\": 7", "\"dtype\": -7"), "dtype is not a whole number"},
       {"one element too many", sized("7", "1"), "needs 28 bytes"},
       {"offset past the end", sized("6", "1", 1), "needs 28 bytes"},
       {"stride past the end", sized("6", "2"), "needs 44 bytes"},
       {"stride that wraps", sized("5", "4611686018427387904"), "needs more than 2^64 bytes"},
       {"product 2^64", sized("4294967296,4294967296", "0,0"), "overflows 64 bits"},
       {"fewer strides", sized("2,3", "1"), "1 strides for rank 2"}});
}

testing::ZipSpec stored(std::string name, std::string content) {
  testing::ZipSpec spec;
  spec.name = std::move(name);
  spec.content = std::move(content);
  return spec;
}

std::string state_dict(std::string_view name) {
  using namespace testing::pickle;
  return testing::torch_zip(
      stream("}" + text(name) + tensor(storage("0", "FloatStorage", 6), 0, {2, 3}, {3, 1}) + "s"),
      {{"data/0", pattern(24)}});
}

TEST(Pt2, StateDictsInsideTheArchiveAreReadInPlace) {
  Records records = kRest;
  records.emplace_back("data/weights/model.pt", state_dict("w"));
  records.emplace_back("data/constants/model.pt", state_dict("c"));
  const std::string old = testing::zip_bytes({stored("serialized_exported_program.json", "{}"),
                                              stored("serialized_state_dict.pt", state_dict("w")),
                                              stored("serialized_constants.pt", state_dict("c"))});
  for (const std::string& bytes : {archive_of("", records), old}) {
    const graph::MetaGraph graph = import_bytes("m.pt2", bytes);
    for (const char* name : {"w", "c"}) {
      const graph::Tensor& tensor = testing::tensor_named(graph, name);
      EXPECT_EQ(bytes.substr(graph.storage(tensor.storage).offset, 24), pattern(24));
    }
  }
}

TEST(Pt2, StateDictsInsideTheArchiveAreTrustedNoMore) {
  using namespace testing::pickle;
  const auto old = [](std::string content) {
    return testing::zip_bytes({stored("serialized_state_dict.pt", std::move(content))});
  };
  testing::ZipSpec compressed = stored("serialized_state_dict.pt", state_dict("w"));
  compressed.deflate = true;
  const std::string sample = state_dict("w");
  testing::expect_hostile(
      "m.pt2", {{"no archive", old("hello"), "at least 22 bytes"},
                {"an archive cut short", old(sample.substr(0, sample.size() - 5)), "no end record"},
                {"code", old(testing::torch_zip(stream(global("os", "system")), {})), "names 'os.system'"},
                {"TorchScript", old(testing::torch_zip(stream("}"), {{"constants.pkl", ""}})), "TorchScript"},
                {"compressed", testing::zip_bytes({compressed}), "is compressed"},
                {"an archive in itself", old(old(sample)), "lies in no folder"}});
}

TEST(Pt2, OneNameInWeightsAndConstantsIsRefused) {
  Records records = kRest;
  records.emplace_back("data/constants/tensor_0", pattern(4));
  records.emplace_back("data/constants/model_constants_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "tensor_0", "1", "1")));
  EXPECT_EQ(testing::facts_of([&] {
              testing::import_bytes("m.pt2", archive_of(pt2_entry("w", "weight_0", "6", "1"), records));
            }),
            "malformed m.pt2 'w'");
}

}  // namespace

}  // namespace loadline::tests
