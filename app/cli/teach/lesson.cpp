// loadline lesson: teaches why loading costs what it costs.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/plan/load_flags.h"
#include "app/lesson/exercises.h"
#include "app/lesson/runs.h"
#include "app/report/markdown.h"
#include "app/report/page_parts.h"
#include "app/report/pictures.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace loadline::cli {
namespace {

using lesson::Figures;
using lesson::Lesson;
using lesson::Step;

struct LessonFlags {
  std::string what;
  std::vector<std::string> names;
  std::string step;
  bool no_run = false;
  bool with_runs = false;
  std::string html, worksheet, key;
};

lesson::Lessons all_lessons(const Context& context) {
  lesson::Lessons lessons =
      lesson::load_lessons(context.config_folder.empty() ? "" : context.config_folder + "/lessons");
  for (const std::string& fault : lessons.faults) complain("warning: " + safe_display(fault));
  return lessons;
}

std::string shown(const Context& context, std::string_view markdown) {
  return report::markdown_text(markdown, context.prose_columns);
}

// Asks at a terminal until the answer can be read; nothing elsewhere, or if the line is empty.
std::optional<lesson::Judged> ask_person(const Step& step, Figures& figures) {
  if (::isatty(STDIN_FILENO) == 0) return std::nullopt;
  if (const std::string within = lesson::tolerance_text(*step.ask); !within.empty())
    fmt::print("{} ", within);
  while (true) {
    fmt::print("Your answer (Enter to see it): ");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line) || line.empty()) return std::nullopt;
    try {
      return lesson::judge(*step.ask, line, step.scene, figures);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      fmt::print("{}\n", error.what());
    }
  }
}

void show_ask(const Context& context, const Step& step, Figures& figures) {
  fmt::print("{}", shown(context, "**Question.** " + lesson::fill(step.ask->prompt, step.scene, figures)));
  if (const auto* const choice = std::get_if<lesson::AskChoice>(&step.ask->kind))
    for (std::size_t i = 0; i < choice->choices.size(); ++i)
      fmt::print("  {}. {}\n", i + 1, safe_display(choice->choices[i]));
  const auto judged = ask_person(step, figures);
  const std::string words =
      judged ? judged->words : "Answer: " + lesson::right_answer(*step.ask, step.scene, figures);
  fmt::print("{}\n\n{}", words, shown(context, lesson::fill(step.answer, step.scene, figures)));
}

void show_picture(const Context& context, const Step& step, Figures& figures) {
  const lesson::SceneAnswer& scene = figures.scene(step.scene);
  if (!step.slider && (step.picture == lesson::Picture::methods || step.picture == lesson::Picture::bars))
    fmt::print("{}\n", report::bars_text(lesson::step_bars(step, scene), context.columns, context.unicode));
}

void show_slider(const Step& step, Figures& figures) {
  fmt::print("{}:\n", load::find_load_option(step.slider->option)->title);
  for (const std::string& value : step.slider->values) {
    const lesson::SceneAnswer scene = figures.changed_scene(step.scene, step.slider->option, value);
    fmt::print("  {:>10}", safe_display(value, 40));
    for (const load::LoadRow& row : scene.answered.answer.rows)
      if (!row.refusal)
        fmt::print("   {} {}{}", row.method->id, format_bytes(row.held_peak),
                   row.context_max ? ", room for " + counted(*row.context_max, "token") : "");
    fmt::print("\n");
  }
  fmt::print("\n");
}

void show_published(const Context& context, const Step& step, Figures& figures) {
  for (const lesson::Published& published : step.published) {
    const auto compared = lesson::compared_figure(published, step.scene, figures);
    fmt::print("Published: {}; computed: {} ({}).\n{}", compared.printed_text, compared.computed_text,
               compared.off_text,
               report::wrapped(safe_display(published.source), "  ", context.prose_columns));
  }
  if (!step.published.empty()) fmt::print("\n");
}

