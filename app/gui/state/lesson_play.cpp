// Fills texts, judges answers, runs steps; brings a lesson's scenes into the views.
#include "app/gui/state/lesson_play.h"

#include "app/gui/state/workspace.h"
#include "app/lesson/exercises.h"
#include "app/lesson/runs.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- Fills texts, judges answers and runs steps as jobs; one job at a time has the figures.

// The lesson and its figures. They are for one thread at a time; scenes that are answered stay answered.
struct LessonPlay::Work {
  Work(lesson::Lesson played, const Services& services)
      : lesson(std::move(played)),
        targets(services.targets),
        environment{.assets = services.assets, .targets = *targets, .measured_rates = services.rates} {}

  // Calls `work(Figures&)` while no other job has the figures.
  template <typename Function>
  auto with_figures(const Progress& progress, Function function) {
    std::unique_lock lock(mutex, std::defer_lock);
    // a job that a newer one replaced must not hold a worker until the older one is done
    while (!lock.try_lock()) {
      progress.check_canceled();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    own_progress.check_canceled();
    return function(figures);
  }

  const lesson::Lesson lesson;
  const std::shared_ptr<const std::vector<load::Target>> targets;  // which the environment refers to
  const load::LoadEnvironment environment;
  std::stop_source stop;  // when the lesson is left
  Progress own_progress{stop.get_token()};
  std::mutex mutex;
  lesson::Figures figures{lesson, environment, own_progress};
};

namespace {

StepTexts filled_texts(const lesson::Step& step, lesson::Figures& figures) {
  StepTexts texts;
  texts.text = lesson::fill(step.text, step.scene, figures);
  if (step.ask) {
    texts.prompt = lesson::fill(step.ask->prompt, step.scene, figures);
    texts.right = lesson::right_answer(*step.ask, step.scene, figures);
  }
  texts.answer = lesson::fill(step.answer, step.scene, figures);
  for (const lesson::Published& published : step.published) {
    lesson::ComparedFigure compared = lesson::compared_figure(published, step.scene, figures);
    texts.published.push_back({std::move(compared.printed_text), std::move(compared.computed_text),
                               std::move(compared.off_text), published.source, compared.within});
  }
  return texts;
}

}  // namespace

LessonPlay::LessonPlay(Services& services) : services_(services) {}

LessonPlay::~LessonPlay() {
  if (work_) work_->stop.request_stop();
}

const std::vector<lesson::Lesson>& LessonPlay::all() const {
  if (std::exchange(has_read_, true)) return all_;
  lesson::Lessons read = lesson::load_lessons(folder);
  for (const std::string& fault : read.faults)
    services_.notices.add(graph::Severity::warning, fmt::format("This lesson is left out: {}", fault));
  all_ = std::move(read.all);
  return all_;
}

const lesson::Lesson& LessonPlay::lesson() const { return work_->lesson; }
std::size_t LessonPlay::count() const { return lesson().steps.size(); }
const lesson::Step& LessonPlay::step() const { return lesson().steps[at_]; }
const lesson::Scene& LessonPlay::scene() const { return lesson().scenes[step().scene]; }
bool LessonPlay::is_open() const { return step().ask && !now().revealed; }

void LessonPlay::start(std::string_view id) {
  has_read_ = false;  // its author may have written it anew
  lesson::Lesson found = lesson::Lessons{all(), {}}.find(id);
  leave();
  work_ = std::make_shared<Work>(std::move(found), services_);
  const std::size_t steps = work_->lesson.steps.size();
  const auto left = left_.find(id);
  const bool resumes =
      left != left_.end() && left->second.states.size() == steps;  // else it was written anew
  if (resumes)
    states_ = std::move(left->second.states);
  else
    states_.assign(steps, {});
  if (!resumes)
    if (const auto done = finished.find(id); done != finished.end()) finished.erase(done);
  const bool ends = finished.contains(id);
  go_to(ends ? steps - 1 : resumes ? left->second.at : 0);
  ended_ = ends;
}

void LessonPlay::finish() {
  if (at_ + 1 != count()) throw Error(ErrorCode::usage, "the lesson has more steps");
  finished.insert(lesson().id);
  ended_ = true;
}

void LessonPlay::begin_again() {
  filling_.reset();
  judging_.reset();
  states_.assign(count(), {});
  finished.erase(lesson().id);
  go_to(0);
}

LessonPlay::Score LessonPlay::score() const {
  Score score;
  for (std::size_t i = 0; i < count(); ++i) {
    if (!lesson().steps[i].ask) continue;
    ++score.asked;
    if (states_[i].judged && states_[i].judged->right) ++score.right;
  }
  return score;
}

const lesson::Lesson* LessonPlay::next_lesson() const {
  const auto own = std::ranges::find(all(), lesson().id, &lesson::Lesson::id);
  return own == all().end() || std::next(own) == all().end() ? nullptr : &*std::next(own);
}

std::optional<std::pair<std::size_t, std::size_t>> LessonPlay::left_at(std::string_view id) const {
  const auto left = left_.find(id);
  if (left == left_.end()) return std::nullopt;
  return std::pair(left->second.at, left->second.states.size());
}

void LessonPlay::leave() {
  if (work_) {
    work_->stop.request_stop();
    left_.insert_or_assign(lesson().id, Left{at_, std::move(states_)});
  }
  filling_.reset();
  judging_.reset();
  running_.reset();
  opening_.reset();
  models_.clear();
  to_show.clear();
  states_.clear();
  presents = false;
  at_ = 0;
  ended_ = false;
  work_.reset();
}

void LessonPlay::go_to(std::size_t step) {
  if (step >= count())
    throw Error(ErrorCode::usage, "the lesson has {}, from 1 to {}", counted(count(), "step"), count());
  at_ = step;
  ended_ = false;
  to_show.clear();
  fill_texts();
}

void LessonPlay::fill_texts() {
  if (now().texts) return filling_.withdraw();
  now().fault.clear();
  filling_.ask(
      services_.jobs, "Computing the figures of the lesson",
      [work = work_, at = at_](Progress& progress) {
        return work->with_figures(progress, [&](lesson::Figures& figures) {
          return filled_texts(work->lesson.steps[at], figures);
        });
      },
      [this, at = at_] {
        if (filling_.error() == nullptr)
          states_[at].texts = filling_.value();
        else
          states_[at].fault = filling_.error_text();
      });
}

void LessonPlay::answer(const std::string& given) {
  if (!step().ask) throw Error(ErrorCode::usage, "this step of the lesson asks nothing");
  now().typed = given;
  now().fault.clear();
  judging_.ask(
      services_.jobs, "Judging the answer",
      [work = work_, at = at_, given](Progress& progress) {
        return work->with_figures(progress, [&](lesson::Figures& figures) {
          const lesson::Step& asked = work->lesson.steps[at];
          return lesson::judge(*asked.ask, given, asked.scene, figures);
        });
      },
      [this, at = at_] {
        StepState& state = states_[at];
        if (judging_.error() != nullptr) {
          state.fault = judging_.error_text();
          return;
        }
        state.judged = judging_.value();
        state.revealed = true;
      });
}

void LessonPlay::reveal() {
  if (!step().ask) throw Error(ErrorCode::usage, "this step of the lesson asks nothing");
  now().revealed = true;
}

void LessonPlay::run() {
  if (!step().run) throw Error(ErrorCode::usage, "this step of the lesson runs nothing");
  now().ran.reset();
  running_.ask(
      services_.jobs, "Running the step of the lesson",
      [work = work_, at = at_](Progress& progress) {
        const lesson::Step& asked = work->lesson.steps[at];
        lesson::RunResult result = lesson::do_run(*asked.run, work->environment, progress);
        return work->with_figures(progress, [&](lesson::Figures& figures) {
          figures.set_run(std::move(result.figures));
          return StepRun{std::move(result.lines), lesson::fill(asked.after_run, asked.scene, figures)};
        });
      },
      [this, at = at_] {
        if (running_.error() == nullptr)
          states_[at].ran = running_.value();
        else
          services_.notices.fail("run the step", *running_.error(), document);
      });
}

double LessonPlay::run_fraction() const {
  const auto job = services_.jobs.find(running_.job());
  return job ? job->fraction : 0;
}

void LessonPlay::want_model(std::function<void(ModelPtr)> then) {
  const lesson::SceneModel model = scene().model;
  if (const auto known = models_.find(model.name); known != models_.end()) {
    opening_.withdraw();
    return then(known->second);
  }
  opening_.ask(
      services_.jobs, "Deriving the shapes of " + safe_display(model.name, 60),
      [model, assets = services_.assets](Progress&) {
        return make_model(lesson::model_shapes(model, *assets), "", model.name);
      },
      [this, name = model.name, then = std::move(then)] {
        if (opening_.error() != nullptr) {
          services_.notices.fail("show the model of the lesson", *opening_.error());
          return;
        }
        then(models_.emplace(name, opening_.value()).first->second);
        opening_.drop();
      });
}

// --- Brings the scenes of a lesson into the views, and takes them away again.

void LessonStage::play(const std::string& id) {
  const bool first = !workspace_.lesson.plays();
  workspace_.lesson.start(id);
  if (first) before_ = {workspace_.document().id, workspace_.document().load.asked(), workspace_.settings};
  show_scene();
}

void LessonStage::go_to(std::size_t step) {
  if (!workspace_.lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  workspace_.lesson.go_to(step);
  show_scene();
}

void LessonStage::show_scene() {
  if (!workspace_.lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  workspace_.lesson.want_model([this](const ModelPtr& model) { take_scene(model); });
}

void LessonStage::take_scene(ModelPtr model) {
  LessonPlay& lesson = workspace_.lesson;
  const Document* const own = workspace_.find_document(lesson.document);
  if (own == nullptr) {
    workspace_.adopt(std::move(model));
  } else if (own->model != model) {
    workspace_.adopt(std::move(model), lesson.document);
  } else {
    const auto at =
        std::ranges::find_if(workspace_.documents(), [&](const auto& one) { return one.get() == own; });
    workspace_.show_document(static_cast<std::size_t>(at - workspace_.documents().begin()));
  }
  Document& document = workspace_.document();
  lesson.document = document.id;
  document.time.set_step(std::nullopt);
  document.select({});
  document.zoom(graph::kRootNode);
  workspace_.attempt([&] { document.load.ask(asked_by(lesson.scene().request)); });
  // the lesson speaks of these alone
  const std::vector<std::string>& methods = lesson.scene().request.methods;
  const bool compares = methods.size() > 1 || lesson.scene().request.orders.size() > 1;
  document.compared.clear();
  if (compares && std::ranges::find(methods, "all") == methods.end())
    document.compared.insert(methods.begin(), methods.end());
  const std::vector<std::string>& lines = lesson.step().show;
  lesson.to_show.assign(lines.begin(), lines.end());
  if (!lines.empty()) return;
  // a step that does not say what to show: what its picture is on a page
  switch (lesson.step().picture) {
    case lesson::Picture::map:
      lesson.to_show = {"panel map"};
      break;
    case lesson::Picture::methods:
      lesson.to_show = {"panel methods", "methods-view curves"};
      break;
    case lesson::Picture::bars:
      lesson.to_show = {"panel methods", "methods-view table"};
      break;
    case lesson::Picture::none:
      lesson.to_show = {"panel load"};
      break;
  }
}

void LessonStage::leave() {
  if (!workspace_.lesson.plays()) throw Error(ErrorCode::usage, "no lesson is played");
  workspace_.lesson.leave();
  const auto& documents = workspace_.documents();
  const auto place_of = [&](std::uint64_t id) {
    const auto at = std::ranges::find_if(documents, [&](const auto& one) { return one->id == id; });
    return static_cast<std::size_t>(at - documents.begin());
  };
  if (const std::size_t own = place_of(std::exchange(workspace_.lesson.document, 0));
      own < documents.size()) {
    workspace_.show_document(own);
    workspace_.close_model();
  }
  workspace_.show_document(place_of(before_.document));  // nothing if it was closed
  Settings& settings = workspace_.settings;
  settings.panel = before_.settings.panel;
  settings.color_by = before_.settings.color_by;
  settings.compare_view = before_.settings.compare_view;
  settings.compare_sort = before_.settings.compare_sort;
  settings.operators_as_list = before_.settings.operators_as_list;
  settings.fold_operators = before_.settings.fold_operators;
  // the next model takes over what is asked here
  if (!workspace_.document().model)
    workspace_.attempt([&] { workspace_.document().load.ask(before_.asked); });
}

}  // namespace loadline::gui
