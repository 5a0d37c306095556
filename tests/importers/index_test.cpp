// Indexes of sharded models.

#include "importers/huggingface/index.h"

#include "core/graph/meta_graph.h"
#include "importers/importer.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Sharded models: the index in pieces and whole, in any order, and against its shards.

namespace {

using testing::memory_source;
using testing::safetensors_bytes;

using Entry = std::pair<std::string, std::string>;  // tensor, shard

// As huggingface_hub writes it, or without any white space.
std::string index_text(const std::vector<Entry>& entries, std::string_view total, bool lines = true) {
  const char* const end = lines ? "\n" : "";
  std::string text = fmt::format(R"({{{}"metadata":{{"total_size":{}}},{}"weight_map":{{)", end, total, end);
  for (std::size_t i = 0; i < entries.size(); ++i)
    text += fmt::format(R"({}{}    "{}": "{}")", i == 0 ? "" : ",", end, entries[i].first, entries[i].second);
  return text + fmt::format("{}  }}{}}}{}", end, end, end);
}

io::SourceFile file_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return io::SourceFile::from_memory("m.index.json", {bytes.begin(), bytes.end()});
}

std::string shard_name(std::size_t number, std::size_t of) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, of);
}

// One byte for each name.
std::string shard_bytes(const std::vector<std::string>& names) {
  std::string header = "{";
  for (std::size_t i = 0; i < names.size(); ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i == 0 ? "" : ",",
                          names[i], i, i + 1);
  return safetensors_bytes(header + "}", names.size());
}

struct Model {
  std::vector<Entry> entries;  // of the index
  std::vector<Entry> files;    // name, bytes
};

Model model_of(std::size_t shards, std::size_t each) {
  Model model;
  for (std::size_t s = 0; s < shards; ++s) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < each; ++i) {
      names.push_back(fmt::format("model.layers.{}.some.rather.long.name.{}", s, i));
      model.entries.emplace_back(names.back(), shard_name(s, shards));
    }
    model.files.emplace_back(shard_name(s, shards), shard_bytes(names));
  }
  return model;
}

graph::MetaGraph open(const Model& model, std::string_view total, bool lines = true) {
  return importers::import_source(
      memory_source("m.index.json", index_text(model.entries, total, lines), model.files));
}

std::string error_of(const Model& model) {
  return testing::facts_of([&] { open(model, "0"); });
}

// Every way of reading an index gives the same entries.
TEST(HfWeightMap, PiecesGiveTheSameAsTheWhole) {
  for (const std::size_t count : {1U, 2U, 1000U, 5000U, 12'345U}) {
    const Model model = model_of(1, count);
    for (const bool lines : {true, false}) {
      const io::SourceFile file = file_of(index_text(model.entries, "77", lines));
      importers::HfWeightMap map(file);
      std::vector<std::vector<Entry>> pieces(map.pieces());
      const bool plain = map.scan(4, [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
        pieces[piece].emplace_back(tensor, shard);
      });
      EXPECT_EQ(plain, lines || map.pieces() == 1) << count;
      if (plain) {
        std::vector<Entry> all;
        for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
        EXPECT_EQ(all, model.entries);
        EXPECT_EQ(map.total_size(), 77u);
      }
      std::vector<Entry> whole;
      map.parse([&](std::size_t, std::string_view tensor, std::string_view shard) {
        whole.emplace_back(tensor, shard);
      });
      EXPECT_EQ(whole, model.entries);
      EXPECT_EQ(map.total_size(), 77u);
    }
  }
}

// Where pieces can be read one by one, both ways give the same.
TEST(HfWeightMap, WhateverStandsAtBordersPiecesAgreeWithTheWhole) {
  std::mt19937 random(5);
  const std::string original =
      index_text(model_of(1, 6000).entries, "1");  // with pieces that are all entries
  constexpr std::string_view kAlphabet = "{}:,\"\n 0x\\\x01";
  std::size_t understood = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = original;
    // anywhere, or near a border, where pieces are cut
    const std::size_t at = round % 2 == 0 ? random() % text.size() : (112 << 10) - 100 + random() % 200;
    text[at] = kAlphabet[random() % kAlphabet.size()];
    const io::SourceFile file = file_of(text);
    importers::HfWeightMap map(file);
    std::vector<std::vector<Entry>> pieces(map.pieces());
    if (!map.scan(2, [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
          pieces[piece].emplace_back(tensor, shard);
        }))
      continue;
    ++understood;
    std::vector<Entry> fast, whole;
    for (const auto& piece : pieces) fast.insert(fast.end(), piece.begin(), piece.end());
    ASSERT_NO_THROW(map.parse([&](std::size_t, std::string_view tensor, std::string_view shard) {
      whole.emplace_back(tensor, shard);
    })) << round;
    ASSERT_EQ(fast, whole) << round;
  }
  EXPECT_GT(understood, 30u);
}

