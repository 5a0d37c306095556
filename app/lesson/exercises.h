// Checks that a lesson says nothing that is not so.
#pragma once

#include "app/lesson/figures.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::lesson {

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
// real. One sentence per fault, with its step; none if the lesson is sound. Throws Error{cancelled}.
std::vector<std::string> lesson_faults(const Lesson& lesson, const LoadEnvironment& environment,
                                       bool with_runs, Progress& progress);

}  // namespace loadline::lesson
