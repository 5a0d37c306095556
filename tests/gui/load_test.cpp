// Loads and forward passes in the window, and their memory.

#include "app/gui/state/load/load.h"

#include "app/gui/state/workspace.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "core/view/curves.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace loadline::gui {

// --- What is chosen for a load and its comparison, orders arranged by hand, and the files of both.

namespace {

// The same model before it is written to any format: every loader of checkpoints can open it.
graph::MetaGraphPtr in_no_file(const graph::MetaGraphPtr& model) {
  graph::MetaGraph graph = *model;
  graph.format.clear();
  return std::make_shared<const graph::MetaGraph>(std::move(graph));
}

void choose(Workspace& workspace, const std::function<void(Asked&)>& change) {
  Asked asked = workspace.document().load.asked();
  change(asked);
  workspace.document().load.ask(asked);
  settle(workspace);
}

void set(Workspace& workspace, std::string_view option, std::string_view word) {
  workspace.document().load.set_option(option, word);
  settle(workspace);
}

const load::LoadRow& row_of(const Workspace& workspace, std::string_view method, std::string_view order) {
  for (const load::LoadRow& row : workspace.document().load.comparison.value()->answer.rows)
    if (row.method->id == method && row.order == order) return row;
  throw std::runtime_error("no such row");
}

const std::optional<report::RowCurve>& curve_of(const Workspace& workspace, const load::LoadRow& row) {
  const report::AnswerWithCurves& compared = *workspace.document().load.comparison.value();
  return compared.curves[static_cast<std::size_t>(&row - compared.answer.rows.data())];
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string refusal(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Comparison, has_a_row_for_each_method_and_order_that_agrees_with_its_projection) {
  Workspace workspace("");
  workspace.show(preset_graph("llama-3-8b"), "");
  choose(workspace, [](Asked& asked) { asked.every_order = true; });
  ASSERT_EQ(workspace.document().load.comparison.value()->answer.rows.size(),
            compared_methods(workspace).size() * load::orders().size());
  for (const std::string_view order : {"file", "forward", "largest", "optimal"}) {
    set(workspace, "method", "cast_on_device");
    set(workspace, "order", order);
    ASSERT_TRUE(workspace.document().load.projection.value());
    const load::LoadRow& row = row_of(workspace, "cast_on_device", order);
    EXPECT_EQ(
        row.deciding_peak.bytes,
        workspace.document().load.projection.value()->timeline.peaks[plan::index(plan::Space::device)].bytes);
    EXPECT_EQ(row.reads, workspace.document().load.projection.value()->reads);
    EXPECT_EQ(row.seconds, workspace.document().load.projection.value()->seconds);
    const auto& curve = curve_of(workspace, row);
    ASSERT_TRUE(curve);
    EXPECT_EQ(curve->bands.front().most, row.deciding_peak.bytes);
  }
}

TEST(Comparison, a_device_fills_in_its_budget_and_rows_say_what_breaks_it) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const std::vector<load::Target>& targets = workspace.document().load.targets();
  const load::Target& target = *std::find_if(targets.begin(), targets.end(), [](const load::Target& row) {
    return row.memory == plan::MemoryKind::discrete && row.device_bytes;
  });
  set(workspace, "device_budget", "5GiB");  // of what was there before
  set(workspace, "target", target.id);
  set(workspace, "reserve", "0");  // that of the system is no part of the data sheet's figure
  EXPECT_EQ(workspace.document().load.memory().budget.device, target.device_bytes);
  EXPECT_EQ(workspace.document().load.comparison.value()->answer.bound->memory.budget.device,
            target.device_bytes);
  set(workspace, "device_budget", "1GiB");
  const load::LoadRow& row = row_of(workspace, "staged_ring", "file");
  EXPECT_FALSE(row.fits());
  EXPECT_EQ(row.verdict.device_over, workspace.document().model->weight_bytes - (1ull << 30));
  EXPECT_NE(row.first_over, "");
  EXPECT_NE(report::verdict_text(row, *workspace.document().load.comparison.value()->answer.bound)
                .find(row.first_over),
            std::string::npos);
  // a budget judges the rows and leaves the projection as it is
  const auto before = workspace.document().load.projection.value();
  set(workspace, "device_budget", std::to_string(UINT64_MAX));
  EXPECT_EQ(workspace.document().load.projection.value(), before);
  EXPECT_TRUE(row_of(workspace, "staged_ring", "file").fits());
  EXPECT_NE(refusal([&] { set(workspace, "target", "toaster"); }), "");
}

TEST(Comparison, one_memory_holds_everything_but_pages) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  set(workspace, "device_budget", "100GiB");
  set(workspace, "host_budget", "100GiB");
  set(workspace, "memory", "unified");
  EXPECT_EQ(workspace.document().load.memory().budget.unified, 100ull << 30);
  EXPECT_FALSE(workspace.document().load.memory().budget.device);
  EXPECT_FALSE(workspace.document().load.memory().budget.host);
  const load::LoadRow& row = row_of(workspace, "mmap_copy", "file");
  EXPECT_EQ(workspace.document().load.comparison.value()->answer.bound->memory.kind,
            plan::MemoryKind::unified);
  EXPECT_EQ(row.verdict.unified_over, row.deciding_peak.bytes - (100ull << 30));
  EXPECT_LT(row.deciding_peak.bytes, row.unified_peak.bytes);
  EXPECT_EQ(curve_of(workspace, row)->bands.size(), 1u);
}