// The figures of the run, which the text after it quotes.
lesson::RunResult do_step_run(const Context& context, const Step& step,
                              const load::LoadEnvironment& environment) {
  Progress progress(context.stop);
  const ProgressLine line(context, "running", progress);
  return lesson::do_run(*step.run, environment, progress);
}

void show_run(const Context& context, const Step& step, const load::LoadEnvironment& environment,
              Figures& figures) {
  fmt::print("On this machine:\n");
  std::fflush(stdout);
  const lesson::RunResult result = do_step_run(context, step, environment);
  for (const std::string& line : result.lines) fmt::print("  {}\n", line);
  figures.set_run(result.figures);
  fmt::print("\n{}", shown(context, lesson::fill(step.after_run, step.scene, figures)));
}

Json datum_json(const assets::Datum& value) {
  if (value.number() != nullptr) return *value.number();
  if (value.real() != nullptr) return *value.real();
  if (value.text() != nullptr) return json_text(*value.text());
  return nullptr;
}

Json step_json(const Context& context, const Step& step, const load::LoadEnvironment& environment, bool runs,
               Figures& figures) {
  Json json = {{"id", step.id}, {"title", step.title}};
  if (step.ask) {
    json["prompt"] = lesson::fill(step.ask->prompt, step.scene, figures);
    json["answer"] = lesson::right_answer(*step.ask, step.scene, figures);
  }
  json["published"] = Json::array();
  for (const lesson::Published& published : step.published) {
    const auto compared = lesson::compared_figure(published, step.scene, figures);
    json["published"].push_back({{"value", published.value},
                                 {"unit", lesson::unit_name(published.unit).id},
                                 {"computed", compared.computed},
                                 {"off_percent", compared.off_percent},
                                 {"source", published.source}});
  }
  if (step.run && runs) {
    json["run"] = Json::object();
    for (const auto& [key, value] : do_step_run(context, step, environment).figures)
      json["run"][key] = datum_json(value);
  }
  return json;
}

std::vector<const Step*> asked_steps(const Lesson& lesson, const std::string& id) {
  std::vector<const Step*> steps;
  if (!id.empty()) return {&find_row(std::span<const Step>(lesson.steps), id, "step")};
  for (const Step& step : lesson.steps) steps.push_back(&step);
  return steps;
}

int run_lesson(const Context& context, const LessonFlags& options) {
  report::check_picture_path(options.html, ".html");
  report::check_picture_path(options.worksheet, ".html");
  report::check_picture_path(options.key, ".html");
  if (options.names.size() != 1) throw Error(ErrorCode::usage, "lesson run takes the id of one lesson");
  const lesson::Lessons lessons = all_lessons(context);
  const Lesson& lesson = lessons.find(options.names.front());
  const CliEnvironment environment(context, {});
  Progress progress(context.stop);
  Figures figures(lesson, environment.load, progress);
  const std::vector<const Step*> steps = asked_steps(lesson, options.step);
  bool written = false;
  for (const auto& [path, sheet] : {std::pair{&options.html, lesson::Sheet::lesson},
                                    {&options.worksheet, lesson::Sheet::worksheet},
                                    {&options.key, lesson::Sheet::key}}) {
    if (path->empty()) continue;
    report::write_file(*path, lesson::handout_html(lesson, sheet, LOADLINE_VERSION, figures));
    if (!context.json) fmt::print("{}\n", safe_display(*path));
    written = true;
  }
  if (context.json) {
    Json json = {{"id", json_text(lesson.id)}, {"title", lesson.title}, {"steps", Json::array()}};
    for (const Step* const step : steps)
      json["steps"].push_back(step_json(context, *step, environment.load, !options.no_run, figures));
    print_json(std::move(json));
    return kDone;
  }
  if (written) return kDone;
  fmt::print("{}\n\n{}", safe_display(lesson.title), shown(context, lesson.question));
  if (options.step.empty()) {
    std::string goals = "After this lesson you can:\n\n";
    for (const std::string& goal : lesson.goals) goals += "- " + goal + "\n";
    fmt::print("{}", shown(context, goals));
  }
  for (const Step* const step : steps) {
    fmt::print("-- {} --\n\n{}", safe_display(step->title),
               shown(context, lesson::fill(step->text, step->scene, figures)));
    if (step->ask) show_ask(context, *step, figures);  // before the picture shows it
    show_picture(context, *step, figures);
    if (step->slider) show_slider(*step, figures);
    show_published(context, *step, figures);
    if (step->run && !options.no_run) show_run(context, *step, environment.load, figures);
  }
  return kDone;
}

