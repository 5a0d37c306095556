// GGUF, and importance matrices.

#include "importers/gguf/gguf.h"

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/graph_json.h"

#include <cstring>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- GGUF: goldens in both byte orders, split sets, lazy arrays, and the hostile table.

namespace {

using testing::GgufBuilder;
using testing::Hostile;
using testing::memory_source;
using testing::TemporaryFolder;
using testing::write_file;

graph::MetaGraph read(std::string_view bytes) {
  return importers::import_source(memory_source("m.gguf", bytes));
}

TEST(Gguf, SampleEqualsItsGolden) {
  testing::expect_golden("gguf_sample.json", graph_json(read(testing::sample_gguf())));
}

TEST(Gguf, BigEndianSaysTheSame) {
  const graph::MetaGraph little = read(testing::sample_gguf()), big = read(testing::sample_gguf(true));
  ASSERT_EQ(little.tensors, big.tensors);
  ASSERT_EQ(little.metadata.size(), big.metadata.size());
  for (std::size_t i = 0; i < little.metadata.size(); ++i) {
    graph::MetaValue value = big.metadata[i].value;
    if (auto* array = std::get_if<graph::MetaArray>(&value)) array->big_endian = false;
    EXPECT_EQ(little.metadata[i].value, value) << little.metadata[i].key;
  }
  for (const graph::Tensor& tensor : big.tensors) {
    const graph::Storage& storage = big.storage(tensor.storage);
    const graph::DTypeInfo& type = graph::dtype_info(tensor.dtype);
    const bool bytes_only =
        type.block_bytes == 1 || tensor.dtype == graph::DType::mxfp4 || tensor.dtype == graph::DType::nvfp4;
    EXPECT_EQ(storage.encoding, bytes_only                             ? graph::Encoding::plain
                                : type.kind == graph::DTypeKind::block ? graph::Encoding::unreadable
                                                                       : graph::Encoding::byte_swapped)
        << tensor.name.view();
    if (storage.encoding == graph::Encoding::byte_swapped) {
      EXPECT_EQ(storage.unit, type.block_bytes) << tensor.name.view();
    }
  }
}

TEST(Gguf, EveryPrefixIsAClearError) {
  for (const bool big_endian : {false, true}) {
    const std::string sample = testing::sample_gguf(big_endian);
    for (std::size_t length = 0; length < sample.size(); ++length) {
      const std::string error = testing::error_of([&] { read(std::string_view(sample).substr(0, length)); });
      // the padding after the last tensor may be missing
      if (length < sample.size() - 64) {
        ASSERT_EQ(error.rfind("m.gguf: ", 0), 0u) << length << error;
      }
    }
  }
}

TEST(Gguf, EveryFlippedHeaderByteIsSurvived) {
  testing::expect_flips_survived("m.gguf", testing::sample_gguf(), 3000);
}

TEST(Gguf, ArraysStayInTheFileUntilAskedFor) {
  const TemporaryFolder folder;
  for (const bool big_endian : {false, true}) {
    write_file(folder / "m.gguf", testing::sample_gguf(big_endian));
    const graph::MetaGraph graph = importers::open_model(folder / "m.gguf", {});
    const auto array = [&](std::string_view key) {
      return std::get<graph::MetaArray>(*graph::find_metadata(graph, key));
    };
    EXPECT_EQ(io::read_meta_array(graph, array("tokenizer.ggml.tokens"), 1, 2),
              (std::vector<graph::MetaValue>{std::string(), std::string("\xE2\x96\x81the")}));
    EXPECT_EQ(io::read_meta_array(graph, array("scores"), 0, 9),
              (std::vector<graph::MetaValue>{1.5F, -2.0F}));
  }
}

TEST(Gguf, BigEndianNumbersAreReadInOurs) {
  const TemporaryFolder folder;
  GgufBuilder builder(true);
  builder.tensor("w", {4}, 25, 8);  // I16
  const std::string bytes = builder.bytes();
  write_file(folder / "m.gguf", bytes);
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(folder / "m.gguf", {}));
  std::string read(8, '\0');
  io::StorageReader(graph).read(graph::StorageId{0}, 0, std::as_writable_bytes(std::span(read)));
  const std::string stored = bytes.substr(bytes.size() - 32, 8);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(read[i], stored[i ^ 1]);
}

TEST(Gguf, UnknownTypesAreOpaque) {
  GgufBuilder builder;
  builder.tensor("a", {7}, 43, 40).tensor("b", {2}, 4, 10).tensor("c", {2}, 0, 8);
  const graph::MetaGraph graph = read(builder.bytes());
  ASSERT_EQ(graph.tensors.size(), 3u);
  EXPECT_EQ(graph.tensors[0].dtype, graph::DType::opaque);
  EXPECT_EQ(graph.storages[0].bytes, 64u);  // up to the next tensor
  EXPECT_EQ(graph.storages[1].bytes, 32u);
  EXPECT_EQ(graph.notes.size(), 2u);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "43");
}

