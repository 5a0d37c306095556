// Parses a lesson's JSON and Markdown; finds built-in and user's lessons; the shapes of a scene's model.
#include "app/lesson/lesson.h"

#include "app/report/row_text.h"
#include "core/assets/asset_file.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/load_options.h"
#include "embedded/lessons_files.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/core.h>

namespace loadline::lesson {

// --- Parses a lesson's JSON and Markdown.

namespace {

using Kind = assets::AssetNode::Kind;

constexpr std::size_t kMostSteps = 40, kMostScenes = 20, kMostFigures = 100, kMostList = 40;
constexpr std::size_t kLongestText = 2000, kLongestMarkdown = 1 << 20;

constexpr std::array kPictures = {std::pair{std::string_view("none"), Picture::none},
                                  std::pair{std::string_view("methods"), Picture::methods},
                                  std::pair{std::string_view("bars"), Picture::bars},
                                  std::pair{std::string_view("map"), Picture::map}};

std::string text_of(const assets::AssetNode& node, std::string_view key) {
  const std::string& text = node.at(key).name(fmt::format("'{}'", key), kLongestText);
  if (text.empty()) node.at(key).place.fail("'{}' is empty", key);
  return text;
}

double number_of(const assets::AssetNode& node, std::string_view key, double otherwise) {
  const assets::AssetNode* const found = node.find(key);
  if (found == nullptr) return otherwise;
  const std::string& text = found->name(fmt::format("'{}'", key), 40);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value < 1e18))
    found->place.fail("'{}' is not a number that is at least 0", key);
  return value;
}

Unit unit_of(const assets::AssetNode& node, Unit otherwise) {
  const assets::AssetNode* const found = node.find("unit");
  if (found == nullptr) return otherwise;
  try {
    return find_row(units(), found->name("'unit'", 40), "unit").unit;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    found->place.fail(error.what());
  }
}

// The text of a section, its lines joined again without blank lines at either end.
struct Section {
  std::string text, answer, after_run;
};

void trim(std::string& text) {
  const std::size_t first = text.find_first_not_of('\n');
  text = first == std::string::npos ? "" : text.substr(first, text.find_last_not_of('\n') - first + 1) + "\n";
}

std::map<std::string, Section, std::less<>> sections_of(std::string_view markdown, const std::string& path) {
  if (markdown.size() > kLongestMarkdown)
    throw Error(ErrorCode::limit, {.file = path}, "{} bytes are more than the {} of a lesson's text",
                markdown.size(), kLongestMarkdown);
  if (!is_valid_utf8(markdown)) throw Error(ErrorCode::malformed, {.file = path}, "is not UTF-8");
  std::map<std::string, Section, std::less<>> sections;
  Section* section = nullptr;
  std::string* part = nullptr;
  for (const std::string_view line : lines_of(markdown)) {
    if (line.starts_with("## ")) {
      const auto [row, added] = sections.try_emplace(std::string(line.substr(3)));
      if (!added)
        throw Error(ErrorCode::malformed, {.file = path}, "two sections have the name '{}'",
                    safe_display(row->first, 60));
      section = &row->second;
      part = &section->text;
    } else if (section != nullptr && line == "### Answer") {
      part = &section->answer;
    } else if (section != nullptr && line == "### Run") {
      part = &section->after_run;
    } else if (part != nullptr) {
      part->append(line).append("\n");
    }
  }
  for (auto& [id, one] : sections)
    for (std::string* const text : {&one.text, &one.answer, &one.after_run}) trim(*text);
  return sections;
}

ListedTensors parse_listed(const std::string& name, const assets::AssetNode& node) {
  node.as(Kind::object, "tensors of a scene").allow({"count", "bytes"});
  if (name.empty()) node.place.fail("tensors have no name");
  const double count = number_of(node, "count", 1);
  if (count < 1 || count > static_cast<double>(kMostListedTensors))
    node.place.fail("'count' is not from 1 to {}", kMostListedTensors);
  ListedTensors some{name, static_cast<std::uint64_t>(count)};
  try {
    some.bytes = parse_size(text_of(node, "bytes"), "'bytes'");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    node.at("bytes").place.fail("{}", error.what());
  }
  return some;
}

