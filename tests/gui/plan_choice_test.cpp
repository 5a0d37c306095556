// What is chosen for a load and its comparison, orders arranged by hand, and the files of both.
#include "app/gui/workspace.h"
#include "core/load/order_file.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

void settle(Workspace& workspace) {
  while (workspace.busy())
    if (!workspace.poll()) std::this_thread::yield();
}

void choose(Workspace& workspace, const std::function<void(PlanChoice&)>& change) {
  PlanChoice choice = workspace.document().choice();
  change(choice);
  workspace.document().set_plan(choice);
  settle(workspace);
}

const report::PlanRow& row_of(const Workspace& workspace, std::string_view method, std::string_view order) {
  for (const report::PlanRow& row : workspace.document().comparison.value()->rows)
    if (row.method->id == method && row.order == order) return row;
  throw std::runtime_error("no such row");
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
  choose(workspace, [](PlanChoice& choice) { choice.every_order = true; });
  ASSERT_EQ(workspace.document().comparison.value()->rows.size(), methods().size() * orders().size());
  for (const std::string_view order : {"file", "forward", "largest", "optimal"}) {
    choose(workspace, [&](PlanChoice& choice) {
      choice.method = "cast_on_device";
      choice.order = order;
    });
    ASSERT_TRUE(workspace.document().projection.value());
    const report::PlanRow& row = row_of(workspace, "cast_on_device", order);
    EXPECT_EQ(row.leading.bytes,
              workspace.document().projection.value()->timeline.peaks[index(Space::device)].bytes);
    EXPECT_EQ(row.reads, workspace.document().projection.value()->reads);
    EXPECT_EQ(row.seconds, workspace.document().projection.value()->seconds);
    ASSERT_TRUE(row.curve);
    EXPECT_EQ(row.curve->bands.front().most, row.leading.bytes);
  }
}

TEST(Comparison, a_device_fills_in_its_budget_and_rows_say_what_breaks_it) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const DevicePreset& device = *std::find_if(
      workspace.shared.presets.begin(), workspace.shared.presets.end(), [](const DevicePreset& preset) {
        return preset.memory == MemoryKind::discrete && preset.device_bytes;
      });
  workspace.document().set_plan(on_device(workspace.document().choice(), device));
  settle(workspace);
  EXPECT_EQ(workspace.document().choice().budget.device, device.device_bytes);
  choose(workspace, [](PlanChoice& choice) { choice.budget.device = 1ull << 30; });
  const report::PlanRow& row = row_of(workspace, "staged_ring", "file");
  EXPECT_FALSE(row.fits());
  EXPECT_EQ(row.verdict.device_over, workspace.document().model->weight_bytes - (1ull << 30));
  EXPECT_NE(row.first_over, "");
  EXPECT_NE(verdict_text(row, workspace.document().comparison.value()->frame).find("first at"),
            std::string::npos);
  // a budget judges the rows and leaves the projection as it is
  const auto before = workspace.document().projection.value();
  choose(workspace, [](PlanChoice& choice) { choice.budget.device = UINT64_MAX; });
  EXPECT_EQ(workspace.document().projection.value(), before);
  EXPECT_TRUE(row_of(workspace, "staged_ring", "file").fits());
  EXPECT_NE(refusal([&] { choose(workspace, [](PlanChoice& choice) { choice.preset = "toaster"; }); }), "");
}

TEST(Comparison, one_memory_holds_everything_but_pages) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  choose(workspace, [](PlanChoice& choice) { choice.budget.device = 100ull << 30; });
  workspace.document().set_plan(with_memory(workspace.document().choice(), MemoryKind::unified));
  settle(workspace);
  EXPECT_EQ(workspace.document().choice().budget.unified, 100ull << 30);
  EXPECT_FALSE(workspace.document().choice().budget.device);
  const report::PlanRow& row = row_of(workspace, "mmap_copy", "file");
  EXPECT_EQ(workspace.document().comparison.value()->frame.memory, MemoryKind::unified);
  EXPECT_EQ(row.verdict.unified_over, row.leading.bytes - (100ull << 30));
  EXPECT_LT(row.leading.bytes, row.unified.bytes);
  EXPECT_EQ(row.curve->bands.size(), 1u);
}

