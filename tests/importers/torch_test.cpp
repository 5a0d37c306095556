// PyTorch: checkpoints, and exported programs.

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/samples.h"

#include <limits>
#include <string>
#include <vector>

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
  EXPECT_TRUE(testing::has_note(unsure, graph::Severity::error, ""));
}

TEST(Torch, WhatMeansNothingHereIsNoted) {
  const graph::MetaGraph conjugated = open(
      rebuild("_rebuild_tensor_v2", {storage("0", "ComplexFloatStorage", 2), number(0), tuple({number(2)}),
                                     tuple({number(1)}), "\x89", "}", dict({{"conj", "\x88"}})}));
  EXPECT_TRUE(testing::has_note(conjugated, graph::Severity::error, ""));
  const graph::MetaGraph opaque =
      open(dict({{"w", tensor_v3(floats(), 0, {4}, {1}, "complex32")},
                 {"n", global("numpy.core.multiarray", "scalar") + tuple({text("x")}) + "R"}}));
  EXPECT_EQ(opaque.tensors[0].dtype, graph::DType::opaque);
  EXPECT_TRUE(testing::has_note(opaque, graph::Severity::warning, "'numpy.core.multiarray.scalar'"));
  EXPECT_TRUE(testing::has_note(open(dict({}), kOne), graph::Severity::warning, "1 '0'"));
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
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::info, "4194304 4930"));
}

TEST(Torch, OldContainersAreRefusedByName) {
  std::string tar(1024, '\0');
  tar.replace(0, 8, "sys_info").replace(257, 5, "ustar");
  testing::expect_hostile(
      "m.pt", {{"PYTORCH1", "PYTORCH1" + std::string(100, '\0'), "unsupported m.pt 0 PYTORCH1"},
               {"tar", tar, "unsupported m.pt 0 0.1.10"},
               {"TorchScript", torch_zip(stream("}"), {{"constants.pkl", stream(")")}}),
                "unsupported m.pt state_dict"},
               {"7z", "7z\xBC\xAF\x27\x1C" + std::string(100, '\0'),
                "unsupported m.pt torch.save 1.6 torch.save torch.export config.json"},
               {"a bare pickle", stream("}"), "malformed m.pt 0 torch.save 1.6"},
               {"a zip of something else", testing::zip_bytes({{.name = "x/y.txt", .content = "z"}}),
                "malformed m.pt 'data.pkl' torch.save"}});
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
      {"no storage", file_of(value, {}), "malformed m.pt '0'"},
      {"storage too short", file_of(value, {{"data/0", pattern(15)}}), "malformed m.pt 217 '0' 15 16"},
      {"storage too long", file_of(value, {{"data/0", pattern(17)}}), "malformed m.pt 217 '0' 17 16"},
      {"compressed storage", changed([](Members& m) { m[2].deflate = true; }), "malformed m.pt 342 '0'"},
      {"bad checksum of data.pkl", changed([](Members& m) { m[0].crc = 5; }),
       "malformed m.pt 0 'data.pkl' 4901ce04 00000005"},
      {"another local name", changed([](Members& m) { m[2].local_name = "model/data/1"; }),
       "malformed m.pt 342 '0'"},
      {"encrypted", changed([](Members& m) { m[0].flags = 1; }), "unsupported m.pt 0 'data.pkl'"},
      {"flag 5", changed([](Members& m) { m[0].flags = 1 << 5; }), "malformed m.pt 0 'data.pkl' 0x0028"},
      {"another root", changed([](Members& m) { m[2].name = "other/data/0"; }), "malformed m.pt 342 '0' ''"},
      {"two data.pkl", changed([](Members& m) { m[1].name = "model/data.pkl"; }),
       "malformed m.pt 217 'data.pkl'"},
      {"two data.pkl but for case", changed([](Members& m) { m[1].name = "model/Data.PKL"; }),
       "malformed m.pt 217 'Data.PKL'"},
      {"traversal", changed([](Members& m) { m[1].name = "model/../../x"; }), "malformed m.pt 217 'x'"},
      {"odd byte order", changed([](Members& m) { m[1].content = "middle"; }),
       "malformed m.pt 217 'byteorder' 'middle'"},
      {"byte order of 1 MB", changed([](Members& m) { m[1].content = std::string(1 << 20, 'l'); }),
       "limit m.pt 217 'byteorder' 1048576 64"},
      {"version 11", changed([](Members& m) { m[3].content = "11\n"; }), "unsupported m.pt 11 10"},
      {"version 0", changed([](Members& m) { m[3].content = "0\n"; }),
       "malformed m.pt 480 'version' '0\\x0a'"},
      {"version text", changed([](Members& m) { m[3].content = "3 or so"; }),
       "malformed m.pt 480 'version' '3 or so'"},
      {"bytes after the pickle", torch_zip(stream(value) + "x", kOne), "malformed m.pt 201 1"},
      {"a second pickle", torch_zip(stream(value) + stream(global("os", "system")), kOne),
       "malformed m.pt 201 14"},
      {"code in it", file_of(dict({{"w", call(global("posix", "system"), {text("id")})}})),
       "unsupported m.pt 74 'posix.system'"},
      {"7z after the payload", file_of(value) + "7z\xBC\xAF\x27\x1C", "malformed m.pt 552 22"},
      {"a deflated pickle that is too large", changed([](Members& m) {
         m[0].deflate = true;
         m[0].bytes = 0x7FFFFFFF;
       }),
       "malformed m.pt 0 'data.pkl' 2147483647 122"},
  };
}