TEST(Comparison, what_cannot_be_done_says_why_and_sorts_last) {
  Workspace workspace("");
  workspace.show(in_no_file(llama_70b_graph()), "");
  set(workspace, "method", "llama_cpp_ring");
  set(workspace, "gpu_layers", "10");
  ASSERT_TRUE(workspace.document().load.projection.value());
  EXPECT_LT(
      workspace.document().load.projection.value()->timeline.peaks[plan::index(plan::Space::device)].bytes,
      workspace.document().model->weight_bytes / 2);
  const load::LoadRow& refused = row_of(workspace, "direct", "file");
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->code(), ErrorCode::unsupported);
  for (const bool ascending : {true, false}) {
    const auto at = load::sorted_rows(workspace.document().load.comparison.value()->answer.rows,
                                      *workspace.document().load.comparison.value()->answer.bound,
                                      load::RowSort::device, ascending);
    ASSERT_EQ(at.size(), workspace.document().load.comparison.value()->answer.rows.size());
    EXPECT_FALSE(workspace.document().load.comparison.value()->answer.rows[at.front()].refusal);
    EXPECT_TRUE(workspace.document().load.comparison.value()->answer.rows[at.back()].refusal);
    const auto& rows = workspace.document().load.comparison.value()->answer.rows;
    EXPECT_TRUE(std::is_sorted(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
      if (rows[a].refusal || rows[b].refusal) return !rows[a].refusal && rows[b].refusal;
      const auto x = rows[a].peaks[plan::index(plan::Space::device)].bytes,
                 y = rows[b].peaks[plan::index(plan::Space::device)].bytes;
      return ascending ? x < y : x > y;
    }));
  }
  workspace.show(tiny_graph(), "");
  EXPECT_FALSE(workspace.document().load.asked().request.gpu_layers);
}

TEST(Questions, are_the_same_where_nothing_that_they_depend_on_differs) {
  Asked before, now;
  const auto timeline = [](const Asked& asked) { return timeline_question(asked, nullptr, nullptr); };
  const auto comparison = [](const Asked& asked) { return comparison_question(asked, nullptr, nullptr); };
  now.request.sequence = 7;  // of a pass that does not follow the load
  now.request.forward.profile = "hf_eager";
  EXPECT_EQ(timeline(before), timeline(now));
  EXPECT_EQ(comparison(before), comparison(now));
  now.request.device_budget = 1;
  EXPECT_EQ(timeline(before), timeline(now));
  EXPECT_NE(comparison(before), comparison(now));
  now = before;
  now.request.methods = {"accelerate"};
  EXPECT_NE(timeline(before), timeline(now));
  EXPECT_EQ(comparison(before), comparison(now));
  now = before;
  now.request.orders = {"largest"};
  EXPECT_NE(comparison(before), comparison(now));
  now.every_order = before.every_order = true;
  EXPECT_EQ(comparison(before), comparison(now));
  now.request.orders = {std::string(load::kOwnOrder)};
  EXPECT_EQ(comparison_question(now, nullptr, nullptr).own_order, nullptr);
  const auto one = std::make_shared<const load::StorageOrder>(),
             two = std::make_shared<const load::StorageOrder>();
  EXPECT_NE(timeline_question(now, nullptr, one), timeline_question(now, nullptr, two));
  now = before;
  for (const char* word : {"gpu_layers 3", "auto_map 1GiB", "place name:*=host", "cast f32", "slots 8"}) {
    const std::string_view line = word;
    const std::size_t space = line.find(' ');
    load::set_load_option(now.request, line.substr(0, space), line.substr(space + 1));
    EXPECT_NE(timeline(before), timeline(now)) << word;
    EXPECT_NE(comparison(before), comparison(now)) << word;
    now = before;
  }
}