TEST(Gguf, WhatOnlyOthersRefuseIsNoted) {
  const auto notes = [](const GgufBuilder& builder) {
    std::string all;
    for (const graph::Note& note : read(builder.bytes()).notes)
      all += fmt::format("{} {}\n", graph::severity_name(note.severity), testing::facts(note.text));
    return all;
  };
  EXPECT_EQ(notes(GgufBuilder().tensor("", {1}, 0, 4)), "");
  EXPECT_EQ(notes(GgufBuilder().alignment(1).tensor("a", {1}, 0, 4).tensor("b", {1}, 0, 4)), "");
  EXPECT_EQ(notes(GgufBuilder().alignment(65'536).tensor("a", {1}, 0, 4)), "");
  EXPECT_EQ(notes(GgufBuilder().key("k", GgufBuilder::boolean, "\2").tensor("a", {1}, 0, 4)), "");
  EXPECT_EQ(notes(GgufBuilder().tensor(std::string(64, 'n'), {1}, 0, 4)), "warning 64 llama.cpp 63\n");
  EXPECT_EQ(notes(GgufBuilder().tensor(std::string("a\0b", 3), {1}, 0, 4)), "warning UTF-8\n");
  EXPECT_EQ(notes(GgufBuilder().key("\xFF", "v").tensor("a", {1}, 0, 4)), "warning '\\xff' UTF-8\n");
  EXPECT_EQ(notes(GgufBuilder().data(32).tensor("a", {1}, 0, 4)), "warning 32 llama.cpp\n");
  EXPECT_EQ(notes(GgufBuilder().tensor_at("a", {1}, 0, 32).tensor_at("b", {1}, 0, 0).data(64)),
            "warning llama.cpp\n");
  EXPECT_EQ(notes(GgufBuilder().tensor("a", {1}, 0, 4).data(33)), "error m.gguf 33\n");
  GgufBuilder bare;
  bare.key("general.architecture", "llama").key("llama.block_count", 1);
  EXPECT_EQ(notes(bare), "warning llama.cpp 'tokenizer.ggml.model'\n");
  EXPECT_EQ(notes(GgufBuilder(bare).key("tokenizer.ggml.model", 1)),
            "warning llama.cpp 'tokenizer.ggml.model'\n");
  EXPECT_EQ(notes(GgufBuilder(bare).key("tokenizer.ggml.model", "gpt2")),
            "warning llama.cpp 'gpt2' 'tokenizer.ggml.tokens'\n");
  EXPECT_EQ(notes(GgufBuilder(bare).key("tokenizer.ggml.model", "none")), "");
  GgufBuilder keys;
  keys.key("tokenizer.ggml.model", "none")
      .key("general.architecture", "llama")
      .key("llama.block_count", keys.u64, keys.number(std::uint64_t{1}));
  EXPECT_EQ(notes(keys), "warning llama.cpp 'llama.block_count' u64 u32\n");
  keys.key("llama.context_length", keys.i32, keys.number(std::int32_t{8})).key("llama.embedding_length", 8);
  EXPECT_EQ(notes(keys), "warning llama.cpp 'llama.block_count' u64 u32 1\n");
  GgufBuilder tokens;
  tokens.key("general.architecture", "llama")
      .key("llama.block_count", 1)
      .key("tokenizer.ggml.model", "llama");
  tokens.strings("tokenizer.ggml.tokens", {"a", "b"}).tensor("token_embd.weight", {4, 3}, 0, 48);
  EXPECT_EQ(notes(tokens), "warning llama.cpp 3 2\n");
  tokens.strings("tokenizer.ggml.scores", {"1", "2"});
  EXPECT_EQ(notes(tokens), "warning llama.cpp 'tokenizer.ggml.scores' f32\nwarning llama.cpp 3 2\n");
}

TEST(Gguf, AVocabularyAloneOpens) {
  const graph::MetaGraph graph = read(GgufBuilder().strings("tokenizer.ggml.tokens", {"a"}).bytes());
  EXPECT_TRUE(graph.tensors.empty());
  EXPECT_EQ(graph.metadata.size(), 1u);
}

TEST(Gguf, LongTextsStayInTheFile) {
  const graph::MetaGraph graph = read(
      GgufBuilder().key("k", std::string((1 << 20) + 1, 'x')).key("s", std::string(1 << 20, 'y')).bytes());
  EXPECT_EQ(std::get<graph::MetaArray>(graph.metadata[0].value).count, (1u << 20) + 1);
  EXPECT_EQ(std::get<std::string>(graph.metadata[1].value).size(), 1u << 20);
}

// Part `number` (from 0) of `count`, with tensors t0, t1, ... split evenly.
GgufBuilder part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBuilder b;
  if (number == 0) b.key("general.architecture", "llama").strings("tokens", {"x", "y"});
  b.key("split.no", b.u16, b.number(number)).key("split.count", b.u16, b.number(count));
  b.key("split.tensors.count", b.i32, b.number(tensors));
  for (int i = number; i < tensors; i += count) b.tensor(fmt::format("t{}", i), {8}, 0, 32);
  return b;
}

std::string part_name(int number, int count) { return fmt::format("m-{:05}-of-{:05}.gguf", number, count); }

TEST(GgufSplit, OpensWholeFromAnyPart) {
  const TemporaryFolder folder;
  for (std::uint16_t i = 0; i < 3; ++i) write_file(folder / part_name(i + 1, 3), part(i, 3, 7).bytes());
  const graph::MetaGraph first = importers::open_model(folder / part_name(1, 3), {});
  EXPECT_EQ(first.tensors.size(), 7u);
  EXPECT_EQ(first.files.size(), 3u);
  EXPECT_TRUE(first.notes.empty());
  EXPECT_EQ(first.metadata.size(), 2u);  // without the split's own keys
  EXPECT_EQ(importers::open_model(folder / part_name(3, 3), {}), first);
  const auto tokens = std::get<graph::MetaArray>(*graph::find_metadata(first, "tokens"));
  EXPECT_EQ(io::read_meta_array(first, tokens, 0, 2),
            (std::vector<graph::MetaValue>{std::string("x"), std::string("y")}));
}

// As other programs write them: a first part of keys alone, parts with an alignment or an architecture of
// their own, a name with the ending twice, and the name of a part on a whole file.
TEST(GgufSplit, PartsNeedNotBeAlike) {
  const auto with_split = [](GgufBuilder b, std::uint16_t number) {
    b.key("split.no", b.u16, b.number(number)).key("split.count", b.u16, b.number(std::uint16_t{2}));
    return b.key("split.tensors.count", b.i32, b.number(std::int32_t{2}));
  };
  const GgufBuilder keys = with_split(GgufBuilder().key("general.architecture", "llama"), 0);
  const GgufBuilder rest = with_split(GgufBuilder().alignment(64).key("general.architecture", "llama"), 1)
                               .tensor("a", {8}, 0, 32)
                               .tensor("b", {8}, 0, 32);
  const TemporaryFolder folder;
  for (const auto& [name, builder] :
       {std::pair("m.gguf-00001-of-00002.gguf", keys), std::pair("m.gguf-00002-of-00002.gguf", rest)})
    write_file(folder / name, builder.bytes());
  const graph::MetaGraph graph = importers::open_model(folder.path(), {});
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_EQ(std::ranges::count(graph.metadata, "general.architecture", &graph::MetaEntry::key), 1);
  EXPECT_TRUE(graph.notes.empty());
  const TemporaryFolder alone;
  write_file(alone / "moe-00001-of-00013.gguf", GgufBuilder().tensor("a", {8}, 0, 32).bytes());
  EXPECT_TRUE(importers::open_model(alone.path(), {}).notes.empty()) << "it says nothing of other parts";
}

TEST(GgufSplit, MissingPartsAreNamed) {
  const TemporaryFolder folder;
  write_file(folder / part_name(1, 3), part(0, 3, 7).bytes());
  write_file(folder / part_name(3, 3), part(2, 3, 7).bytes());
  const graph::MetaGraph graph = importers::open_model(folder / part_name(3, 3), {});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::error);
  EXPECT_EQ(testing::facts(graph.notes[0].text), "'m-00002-of-00003.gguf'");
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
}

TEST(GgufSplit, ContradictionsAreErrors) {
  const auto error = [](const GgufBuilder& a, const GgufBuilder& b) {
    const std::string first = part_name(1, 2), second = part_name(2, 2);
    return testing::facts_of([&] {
      importers::import_source(memory_source(first, a.bytes(), {{first, a.bytes()}, {second, b.bytes()}}));
    });
  };
  EXPECT_EQ(error(part(0, 2, 4), part(1, 2, 4)), "");
  EXPECT_EQ(error(part(0, 2, 4), part(0, 2, 4)), "malformed m-00002-of-00002.gguf 1 2 2 2");
  EXPECT_EQ(error(part(0, 2, 4), part(1, 3, 4)), "malformed m-00002-of-00002.gguf 2 3 2 2");
  EXPECT_EQ(error(part(0, 2, 4), GgufBuilder().tensor("t9", {1}, 0, 4)),
            "malformed m-00002-of-00002.gguf 2 2");
  EXPECT_EQ(error(part(0, 2, 4), part(1, 2, 4).tensor("t0", {1}, 0, 4)),
            "malformed m-00002-of-00002.gguf 't0'");
  EXPECT_EQ(error(part(5, 2, 4), part(1, 2, 4)),
            "malformed m-00001-of-00002.gguf split.no 5 split.count 2 9999");
  GgufBuilder odd;
  odd.key("split.count", odd.f32, odd.number(2.0F)).tensor("a", {1}, 0, 4);
  EXPECT_EQ(error(odd, odd), "malformed m-00001-of-00002.gguf 24 split.count");
}

TEST(GgufSplit, AWrongTotalOrNameIsNoted) {
  const TemporaryFolder folder;
  write_file(folder / part_name(1, 2), part(0, 2, 5).bytes());
  write_file(folder / part_name(2, 2), part(1, 2, 4).bytes());
  const graph::MetaGraph wrong = importers::open_model(folder / part_name(2, 2), {});
  ASSERT_EQ(wrong.notes.size(), 1u);
  EXPECT_EQ(wrong.notes[0].text, "split.tensors.count is 4, the parts hold 5 tensors");
  write_file(folder / "renamed.gguf", part(0, 2, 4).bytes());
  const graph::MetaGraph renamed = importers::open_model(folder / "renamed.gguf", {});
  ASSERT_EQ(renamed.notes.size(), 1u);
  EXPECT_EQ(testing::facts(renamed.notes[0].text), "1 2 '...-00001-of-00002.gguf'");
}

// Two layouts have the number 42: 64 numbers in 18 bytes, and 128 in 34.
TEST(Gguf, OffsetsTellTheLayoutOfType42) {
  const auto open_with = [](std::uint64_t bytes) {
    GgufBuilder builder;
    builder.tensor_at("a", {256, 4}, 42, 0).tensor_at("n", {8}, 0, (bytes + 31) / 32 * 32);
    return read(builder.data((bytes + 31) / 32 * 32 + 32).bytes());
  };
  const graph::MetaGraph ggml = open_with(16 * 18);
  EXPECT_EQ(ggml.tensors[0].dtype, graph::DType::q2_0);
  EXPECT_TRUE(ggml.notes.empty());
  const graph::MetaGraph other = open_with(8 * 34);
  EXPECT_EQ(other.tensors[0].dtype, graph::DType::q2_0);  // 288 and 272 bytes are both padded to 288
  const auto two = [](std::uint64_t bytes) {
    GgufBuilder builder;
    builder.tensor_at("a", {256, 8}, 42, 0).tensor_at("b", {256, 8}, 42, bytes).data(bytes + 576);
    return read(builder.bytes());
  };
  EXPECT_EQ(two(32 * 18).tensors[1].dtype, graph::DType::q2_0);
  const graph::MetaGraph wide = two(16 * 34);
  EXPECT_EQ(wide.tensors[0].dtype, graph::DType::pq2_0);
  EXPECT_EQ(wide.storages[0].bytes, 16u * 34u);
  ASSERT_FALSE(wide.notes.empty());
  EXPECT_EQ(testing::facts(wide.notes[0].text), "42 128 34 64 18");
  const graph::MetaGraph neither = two(608);
  EXPECT_EQ(neither.tensors[0].dtype, graph::DType::opaque);
  EXPECT_EQ(neither.storages[0].bytes, 608u);
  EXPECT_EQ(testing::facts(neither.notes[0].text), "42 64 18 128 34");
  // rows of 64 have no blocks of 128
  GgufBuilder narrow;
  narrow.tensor_at("a", {64, 32}, 42, 0).tensor_at("b", {64, 32}, 42, 16 * 34).data(2048);
  EXPECT_EQ(read(narrow.bytes()).tensors[0].dtype, graph::DType::opaque);
}

TEST(Gguf, NotesRotatedWeights) {
  for (const char* const key : {"prism.hadamard.version", "quant.rotated", "spinquant.r1"}) {
    const graph::MetaGraph graph = read(GgufBuilder().key(key, 1U).tensor("t", {1}, 0, 4).bytes());
    ASSERT_EQ(graph.notes.size(), 1u) << key;
    EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
    EXPECT_NE(graph.notes[0].text.find(key), std::string::npos);
  }
  for (const char* const key : {"llama.rope.freq_base", "llama.rotary_dim", "tokenizer.transformers"})
    EXPECT_TRUE(read(GgufBuilder().key(key, 1U).tensor("t", {1}, 0, 4).bytes()).notes.empty()) << key;
}

// Section 7 of the format notes, the reference's own list, and llama.cpp's test-gguf.
std::vector<Hostile> hostile_table() {
  const GgufBuilder b;
  const auto key = [&](std::uint32_t type, std::string value) {
    return GgufBuilder().key("k", type, value).bytes();
  };
  const auto array = [&](std::uint32_t type, std::uint64_t count, std::string_view elements) {
    return GgufBuilder().key("k", b.array, b.number(type) + b.number(count) + std::string(elements)).bytes();
  };
  const auto one = [](const std::vector<std::uint64_t>& sizes, std::uint32_t type, std::uint64_t bytes) {
    return GgufBuilder().tensor("t", sizes, type, bytes).bytes();
  };
  std::vector<Hostile> table = {
      {"empty", "", "malformed m.gguf"},
      {"four bytes", "GGUF", "malformed m.gguf 4 4 0"},
      {"bad magic", "GGML" + std::string(20, '\0'),
       "unsupported m.gguf torch.save 1.6 torch.save torch.export config.json"},
      {"version 0", GgufBuilder(false, 0).bytes(), "unsupported m.gguf 4 0 2 3"},
      {"version 1", GgufBuilder(false, 1).bytes(), "unsupported m.gguf 4 1 2 3"},
      {"version 4", GgufBuilder(false, 4).bytes(), "unsupported m.gguf 4 4 2 3"},
      {"big-endian version 1", GgufBuilder(true, 1).bytes(), "unsupported m.gguf 4 1 2 3"},
      {"string length 2^64-1", key(b.string, b.number(~std::uint64_t{0})),
       "malformed m.gguf 37 'k' 18446744073709551615 0"},
      {"string length 2^63", key(b.string, b.number(std::uint64_t{1} << 63)),
       "malformed m.gguf 37 'k' 9223372036854775808 0"},
      {"token of 2^31 bytes", array(b.string, 1, b.number(std::uint64_t{1} << 31)),
       "malformed m.gguf 57 2147483648 0"},
      {"key length 2^64-1", GgufBuilder().claim(0, 1).header() + b.number(~std::uint64_t{0}) + "abcdef",
       "malformed m.gguf 24 18446744073709551615 6"},
      {"key of 65,536 bytes", GgufBuilder().key(std::string(65'536, 'k'), 1U).bytes(),
       "limit m.gguf 32 65536 65535"},
      {"empty key", GgufBuilder().key("", 1U).bytes(), "malformed m.gguf 24"},
      {"duplicate key", GgufBuilder().key("k", 1U).key("k", 2U).bytes(), "malformed m.gguf 41 'k'"},
      {"value type 13", key(13, "?"), "malformed m.gguf 33 13"},
      {"value type 2^32-1", key(~0U, "?"), "malformed m.gguf 33 4294967295"},
      {"array of arrays", array(b.array, 1, "abcdefghijkl"), "malformed m.gguf 37 'k'"},
      {"array of type 13", array(13, 1, ""), "malformed m.gguf 37 13"},
      {"strings 2^60", array(b.string, std::uint64_t{1} << 60, ""),
       "malformed m.gguf 41 1152921504606846976 8 0"},
      {"numbers 2^61+1 wrap", array(b.u64, (std::uint64_t{1} << 61) + 1, ""),
       "malformed m.gguf 41 2305843009213693953 8 0"},
      {"numbers past the end", array(b.u32, 3, "12345678"), "malformed m.gguf 41 3 4 8"},
      {"a value cut short", key(b.u64, "1234"), "malformed m.gguf 37 8 4"},
      {"alignment 0", GgufBuilder().key("general.alignment", 0U).bytes(),
       "malformed m.gguf 24 general.alignment 0 67108864"},
      {"alignment 3", GgufBuilder().key("general.alignment", 3U).bytes(),
       "malformed m.gguf 24 general.alignment 3 67108864"},
      {"alignment 13", GgufBuilder().key("general.alignment", 13U).bytes(),
       "malformed m.gguf 24 general.alignment 13 67108864"},
      {"alignment 2^31", GgufBuilder().key("general.alignment", 1U << 31).bytes(),
       "malformed m.gguf 24 general.alignment 2147483648 67108864"},
      {"alignment as i32", GgufBuilder().key("general.alignment", b.i32, b.number(32)).bytes(),
       "malformed m.gguf 24 general.alignment i32 u32"},
      {"alignment as text", GgufBuilder().key("general.alignment", "32").bytes(),
       "malformed m.gguf 24 general.alignment u32"},
      {"alignment 3 after another key", GgufBuilder().key("a", "text").key("general.alignment", 3U).bytes(),
       "malformed m.gguf 49 general.alignment 3 67108864"},
      {"tensor name 2^64-1",
       GgufBuilder().claim(1, 0).header() + b.number(~std::uint64_t{0}) + std::string(20, 'x'),
       "malformed m.gguf 24 18446744073709551615 20"},
      {"duplicate tensor", GgufBuilder().tensor("t", {1}, 0, 4).tensor("t", {1}, 0, 4).bytes(),
       "malformed m.gguf 57 't'"},
      {"rank 5", one({1, 1, 1, 1, 1}, 0, 4), "malformed m.gguf 24 't' 5 4"},
      {"rank 9", one(std::vector<std::uint64_t>(9, 1), 0, 4), "malformed m.gguf 24 't' 9 4"},
      {"rank 2^32-1",
       GgufBuilder().claim(1, 0).header() + b.text("t") + b.number(~0U) + std::string(40, '\0'),
       "malformed m.gguf 24 't' 4294967295 4"},
      {"negative dimension", one({~std::uint64_t{0}}, 0, 4), "malformed m.gguf 24 't' 0 -1"},
      {"row not in blocks", one({33}, 8, 34), "malformed m.gguf 24 't' 33 Q8_0 32"},
      {"no rank, blocks", one({}, 8, 34), "malformed m.gguf 24 't' 1 Q8_0 32"},
      {"product 2^64", one({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 24, 32),
       "malformed m.gguf 24 't' 4294967296,4294967296 64"},
      {"product wraps to 0 before a zero", one({0, std::uint64_t{1} << 62, 4}, 24, 32),
       "malformed m.gguf 24 't' 4,4611686018427387904,0 64"},
      {"bytes wrap", one({(std::uint64_t{1} << 62) + 1}, 0, 32),
       "malformed m.gguf 24 't' 4611686018427387905 F32 64"},
      {"stride times dimension wraps", one({std::uint64_t{1} << 21, (std::uint64_t{1} << 42) + 1}, 0, 32),
       "malformed m.gguf 24 't' 4398046511105,2097152 F32 64"},
      {"ne = INT64_MAX/4", one({INT64_MAX / 4}, 0, 32), "malformed m.gguf 24 't' 9223372036854775804 0 32"},
      {"just below the limit", one({0x7FFFFFFFFFFFFFC0}, 24, 32),
       "malformed m.gguf 24 't' 9223372036854775744 0 32"},
      {"two that add up to 2^64",
       GgufBuilder()
           .tensor_at("a", {0x7FFFFFFFFFFFFFC0}, 24, 0)
           .tensor_at("b", {0x7FFFFFFFFFFFFFC0}, 24, 0x7FFFFFFFFFFFFFC0)
           .data(64)
           .bytes(),
       "malformed m.gguf 24 'a' 9223372036854775744 0 64"},
      {"padding wraps", GgufBuilder().tensor_at("a", {1}, 24, ~std::uint64_t{0} - 31).data(64).bytes(),
       "malformed m.gguf 24 'a' 1 18446744073709551584 64"},
      {"offset past the end", GgufBuilder().tensor_at("a", {1}, 0, 64).data(64).bytes(),
       "malformed m.gguf 24 'a' 4 64 64"},
      {"offset misaligned", GgufBuilder().tensor_at("a", {1}, 0, 4).data(64).bytes(),
       "malformed m.gguf 24 'a' 4 32"},
      {"overlap", GgufBuilder().tensor_at("a", {16}, 0, 0).tensor_at("b", {1}, 0, 32).data(64).bytes(),
       "malformed m.gguf 57 'b' 32 64"},
      {"the same range twice",
       GgufBuilder().tensor_at("a", {1}, 0, 0).tensor_at("b", {1}, 0, 0).data(64).bytes(),
       "malformed m.gguf 57 'b' 0 4"},
      {"no data at all", GgufBuilder().tensor_at("a", {1}, 0, 0).header(), "malformed m.gguf 57 64 57"},
  };
  for (const std::uint64_t count :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 61) + 1}) {
    table.push_back({"tensors", GgufBuilder().claim(count, 0).header(),
                     fmt::format("malformed m.gguf 8 {} 20 8", count)});
    table.push_back({"key-values", GgufBuilder().claim(0, count).header(),
                     fmt::format("malformed m.gguf 16 {} 14 0", count)});
  }
  return table;
}

TEST(Gguf, HostileFilesGiveTheirError) {
  const std::vector<Hostile> table = hostile_table();
  EXPECT_GE(table.size(), 50u);
  testing::expect_errors(table, read);
}

TEST(Gguf, ManyStringsAreSteppedOver) {
  for (const bool big_endian : {false, true}) {
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < 100'000; ++i) tokens.emplace_back(i == 700 ? 300'000 : i % 40, 't');
    std::uint64_t bytes = 0;
    for (const std::string& token : tokens) bytes += 8 + token.size();
    GgufBuilder builder(big_endian);
    builder.strings("tokens", tokens).strings("merges", tokens).key("after", "them");
    const graph::MetaGraph graph = read(builder.bytes());
    for (const std::size_t key : {0U, 1U}) {
      const auto& array = std::get<graph::MetaArray>(graph.metadata[key].value);
      EXPECT_EQ(array.count, tokens.size());
      EXPECT_EQ(array.bytes, bytes);
    }
    EXPECT_EQ(std::get<std::string>(graph.metadata[2].value), "them");
  }
}

TEST(Gguf, AStringAmongManyThatEndsPastTheFileIsNamed) {
  const auto tokens = [](std::uint64_t wrong) {
    GgufBuilder b;
    std::string strings;
    for (std::uint64_t i = 0; i < 1000; ++i)
      strings += i == wrong ? b.number(std::uint64_t{1} << 63) : b.text("token");
    b.key("tokens", b.array, b.number(std::uint32_t{b.string}) + b.number(std::uint64_t{1000}) + strings);
    return b.bytes();
  };
  constexpr std::size_t kFirst = 24 + 8 + 6 + 4 + 4 + 8;  // where the first string begins
  testing::expect_errors(
      {{"a length of 2^63", tokens(700), "malformed m.gguf 9162 9223372036854775808 3887"},
       {"a cut length", tokens(1000).substr(0, kFirst + 900 * 13 + 5), "malformed m.gguf 11754 8 5"},
       {"a cut string", tokens(1000).substr(0, kFirst + 900 * 13 + 10), "malformed m.gguf 11762 5 2"}},
      read);
}

}  // namespace

