// plan's plots, charts and pages, asked without a process: what they say, and that names cannot say more.
#include "app/cli/plan_pictures.h"

#include "app/cli/plan_plot.h"
#include "app/cli/plan_table.h"
#include "app/report/markup.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/assets.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

MetaGraph graph_of(const std::vector<std::pair<std::string, std::uint64_t>>& tensors) {
  MetaGraph graph;
  graph.files = {{"folder/m.safetensors", 1 << 30}};
  for (const auto& [name, bytes] : tensors) {
    const auto id = static_cast<std::uint32_t>(graph.storages.size());
    graph.storages.push_back(shapes_only_storage(bytes));
    graph.tensors.push_back({Name(name), DType::u8, {bytes}, {}, StorageId{id}, 0});
  }
  return graph;
}

// An answer and what it refers to.
struct Answered {
  MetaGraph graph;
  Context context;
  MethodOptions options = {};
  RowFrame frame;
  std::optional<DevicePreset> device = {};
  std::unique_ptr<ForwardAnswer> forward = {};
  std::unique_ptr<PlanAnswer> answer = {};

  Answered(MetaGraph model, const std::vector<std::string>& methods, RowFrame asked,
           const std::vector<std::string>& orders = {"file"},
           AllocatorModel allocator = AllocatorModel::exact)
      : graph(std::move(model)), frame(std::move(asked)) {
    options.allocator = allocator;
    context.assets = [] { return built_in_assets(); };
    forward = std::make_unique<ForwardAnswer>(context, graph, ForwardArguments{});
    const Labels labels(graph);
    std::vector<Row> rows;
    for (const std::string& method : methods)
      for (const std::string& order : orders)
        rows.push_back(
            make_row(project(graph, find_method(method), find_order(order), options), frame, labels));
    answer = std::unique_ptr<PlanAnswer>(
        new PlanAnswer{graph, options, *forward, frame, device, orders.size() > 1, std::move(rows)});
  }
};

RowFrame curves(MemoryKind memory = MemoryKind::discrete, std::size_t slices = 0) {
  RowFrame frame;
  frame.memory = memory;
  frame.curve = CurveOptions{.slices = slices};
  return frame;
}

