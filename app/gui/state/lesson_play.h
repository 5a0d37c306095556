// A lesson that is played: its step, the student's answers, the texts with their figures, what ran. No ImGui.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/services.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/model/model.h"
#include "app/gui/state/settings.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::lesson {
struct Judged;
struct Lesson;
struct Scene;
struct Step;
}  // namespace loadline::lesson

namespace loadline::gui {

// The texts of a step with their figures, as Markdown; empty where the step has none.
struct StepTexts {
  struct Published {
    std::string printed, computed, off, source;  // "12.8 GiB", "12.83 GiB", "+0.2 %"
    bool within = false;
  };
  std::string text = {}, prompt = {}, answer = {};
  std::string right = {};  // the right answer: "12.83 GiB"
  std::vector<Published> published = {};
};

// What a step did for real.
struct StepRun {
  std::vector<std::string> lines = {};  // a small table
  std::string text = {};                // Markdown
};

// What is known of a step, and kept when the student goes to another one.
struct StepState {
  std::string typed = {};  // the answer as it was typed
  std::string fault = {};  // why it could not be read, or why the texts could not be filled
  std::shared_ptr<const lesson::Judged> judged = nullptr;  // null until an answer was judged
  bool revealed = false;                                   // the answer is shown
  bool looked = false;                                     // the views are shown before that
  std::shared_ptr<const StepTexts> texts = nullptr;        // null until they are filled
  std::shared_ptr<const StepRun> ran = nullptr;
};

// Every function returns at once. Texts, judgments and runs are jobs. Used from one thread.
class LessonPlay {
 public:
  explicit LessonPlay(Services& services);
  LessonPlay(const LessonPlay&) = delete;
  LessonPlay& operator=(const LessonPlay&) = delete;
  ~LessonPlay();

  // Where the user's own lessons are; empty: there are none. Set before the first all().
  std::string folder = {};
  // All lessons, read when they are first asked for and by each start(). A file that cannot be read becomes a
  // notice.
  const std::vector<lesson::Lesson>& all() const;

  // Begins with the first step, or where it was left; a lesson that was finished is at its end, with the
  // answers given. Throws Error{usage} that lists the ids.
  void start(std::string_view id);
  // Says at the last step that the lesson is finished. Throws Error{usage} at another step.
  void finish();
  bool is_at_end() const { return plays() && ended_; }
  // From the first step, without the answers.
  void begin_again();
  // Of the questions of the lesson: how many were answered right at first, and how many there are.
  struct Score {
    std::size_t right = 0, asked = 0;
  };
  Score score() const;
  // The lesson that follows in the list; null behind the last.
  const lesson::Lesson* next_lesson() const;
  void leave();
  bool plays() const { return work_ != nullptr; }
  // Ids of the lessons that were finished since the program was started.
  std::set<std::string, std::less<>> finished = {};

  // The step at which a lesson was left, 0 for the first; and how many it has. Nothing if it was not begun.
  std::optional<std::pair<std::size_t, std::size_t>> left_at(std::string_view id) const;

  // The rest needs a lesson that is played.
  const lesson::Lesson& lesson() const;
  std::size_t at() const { return at_; }
  std::size_t count() const;
  const lesson::Step& step() const;
  const lesson::Scene& scene() const;
  StepState& now() { return states_[at_]; }
  const StepState& now() const { return states_[at_]; }
  // Throws Error{usage} for a step that the lesson does not have.
  void go_to(std::size_t step);
  // Holds an answer against the right one. Throws Error{usage} if the step asks nothing.
  void answer(const std::string& given);
  // Shows the answer without one that was given.
  void reveal();
  bool judging() const { return judging_.busy(); }
  // Whether the step has a question whose answer is not shown.
  bool is_open() const;
  // Whether the views are still hidden, because they would give the answer away.
  bool hides_views() const { return plays() && is_open() && !now().looked; }

  // Does for real what the step says. Throws Error{usage} if it says nothing.
  void run();
  void cancel_run() { running_.cancel(); }
  bool runs() const { return running_.busy(); }
  double run_fraction() const;

  // The model of a scene: shapes without a file. `then` is called once it is there; at once if it is known.
  void want_model(std::function<void(ModelPtr)> then);

  // The state of the views, kept by LessonStage.
  std::uint64_t document = 0;         // the id of the document with the lesson's model; 0: none
  std::deque<std::string> to_show{};  // lines of the step that are still to be run
  bool presents = false;              // one view and the text, large

 private:
  struct Work;
  void fill_texts();

  Services& services_;
  mutable std::vector<lesson::Lesson> all_;
  mutable bool has_read_ = false;
  std::shared_ptr<Work> work_;  // shared with jobs
  std::size_t at_ = 0;
  bool ended_ = false;  // its end is shown below the last step
  std::vector<StepState> states_;
  struct Left {
    std::size_t at = 0;
    std::vector<StepState> states;
  };
  std::map<std::string, Left, std::less<>> left_;        // by the lesson's id
  std::map<std::string, ModelPtr, std::less<>> models_;  // by preset
  Latest<StepTexts> filling_;
  Latest<lesson::Judged> judging_;
  Latest<StepRun> running_;
  Latest<Model> opening_;
};

class Workspace;

// Brings the lesson of a workspace into its views, and takes it away again. Each function throws Error{usage}
// if it cannot be done.
class LessonStage {
 public:
  explicit LessonStage(Workspace& workspace) : workspace_(workspace) {}

  // Plays a lesson (app/lesson/lesson.h): its first step comes into the views.
  void play(const std::string& id);
  // Goes to a step of the lesson and shows its scene.
  void go_to(std::size_t step);
  // Shows the scene of the step again: its model, its load, its panel.
  void show_scene();
  // Closes the lesson's model, and shows what was there before.
  void leave();

 private:
  void take_scene(ModelPtr model);

  Workspace& workspace_;
  // What was there before the lesson.
  struct Before {
    std::uint64_t document = 0;
    Asked asked = {};
    Settings settings = {};
  };
  Before before_;
};

}  // namespace loadline::gui
