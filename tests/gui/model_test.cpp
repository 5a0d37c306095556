// What the window knows of a model and its files.

#include "app/gui/state/model/model.h"

#include "app/gui/state/model/file_data.h"
#include "app/gui/state/model/model_diff.h"
#include "app/gui/state/workspace.h"
#include "core/base/error.h"
#include "exporters/convert.h"
#include "importers/resolve.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {

// --- What is derived from a graph: roles, sorting, filtering, totals.

namespace {

std::vector<std::string> names(const Model& model, const std::vector<graph::TensorId>& rows) {
  std::vector<std::string> result;
  for (const graph::TensorId id : rows) result.push_back(model.tensor(id).name);
  return result;
}

// Names that tell nothing get the role of the operator that reads them, and modules the role that all of
// their weights have.
TEST(Model, roles_of_operators_and_modules) {
  graph::MetaGraph graph;
  for (const char* const name : {"a.0.w", "a.1.w", "b.w"}) {
    const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    graph.tensors.push_back({name, graph::DType::f32, {4}, {}, storage, 0});
    graph.storages.push_back(graph::shapes_only_storage(16));
  }
  graph.forward.emplace();
  graph.forward->ops = {{"Conv", "", {}, {graph::TensorId{0}}, {}},
                        {"com.microsoft.FusedConv", "", {}, {graph::TensorId{1}}, {}},
                        {"Add", "", {}, {graph::TensorId{2}}, {}}};
  const std::vector<graph::Role> roles = graph::tensor_roles(graph);
  EXPECT_EQ(roles, (std::vector{graph::Role::convolution, graph::Role::convolution, graph::Role::other}));
  const graph::ModuleTree tree = graph::module_tree(graph);
  const std::vector<graph::Role> modules = graph::module_roles(graph, tree, roles);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    if (tree.nodes[i].name == "a") EXPECT_EQ(modules[i], graph::Role::convolution);
  EXPECT_EQ(modules[0], graph::Role::other) << "no role has all of it";
}

TEST(Model, roles_of_the_usual_names) {
  EXPECT_EQ(graph::tensor_role("model.embed_tokens.weight"), graph::Role::embedding);
  EXPECT_EQ(graph::tensor_role("transformer.h.3.attn.c_attn.weight"), graph::Role::attention);
  EXPECT_EQ(graph::tensor_role("transformer.wte.weight"), graph::Role::embedding);
  EXPECT_EQ(graph::tensor_role("model.layers.7.mlp.down_proj.weight"), graph::Role::mlp);
  EXPECT_EQ(graph::tensor_role("model.layers.7.input_layernorm.weight"), graph::Role::norm);
  EXPECT_EQ(graph::tensor_role("encoder.layer.0.attention.output.LayerNorm.bias"), graph::Role::norm);
  EXPECT_EQ(graph::tensor_role("encoder.layer.0.attention.self.query.weight"), graph::Role::attention);
  EXPECT_EQ(graph::tensor_role("encoder.layer.0.intermediate.dense.weight"), graph::Role::mlp);
  EXPECT_EQ(graph::tensor_role("lm_head.weight"), graph::Role::head);
  EXPECT_EQ(graph::tensor_role("rotary.inv_freq"), graph::Role::other);
  EXPECT_EQ(graph::tensor_role("layer1.0.conv1.weight"), graph::Role::convolution);
  EXPECT_EQ(graph::tensor_role("onnx::Conv_497"), graph::Role::convolution);
  EXPECT_EQ(graph::tensor_role("layer1.0.bn2.weight"), graph::Role::norm);
  EXPECT_EQ(graph::tensor_role("layer4.0.downsample.1.running_var"), graph::Role::norm);
  EXPECT_EQ(graph::tensor_role("fc.weight"), graph::Role::head);
  EXPECT_EQ(graph::tensor_role("decoder.layers.3.fc1.weight"), graph::Role::mlp);
}

TEST(Model, totals_of_a_70b) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  EXPECT_EQ(model->graph->tensors.size(), 723u);
  EXPECT_EQ(model->weight_bytes, 141'107'412'992u);
  EXPECT_EQ(model->layer_count, 80);
  EXPECT_EQ(model->tree.root().bytes, model->weight_bytes);
  EXPECT_EQ(std::accumulate(model->role_bytes.begin(), model->role_bytes.end(), std::uint64_t{0}),
            model->weight_bytes);
  EXPECT_EQ(std::accumulate(model->bytes_of_file.begin(), model->bytes_of_file.end(), std::uint64_t{0}),
            model->weight_bytes);
  ASSERT_EQ(model->dtypes.size(), 1u);
  EXPECT_EQ(model->dtypes[0].dtype, graph::DType::bf16);
}

TEST(Model, ties_count_once) {
  const ModelPtr model = make_model(tiny_graph(), "");
  EXPECT_EQ(model->weight_bytes, 4096u + 64u);
  EXPECT_EQ(model->tie_of[0], 1u);
  EXPECT_EQ(model->tie_of[2], 1u);
  EXPECT_EQ(model->tie_of[1], 0u);
  EXPECT_EQ(model->role_bytes[static_cast<std::size_t>(graph::Role::head)], 0u);
}

TEST(Model, views_count_once) {
  const ModelPtr model = make_model(encoded_graph(), "");
  std::uint64_t by_type = 0;
  for (const DTypeShare& share : model->dtypes) by_type += share.bytes;
  EXPECT_EQ(by_type, model->weight_bytes);
  EXPECT_EQ(model->tree.root().bytes, model->weight_bytes);
  EXPECT_EQ(model->tree.root().parameters, graph::parameter_count(*model->graph));
}

TEST(Model, filters_combine) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  EXPECT_EQ(filtered(*model, "").size(), 723u);
  EXPECT_EQ(filtered(*model, "  q_proj  ").size(), 80u);
  EXPECT_EQ(names(*model, filtered(*model, "layer:12 up_proj")),
            std::vector<std::string>{"model.layers.12.mlp.up_proj.weight"});
  EXPECT_EQ(filtered(*model, "dtype:bf16").size(), 723u);
  EXPECT_EQ(filtered(*model, "-dtype:bf16").size(), 0u);
  EXPECT_EQ(filtered(*model, "size:>1GiB").size(), 2u);
  EXPECT_GT(filtered(*model, "file:model-30*").size(), 0u);
  EXPECT_THROW(filtered(*model, "size:>1G"), Error);
  EXPECT_THROW(filtered(*model, "dtype:"), Error);
}