TEST(Comparison, what_cannot_be_done_says_why_and_sorts_last) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  choose(workspace, [](PlanChoice& choice) {
    choice.method = "llama_cpp_ring";
    choice.gpu_layers = 10;
  });
  ASSERT_TRUE(workspace.document().projection.value());
  EXPECT_LT(workspace.document().projection.value()->timeline.peaks[index(Space::device)].bytes,
            workspace.document().model->weight_bytes / 2);
  const report::PlanRow& refused = row_of(workspace, "direct", "file");
  ASSERT_TRUE(refused.refusal);
  EXPECT_NE(std::string(refused.refusal->what()).find("nowhere but to the device"), std::string::npos);
  for (const bool ascending : {true, false}) {
    const auto at =
        sorted_rows(workspace.document().comparison.value()->rows, {CompareColumn::device, ascending});
    ASSERT_EQ(at.size(), workspace.document().comparison.value()->rows.size());
    EXPECT_FALSE(workspace.document().comparison.value()->rows[at.front()].refusal);
    EXPECT_TRUE(workspace.document().comparison.value()->rows[at.back()].refusal);
    const auto& rows = workspace.document().comparison.value()->rows;
    EXPECT_TRUE(std::is_sorted(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
      if (rows[a].refusal || rows[b].refusal) return !rows[a].refusal && rows[b].refusal;
      const auto x = rows[a].peaks[index(Space::device)].bytes, y = rows[b].peaks[index(Space::device)].bytes;
      return ascending ? x < y : x > y;
    }));
  }
  workspace.show(tiny_graph(), "");
  EXPECT_FALSE(workspace.document().choice().gpu_layers);
}

TEST(Choice, is_placed_anew_for_another_placement_or_a_cast_that_a_map_counts) {
  PlanChoice before;
  PlanChoice now = before;
  now.method = "accelerate";
  now.order = "largest";
  now.options.slots = 8;
  now.options.cast = DType::f32;
  now.budget.device = 1;
  EXPECT_TRUE(same_placement(before, now));
  now.gpu_layers = 3;
  EXPECT_FALSE(same_placement(before, now));
  now = without_placement(now);
  now.place = {{"name:*", Home::host}};
  EXPECT_FALSE(same_placement(before, now));
  before.memory_map = MemoryMap{1 << 30};
  now = before;
  EXPECT_TRUE(same_placement(before, now));
  now.options.cast = DType::f32;
  EXPECT_FALSE(same_placement(before, now));
  now = before;
  now.memory_map->host = 1 << 30;
  EXPECT_FALSE(same_placement(before, now));
}

TEST(Comparison, weights_are_placed_as_the_command_line_places_them) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const MetaGraph& graph = *workspace.document().model->graph;
  const auto device = [&] {
    return row_of(workspace, "accelerate", "file").final_bytes[index(Space::device)];
  };
  const auto placed = [&](const Placement& placement) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < graph.storages.size(); ++i)
      if (placement.of(StorageId{i}) == Home::device) bytes += graph.storages[i].bytes;
    return bytes;
  };
  choose(workspace, [](PlanChoice& choice) { choice.memory_map = MemoryMap{40ull << 30, 16ull << 30}; });
  EXPECT_EQ(device(), placed(place_automatically(graph, 40ull << 30, 16ull << 30)));
  EXPECT_GT(device(), 0u);
  EXPECT_TRUE(row_of(workspace, "direct", "file").refusal);
  const std::string rules = "name:*down_proj*=host; layer:70-79=disk";
  choose(workspace, [&](PlanChoice& choice) {
    choice = without_placement(choice);
    choice.place = parse_place_text(rules);
  });
  EXPECT_EQ(place_text(workspace.document().choice().place), rules);
  EXPECT_EQ(device(),
            placed(place_by_rules(graph, {{"name:*down_proj*", Home::host}, {"layer:70-79", Home::disk}})));
  // what cannot be meant changes nothing
  for (const char* wrong : {"name:nobody=host", "host", "name:*=cupboard"})
    EXPECT_NE(refusal([&] {
                choose(workspace, [&](PlanChoice& choice) { choice.place = parse_place_text(wrong); });
              }),
              "")
        << wrong;
  EXPECT_EQ(place_text(workspace.document().choice().place), rules);
  EXPECT_TRUE(parse_place_text(" ; ").empty());
  workspace.show(tiny_graph(), "");
  EXPECT_FALSE(has_placement(workspace.document().choice()));
}

TEST(Comparison, times_are_by_rates_that_were_measured) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  const double before = row_of(workspace, "per_tensor", "file").seconds;
  MeasuredRates rates;
  rates.measured = "2025-03-01T12:00Z";
  rates.values["disk_read"] = 3.0e8;
  workspace.shared.rates = rates;
  choose(workspace, [](PlanChoice& choice) { choice.every_order = true; });
  EXPECT_GT(row_of(workspace, "per_tensor", "file").seconds, 4 * before);
  EXPECT_EQ(rates_line(workspace.shared.rates),
            "Times by rates measured on 2025-03-01T12:00Z, but for those of a device.");
}

