// Plots, charts and pages of plan, and what pack writes.

#include "app/cli/base/command.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/manual.h"
#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/method.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- plan's plots, charts and pages, asked without a process: what they say, and that names cannot say more.

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

graph::MetaGraph graph_of(const std::vector<std::pair<std::string, std::uint64_t>>& tensors) {
  graph::MetaGraph graph;
  graph.files = {{"folder/m.safetensors", 1 << 30}};
  for (const auto& [name, bytes] : tensors) {
    const auto id = static_cast<std::uint32_t>(graph.storages.size());
    graph.storages.push_back(graph::shapes_only_storage(bytes));
    graph.tensors.push_back({graph::Name(name), graph::DType::u8, {bytes}, {}, graph::StorageId{id}, 0});
  }
  return graph;
}

// What is asked, and how it is shown.
struct Asked {
  load::LoadRequest request = {};
  std::optional<report::CurveOptions> curve = {};
};

// An answer and what it refers to.
struct Answered {
  graph::MetaGraph graph;
  std::string path = "m";
  report::AnswerWithCurves answered;
  PlanDisplay view;

  Answered(graph::MetaGraph model, std::vector<std::string> methods, Asked asked,
           std::vector<std::string> orders = {"file"},
           allocators::AllocatorModel allocator = allocators::AllocatorModel::exact)
      : graph(std::move(model)), view{graph, path, answered} {
    asked.request.methods = std::move(methods);
    asked.request.orders = std::move(orders);
    asked.request.allocator = allocator;
    Progress progress;
    answered = report::answer_with_curves(
        graph, std::make_shared<const load::BoundRequest>(load::bind_request(graph, asked.request, {})),
        {.advise = false}, asked.curve,
        std::make_shared<const load::RequestPass>(graph, asked.request, nullptr), progress);
  }
  const std::vector<load::LoadRow>& rows() const { return answered.answer.rows; }
  report::ChartSubject subject() const { return answered.subject(graph); }
  std::string page(const report::OptionList& options = {}) const {
    return report::page_html(subject(), {least_text(view), options, "0"});
  }
};