TEST(Model, nodes_light_up_with_what_is_below_them) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  const std::vector<graph::TensorId> rows = filtered(*model, "layer:3 q_proj");
  ASSERT_EQ(rows.size(), 1u);
  const std::vector<bool> with = nodes_with(*model, rows);
  std::vector<std::string> lit;
  for (std::uint32_t i = 0; i < with.size(); ++i)
    if (with[i]) lit.push_back(graph::module_path(model->tree, graph::NodeId{i}));
  std::sort(lit.begin(), lit.end());
  EXPECT_EQ(lit, (std::vector<std::string>{"", "model", "model.layers", "model.layers.3",
                                           "model.layers.3.self_attn", "model.layers.3.self_attn.q_proj",
                                           "model.layers.3.self_attn.q_proj.weight"}));
}

TEST(Model, remarks_say_how_bytes_lie) {
  const ModelPtr model = make_model(encoded_graph(), "");
  std::vector<std::string> remarks;
  for (std::uint32_t i = 0; i < model->graph->tensors.size(); ++i)
    remarks.push_back(storage_remark(*model, graph::TensorId{i}));
  EXPECT_EQ(remarks, (std::vector<std::string>{"tied", "", "tied", "view", "part", "deflate", "big-endian",
                                               "unreadable"}));
  EXPECT_TRUE(model->remarks);
  EXPECT_EQ(model->encodings.size(), 3u);
  EXPECT_FALSE(make_model(llama_70b_graph(), "")->remarks);
}

