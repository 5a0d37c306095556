// Questions and their answers, published figures, the check of a lesson, handouts.
#pragma once

#include "app/lesson/figures.h"
#include "app/report/pictures.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::lesson {

// --- Questions of a lesson: the right answer, and whether one that was given is right.

// The right answer in words: "12.83 GiB", "per_tensor".
std::string right_answer(const Ask& ask, std::size_t scene, Figures& figures);

// How near a number has to be: "Within 5 % is right." Empty for a choice.
std::string tolerance_text(const Ask& ask);

struct Judged {
  bool right = false;
  std::string words =
      {};  // "Right: it is 12.83 GiB", "Not quite: it is 12.83 GiB, not 6.4; yours is half of that."
};
// `given`: a number in the question's unit, with or without the unit, or a size such as 12.8GiB; or a choice,
// by its text or its place from 1. Throws Error{usage} for what is neither.
Judged judge(const Ask& ask, std::string_view given, std::size_t scene, Figures& figures);

// --- Checks that a lesson says nothing that is not so.

// A published figure beside the computed one.
struct ComparedFigure {
  const Published* published = nullptr;
  double computed = 0;  // in the unit of the published one
  double off_percent = 0;
  bool within = false;
  std::string printed_text = {}, computed_text = {}, off_text = {};  // "12.8 GiB", "12.83 GiB", "+0.2 %"
};
ComparedFigure compared_figure(const Published& published, std::size_t scene, Figures& figures);

// Computes every figure, fills every text, finds every answer among its choices, holds every published figure
// against the computed one, and tries every value of a slider. `with_runs`: also does what the steps do for
// real. One sentence per fault, with its step; none if the lesson is sound. Throws Error{canceled}.
std::vector<std::string> lesson_faults(const Lesson& lesson, const load::LoadEnvironment& environment,
                                       bool with_runs, Progress& progress);

// --- A lesson as a page to hand out: self-contained HTML.

enum class Sheet : std::uint8_t {
  lesson,     // texts, pictures, questions with their answers folded away, sliders
  worksheet,  // the questions alone, with room for answers
  key,        // the questions with their answers, for the teacher
};

// `version`: of the program. Sliders need the script inside the page; without one they show their first
// value, and on paper the table of all. Throws as Figures::value() does.
std::string handout_html(const Lesson& lesson, Sheet sheet, std::string_view version, Figures& figures);

// The peaks of the step's methods in its space.
report::Bars step_bars(const Step& step, const SceneAnswer& scene);

}  // namespace loadline::lesson