Asked curves(plan::MemoryKind memory = plan::MemoryKind::discrete, std::size_t slices = 0) {
  Asked asked;
  asked.request.memory = memory;
  asked.curve = report::CurveOptions{.slices = slices};
  return asked;
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
  const std::string text = plan_plots(a.view, {60, false, true});
  EXPECT_NE(text.find("to_device (file)"), std::string::npos);
  EXPECT_NE(text.find("4.00 MiB at b.weight ▼"), std::string::npos) << text;
  EXPECT_NE(text.find("█"), std::string::npos);
  EXPECT_NE(text.find("▓"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 80u) << line;
}

TEST(Laws, AreExplainedToWhoReadsThem) {
  const load::Method& method = load::find_method("accelerate");
  const std::string legend = report::law_legend({&method});
  EXPECT_TRUE(legend.starts_with("device_weights: ")) << legend;
  EXPECT_NE(legend.find("; if pickled: "), std::string::npos) << legend;
  EXPECT_EQ(legend.find("; pass: "), legend.rfind("; pass: ")) << legend;
  EXPECT_EQ(legend.find("ring:"), std::string::npos) << legend;
  const std::string glossary = report::find_manual_page("glossary").text;
  for (const char* const word : {"largest_shard", "if used"})
    EXPECT_NE(glossary.find(fmt::format("\n| `{}` | ", word)), std::string::npos) << word;
  const Answered a(graph_of(two()), {"runai"}, curves());
  EXPECT_NE(a.page().find(report::markup_text(report::law_legend({&load::find_method("runai")}))),
            std::string::npos);
}

// A verdict is no surer than what was understood of the model.
TEST(PlanText, NamesWhatItsVerdictsDoNotAccountFor) {
  const auto text_of = [](std::string format, std::uint64_t sequence) {
    std::string json(forward::find_preset("llama-3.2-1b")->config_json);
    json.insert(json.find('{') + 1, "\"nobody_reads_this\": 7,");
    graph::MetaGraph graph = forward::config_graph(json, "config.json");
    graph.format = std::move(format);
    Asked asked;
    asked.request.device_budget = 64ull << 30;
    asked.request.sequence = sequence;
    const Answered a(std::move(graph), {"staged_ring"}, asked);
    std::string text = plan_text(a.view, false, 200);
    std::ranges::replace(text, '\n', ' ');
    return text;
  };
  for (const auto& [format, sequence] : {std::pair("config", 0), std::pair("safetensors", 16)}) {
    const std::string text = text_of(format, static_cast<std::uint64_t>(sequence));
    EXPECT_NE(text.find("fits by estimate"), std::string::npos) << text;
    EXPECT_NE(text.find("which do not account for 'nobody_reads_this' is 7."), std::string::npos) << text;
  }
  // the sizes of weights in files are known
  const std::string known = text_of("safetensors", 0);
  EXPECT_EQ(known.find("estimate"), std::string::npos) << known;
}

TEST(TargetText, TellsEachBudgetAndWhatTakesItsPlace) {
  const std::vector<load::Target> cards = {
      {.id = "card", .name = "Card", .device_bytes = 8192 * kMiB, .host_bytes = 16384 * kMiB}};
  const graph::MetaGraph graph = graph_of(two());
  load::LoadRequest request = {.target = "card"};
  const auto text = [&] {
    load::LoadEnvironment environment;
    environment.targets = cards;
    return testing::facts(report::budget_text(load::bind_request(graph, request, environment)));
  };
  EXPECT_EQ(text(), "8.00 16.00");
  request.host_budget = 4096 * kMiB;
  EXPECT_EQ(text(), "8.00 16.00 4.00");
  request.device_budget = 1024 * kMiB;
  EXPECT_EQ(text(), "8.00 16.00 1.00 4.00");
}

// No line is wider than the terminal, whatever is asked; a figure that somebody needs is never dropped.
TEST(PlanTable, FitsTheTerminal) {
  Asked asked;
  asked.request.device_budget = 3 * kMiB;
  std::vector<std::string> ids;
  for (const load::Method* const method : load::methods_for(graph_of(two())))
    if (!method->traits.adapts) ids.emplace_back(method->id);  // a few bytes here
  for (const bool judged : {false, true})
    for (const plan::MemoryKind memory : {plan::MemoryKind::discrete, plan::MemoryKind::unified}) {
      Asked frame = judged ? asked : Asked();
      frame.request.memory = memory;
      const Answered a(graph_of(two()), ids, frame);
      for (const std::size_t columns : {80u, 160u}) {
        const std::string text = plan_text(a.view, false, columns);
        std::size_t rows = 0;
        for (const std::string& line : lines_of(text)) {
          if (line.find("MiB") == std::string::npos || line.find("  ") == std::string::npos) continue;
          EXPECT_LE(display_width(line), std::max<std::size_t>(columns, 100)) << line;
          rows += std::any_of(ids.begin(), ids.end(),
                              [&](const std::string& id) { return line.starts_with(id + " "); });
        }
        EXPECT_GE(rows, ids.size()) << text;
        // what decides stays in a narrow terminal, all is there in a wide one
        const std::size_t top = text.find("\nmethod ") + 1;
        const std::string header = text.substr(top, text.find('\n', top) - top);
        EXPECT_NE(header.find("  device"), std::string::npos) << text;
        if (columns == 160) EXPECT_NE(header.find("page cache"), std::string::npos) << text;
      }
    }
}

// A column in which no row has anything says nothing.
TEST(PlanTable, LeavesOutEmptyColumns) {
  const Answered a(graph_of(two()), {"direct"}, {});
  const std::string text = plan_text(a.view, false, 80);
  EXPECT_EQ(text.find("staging"), std::string::npos) << text;
  EXPECT_EQ(text.find("  host"), std::string::npos) << text;
  EXPECT_NE(text.find("device"), std::string::npos);
}

TEST(PlanTable, NamesWhatIsAliveAtThePeak) {
  const Answered a(graph_of(two()), {"direct"}, {});
  Asked asked;
  load::LoadRequest request = {.methods = {"direct"}};
  Progress progress;
  const graph::MetaGraph graph = graph_of(two());
  const load::LoadAnswer answered = load::answer(graph, request, {}, {.alive = 1}, progress);
  ASSERT_EQ(answered.rows.size(), 1u);
  const load::AliveBlocks& alive = answered.rows[0].alive[plan::index(plan::Space::device)];
  EXPECT_EQ(alive.count, 2u);
  ASSERT_EQ(alive.largest.size(), 1u);
  EXPECT_EQ(alive.largest[0].label, "a.weight");
  EXPECT_EQ(alive.largest[0].bytes, 3 * kMiB);
}

TEST(PlanPlot, FitsTheTerminal) {
  const Answered a(graph_of(two()), {"to_device", "mmap_copy"}, curves());
  for (const std::size_t columns : {40u, 80u, 133u}) {
    std::size_t widest = 0;
    for (const std::string& line : lines_of(plan_plots(a.view, {columns, false, true})))
      if (line.find("─") != std::string::npos) widest = std::max(widest, display_width(line));
    EXPECT_EQ(widest, columns - 1);
  }
}

TEST(PlanPlot, IsAsciiWhereTheLocaleIs) {
  for (const plan::MemoryKind memory : {plan::MemoryKind::discrete, plan::MemoryKind::unified}) {
    const Answered a(graph_of(two()), {"to_device", "mmap_copy", "executorch_after"}, curves(memory));
    const std::string text = plan_plots(a.view, {80, false, false});
    for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << text;
    EXPECT_NE(text.find("# device"), std::string::npos);
    EXPECT_NE(text.find("oooo"), std::string::npos);
  }
}

TEST(PlanPlot, ColorsEndWithTheirLine) {
  const Answered a(graph_of(two()), {"to_device", "mmap_copy"}, curves(plan::MemoryKind::unified));
  const std::string text = plan_plots(a.view, {80, true, true});
  EXPECT_NE(text.find("\033[0;34m"), std::string::npos);
  for (const std::string& line : lines_of(text)) {
    const std::size_t last = line.rfind('\033');
    if (last != std::string::npos) EXPECT_EQ(line.compare(last, 4, "\033[0m"), 0) << line;
  }
}

// With memory of its own the device's scale is the host's: a ring of 64 MiB is one line beside a model.
TEST(PlanPlot, ShowsWhatIsLittle) {
  const Answered a(graph_of({{"w", 1 << 30}}), {"per_tensor", "llama_cpp_ring"}, curves());
  const std::string text = plan_plots(a.view, {60, false, true});
  const std::size_t ring = text.find("llama_cpp_ring");
  ASSERT_NE(ring, std::string::npos);
  EXPECT_NE(text.find("▁▁▁▁", ring), std::string::npos) << text.substr(ring);
}

TEST(Markup, EscapesWhatMarkupGivesAMeaning) {
  EXPECT_EQ(report::markup_text("<script>alert(\"x\" & 'y')</script>"),
            "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;");
  EXPECT_EQ(report::markup_text("a\xE2\x80\xAE\x1b[2J\xFF"), "a\\u{202e}\\x1b[2J\\xff");
}

// A name that would be markup, turn the text around, or end an attribute stays a name.
TEST(PlanPage, HostileNamesStayNames) {
  const std::string hostile = "</title></svg><script>alert(1)</script>\"'&\xE2\x80\xAE\n<b";
  graph::MetaGraph graph = graph_of({{hostile, 3 * kMiB}, {"b\"onload=\"x", kMiB}});
  graph.files[0].path = "x/<img src=x onerror=alert(1)>.safetensors";
  Asked frame = curves(plan::MemoryKind::discrete, 16);
  frame.request.device_budget = kMiB;
  const Answered a(std::move(graph), {"to_device", "mmap_assign", "per_tensor"}, frame);
  const std::string page = a.page({{"model", "<i>'\"&"}});
  const std::string chart = report::chart_svg(a.subject());
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
  const Answered a(graph_of(two()), {"to_device", "staged_ring"}, curves(plan::MemoryKind::discrete, 16));
  const std::string page = a.page({{"model", "m"}});
  for (const char* forbidden : {"<script", "http://", "https://", "url(", "@import", "<link", "src="})
    EXPECT_EQ(page.find(forbidden), std::string::npos) << forbidden;
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  for (const load::LoadRow& row : a.rows())
    EXPECT_NE(page.find(report::markup_text(report::method_explanation(row.method->id))), std::string::npos)
        << row.method->id;
  EXPECT_NE(page.find("<title>step "), std::string::npos);
  EXPECT_NE(page.find("3.00 MiB  a.weight"), std::string::npos);
}

// Each tag that opens ends, in order: a page and a chart are well formed.
TEST(PlanPage, IsWellFormed) {
  for (const plan::MemoryKind memory : {plan::MemoryKind::discrete, plan::MemoryKind::unified}) {
    Asked frame = curves(memory, 16);
    frame.request.device_budget = 6 * kMiB;
    frame.request.page_cache_budget = kMiB;
    const Answered a(graph_of(two()), {"to_device", "state_dict", "mmap_copy", "staged_ring"}, frame,
                     {"file", "name"});
    for (const std::string& text : {a.page({{"model", "m"}}), report::chart_svg(a.subject())}) {
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

TEST(PlanChart, SaysWhatIsHeldBeforeAByteIsRead) {
  const Answered a(graph_of({{"a", kMiB}, {"b", kMiB}, {"c", kMiB}, {"d", kMiB}}),
                   {"to_device", "executorch_after"}, curves());
  const std::vector<report::DrawnRow> rows = report::drawn_rows(a.subject());
  const auto said = [&](std::span<const report::DrawnRow> shown) {
    return fmt::format("{}", fmt::join(report::chart_notes(a.subject(), shown), " "));
  };
  EXPECT_NE(said(rows).find(" t = 0 to_device "), std::string::npos) << said(rows);
  EXPECT_EQ(said(std::span(rows).subspan(1)).find("t = 0"), std::string::npos);
  EXPECT_NE(report::chart_svg(a.subject()).find(" t = 0 "), std::string::npos);
  EXPECT_NE(a.page({{"model", "m"}}).find(" t = 0 "), std::string::npos);
}

TEST(PlanChart, ShowsEachMethodInItsBestOrder) {
  graph::MetaGraph graph = graph_of({{"a", kMiB}, {"b", 5 * kMiB}});
  const Answered a(std::move(graph), {"to_device", "executorch_before"}, curves(plan::MemoryKind::unified),
                   {"file", "largest", "smallest"});
  const std::vector<report::DrawnRow> rows = report::drawn_rows(a.subject());
  ASSERT_EQ(rows.size(), 2u);
  for (const report::DrawnRow& one : rows)
    for (const load::LoadRow& other : a.rows())
      if (other.method == one.row->method) EXPECT_LE(one.row->deciding_peak.bytes, other.deciding_peak.bytes);
  EXPECT_EQ(rows[1].row->order, "file");  // small tensors go first: as they lie, and before `smallest`
  EXPECT_EQ(testing::facts(report::chart_notes(a.subject(), rows).front()), "2 6");
  const Answered one(graph_of(two()), {"to_device"}, curves());
  for (const std::string& said : report::chart_notes(one.subject(), report::drawn_rows(one.subject())))
    EXPECT_EQ(said.find(" rows."), std::string::npos) << said;
}

TEST(PlanPictures, AreWrittenWholeAndOnlyWherePicturesGo) {
  const testing::TemporaryFolder folder;
  const Answered a(graph_of(two()), {"to_device"}, curves());
  EXPECT_NO_THROW(report::check_picture_path("", ".svg"));
  EXPECT_NO_THROW(report::check_picture_path("x.svg", ".svg"));
  EXPECT_THROW(report::check_picture_path("model.safetensors", ".svg"), Error);
  report::write_file(folder / "c.svg", report::chart_svg(a.subject()));
  EXPECT_EQ(testing::read_file(folder / "c.svg"), report::chart_svg(a.subject()));
  EXPECT_THROW(report::write_file(folder / "absent/p.html", a.page()), Error);
}

// Shares, budgets and orders in words.
TEST(PlanTable, SaysByHowMuchAndWhere) {
  Asked frame;
  frame.request.device_budget = 3 * kMiB;
  frame.request.host_budget = kMiB;
  frame.request.require_peak = 3 * kMiB;
  const Answered a(graph_of(two()), {"to_device"}, frame);
  EXPECT_EQ(testing::facts(report::verdict_text(a.rows()[0], a.view.bound())), "1.00 7.00 1.00 a.weight");
  EXPECT_FALSE(a.view.answer().any_within());
}

TEST(PlanTable, JudgesWhatAnAllocatorReservesAndSaysSo) {
  Asked frame = curves();
  frame.request.device_budget = 4 * kMiB;
  const Answered exact(graph_of(two()), {"direct"}, frame);
  EXPECT_EQ(report::verdict_text(exact.rows()[0], exact.view.bound()), "fits");
  EXPECT_EQ(plan_text(exact.view, false, 80).find("reserves"), std::string::npos);
  // segments of 20 and of 2 MiB
  const Answered torch(graph_of(two()), {"direct"}, frame, {"file"}, allocators::AllocatorModel::torch);
  EXPECT_EQ(testing::facts(report::verdict_text(torch.rows()[0], torch.view.bound())), "18.00 a.weight");
  EXPECT_NE(plan_text(torch.view, false, 80).find(" 'torch' reserves.\n"), std::string::npos);
  EXPECT_NE(torch.page().find(" reserves"), std::string::npos);
  // an arena is there from its first block to its last
  const Answered arena(graph_of(two()), {"direct"}, frame, {"file"}, allocators::AllocatorModel::arena);
  EXPECT_EQ(arena.rows()[0].judged_peak.bytes, (*arena.rows()[0].reserved)[plan::index(plan::Space::device)]);
}

}  // namespace

// --- What `loadline pack` prints and writes is checked by the validator, from the outside.

namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

struct Printed {
  int code = 0;
  nlohmann::json json = {};
};

Printed pack_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"loadline", "pack"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--json");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  ::testing::internal::CaptureStdout();
  const int code = run(static_cast<int>(pointers.size()), pointers.data(), nullptr);
  return {code, nlohmann::json::parse(::testing::internal::GetCapturedStdout())};
}

std::uint64_t highest_end(const packing::Problem& problem) {
  std::uint64_t highest = 0;
  for (const packing::Buffer& buffer : problem.buffers)
    if (packing::alive_together(buffer, buffer)) highest = std::max(highest, *buffer.offset + buffer.size);
  return highest;
}

// The offsets of the CSV keep every rule of the problem that was asked about, and the heights that are
// printed as JSON are those of the CSV.
void expect_sound(const packing::Problem& asked, const std::string& csv, const nlohmann::json& json) {
  const packing::Problem written = packing::read_packing_csv(read_file(csv), csv);
  ASSERT_EQ(written.buffers.size(), asked.buffers.size());
  std::vector<std::uint64_t> offsets;
  for (const packing::Buffer& buffer : written.buffers) offsets.push_back(buffer.offset.value());
  std::vector<std::optional<std::uint64_t>> heights;
  for (const nlohmann::json& arena : json.at("arenas")) heights.emplace_back(arena.at("height"));
  EXPECT_EQ(packing::find_fault(asked, offsets, heights), std::nullopt);
  EXPECT_EQ(json.at("height"), highest_end(written));
}

void expect_file_packed(const std::string& path, std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string out = folder / "packed.csv";
  arguments.insert(arguments.begin(), {path, "-o", out});
  const Printed printed = pack_command(arguments);
  ASSERT_EQ(printed.code, 0) << path;
  expect_sound(packing::read_packing_csv(read_file(path), path), out, printed.json);
}

TEST(PackOutput, PublishedProblemsKeepEveryRule) {
  const std::string folder = LOADLINE_PACKING_DATA;
  expect_file_packed(folder + "/minimalloc/input.12.csv", {"--capacity", "12"});
  for (const char* name : {"A", "E", "K"})
    expect_file_packed(folder + "/minimalloc/" + name + ".1048576.csv", {"--capacity", "1048576"});
  expect_file_packed(folder + "/idealloc/resnet50.csv", {"--minimize", "--threads", "2"});
}

TEST(PackOutput, EveryColumnIsKept) {
  const TemporaryFolder folder;
  write_file(folder / "all.csv",
             "id,lower,upper,size,alignment,offset,gaps,group,arena\n"
             "pinned,0,9,8,4,16,,,0\n"
             "gaps,0,9,16,1,,2-4 5-7,,0\n"
             "inside,2,4,16,8,,,,0\n"
             "first,1,8,5,2,,,shared,0\n"
             "second,3,6,12,4,,,shared,0\n"
             "other,0,9,100,64,,,,1\n"
             "another,0,9,1,64,,,,1\n");
  expect_file_packed(folder / "all.csv", {});
  expect_file_packed(folder / "all.csv", {"--minimize", "--seed", "7"});
}

// The buffers of a model come from the run itself: the CSV says when each is alive.
void expect_model_packed(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string model = folder / "config.json", out = folder / "packed.csv";
  write_file(model, R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
                        "num_attention_heads": 4, "intermediate_size": 128})");
  arguments.insert(arguments.begin(), {model, "-o", out});
  const Printed printed = pack_command(arguments);
  ASSERT_EQ(printed.code, 0);
  packing::Problem asked = packing::read_packing_csv(read_file(out), out);
  EXPECT_GT(asked.buffers.size(), 10u);
  for (packing::Buffer& buffer : asked.buffers) {
    buffer.offset.reset();
    EXPECT_EQ(buffer.alignment, printed.json.at("alignment"));
  }
  expect_sound(asked, out, printed.json);
}

TEST(PackOutput, RunsOfAModelKeepEveryRule) {
  expect_model_packed({});
  expect_model_packed({"--seq", "16", "--profile", "hf_eager", "--align", "64"});
  expect_model_packed({"--method", "per_tensor", "--seq", "8"});
}

}  // namespace

}  // namespace loadline::cli