TEST(Model, sorting_falls_back_to_natural_names) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  std::vector<graph::TensorId> rows = filtered(*model, "q_proj");
  sort_tensors(*model, rows, SortColumn::bytes, false);
  EXPECT_EQ(model->tensor(rows[2]).name, "model.layers.2.self_attn.q_proj.weight");
  EXPECT_EQ(model->tensor(rows[10]).name, "model.layers.10.self_attn.q_proj.weight");
  sort_tensors(*model, rows, SortColumn::name, false);
  EXPECT_EQ(model->tensor(rows[0]).name, "model.layers.79.self_attn.q_proj.weight");
  rows = filtered(*model, "");
  sort_tensors(*model, rows, SortColumn::bytes, true);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [&](graph::TensorId a, graph::TensorId b) {
    return model->bytes[graph::index(a)] < model->bytes[graph::index(b)];
  }));
}

TEST(Model, every_column_sorts_every_way) {
  const ModelPtr model = make_model(many_tensors(2000), "");
  for (std::size_t column = 0; column < kSortColumnNames.size(); ++column)
    for (const bool ascending : {true, false}) {
      std::vector<graph::TensorId> rows = filtered(*model, "");
      sort_tensors(*model, rows, static_cast<SortColumn>(column), ascending);
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(rows, filtered(*model, ""));
    }
}

TEST(Model, an_empty_graph_is_a_model) {
  const ModelPtr model = make_model(std::make_shared<const graph::MetaGraph>(), "");
  EXPECT_EQ(model->weight_bytes, 0u);
  EXPECT_TRUE(filtered(*model, "").empty());
}

}  // namespace

// --- What a document reads of a model's files: metadata arrays, findings, what an exporter would refuse.

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
    workspace_.show(std::make_shared<const graph::MetaGraph>(importers::open_model(path_, {})), path_);
    settle(workspace_);
    look_at("words");
  }
  void look_at(std::string_view key) {
    const auto& entries = workspace_.document().model->graph->metadata;
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const graph::MetaEntry& e) { return e.key == key; });
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
  EXPECT_LE(workspace_.services.jobs.view().size(), Services::kWorkers + 1);
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
  EXPECT_TRUE(workspace_.services.notices.all().empty());
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
  EXPECT_FALSE(workspace_.document().checks.findings.value());
  workspace_.document().checks.diagnose();
  EXPECT_TRUE(workspace_.document().checks.findings.busy());
  const std::uint64_t posted = workspace_.services.jobs.posted();
  workspace_.document().checks.diagnose();  // under way already
  EXPECT_EQ(workspace_.services.jobs.posted(), posted);
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().checks.findings.busy());
  ASSERT_TRUE(workspace_.document().checks.findings.value());
  EXPECT_EQ(workspace_.document().checks.diagnosis_error(), "");
  workspace_.show(tiny_graph(), "");
  EXPECT_FALSE(workspace_.document().checks.findings.value());
}

TEST_F(Vocabulary, a_diagnosis_of_a_model_that_is_gone_is_dropped) {
  workspace_.document().checks.diagnose();
  workspace_.show(tiny_graph(), "");
  EXPECT_FALSE(workspace_.document().checks.findings.busy());
  settle(workspace_);
  EXPECT_FALSE(workspace_.document().checks.findings.value());
  EXPECT_EQ(workspace_.document().checks.diagnosis_error(), "");
}

TEST(Diagnosis, needs_a_model_and_its_files) {
  Workspace workspace("");
  EXPECT_THROW(workspace.document().checks.diagnose(), Error);
  workspace.show(llama_70b_graph(), "");  // of files that are not there
  workspace.document().checks.diagnose();
  settle(workspace);
  EXPECT_FALSE(workspace.document().checks.findings.value());
  EXPECT_NE(workspace.document().checks.diagnosis_error(), "");
}