TEST(Comparison, weights_are_placed_as_the_command_line_places_them) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const graph::MetaGraph& graph = *workspace.document().model->graph;
  const auto device = [&] {
    return row_of(workspace, "accelerate", "file").final_bytes[plan::index(plan::Space::device)];
  };
  const auto placed = [&](const load::Placement& placement) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < graph.storages.size(); ++i)
      if (placement.of(graph::StorageId{i}) == load::Home::device) bytes += graph.storages[i].bytes;
    return bytes;
  };
  set(workspace, "auto_map", "40GiB,16GiB");
  EXPECT_EQ(device(), placed(load::place_automatically(graph, 40ull << 30, 16ull << 30)));
  EXPECT_GT(device(), 0u);
  EXPECT_TRUE(row_of(workspace, "direct", "file").refusal);
  const std::string rules = "name:*down_proj*=host; layer:70-79=disk";
  const auto placed_by = [&] {
    return load::load_option_text(workspace.document().load.asked().request,
                                  *load::find_load_option("place"));
  };
  set(workspace, "place", rules);
  EXPECT_EQ(placed_by(), rules);
  EXPECT_FALSE(workspace.document().load.asked().request.auto_map);
  EXPECT_EQ(device(), placed(load::place_by_rules(graph, {{"name:*down_proj*", load::Home::host},
                                                          {"layer:70-79", load::Home::disk}})));
  // what cannot be meant changes nothing
  for (const char* wrong : {"name:nobody=host", "host", "name:*=cupboard"})
    EXPECT_NE(refusal([&] { set(workspace, "place", wrong); }), "") << wrong;
  EXPECT_EQ(placed_by(), rules);
  workspace.show(tiny_graph(), "");
  EXPECT_FALSE(load::places_weights(workspace.document().load.asked().request));
}

TEST(Comparison, times_are_by_rates_that_were_measured) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  const double before = row_of(workspace, "per_tensor", "file").seconds;
  load::MeasuredRates rates;
  rates.measured = "2025-03-01T12:00Z";
  rates.values["disk_read"] = 3.0e8;
  workspace.services.rates = rates;
  choose(workspace, [](Asked& asked) { asked.every_order = true; });
  EXPECT_GT(row_of(workspace, "per_tensor", "file").seconds, 4 * before);
  EXPECT_EQ(load::rates_line(workspace.services.rates),
            "Times by rates measured on 2025-03-01T12:00Z, but for those of a device.");
}

TEST(Comparison, an_allocator_is_judged_by_what_it_reserves) {
  Workspace workspace("");
  workspace.show(in_no_file(llama_70b_graph()), "");
  const auto row = [&]() -> const load::LoadRow& { return row_of(workspace, "executorch_after", "file"); };
  set(workspace, "allocator", "torch");
  const std::uint64_t asked = row().deciding_peak.bytes;
  const std::uint64_t reserved = (*row().reserved)[plan::index(plan::Space::device)];
  ASSERT_GT(reserved, asked);
  EXPECT_EQ(row().judged_peak.bytes, reserved);
  set(workspace, "device_budget", std::to_string(reserved - 1));
  EXPECT_EQ(row().verdict.device_over, 1u);
  EXPECT_NE(row().first_over, "");
  set(workspace, "device_budget", std::to_string(reserved));
  EXPECT_TRUE(row().fits());
  set(workspace, "allocator", "exact");
  set(workspace, "device_budget", std::to_string(asked));
  EXPECT_TRUE(row().fits());
}

TEST(Comparison, encoded_files_cannot_be_mapped) {
  Workspace workspace("");
  workspace.show(encoded_graph(), "");
  settle(workspace);
  EXPECT_TRUE(row_of(workspace, "mmap_assign", "file").refusal);
  EXPECT_FALSE(row_of(workspace, "per_tensor", "file").refusal);
}

TEST(Order, is_listed_by_modules_that_move_unfold_and_fold) {
  const graph::MetaGraphPtr graph = llama_70b_graph();
  const load::StorageOrder file = load::find_order("file").make(*graph);
  OrderList list(*graph, file);
  EXPECT_EQ(list.order(), file);
  EXPECT_LT(list.items().size(), 100u);
  const auto layer = std::find_if(list.items().begin(), list.items().end(),
                                  [](const OrderItem& item) { return item.module == "model.layers.7"; });
  ASSERT_NE(layer, list.items().end());
  const auto at = static_cast<std::size_t>(layer - list.items().begin());
  const std::size_t rows = list.items().size(), tensors = layer->storages.size();
  list.unfold(*graph, at);
  EXPECT_EQ(list.items().size(), rows + tensors - 1);
  EXPECT_EQ(list.order(), file);
  list.fold(at + 2);
  EXPECT_EQ(list.items().size(), rows);
  EXPECT_EQ(list.order(), file);
  list.move(at, 0);
  EXPECT_EQ(list.items()[0].module, "model.layers.7");
  EXPECT_EQ(list.order()[tensors], file[0]);
  list.move(0, at);
  EXPECT_EQ(list.order(), file);
  list.move(0, rows);  // beyond the end
  EXPECT_EQ(list.order(), file);
  EXPECT_EQ(order_module("lm_head.weight"), "lm_head");
  EXPECT_EQ(order_module("weight"), "weight");
  EXPECT_EQ(order_module("a.12.b.3.c"), "a.12");
  EXPECT_EQ(order_module(""), "");
}