int list_lessons(const Context& context) {
  const lesson::Lessons lessons = all_lessons(context);
  if (context.json) {
    Json json = {{"lessons", Json::array()}};
    for (const Lesson& lesson : lessons.all)
      json["lessons"].push_back({{"id", json_text(lesson.id)},
                                 {"title", lesson.title},
                                 {"question", lesson.question},
                                 {"steps", lesson.steps.size()}});
    print_json(std::move(json));
    return kDone;
  }
  std::size_t longest = 0;
  for (const Lesson& lesson : lessons.all) longest = std::max(longest, safe_display(lesson.id).size());
  for (const Lesson& lesson : lessons.all)
    fmt::print("{:<{}}  {}\n", safe_display(lesson.id), longest, safe_display(lesson.title));
  fmt::print("\n`loadline lesson run ID` teaches one; the window does too: `loadline gui --lesson ID`.\n");
  return kDone;
}

int check_lessons(const Context& context, const LessonFlags& options) {
  if (options.names.empty())
    throw Error(ErrorCode::usage, "lesson check takes files: NAME.json with NAME.md beside it");
  const CliEnvironment environment(context, {});
  bool sound = true;
  Json checked = Json::array();
  for (const std::string& path : options.names) {
    const Lesson lesson = lesson::read_lesson(path);
    Progress progress(context.stop);
    const auto faults = lesson::lesson_faults(lesson, environment.load, options.with_runs, progress);
    sound = sound && faults.empty();
    checked.push_back({{"file", json_text(path)},
                       {"id", json_text(lesson.id)},
                       {"steps", lesson.steps.size()},
                       {"faults", json_texts(faults)}});
    if (context.json) continue;
    for (const std::string& fault : faults) fmt::print("{}\n", safe_display(fault));
    if (faults.empty()) fmt::print("{}: {} steps, no errors\n", safe_display(path), lesson.steps.size());
  }
  if (context.json) print_json({{"lessons", std::move(checked)}});
  return sound ? kDone : kFailed;
}

int teach(const Context& context, const LessonFlags& options) {
  if (options.what == "list") return list_lessons(context);
  if (options.what == "check") return check_lessons(context, options);
  return run_lesson(context, options);
}

}  // namespace

Action setup_lesson(CLI::App& app) {
  auto options = std::make_shared<LessonFlags>();
  add_text(app, "TASK", options->what, "list, run or check",
           {.required = true, .check = one_of({"list", "run", "check"})});
  add_list(app, "NAME", options->names, "run: the id of a lesson; check: files of lessons");
  add_text(app, "--step", options->step, "run: only this step", {.value_name = "ID"});
  add_flag(app, "--no-run", options->no_run, "run: skip the experiments of the steps");
  add_flag(app, "--with-runs", options->with_runs, "check: also run the experiments and their texts");
  add_text(app, "-o,--html", options->html, "run: write the lesson as one page", {.value_name = "FILE.html"});
  add_text(app, "--worksheet", options->worksheet, "run: write its questions, without answers",
           {.value_name = "FILE.html"});
  add_text(app, "--key", options->key, "run: write its questions with answers", {.value_name = "FILE.html"});
  return [options](Context& context) { return teach(context, *options); };
}

}  // namespace loadline::cli