TEST(Diagnosis, can_be_stopped) {
  Workspace workspace("");
  workspace.show(many_tensors(100'000), "");
  workspace.document().checks.diagnose();
  workspace.document().checks.findings.cancel();
  while (workspace.document().checks.findings.busy())
    if (!workspace.poll()) std::this_thread::yield();
  EXPECT_TRUE(workspace.document().checks.findings.value() ||
              !workspace.document().checks.diagnosis_error().empty());
}

// The size beside a type is that of the file which is written with it.
TEST(WeighConvert, tells_the_size_of_each_type) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  Document& document = workspace.document();
  document.checks.weigh_types(conversion("gguf", "x.gguf"), {"f16", "q8_0", "q4_k_m", "no such type", ""});
  settle(workspace);
  const std::vector<TypeOffer> offers = document.checks.type_offers.or_empty();
  ASSERT_EQ(offers.size(), 5u);
  for (const TypeOffer& offer : offers) {
    EXPECT_EQ(offer.bytes.has_value(), offer.word != "no such type") << offer.word;
    if (!offer.bytes) continue;
    ConvertTask task = conversion("gguf", folder / (offer.word + ".gguf"));
    task.request.outtype = offer.word;
    workspace.transfers.convert(document, task);
    settle(workspace);
    EXPECT_EQ(std::filesystem::file_size(task.out), *offer.bytes) << offer.word;
  }
}

TEST(WeighConvert, says_what_the_exporter_refuses) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  workspace.document().checks.weigh_convert(conversion("safetensors", "x.safetensors"));
  settle(workspace);
  EXPECT_NE(workspace.document().checks.convert_fit.error_text().find("UTF-8"), std::string::npos)
      << workspace.document().checks.convert_fit.error_text();
  workspace.show(llama_70b_graph(), "");
  EXPECT_EQ(workspace.document().checks.convert_fit.error_text(), "");
  ConvertTask task = conversion("gguf", "x.gguf");
  workspace.document().checks.weigh_convert(task);
  settle(workspace);
  EXPECT_EQ(workspace.document().checks.convert_fit.error_text(), "");
  task.request.order = "largest";
  workspace.document().checks.weigh_convert(task);
  settle(workspace);
  std::uint64_t before = UINT64_MAX;
  for (const exporters::Slot& slot :
       workspace.document().checks.convert_fit.or_empty().layout.files.front().slots) {
    EXPECT_LE(slot.bytes, before);
    before = slot.bytes;
  }
  task.request.order = "no such order";
  workspace.document().checks.weigh_convert(task);
  settle(workspace);
  EXPECT_NE(workspace.document().checks.convert_fit.error_text().find("no such order"), std::string::npos);
  task.request.order.clear();
  task.request.layout.alignment = 48;
  workspace.document().checks.weigh_convert(task);
  settle(workspace);
  EXPECT_NE(workspace.document().checks.convert_fit.error_text().find("48"), std::string::npos);
  workspace.show(many_tensors(50), "");
  ConvertTask cast = conversion("safetensors", "x.safetensors");
  cast.request.outtype = "f16";
  workspace.document().checks.weigh_convert(cast);
  settle(workspace);
  const exporters::Preflight& planned = workspace.document().checks.convert_fit.or_empty();
  ASSERT_FALSE(planned.changes.empty());
  for (const exporters::TypeChange& change : planned.changes)
    EXPECT_EQ(change.to, graph::dtype_info(change.from).kind == graph::DTypeKind::floating ? graph::DType::f16
                                                                                           : change.from);
  EXPECT_TRUE(planned.left_out.empty());
  workspace.show(shapes_graph(), "");
  EXPECT_TRUE(workspace.document().checks.convert_fit.or_empty().changes.empty());
  workspace.document().checks.weigh_convert(task);
  settle(workspace);
  EXPECT_EQ(workspace.document().checks.convert_fit.error_text(), "");  // use_misfit() has said why
}