TEST(Order, arranged_by_hand_is_planned_compared_saved_and_read_back) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  EXPECT_NE(refusal([&] { set(workspace, "order", load::kOwnOrder); }), "");
  workspace.document().order.list_chosen();
  settle(workspace);
  ASSERT_FALSE(workspace.document().order.list.value()->items().empty());
  OrderList list = *workspace.document().order.list.value();
  list.move(list.items().size() - 1, 0);
  const load::StorageOrder wanted = list.order();
  workspace.document().order.arrange(std::move(list));
  settle(workspace);
  ASSERT_TRUE(workspace.document().load.projection.value());
  EXPECT_EQ(workspace.document().load.projection.value()->order, "custom");
  EXPECT_EQ(row_of(workspace, "staged_ring", "custom").reads,
            workspace.document().load.projection.value()->reads);
  EXPECT_GT(workspace.document().load.projection.value()->reads.jumps, 0u);
  choose(workspace, [](Asked& asked) { asked.every_order = true; });
  EXPECT_EQ(workspace.document().load.comparison.value()->answer.rows.size(),
            compared_methods(workspace).size() * (load::orders().size() + 1));

  EXPECT_NE(refusal([&] { workspace.document().order.save(folder / "model.safetensors"); }).find(".txt"),
            std::string::npos);
  workspace.document().order.save(folder / "order.txt");
  settle(workspace);
  EXPECT_EQ(load::parse_order(*workspace.document().model->graph, text_of(folder / "order.txt"), "order.txt"),
            wanted);
  set(workspace, "order", "file");
  workspace.document().order.list_chosen();
  settle(workspace);
  EXPECT_NE(workspace.document().order.list.value()->order(), wanted);
  workspace.document().order.read(folder / "order.txt");
  settle(workspace);
  EXPECT_EQ(shown_order(workspace.document().load.asked()), "custom");
  EXPECT_EQ(workspace.document().order.list.value()->order(), wanted);

  loadline::testing::write_file(folder / "wrong.txt", std::string_view("no such tensor\n"));
  workspace.document().order.read(folder / "wrong.txt");
  settle(workspace);
  ASSERT_FALSE(workspace.services.notices.all().empty());
  EXPECT_NE(workspace.services.notices.all().back().text.find("no such tensor"), std::string::npos);
  EXPECT_EQ(workspace.document().order.list.value()->order(), wanted);

  workspace.show(tiny_graph(), "");
  EXPECT_EQ(shown_order(workspace.document().load.asked()), "file");
  EXPECT_FALSE(workspace.document().load.custom_order());
  EXPECT_TRUE(workspace.document().order.list.value()->items().empty());
}

TEST(Chart, is_written_as_the_command_line_writes_it) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  EXPECT_NE(refusal([&] { workspace.document().load.save_chart(folder / "x.svg"); }), "");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  EXPECT_NE(refusal([&] { workspace.document().load.save_chart(folder / "x.txt"); }).find(".svg"),
            std::string::npos);
  workspace.document().load.save_chart(folder / "x.svg");
  settle(workspace);
  const std::string svg = text_of(folder / "x.svg");
  EXPECT_TRUE(svg.starts_with("<svg "));
  const auto methods = compared_methods(workspace);
  for (const load::Method* const method : methods)
    EXPECT_NE(svg.find(method->id), std::string::npos) << method->id;
  workspace.document().load.save_chart(folder / "x.html");
  settle(workspace);
  const std::string page = text_of(folder / "x.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("723 tensors, weights = 141,107,412,992 bytes"), std::string::npos);
  for (const load::Method* const method : methods)
    EXPECT_NE(page.find(method->id), std::string::npos) << method->id;
  workspace.document().load.save_chart(folder / "missing/x.svg");
  settle(workspace);
  EXPECT_EQ(workspace.services.notices.all().back().severity, graph::Severity::error);
}

}  // namespace

// --- The forward pass in the window's state: scenes, figures, the timeline that ends with the first token.

