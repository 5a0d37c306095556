// Lessons: how they are read, what they compute, and that every built-in one says what is so.
#include "app/lesson/lesson.h"

#include "app/lesson/exercises.h"
#include "app/lesson/runs.h"
#include "tests/support/builders.h"

#include <fstream>

#include <gtest/gtest.h>

namespace loadline::lesson {
namespace {

load::LoadEnvironment environment() {
  load::LoadEnvironment built_in;
  built_in.assets = forward::built_in_assets();
  return built_in;
}

constexpr std::string_view kJson = R"json({
  "schema_version": 1, "title": "T", "question": "Q?", "goals": ["g"],
  "scenes": {"one": {"model": "llama-3-8b", "options": {"method": ["to_device", "per_tensor"]}}},
  "figures": {"double": {"value": "2 * weights"}},
  "steps": [{"id": "a", "title": "A",
             "ask": {"prompt": "p", "number": "peak('to_device', 'host')", "unit": "GiB", "within_percent": 5}}]})json";
constexpr std::string_view kText =
    "## a\n\nIt has {weights|GiB}, twice {double|GiB}.\n\n### Answer\n\nIt is {peak('to_device', "
    "'host')|GiB}.\n";

Lesson small() { return parse_lesson(kJson, kText, "small.json"); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Lesson, is_read_with_its_texts) {
  const Lesson lesson = small();
  EXPECT_EQ(lesson.id, "small");
  ASSERT_EQ(lesson.steps.size(), 1u);
  EXPECT_EQ(lesson.steps[0].answer, "It is {peak('to_device', 'host')|GiB}.\n");
  EXPECT_EQ(lesson.scenes[0].request.methods, (std::vector<std::string>{"to_device", "per_tensor"}));
}

TEST(Lesson, that_is_wrong_is_refused_with_its_place) {
  struct Row {
    std::string_view from, to, facts;
  };
  for (const Row& row : {
           Row{"\"schema_version\": 1", "\"schema_version\": 9",
               "malformed small.json 2 21 'schema_version' 9 1"},
           {"llama-3-8b", "llama-9", "malformed small.json 3 32 'llama-9'"},
           {"\"method\"", "\"methot\"", "malformed small.json 3 67 'methot'"},
           {"\"title\": \"A\"", "\"titel\": \"A\"", "malformed small.json 5 35 'titel'"},
           {"\"unit\": \"GiB\"", "\"unit\": \"GeB\"", "malformed small.json 6 85 'GeB'"},
           {"\"number\": \"peak('to_device', 'host')\"", "\"number\": \"peak(\"",
            "malformed small.json 6 53"},
           {"\"within_percent\": 5", "\"within_percent\": \"x\"",
            "malformed small.json 6 110 'within_percent' 0"},
           {"\"id\": \"a\"", "\"id\": \"b\"", "malformed small.json 5 21 small.md '## b'"},
       })
    EXPECT_EQ(testing::facts_of([&] {
                (void)parse_lesson(replaced(std::string(kJson), row.from, row.to), kText, "small.json");
              }),
              row.facts)
        << row.to;
  EXPECT_THROW((void)parse_lesson(kJson, "## a\n\ntext\n", "small.json"), Error);               // no answer
  EXPECT_THROW((void)parse_lesson(kJson, std::string(kText) + "## z\n", "small.json"), Error);  // of no step
  EXPECT_THROW((void)parse_lesson(kJson, std::string(kText) + "## a\n", "small.json"), Error);  // twice
  EXPECT_THROW((void)parse_lesson(kJson, "## a\n\xFF\n### Answer\nx\n", "small.json"), Error);  // not UTF-8
}

