// A lesson as a page to hand out: self-contained HTML.
#pragma once

#include "app/lesson/figures.h"
#include "app/report/pictures.h"

#include <string>
#include <string_view>

namespace loadline::lesson {

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

// The picture of a step as SVG or HTML; empty if it has none. `scale`: of bars, at least so many bytes.
std::string step_picture(const Step& step, const SceneAnswer& scene, std::uint64_t scale = 0);

}  // namespace loadline::lesson
