// What the session reads of a model's files: metadata arrays, findings, what an exporter would refuse.
#include "app/gui/meta_text.h"
#include "app/gui/session.h"
#include "importers/resolve.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

using loadline::testing::GgufBuilder;
using loadline::testing::TemporaryFolder;
using loadline::testing::write_file;

void settle(Session& session) {
  while (session.busy())
    if (!session.poll()) std::this_thread::yield();
}

class Vocabulary : public ::testing::Test {
 protected:
  static constexpr std::size_t kWords = 60'000;

  Vocabulary() {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < kWords; ++i) words.push_back("Word" + std::to_string(i));
    words[7] = std::string(3000, 'y');
    GgufBuilder builder;
    builder.key("general.architecture", "llama").strings("words", words);
    builder.key("flags", GgufBuilder::array,
                builder.number(std::uint32_t{GgufBuilder::u8}) + builder.number(std::uint64_t{3}) + "abc");
    builder.tensor("t", {4}, 0, 16);
    write_file(path_, builder.bytes());
    session_.show(std::make_shared<const MetaGraph>(open_model(path_, {})), path_);
    settle(session_);
    look_at("words");
  }
  void look_at(std::string_view key) {
    const auto& entries = session_.model()->graph->metadata;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const MetaEntry& e) { return e.key == key; });
    session_.look_at(static_cast<std::size_t>(entry - entries.begin()));
  }
  std::string element(std::uint64_t i) {
    const std::string* text = session_.array()->element(i);
    return text == nullptr ? "(not read)" : *text;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "words.gguf";
  Session session_{""};
};