// A preset, or the tensors that the scene lists.
SceneModel parse_model(const assets::AssetNode& node) {
  SceneModel model{text_of(node, "model")};
  assets::for_each_field(node, "tensors", kMostList,
                         [&](const std::string& name, const assets::AssetNode& some) {
                           model.listed.push_back(parse_listed(name, some));
                         });
  const assets::AssetPlace& place = node.at("model").place;
  if (!model.listed.empty()) {
    if (forward::find_preset(model.name) != nullptr)
      place.fail("'{}' is a model of `loadline synth`; tensors of your own need another name",
                 safe_display(model.name, 60));
    return model;
  }
  try {
    (void)find_row(forward::presets(), model.name, "model");
  } catch (const Error& error) {
    place.fail("{}", error.what());
  }
  return model;
}

Scene parse_scene(const std::string& id, const assets::AssetNode& node) {
  node.as(Kind::object, "a scene").allow({"model", "tensors", "options"});
  Scene scene{id, parse_model(node)};
  if (const assets::AssetNode* const options = node.find("options"))
    load::read_request_options(scene.request, *options);
  return scene;
}

std::size_t scene_of(const assets::AssetNode& node, const std::vector<Scene>& scenes) {
  const assets::AssetNode* const found = node.find("scene");
  if (found == nullptr) return 0;
  try {
    return static_cast<std::size_t>(
        &find_row(std::span<const Scene>(scenes), found->name("'scene'", assets::kMostAssetName), "scene") -
        scenes.data());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    found->place.fail(error.what());
  }
}

Ask parse_ask(const assets::AssetNode& node) {
  node.as(Kind::object, "'ask'").allow({"prompt", "number", "unit", "within_percent", "choose", "answer"});
  Ask ask;
  ask.prompt = text_of(node, "prompt");
  const assets::AssetNode* const choices = node.find("choose");
  if ((choices == nullptr) == (node.find("number") == nullptr))
    node.place.fail("'ask' needs either 'number' or 'choose'");
  if (choices == nullptr) {
    ask.kind = AskNumber{node.at("number").expression("'number'"), unit_of(node, Unit::gib),
                         number_of(node, "within_percent", 5)};
    return ask;
  }
  AskChoice choice{choices->texts("'choose'", kMostList, kLongestText),
                   node.at("answer").expression("'answer'")};
  if (choice.choices.size() < 2) choices->place.fail("'choose' needs two texts at least");
  ask.kind = std::move(choice);
  return ask;
}

Published parse_published(const assets::AssetNode& node) {
  node.as(Kind::object, "a published figure").allow({"figure", "value", "unit", "within_percent", "source"});
  (void)node.at("value");
  return {node.at("figure").expression("'figure'"), number_of(node, "value", 0), unit_of(node, Unit::gib),
          number_of(node, "within_percent", 0), text_of(node, "source")};
}

Run parse_run(const assets::AssetNode& node) {
  Run run;
  run.place = node.place;
  run.kind = text_of(node, "kind");
  for (const auto& [key, value] : node.pairs("'run'", kMostList, kLongestText))
    if (key != "kind") run.settings.emplace_back(key, value);
  return run;
}

