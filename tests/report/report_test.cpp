// Pages of the manual, bars, and rows of measured loads.

#include "app/report/does_it_run.h"
#include "app/report/manual.h"
#include "app/report/markdown.h"
#include "app/report/measured_loads.h"
#include "app/report/pictures.h"
#include "app/report/row_text.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/method.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::report {

// --- Pages of the manual as blocks.

namespace {

// "plain *strong* `code`".
std::string marked(const RichText& text) {
  std::string all;
  for (const TextRun& run : text) {
    const std::string_view mark = run.emphasis == Emphasis::code     ? "`"
                                  : run.emphasis == Emphasis::strong ? "*"
                                                                     : "";
    all.append(mark).append(run.text).append(mark);
  }
  return all;
}

TEST(Markdown, has_runs_of_one_emphasis) {
  EXPECT_EQ(marked(rich_text("a **strong** word, *Options* and `--a *b*`.")),
            "a *strong* word, *Options* and `--a *b*`.");
  EXPECT_EQ(marked(rich_text("2 * x * y, [see `here`](there.md), [1, 2]")), "2 * x * y, see `here`, [1, 2]");
  EXPECT_EQ(marked(rich_text("one ` alone")), "one ` alone");
}

TEST(Markdown, has_blocks) {
  const auto blocks = markdown_blocks(
      "# Title\n\nOne\nparagraph.\n\n- first\n  goes on\n- second\n\n1. third\n\n```sh\n# code\n\n| "
      "code\n```\n"
      "![picture](a.png)\n\nBefore\n\n| a | b |\n|---|---|\n| `x\\|y\\|z` | z |\n\n| c |\n|---|\n");
  const std::vector<BlockKind> kinds = {BlockKind::heading,   BlockKind::paragraph, BlockKind::item,
                                        BlockKind::item,      BlockKind::item,      BlockKind::code,
                                        BlockKind::paragraph, BlockKind::table,     BlockKind::table};
  ASSERT_EQ(blocks.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(blocks[i].kind, kinds[i]) << i;
  EXPECT_EQ(marked(blocks[1].text), "One paragraph.");
  EXPECT_EQ(marked(blocks[2].text), "first goes on");
  EXPECT_EQ(blocks[4].mark, "1.");
  EXPECT_EQ(blocks[5].code, "# code\n\n| code\n");
  ASSERT_EQ(blocks[7].rows.size(), 2u);
  EXPECT_EQ(marked(blocks[7].rows[0].at(1)), "*b*") << "titles are strong";
  EXPECT_EQ(marked(blocks[7].rows[1].at(0)), "`x|y|z`");
  EXPECT_EQ(marked(blocks[7].rows[1].at(1)), "z");
}

TEST(Markdown, flattens_what_blocks_do_not_have) {
  const auto blocks = markdown_blocks(
      "- one\n\n- two\n  - inner\n\n  more of two\n\n> quoted\n\n---\n\n3. three\n4. four\n\n"
      "code\n5. is text, &amp; <b>too</b>\n\n![alone](a.png)\n");
  std::string all;
  for (const Block& block : blocks) all += block.mark + "|" + marked(block.text) + "\n";
  EXPECT_EQ(all,
            "-|one\n-|two\n-|inner\n|more of two\n|quoted\n3.|three\n4.|four\n"
            "|code 5. is text, &amp; <b>too</b>\n");
  EXPECT_EQ(marked(rich_text("- **not** an item")), "- *not* an item");
  EXPECT_EQ(marked(rich_text("| a |")), "| a |");
  EXPECT_TRUE(rich_text("").empty());
}

TEST(Markdown, leaves_no_markup_in_the_manual) {
  for (const ManualPage& page : manual_pages())
    for (const Block& block : markdown_blocks(page.text)) {
      for (const auto& row : block.rows) EXPECT_EQ(row.size(), block.rows.front().size()) << page.id;
      for (const TextRun& run : block.text)
        if (run.emphasis != Emphasis::code) {
          EXPECT_EQ(run.text.find("**"), std::string::npos) << page.id << ": " << run.text;
          EXPECT_EQ(run.text.find('`'), std::string::npos) << page.id << ": " << run.text;
        }
    }
}

}  // namespace

// --- What was read of models comes back, and a damaged file is no reason to fail.

namespace {

RunQuestion question_of(std::uint64_t bytes) { return {.target = load::machine_target({.system = bytes})}; }

ModelFacts facts_with(const RunQuestion& question) {
  const graph::MetaGraph graph =
      forward::config_graph(forward::find_preset("demo")->config_json, "config.json");
  const load::LoadEnvironment environment{.targets = {&question.target, 1}};
  Progress progress;
  ModelFacts facts = model_facts(graph, question, environment, progress);
  facts.row->no_better = "none";
  facts.row->better = QuantizedModel{"q8_0", 7, facts.row->verdict};
  facts.map = {{{0, 0, 30, 20}, graph::Role::mlp}, {{30, 0, 10, 20}, graph::Role::other}};
  return facts;
}

TEST(KeptFacts, ComeBackForTheSameFilesAndTheSameQuestion) {
  const RunQuestion question = question_of(8ull << 30);
  const KeptFacts::Key key = {"/models/a b", 1234, -5};
  const auto facts = std::make_shared<const ModelFacts>(facts_with(question));
  ASSERT_TRUE(facts->row->verdict.context);
  const testing::TemporaryFolder folder;
  KeptFacts kept(folder / "new/models.json", "this");
  kept.keep(key, question.text(), facts);
  kept.keep({"/models/broken", 1, 1}, question.text(),
            std::make_shared<const ModelFacts>(ModelFacts{.fault = "cut"}));
  KeptFacts read("", "this");
  read.add_text(kept.text());
  EXPECT_EQ(read.size(), 1u) << "faults are read again";
  const auto found = read.find(key, question.text());
  ASSERT_TRUE(found && found->row);
  EXPECT_TRUE(found->is_judged());
  const RunVerdict &before = facts->row->verdict, &after = found->row->verdict;
  EXPECT_EQ(after.words, before.words);
  EXPECT_EQ(after.state, before.state);
  EXPECT_EQ(std::tie(after.left, after.over, after.context, after.positions),
            std::tie(before.left, before.over, before.context, before.positions));
  EXPECT_EQ(found->row->parameters, facts->row->parameters);
  EXPECT_EQ(found->row->better->bytes, 7u);
  EXPECT_EQ(found->row->no_better, "none");
  ASSERT_EQ(found->map.size(), facts->map.size());
  for (std::size_t i = 0; i < found->map.size(); ++i) {
    EXPECT_NEAR(found->map[i].rect.w, facts->map[i].rect.w, 0.07);
    EXPECT_EQ(found->map[i].role, facts->map[i].role);
  }
  // other files, another program, another question
  EXPECT_FALSE(read.find({key.path, 1235, key.changed}, question.text()));
  EXPECT_FALSE(read.find({key.path, key.bytes, -4}, question.text()));
  const auto other = read.find(key, question_of(4ull << 30).text());
  ASSERT_TRUE(other && other->row) << "what it is stays";
  EXPECT_FALSE(other->is_judged());
  EXPECT_FALSE(other->row->better);
  KeptFacts another("", "another");
  another.add_text(kept.text());
  EXPECT_EQ(another.size(), 0u);
}

TEST(KeptFacts, ForgiveWhatIsDamaged) {
  const RunQuestion question = question_of(8ull << 30);
  const KeptFacts::Key key = {"/models/a", 1, 2};
  KeptFacts kept("", "this");
  kept.keep(key, question.text(), std::make_shared<const ModelFacts>(facts_with(question)));
  const std::string text = kept.text();
  for (std::size_t size = 0; size < text.size() - 2; size += 11) {
    KeptFacts read("", "this");
    read.add_text(std::string_view(text).substr(0, size));
    EXPECT_EQ(read.size(), 0u);
  }
  const auto damaged = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), to);
    KeptFacts read("", "this");
    read.add_text(other);
    return read.size();
  };
  EXPECT_EQ(damaged("this", "this"), 1u);
  for (const auto& [from, to] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"\"weights\":", "\"weights\":-"},
           {"\"tensors\":", "\"tensors\":\"1\",\"x\":"},
           {"\"map\":[", "\"map\":[1,"},
           {"\"map\":[", "\"map\":[1,1,1,1,7,"},
           {"\"map\":[", "\"map\":[449,1,1,1,1,"},
           {"\"map\":[", "\"map\":[[],1,1,1,1,"},
           {"\"state\":", "\"state\":9"},
           {"\"words\":\"", "\"words\":\"\\u001b[31m"},
           {"\"words\":\"", "\"words\":7,\"x\":\""},
           {"\"answers\":[", "\"answers\":[{},"},
           {"\"answers\":[", "\"answers\":[{},{},{},{},{},{},{},{},"},
           {"\"changed\":", "\"changed\":0.5,\"x\":"},
           {"\"path\":", "\"path\":[],\"x\":"},
           {"\"tried\":", "\"tried\":\"yes\",\"x\":"}})
    EXPECT_EQ(damaged(from, to), 0u) << to;
}