TEST(Encoded, models_are_neither_mapped_nor_written_when_they_cannot_be_read) {
  Workspace workspace("");
  workspace.show(encoded_graph(), "");
  settle(workspace);
  using loadline::testing::facts_of;
  EXPECT_EQ(facts_of([&] { workspace.transfers.upload(workspace.document()); }), "unsupported 1 6");
  EXPECT_EQ(facts_of([&] { workspace.transfers.convert(workspace.document(), conversion("gguf", "x")); }),
            "unsupported 1 6");
  for (const char* method : {"mmap_assign", "host_import"}) {
    workspace.document().load.set_option("method", method);
    settle(workspace);
    EXPECT_EQ(loadline::testing::facts(workspace.document().checks.upload_misfit()), "3 6 192") << method;
    EXPECT_EQ(facts_of([&] { workspace.transfers.upload(workspace.document()); }), "unsupported 3 6 192")
        << method;
  }
}

TEST(Filter, a_fault_is_told_and_the_last_good_selection_stays) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().table.set_filter("layer:3 q_proj");
  EXPECT_EQ(workspace.document().table.view().rows.size(), 1u);
  EXPECT_FALSE(workspace.document().table.view().lit.empty());
  workspace.document().table.set_filter("layer:3 q_proj size:>");
  EXPECT_NE(workspace.document().table.view().error, "");
  EXPECT_EQ(workspace.document().table.view().applied, "layer:3 q_proj");
  EXPECT_EQ(workspace.document().table.view().rows.size(), 1u);
  workspace.document().table.set_filter("");
  EXPECT_EQ(workspace.document().table.view().error, "");
  EXPECT_EQ(workspace.document().table.view().rows.size(), 723u);
  EXPECT_TRUE(workspace.document().table.view().lit.empty());
  workspace.document().table.set_filter("nonsense:1");
  workspace.show(tiny_graph(), "");
  EXPECT_EQ(workspace.document().table.view().error, "");
  EXPECT_EQ(workspace.document().table.view().rows.size(), 3u);
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
  EXPECT_EQ(meta_type_text(graph::MetaArray{.element = graph::MetaType::f32, .count = 32'000}),
            "f32[32,000]");
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
  workspace.places.browse(folder.path().string());
  settle(workspace);
  std::vector<std::string> models;
  for (const FolderEntry& entry : workspace.places.folder().entries)
    if (entry.model) models.push_back(entry.name);
  EXPECT_EQ(models, (std::vector<std::string>{"hub", "one", "a.gguf", "b.onnx", "c.pt", "config.json",
                                              "d.npz", "e.safetensors.index.json", "p.csv"}));
}

}  // namespace

// --- Room on devices and disks, and the names of converted files.

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

load::Projection peaks(std::uint64_t device, std::uint64_t staging, std::uint64_t host) {
  load::Projection projection;
  plan::UsagePoint all;  // at once
  all.bytes[plan::index(plan::Space::device)] = device;
  all.bytes[plan::index(plan::Space::staging)] = staging;
  all.bytes[plan::index(plan::Space::host)] = host;
  projection.timeline.usage.push_back(all);
  plan::find_peaks(projection.timeline);
  return projection;
}

gpu::DeviceInfo discrete(std::uint64_t memory) {
  gpu::DeviceInfo device;
  device.name = "Big";
  device.max_allocation = device.max_buffer = 4 * kGiB;
  device.type = gpu::DeviceType::discrete;
  device.heaps = {{.bytes = memory, .device_local = true},
                  {.bytes = 8 * kGiB, .host_visible = true},
                  {.bytes = kGiB / 4, .device_local = true, .host_visible = true}};
  return device;
}

