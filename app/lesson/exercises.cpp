// Compares an answer with the computed one; checks a lesson as its readers walk it.
#include "app/lesson/exercises.h"

#include "app/lesson/runs.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

namespace loadline::lesson {

// --- Compares an answer with the computed one.

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Without commas between groups of three digits, as figures are written: "43,098". Another comma is a point,
// as many people write it: "6,59".
std::string ungrouped(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool groups = text[i] == ',' && i > 0 && is_digit(i - 1) && is_digit(i + 1) && is_digit(i + 2) &&
                        is_digit(i + 3) && !is_digit(i + 4);
    if (!groups) plain += text[i] == ',' && i > 0 && is_digit(i - 1) && is_digit(i + 1) ? '.' : text[i];
  }
  return plain;
}

// The number that was given, in the unit of the question.
double given_number(std::string_view text, const UnitName& unit) {
  const std::string word = ungrouped(trimmed(text));
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  const std::string_view rest = trimmed(std::string_view(end));
  if (end == word.c_str() || !std::isfinite(number))
    throw Error(ErrorCode::usage, "'{}' is not a number; write one such as 12.5", safe_display(word, 40));
  if (rest.empty() || lower_case(rest) == lower_case(trimmed(unit.suffix)) ||
      (rest == "x" && unit.id == "times"))
    return number;
  for (const UnitName& other : units())  // 512 MiB where GiB are asked for
    if (lower_case(rest) == lower_case(other.id) && other.scale > 1 && unit.scale > 1)
      return number * other.scale / unit.scale;
  throw Error(ErrorCode::usage, "'{}' is not a number{}; write one such as 12.5", safe_display(word, 40),
              unit.suffix.empty() ? "" : fmt::format(" of{}", unit.suffix));
}

std::string given_choice(std::string_view text, const std::vector<std::string>& choices) {
  const std::string_view word = trimmed(text);
  for (const std::string& choice : choices)
    if (lower_case(choice) == lower_case(word)) return choice;
  std::size_t place = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), place);
  if (failed == std::errc() && end == word.data() + word.size() && place >= 1 && place <= choices.size())
    return choices[place - 1];
  throw Error(ErrorCode::usage, "'{}' is not one of the {} choices", safe_display(word, 40), choices.size());
}

std::string compared(double given, double right) {
  if (right == 0 || given == 0) return "";
  const double ratio = given / right;
  if (std::abs(ratio - 2) < 0.1) return "; yours is twice that";
  if (std::abs(ratio - 0.5) < 0.025) return "; yours is half of that";
  return "";
}

}  // namespace

std::string right_answer(const Ask& ask, std::size_t scene, Figures& figures) {
  if (const auto* const number = std::get_if<AskNumber>(&ask.kind))
    return figure_text(figures.value(number->answer, scene), number->unit);
  return figure_text(figures.value(std::get<AskChoice>(ask.kind).answer, scene), Unit::text);
}

std::string tolerance_text(const Ask& ask) {
  const auto* const number = std::get_if<AskNumber>(&ask.kind);
  return number == nullptr ? "" : fmt::format("Within {:g} % is right.", number->within_percent);
}

Judged judge(const Ask& ask, std::string_view given, std::size_t scene, Figures& figures) {
  const std::string words = right_answer(ask, scene, figures);
  if (const auto* const number = std::get_if<AskNumber>(&ask.kind)) {
    const double right = figure_number(figures.value(number->answer, scene), number->unit);
    const double answer = given_number(given, unit_name(number->unit));
    if (std::abs(answer - right) <= std::abs(right) * number->within_percent / 100 + 1e-12)
      return {true, fmt::format("Right: it is {}.", words)};
    return {false, fmt::format("Not quite: it is {}, not {}{}.", words, safe_display(trimmed(given), 40),
                               compared(answer, right))};
  }
  const std::string choice = safe_display(given_choice(given, std::get<AskChoice>(ask.kind).choices));
  return choice == words ? Judged{true, fmt::format("Right: {}.", words)}
                         : Judged{false, fmt::format("It is {}, not {}.", words, choice)};
}

// --- Walks a lesson as its readers do.

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

std::vector<std::string> lesson_faults(const Lesson& lesson, const load::LoadEnvironment& environment,
                                       bool with_runs, Progress& progress) {
  std::vector<std::string> faults;
  Figures figures(lesson, environment, progress);
  const auto attempt = [&](const Step& step, std::string_view what, auto&& check) {
    try {
      check();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::canceled) throw;
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