Step parse_step(const assets::AssetNode& node, const std::vector<Scene>& scenes) {
  node.as(Kind::object, "a step")
      .allow({"id", "title", "scene", "picture", "space", "show", "ask", "published", "slider", "run"});
  Step step;
  step.place = node.place;
  step.id = text_of(node, "id");
  step.title = text_of(node, "title");
  step.scene = scene_of(node, scenes);
  if (const assets::AssetNode* const picture = node.find("picture")) {
    const auto row = std::ranges::find(kPictures, picture->name("'picture'", 40),
                                       [](const auto& one) { return one.first; });
    if (row == kPictures.end()) picture->place.fail("no such picture; there are: none, methods, bars, map");
    step.picture = row->second;
  }
  if (const assets::AssetNode* const space = node.find("space")) {
    step.space = space->name("'space'", 40);
    if (find_option(report::row_spaces(), step.space) == nullptr)
      space->place.fail("no such space; there are: {}", id_list(report::row_spaces()));
  }
  if (const assets::AssetNode* const show = node.find("show"))
    step.show = show->texts("'show'", kMostList, kLongestText);
  if (const assets::AssetNode* const ask = node.find("ask")) step.ask = parse_ask(*ask);
  if (const assets::AssetNode* const published = node.find("published")) {
    published->as(Kind::list, "'published'").at_most(kMostList, "'published'");
    for (const assets::AssetNode& one : published->items) step.published.push_back(parse_published(one));
  }
  if (const assets::AssetNode* const slider = node.find("slider")) {
    slider->as(Kind::object, "'slider'").allow({"option", "values"});
    step.slider = Slider{text_of(*slider, "option"), slider->at("values").texts("'values'", kMostList, 100)};
    if (step.slider->values.size() < 2) slider->place.fail("'values' needs two values at least");
  }
  if (const assets::AssetNode* const run = node.find("run")) step.run = parse_run(*run);
  return step;
}

}  // namespace

Lesson parse_lesson(std::string_view json, std::string_view markdown, const std::string& path) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"schema_version", "title", "question", "goals", "scenes", "figures", "steps"});
  const assets::AssetNode& version = root.at("schema_version");
  if (version.text != std::to_string(kLessonVersion))
    version.place.fail("'schema_version' is {}, this program reads {}", safe_display(version.text, 20),
                       kLessonVersion);
  Lesson lesson;
  lesson.file = path;
  lesson.id = std::filesystem::path(path).stem().string();
  lesson.title = text_of(root, "title");
  lesson.question = text_of(root, "question");
  lesson.goals = root.at("goals").texts("'goals'", kMostList, kLongestText);
  assets::for_each_field(root, "scenes", kMostScenes,
                         [&](const std::string& id, const assets::AssetNode& node) {
                           Scene scene = parse_scene(id, node);
                           for (const Scene& other : lesson.scenes)
                             if (other.model.name == scene.model.name && other.model != scene.model)
                               node.place.fail("another scene lists other tensors under the name '{}'",
                                               safe_display(scene.model.name, 60));
                           lesson.scenes.push_back(std::move(scene));
                         });
  if (lesson.scenes.empty()) root.place.fail("'scenes' names no scene");
  assets::for_each_field(root, "figures", kMostFigures,
                         [&](const std::string& name, const assets::AssetNode& node) {
                           node.as(Kind::object, "a figure").allow({"scene", "value"});
                           lesson.figures.push_back(
                               {name, scene_of(node, lesson.scenes), node.at("value").expression("'value'")});
                         });
  const assets::AssetNode& steps = root.at("steps").as(Kind::list, "'steps'");
  steps.at_most(kMostSteps, "'steps'");
  if (steps.items.empty()) steps.place.fail("'steps' is empty");
  const std::string beside = std::filesystem::path(path).replace_extension(".md").string();
  auto sections = sections_of(markdown, beside);
  for (const assets::AssetNode& node : steps.items) {
    Step step = parse_step(node, lesson.scenes);
    if (std::ranges::find(lesson.steps, step.id, &Step::id) != lesson.steps.end())
      node.at("id").place.fail("two steps have the name '{}'", safe_display(step.id, 60));
    const auto section = sections.find(step.id);
    if (section == sections.end())
      node.at("id").place.fail("{} has no section '## {}'", safe_display(beside), safe_display(step.id, 60));
    step.text = std::move(section->second.text);
    step.answer = std::move(section->second.answer);
    step.after_run = std::move(section->second.after_run);
    sections.erase(section);
    if (step.ask.has_value() == step.answer.empty())
      node.place.fail(step.ask ? "the step asks, but its text has no '### Answer'"
                               : "the step's text has an '### Answer', but the step does not ask");
    if (!step.run && !step.after_run.empty())
      node.place.fail("the step's text has a '### Run' without a 'run'");
    lesson.steps.push_back(std::move(step));
  }
  if (!sections.empty())
    throw Error(ErrorCode::malformed, {.file = beside}, "the section '{}' belongs to no step",
                safe_display(sections.begin()->first, 60));
  return lesson;
}

