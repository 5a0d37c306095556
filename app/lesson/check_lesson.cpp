// Walks a lesson as its readers do.
#include "app/lesson/ask.h"
#include "app/lesson/exercises.h"
#include "app/lesson/runs.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loadline::lesson {

ComparedFigure compared_figure(const Published& published, std::size_t scene, Figures& figures) {
  ComparedFigure compared;
  compared.published = &published;
  compared.computed = figure_number(figures.value(published.figure, scene), published.unit);
  if (published.value != 0)
    compared.off_percent = (compared.computed - published.value) / published.value * 100;
  compared.within = std::abs(compared.off_percent) <= published.within_percent;
  const std::string_view suffix = unit_name(published.unit).suffix;
  compared.printed_text = fmt::format("{}{}", published.value, suffix);
  compared.computed_text = fmt::format("{:.2f}{}", compared.computed, suffix);
  compared.off_text = fmt::format("{:+.1f} %", compared.off_percent);
  return compared;
}

namespace {

void check_ask(const Step& step, Figures& figures) {
  const std::string right = right_answer(*step.ask, step.scene, figures);
  if (const auto* const choice = std::get_if<AskChoice>(&step.ask->kind))
    if (std::ranges::find(choice->choices, right) == choice->choices.end())
      throw Error(ErrorCode::malformed, "the answer '{}' is not among the choices", safe_display(right, 60));
}

void check_published(const Published& published, std::size_t scene, Figures& figures) {
  const ComparedFigure compared = compared_figure(published, scene, figures);
  if (!compared.within)
    throw Error(ErrorCode::malformed, "published {}{}, computed {:.3f}{}: {:+.1f} %, more than {} %",
                published.value, unit_name(published.unit).suffix, compared.computed,
                unit_name(published.unit).suffix, compared.off_percent, published.within_percent);
}

void check_slider(const Step& step, Figures& figures) {
  for (const std::string& value : step.slider->values)
    (void)figures.changed_scene(step.scene, step.slider->option, value);
}

}  // namespace

std::vector<std::string> lesson_faults(const Lesson& lesson, const LoadEnvironment& environment,
                                       bool with_runs, Progress& progress) {
  std::vector<std::string> faults;
  Figures figures(lesson, environment, progress);
  const auto attempt = [&](const Step& step, std::string_view what, auto&& check) {
    try {
      check();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      faults.push_back(fmt::format("{}, step {}, {}: {}", lesson.file, step.id, what, error.what()));
    }
  };
  for (const Step& step : lesson.steps) {
    attempt(step, "scene", [&] { (void)figures.scene(step.scene); });
    attempt(step, "text", [&] { (void)fill(step.text, step.scene, figures); });
    if (step.ask) {
      attempt(step, "question", [&] { check_ask(step, figures); });
      attempt(step, "answer", [&] { (void)fill(step.answer, step.scene, figures); });
    }
    for (const Published& published : step.published)
      attempt(step, "published", [&] { check_published(published, step.scene, figures); });
    if (step.slider) attempt(step, "slider", [&] { check_slider(step, figures); });
    if (!step.run) continue;
    attempt(step, "run", [&] { check_run(*step.run); });
    if (!with_runs) continue;
    attempt(step, "run", [&] { figures.set_run(do_run(*step.run, environment, progress).figures); });
    attempt(step, "text after the run", [&] { (void)fill(step.after_run, step.scene, figures); });
  }
  return faults;
}

}  // namespace loadline::lesson
