// safetensors: golden, every prefix, and the hostile table.
#include "importers/huggingface/safetensors.h"

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "importers/importer.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/hostile.h"

#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::expect_golden;
using testing::Hostile;
using testing::memory_source;
using testing::repeat;
using testing::safetensors_bytes;

MetaGraph read(std::string_view bytes) { return import_source(memory_source("m.safetensors", bytes)); }

std::string error_of(std::string_view bytes) { return testing::import_error("m.safetensors", bytes); }

TEST(Safetensors, SampleEqualsItsGolden) {
  const MetaGraph graph = read(testing::sample_safetensors());
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
  EXPECT_TRUE(read(safetensors_bytes("{}      ", 0)).tensors.empty());
  const MetaGraph scalar =
      read(safetensors_bytes(R"({"test":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(scalar.tensors[0].dtype, DType::i32);
  EXPECT_EQ(elements(scalar.tensors[0]), 1u);
  // the reference tolerates white space before the object
  EXPECT_TRUE(read(safetensors_bytes("\t\n {}", 0)).notes.empty());
}

TEST(Safetensors, UnknownDtypesAreOpaque) {
  const MetaGraph graph =
      read(safetensors_bytes(R"({"t":{"dtype":"F3_NEW","shape":[5],"data_offsets":[0,7]}})", 7));
  EXPECT_EQ(graph.tensors[0].dtype, DType::opaque);
  EXPECT_EQ(tensor_bytes(graph, graph.tensors[0]), 7u);
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, Severity::warning);
}

TEST(Safetensors, TrailingBytesOpenButMayNotBeUsed) {
  const MetaGraph graph =
      read(safetensors_bytes(R"({"t":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 9));
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, Severity::error);
  EXPECT_NE(graph.notes[0].text.find("4 bytes after the last tensor"), std::string::npos);
  EXPECT_THROW(require_sound(graph, "convert"), Error);
}

TEST(Safetensors, UnknownFieldsAreNoted) {
  const MetaGraph graph =
      read(safetensors_bytes(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{"y":[]}}})", 1));
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, Severity::warning);
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
      {"empty file", "", "at least 8 bytes"},
      {"seven bytes", std::string(7, '\0'), "at least 8 bytes"},
      {"zero length", std::string(8, '\0'), "not valid JSON"},
      {"length past the end", safetensors_bytes(100, "{}", 0), "claims 100 bytes, 2 follow"},
      {"length one past the end", safetensors_bytes(3, "{}", 0), "claims 3 bytes, 2 follow"},
      {"length 2^64-1", safetensors_bytes(~std::uint64_t{0}, "{}", 0), "the limit is 100000000"},
      {"length 2^64-8 wraps 8+N", safetensors_bytes(~std::uint64_t{7}, "{}", 0), "the limit is 100000000"},
      {"length 2^63", safetensors_bytes(std::uint64_t{1} << 63, "{}", 0), "the limit is 100000000"},
      {"length over the cap", safetensors_bytes(100'000'001, "{}", 0), "the limit is 100000000"},
      {"length at the cap", safetensors_bytes(100'000'000, "{}", 0), "claims 100000000 bytes, 2 follow"},
      // JSON
      {"not JSON", safetensors_bytes("{nonsense", 0), "not valid JSON"},
      {"an array", safetensors_bytes("[{}]", 0), "not a JSON object"},
      {"text after the object", safetensors_bytes("{}{}", 0), "not valid JSON"},
      {"NUL padding", safetensors_bytes(std::string("{}\0\0", 4), 0), "not valid JSON"},
      {"unclosed", safetensors_bytes(R"({"t":{"dtype":"U8")", 0), "not valid JSON"},
      {"invalid UTF-8 in a name", safetensors_bytes("{\"\xFF\":{}}", 0), "not valid JSON"},
      {"lone surrogate escape", safetensors_bytes(R"({"\ud800":{}})", 0), "not valid JSON"},
      {"control character in a name", safetensors_bytes("{\"a\nb\":{}}", 0), "not valid JSON"},
      {"single quotes", safetensors_bytes("{'t':1}", 0), "not valid JSON"},
      {"trailing comma", safetensors_bytes(R"({"t":1,})", 0), "not valid JSON"},
      {"nested 100,000 deep",
       safetensors_bytes("{\"t\":" + repeat("[", 100'000) + repeat("]", 100'000) + "}", 0), "not valid JSON"},
      {"nested 100,000 deep, unclosed", safetensors_bytes("{\"t\":" + repeat("{\"a\":", 100'000), 0),
       "not valid JSON"},
      // entries
      {"entry is a number", one("5", 0), "its entry is not an object"},
      {"entry is null", one("null", 0), "its entry is not an object"},
      {"entry is an array", one("[]", 0), "its entry is not an object"},
      {"no dtype", one(R"({"shape":[4],"data_offsets":[0,4]})", 4), "dtype is missing"},
      {"no shape", one(R"({"dtype":"U8","data_offsets":[0,4]})", 4), "shape is missing"},
      {"no offsets", one(R"({"dtype":"U8","shape":[4]})", 4), "data_offsets is missing"},
      {"dtype is a number", one(R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})", 4),
       "dtype is not a string"},
      {"shape is a string", one(R"({"dtype":"U8","shape":"4","data_offsets":[0,4]})", 4),
       "shape is not an array"},
      {"negative dimension", one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      {"fractional dimension", one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      {"exponent dimension", one(R"({"dtype":"U8","shape":[4e0],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      {"dimension 2^64", one(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,4]})", 4),
       "not"},
      {"dimension is a string", one(R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      {"nested shape", one(R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})", 4), "not a whole number"},
      {"one offset", one(R"({"dtype":"U8","shape":[4],"data_offsets":[4]})", 4), "holds 1 numbers"},
      {"three offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})", 4), "holds 3 numbers"},
      {"negative offset", one(R"({"dtype":"U8","shape":[4],"data_offsets":[-1,3]})", 4),
       "not a whole number"},
      {"offsets reversed", one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})", 4), "before it begins"},
      {"duplicate name", safetensors_bytes(fmt::format(R"({{"t":{0},"t":{0}}})", ok), 4), "occurs twice"},
      {"duplicate name through an escape",
       safetensors_bytes(fmt::format(R"({{"t":{0},"\u0074":{0}}})", ok), 4), "occurs twice"},
      {"duplicate dtype", one(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})", 4),
       "dtype occurs twice"},
      {"duplicate shape", one(R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})", 4),
       "shape occurs twice"},
      {"duplicate offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"data_offsets":[0,4]})", 4),
       "data_offsets occurs twice"},
      // metadata
      {"metadata is a list", safetensors_bytes(R"({"__metadata__":[]})", 0), "is not an object"},
      {"metadata value is a number", safetensors_bytes(R"({"__metadata__":{"a":1}})", 0), "is not a string"},
      {"metadata value is an object", safetensors_bytes(R"({"__metadata__":{"a":{}}})", 0),
       "is not a string"},
      {"metadata value is null", safetensors_bytes(R"({"__metadata__":{"a":null}})", 0), "is not a string"},
      {"metadata twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})", 0), "occurs twice"},
      {"metadata key twice", safetensors_bytes(R"({"__metadata__":{"a":"","a":""}})", 0), "occurs twice"},
      // sizes and places
      {"fewer bytes than the shape needs", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})", 4),
       "needs 16 bytes for [4] F32, offsets give 4"},
      {"more bytes than the shape needs", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,32]})", 32),
       "needs 16 bytes for [4] F32, offsets give 32"},
      {"shape product 2^64", one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "overflows 64 bits"},
      {"shape product wraps behind a zero",
       one(R"({"dtype":"U8","shape":[4294967296,0,4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "overflows 64 bits"},
      {"byte product 2^64", one(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", 0),
       "overflows 64 bits"},
      {"F4 doubling", one(R"({"dtype":"F4","shape":[9223372036854775807],"data_offsets":[0,4]})", 4),
       "does not fill whole bytes"},
      {"odd F4", one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})", 2), "does not fill whole bytes"},
      {"F6 of 2", one(R"({"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]})", 2),
       "does not fill whole bytes"},
      {"1000x1000 over four bytes", one(R"({"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]})", 4),
       "needs 4000000 bytes"},
      {"data past the end", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3),
       "data ends at 4, the file has 3"},
      {"data far past the end",
       one(R"({"dtype":"U8","shape":[9007199254740992],"data_offsets":[0,9007199254740992]})", 3),
       "the file has 3"},
      {"offset 2^64-1",
       one(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]})", 3),
       "the file has 3"},
      {"opaque dtype past the end", one(R"({"dtype":"X","shape":[4],"data_offsets":[0,400]})", 3),
       "the file has 3"},
      {"does not begin at 0", one(R"({"dtype":"U8","shape":[4],"data_offsets":[1,5]})", 5), "leaving a hole"},
      {"overlap", two("0,4", "2,6", 6), "overlapping"},
      {"the same bytes twice", two("0,4", "0,4", 4), "overlapping"},
      {"one inside the other", two("0,4", "1,5", 8), "overlapping"},
      {"hole", two("0,4", "6,10", 10), "leaving a hole"},
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