TEST(Comparison, an_allocator_is_judged_by_what_it_reserves) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  const auto row = [&]() -> const report::PlanRow& { return row_of(workspace, "executorch_after", "file"); };
  choose(workspace, [](PlanChoice& choice) { choice.options.allocator = AllocatorModel::torch; });
  const std::uint64_t asked = row().leading.bytes;
  const std::uint64_t reserved = (*row().reserved)[index(Space::device)];
  ASSERT_GT(reserved, asked);
  EXPECT_EQ(row().judged.bytes, reserved);
  choose(workspace, [&](PlanChoice& choice) { choice.budget.device = reserved - 1; });
  EXPECT_EQ(row().verdict.device_over, 1u);
  EXPECT_NE(row().first_over, "");
  choose(workspace, [&](PlanChoice& choice) { choice.budget.device = reserved; });
  EXPECT_TRUE(row().fits());
  choose(workspace, [&](PlanChoice& choice) {
    choice.options.allocator = AllocatorModel::exact;
    choice.budget.device = asked;
  });
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
  const MetaGraphPtr graph = llama_70b_graph();
  const StorageOrder file = find_order("file").make(*graph);
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
  EXPECT_NE(refusal([&] { choose(workspace, [](PlanChoice& choice) { choice.order = kCustomOrder; }); }), "");
  workspace.document().list_order();
  settle(workspace);
  ASSERT_FALSE(workspace.document().order.value()->items().empty());
  OrderList list = *workspace.document().order.value();
  list.move(list.items().size() - 1, 0);
  const StorageOrder wanted = list.order();
  workspace.document().arrange_order(std::move(list));
  settle(workspace);
  ASSERT_TRUE(workspace.document().projection.value());
  EXPECT_EQ(workspace.document().projection.value()->order, "custom");
  EXPECT_EQ(row_of(workspace, "staged_ring", "custom").reads, workspace.document().projection.value()->reads);
  EXPECT_GT(workspace.document().projection.value()->reads.jumps, 0u);
  choose(workspace, [](PlanChoice& choice) { choice.every_order = true; });
  EXPECT_EQ(workspace.document().comparison.value()->rows.size(), methods().size() * (orders().size() + 1));

  EXPECT_NE(refusal([&] { workspace.document().save_order(folder / "model.safetensors"); }).find(".txt"),
            std::string::npos);
  workspace.document().save_order(folder / "order.txt");
  settle(workspace);
  EXPECT_EQ(parse_order(*workspace.document().model->graph, text_of(folder / "order.txt"), "order.txt"),
            wanted);
  choose(workspace, [](PlanChoice& choice) { choice.order = "file"; });
  workspace.document().list_order();
  settle(workspace);
  EXPECT_NE(workspace.document().order.value()->order(), wanted);
  workspace.document().load_order(folder / "order.txt");
  settle(workspace);
  EXPECT_EQ(workspace.document().choice().order, "custom");
  EXPECT_EQ(workspace.document().order.value()->order(), wanted);

  loadline::testing::write_file(folder / "wrong.txt", std::string_view("no such tensor\n"));
  workspace.document().load_order(folder / "wrong.txt");
  settle(workspace);
  ASSERT_FALSE(workspace.shared.notices.all().empty());
  EXPECT_NE(workspace.shared.notices.all().back().text.find("no such tensor"), std::string::npos);
  EXPECT_EQ(workspace.document().order.value()->order(), wanted);

  workspace.show(tiny_graph(), "");
  EXPECT_EQ(workspace.document().choice().order, "file");
  EXPECT_FALSE(workspace.document().has_custom_order());
  EXPECT_TRUE(workspace.document().order.value()->items().empty());
}

TEST(Chart, is_written_as_the_command_line_writes_it) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  EXPECT_NE(refusal([&] { workspace.document().save_chart(folder / "x.svg"); }), "");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  EXPECT_NE(refusal([&] { workspace.document().save_chart(folder / "x.txt"); }).find(".svg"),
            std::string::npos);
  workspace.document().save_chart(folder / "x.svg");
  settle(workspace);
  const std::string svg = text_of(folder / "x.svg");
  EXPECT_TRUE(svg.starts_with("<svg "));
  for (const Method& method : methods()) EXPECT_NE(svg.find(method.id), std::string::npos) << method.id;
  workspace.document().save_chart(folder / "x.html");
  settle(workspace);
  const std::string page = text_of(folder / "x.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("723 tensors, W = 141,107,412,992 bytes"), std::string::npos);
  for (const Method& method : methods()) EXPECT_NE(page.find(method.id), std::string::npos) << method.id;
  workspace.document().save_chart(folder / "missing/x.svg");
  settle(workspace);
  EXPECT_EQ(workspace.shared.notices.all().back().severity, Severity::error);
}

}  // namespace
}  // namespace loadline::gui
