#include "app/gui/frame/lesson_lines.h"

#include "app/gui/frame/actions.h"
#include "app/gui/frame/actions_2.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <array>

namespace loadline::gui {
namespace {

// A lesson may come from somebody else: it changes what is seen, and no file.
constexpr std::array<std::string_view, 32> kViewWords = {
    "panel",       "tree",          "timeline",     "time",      "play",      "beside",       "speed",
    "select",      "select-module", "deselect",     "zoom",      "zoom-out",  "color",        "filter",
    "sort",        "find",          "metadata",     "operator",  "operators", "fold",         "first-token",
    "every-order", "methods-view",  "methods-sort", "overlay",   "arena",     "arena-number", "arena-zoom",
    "arena-view",  "arena-rule",    "arena-step",   "arena-play"};

struct LessonLine {
  std::string word, argument;
};

LessonLine words_of(std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::size_t argument = std::min(line.find_first_not_of(' ', space), line.size());
  return {std::string(line.substr(0, space)), std::string(line.substr(argument))};
}

// Whether what the line needs may still come from a job.
bool must_wait(const Workspace& workspace, const LessonLine& line) {
  const Document& document = workspace.document();
  const Action* const action = find_action(line.word);
  if (action == nullptr) return false;
  const bool of_load = line.word == "time" || line.word == "play";
  if (of_load && document.projection.busy()) return true;
  return !action->enabled(workspace) && !workspace.shared.jobs.idle();
}

}  // namespace

void run_lesson_line(Workspace& workspace, const std::string& line) {
  const auto [word, argument] = words_of(line);
  if (find_load_option(word) != nullptr) return workspace.document().set_option(word, argument);
  const Action* const action = find_action(word);
  if (action == nullptr) refuse(fmt::format("unknown word '{}'", safe_display(word, 60)));
  if (std::ranges::find(kViewWords, word) == kViewWords.end())
    refuse(fmt::format("'{}' does more than change the view, which no lesson may", word));
  if (action->argument == Argument::required && argument.empty())
    refuse(fmt::format("{} needs an argument", word));
  if (action->argument == Argument::none && !argument.empty())
    refuse(fmt::format("{} takes no argument", word));
  action->run(workspace, argument);
}

void follow_lesson(Workspace& workspace) {
  LessonPlay& play = workspace.lesson;
  while (play.plays() && !play.to_show.empty()) {
    if (workspace.document().id != play.document) return play.to_show.clear();
    const std::string line = play.to_show.front();
    if (must_wait(workspace, words_of(line))) return;
    play.to_show.pop_front();
    try {
      run_lesson_line(workspace, line);
    } catch (const Error& error) {
      workspace.shared.notices.add(
          Severity::error,
          fmt::format("Lesson {}, step {}: '{}': {}", safe_display(play.lesson().id, 60),
                      safe_display(play.step().id, 60), safe_display(line, 80), error.what()),
          play.document);
    }
  }
}

}  // namespace loadline::gui