std::vector<Hostile> storage_table() {
  const auto of_storage = [](const std::string& id) { return file_of(tensor(id + "Q", 0, {4}, {1})); };
  const auto id = [&](const std::string& type, const std::string& key, const std::string& numel) {
    return of_storage(tuple({text("storage"), type, key, text("cpu"), numel}));
  };
  const std::string type = global("torch", "FloatStorage");
  return {
      {"numel too large", id(type, text("0"), number(5)), "malformed m.pt 208 '0' 16 20"},
      {"numel too small", id(type, text("0"), number(3)), "malformed m.pt 208 '0' 16 12"},
      {"numel 2^62", id(type, text("0"), number(std::int64_t{1} << 62)),
       "malformed m.pt '0' 4611686018427387904 4 64"},
      {"negative numel", id(type, text("0"), number(-1)), "malformed m.pt 0"},
      {"numel is a text", id(type, text("0"), text("4")), "malformed m.pt 0"},
      {"key is None", id(type, "N", number(4)), "malformed m.pt"},
      {"key is a path", id(type, text("../data.pkl"), number(4)), "malformed m.pt 'data.pkl'"},
      {"unknown class", id(global("torch", "StringStorage"), text("0"), number(4)),
       "unsupported m.pt 'torch.StringStorage'"},
      {"class of another module", id(global("evil", "FloatStorage"), text("0"), number(4)),
       "unsupported m.pt 'evil.FloatStorage'"},
      {"class is a text", id(text("torch.FloatStorage"), text("0"), number(4)),
       "unsupported m.pt 'torch.FloatStorage'"},
      {"four values", of_storage(tuple({text("storage"), type, text("0"), text("cpu")})),
       "malformed m.pt 4 'storage' 5 'storage'"},
      {"empty id", of_storage(")"), "malformed m.pt 0 '' 5 'storage'"},
      {"another kind", of_storage(tuple({text("file"), type, text("0"), text("cpu"), number(4)})),
       "malformed m.pt 5 'file' 5 'storage'"},
      {"a whole module",
       of_storage(tuple({text("module"), global("my", "Net"), text("net.py"), text("code")})),
       "unsupported m.pt 'my.Net' state_dict"},
      {"two sizes", file_of(tuple({tensor(floats(4), 0, {4}, {1}), tensor(floats(3), 0, {3}, {1})})),
       "malformed m.pt '0' 4 F32 3 F32"},
      {"two types",
       file_of(tuple({tensor(floats(4), 0, {4}, {1}), tensor(storage("0", "IntStorage", 4), 0, {4}, {1})})),
       "malformed m.pt '0' 4 F32 4 I32"},
  };
}

