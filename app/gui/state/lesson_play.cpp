// Fills texts, judges answers and runs steps as jobs; one job at a time has the figures.
#include "app/gui/state/lesson_play.h"

#include "app/lesson/exercises.h"
#include "app/lesson/runs.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <chrono>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {

// The lesson and its figures. They are for one thread at a time; scenes that are answered stay answered.
struct LessonPlay::Work {
  Work(lesson::Lesson played, const Shared& shared)
      : lesson(std::move(played)),
        targets(shared.targets),
        environment{.assets = shared.assets, .targets = *targets, .measured_rates = shared.rates} {}

  // Calls `work(Figures&)` while no other job has the figures.
  template <typename Function>
  auto with_figures(const Progress& progress, Function function) {
    std::unique_lock lock(mutex, std::defer_lock);
    // a job that a newer one replaced must not hold a worker until the older one is done
    while (!lock.try_lock()) {
      progress.check_cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    own_progress.check_cancelled();
    return function(figures);
  }

  const lesson::Lesson lesson;
  const std::shared_ptr<const std::vector<Target>> targets;  // which the environment refers to
  const LoadEnvironment environment;
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

LessonPlay::~LessonPlay() {
  if (work_) work_->stop.request_stop();
}

const std::vector<lesson::Lesson>& LessonPlay::all() const {
  if (std::exchange(has_read_, true)) return all_;
  lesson::Lessons read = lesson::load_lessons(folder);
  for (const std::string& fault : read.faults)
    shared_.notices.add(Severity::warning, fmt::format("This lesson is left out: {}", fault));
  all_ = std::move(read.all);
  return all_;
}

const lesson::Lesson& LessonPlay::lesson() const { return work_->lesson; }

void LessonPlay::start(std::string_view id) {
  has_read_ = false;  // its author may have written it anew
  lesson::Lesson found = lesson::Lessons{all(), {}}.find(id);
  leave();
  work_ = std::make_shared<Work>(std::move(found), shared_);
  states_.assign(work_->lesson.steps.size(), {});
  go_to(0);
}

void LessonPlay::leave() {
  if (work_) work_->stop.request_stop();
  filling_.reset();
  judging_.reset();
  running_.reset();
  opening_.reset();
  models_.clear();
  to_show.clear();
  states_.clear();
  presents = false;
  at_ = 0;
  work_.reset();
}

void LessonPlay::go_to(std::size_t step) {
  if (step >= count())
    throw Error(ErrorCode::usage, "the lesson has {}, from 1 to {}", counted(count(), "step"), count());
  at_ = step;
  to_show.clear();
  fill_texts();
}

void LessonPlay::fill_texts() {
  if (now().texts) return filling_.withdraw();
  now().fault.clear();
  filling_.ask(
      shared_.jobs, "Computing the figures of the lesson",
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
      shared_.jobs, "Judging the answer",
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
        state.judged = *judging_.value();
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
      shared_.jobs, "Running the step of the lesson",
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
          shared_.notices.fail("run the step", *running_.error(), document);
      });
}

double LessonPlay::run_fraction() const {
  const auto job = shared_.jobs.find(running_.job());
  return job ? job->fraction : 0;
}

void LessonPlay::want_model(std::function<void(ModelPtr)> then) {
  const lesson::SceneModel model = scene().model;
  if (const auto known = models_.find(model.name); known != models_.end()) {
    opening_.withdraw();
    return then(known->second);
  }
  opening_.ask(
      shared_.jobs, "Deriving the shapes of " + safe_display(model.name, 60),
      [model, assets = shared_.assets](Progress&) {
        return make_model(lesson::model_shapes(model, *assets), "", model.name);
      },
      [this, name = model.name, then = std::move(then)] {
        if (opening_.error() != nullptr) {
          shared_.notices.fail("show the model of the lesson", *opening_.error());
          return;
        }
        then(models_.emplace(name, opening_.value()).first->second);
        opening_.drop();
      });
}

}  // namespace loadline::gui