namespace {

std::shared_ptr<const ForwardScene> scene_of(const char* preset,
                                             const forward::ForwardOptions& options = {}) {
  Progress progress;
  return make_forward_scene(preset_graph(preset), forward::built_in_assets(), options, progress);
}

std::uint64_t device_peak(const Workspace& workspace) {
  return workspace.document().load.projection.value()->timeline.peaks[plan::index(plan::Space::device)].bytes;
}

TEST(ForwardScene, everything_has_its_place) {
  const auto scene = scene_of("llama-3-8b", {.profile = "hf_eager"});
  ASSERT_NE(scene->forward(), nullptr);
  EXPECT_EQ(scene->weights.size(), scene->graph->tensors.size());
  EXPECT_EQ(scene->cache.size(), 64u);
  EXPECT_FALSE(scene->temporaries.empty());
  EXPECT_TRUE(scene->has_logits);
  EXPECT_EQ(scene->symbols_matter, (std::vector<bool>{true, true, true}));
  ASSERT_EQ(scene->bands.size(), 32u);
  EXPECT_EQ(scene->bands.back().name, "31");
  for (std::size_t i = 1; i < scene->bands.size(); ++i)
    EXPECT_LE(scene->bands[i - 1].ops.end, scene->bands[i].ops.first);
  EXPECT_TRUE(std::is_sorted(scene->weights.begin(), scene->weights.end(),
                             [](const auto& a, const auto& b) { return a.ops.first < b.ops.first; }));
}

TEST(ForwardScene, an_encoder_has_no_past_and_no_cache) {
  const auto scene = scene_of("bert-base-uncased");
  EXPECT_EQ(scene->symbols_matter, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(scene->cache.empty());
  EXPECT_EQ(scene->bands.size(), 12u);
  EXPECT_EQ(scene->bands.front().stack, "layer");
  EXPECT_FALSE(scene->has_logits);  // the pooler's one row is not a choice
}

TEST(ForwardScene, every_profile_has_the_bands_and_each_operator_counts_once) {
  const auto fused = scene_of("llama-3-8b"), eager = scene_of("llama-3-8b", {.profile = "hf_eager"});
  EXPECT_GT(eager->forward()->ops.size(),
            fused->forward()->ops.size());  // memory before an operator's results
  EXPECT_EQ(eager->bands.size(), 32u);
  EXPECT_EQ(eager->tree.nodes.front().all_ops, fused->tree.nodes.front().all_ops);
}

TEST(ForwardScene, a_short_window_leaves_the_past_a_choice) {
  const graph::MetaGraph graph = forward::config_graph(
      R"({"architectures":["MistralForCausalLM"],"model_type":"mistral","hidden_size":8,"num_hidden_layers":2,
          "num_attention_heads":2,"num_key_value_heads":1,"intermediate_size":12,"vocab_size":10,
          "sliding_window":64})",
      "config.json");
  Progress progress;
  const auto scene =
      make_forward_scene(std::make_shared<graph::MetaGraph>(graph), forward::built_in_assets(), {}, progress);
  ASSERT_NE(scene->forward(), nullptr) << scene->model.remark;
  EXPECT_TRUE(scene->symbols_matter[static_cast<std::size_t>(graph::kPast)]);
}

TEST(ForwardScene, options_that_fail_are_left_out_and_told) {
  auto assets = std::make_shared<forward::ForwardAssets>(*forward::built_in_assets());
  assets->profiles.push_back(forward::parse_profile(
      R"({"profile":"broken","ops":{"linear":{"temporaries":["'much'"]}}})", "broken.json"));
  Progress progress;
  const auto scene = make_forward_scene(preset_graph("demo"), assets, {.profile = "broken"}, progress);
  EXPECT_EQ(scene->model.profile, "fused");
  EXPECT_NE(scene->fault.find("broken.json"), std::string::npos) << scene->fault;
}

TEST(ForwardScene, both_stacks_of_a_model_have_bands) {
  const auto scene = scene_of("t5-small");
  ASSERT_EQ(scene->bands.size(), 12u);
  EXPECT_EQ(scene->bands[0].stack, "encoder");
  EXPECT_EQ(scene->bands[1].stack, "");
  EXPECT_EQ(scene->bands[6].stack, "decoder");
}

TEST(ForwardScene, the_peak_inside_the_root_is_the_peak) {
  for (const char* preset : {"demo", "deepseek-v3", "whisper-tiny"}) {
    const auto scene = scene_of(preset);
    const auto figures = forward::forward_figures(scene->model, 2, 100, 7);
    const auto peaks = peaks_inside(scene->tree, figures->usage);
    EXPECT_EQ(peaks.front(), figures->peak.bytes) << preset;
    EXPECT_LE(*std::max_element(peaks.begin(), peaks.end()), peaks.front()) << preset;
  }
}

TEST(ForwardScene, a_file_s_own_symbols_can_be_chosen) {
  graph::ForwardGraph graph;
  graph.symbols = {"B", "S", "P", "frames"};
  graph.sizes = {{"frames", graph::SizePoly::symbol(graph::SymbolId{3})},
                 {"tokens", graph::SizePoly::symbol(graph::kSequence)}};
  load::LoadRequest request = {.batch = 2, .sequence = 3, .past = 4, .sizes = {{"frames", 5}}};
  EXPECT_EQ(symbols_of(graph, request), (std::vector<std::uint64_t>{2, 3, 4, 5}));
  request.sizes.push_back({"tokens", 7});
  EXPECT_EQ(symbols_of(graph, request), (std::vector<std::uint64_t>{2, 7, 4, 5}));
  request.sizes.push_back({"height", 6});
  EXPECT_THROW(symbols_of(graph, request), Error);
  const graph::SizePoly tokens = graph::SizePoly::symbol(graph::kSequence), two(2);
  graph.chosen.push_back({graph::SymbolId{3}, tokens, two, two, tokens});
  EXPECT_EQ(symbols_of(graph, {.sequence = 3}), (std::vector<std::uint64_t>{1, 3, 0, 2}));
}