std::vector<Hostile> tensor_table() {
  const auto of = [](std::int64_t offset, std::initializer_list<std::int64_t> size,
                     std::initializer_list<std::int64_t> stride) {
    return file_of(tensor(floats(), offset, size, stride));
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  return {
      {"one element too many", of(0, {5}, {1}), "malformed m.pt 'tensor' 20 5 1 0 16"},
      {"offset past the end", of(1, {4}, {1}), "malformed m.pt 'tensor' 20 4 1 1 16"},
      {"offset 2^62", of(huge, {1}, {1}), "malformed m.pt 'tensor' 2^64 1 1 4611686018427387904 16"},
      {"offset 2^63-1", of(std::numeric_limits<std::int64_t>::max(), {1}, {1}),
       "malformed m.pt 'tensor' 2^64 1 1 9223372036854775807 16"},
      {"negative offset", of(-1, {1}, {1}), "malformed m.pt 'tensor' 0"},
      {"negative size", of(0, {-1}, {1}), "malformed m.pt 'tensor' 0"},
      {"negative stride", of(3, {4}, {-1}), "malformed m.pt 'tensor' 0"},
      {"stride past the end", of(0, {2}, {4}), "malformed m.pt 'tensor' 20 2 4 0 16"},
      {"stride 2^62", of(0, {3}, {huge}), "malformed m.pt 'tensor' 2^64 3 4611686018427387904 0 16"},
      {"stride that wraps to 0", of(0, {5, 5}, {huge, huge}),
       "malformed m.pt 'tensor' 2^64 5,5 4611686018427387904,4611686018427387904 0 16"},
      {"size product 2^64", of(0, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {0, 0}),
       "malformed m.pt 'tensor' 4294967296,4294967296 64"},
      {"size product behind a zero", of(0, {huge, 0, huge}, {0, 0, 0}),
       "malformed m.pt 'tensor' 4611686018427387904,0,4611686018427387904 64"},
      {"expanded over 2^64 bytes", of(0, {huge}, {0}), "malformed m.pt 'tensor' 4611686018427387904 64"},
      {"fewer strides", of(0, {2, 2}, {1}), "malformed m.pt 'tensor' 1 2"},
      {"65 dimensions",
       file_of(rebuild("_rebuild_tensor_v2",
                       {floats(), number(0), "(" + testing::repeat("K\1", 65) + "t", ")", "\x89", "}"})),
       "malformed m.pt 'tensor' 65 64"},
      {"size is a number",
       file_of(rebuild("_rebuild_tensor_v2", {floats(), number(0), number(4), ")", "\x89", "}"})),
       "malformed m.pt 'tensor'"},
      {"three arguments", file_of(rebuild("_rebuild_tensor_v2", {floats(), number(0), ")"})),
       "malformed m.pt 'tensor' 3"},
      {"no storage", file_of(rebuild("_rebuild_tensor_v2", {text("x"), number(0), ")", ")", "\x89", "}"})),
       "malformed m.pt 'tensor'"},
      {"v3 without its dtype",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}"})),
       "malformed m.pt 'tensor' _rebuild_tensor_v3 6"},
      {"v3 with a text",
       file_of(rebuild("_rebuild_tensor_v3", {floats(), number(0), ")", ")", "\x89", "}", text("f")})),
       "malformed m.pt 'tensor' 'f'"},
      {"v3 wider than its storage", file_of(tensor_v3(floats(), 0, {3}, {1}, "float64")),
       "malformed m.pt 'tensor' 24 3 1 0 16"},
      {"strided f4", file_of(tensor_v3(floats(), 0, {2, 2}, {1, 2}, "float4_e2m1fn_x2")),
       "unsupported m.pt 'tensor' 4-bit"},
      {"an unknown rebuild function", file_of(rebuild("_rebuild_new_kind", {floats()})),
       "unsupported m.pt 'tensor' 'torch._utils._rebuild_new_kind' 1"},
      {"from_type_v2 of code",
       file_of(call(global("torch._tensor", "_rebuild_from_type_v2"),
                    {global("evil", "run"), global("torch", "Tensor"), tuple({floats()}), "}"})),
       "unsupported m.pt 'tensor' 'evil.run'"},
      {"a tensor in a foreign object",
       file_of(dict({{"net", global("__main__", "Net") + ")\x81" +
                                 dict({{"w", tensor(floats(), 0, {4}, {1})}}) + "b"}})),
       "unsupported m.pt 'net' '__main__.Net' state_dict"},
      {"one name twice",
       file_of(dict({{"w", tensor(floats(), 0, {4}, {1})}, {"w", tensor(floats(), 0, {2}, {1})}})),
       "malformed m.pt 'w'"},
      {"one name by two paths",
       file_of(dict(
           {{"a.b", tensor(floats(), 0, {4}, {1})}, {"a", dict({{"b", tensor(floats(), 0, {2}, {1})}})}})),
       "malformed m.pt 'a.b'"},
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
      {"a list that holds itself", file_of(cycle), "limit m.pt 500"},
      {"lists that double 60 times", file_of(doubling), "limit m.pt 47443 16"},
      {"one tensor under 400,000 names",
       file_of("](" + tensor(floats(), 0, {4}, {1}) + std::string("q\0", 2) +
               testing::repeat(std::string("h\0", 2), 400'000) + "e"),
       "limit m.pt 343578 16"},
      {"keys of 60 kB along a path", file_of(dict({{long_key, dict({{long_key, number(1)}})}})),
       "limit m.pt 120001"},
      {"kept names of 1 GB together", names_of(number(1)), "limit m.pt 0 16"},
      {"names of 1 GB together", names_of("N"), "limit m.pt 134217728"},
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
      {{"another protocol version", magic + stream(number(7)) + stream("}"), "unsupported m.pt 15 1001"},
       {"magic goes on", magic.substr(0, 14) + "N.", "malformed m.pt 14"},
       {"no machine", magic + stream("M\xe9\x03") + stream("N"), "malformed m.pt 15"},
       {"code in the machine", magic + stream("M\xe9\x03") + stream(global("os", "system")),
        "unsupported m.pt 23 'os.system'"},
       {"code in the keys", legacy(at(), global("os", "system"), payload),
        "unsupported m.pt 201 'os.system'"},
       {"keys are not list", legacy(at(), "}", payload), "malformed m.pt 203"},
       {"key not listed", legacy(at(), "]", ""), "malformed m.pt 203 'k'"},
       {"key twice", legacy(at(), list({text("k"), text("k")}), payload + payload), "malformed m.pt 241 'k'"},
       {"key of no tensor", legacy(at(), list({text("x")}), payload), "malformed m.pt 211 'x'"},
       {"numel differs", legacy(at(), keys, testing::little_endian(5, 8) + pattern(20)),
        "malformed m.pt 211 'k' 5 4"},
       {"numel negative", legacy(at(), keys, std::string(8, '\xFF') + pattern(16)),
        "malformed m.pt 211 'k' -1 4"},
       {"payload cut", legacy(at(), keys, payload.substr(0, 20)), "malformed m.pt 219 'k' 16 12"},
       {"no payload", legacy(at(), keys, ""), "malformed m.pt 211 8 0"},
       {"five values in an id", legacy(tensor(storage("k", "FloatStorage", 4), 0, {2}, {1}), keys, payload),
        "malformed m.pt 5 'storage' 6 'storage'"},
       {"a whole model",
        legacy(tuple({text("module"), global("my", "Net"), text("a"), text("b")}) + "Q", keys, payload),
        "unsupported m.pt 'my.Net' state_dict"},
       {"a whole model as torch wrote it",
        legacy(tuple({text("module"), global("my", "Net"), text("a"), text("b")}) + "Q)\x81", keys, payload),
        "unsupported m.pt 107 'my.Net' state_dict"},
       {"view past its storage", legacy(at(window(3, 2)), keys, payload), "malformed m.pt 2 3 'k' 4"},
       {"view of 2^63-1", legacy(at(window(std::numeric_limits<std::int64_t>::max(), 2)), keys, payload),
        "malformed m.pt 2 9223372036854775807 'k' 4"},
       {"view with a text", legacy(at(text("v")), keys, payload), "malformed m.pt"},
       {"tensor past its view", legacy(at(window(1, 1)), keys, payload), "malformed m.pt 'tensor' 8 2 1 0 4"},
       {"storage of 2^62 floats",
        legacy(tensor(legacy_storage("k", "FloatStorage", std::int64_t{1} << 62), 0, {2}, {1}), keys,
               payload),
        "malformed m.pt 'k' 4611686018427387904 4 64"}});
}

// The same values, as protocol 3 and protocol 1 write them.
TEST(TorchLegacy, OtherProtocolsAreRead) {
  const std::string two = testing::sample_torch_legacy();
  std::string three = two;
  for (std::size_t at = three.find("\x80\x02"); at < 80; at = three.find("\x80\x02", at + 1))
    three[at + 1] = '\3';
  const graph::MetaGraph expected = testing::import_bytes("m.pt", two);
  EXPECT_EQ(testing::import_bytes("m.pt", three).tensors, expected.tensors);
  const std::string binary = testing::legacy_preamble();
  const std::string text = "L119547037146038801333356L\n." + binary.substr(15);
  const graph::MetaGraph one = testing::import_bytes("m.pt", text + two.substr(binary.size()));
  EXPECT_EQ(one.tensors.size(), expected.tensors.size());
  EXPECT_EQ(one.storages.at(0).offset, expected.storages.at(0).offset + text.size() - binary.size());
}

std::string quantized_model(const std::string& parameters, const char* type = "QInt8Storage",
                            const std::string& more = "") {
  const std::string weight = call(global("torch._utils", "_rebuild_qtensor"),
                                  {storage("0", type, 6), number(0), tuple({number(2), number(3)}),
                                   tuple({number(3), number(1)}), parameters, "\x89", "}"});
  return testing::torch_zip(
      stream("}(" + text("w") + weight + more + "u"),
      {{"data/0", testing::pattern(6)}, {"data/1", testing::pattern(24)}, {"data/2", testing::pattern(24)}});
}

std::string per_channel(const char* scheme, int axis) {
  return tuple({global("torch", scheme), tensor(storage("1", "DoubleStorage", 3), 0, {3}, {1}),
                tensor(storage("2", "LongStorage", 3), 0, {3}, {1}), number(axis)});
}

TEST(Torch, QuantizedTensorsAreWeightsWithTheirParts) {
  const std::string whole = tuple({global("torch", "per_tensor_affine"), real(0.5), number(-3)});
  for (const char* type : {"QInt8Storage", "QUInt8Storage"}) {
    const graph::MetaGraph graph = testing::import_bytes("m.pt", quantized_model(whole, type));
    ASSERT_EQ(graph.logical.size(), 1u);
    EXPECT_EQ(graph.logical[0].state_text(), R"({"scale":0.5,"zero_point":-3})");
    EXPECT_EQ(graph.logical[0].bits, 8u);
    EXPECT_EQ(graph.logical[0].shape, (graph::Shape{2, 3}));
    EXPECT_EQ(graph.tensor(graph.logical[0].codes).name, "w");
    EXPECT_EQ(graph.tensors.size(), 1u);
    EXPECT_EQ(graph::find_metadata(graph, "w.scale"), nullptr);
  }
  const graph::MetaGraph graph =
      testing::import_bytes("m.pt", quantized_model(per_channel("per_channel_symmetric", 1)));
  ASSERT_EQ(graph.logical.size(), 1u);
  const graph::LogicalTensor& weight = graph.logical[0];
  EXPECT_EQ(weight.state_text(), R"({"axis":1})");
  EXPECT_EQ(weight.block, (graph::Shape{2, 1}));
  EXPECT_EQ(graph.tensor(weight.companion(graph::Companion::scales).value()).name, "w.scale");
  EXPECT_EQ(graph.tensor(weight.companion(graph::Companion::zeros).value()).name, "w.zero_point");
  EXPECT_EQ(graph::parameter_count(graph), 6u);
  EXPECT_NO_THROW(graph::require_sound(graph, "convert"));
}

TEST(Torch, OtherQuantizedTensorsAreRefusedByTheirScheme) {
  const std::vector<std::pair<std::string, const char*>> others = {
      {per_channel("per_channel_affine_float_qparams", 0), "QInt8Storage"},
      {per_channel("per_channel_affine", 2), "QInt8Storage"},
      {tuple({global("torch", "per_tensor_affine"), real(0.5), number(0)}), "QUInt4x2Storage"},
      {tuple({global("torch", "per_tensor_affine"), number(1), "N"}), "QInt8Storage"},
      {tuple({global("torch", "per_channel_affine"), real(1), number(1), number(0)}), "QInt8Storage"}};
  for (const auto& [parameters, type] : others) {
    const graph::MetaGraph graph = testing::import_bytes("m.pt", quantized_model(parameters, type));
    EXPECT_TRUE(graph.logical.empty());
    EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  }
  const graph::MetaGraph graph = testing::import_bytes("m.pt", quantized_model(others[0].first));
  EXPECT_NE(graph.notes.at(0).text.find("torch.per_channel_affine_float_qparams"), std::string::npos);
  // a tensor of the checkpoint has the name of a part
  EXPECT_EQ(testing::facts_of([&] {
              testing::import_bytes(
                  "m.pt",
                  quantized_model(per_channel("per_channel_affine", 1), "QInt8Storage",
                                  text("w.scale") + tensor(storage("1", "DoubleStorage", 3), 0, {3}, {1})));
            }),
            "malformed m.pt 'w.scale'");
}

TEST(Torch, OneNameForTwoTensorsIsRefused) {
  const std::string one = tensor(storage("0", "ByteStorage", 8), 0, {8}, {1});
  const auto open = [&](const std::string& items) {
    return testing::import_bytes(
        "m.pt", testing::torch_zip(stream("}(" + items + "u"), {{"data/0", testing::pattern(8)}}));
  };
  EXPECT_EQ(open(text("a") + one + text("a.b") + one).tensors.size(), 2u);
  const std::string nested = text("a") + dict({{"b", one}});
  EXPECT_EQ(testing::facts_of([&] { open(nested + text("a.b") + one); }), "malformed m.pt 'a.b'");
}

TEST(Torch, AFileThatWasNotFinishedSaysSo) {
  const std::string zip = testing::zip_bytes(
      {{"m/version", "3\n"}, {"m/byteorder", "little"}, {"m/.data/serialization_id", "1"}});
  EXPECT_EQ(testing::facts_of([&] { testing::import_bytes("m.pt", zip); }),
            "malformed m.pt torch.save 'data.pkl'");
  EXPECT_NE(testing::import_error("m.pt", zip).find("has not finished"), std::string::npos);
}

TEST(TorchLegacy, TrailingBytesOpenButMayNotBeUsed) {
  const graph::MetaGraph graph = import_bytes("m.pt", testing::sample_torch_legacy() + "more");
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, "m.pt 4 3174"));
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
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "'x.so'"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::info, "'model.json'"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, ""));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, "1"));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "99"));
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
      {{"another format", with(1, "pt3"), "malformed m.pt2 archive_format 'pt2'"},
       {"no format", archive_of("", {kRest[0], kRest[2]}), "malformed m.pt2 archive_format 'pt2'"},
       {"version 1", with(2, "1"), "unsupported m.pt2 pt2 '1' 0"},
       {"a compressed weight", testing::zip_bytes(compressed), "malformed m.pt2 421 'weight_0'"},
       {"config is not JSON", archive_of("nonsense"), "malformed m.pt2 0 'model_weights_config.json'"},
       {"config nested deep", archive_of("\"a\": " + testing::repeat("[", 100'000)),
        "malformed m.pt2 0 'model_weights_config.json'"},
       {"entry is a number", archive_of("\"w\": 5"), "malformed m.pt2 'w'"},
       {"no path", changed("\"path_name\": \"weight_0\",", ""), "malformed m.pt2 'w' path_name"},
       {"path outside", changed("\"weight_0\"", "\"../../../etc/passwd\""), "malformed m.pt2 'w' 'passwd'"},
       {"absent weight", changed("\"weight_0\"", "\"weight_7\""), "malformed m.pt2 'w' 'weight_7'"},
       {"use_pickle is a text", changed("\"use_pickle\": false", "\"use_pickle\": \"no\""),
        "malformed m.pt2 'w' use_pickle"},
       {"no meta", changed("\"tensor_meta\"", "\"meta\""), "malformed m.pt2 'w' tensor_meta"},
       {"symbolic size", changed("\"as_int\": 6", "\"as_expr\": \"s0\""), "malformed m.pt2 'w' 0"},
       {"negative size", sized("-6", "1"), "malformed m.pt2 'w' 0"},
       {"fractional size", sized("6.0", "1"), "malformed m.pt2 'w' 0"},
       {"size 2^64", sized("18446744073709551616", "1"), "malformed m.pt2 0 'model_weights_config.json'"},
       {"sizes are a number", changed("\"sizes\": [{\"as_int\": 6}]", "\"sizes\": 6"), "malformed m.pt2 'w'"},
       {"layout is a text", changed("\"layout\": 7", "\"layout\": \"x\""), "malformed m.pt2 'w' 0"},
       {"dtype is negative", changed("\"dtype\": 7", "\"dtype\": -7"), "malformed m.pt2 'w' 0"},
       {"one element too many", sized("7", "1"), "malformed m.pt2 'w' 28 7 1 0 24"},
       {"offset past the end", sized("6", "1", 1), "malformed m.pt2 'w' 28 6 1 1 24"},
       {"stride past the end", sized("6", "2"), "malformed m.pt2 'w' 44 6 2 0 24"},
       {"stride that wraps", sized("5", "4611686018427387904"),
        "malformed m.pt2 'w' 2^64 5 4611686018427387904 0 24"},
       {"product 2^64", sized("4294967296,4294967296", "0,0"),
        "malformed m.pt2 'w' 4294967296,4294967296 64"},
       {"fewer strides", sized("2,3", "1"), "malformed m.pt2 'w' 1 2"}});
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
      "m.pt2",
      {{"no archive", old("hello"), "malformed m.pt2: serialized_state_dict.pt 0 22 5"},
       {"an archive cut short", old(sample.substr(0, sample.size() - 5)),
        "malformed m.pt2: serialized_state_dict.pt 549 22"},
       {"code", old(testing::torch_zip(stream(global("os", "system")), {})),
        "unsupported m.pt2: serialized_state_dict.pt 66 'os.system'"},
       {"TorchScript", old(testing::torch_zip(stream("}"), {{"constants.pkl", ""}})),
        "unsupported m.pt2: serialized_state_dict.pt state_dict"},
       {"compressed", testing::zip_bytes({compressed}), "malformed m.pt2 0 'serialized_state_dict.pt'"},
       {"an archive in itself", old(old(sample)),
        "malformed m.pt2: serialized_state_dict.pt 0 'serialized_state_dict.pt'"}});
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