TEST(OutputName, keeps_the_dots_of_a_version) {
  const exporters::Exporter& safetensors = exporters::find_exporter("safetensors");
  const exporters::Exporter& gguf = exporters::find_exporter("gguf");
  EXPECT_EQ(exporters::output_name("llama-3.1-70b", safetensors, exporters::OutputKind::file),
            "llama-3.1-70b-loadline.safetensors");
  EXPECT_EQ(exporters::output_name("llama-3.1-70b", gguf, exporters::OutputKind::file),
            "llama-3.1-70b-loadline.gguf");
  EXPECT_EQ(exporters::output_name("Qwen/Qwen2.5-0.5B", gguf, exporters::OutputKind::file),
            "Qwen2.5-0.5B-loadline.gguf");
  EXPECT_EQ(exporters::output_name("tiny.v1.0", gguf, exporters::OutputKind::file),
            "tiny.v1.0-loadline.gguf");
}

TEST(OutputName, takes_off_what_an_exporter_would_write) {
  EXPECT_EQ(exporters::output_name("phi-2.safetensors", exporters::find_exporter("gguf"),
                                   exporters::OutputKind::file),
            "phi-2-loadline.gguf");
  EXPECT_EQ(exporters::output_name("phi-2.gguf", exporters::find_exporter("safetensors"),
                                   exporters::OutputKind::file),
            "phi-2-loadline.safetensors");
  EXPECT_EQ(exporters::output_name(".gguf", exporters::find_exporter("gguf"), exporters::OutputKind::file),
            "model-loadline.gguf");
  EXPECT_EQ(exporters::output_name("", exporters::find_exporter("gguf"), exporters::OutputKind::file),
            "model-loadline.gguf");
}

TEST(OutputName, of_a_folder_has_no_extension) {
  const exporters::Exporter& safetensors = exporters::find_exporter("safetensors");
  EXPECT_EQ(exporters::output_name("phi-2.safetensors", safetensors, exporters::OutputKind::folder),
            "phi-2-loadline");
  EXPECT_TRUE(exporters::takes_option(safetensors, "max_shard_size"));
  EXPECT_FALSE(exporters::takes_option(exporters::find_exporter("torch"), "max_shard_size"));
  EXPECT_TRUE(exporters::takes_option(exporters::find_exporter("gguf"), "verify"));
}

TEST(UploadMisfit, compares_each_heap_with_its_peak) {
  const gpu::DeviceInfo device = discrete(24 * kGiB);
  EXPECT_EQ(upload_misfit(peaks(24 * kGiB, kGiB, kGiB), {}, device, 4 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(25 * kGiB, 0, 0), {}, device, 64 * kGiB).find("25.00 GiB"),
            std::string::npos);
  EXPECT_NE(upload_misfit(peaks(kGiB, 9 * kGiB, 0), {}, device, 64 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(kGiB, 0, 9 * kGiB), {}, device, 8 * kGiB), "");
  EXPECT_EQ(upload_misfit(peaks(kGiB, 0, 9 * kGiB), {}, device, std::nullopt), "");
}

TEST(UploadMisfit, believes_the_budget_before_the_heap) {
  gpu::DeviceInfo device = discrete(24 * kGiB);
  device.heaps[0].budget = 10 * kGiB;
  EXPECT_NE(upload_misfit(peaks(11 * kGiB, 0, 0), {}, device, 64 * kGiB), "");
}

TEST(UploadMisfit, a_software_device_has_the_system_only) {
  gpu::DeviceInfo device;
  device.name = "lavapipe";
  device.type = gpu::DeviceType::cpu;
  device.heaps = {{.bytes = 2 * kGiB, .device_local = true, .host_visible = true, .budget = 16 * kGiB}};
  EXPECT_EQ(upload_misfit(peaks(14 * kGiB, kGiB, kGiB), {}, device, 16 * kGiB), "");
  EXPECT_NE(upload_misfit(peaks(14 * kGiB, kGiB, 2 * kGiB), {}, device, 16 * kGiB), "");
}