TEST(RunQuestions, SteadyTheMemoryOfThisMachineAlone) {
  const load::Target now = load::machine_target({.system = (8ull << 30) + 12'345'678});
  const load::Target steady = steadied(now);
  EXPECT_LE(*steady.host_bytes, *now.host_bytes);
  EXPECT_GE(*steady.host_bytes, *now.host_bytes - *now.host_bytes / 64);
  EXPECT_EQ(steadied(steady).host_bytes, steady.host_bytes);
  load::Target sheet = now;
  sheet.id = "sheet";
  EXPECT_EQ(steadied(sheet).host_bytes, now.host_bytes);
  RunQuestion question{.target = now, .prompt = 512, .context = 300};
  EXPECT_EQ(question.request().sequence, 300u);
  EXPECT_EQ(question.request().past, 0u);
  question.context = 4096;
  EXPECT_EQ(question.request().sequence, 512u);
  EXPECT_EQ(question.request().past, 3584u);
  EXPECT_EQ(tokens_of("32k"), 32768u);
  EXPECT_EQ(tokens_of("8,192"), 8192u);
  for (const char* const wrong :
       {"", "k", "-1", "1.5k", "lots", "99999999999999999999", "18446744073709551615k"})
    EXPECT_FALSE(tokens_of(wrong)) << wrong;
}

}  // namespace