// Every beginning of the file is refused or read, and nothing else happens.
TEST(Lesson, lists_tensors_of_its_own) {
  const auto listed = [](std::string_view tensors) {
    return parse_lesson(replaced(std::string(kJson), "\"model\": \"llama-3-8b\"",
                                 fmt::format("\"model\": \"mine\", \"tensors\": {}", tensors)),
                        kText, "small.json");
  };
  const Lesson lesson = listed(R"({"first": {"bytes": "2KiB"}, "layer": {"count": 3, "bytes": "500"}})");
  const graph::MetaGraphPtr graph = model_shapes(lesson.scenes[0].model, *forward::built_in_assets());
  ASSERT_EQ(graph->tensors.size(), 4u);
  EXPECT_EQ(graph->tensors[0].name, "first");
  EXPECT_EQ(graph->tensors[3].name, "layer.2");
  EXPECT_EQ(graph::storage_bytes(*graph), 2048u + 3 * 500);
  EXPECT_TRUE(graph::shapes_only(*graph));
  for (const std::string_view wrong :
       {"{}", R"({"a": {"count": 0, "bytes": "1"}})", R"({"a": {"count": 100001, "bytes": "1"}})",
        R"({"a": {"bytes": "many"}})", R"({"a": {}})", R"({"": {"bytes": "1"}})", R"([])"})
    EXPECT_THROW((void)listed(wrong), Error) << wrong;
  // each count is possible, their sum is not
  const Lesson large =
      listed(R"({"a": {"count": 60000, "bytes": "1"}, "b": {"count": 60000, "bytes": "1"}})");
  EXPECT_THROW((void)model_shapes(large.scenes[0].model, *forward::built_in_assets()), Error);
  const Lesson huge = listed(R"({"a": {"count": 60000, "bytes": "1000000TiB"}})");
  EXPECT_THROW((void)model_shapes(huge.scenes[0].model, *forward::built_in_assets()), Error);
  EXPECT_THROW((void)model_config(lesson.scenes[0].model), Error);
  EXPECT_THROW((void)parse_lesson(replaced(std::string(kJson), "\"options\"",
                                           "\"tensors\": {\"a\": {\"bytes\": \"1\"}}, \"options\""),
                                  kText, "small.json"),
               Error);  // the name of a preset
}

TEST(Lesson, survives_every_prefix) {
  for (std::size_t size = 0; size < kJson.size(); ++size)
    EXPECT_THROW((void)parse_lesson(kJson.substr(0, size), kText, "small.json"), Error) << size;
  for (std::size_t size = 0; size < kText.size(); ++size) try {
      (void)parse_lesson(kJson, kText.substr(0, size), "small.json");
    } catch (const Error&) {
    }
}

TEST(Lesson, computes_what_its_texts_say) {
  const Lesson lesson = small();
  Progress progress;
  Figures figures(lesson, environment(), progress);
  EXPECT_EQ(fill(lesson.steps[0].text, 0, figures), "It has 14.96 GiB, twice 29.92 GiB.\n");
  EXPECT_EQ(fill("{least('host')|text} {fits('to_device')|count} {number('layer:0')|count}", 0, figures),
            "per_tensor 1 9");
  EXPECT_EQ(fill("{ratio(peak('to_device', 'host'), weights)|times}", 0, figures), "2.00 times");
  EXPECT_EQ(fill("{config('num_hidden_layers')|count}", 0, figures), "32");
  for (const std::string_view wrong :
       {"{nothing}", "{peak('no_method')}", "{weights|GeB}", "{weights", "{peak('to_device', 'here')}",
        "{ratio(weights, 0)}", "{run('x')}", "{allocated('to_device')}", "{peak()}"})
    EXPECT_THROW((void)fill(wrong, 0, figures), Error) << wrong;
}