TEST(UploadMisfit, names_a_tensor_that_no_block_can_hold) {
  load::Projection projection = peaks(5 * kGiB, 0, 0);
  projection.plan.blocks = {
      {.bytes = 5 * kGiB, .space = plan::Space::device, .use = {}, .storage = {}, .extra = "big"}};
  EXPECT_EQ(loadline::testing::facts(upload_misfit(projection, {}, discrete(24 * kGiB), 64 * kGiB)),
            "5.00 5368709120 4.00 4294967296");
}

TEST(UploadMisfit, says_that_a_device_cannot_pack) {
  load::Projection projection = peaks(kGiB, 0, 0);
  projection.plan.blocks = {
      {.bytes = 4, .space = plan::Space::device, .use = {}, .storage = {}, .extra = convert::Prepack{}}};
  gpu::DeviceInfo device = discrete(24 * kGiB);
  EXPECT_NE(upload_misfit(projection, {}, device, 64 * kGiB), "");
  device.packs = true;
  EXPECT_EQ(upload_misfit(projection, {}, device, 64 * kGiB), "");
}

TEST(DiskSpace, is_that_of_the_nearest_folder) {
  const std::string there = std::filesystem::temp_directory_path().lexically_normal().string();
  const io::DiskSpace space = io::disk_space(there + "/no-such-folder/nor-this/out.gguf").value();
  EXPECT_EQ(std::filesystem::path(space.folder), std::filesystem::path(there));
  EXPECT_GT(space.available, 0u);
  EXPECT_EQ(io::disk_space("/no-such-folder/x")->folder, "/");
}

TEST(Use, encoded_weights_are_not_mapped_and_unreadable_ones_not_used) {
  const ModelPtr encoded = make_model(encoded_graph(), "");
  const auto misfit = [](const Model& model, std::string_view method) {
    return mapping_misfit(
        model, load::project(*model.graph, load::find_method(method), load::find_order("file"), {}));
  };
  EXPECT_EQ(misfit(*encoded, "per_tensor"), "");
  for (const char* method : {"mmap_assign", "host_import"})
    EXPECT_EQ(loadline::testing::facts(misfit(*encoded, method)), "3 6 192") << method;
  EXPECT_EQ(loadline::testing::facts(use_misfit(*encoded)), "1 6");
  EXPECT_EQ(misfit(*make_model(tiny_graph(), ""), "host_import"), "");
  EXPECT_EQ(use_misfit(*make_model(tiny_graph(), "")), "");
}

TEST(Use, errors_and_shapes_say_why) {
  EXPECT_NE(use_misfit(*make_model(unsound_graph(), "")).find("shard 2 is missing"), std::string::npos);
  EXPECT_NE(use_misfit(*make_model(shapes_graph(), "")), "");
}

}  // namespace

// --- Two open models beside each other: what counts as a difference, and what it marks.

