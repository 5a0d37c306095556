// What a document reads of a model's files: metadata arrays, findings, what an exporter would refuse.
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/workspace.h"
#include "importers/resolve.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"
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
    workspace_.show(std::make_shared<const MetaGraph>(open_model(path_, {})), path_);
    settle(workspace_);
    look_at("words");
  }
  void look_at(std::string_view key) {
    const auto& entries = workspace_.document().model->graph->metadata;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const MetaEntry& e) { return e.key == key; });
    workspace_.document().metadata.look_at(static_cast<std::size_t>(entry - entries.begin()));
  }
  std::string element(std::uint64_t i) {
    const std::string* text = workspace_.document().metadata.array()->element(i);
    return text == nullptr ? "(not read)" : *text;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "words.gguf";
  Workspace workspace_{""};
};

TEST_F(Vocabulary, reads_the_pages_that_are_wanted) {
  ASSERT_TRUE(workspace_.document().metadata.array());
  EXPECT_EQ(element(0), "(not read)");
  workspace_.document().metadata.array()->want(50'000, 50'010);
  EXPECT_TRUE(workspace_.document().metadata.array()->reading());
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().metadata.array()->reading());
  EXPECT_EQ(element(50'000), "Word50000");
  EXPECT_EQ(element(50'009), "Word50009");
  EXPECT_EQ(element(0), "(not read)");
  workspace_.document().metadata.array()->want(kWords - 1, kWords + 500);
  settle(workspace_);
  EXPECT_EQ(element(kWords - 1), "Word59999");
  EXPECT_EQ(element(kWords), "(not read)");
  workspace_.document().metadata.array()->want(50'000, 50'010);
  EXPECT_FALSE(workspace_.busy());  // it is there already
}

TEST_F(Vocabulary, keeps_few_pages_and_the_beginning_of_long_elements) {
  for (std::uint64_t at = 0; at < kWords; at += 200) {
    workspace_.document().metadata.array()->want(at, at + 100);
    settle(workspace_);
    EXPECT_NE(element(at), "(not read)") << at;
  }
  workspace_.document().metadata.array()->want(0, 10);
  settle(workspace_);
  EXPECT_EQ(element(6), "Word6");
  EXPECT_LT(element(7).size(), 500u);
  EXPECT_EQ(element(8), "Word8");
}

TEST_F(Vocabulary, the_newest_wish_wins) {
  for (std::uint64_t at = 0; at < kWords; at += 1000)
    workspace_.document().metadata.array()->want(at, at + 1);
  // at most one a worker runs, and the newest waits
  EXPECT_LE(workspace_.shared.jobs.view().size(), Shared::kWorkers + 1);
  settle(workspace_);
  EXPECT_EQ(element(59'000), "Word59000");
}

TEST_F(Vocabulary, searches_all_of_it) {
  workspace_.document().metadata.array()->search("word599");
  EXPECT_TRUE(workspace_.document().metadata.array()->searching());
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().metadata.array()->searching());
  const std::vector<std::uint64_t>& found = workspace_.document().metadata.array()->found();
  ASSERT_EQ(found.size(), 111u);  // 599, 5990 to 5999, 59900 to 59999
  EXPECT_EQ(found[0], 599u);
  EXPECT_EQ(found[110], 59'999u);
  workspace_.document().metadata.array()->search("nowhere");
  settle(workspace_);
  EXPECT_TRUE(workspace_.document().metadata.array()->found().empty());
  workspace_.document().metadata.array()->search("Word");
  settle(workspace_);
  EXPECT_EQ(workspace_.document().metadata.array()->found().size(), ArrayView::kMostFound);
}

TEST_F(Vocabulary, a_stopped_search_says_so) {
  workspace_.document().metadata.array()->search("nowhere");
  workspace_.document().metadata.array()->stop_search();
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().metadata.array()->searching());
  EXPECT_TRUE(workspace_.document().metadata.array()->found().empty());
}

TEST_F(Vocabulary, numbers_are_searched_as_text) {
  look_at("flags");
  workspace_.document().metadata.array()->want(0, 3);
  workspace_.document().metadata.array()->search("98");
  settle(workspace_);
  EXPECT_EQ(element(0), "97");
  EXPECT_EQ(workspace_.document().metadata.array()->found(), std::vector<std::uint64_t>{1});
}

TEST_F(Vocabulary, a_file_that_is_gone_is_an_error_until_it_is_back) {
  std::filesystem::rename(path_, folder_ / "elsewhere");
  workspace_.document().metadata.array()->want(0, 1);
  settle(workspace_);
  EXPECT_NE(workspace_.document().metadata.array()->error().find("words.gguf"), std::string::npos);
  workspace_.document().metadata.array()->want(0, 1);
  EXPECT_FALSE(workspace_.busy());
  std::filesystem::rename(folder_ / "elsewhere", path_);
  workspace_.document().metadata.array()->retry();
  workspace_.document().metadata.array()->want(0, 1);
  settle(workspace_);
  EXPECT_EQ(element(0), "Word0");
}

TEST_F(Vocabulary, what_was_read_for_another_entry_or_model_is_dropped) {
  workspace_.document().metadata.array()->want(0, 1);
  workspace_.document().metadata.array()->search("nowhere");
  look_at("flags");
  settle(workspace_);
  EXPECT_EQ(workspace_.document().metadata.array()->element(0), nullptr);
  EXPECT_TRUE(workspace_.document().metadata.array()->searched().empty());
  workspace_.document().metadata.array()->search("nowhere");
  workspace_.document().metadata.array()->want(0, 1);
  workspace_.show(tiny_graph(), "");
  EXPECT_FALSE(workspace_.document().metadata.array());
  EXPECT_FALSE(workspace_.document().metadata.entry());
  settle(workspace_);
  EXPECT_TRUE(workspace_.shared.notices.all().empty());
}

TEST_F(Vocabulary, looking_at_nothing_or_past_the_end_shows_nothing) {
  workspace_.document().metadata.look_at(99);
  EXPECT_FALSE(workspace_.document().metadata.entry());
  EXPECT_FALSE(workspace_.document().metadata.array());
  workspace_.document().metadata.look_at(0);
  EXPECT_EQ(workspace_.document().metadata.entry(), 0u);
  EXPECT_FALSE(workspace_.document().metadata.array());
}

TEST_F(Vocabulary, is_diagnosed_when_asked) {
  EXPECT_FALSE(workspace_.document().findings.value());
  workspace_.document().diagnose();
  EXPECT_TRUE(workspace_.document().findings.busy());
  const std::uint64_t posted = workspace_.shared.jobs.posted();
  workspace_.document().diagnose();  // under way already
  EXPECT_EQ(workspace_.shared.jobs.posted(), posted);
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().findings.busy());
  ASSERT_TRUE(workspace_.document().findings.value());
  EXPECT_EQ(diagnosis_error(workspace_.document()), "");
  workspace_.show(tiny_graph(), "");
  EXPECT_FALSE(workspace_.document().findings.value());
}

TEST_F(Vocabulary, a_diagnosis_of_a_model_that_is_gone_is_dropped) {
  workspace_.document().diagnose();
  workspace_.show(tiny_graph(), "");
  EXPECT_FALSE(workspace_.document().findings.busy());
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().findings.value());
  EXPECT_EQ(diagnosis_error(workspace_.document()), "");
}

TEST(Diagnosis, needs_a_model_and_its_files) {
  Workspace workspace("");
  EXPECT_THROW(workspace.document().diagnose(), Error);
  workspace.show(llama_70b_graph(), "");  // of files that are not there
  workspace.document().diagnose();
  settle(workspace);
  EXPECT_FALSE(workspace.document().findings.value());
  EXPECT_NE(diagnosis_error(workspace.document()), "");
}

TEST(Diagnosis, can_be_stopped) {
  Workspace workspace("");
  workspace.show(many_tensors(100'000), "");
  workspace.document().diagnose();
  workspace.document().findings.cancel();
  while (workspace.document().findings.busy())
    if (!workspace.poll()) std::this_thread::yield();
  EXPECT_TRUE(workspace.document().findings.value() || !diagnosis_error(workspace.document()).empty());
}

TEST(WeighConvert, says_what_the_exporter_refuses) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  workspace.document().weigh_convert(conversion("safetensors", "x.safetensors"));
  settle(workspace);
  EXPECT_NE(workspace.document().convert_fit.error_text().find("UTF-8"), std::string::npos)
      << workspace.document().convert_fit.error_text();
  workspace.show(llama_70b_graph(), "");
  EXPECT_EQ(workspace.document().convert_fit.error_text(), "");
  ConvertTask task = conversion("gguf", "x.gguf");
  workspace.document().weigh_convert(task);
  settle(workspace);
  EXPECT_EQ(workspace.document().convert_fit.error_text(), "");
  task.request.order = "largest";
  workspace.document().weigh_convert(task);
  settle(workspace);
  std::uint64_t before = UINT64_MAX;
  for (const Slot& slot : workspace.document().convert_fit.or_empty().layout.files.front().slots) {
    EXPECT_LE(slot.bytes, before);
    before = slot.bytes;
  }
  task.request.order = "no such order";
  workspace.document().weigh_convert(task);
  settle(workspace);
  EXPECT_NE(workspace.document().convert_fit.error_text().find("no such order"), std::string::npos);
  task.request.order.clear();
  task.request.layout.alignment = 48;
  workspace.document().weigh_convert(task);
  settle(workspace);
  EXPECT_NE(workspace.document().convert_fit.error_text().find("48"), std::string::npos);
  task.request.layout = {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0};
  workspace.show(many_tensors(50), "");
  ConvertTask cast = conversion("safetensors", "x.safetensors");
  cast.request.layout = task.request.layout;
  workspace.document().weigh_convert(cast);
  settle(workspace);
  const Preflight& planned = workspace.document().convert_fit.or_empty();
  ASSERT_FALSE(planned.changes.empty());
  for (const TypeChange& change : planned.changes)
    EXPECT_EQ(change.to, dtype_info(change.from).kind == DTypeKind::floating ? DType::f16 : change.from);
  EXPECT_TRUE(planned.left_out.empty());
  workspace.show(shapes_graph(), "");
  EXPECT_TRUE(workspace.document().convert_fit.or_empty().changes.empty());
  workspace.document().weigh_convert(task);
  settle(workspace);
  EXPECT_EQ(workspace.document().convert_fit.error_text(), "");  // use_misfit() has said why
}

TEST(Encoded, models_are_neither_mapped_nor_written_when_they_cannot_be_read) {
  Workspace workspace("");
  workspace.show(encoded_graph(), "");
  settle(workspace);
  const auto message = [](const auto& verb) {
    try {
      verb();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message([&] { workspace.upload(); }).find("cannot be read"), std::string::npos);
  EXPECT_NE(message([&] { workspace.convert(conversion("gguf", "x")); }).find("cannot be read"),
            std::string::npos);
  for (const char* method : {"mmap_assign", "host_import"}) {
    workspace.document().set_option("method", method);
    settle(workspace);
    EXPECT_NE(workspace.document().upload_misfit().find("cannot be mapped"), std::string::npos) << method;
    EXPECT_NE(message([&] { workspace.upload(); }).find("cannot be mapped"), std::string::npos) << method;
  }
}

TEST(Filter, a_fault_is_told_and_the_last_good_selection_stays) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().set_filter("layer:3 q_proj");
  EXPECT_EQ(workspace.document().table().rows.size(), 1u);
  EXPECT_FALSE(workspace.document().table().lit.empty());
  workspace.document().set_filter("layer:3 q_proj size:>");
  EXPECT_NE(workspace.document().table().error, "");
  EXPECT_EQ(workspace.document().table().applied, "layer:3 q_proj");
  EXPECT_EQ(workspace.document().table().rows.size(), 1u);
  workspace.document().set_filter("");
  EXPECT_EQ(workspace.document().table().error, "");
  EXPECT_EQ(workspace.document().table().rows.size(), 723u);
  EXPECT_TRUE(workspace.document().table().lit.empty());
  workspace.document().set_filter("nonsense:1");
  workspace.show(tiny_graph(), "");
  EXPECT_EQ(workspace.document().table().error, "");
  EXPECT_EQ(workspace.document().table().rows.size(), 3u);
  settle(workspace);
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
  Workspace workspace("");
  workspace.browse(folder.path().string());
  settle(workspace);
  std::vector<std::string> models;
  for (const FolderEntry& entry : workspace.folder().entries)
    if (entry.model) models.push_back(entry.name);
  EXPECT_EQ(models, (std::vector<std::string>{"hub", "one", "a.gguf", "b.onnx", "c.pt", "config.json",
                                              "d.npz", "e.safetensors.index.json", "p.csv"}));
}

}  // namespace
}  // namespace loadline::gui