TEST(Lesson, judges_answers) {
  const Lesson lesson = small();
  Progress progress;
  Figures figures(lesson, environment(), progress);
  const Ask& ask = *lesson.steps[0].ask;  // 29.92 GiB, within 5 %
  for (const std::string_view right : {"30", "29.9 GiB", "29,92", " 28.5", "30,638 MiB"})
    EXPECT_TRUE(judge(ask, right, 0, figures).right) << right;
  EXPECT_FALSE(judge(ask, "43,098", 0, figures).right);  // as figures are written
  EXPECT_THROW((void)judge(ask, "43,0,9", 0, figures), Error);
  const Judged half = judge(ask, "15", 0, figures);
  EXPECT_FALSE(half.right);
  EXPECT_EQ(half.words, "Not quite: it is 29.92 GiB, not 15; yours is half of that.");
  for (const std::string_view wrong : {"", "x", "30 apples", "inf"})
    EXPECT_THROW((void)judge(ask, wrong, 0, figures), Error) << wrong;
  Ask choice = ask;
  choice.kind = AskChoice{{"to_device", "per_tensor"}, assets::Expression::parse("least('host')", {})};
  EXPECT_TRUE(judge(choice, "2", 0, figures).right);
  EXPECT_TRUE(judge(choice, "PER_TENSOR", 0, figures).right);
  EXPECT_FALSE(judge(choice, "1", 0, figures).right);
  EXPECT_THROW((void)judge(choice, "3", 0, figures), Error);
}

TEST(Lessons, of_a_users_folder_replace_built_in_ones) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "six-ways.json") << kJson;
  std::ofstream(folder / "six-ways.md") << kText;
  std::ofstream(folder / "broken.json") << "{";
  const Lessons lessons = load_lessons(folder.path().string());
  EXPECT_EQ(lessons.all.size(), load_lessons("").all.size());
  EXPECT_EQ(lessons.find("six-ways").title, "T");
  EXPECT_EQ(lessons.faults.size(), 1u);
  EXPECT_THROW((void)lessons.find("six-wais"), Error);
}

class BuiltInLesson : public ::testing::TestWithParam<std::string_view> {};

// Figures, answers, published figures within their tolerance, sliders, runs, and the texts behind them.
TEST_P(BuiltInLesson, says_nothing_that_is_not_so) {
  const Lessons lessons = load_lessons("");
  const Lesson& lesson = lessons.find(GetParam());
  EXPECT_GE(lesson.steps.size(), 3u);
  EXPECT_TRUE(lesson.question.ends_with('?'));
  EXPECT_TRUE(lesson.steps.back().run) << "it must end with something that runs";
  Progress progress;
  for (const std::string& fault : lesson_faults(lesson, environment(), true, progress))
    ADD_FAILURE() << fault;
}

TEST_P(BuiltInLesson, is_a_page_that_needs_nothing_else) {
  const Lessons lessons = load_lessons("");
  const Lesson& lesson = lessons.find(GetParam());
  Progress progress;
  Figures figures(lesson, environment(), progress);
  const std::string whole = handout_html(lesson, Sheet::lesson, "1", figures);
  for (const std::string_view outside : {"http://", "https://", " src=", "@import", "url("})
    EXPECT_EQ(whole.find(outside), std::string::npos) << outside;
  EXPECT_LT(whole.size(), 2u << 20);
  EXPECT_EQ(whole, handout_html(lesson, Sheet::lesson, "1", figures));
  const std::string questions = handout_html(lesson, Sheet::worksheet, "1", figures);
  const std::string key = handout_html(lesson, Sheet::key, "1", figures);
  for (const Step& step : lesson.steps) {
    if (!step.ask) continue;
    const auto* const number = std::get_if<AskNumber>(&step.ask->kind);
    const std::string right = right_answer(*step.ask, step.scene, figures);
    EXPECT_NE(key.find(right), std::string::npos) << right;
    if (number != nullptr) EXPECT_EQ(questions.find("<strong>" + right), std::string::npos) << right;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BuiltInLesson,
                         ::testing::Values("six-ways", "meta-device", "mmap", "anonymous", "lazy-allocation",
                                           "order", "staging-ring", "lifetimes", "offline-packing",
                                           "quantization", "sparsity", "kv-cache", "experts"),
                         [](const auto& row) {
                           std::string name(row.param);
                           for (char& letter : name)
                             if (letter == '-') letter = '_';
                           return name;
                         });

TEST(Lessons, are_thirteen) { EXPECT_EQ(load_lessons("").all.size(), 13u); }

}  // namespace
}  // namespace loadline::lesson