// Both parsers of a header, on the same text: where the fast one understands it, they must agree.
TEST(SafetensorsHeader, TheFastPathAgreesWithTheJsonParser) {
  std::vector<std::string> texts = {
      R"({})", R"( { } )", R"({"__metadata__":{}})",
      R"({"__metadata__":{"format":"pt","a b":""},"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )",
      "{\n \"t\" : {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [0, "
      "4]},\t\"u\":{\"dtype\":\"X\",\"shape\":[0],\"data_offsets\":[4,4]}\r}"};
  const std::string sample = testing::sample_safetensors();
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, sample.data(), sizeof header_bytes);
  texts.push_back(sample.substr(8, header_bytes));
  std::mt19937 random(11);
  const std::vector<std::string> originals = texts;
  constexpr std::string_view kAlphabet = "{}[]:,\" 019-e\\tx\n";
  for (int i = 0; i < 20'000; ++i) {  // and texts that are nearly right
    std::string text = originals[random() % originals.size()];
    for (std::size_t flips = random() % 3; flips-- > 0 && !text.empty();)
      text[random() % text.size()] = kAlphabet[random() % kAlphabet.size()];
    texts.push_back(std::move(text));
  }
  std::size_t understood = 0;
  for (const std::string& text : texts) {
    SafetensorsFields fast, slow;
    if (!scan_safetensors_header(text, fast)) continue;
    ++understood;
    const std::string padded = text + std::string(SafetensorsJson::kPadding, ' ');
    SafetensorsJson json;
    ASSERT_NO_THROW(json.parse(std::string_view(padded).substr(0, text.size()), "f", slow)) << text;
    ASSERT_EQ(fast.entries.size(), slow.entries.size()) << text;
    for (std::size_t i = 0; i < fast.entries.size(); ++i) {
      const SafetensorsEntry &a = fast.entries[i], &b = slow.entries[i];
      ASSERT_EQ(std::tie(a.name, a.dtype, a.begin, a.end), std::tie(b.name, b.dtype, b.begin, b.end)) << text;
      ASSERT_EQ(a.shape, b.shape) << text;
    }
    ASSERT_EQ(fast.metadata.size(), slow.metadata.size()) << text;
    for (std::size_t i = 0; i < fast.metadata.size(); ++i) {
      ASSERT_EQ(fast.metadata[i].key, slow.metadata[i].key);
      ASSERT_EQ(fast.metadata[i].value, slow.metadata[i].value);
    }
  }
  EXPECT_GT(understood,
            originals.size() - 1 + 1000);  // the sample alone has a name that needs the other parser
}

