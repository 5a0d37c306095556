// Edited headers: the same size, the same tensors, the metadata that was asked for.
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/edit/edit_header.h"
#include "importers/importer.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::GgufBuilder;
using Changes = std::vector<MetadataChange>;

MetadataChange set(std::string key, std::string value) { return {std::move(key), {}, std::move(value)}; }
MetadataChange add(std::string key, std::string type, std::string value) {
  return {std::move(key), std::move(type), std::move(value)};
}
MetadataChange remove(std::string key) { return {std::move(key), {}, {}}; }

// A file in memory that can be edited again and again.
class Edited {
 public:
  Edited(std::string name, std::string bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  MetaGraph read() const { return import_source(testing::memory_source(name_, bytes_)); }
  // Checks that only the header changes, and in it only what was asked for.
  HeaderEdit edit(const Changes& changes) {
    const MetaGraph before = read();
    const SourceFile file = SourceFile::from_memory(name_, testing::as_bytes(bytes_));
    HeaderEdit edit = edit_header(before, file, changes);
    EXPECT_EQ(edit.before.size(), edit.after.size());
    EXPECT_EQ(std::memcmp(edit.before.data(), bytes_.data(), edit.before.size()), 0);
    std::memcpy(bytes_.data(), edit.after.data(), edit.after.size());
    const MetaGraph after = read();
    EXPECT_EQ(after.tensors, before.tensors);
    EXPECT_EQ(after.storages, before.storages);
    for (const MetaEntry& entry : before.metadata)
      if (std::ranges::find(changes, entry.key, &MetadataChange::key) == changes.end() &&
          entry.key != kSlackKey)
        EXPECT_EQ(text(after, entry.key), meta_text(entry.value)) << entry.key;
    return edit;
  }
  std::string fault(const Changes& changes) const {
    try {
      (void)edit_header(read(), SourceFile::from_memory(name_, testing::as_bytes(bytes_)), changes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::string text(const MetaGraph& graph, std::string_view key) {
    const MetaValue* const value = find_metadata(graph, key);
    return value == nullptr ? "-" : meta_text(*value);
  }
  std::string text(std::string_view key) const { return text(read(), key); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string name_, bytes_;
};

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

Edited gguf() { return {"m.gguf", testing::sample_gguf()}; }

// --- GGUF

TEST(EditGguf, KeepsTheTypesOfExistingKeys) {
  Edited file = gguf();
  const HeaderEdit edit = file.edit(
      {set("u8", "7"), set("i8", "-128"), set("u16", "65535"), set("i16", "0"), set("i32", "-2147483648"),
       set("f32", "0.25"), set("bool", "false"), set("u64", "18446744073709551615"), set("i64", "-1"),
       set("f64", "1e300"), set("general.architecture", "gpt2"), set("scores", "[0.5, -1]")});
  EXPECT_EQ(edit.changed.size(), 12u);
  EXPECT_EQ(edit.changed[0].before, "llama");
  const MetaGraph after = file.read();
  EXPECT_EQ(std::get<std::uint8_t>(*find_metadata(after, "u8")), 7);
  EXPECT_EQ(std::get<std::int32_t>(*find_metadata(after, "i32")), INT32_MIN);
  EXPECT_EQ(std::get<float>(*find_metadata(after, "f32")), 0.25F);
  EXPECT_EQ(std::get<bool>(*find_metadata(after, "bool")), false);
  EXPECT_EQ(std::get<double>(*find_metadata(after, "f64")), 1e300);
  EXPECT_EQ(file.text("general.architecture"), "gpt2");
  EXPECT_EQ(file.text("scores"), "2 f32 values");
}

TEST(EditGguf, RefusesValuesThatDoNotFitTheType) {
  const Edited file = gguf();
  for (const auto& [key, value, words] : std::vector<std::array<std::string, 3>>{
           {"u8", "256", "in the range of u8"},
           {"u8", "-1", "a number of type u8"},
           {"u8", "1.5", "a number of type u8"},
           {"u8", "", "a number of type u8"},
           {"u64", "18446744073709551616", "in the range of u64"},
           {"i64", "0x10", "a number of type i64"},
           {"f32", "1e400", "in the range of f32"},
           {"f32", "one", "a number of type f32"},
           {"bool", "1", "true or false"},
           {"scores", "1.5", "a JSON array"},
           {"scores", "[1, \"x\"]", "a JSON array of f32"},
           {"scores", "[[1]]", "a JSON array of f32"},
           {"tokenizer.ggml.tokens", "[1]", "a JSON array of string"},
           {"tokenizer.ggml.tokens", std::string(100'000, '['), "a JSON array"}})
    EXPECT_TRUE(says(file.fault({set(key, value)}), "is not " + words)) << file.fault({set(key, value)});
}

TEST(EditGguf, NewKeysNeedATypeAndOldOnesKeepTheirs) {
  Edited file = gguf();
  EXPECT_TRUE(says(file.fault({set("mine", "1")}), "is new: say its type, KEY:TYPE=VALUE"));
  EXPECT_TRUE(says(file.fault({add("mine", "u128", "1")}), "no type is called 'u128'"));
  EXPECT_TRUE(says(file.fault({add("u8", "u16", "1")}), "'u8' is of type u8, not u16"));
  EXPECT_TRUE(says(file.fault({add("scores", "f32", "1")}), "is of type f32[], not f32"));
  file.edit({remove("tokenizer.ggml.tokens"), remove("scores"), add("mine", "u32", "5"), add("u8", "u8", "9"),
             add("n", "string[]", R"(["a","b"])"), add("e", "u8[]", "[]")});
  EXPECT_EQ(file.text("mine"), "5");
  EXPECT_EQ(file.text("n"), "2 strings");
  EXPECT_EQ(file.text("e"), "0 u8 values");
  EXPECT_EQ(file.text("tokenizer.ggml.tokens"), "-");
}

TEST(EditGguf, RefusesKeysOfTheLayoutAndSenselessChanges) {
  const Edited file = gguf();
  for (const char* key : {"general.alignment", "split.count", "loadline.slack", "GGUF.version"})
    EXPECT_TRUE(says(file.fault({add(key, "u32", "64")}), "says how the file is laid out")) << key;
  EXPECT_TRUE(says(file.fault({remove("absent")}), "'absent' is not in the file"));
  EXPECT_TRUE(says(file.fault({set("u8", "1"), remove("u8")}), "is changed twice"));
  EXPECT_TRUE(says(file.fault({set("", "1")}), "is empty"));
  EXPECT_TRUE(says(file.fault({add("\xFF", "u8", "1")}), "is not UTF-8"));
  EXPECT_TRUE(says(file.fault({set("general.architecture", "\xFF")}), "not UTF-8"));
  EXPECT_TRUE(says(file.fault({add(std::string(70'000, 'k'), "u8", "1")}), "a key of 70000 bytes"));
}

TEST(EditGguf, SaysHowManyBytesAreMissing) {
  const std::string fault = gguf().fault({set("general.architecture", std::string(1000, 'x'))});
  EXPECT_TRUE(says(fault, "too few. Convert")) << fault;
}

TEST(EditGguf, BigEndianFilesAreRefused) {
  const Edited file("m.gguf", testing::sample_gguf(true));
  EXPECT_TRUE(says(file.fault({set("u8", "1")}), "only little-endian"));
}

// The data stays where readers look for it, whatever the sizes and the alignment are.
TEST(EditGguf, EverySizeEitherFitsExactlyOrIsRefused) {
  for (const std::uint32_t alignment : {8u, 16u, 32u, 64u, 4096u}) {
    GgufBuilder builder;
    builder.alignment(alignment).key("general.architecture", "llama").key("text", std::string(100, 'x'));
    const std::string bytes = builder.tensor("t", {8}, 0, 32).bytes();
    std::size_t fitted = 0;
    for (std::size_t length = 0; length <= 300; ++length) {
      Edited file("m.gguf", bytes);
      const Changes change = {set("text", std::string(length, 'y'))};
      if (const std::string fault = file.fault(change); !fault.empty()) {
        EXPECT_TRUE(says(fault, "too few. Convert") || (alignment < 32 && says(fault, "so small a gap")))
            << alignment << " " << length << " " << fault;
        continue;
      }
      ++fitted;
      const HeaderEdit edit = file.edit(change);
      EXPECT_EQ(file.text("text"), std::string(length, 'y'));
      // and back, and what is said to fit does
      if (length < 100) {
        file.edit({set("text", std::string(length + edit.room, 'z'))});
        EXPECT_NE(file.fault({set("text", std::string(length + edit.room + alignment + 64, 'z'))}), "");
      }
    }
    EXPECT_GE(fitted, alignment < 32 ? 80u : 100u) << alignment;
  }
}

TEST(EditGguf, SlackIsUsedAndKept) {
  GgufBuilder builder;
  builder.key("general.architecture", "llama").key("loadline.slack", std::string(4096, ' '));
  Edited file("m.gguf", builder.tensor("t", {8}, 0, 32).bytes());
  const HeaderEdit edit = file.edit({add("mine", "string", std::string(1000, 'x'))});
  EXPECT_GT(edit.room, 3000u);
  EXPECT_EQ(file.text("loadline.slack").size(), edit.room);
  file.edit({add("more", "string", std::string(edit.room - 24, 'x'))});
  EXPECT_NE(file.fault({add("again", "string", std::string(100, 'x'))}), "");
  file.edit({remove("mine"), remove("more")});
  EXPECT_GT(file.text("loadline.slack").size(), 4000u);
}

TEST(EditGguf, AFileWithoutTensors) {
  GgufBuilder builder;
  builder.key("general.architecture", "llama").key("tokenizer.ggml.model", "something");
  Edited file("m.gguf", builder.bytes());
  file.edit({set("general.architecture", "x")});
  EXPECT_NE(file.fault({set("general.architecture", "something longer")}), "");
}

// --- safetensors

Edited safetensors(std::string_view header, std::size_t data) {
  return {"m.safetensors", testing::safetensors_bytes(header, data)};
}
constexpr std::string_view kTensor = R"("x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";

TEST(EditSafetensors, SetsRemovesAndAdds) {
  Edited file = safetensors("{ \"__metadata__\" : {\"format\":\"pt\", \"a\":\"1\"} , " +
                                std::string(kTensor) + " }" + std::string(40, ' '),
                            4);
  const HeaderEdit edit = file.edit({set("a", "2"), set("new\"key", "line\nbreak"), remove("format")});
  EXPECT_EQ(file.text("a"), "2");
  EXPECT_EQ(file.text("new\"key"), "line\nbreak");
  EXPECT_EQ(file.text("format"), "-");
  EXPECT_TRUE(says(file.bytes(), std::string(kTensor)));
  // what is said to fit does, and not a byte more
  Edited more = file;
  more.edit({set("a", "2" + std::string(edit.room, 'x'))});
  EXPECT_TRUE(says(file.fault({set("a", "2" + std::string(edit.room + 1, 'x'))}), "1 too few"));
}

TEST(EditSafetensors, MetadataAnywhereOrNowhere) {
  const std::string room(60, ' ');
  for (const std::string& header :
       {"{" + std::string(kTensor) + "}" + room, "{" + std::string(kTensor) + ",\"__metadata__\":{}}" + room,
        "{\"__metadata__\":{\"b\":\"}{\\\"\"}," + std::string(kTensor) + "}" + room,
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"__metadata__":{},)" + std::string(kTensor) +
            "}" + room}) {
    Edited file = safetensors(header, 4);
    file.edit({set("k", "v")});
    EXPECT_EQ(file.text("k"), "v");
    file.edit({remove("k")});
    EXPECT_EQ(file.text("k"), "-");
  }
  Edited empty = safetensors("{}" + room, 0);
  empty.edit({set("k", "v")});
  EXPECT_EQ(empty.text("k"), "v");
}

TEST(EditSafetensors, EscapedKeysAreFound) {
  Edited file = safetensors(
      R"({"__\u006detadata__":{"a\u0062":"1"},)" + std::string(kTensor) + "}" + std::string(40, ' '), 4);
  file.edit({set("ab", "2")});
  EXPECT_EQ(file.text("ab"), "2");
}

TEST(EditSafetensors, RefusesTypesAndTheFolderSConfig) {
  const Edited file = safetensors("{" + std::string(kTensor) + "}", 4);
  EXPECT_TRUE(says(file.fault({add("k", "u32", "1")}), "is text"));
  EXPECT_TRUE(says(file.fault({set("config.json", "{}")}), "edit that file"));
  EXPECT_TRUE(says(file.fault({set("k", "v")}), "too few. Convert"));
}

TEST(EditSafetensors, ManyTensorsStayAsTheyStand) {
  testing::SafetensorsHeader header(R"({"a":"x"})");
  for (int i = 0; i < 2000; ++i) header.add("t" + std::to_string(i), "U8", "3", 3);
  Edited file("m.safetensors", testing::safetensors_bytes(header.text(), header.data_bytes()));
  const std::string before = file.bytes();
  file.edit({set("a", "y")});
  EXPECT_EQ(before.size(), file.bytes().size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < before.size(); ++i) different += before[i] != file.bytes()[i];
  EXPECT_EQ(different, 1u);
}

TEST(EditHeader, OtherFormatsAreRefused) {
  EXPECT_TRUE(can_edit_header("gguf"));
  EXPECT_FALSE(can_edit_header("hf_index"));
  EXPECT_TRUE(is_metadata_type("f32[]"));
  EXPECT_FALSE(is_metadata_type("[]"));
  EXPECT_FALSE(is_metadata_type("array"));
}

}  // namespace
}  // namespace loadline