// --- Importance matrices in both forms, right and wrong.

namespace {

using testing::as_bytes;
using testing::error_of;

graph::ImportanceMatrix read_matrix(std::string_view bytes) {
  return importers::read_importance_matrix(io::SourceFile::from_memory("m.imatrix", as_bytes(bytes)));
}

template <typename T>
std::string number(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text(std::string_view text) {
  return number(static_cast<std::int32_t>(text.size())) + std::string(text);
}

// --- GGUF

struct FloatTensor {
  std::string name;
  std::vector<std::uint64_t> sizes;  // fastest first
  std::vector<float> values;
};

std::string gguf_file(const std::vector<FloatTensor>& tensors, bool big_endian = false,
                      std::string_view type = "imatrix") {
  GgufBuilder builder(big_endian);
  builder.key("general.type", type).strings("imatrix.datasets", {"wiki.txt", "code.txt"});
  builder.key("imatrix.chunk_count", 12).key("imatrix.chunk_size", 512);
  for (const FloatTensor& tensor : tensors)
    builder.tensor(tensor.name, tensor.sizes, 0, 4 * tensor.values.size());
  std::string bytes = builder.header();
  for (const FloatTensor& tensor : tensors) {
    bytes.resize((bytes.size() + 31) / 32 * 32);
    for (const float value : tensor.values) bytes += builder.number(value);
  }
  return bytes;
}

std::vector<FloatTensor> sample_tensors() {
  return {{"blk.0.ffn_up_exps.weight.in_sum2", {3, 2}, {2, 4, 6, 0, 0, 0}},
          {"blk.0.ffn_up_exps.weight.counts", {1, 2}, {2, 0}},
          {"blk.0.attn_q.weight.in_sum2", {4}, {8, 0, 4, 2}},
          {"blk.0.attn_q.weight.counts", {1}, {4}},
          {"more", {1}, {7}}};
}
const graph::ImportanceMatrix kSample = {
    {{"blk.0.attn_q.weight", {2, 0, 1, 0.5F}}, {"blk.0.ffn_up_exps.weight", {1, 2, 3, 1, 1, 1}}},
    {"wiki.txt", "code.txt"},
    12};

TEST(Importance, GgufSumsAreDividedByTheirCounts) {
  EXPECT_EQ(read_matrix(gguf_file(sample_tensors())), kSample);
  EXPECT_EQ(read_matrix(gguf_file(sample_tensors(), true)), kSample);
}

TEST(Importance, HostileGgufFiles) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto replaced = [](std::size_t at, FloatTensor tensor) {
    std::vector<FloatTensor> tensors = sample_tensors();
    tensors[at] = std::move(tensor);
    return gguf_file(tensors);
  };
  const std::string sums = "blk.0.attn_q.weight.in_sum2", counts = "blk.0.attn_q.weight.counts";
  std::string halves = gguf_file({{sums, {4}, {1, 1, 1, 1}}, {counts, {1}, {1}}});
  const std::size_t type = halves.find(sums) + sums.size() + 4 + 8;
  halves[type] = 1;
  testing::expect_errors(
      {{"a model", gguf_file(sample_tensors(), false, "model"),
        "unsupported m.imatrix general.type 'imatrix'"},
       {"no general.type", GgufBuilder().bytes(), "unsupported m.imatrix general.type 'imatrix'"},
       {"no entries", gguf_file({}), "malformed m.imatrix NAME.in_sum2"},
       {"no counts", replaced(3, {"other", {1}, {1}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 'blk.0.attn_q.weight.counts'"},
       {"no sums", replaced(2, {"other", {1}, {1}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 'blk.0.attn_q.weight.in_sum2'"},
       {"two counts", replaced(3, {counts, {1, 2}, {1, 1}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 2 4 4"},
       {"no columns", replaced(2, {sums, {0}, {}}), "malformed m.imatrix 'blk.0.attn_q.weight' 1 0 0"},
       {"a negative count", replaced(3, {counts, {1}, {-1}}), "malformed m.imatrix 'blk.0.attn_q.weight' -1"},
       {"a count that is not a number", replaced(3, {counts, {1}, {kNaN}}),
        "malformed m.imatrix 'blk.0.attn_q.weight'"},
       {"a negative weight", replaced(2, {sums, {4}, {1, 2, -4, 8}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 2 -1"},
       {"a weight that is not a number", replaced(2, {sums, {4}, {1, 2, 4, kNaN}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 3"},
       {"an infinite weight", replaced(2, {sums, {4}, {1, kInfinity, 4, 8}}),
        "malformed m.imatrix 'blk.0.attn_q.weight' 1"},
       {"sums of another type", halves,
        "malformed m.imatrix 'blk.0.attn_q.weight' 'blk.0.attn_q.weight.in_sum2' F16 F32"}},
      [](std::string_view bytes) { read_matrix(bytes); });
}

TEST(Importance, EveryPrefixAndFlipOfAGgufFileIsAClearError) {
  const std::string sample = gguf_file(sample_tensors());
  for (std::size_t length = 0; length < sample.size(); ++length)
    EXPECT_NE(error_of([&] { read_matrix(std::string_view(sample).substr(0, length)); }), "") << length;
  testing::expect_flips_survived("m.imatrix", sample, sample.size(),
                                 [](std::string_view bytes) { read_matrix(bytes); });
}

// --- the binary form

std::string entry(std::string_view name, std::int32_t calls, const std::vector<float>& values) {
  std::string bytes = text(name) + number(calls) + number(static_cast<std::int32_t>(values.size()));
  for (const float value : values) bytes += number(value);
  return bytes;
}
std::string binary_sample() {
  return number(std::int32_t{2}) + entry("blk.0.ffn_up_exps.weight", 2, {2, 4, 6, 2, 2, 2}) +
         entry("blk.0.attn_q.weight", 0, {2, 0, 1, 0.5F}) + number(std::int32_t{12}) + text("wiki.txt");
}

TEST(Importance, BinaryValuesAreDividedByTheirCalls) {
  graph::ImportanceMatrix expected = kSample;
  expected.datasets = {"wiki.txt"};
  EXPECT_EQ(read_matrix(binary_sample()), expected);
  expected.datasets = {};
  expected.chunks = 0;
  const std::string oldest = binary_sample();
  EXPECT_EQ(read_matrix(oldest.substr(0, oldest.size() - 16)), expected);
}

TEST(Importance, HostileBinaryFiles) {
  const std::string one = number(std::int32_t{1});
  testing::expect_errors(
      {{"empty", "", "malformed m.imatrix 0 4 0"},
       {"no entries", number(std::int32_t{0}), "malformed m.imatrix 0 0 0"},
       {"fewer than none", number(std::int32_t{-1}), "malformed m.imatrix 0 -1 0"},
       {"too many entries", number(std::int32_t{1 << 30}) + std::string(99, 'x'),
        "malformed m.imatrix 0 1073741824 99"},
       {"an empty name", one + text("") + std::string(30, '\1'), "malformed m.imatrix 4 0 30"},
       {"a name past the end", one + number(std::int32_t{100}) + std::string(30, 'x'),
        "malformed m.imatrix 4 100 30"},
       {"no values", one + entry("w", 1, {}) + std::string(30, '\0'), "malformed m.imatrix 13 0 30"},
       {"more values than bytes",
        one + text("w") + one + number(std::int32_t{INT32_MAX}) + std::string(8, 'x'),
        "malformed m.imatrix 13 2147483647 8"},
       {"twice the same name", number(std::int32_t{2}) + entry("w", 1, {1}) + entry("w", 1, {1}),
        "malformed m.imatrix 'w'"},
       {"a negative weight", one + entry("w", 1, {1, -3}), "malformed m.imatrix 'w' 1 -3"},
       {"bytes after the end", binary_sample() + "x", "malformed m.imatrix 127 1"},
       {"a dataset past the end", one + entry("w", 1, {1}) + one + number(std::int32_t{5}) + "wiki",
        "malformed m.imatrix 25 5 4"}},
      [](std::string_view bytes) { read_matrix(bytes); });
}

TEST(Importance, EveryPrefixOfABinaryFileIsAClearError) {
  const std::string sample = binary_sample();
  const std::size_t end = sample.size() - 16;  // of the entries
  for (std::size_t length = 0; length < sample.size(); ++length)
    if (length != end && length != end + 4)
      EXPECT_NE(error_of([&] { read_matrix(std::string_view(sample).substr(0, length)); }), "") << length;
  testing::expect_flips_survived("m.imatrix", sample, sample.size(),
                                 [](std::string_view bytes) { read_matrix(bytes); });
}

// --- looking up

TEST(Importance, WeightsAreFoundByNameAndExpert) {
  const auto weights = [](std::string_view tensor, std::uint64_t columns, std::uint64_t expert,
                          std::uint64_t experts) {
    const auto found = graph::column_importance(kSample, tensor, columns, expert, experts);
    return std::vector<float>(found.begin(), found.end());
  };
  EXPECT_EQ(weights("blk.0.attn_q.weight", 4, 0, 1), (std::vector<float>{2, 0, 1, 0.5F}));
  EXPECT_EQ(weights("blk.0.ffn_up_exps.weight", 3, 1, 2), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(weights("blk.1.attn_q.weight", 4, 0, 1).empty());
  EXPECT_EQ(error_of([&] { weights("blk.0.attn_q.weight", 8, 0, 1); }),
            "tensor 'blk.0.attn_q.weight': has 8 columns in 1 experts, the importance matrix has 4 weights");
  EXPECT_NE(error_of([&] { weights("blk.0.attn_q.weight", UINT64_MAX / 2, 0, 4); }), "");
}

}  // namespace

}  // namespace loadline::tests
