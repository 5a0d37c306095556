// A lesson as data: scenes and their models, figures, steps; its file format.
#pragma once

#include "core/assets/expression.h"
#include "core/forward/model/assets_loader.h"
#include "core/graph/meta_graph.h"
#include "core/load/request/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::lesson {

// --- The model of a scene, as shapes without a file.

// So many tensors of one size, called NAME, or NAME.0, NAME.1, ... if they are several.
struct ListedTensors {
  std::string name = {};
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;  // of each
  bool operator==(const ListedTensors&) const = default;
};

struct SceneModel {
  std::string name = {};  // of a preset (core/forward/model/assets_loader.h), or of the lesson's own list
  std::vector<ListedTensors> listed = {};  // in the order of the file; empty for a preset
  bool operator==(const SceneModel&) const = default;
};

inline constexpr std::uint64_t kMostListedTensors = 100'000;

// Throws Error{usage} for a preset that does not exist, Error{limit} for more tensors than kMostListedTensors
// or bytes that overflow.
graph::MetaGraphPtr model_shapes(const SceneModel& model, const forward::ForwardAssets& assets);

// The configuration of a preset. Throws Error{usage} for a model that has none.
std::string_view model_config(const SceneModel& model);

// --- A lesson: steps that each show a load, may ask for a prediction, and explain the answer.
//
// A lesson is two files of one name. NAME.json:
//
//   {"schema_version": 1, "title": "...", "question": "what a student would ask", "goals": ["..."],
//    "scenes": {"SCENE": {"model": PRESET, "options": {ID: VALUE}}},   the first is the default
//               or {"model": "any name", "tensors": {"NAME": {"count": 84, "bytes": "500KB"}}, "options":
//               ...}
//    "figures": {"NAME": {"scene": SCENE, "value": EXPRESSION}},
//    "steps": [{"id": "...", "title": "...", "scene": SCENE, "picture": PICTURE, "space": SPACE, "show":
//    ["script line"],
//               "ask": {"prompt": "...", "number": EXPRESSION, "unit": UNIT, "within_percent": 5}
//                   or {"prompt": "...", "choose": ["..."], "answer": EXPRESSION},
//               "published": [{"figure": EXPRESSION, "value": 12.8, "unit": UNIT, "within_percent": 1,
//                              "source": "..."}],
//               "slider": {"option": ID, "values": ["..."]},
//               "run": {"kind": KIND, KEY: VALUE}}]}
//
// NAME.md holds the texts: for each step a section "## ID", in it at the end "### Answer", shown once the
// question is answered, and "### Run", shown once the run has ended. `{EXPRESSION}` and
// `{EXPRESSION|UNIT}` stand for figures (figures.h), which are computed when the text is shown.

inline constexpr int kLessonVersion = 1;

// How a number is written.
enum class Unit : std::uint8_t { bytes, gib, mib, kib, gb, mb, count, times, percent, milliseconds, text };
struct UnitName {
  std::string_view id;
  Unit unit;
  double scale = 1;  // what one of it is in the figure's own unit
  int digits = 0;    // after the point
  std::string_view suffix = {};
};
std::span<const UnitName> units();
const UnitName& unit_name(Unit unit);

// A model and how it is loaded.
struct Scene {
  std::string id = {};
  SceneModel model = {};
  load::LoadRequest request = {};
};

struct Figure {
  std::string name = {};
  std::size_t scene = 0;
  assets::Expression value = {};
};

struct AskNumber {
  assets::Expression answer = {};
  Unit unit = Unit::gib;
  double within_percent = 5;  // of the answer
};
struct AskChoice {
  std::vector<std::string> choices = {};
  assets::Expression answer = {};  // a text among the choices
};
struct Ask {
  std::string prompt = {};
  std::variant<AskNumber, AskChoice> kind = {};
};

// A figure that somebody else printed.
struct Published {
  assets::Expression figure = {};
  double value = 0;
  Unit unit = Unit::gib;
  double within_percent = 0;
  std::string source = {};
};

// One option that the reader can change, with the values to try.
struct Slider {
  std::string option = {};
  std::vector<std::string> values = {};
};

// What is done for real on this machine: a row of runs() and its settings.
struct Run {
  std::string kind = {};
  std::vector<std::pair<std::string, std::string>> settings = {};
  assets::AssetPlace place = {};
};

// What stands beside the text.
enum class Picture : std::uint8_t { none, methods, bars, map };

struct Step {
  std::string id = {};
  std::string title = {};
  std::size_t scene = 0;
  Picture picture = Picture::none;
  std::string space = {};              // of bars (app/report/row_text.h); empty: where they differ most
  std::vector<std::string> show = {};  // script lines for the window
  std::optional<Ask> ask = {};
  std::vector<Published> published = {};
  std::optional<Slider> slider = {};
  std::optional<Run> run = {};
  // Markdown with placeholders.
  std::string text = {};
  std::string answer = {};
  std::string after_run = {};
  assets::AssetPlace place = {};
};

struct Lesson {
  std::string id = {};  // the files' name
  std::string title = {};
  std::string question = {};
  std::vector<std::string> goals = {};
  std::vector<Scene> scenes = {};
  std::vector<Figure> figures = {};
  std::vector<Step> steps = {};
  std::string file = {};  // the JSON, for messages
};

// Reads both texts. `path` is the JSON's; its name without folder and extension is the lesson's id. Throws
// Error{malformed | limit} with file, line and column. Expressions are parsed but not evaluated
// (exercises.h).
Lesson parse_lesson(std::string_view json, std::string_view markdown, const std::string& path);

// The built-in lessons in their teaching order, then those of `folder` (*.json with their *.md) by name; one
// of the same id replaces a built-in one. A file that does not parse is left out, and its error is in
// `faults`.
struct Lessons {
  std::vector<Lesson> all = {};
  std::vector<std::string> faults = {};
  // Throws Error{usage} that lists the ids.
  const Lesson& find(std::string_view id) const;
};
Lessons load_lessons(const std::string& folder);
// A lesson from a file and the Markdown beside it. Throws Error{io} besides parse_lesson()'s.
Lesson read_lesson(const std::string& path);

}  // namespace loadline::lesson