TEST(Safetensors, ManyTinyEntriesStayLinear) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i == 0 ? "" : ",",
                          i, i, i + 1);
  EXPECT_EQ(read(safetensors_bytes(header + "}", 200'000)).tensors.size(), 200'000u);
}

TEST(Safetensors, ManyMetadataKeysStayLinear) {
  std::string header = R"({"__metadata__":{)";
  for (int i = 0; i < 300'000; ++i) header += fmt::format(R"({}"key {}":"")", i == 0 ? "" : ",", i);
  EXPECT_EQ(read(safetensors_bytes(header + "}}", 0)).metadata.size(), 300'000u);
}

TEST(Safetensors, TheHeaderCannotStandInForTheConfig) {
  const MetaGraph graph =
      read(safetensors_bytes(R"({"__metadata__":{"config.json":"{}","format":"pt"}})", 0));
  EXPECT_EQ(find_metadata(graph, kConfigKey), nullptr);
  EXPECT_EQ(graph.notes.size(), 1u);
}

TEST(Safetensors, AHugeNameIsJustAName) {
  const std::string name(10 << 20, 'n');
  const MetaGraph graph =
      read(safetensors_bytes("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  EXPECT_EQ(graph.tensors[0].name, name);
}

TEST(Sniff, ContentDecides) {
  const Importer& importer = importer_for(*memory_source("no_extension", testing::sample_safetensors()).file);
  EXPECT_EQ(importer.id, "safetensors");
  EXPECT_THROW(import_source(memory_source("x.bin", "PK\3\4 something else entirely")), Error);
  EXPECT_THROW(import_source(memory_source("x", "")), Error);
}

}  // namespace
}  // namespace loadline
