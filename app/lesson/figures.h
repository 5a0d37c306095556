// The figures of a lesson: expressions over what its scenes come to on this machine.
//
// Names: weights (their bytes), largest (the largest weight), tensors, parameters, pass (activations of the
// pass), values (all its values, as if none were freed), cache (its key-value cache), memory (what this
// machine could give now), and the lesson's figures. Functions, with METHOD a load method's id and SPACE one
// of device, host, page_cache, staging, unified (all of them together), held (all but the page cache):
//
//   peak(METHOD [, SPACE [, ORDER]])   bytes; without SPACE the memory that decides whether the load fits
//   final(METHOD, SPACE)      bytes held at the end
//   allocated(METHOD)         bytes that PyTorch's allocator counts; the scene's allocator must be torch
//   seconds(METHOD)           of the load, modeled
//   blame(METHOD [, SPACE])   the tensor that makes the peak
//   fits(METHOD), context(METHOD)   whether it fits the budgets; the largest context
//   least(SPACE), most(SPACE)       the method of the scene with the least or the greatest peak
//   widest()                  the space in which the scene's methods differ most
//   bytes(FILTER), number(FILTER)   of the tensors that a filter selects (core/graph/names/tensor_names.h)
//   config(KEY)               a value of the model's config.json
//   ratio(A, B), percent(A, B)      A / B, and the same in hundredths
//   run(KEY)                  a figure of the step's run, once it has ended
#pragma once

#include "app/lesson/lesson.h"
#include "app/report/chart.h"
#include "core/assets/expression.h"
#include "core/load/answer/answer.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::lesson {

// The figures that a run leaves behind, by key.
using RunFigures = std::map<std::string, assets::Datum, std::less<>>;

// What a scene comes to, with the curves of its rows.
struct SceneAnswer {
  graph::MetaGraphPtr graph = {};
  report::AnswerWithCurves answered = {};
  std::shared_ptr<const load::RequestPass> forward = {};

  report::ChartSubject subject() const { return answered.subject(*graph); }
};

// Computes scenes and figures when they are first asked for. For one thread. The lesson must outlive it.
class Figures {
 public:
  Figures(const Lesson& lesson, load::LoadEnvironment environment, Progress& progress);
  ~Figures();

  // Throws as answer() does.
  const SceneAnswer& scene(std::size_t at);
  // The same scene with one option changed.
  SceneAnswer changed_scene(std::size_t at, std::string_view option, const std::string& value);
  // The row of a method in a scene's model and request, also if the scene does not ask for it. Throws what
  // refuses it.
  const load::LoadRow& row(std::size_t scene, const std::string& method, const std::string& order = {});
  // Throws Error at the expression's place for an unknown name, function or method.
  assets::Datum value(const assets::Expression& expression, std::size_t scene);
  // run(KEY) gives these from now on. Without them it gives null.
  void set_run(RunFigures figures);
  assets::Datum run_figure(std::string_view key) const;
  const Lesson& lesson() const { return lesson_; }

 private:
  assets::Datum named(std::string_view name, std::size_t scene);

  struct Work;
  const Lesson& lesson_;
  load::LoadEnvironment environment_;
  Progress& progress_;
  std::unique_ptr<Work> work_;
};

// "12.83 GiB", "821", "2.0 times". Throws Error{malformed} for a value that is not of this kind.
std::string figure_text(const assets::Datum& value, Unit unit);
// The figure as a number of that unit: 12.83.
double figure_number(const assets::Datum& value, Unit unit);

// The text with its placeholders filled. Throws Error that quotes a placeholder that cannot be evaluated.
std::string fill(std::string_view markdown, std::size_t scene, Figures& figures);

}  // namespace loadline::lesson