std::vector<std::pair<std::string, std::uint64_t>> two() {
  return {{"a.weight", 3 * kMiB}, {"b.weight", kMiB}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(PlanPlot, ShowsEachSpaceAndNamesThePeak) {
  const Answered a(graph_of(two()), {"to_device", "staged_ring"}, curves());
  const std::string text = plan_plots(*a.answer, {60, false, true});
  EXPECT_NE(text.find("to_device (file)"), std::string::npos);
  EXPECT_NE(text.find("4.00 MiB at b.weight ▼"), std::string::npos) << text;
  EXPECT_NE(text.find("█"), std::string::npos);
  EXPECT_NE(text.find("▓"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 80u) << line;
}

// What a law is written with beside its symbols.
bool is_word_of_laws(const std::string& word) {
  constexpr std::array<std::string_view, 17> kWords = {
      "device", "host", "page",  "cache", "staging", "unified", "max", "min", "cast",
      "or",     "in",   "whole", "slots", "MiB",     "disk",    "at",  "most"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

TEST(Laws, EachSymbolIsExplainedToWhoReadsThem) {
  const std::regex kWord("[A-Za-z]+\\*?");
  const std::string legend = " " + std::string(law_symbols());
  std::size_t found = 0;
  for (const Method& method : methods()) {
    const std::string law(method.peak_law);
    for (auto word = std::sregex_iterator(law.begin(), law.end(), kWord); word != std::sregex_iterator();
         ++word) {
      if (is_word_of_laws(word->str())) continue;
      ++found;
      EXPECT_NE(legend.find(fmt::format(" {}: ", word->str())), std::string::npos)
          << word->str() << " in " << law;
    }
  }
  EXPECT_GT(found, methods().size());
  const Answered a(graph_of(two()), {"runai"}, curves());
  EXPECT_NE(plan_page(*a.answer, {}).find(law_symbols()), std::string::npos);
}

TEST(DeviceText, TellsEachBudgetAndWhatTakesItsPlace) {
  const DevicePreset card = {.name = "Card", .device_bytes = 8192 * kMiB, .host_bytes = 16384 * kMiB};
  RowFrame frame;
  frame.budget = device_budget(card, frame.memory);
  const std::string own = "On Card: 8.00 GiB of the device's own, 16.00 GiB for the host";
  EXPECT_EQ(device_text(card, frame), own);
  frame.budget.host = 4096 * kMiB;
  EXPECT_EQ(device_text(card, frame), own + "; --host-budget counts instead: 4.00 GiB");
  frame.budget.device = 1024 * kMiB;
  EXPECT_EQ(device_text(card, frame),
            own + "; --device-budget counts instead: 1.00 GiB; --host-budget counts instead: 4.00 GiB");
}

TEST(PlanPlot, FitsTheTerminal) {
  const Answered a(graph_of(two()), {"to_device", "mmap_copy"}, curves());
  for (const std::size_t columns : {40u, 80u, 133u}) {
    std::size_t widest = 0;
    for (const std::string& line : lines_of(plan_plots(*a.answer, {columns, false, true})))
      if (line.find("─") != std::string::npos) widest = std::max(widest, display_width(line));
    EXPECT_EQ(widest, columns - 1);
  }
}

TEST(PlanPlot, IsAsciiWhereTheLocaleIs) {
  for (const MemoryKind memory : {MemoryKind::discrete, MemoryKind::unified}) {
    const Answered a(graph_of(two()), {"to_device", "mmap_copy", "executorch_after"}, curves(memory));
    const std::string text = plan_plots(*a.answer, {80, false, false});
    for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << text;
    EXPECT_NE(text.find("# device"), std::string::npos);
    EXPECT_NE(text.find("oooo"), std::string::npos);
  }
}

TEST(PlanPlot, ColoursEndWithTheirLine) {
  const Answered a(graph_of(two()), {"to_device", "mmap_copy"}, curves(MemoryKind::unified));
  const std::string text = plan_plots(*a.answer, {80, true, true});
  EXPECT_NE(text.find("\033[0;34m"), std::string::npos);
  for (const std::string& line : lines_of(text)) {
    const std::size_t last = line.rfind('\033');
    if (last != std::string::npos) EXPECT_EQ(line.compare(last, 4, "\033[0m"), 0) << line;
  }
}

// With memory of its own the device's scale is the host's: a ring of 64 MiB is one line beside a model.
TEST(PlanPlot, ShowsWhatIsLittle) {
  const Answered a(graph_of({{"w", 1 << 30}}), {"per_tensor", "llama_cpp_ring"}, curves());
  const std::string text = plan_plots(*a.answer, {60, false, true});
  const std::size_t ring = text.find("llama_cpp_ring");
  ASSERT_NE(ring, std::string::npos);
  EXPECT_NE(text.find("▁▁▁▁", ring), std::string::npos) << text.substr(ring);
}

TEST(Markup, EscapesWhatMarkupGivesAMeaning) {
  EXPECT_EQ(markup_text("<script>alert(\"x\" & 'y')</script>"),
            "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;");
  EXPECT_EQ(markup_text("a\xE2\x80\xAE\x1b[2J\xFF"), "a\\u{202e}\\x1b[2J\\xff");
}

// A name that would be markup, turn the text around, or end an attribute stays a name.
TEST(PlanPage, HostileNamesStayNames) {
  const std::string hostile = "</title></svg><script>alert(1)</script>\"'&\xE2\x80\xAE\n<b";
  MetaGraph graph = graph_of({{hostile, 3 * kMiB}, {"b\"onload=\"x", kMiB}});
  graph.files[0].path = "x/<img src=x onerror=alert(1)>.safetensors";
  RowFrame frame = curves(MemoryKind::discrete, 16);
  frame.budget.device = kMiB;
  const Answered a(std::move(graph), {"to_device", "mmap_assign", "per_tensor"}, frame);
  const std::string page = plan_page(*a.answer, {{"model", "<i>'\"&"}});
  const std::string chart = chart_svg(*a.answer);
  for (const std::string& text : {page, chart}) {
    for (const char* forbidden :
         {"<script", "</title></svg>", "<img", "\xE2\x80\xAE", "<b ", "<b&", "\"onload", "<i>"})
      EXPECT_EQ(text.find(forbidden), std::string::npos) << forbidden;
    EXPECT_NE(text.find("&lt;"), std::string::npos);
  }
  EXPECT_NE(page.find("\\u{202e}\\x0a&lt;b"), std::string::npos);  // in what is alive there
}

// Nothing is fetched from anywhere, nothing runs.
TEST(PlanPage, NeedsNothingElse) {
  const Answered a(graph_of(two()), {"to_device", "staged_ring"}, curves(MemoryKind::discrete, 16));
  const std::string page = plan_page(*a.answer, {{"model", "m"}});
  for (const char* forbidden : {"<script", "http://", "https://", "url(", "@import", "<link", "src="})
    EXPECT_EQ(page.find(forbidden), std::string::npos) << forbidden;
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(page.find("What each method does"), std::string::npos);
  for (const Row& row : a.answer->rows)
    EXPECT_NE(page.find(markup_text(row.method->explanation)), std::string::npos) << row.method->id;
  EXPECT_NE(page.find("<title>step "), std::string::npos);
  EXPECT_NE(page.find("3.00 MiB  a.weight"), std::string::npos);
}

// Each tag that opens ends, in order: a page and a chart are well formed.
TEST(PlanPage, IsWellFormed) {
  for (const MemoryKind memory : {MemoryKind::discrete, MemoryKind::unified}) {
    RowFrame frame = curves(memory, 16);
    (memory == MemoryKind::unified ? frame.budget.unified : frame.budget.device) = 6 * kMiB;
    frame.cache_limit = kMiB;
    const Answered a(graph_of(two()), {"to_device", "state_dict", "mmap_copy", "staged_ring"}, frame,
                     {"file", "name"});
    for (const std::string& text : {plan_page(*a.answer, {{"model", "m"}}), chart_svg(*a.answer)}) {
      std::vector<std::string> open;
      const std::regex tag("<(/?)([a-z0-9]+)[^<>]*?(/?)>");
      for (std::sregex_iterator at(text.begin(), text.end(), tag), end; at != end; ++at) {
        const std::string name = (*at)[2];
        if (name == "meta" || (*at)[3] == "/") continue;
        if ((*at)[1].length() == 0) {
          open.push_back(name);
          continue;
        }
        ASSERT_FALSE(open.empty()) << name;
        EXPECT_EQ(open.back(), name);
        open.pop_back();
      }
      EXPECT_TRUE(open.empty()) << open.back();
      EXPECT_FALSE(std::regex_search(text, std::regex("[\" ,HVM(]-?(nan|inf)[\" ,HVZ)]")));
    }
  }
}

TEST(PlanChart, ShowsEachMethodInItsBestOrder) {
  MetaGraph graph = graph_of({{"a", kMiB}, {"b", 5 * kMiB}});
  const Answered a(std::move(graph), {"to_device", "executorch_before"}, curves(MemoryKind::unified),
                   {"file", "largest", "smallest"});
  const std::vector<const Row*> rows = pictured_rows(*a.answer);
  ASSERT_EQ(rows.size(), 2u);
  for (const Row* row : rows)
    for (const Row& other : a.answer->rows)
      if (other.method == row->method) EXPECT_LE(row->leading.bytes, other.leading.bytes);
  EXPECT_EQ(rows[1]->order, "file");  // small tensors go first: as they lie, and before `smallest`
  EXPECT_EQ(pictured_note(*a.answer), "Each method in the order with the least peak: 2 of 6 rows.");
  EXPECT_TRUE(pictured_note(*Answered(graph_of(two()), {"to_device"}, curves()).answer).empty());
}

TEST(PlanPictures, AreWrittenWholeAndOnlyWherePicturesGo) {
  const testing::TemporaryFolder folder;
  const Answered a(graph_of(two()), {"to_device"}, curves());
  EXPECT_NO_THROW(check_picture_path("", ".svg"));
  EXPECT_NO_THROW(check_picture_path("x.svg", ".svg"));
  EXPECT_THROW(check_picture_path("model.safetensors", ".svg"), Error);
  write_chart(folder / "c.svg", *a.answer);
  EXPECT_EQ(testing::read_file(folder / "c.svg"), chart_svg(*a.answer));
  EXPECT_THROW(write_page(folder / "absent/p.html", *a.answer, {}), Error);
}

// Shares, budgets and orders in words.
TEST(PlanTable, SaysByHowMuchAndWhere) {
  RowFrame frame;
  frame.budget = {.device = 3 * kMiB, .host = kMiB};
  frame.max_peak = 3 * kMiB;
  const Answered a(graph_of(two()), {"to_device"}, frame);
  EXPECT_EQ(verdict_text(a.answer->rows[0], a.frame),
            "device 1.00 MiB over, host 3.00 MiB over, first at a.weight; 1.00 MiB over --max-peak");
  EXPECT_FALSE(a.answer->any_fits());
}

TEST(PlanTable, JudgesWhatAnAllocatorReservesAndSaysSo) {
  RowFrame frame = curves();
  frame.budget = {.device = 4 * kMiB};
  const Answered exact(graph_of(two()), {"direct"}, frame);
  EXPECT_EQ(verdict_text(exact.answer->rows[0], frame), "fits");
  EXPECT_EQ(plan_table(*exact.answer, false).find("reserves"), std::string::npos);
  // segments of 20 and of 2 MiB
  const Answered torch(graph_of(two()), {"direct"}, frame, {"file"}, AllocatorModel::torch);
  EXPECT_EQ(verdict_text(torch.answer->rows[0], frame), "device 18.00 MiB over, first at a.weight");
  EXPECT_NE(plan_table(*torch.answer, false).find("Verdicts are by what the allocator 'torch' reserves.\n"),
            std::string::npos);
  EXPECT_NE(plan_page(*torch.answer, {}).find("Verdicts are by what the allocator reserves"),
            std::string::npos);
  // an arena is there from its first block to its last
  const Answered arena(graph_of(two()), {"direct"}, frame, {"file"}, AllocatorModel::arena);
  EXPECT_EQ(arena.answer->rows[0].judged.bytes, (*arena.answer->rows[0].reserved)[index(Space::device)]);
}

}  // namespace
}  // namespace loadline::cli