TEST(HfWeightMap, MetadataMayStandBehindTheMap) {
  const io::SourceFile file = file_of(R"({"weight_map":{"a":"s"},"metadata":{"total_size":5}})");
  importers::HfWeightMap map(file);
  std::size_t entries = 0;
  EXPECT_TRUE(map.scan(1, [&](std::size_t, std::string_view, std::string_view) { ++entries; }));
  EXPECT_EQ(entries, 1u);
  EXPECT_EQ(map.total_size(), 5u);
}

// Entries are read before a parser has seen what stands around them: only those of the index's own map count.
TEST(HfWeightMap, OnlyEntriesOfTheOneMapCount) {
  const auto read = [](const std::string& text) -> std::string {
    const io::SourceFile file = file_of(text);
    importers::HfWeightMap map(file);
    std::string found;
    const auto take = [&](std::size_t, std::string_view tensor, std::string_view) { found += tensor; };
    if (map.scan(1, take)) return found;
    found.clear();
    return testing::facts_of([&] { map.parse(take); }) + found;
  };
  EXPECT_EQ(read(R"({"weight_map": {"a":"s","b":"s"}})"), "ab");
  EXPECT_EQ(read(R"({"weight_map":{}})"), "");
  EXPECT_EQ(read(R"({"metadata":{"weight_map":{"x":"s","y":"s"}},"weight_map":{"a":"s","b":"s"}})"), "ab");
  EXPECT_EQ(read(R"({"metadata":{"\\"weight_map": {":1},"weight_map":{"a":"s","b":"s"}})").substr(0, 9),
            "malformed");
  for (const char* text : {R"({"weight_map":{"a":"s",}})", R"({"weight_map":{"a":"s","b":"s",}})",
                           R"({"weight_map":{"a":"s","b":"s"},"weight_map":{"c":"s"}})",
                           R"({"weight_map":{"a":"s","b":"s"})", R"({"weight_map":{"a":"s","b":2}})",
                           R"({"weight_map":{)", R"({"x":{"weight_map":{"a":"s","b":"s"}}})",
                           R"(["weight_map": {"a":"s","b":"s"}})", R"({"weight_map": {"a":"s","b":"s"}]})"})
    EXPECT_EQ(read(text).substr(0, 22), "malformed m.index.json") << text;
  // before the map and behind it: nothing says which counts, but the parser
  EXPECT_EQ(read(R"({"metadata":{},"weight_map":{"a":"s","b":"s"},"metadata":{}})"), "ab");
}

TEST(HfIndex, OpensWhateverTheOrderOfItsEntries) {
  Model model = model_of(9, 600);
  const graph::MetaGraph in_order = open(model, "5400");
  EXPECT_EQ(in_order.tensors.size(), 5400u);
  EXPECT_TRUE(in_order.notes.empty());
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    std::shuffle(model.entries.begin(), model.entries.end(), random);
    const graph::MetaGraph graph = open(model, "5400", round % 2 == 0);
    EXPECT_EQ(graph.tensors, in_order.tensors);
    EXPECT_EQ(graph.storages, in_order.storages);
    EXPECT_TRUE(graph.notes.empty());
  }
  std::sort(model.entries.begin(), model.entries.end());
  EXPECT_TRUE(open(model, "5400").notes.empty());
}

TEST(HfIndex, ShardsThatDoNotCountOpenToo) {
  Model model = model_of(3, 4);
  for (Entry& entry : model.entries)
    if (entry.second == shard_name(1, 3)) entry.second = "extra.safetensors";
  model.files[1].first = "extra.safetensors";
  const graph::MetaGraph graph = open(model, "12");
  EXPECT_EQ(graph.tensors.size(), 12u);
  ASSERT_EQ(graph.files.size(), 4u);
  EXPECT_EQ(graph.files[1].path, "extra.safetensors");  // natural order: before "model-..."
  EXPECT_TRUE(graph.notes.empty());
}

// A shard is found to be cut short only when its names are known already.
TEST(HfIndex, AnyShardThatIsCutShortIsRefused) {
  for (const std::size_t shards : {2U, 3U, 9U})
    for (std::size_t cut = 0; cut < shards; ++cut)
      for (const bool sorted : {false, true}) {
        Model model = model_of(shards, 50);
        if (sorted) std::ranges::sort(model.entries, std::ranges::greater{});
        model.files[cut].second.pop_back();
        EXPECT_THAT(error_of(model), ::testing::StartsWith("malformed " + shard_name(cut, shards) + " "))
            << cut;
      }
}

TEST(HfIndex, ANameTwiceInTheIndexIsTheFirstOfThem) {
  Model model = model_of(8, 1000);
  model.entries.insert(model.entries.begin() + 7000, model.entries[10]);
  model.entries.insert(model.entries.begin() + 3000, model.entries[5]);
  EXPECT_EQ(error_of(model), fmt::format("malformed m.index.json '{}' weight_map", model.entries[5].first));
  Model absent = model_of(2, 2);
  absent.entries.emplace_back("nowhere", shard_name(0, 2));
  absent.entries.emplace_back("nowhere", shard_name(1, 2));
  EXPECT_EQ(error_of(absent), "malformed m.index.json 'nowhere' weight_map");
}