// --- Peaks as bars, with the part of a law that is about their space.

namespace {

TEST(Bars, name_the_part_of_a_law) {
  std::vector<load::LoadRow> rows(1);
  rows[0].method = &load::find_method("accelerate");
  const auto note = [&](std::string_view space) { return method_bars(rows, 1, space).bars.at(0).note; };
  EXPECT_EQ(note("device"), "device_weights + pass");
  EXPECT_EQ(note("host"), "0");
  EXPECT_EQ(note("page_cache"), "largest_shard");
  EXPECT_EQ(note("staging"), "");
  EXPECT_EQ(note("unified"), "");
  rows[0].method = &load::find_method("executorch_before");
  EXPECT_EQ(note("held"), "2 * weights + pass + largest_weight + tied_copies");
  EXPECT_EQ(note("device"), "");
}

TEST(Bars, have_one_scale_and_lines_at_the_weights) {
  const Bars bars{"Most", {{"a", "weights", 100}, {"long_name", "2 * weights", 200}}, 100};
  EXPECT_EQ(bars_text(bars, 60, false),
            "Most\n"
            "                       weights    twice\n"
            "a          ############ 100 B  weights\n"
            "long_name  ####################### 200 B  2 * weights\n");
  EXPECT_EQ(bars_text(bars, 50, false).find("twice"), std::string::npos);  // there is no room for it
  const std::string svg = bars_svg(bars);
  EXPECT_NE(svg.find(">twice</text>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(bars_text({"Most", {}, 0}, 10, true), "Most\n");
}

TEST(Bars, escape_what_names_hold) {
  EXPECT_EQ(bars_svg({"<&>", {{"<b>", "\"", 1}}, 0}).find("<b>"), std::string::npos);
}

}  // namespace

// --- Markdown as HTML and as text for a terminal.

namespace {

constexpr std::string_view kPage =
    "# Title\n\nA **strong** word\nand `a < b`.\n\n- one\n- two\n\n```\nx & y\n```\n\n| a | b "
    "|\n|---|---|\n| 1 | 2 |\n";

TEST(MarkdownHtml, has_an_element_for_each_block) {
  EXPECT_EQ(markdown_html(kPage),
            "<h2>Title</h2>\n<p>A <strong>strong</strong> word and <code>a &lt; b</code>.</p>\n"
            "<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<pre>x &amp; y\n</pre>\n"
            "<div class=\"scroll\"><table>\n<tr><th class=\"left\"><strong>a</strong></th><th "
            "class=\"left\"><strong>b</strong></th></tr>\n"
            "<tr><td class=\"left\">1</td><td class=\"left\">2</td></tr>\n</table></div>\n");
  EXPECT_EQ(rich_html("<script>"), "&lt;script&gt;");
  EXPECT_EQ(markdown_html(""), "");
}

TEST(MarkdownText, fills_lines) {
  EXPECT_EQ(markdown_text(kPage, 20),
            "Title\n\nA strong word and a\n< b.\n\n  - one\n  - two\n\n    x & y\n\na  b\n1  2\n\n");
  EXPECT_EQ(markdown_text("| a | b |\n|---|---|\n| 1 | one two three four five six |\n", 29),
            "a  b\n1  one two three four five\n   six\n\n");
  EXPECT_EQ(markdown_text("# T\n", 20, true), "\033[1mT\033[0m\n\n");
}

}  // namespace

// --- Measured loads made from measurements that never ran.

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

MeasuredLoad row_of(std::initializer_list<std::uint64_t> anon, std::uint64_t projected) {
  load::HostMeasurement measurement;
  measurement.projected.rss_anon = projected;
  plan::Plan plan;
  for (const std::uint64_t bytes : anon) {
    measurement.timeline.measured.push_back({0, {.rss_anon = bytes, .rss_file = 0, .rss_shmem = 0}, 0});
    measurement.steps.push_back(plan.steps.size());
    measurement.measured.rss_anon = std::max(measurement.measured.rss_anon, bytes);
    plan.steps.push_back({});
  }
  return rehearsed_load(load::find_method("per_tensor"), "file", plan, measurement);
}

TEST(MeasuredLoad, CountsTheSamplesAboveTheProjection) {
  const MeasuredLoad differs = row_of({0, 10 * kMiB, 40 * kMiB, 60 * kMiB, 5 * kMiB}, 10 * kMiB);
  EXPECT_EQ(differs.agrees(), false);
  EXPECT_EQ(differs.counters[0].beyond.samples, 2u);
  EXPECT_EQ(differs.counters[0].beyond.first_step, 2u);
  EXPECT_EQ(differs.counters[1].beyond.samples + differs.counters[2].beyond.samples, 0u);
}

TEST(MeasuredLoad, HasCurvesThatReachBothPeaks) {
  plan::UsagePoint held;
  held.step = 1;
  held.bytes[plan::index(plan::Space::host)] = 30 * kMiB;
  const std::vector<plan::UsagePoint> usage = {{}, held, {.step = 2}};
  const std::vector<StepCount> counted = {{0, 1 * kMiB}, {1, 5 * kMiB}, {4, 7 * kMiB}};
  const CounterCurve curve =
      measured_counter(30 * kMiB, usage, plan::space_bit(plan::Space::host), counted, 4).curve;
  ASSERT_EQ(curve.projected.size(), kMeasuredColumns);
  EXPECT_EQ(curve.projected.front(), 0u);
  EXPECT_EQ(curve.projected[kMeasuredColumns / 4], 30 * kMiB);
  EXPECT_EQ(curve.projected.back(), 0u);
  EXPECT_EQ(curve.measured.back(), 7 * kMiB) << "the last count comes when all steps are done";
  EXPECT_EQ(curve.most(), 30 * kMiB);
}

TEST(MeasuredLoad, CountsNoneWhereTheLoadAgreesOrNeededLess) {
  const MeasuredLoad near = row_of({0, 110 * kMiB}, 100 * kMiB);
  EXPECT_EQ(near.agrees(), true);
  EXPECT_EQ(near.counters[0].beyond.samples, 0u);
  const MeasuredLoad less = row_of({0, 10 * kMiB}, 100 * kMiB);
  EXPECT_EQ(less.agrees(), false);
  EXPECT_EQ(less.counters[0].beyond.samples, 0u);
}

}  // namespace

}  // namespace loadline::report