namespace {

class Diffs : public ::testing::Test {
 protected:
  // One F32 or F16 tensor of 8 bytes for each name, with these bytes.
  void file(const std::string& name, const std::vector<std::pair<std::string, std::string>>& tensors,
            const std::string& data) {
    std::string json = "{";
    for (std::size_t i = 0; i < tensors.size(); ++i)
      json += (i > 0 ? ",\"" : "\"") + tensors[i].first + "\":{" + tensors[i].second + ",\"data_offsets\":[" +
              std::to_string(8 * i) + "," + std::to_string(8 * i + 8) + "]}";
    std::string bytes = loadline::testing::safetensors_bytes(json + "}", 8 * tensors.size());
    bytes.replace(bytes.size() - data.size(), data.size(), data);
    loadline::testing::write_file(folder_ / name, bytes);
    workspace.open(folder_ / name);
    settle(workspace);
  }
  std::size_t count(DiffKind kind) const {
    return workspace.document().diff.result.value()->counts[static_cast<std::size_t>(kind)];
  }
  const std::string f32 = R"("dtype":"F32","shape":[2])", row = R"("dtype":"F32","shape":[1,2])",
                    f16 = R"("dtype":"F16","shape":[4])";
  const loadline::testing::TemporaryFolder folder_;
  Workspace workspace{""};
};

TEST_F(Diffs, NameEveryKindAndMarkIt) {
  file("a.safetensors",
       {{"m.same", f32}, {"m.values", f32}, {"n.shape", f32}, {"n.gone", f32}, {"o.type", f16}},
       std::string(40, '\1'));
  file("b.safetensors",
       {{"m.same", f32},
        {"m.values", f32},
        {"n.shape", row},
        {"o.type", R"("dtype":"BF16","shape":[4])"},
        {"x.new", f32}},
       std::string(8, '\1') + std::string(32, '\2'));
  workspace.show_document(0);
  DiffView& diff = workspace.document().diff;
  diff.begin(workspace.documents()[1]->model, false);
  settle(workspace);
  ASSERT_TRUE(diff.result.value());
  EXPECT_EQ(count(DiffKind::values), 0u) << "they were not asked for";
  EXPECT_EQ(count(DiffKind::equal), 2u);
  EXPECT_EQ(count(DiffKind::shape), 1u);
  EXPECT_EQ(count(DiffKind::type), 1u);
  EXPECT_EQ(count(DiffKind::only_here), 1u);
  EXPECT_EQ(count(DiffKind::only_there), 1u);
  diff.begin(workspace.documents()[1]->model, true);
  settle(workspace);
  EXPECT_EQ(count(DiffKind::values), 1u);
  EXPECT_EQ(count(DiffKind::type), 1u);
  for (const DiffRow& found : diff.result.value()->rows)
    if (found.kind == DiffKind::type)
      EXPECT_NE(found.detail.find(" at most, 4 of 4"), std::string::npos) << found.detail;
  const Model& model = *workspace.document().model;
  const auto kind_of = [&](const char* name) {
    return diff.result.value()->of_tensor[graph::index(*find_tensor(model, name))];
  };
  EXPECT_EQ(kind_of("m.same"), DiffKind::equal);
  EXPECT_EQ(kind_of("m.values"), DiffKind::values);
  EXPECT_EQ(kind_of("n.gone"), DiffKind::only_here);
  const ModelDiff& found = *diff.result.value();
  for (std::uint32_t i = 0; i < model.tree.nodes.size(); ++i)
    EXPECT_EQ(found.touched[i], model.tree.nodes[i].name != "same") << model.tree.nodes[i].name;
  EXPECT_EQ(found.rows.back().name, "x.new");
  diff.end();
  EXPECT_FALSE(diff.result.value());
}

TEST_F(Diffs, NeedTwoModels) {
  EXPECT_THROW(workspace.document().diff.begin(nullptr, false), Error);
  file("a.safetensors", {{"w", f32}}, "");
  EXPECT_THROW(workspace.document().diff.begin(nullptr, false), Error);
  workspace.document().diff.begin(workspace.document().model, true);
  settle(workspace);
  EXPECT_EQ(count(DiffKind::equal), 1u);
}

TEST_F(Diffs, OutliveTheOtherTab) {
  file("a.safetensors", {{"w", f32}}, "");
  file("b.safetensors", {{"w", f16}}, "");
  workspace.show_document(0);
  workspace.document().diff.begin(workspace.documents()[1]->model, true);
  workspace.show_document(1);
  workspace.close_model();
  settle(workspace);
  EXPECT_EQ(count(DiffKind::shape), 1u);
}

TEST_F(Diffs, TabsOfOneNameAreToldApart) {
  file("a.safetensors", {{"w", f32}}, "");
  EXPECT_EQ(tab_title(workspace, workspace.document()), "a");
}

}  // namespace

}  // namespace loadline::gui