// A copy of "shared" lies in each shard, beside other tensors and in other orders of the index.
TEST(HfIndex, TheIndexDecidesOverCopies) {
  for (const std::size_t named : {0U, 1U})
    for (int order = 0; order < 24; ++order) {
      Model model = model_of(2, 3);
      model.files[0].second = shard_bytes({"a", "b", "shared"});
      model.files[1].second = shard_bytes({"shared", "c"});
      model.entries = {{"a", shard_name(0, 2)},
                       {"b", shard_name(0, 2)},
                       {"c", shard_name(1, 2)},
                       {"shared", shard_name(named, 2)}};
      for (int i = 0; i < order; ++i) std::ranges::next_permutation(model.entries);
      const graph::MetaGraph graph = open(model, order % 2 == 0 ? "4" : "5");  // with the copy or without it
      ASSERT_EQ(graph.tensors.size(), 4u);
      EXPECT_EQ(graph.storages.size(), 4u);
      EXPECT_EQ(graph::storage_bytes(graph), 4u);
      const graph::Storage& storage = graph.storage(testing::tensor_named(graph, "shared").storage);
      EXPECT_EQ(graph.file(storage.file).path, shard_name(named, 2)) << order;
      const char* const neighbor = named == 0 ? "b" : "c";  // the one before it, or behind it
      const std::uint64_t beside = graph.storage(testing::tensor_named(graph, neighbor).storage).offset;
      EXPECT_EQ(storage.offset, named == 0 ? beside + 1 : beside - 1);
      ASSERT_EQ(graph.notes.size(), 1u);
      EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "1 'shared'"));
      EXPECT_NO_THROW(graph::require_sound(graph, "convert"));
    }
}

TEST(HfIndex, CopiesOfWhichTheIndexNamesNoneAreRefused) {
  Model model = model_of(3, 1);
  model.files[0].second = shard_bytes({"a", "shared"});
  model.files[1].second = shard_bytes({"shared", "b"});
  model.files[2].second = shard_bytes({"c"});
  model.entries = {{"a", shard_name(0, 3)}, {"b", shard_name(1, 3)}, {"c", shard_name(2, 3)}};
  const std::string error = fmt::format("malformed {} 'shared' '{}'", shard_name(1, 3), shard_name(0, 3));
  EXPECT_EQ(error_of(model), error);
  model.entries.emplace_back("shared", shard_name(2, 3));  // which does not hold it
  EXPECT_EQ(error_of(model), error);
  model.entries.back().second = shard_name(0, 3);
  model.entries.emplace_back("shared", shard_name(1, 3));
  EXPECT_EQ(error_of(model), fmt::format("malformed {} 'shared'", shard_name(1, 3)));
}

TEST(HfIndex, SaysWhatTheIndexPutsElsewhere) {
  Model model = model_of(2, 2);
  std::swap(model.entries[0].second, model.entries[3].second);
  model.entries.emplace_back("gone", shard_name(1, 2));
  const graph::MetaGraph graph = open(model, "4");
  EXPECT_EQ(graph.missing, std::vector<std::string>{"gone"});
  ASSERT_EQ(graph.notes.size(), 3u);
  EXPECT_EQ(graph.notes[0].text,
            fmt::format("in shard '{}', the index puts it in '{}'", shard_name(0, 2), shard_name(1, 2)));
  EXPECT_EQ(graph.notes[1].text,
            fmt::format("in shard '{}', the index puts it in '{}'", shard_name(1, 2), shard_name(0, 2)));
  EXPECT_EQ(graph.notes[2].text,
            fmt::format("the index puts it in '{}', which does not hold it", shard_name(1, 2)));
}

// What a JSON parser refuses must not open in pieces either.
TEST(HfIndex, JunkBeforeATextIsRefused) {
  for (const char* junk : {"00\"x\"", "12345678901234567890\"x\"", "01"}) {
    const std::string index =
        fmt::format(R"({{"metadata":{{"k":{}}},"weight_map":{{"w":"model.safetensors"}}}})", junk);
    EXPECT_THROW(importers::import_source(
                     memory_source("m.index.json", index, {{"model.safetensors", shard_bytes({"w"})}})),
                 Error)
        << junk;
  }
}

TEST(HfIndex, ManyMissingShardsStayLinear) {
  std::string index = R"({"weight_map":{)";
  for (int i = 0; i < 60'000; ++i) index += fmt::format(R"({}"t{}":"s{}")", i == 0 ? "" : ",", i, i);
  const graph::MetaGraph graph = importers::import_source(memory_source("m.index.json", index + "}}"));
  EXPECT_EQ(graph.missing.size(), 60'000u);
}

}  // namespace

}  // namespace loadline::tests