// --- The built-in lessons, and those of a user's folder.

namespace {

// From the one that needs nothing to those that build on others.
constexpr std::array<std::string_view, 13> kTeachingOrder = {
    "six-ways",  "meta-device",     "mmap",         "anonymous", "lazy-allocation", "order",  "staging-ring",
    "lifetimes", "offline-packing", "quantization", "sparsity",  "kv-cache",        "experts"};

std::size_t teaching_place(const Lesson& lesson) {
  return static_cast<std::size_t>(std::ranges::find(kTeachingOrder, lesson.id) - kTeachingOrder.begin());
}

std::vector<Lesson> built_in_lessons() {
  std::vector<Lesson> lessons;
  const auto files = embedded::lessons_files();
  for (const embedded::File& file : files) {
    if (!file.name.ends_with(".json")) continue;
    const std::string text_name = std::string(file.name.substr(0, file.name.size() - 5)) + ".md";
    const auto text = std::ranges::find(files, text_name, &embedded::File::name);
    lessons.push_back(parse_lesson(file.bytes, text == files.end() ? std::string_view() : text->bytes,
                                   std::string(file.name)));
  }
  std::ranges::stable_sort(lessons, {}, teaching_place);
  return lessons;
}

}  // namespace

Lesson read_lesson(const std::string& path) {
  const std::string beside = std::filesystem::path(path).replace_extension(".md").string();
  return parse_lesson(assets::asset_text(path), assets::asset_text(beside), path);
}

const Lesson& Lessons::find(std::string_view id) const {
  return find_row(std::span<const Lesson>(all), id, "lesson");
}

Lessons load_lessons(const std::string& folder) {
  Lessons lessons;
  lessons.all = built_in_lessons();
  if (folder.empty()) return lessons;
  for (const std::string& path : assets::json_files(folder)) {
    try {
      Lesson own = read_lesson(path);
      const auto same = std::ranges::find(lessons.all, own.id, &Lesson::id);
      if (same != lessons.all.end())
        *same = std::move(own);
      else
        lessons.all.push_back(std::move(own));
    } catch (const Error& error) {
      lessons.faults.emplace_back(error.what());
    }
  }
  return lessons;
}

// --- Derives the shapes of a scene's model.

namespace {

graph::MetaGraph listed_shapes(const std::vector<ListedTensors>& listed) {
  graph::MetaGraph graph;
  std::uint64_t total = 0;
  for (const ListedTensors& some : listed) {
    if (some.count > kMostListedTensors - graph.tensors.size())
      throw Error(ErrorCode::limit, "a scene lists more than {} tensors", kMostListedTensors);
    const auto bytes = checked_mul(some.count, some.bytes);
    const auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
    if (!sum) throw Error(ErrorCode::limit, "the tensors of a scene have more than 2^64 bytes");
    total = *sum;
    for (std::uint64_t i = 0; i < some.count; ++i) {
      const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
      graph.storages.push_back(graph::shapes_only_storage(some.bytes));
      const std::string name = some.count == 1 ? some.name : fmt::format("{}.{}", some.name, i);
      graph.tensors.push_back({graph::Name(name), graph::DType::i8, {some.bytes}, {}, storage, 0});
    }
  }
  return graph;
}

}  // namespace

graph::MetaGraphPtr model_shapes(const SceneModel& model, const forward::ForwardAssets& assets) {
  return std::make_shared<const graph::MetaGraph>(
      model.listed.empty() ? forward::config_graph(model_config(model), model.name, assets)
                           : listed_shapes(model.listed));
}

std::string_view model_config(const SceneModel& model) {
  if (!model.listed.empty())
    throw Error(ErrorCode::usage, "'{}' is a list of tensors: it has no configuration",
                safe_display(model.name, 60));
  return find_row(forward::presets(), model.name, "model").config_json;
}

}  // namespace loadline::lesson