TEST_F(Vocabulary, reads_the_pages_that_are_wanted) {
  ASSERT_TRUE(session_.array());
  EXPECT_EQ(element(0), "(not read)");
  session_.array()->want(50'000, 50'010);
  EXPECT_TRUE(session_.array()->reading());
  settle(session_);
  EXPECT_FALSE(session_.array()->reading());
  EXPECT_EQ(element(50'000), "Word50000");
  EXPECT_EQ(element(50'009), "Word50009");
  EXPECT_EQ(element(0), "(not read)");
  session_.array()->want(kWords - 1, kWords + 500);
  settle(session_);
  EXPECT_EQ(element(kWords - 1), "Word59999");
  EXPECT_EQ(element(kWords), "(not read)");
  session_.array()->want(50'000, 50'010);
  EXPECT_FALSE(session_.busy());  // it is there already
}

TEST_F(Vocabulary, keeps_few_pages_and_the_beginning_of_long_elements) {
  for (std::uint64_t at = 0; at < kWords; at += 200) {
    session_.array()->want(at, at + 100);
    settle(session_);
    EXPECT_NE(element(at), "(not read)") << at;
  }
  session_.array()->want(0, 10);
  settle(session_);
  EXPECT_EQ(element(6), "Word6");
  EXPECT_LT(element(7).size(), 500u);
  EXPECT_EQ(element(8), "Word8");
}

TEST_F(Vocabulary, the_newest_wish_wins) {
  for (std::uint64_t at = 0; at < kWords; at += 1000) session_.array()->want(at, at + 1);
  EXPECT_LE(session_.jobs().size(), 3u);
  settle(session_);
  EXPECT_EQ(element(59'000), "Word59000");
}

TEST_F(Vocabulary, searches_all_of_it) {
  session_.array()->search("word599");
  EXPECT_TRUE(session_.array()->searching());
  settle(session_);
  EXPECT_FALSE(session_.array()->searching());
  const std::vector<std::uint64_t>& found = session_.array()->found();
  ASSERT_EQ(found.size(), 111u);  // 599, 5990 to 5999, 59900 to 59999
  EXPECT_EQ(found[0], 599u);
  EXPECT_EQ(found[110], 59'999u);
  session_.array()->search("nowhere");
  settle(session_);
  EXPECT_TRUE(session_.array()->found().empty());
  session_.array()->search("Word");
  settle(session_);
  EXPECT_EQ(session_.array()->found().size(), ArrayView::kMostFound);
}

TEST_F(Vocabulary, a_stopped_search_says_so) {
  session_.array()->search("nowhere");
  session_.array()->stop_search();
  settle(session_);
  EXPECT_FALSE(session_.array()->searching());
  EXPECT_TRUE(session_.array()->found().empty());
}

TEST_F(Vocabulary, numbers_are_searched_as_text) {
  look_at("flags");
  session_.array()->want(0, 3);
  session_.array()->search("98");
  settle(session_);
  EXPECT_EQ(element(0), "97");
  EXPECT_EQ(session_.array()->found(), std::vector<std::uint64_t>{1});
}

TEST_F(Vocabulary, a_file_that_is_gone_is_an_error_until_it_is_back) {
  std::filesystem::rename(path_, folder_ / "elsewhere");
  session_.array()->want(0, 1);
  settle(session_);
  EXPECT_NE(session_.array()->error().find("words.gguf"), std::string::npos);
  session_.array()->want(0, 1);
  EXPECT_FALSE(session_.busy());
  std::filesystem::rename(folder_ / "elsewhere", path_);
  session_.array()->retry();
  session_.array()->want(0, 1);
  settle(session_);
  EXPECT_EQ(element(0), "Word0");
}

TEST_F(Vocabulary, what_was_read_for_another_entry_or_model_is_dropped) {
  session_.array()->want(0, 1);
  session_.array()->search("nowhere");
  look_at("flags");
  settle(session_);
  EXPECT_EQ(session_.array()->element(0), nullptr);
  EXPECT_TRUE(session_.array()->searched().empty());
  session_.array()->search("nowhere");
  session_.array()->want(0, 1);
  session_.show(tiny_graph(), "");
  EXPECT_FALSE(session_.array());
  EXPECT_FALSE(session_.entry());
  settle(session_);
  EXPECT_TRUE(session_.notices().empty());
}

TEST_F(Vocabulary, looking_at_nothing_or_past_the_end_shows_nothing) {
  session_.look_at(99);
  EXPECT_FALSE(session_.entry());
  EXPECT_FALSE(session_.array());
  session_.look_at(0);
  EXPECT_EQ(session_.entry(), 0u);
  EXPECT_FALSE(session_.array());
}

TEST_F(Vocabulary, is_diagnosed_when_asked) {
  EXPECT_FALSE(session_.findings());
  session_.diagnose();
  EXPECT_TRUE(session_.diagnosing());
  const std::size_t jobs = session_.jobs().size();
  session_.diagnose();  // under way already
  EXPECT_EQ(session_.jobs().size(), jobs);
  settle(session_);
  EXPECT_FALSE(session_.diagnosing());
  ASSERT_TRUE(session_.findings());
  EXPECT_EQ(session_.diagnosis_error(), "");
  session_.show(tiny_graph(), "");
  EXPECT_FALSE(session_.findings());
}

TEST_F(Vocabulary, a_diagnosis_of_a_model_that_is_gone_is_dropped) {
  session_.diagnose();
  session_.show(tiny_graph(), "");
  EXPECT_FALSE(session_.diagnosing());
  settle(session_);
  EXPECT_FALSE(session_.findings());
  EXPECT_EQ(session_.diagnosis_error(), "");
}

TEST(Diagnosis, needs_a_model_and_its_files) {
  Session session("");
  EXPECT_THROW(session.diagnose(), Error);
  session.show(llama_70b_graph(), "");  // of files that are not there
  session.diagnose();
  settle(session);
  EXPECT_FALSE(session.findings());
  EXPECT_NE(session.diagnosis_error(), "");
}

TEST(Diagnosis, can_be_stopped) {
  Session session("");
  session.show(many_tensors(100'000), "");
  session.diagnose();
  session.stop_diagnosis();
  settle(session);
  EXPECT_FALSE(session.diagnosing());
  EXPECT_TRUE(session.findings() || !session.diagnosis_error().empty());
}

TEST(WeighConvert, says_what_the_exporter_refuses) {
  Session session("");
  session.show(tiny_graph(), "");
  session.weigh_convert({.exporter = "safetensors", .out = "x.safetensors"});
  settle(session);
  EXPECT_NE(session.convert_misfit().find("UTF-8"), std::string::npos) << session.convert_misfit();
  session.show(llama_70b_graph(), "");
  EXPECT_EQ(session.convert_misfit(), "");
  ConvertRequest request{.exporter = "gguf", .out = "x.gguf"};
  session.weigh_convert(request);
  settle(session);
  EXPECT_EQ(session.convert_misfit(), "");
  request.options.alignment = 48;
  session.weigh_convert(request);
  settle(session);
  EXPECT_NE(session.convert_misfit().find("48"), std::string::npos);
  request.options = {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0};
  session.show(many_tensors(50), "");
  session.weigh_convert({.exporter = "safetensors", .out = "x.safetensors", .options = request.options});
  settle(session);
  EXPECT_EQ(session.convert_losses(),
            std::vector<std::string>{"10 tensors are not cast to F16: F8_E4M3 stays as stored"});
  session.show(shapes_graph(), "");
  EXPECT_TRUE(session.convert_losses().empty());
  session.weigh_convert(request);
  settle(session);
  EXPECT_EQ(session.convert_misfit(), "");  // use_misfit() has said why
}

TEST(Encoded, models_are_neither_mapped_nor_written_when_they_cannot_be_read) {
  Session session("");
  session.show(encoded_graph(), "");
  settle(session);
  const auto message = [](const auto& verb) {
    try {
      verb();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message([&] { session.upload(); }).find("cannot be read"), std::string::npos);
  EXPECT_NE(message([&] { session.convert({.exporter = "gguf", .out = "x"}); }).find("cannot be read"),
            std::string::npos);
  for (const char* method : {"mmap_assign", "host_import"}) {
    PlanChoice choice = session.choice();
    choice.method = method;
    session.set_plan(choice);
    settle(session);
    EXPECT_NE(session.upload_misfit().find("cannot be mapped"), std::string::npos) << method;
    EXPECT_NE(message([&] { session.upload(); }).find("cannot be mapped"), std::string::npos) << method;
  }
}

TEST(Filter, a_fault_is_told_and_the_last_good_selection_stays) {
  Session session("");
  session.show(llama_70b_graph(), "");
  session.set_filter("layer:3 q_proj");
  EXPECT_EQ(session.table().rows.size(), 1u);
  EXPECT_FALSE(session.table().lit.empty());
  session.set_filter("layer:3 q_proj size:>");
  EXPECT_NE(session.table().error, "");
  EXPECT_EQ(session.table().applied, "layer:3 q_proj");
  EXPECT_EQ(session.table().rows.size(), 1u);
  session.set_filter("");
  EXPECT_EQ(session.table().error, "");
  EXPECT_EQ(session.table().rows.size(), 723u);
  EXPECT_TRUE(session.table().lit.empty());
  session.set_filter("nonsense:1");
  session.show(tiny_graph(), "");
  EXPECT_EQ(session.table().error, "");
  EXPECT_EQ(session.table().rows.size(), 3u);
  settle(session);
}

TEST(MetaText, breaks_json_that_has_no_lines) {
  EXPECT_EQ(broken_json(R"({"a":[1,2],"b":{},"c":"x{, \" y"})"),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": \"x{, \\\" y\"\n}");
  EXPECT_EQ(broken_json("{\n\"a\":1}"), "{\n\"a\":1}");
  EXPECT_EQ(broken_json("plain, text: [1]"), "plain, text: [1]");
  EXPECT_EQ(broken_json(""), "");
  // no JSON: nothing is lost and nothing deep is drawn far to the right
  const std::string deep(5000, '[');
  std::string same;
  for (const char c : broken_json(deep))
    if (c == '[') same += c;
  EXPECT_EQ(same, deep);
  EXPECT_EQ(broken_json("]]]}"), "]]]}");
}

TEST(MetaText, beginnings_end_between_characters) {
  EXPECT_EQ(beginning("abc", 5), "abc");
  EXPECT_EQ(beginning("abc", 2), "ab");
  EXPECT_EQ(beginning("a\xE2\x96\x81", 3), "a");
  EXPECT_EQ(beginning("a\xE2\x96\x81", 4), "a\xE2\x96\x81");
  EXPECT_EQ(meta_line(std::string("one\n\t two"), 50), "one two");
  EXPECT_EQ(meta_line(std::string("one two"), 3), "one\xE2\x80\xA6");
  EXPECT_EQ(meta_line(std::uint32_t{7}, 50), "7");
  EXPECT_EQ(meta_type_text(MetaArray{.element = MetaType::f32, .count = 32'000}), "f32[32,000]");
}

TEST(MetaText, needles_ignore_case) {
  EXPECT_TRUE(Needle("LLaMa").in("general llama"));
  EXPECT_FALSE(Needle("llama ").in("general llama"));
  EXPECT_TRUE(Needle("").in(""));
  EXPECT_FALSE(Needle("x").in(""));
}

TEST(Folders, what_can_be_opened_is_known_by_the_extensions_of_the_importers) {
  const TemporaryFolder folder;
  for (const char* name : {"a.gguf", "b.onnx", "c.pt", "d.npz", "e.safetensors.index.json", "config.json",
                           "tokenizer.json", "notes.txt", "p.csv", "generation_config.json", "gguf"})
    write_file(folder / name, "x");
  const auto sub = [&](const std::string& name, std::initializer_list<const char*> files) {
    std::filesystem::create_directory(folder / name);
    for (const char* file : files) write_file(folder / (name + "/" + file), "x");
  };
  sub("one", {"model.onnx", "notes.txt"});
  sub("many", {"a.gguf", "b.gguf"});
  sub("hub", {"config.json", "pytorch_model.bin"});
  sub("texts", {"notes.txt"});
  Session session("");
  session.browse(folder.path().string());
  settle(session);
  std::vector<std::string> models;
  for (const FolderEntry& entry : session.folder().entries)
    if (entry.model) models.push_back(entry.name);
  EXPECT_EQ(models, (std::vector<std::string>{"hub", "one", "a.gguf", "b.onnx", "c.pt", "config.json",
                                              "d.npz", "e.safetensors.index.json", "p.csv"}));
}

}  // namespace
}  // namespace loadline::gui