TEST(ForwardSession, sizes_are_evaluated_at_once_and_options_in_the_background) {
  Workspace workspace("");
  workspace.show(preset_graph("llama-3-8b"), "");
  EXPECT_TRUE(workspace.document().forward.scene.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.document().forward.figures());
  const auto scene = workspace.document().forward.scene.value();
  const std::uint64_t before = workspace.document().forward.figures()->peak.bytes;
  workspace.document().load.set_option("seq", "1024");
  EXPECT_FALSE(workspace.document().forward.scene.busy());
  EXPECT_EQ(workspace.document().forward.scene.value(), scene);
  EXPECT_EQ(workspace.document().forward.figures()->peak.bytes, 2 * before);
  workspace.document().load.set_option("profile", "hf_eager");
  EXPECT_TRUE(workspace.document().forward.scene.busy());
  EXPECT_EQ(workspace.document().forward.scene.value(), scene);  // until the other is there
  settle(workspace);
  EXPECT_NE(workspace.document().forward.scene.value(), scene);
  EXPECT_EQ(workspace.document().forward.scene.value()->model.profile, "hf_eager");
}

TEST(ForwardSession, sizes_stay_in_bounds_and_a_bad_profile_is_said) {
  Workspace workspace("");
  workspace.show(preset_graph("demo"), "");
  settle(workspace);
  Asked asked = workspace.document().load.asked();
  for (const auto& [batch, sequence, past] :
       {std::array<std::uint64_t, 3>{0, 512, 0}, {1, UINT64_MAX, 0}, {1, 512, UINT64_MAX}}) {
    asked.request.batch = batch;
    asked.request.sequence = sequence;
    asked.request.past = past;
    EXPECT_THROW(workspace.document().load.ask(asked), Error);
  }
  EXPECT_EQ(workspace.document().load.asked(), Asked());
  asked.request.batch = asked.request.sequence = asked.request.past = load::kMostTokens;
  workspace.document().load.ask(asked);
  EXPECT_TRUE(workspace.document().forward.figures() || !workspace.document().forward.error().empty());
  EXPECT_THROW(workspace.document().load.set_option("profile", "none such"), Error);
  workspace.document().load.ask({});
  settle(workspace);
  EXPECT_TRUE(workspace.document().forward.figures());
  EXPECT_EQ(workspace.document().forward.error(), "");
}

TEST(ForwardSession, the_operator_shown_stays_the_same_one_under_another_profile) {
  Workspace workspace("");
  workspace.show(preset_graph("deepseek-v2-lite"), "");
  settle(workspace);
  const std::vector<graph::Op>& ops = workspace.document().forward.graph()->ops;
  const auto found = std::find_if(ops.begin(), ops.end(), [](const graph::Op& op) {
    return op.name == "model.layers.10.self_attn.o_proj";
  });
  ASSERT_NE(found, ops.end());
  const auto at = static_cast<std::size_t>(found - ops.begin());
  const graph::Op before = *found;
  workspace.document().forward.shown = at;
  for (const char* profile : {"hf_eager", "ggml", "fused"}) {
    workspace.document().load.set_option("profile", profile);
    settle(workspace);
    ASSERT_TRUE(workspace.document().forward.shown) << profile;
    const graph::Op& now = workspace.document().forward.graph()->ops[*workspace.document().forward.shown];
    EXPECT_EQ(now.name, before.name) << profile;
    EXPECT_EQ(now.kind, before.kind) << profile;
    EXPECT_FALSE(now.outputs.empty()) << profile;
  }
  EXPECT_EQ(workspace.document().forward.shown, at);
}

TEST(ForwardSession, a_profile_that_fails_leaves_the_default_and_a_notice) {
  auto assets = std::make_shared<forward::ForwardAssets>(*forward::built_in_assets());
  assets->profiles.push_back(forward::parse_profile(
      R"({"profile":"broken","ops":{"linear":{"temporaries":["'much'"]}}})", "broken.json"));
  Workspace workspace("", assets);
  workspace.show(preset_graph("demo"), "");
  settle(workspace);
  workspace.document().load.set_option("profile", "broken");
  settle(workspace);
  ASSERT_TRUE(workspace.document().forward.figures());
  EXPECT_EQ(workspace.document().forward.scene.value()->model.profile, "fused");
  EXPECT_EQ(workspace.document().load.asked().request.forward.profile, "");
  ASSERT_FALSE(workspace.services.notices.all().empty());
  EXPECT_NE(workspace.services.notices.all().back().text.find("broken.json"), std::string::npos);
}

TEST(ForwardSession, the_first_token_follows_the_load) {
  Workspace workspace("");
  workspace.show(preset_graph("llama-3-8b"), "");
  settle(workspace);
  const std::uint64_t load = device_peak(workspace);
  workspace.document().load.set_option("activations", "1MiB");  // the pass has its own
  Asked asked = workspace.document().load.asked();
  asked.first_token = true;
  workspace.document().load.ask(asked);
  settle(workspace);
  ASSERT_EQ(workspace.document().load.projection.value()->plan.marks.size(), 2u);
  // no more than the peak and the whole cache, no less than the peak and what is cached by then
  const forward::ForwardFigures& figures = *workspace.document().forward.figures();
  EXPECT_GE(device_peak(workspace), load + figures.peak.bytes);
  EXPECT_LE(device_peak(workspace), load + figures.peak.bytes + figures.peak.cache_bytes);
  EXPECT_TRUE(workspace.services.notices.all().empty());
  ASSERT_EQ(workspace.document().load.comparison.value()->answer.rows.size(),
            compared_methods(workspace).size());
  for (const load::LoadRow& row : workspace.document().load.comparison.value()->answer.rows)
    if (row.method == workspace.document().load.projection.value()->method) {
      EXPECT_EQ(row.peaks[plan::index(plan::Space::device)].bytes, device_peak(workspace));
    }
  // sliders move it
  const std::uint64_t before = device_peak(workspace);
  workspace.document().load.set_option("seq", std::to_string(4 * kFirstSequence));
  settle(workspace);
  EXPECT_GT(device_peak(workspace), before);
  asked.first_token = false;
  asked.request.activation_bytes = 0;
  workspace.document().load.ask(asked);
  settle(workspace);
  EXPECT_EQ(device_peak(workspace), load);
}

TEST(ForwardSession, a_model_without_operators_loads_as_before) {
  Workspace workspace("");
  workspace.document().load.ask({.first_token = true});
  workspace.show(unknown_family_graph(), "");
  settle(workspace);
  ASSERT_TRUE(workspace.document().forward.scene.value());
  EXPECT_EQ(workspace.document().forward.graph(), nullptr);
  EXPECT_NE(workspace.document().forward.scene.value()->model.remark, "");
  EXPECT_EQ(device_peak(workspace), workspace.document().model->weight_bytes);
  workspace.close_model();
  EXPECT_FALSE(workspace.document().forward.scene.value());
}

}  // namespace

// --- Bytes in memory at a time cursor that jumps about, against a run from the beginning.

namespace {

// Of the whole model, from the beginning.
plan::PerSpace<std::uint64_t> arrived(const Model& model, const load::Projection& projection,
                                      std::size_t last) {
  std::map<plan::BlockId, std::uint64_t> written;
  for (std::size_t i = 0; i <= last; ++i) {
    const plan::Step& step = projection.plan.steps[i];
    if (step.verb == plan::Verb::free) written.erase(step.block);
    if (step.verb == plan::Verb::copy) written[step.block] += step.written();
  }
  plan::PerSpace<std::uint64_t> held = {};
  for (const auto& [id, bytes] : written) {
    const plan::Block& block = projection.plan.block(id);
    if (!block.storage || block.bytes == 0) continue;
    for (std::size_t i = 0; i < model.graph->tensors.size(); ++i)
      if (model.graph->tensors[i].storage == *block.storage)
        held[plan::index(block.space)] += static_cast<std::uint64_t>(
            static_cast<double>(model.bytes[i]) *
            (static_cast<double>(std::min(bytes, block.bytes)) / static_cast<double>(block.bytes)));
  }
  return held;
}

// Of blocks that hold tensors.
plan::PerSpace<std::uint64_t> written_to_blocks(const load::Projection& projection, std::size_t last) {
  std::map<plan::BlockId, std::uint64_t> written;
  for (std::size_t i = 0; i <= last; ++i) {
    const plan::Step& step = projection.plan.steps[i];
    if (step.verb == plan::Verb::free) written.erase(step.block);
    if (step.verb == plan::Verb::copy) written[step.block] += step.written();
  }
  plan::PerSpace<std::uint64_t> sum = {};
  for (const auto& [id, bytes] : written)
    if (const plan::Block& block = projection.plan.block(id); block.storage)
      sum[plan::index(block.space)] += std::min(bytes, block.bytes);
  return sum;
}

TEST(HeldBytes, FollowTheCursorEitherWay) {
  Workspace workspace("");
  HeldBytes held;
  for (const graph::MetaGraphPtr& graph : {llama_70b_graph(), encoded_graph(), tiny_graph()}) {
    workspace.show(graph, "");
    for (const char* const method : {"state_dict", "staged_ring", "mmap_copy", "layer_streaming"}) {
      workspace.document().load.set_option("method", method);
      settle(workspace);
      const Document& document = workspace.document();
      if (!document.load.projection.value()) continue;
      const std::size_t steps = document.load.projection.value()->plan.steps.size();
      for (const std::size_t tenth : {0u, 3u, 4u, 9u, 10u, 2u, 7u, 6u, 0u, 1u, 10u}) {
        const std::size_t step = steps * tenth / 10;
        held.move_to(document.model, document.load.projection.value(), step);
        const std::size_t last = std::min(step, steps - 1);
        EXPECT_EQ(held.at(graph::kRootNode),
                  arrived(*document.model, *document.load.projection.value(), last))
            << method << " at " << step;
        EXPECT_EQ(held.arrived(), written_to_blocks(*document.load.projection.value(), last))
            << method << " at " << step;
        EXPECT_EQ(held.step(), last);
      }
    }
  }
  held.clear();
  EXPECT_TRUE(held.empty());
}

// --- What has arrived over the whole load, and where it fails.

TEST(Arrivals, are_never_more_than_what_is_allocated_and_all_of_it_once_the_copies_are_done) {
  Workspace workspace("");
  std::size_t partly = 0;
  for (const graph::MetaGraphPtr& graph : {llama_70b_graph(), encoded_graph(), preset_graph("gpt2")}) {
    workspace.show(graph, "");
    for (const load::Method* const offered : load::methods_for(*graph)) {
      const load::Method& method = *offered;
      workspace.document().load.set_option("method", method.id);
      settle(workspace);
      const auto run = workspace.document().load.projection.value();
      if (!run) continue;
      const Arrivals* const arrivals = workspace.document().load.arrivals.get();
      ASSERT_NE(arrivals, nullptr);
      ASSERT_EQ(arrivals->full_at.size(), run->plan.blocks.size());
      // counted block by block: those alive whose last copy is still to come, and those that no copy fills: a
      // model that is built to be overwritten, buffers that are filled time and again
      std::vector<bool> copied(run->plan.blocks.size(), false);
      for (const plan::Step& step : run->plan.steps)
        if (step.verb == plan::Verb::copy) copied[graph::index(step.block)] = true;
      plan::PerSpace<std::uint64_t> waiting = {};
      std::size_t next = 0, next_usage = 0;
      plan::PerSpace<std::uint64_t> arrived = {}, allocated = {};
      for (std::size_t i = 0; i < run->plan.steps.size(); ++i) {
        const plan::Step& step = run->plan.steps[i];
        const plan::Block& block = run->plan.block(step.block);
        const std::uint32_t full = arrivals->full_at[graph::index(step.block)];
        const bool is_copied = copied[graph::index(step.block)];
        const bool stays = is_copied != static_cast<bool>(block.storage);
        std::uint64_t& waits = waiting[plan::index(block.space)];
        if (step.verb == plan::Verb::alloc && (stays || full != i)) ++waits;
        if (step.verb == plan::Verb::copy && !stays && full == i) --waits;
        if (step.verb == plan::Verb::free && stays) --waits;
        for (; next < arrivals->usage.size() && arrivals->usage[next].step <= i; ++next)
          arrived = arrivals->usage[next].bytes;
        for (const auto& usage = run->timeline.usage;
             next_usage < usage.size() && usage[next_usage].step <= i;)
          allocated = usage[next_usage++].bytes;
        for (std::size_t space = 0; space < plan::kSpaceCount; ++space) {
          ASSERT_LE(arrived[space], allocated[space]) << method.id << " step " << i;
          partly += arrived[space] > 0 && arrived[space] < allocated[space];
          if (waiting[space] == 0) ASSERT_EQ(arrived[space], allocated[space]) << method.id << " step " << i;
        }
        ASSERT_EQ(arrived_at(*arrivals, i), arrived);
      }
    }
  }
  EXPECT_GT(partly, 100u) << "blocks fill copy by copy";
}

TEST(Play, stands_still_at_the_step_that_fails_and_goes_on) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  set(workspace, "method", "per_tensor");
  set(workspace, "device_budget", "100GiB");
  Document& document = workspace.document();
  const auto failure = document.failure();
  ASSERT_TRUE(failure);
  const load::LoadRow& row = document.load.judged.value()->rows.front();
  EXPECT_EQ(failure->step, row.verdict.step);
  EXPECT_EQ(failure->label, row.first_over);
  EXPECT_NE(failure->label, "");
  const auto play = [&] {
    document.time.play(true);
    for (int i = 0; i < 1000 && document.time.playing(); ++i) document.time.advance(0.05);
    return document.time.step();
  };
  document.time.set_step(0);
  EXPECT_EQ(play(), failure->step);
  EXPECT_EQ(play(), document.load.projection.value()->plan.steps.size()) << "once";
  set(workspace, "device_budget", "200GiB");
  EXPECT_FALSE(document.failure());
  EXPECT_EQ(play(), document.load.projection.value()->plan.steps.size()) << "it fits now";
}

TEST(TimeAxis, the_same_moments_stay_in_sight_in_the_other_unit) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  const load::Projection& run = *document.load.projection.value();
  const std::size_t steps = run.plan.steps.size();
  document.axis.range = {0.5, 0.75};
  document.show_unit(view::RunAxis::seconds);
  EXPECT_EQ(document.axis_unit(), view::RunAxis::seconds);
  const double expected =
      view::x_of_step(run.timeline, steps, view::RunAxis::seconds, steps / 2) / run.timeline.seconds;
  EXPECT_NEAR(document.axis.range.from, expected, 0.01);
  document.show_unit(view::RunAxis::steps);
  EXPECT_NEAR(document.axis.range.from, 0.5, 0.01);
  EXPECT_NEAR(document.axis.range.to, 0.75, 0.01);
  document.load.set_beside("mmap_copy");
  settle(workspace);
  EXPECT_EQ(document.axis_unit(), view::RunAxis::seconds) << "two loads have their clock in common";
  set(workspace, "order", "largest");
  EXPECT_TRUE(document.axis.range.is_whole()) << "another load";
}

}  // namespace

}  // namespace loadline::gui
