// The lesson's column, its presentation, and its keys.

#include "app/lesson/lesson.h"

#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "app/lesson/exercises.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <imgui_stdlib.h>

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
  if (of_load && document.load.projection.busy()) return true;
  return !action->enabled(workspace) && !workspace.services.jobs.idle();
}

}  // namespace

void run_lesson_line(Workspace& workspace, const std::string& line) {
  const auto [word, argument] = words_of(line);
  if (load::find_load_option(word) != nullptr) return workspace.document().load.set_option(word, argument);
  const Action* const action = find_action(word);
  if (action == nullptr) refuse(fmt::format("unknown command '{}'", safe_display(word, 60)));
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
      workspace.services.notices.add(
          graph::Severity::error,
          fmt::format("Lesson {}, step {}: '{}': {}", safe_display(play.lesson().id, 60),
                      safe_display(play.step().id, 60), safe_display(line, 80), error.what()),
          play.document);
    }
  }
}

// --- The lesson that is played: a column beside the views, or in front of an audience a strip below one of
// them.

namespace {

void gap(const Ui& ui, float height) { ImGui::Dummy({0, ui.px(height)}); }

constexpr float kPageMargin = 4;  // that draw_manual_page() leaves at both sides

// A text whose words begin where those of its neighbors do.
void draw_rich(const Ui& ui, std::string_view markdown) {
  ImGui::Unindent(ui.px(kPageMargin));
  draw_manual_page(ui, markdown);
  ImGui::Indent(ui.px(kPageMargin));
}

// A table of text with no more than two blanks between its columns. A line that is no row of it stays as it
// is.
std::string narrow_table(const std::vector<std::string>& lines) {
  const auto is_row = [](const std::string& line) { return line.find("  ") != std::string::npos; };
  const auto is_blank = [&](std::size_t at) {
    return std::ranges::all_of(lines, [&](const std::string& line) {
      return !is_row(line) || at >= line.size() || line[at] == ' ';
    });
  };
  std::size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  std::vector<bool> keeps;  // by place in a line
  std::size_t blanks = 0;
  for (std::size_t at = 0; at < longest; ++at) {
    blanks = is_blank(at) ? blanks + 1 : 0;
    keeps.push_back(blanks <= 2);
  }
  std::string narrow;
  for (const std::string& line : lines) {
    if (!narrow.empty()) narrow += '\n';
    for (std::size_t at = 0; at < line.size(); ++at)
      if (keeps[at] || !is_row(line)) narrow += line[at];
  }
  return narrow;
}

// A line for each step: those before, the one shown, those to come.
void draw_progress(const Ui& ui, const LessonPlay& play, float width) {
  const float space = ui.px(3), height = ui.px(4);
  const auto count = static_cast<float>(play.count());
  const float each = std::max(ui.px(2), (width - space * (count - 1)) / count);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (std::size_t i = 0; i < play.count(); ++i) {
    const float x = at.x + static_cast<float>(i) * (each + space);
    const ImU32 color = i == play.at()  ? ui.theme->accent
                        : i < play.at() ? mix(ui.theme->panel, ui.theme->accent, 0.5f)
                                        : ui.theme->border;
    ImGui::GetWindowDrawList()->AddRectFilled({x, at.y}, {x + each, at.y + height}, color, height / 2);
  }
  ImGui::Dummy({width, height});
}

// Words in lines beside a bar of a color.
template <typename Draw>
void beside_bar(const Ui& ui, ImU32 color, Draw draw) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Indent(ui.px(12));
  {
    const GroupScope group;
    draw();
  }
  const float bottom = ImGui::GetItemRectMax().y;
  ImGui::Unindent(ui.px(12));
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + ui.px(3), bottom}, color, ui.px(1.5f));
}

void draw_verdict(const Ui& ui, const LessonPlay& play) {
  const StepState& state = play.now();
  const Theme& theme = *ui.theme;
  const bool right = state.judged && state.judged->right;
  const ImU32 color = !state.judged ? theme.accent : right ? theme.good : theme.warning;
  beside_bar(ui, color, [&] {
    const FontScope font(ui.fonts.strong);
    const std::string answer = state.texts ? state.texts->right : "";
    paragraph(ui, shown(state.judged ? state.judged->words : fmt::format("Answer: {}", answer)), theme.text);
  });
  if (state.texts && !state.texts->answer.empty()) {
    gap(ui, 2);
    draw_rich(ui, state.texts->answer);
  }
}

void draw_published(const Ui& ui, const StepTexts& texts) {
  if (texts.published.empty()) return;
  gap(ui, 4);
  const FontScope font(ui.fonts.small);
  for (const StepTexts::Published& one : texts.published) {
    const ImU32 color = one.within ? ui.theme->good : ui.theme->warning;
    beside_bar(ui, color, [&] {
      const StyleScope tight(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(2)});
      paragraph(ui, fmt::format("Published: {}. Computed: {} ({}).", one.printed, one.computed, one.off),
                ui.theme->text);
      paragraph(ui, shown(one.source), ui.theme->muted);
    });
  }
}

// The button that does it for real, then what came of it.
void draw_run(Workspace& workspace, const Ui& ui) {
  LessonPlay& play = workspace.lesson;
  gap(ui, 6);
  if (play.runs()) {
    muted(ui, "Running on this machine");
    if (progress_with_stop(ui, play.run_fraction())) play.cancel_run();
    return;
  }
  const std::shared_ptr<const StepRun> ran = play.now().ran;
  if (button(ui, ran ? "Run it again" : "Run it here", ran ? ButtonKind::normal : ButtonKind::primary))
    run_action(workspace, "lesson-run");
  tooltip(ui, "Takes seconds and some hundred MiB of disk and memory; leaves nothing behind");
  if (!ran) return;
  gap(ui, 2);
  const std::string lines = narrow_table(ran->lines);
  {
    const FontScope font(ui.fonts.mono);
    const ImVec2 size = ImGui::CalcTextSize(lines.c_str());
    const StyleScope padding(ImGuiStyleVar_WindowPadding, {ui.px(10), ui.px(8)});
    const ColorScope ground(ImGuiCol_ChildBg, ui.theme->raised);
    const bool wide = size.x + ui.px(20) > ImGui::GetContentRegionAvail().x;
    const float bar_height = wide ? ImGui::GetStyle().ScrollbarSize : 0;
    const ChildScope child("lines", {0, size.y + ui.px(18) + bar_height}, true,
                           ImGuiWindowFlags_HorizontalScrollbar);
    text(lines);
  }
  draw_rich(ui, ran->text);
}

// The values of an option to try; the views follow.
void draw_slider(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  const lesson::Slider& slider = *play.step().slider;
  const load::LoadOption* const option = load::find_load_option(slider.option);
  if (option == nullptr) return;
  gap(ui, 6);
  muted(ui, fmt::format("{}: try", option->title));
  const bool here = workspace.document().id == play.document;
  const std::string now = load::load_option_text(workspace.document().load.asked().request, *option);
  for (std::size_t i = 0; i < slider.values.size(); ++i) {
    const IdScope scope(i);
    const float needed = text_width(slider.values[i]) + 2 * ImGui::GetStyle().FramePadding.x;
    if (i > 0) continue_line(ui, 6, needed);
    if (button(ui, slider.values[i], slider.values[i] == now ? ButtonKind::primary : ButtonKind::normal,
               here))
      workspace.attempt([&] { workspace.document().load.set_option(slider.option, slider.values[i]); });
  }
}

class LessonPanel final : public Panel {
 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_header(Workspace& workspace, const Ui& ui);
  void draw_step(Workspace& workspace, const Ui& ui);
  static void draw_end(Workspace& workspace, const Ui& ui);
  void draw_question(Workspace& workspace, const Ui& ui);
  static void draw_number(Workspace& workspace, const Ui& ui, const lesson::AskNumber& ask, bool focus);
  static void draw_choices(Workspace& workspace, const Ui& ui, const lesson::AskChoice& ask);
  static void draw_footer(Workspace& workspace, const Ui& ui);

  std::string asked_;  // the question that has had the keyboard
};

void LessonPanel::draw_content(Workspace& workspace, const Ui& ui) {
  if (!workspace.lesson.plays()) return;
  draw_header(workspace, ui);
  if (!workspace.lesson.plays()) return;  // its cross was pressed
  const float footer = ImGui::GetFrameHeight() + ImGui::GetStyle().ItemSpacing.y + ui.px(6);
  {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() - ui.px(kPageMargin));     // where the ground of code begins
    const std::string id = fmt::format("step {}", workspace.lesson.at());  // each keeps its own place
    const ChildScope child(id.c_str(), {0, std::max(ui.px(60), ImGui::GetContentRegionAvail().y - footer)});
    draw_step(workspace, ui);
  }
  if (workspace.lesson.plays()) draw_footer(workspace, ui);
}

void LessonPanel::draw_header(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  const float width = ImGui::GetContentRegionAvail().x;
  {
    const FontScope font(ui.fonts.small);
    const StyleScope frame(ImGuiStyleVar_FramePadding, {ui.px(7), ui.px(3)});
    const float side = ImGui::GetFrameHeight();
    const float present = text_width("Present") + 2 * ui.px(7);
    const float start = ImGui::GetCursorPosX();
    control_text(elided(shown(play.lesson().title), width - side - present - ui.px(12)), ui.theme->muted);
    ImGui::SameLine(start + width - side - present - ui.px(4));
    {
      if (button(ui, "Present", ButtonKind::ghost)) run_action(workspace, "present");
      tooltip(ui, "One view and the text, large enough for a room (F8)");
    }
    ImGui::SameLine(start + width - side);
    const bool leave = icon_button(ui, "leave", "Leave the lesson",
                                   [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); });
    if (leave) workspace.attempt([&] { workspace.stage.leave(); });
  }
  if (!workspace.lesson.plays()) return;
  draw_progress(ui, play, width);
  {
    const FontScope font(ui.fonts.small);
    muted(ui, fmt::format("Step {} of {}", play.at() + 1, play.count()));
  }
  const FontScope font(ui.fonts.title);
  paragraph(ui, shown(play.step().title), ui.theme->text);
}

void LessonPanel::draw_step(Workspace& workspace, const Ui& ui) {
  ImGui::Indent(ui.px(kPageMargin));
  const LessonPlay& play = workspace.lesson;
  const StepState& state = play.now();
  if (play.at() == 0 && !play.lesson().question.empty()) {
    beside_bar(ui, ui.theme->border, [&] { paragraph(ui, shown(play.lesson().question), ui.theme->muted); });
    gap(ui, 4);
  }
  if (!state.texts) {
    if (state.fault.empty())
      muted(ui, "Computing the figures");
    else
      paragraph(ui, shown(state.fault), ui.theme->bad);
    return;
  }
  draw_rich(ui, state.texts->text);
  if (play.step().ask) draw_question(workspace, ui);
  if (!play.is_open()) {  // the rest would give the answer away
    draw_published(ui, *state.texts);
    if (play.step().slider) draw_slider(workspace, ui);
    if (play.step().run) draw_run(workspace, ui);
  }
  if (play.is_at_end()) draw_end(workspace, ui);
}

// That it is finished, what came of it, and where to go from here.
void LessonPanel::draw_end(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  gap(ui, 10);
  beside_bar(ui, ui.theme->good, [&] {
    {
      const FontScope font(ui.fonts.strong);
      text_colored(ui.theme->text, "Lesson finished");
    }
    if (const LessonPlay::Score score = play.score(); score.asked > 0)
      muted(ui, fmt::format("{} of {} predicted right", score.right, counted(score.asked, "answer")));
  });
  gap(ui, 4);
  const lesson::Lesson* const next = play.next_lesson();
  if (next != nullptr) {
    const std::string id = next->id;
    const float room = ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().FramePadding.x;
    if (button(ui, elided("Next lesson: " + shown(next->title), room), ButtonKind::primary))
      return workspace.attempt([&] { workspace.stage.play(id); });
    tooltip(ui, shown(next->question));
  }
  if (button(ui, "Begin again"))
    return workspace.attempt([&] {
      workspace.lesson.begin_again();
      workspace.stage.show_scene();
    });
  tooltip(ui, "From the first step, without your answers");
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Leave the lesson")) workspace.attempt([&] { workspace.stage.leave(); });
}

void LessonPanel::draw_question(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  const StepState& state = play.now();
  gap(ui, 6);
  beside_bar(ui, ui.theme->accent, [&] {
    const FontScope font(ui.fonts.strong);
    draw_rich(ui, state.texts->prompt);
  });
  gap(ui, 2);
  if (play.is_open()) {
    const std::string id = play.lesson().id + " " + play.step().id + state.fault;  // a fault asks again
    const bool focus = std::exchange(asked_, id) != id;
    if (const auto* const number = std::get_if<lesson::AskNumber>(&play.step().ask->kind))
      draw_number(workspace, ui, *number, focus);
    else
      draw_choices(workspace, ui, std::get<lesson::AskChoice>(play.step().ask->kind));
    if (!state.fault.empty()) paragraph(ui, shown(state.fault), ui.theme->warning);
    if (const std::string within = lesson::tolerance_text(*play.step().ask); !within.empty())
      small_text(ui, within, ui.theme->muted);
    return;
  }
  draw_verdict(ui, play);
}

void LessonPanel::draw_number(Workspace& workspace, const Ui& ui, const lesson::AskNumber& ask, bool focus) {
  LessonPlay& play = workspace.lesson;
  const IdScope scope(play.at());
  const std::string_view suffix = lesson::unit_name(ask.unit).suffix;
  if (focus) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(ui.px(110));
  const bool entered = ImGui::InputText("##answer", &play.now().typed, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SameLine(0, ui.px(6));
  if (!suffix.empty()) {
    control_text(suffix, ui.theme->muted);
    ImGui::SameLine(0, ui.px(10));
  }
  const bool checked = button(ui, "Check", ButtonKind::primary, !play.judging());
  ImGui::SameLine(0, ui.px(4));
  const bool reveal = button(ui, "Show answer", ButtonKind::ghost);
  tooltip(ui, "Shows the answer without a prediction");
  if ((entered || checked) && !play.now().typed.empty())
    workspace.attempt([&] { play.answer(std::string(play.now().typed)); });
  if (reveal) workspace.attempt([&] { play.reveal(); });
}

void LessonPanel::draw_choices(Workspace& workspace, const Ui& ui, const lesson::AskChoice& ask) {
  LessonPlay& play = workspace.lesson;
  const IdScope step(play.at());
  const float width = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < ask.choices.size(); ++i) {
    const IdScope scope(i);
    const std::string words = shown(ask.choices[i]);
    const ImVec2 pad = {ui.px(10), ui.px(6)};
    const float lines = ImGui::CalcTextSize(words.c_str(), nullptr, false, width - 2 * pad.x).y;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 end = {at.x + width, at.y + lines + 2 * pad.y};
    const bool hot = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(at, end);
    ImGui::GetWindowDrawList()->AddRectFilled(at, end, hot ? ui.theme->hovered : ui.theme->raised, ui.px(6));
    const bool picked = press_area(ui, "choice", end - at);
    ImGui::GetWindowDrawList()->AddText(ImGui::GetFont(), ImGui::GetFontSize(), at + pad, ui.theme->text,
                                        words.c_str(), nullptr, width - 2 * pad.x);
    if (picked) workspace.attempt([&] { play.answer(ask.choices[i]); });
  }
  if (button(ui, "Show answer", ButtonKind::ghost)) workspace.attempt([&] { play.reveal(); });
}

void LessonPanel::draw_footer(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  const bool last = play.at() + 1 == play.count();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ui.px(4));
  const float start = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  if (button(ui, "Back", ButtonKind::normal, play.at() > 0))
    workspace.attempt([&] { workspace.stage.go_to(workspace.lesson.at() - 1); });
  tooltip(ui, "Page Up");
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Reset the view", ButtonKind::ghost))
    workspace.attempt([&] { workspace.stage.show_scene(); });
  tooltip(ui, "Back to the lesson's view: the model, the load and the panel of this step");
  if (workspace.lesson.is_at_end()) return;  // the end says how to go on
  const std::string_view next = last ? "Finish" : "Next";
  float width = 0;
  {
    const FontScope font(ui.fonts.strong);
    width = text_width(next) + 2 * ImGui::GetStyle().FramePadding.x;
  }
  ImGui::SameLine(start + room - width);
  if (button(ui, next, ButtonKind::primary))
    workspace.attempt([&] {
      if (last) {
        workspace.lesson.finish();
      } else {
        workspace.stage.go_to(workspace.lesson.at() + 1);
      }
    });
  tooltip(ui, last ? "Says what came of it, and which lesson is next" : "Page Down");
}

}  // namespace

std::unique_ptr<Panel> make_lesson_panel() { return std::make_unique<LessonPanel>(); }

void draw_caption(Workspace& workspace, const Ui& ui) {
  const LessonPlay& play = workspace.lesson;
  const StepState& state = play.now();
  ImGui::Indent(ui.px(kPageMargin));
  const float width = ImGui::GetContentRegionAvail().x;
  draw_progress(ui, play, width);
  {
    const FontScope font(ui.fonts.title);
    const float start = ImGui::GetCursorPosX();
    const std::string place = fmt::format("{} / {}", play.at() + 1, play.count());
    const std::string_view leave = "Esc exits";
    const float room = text_width(place);
    text(elided(shown(play.step().title), width - room - text_width(leave) - ui.px(30)));
    ImGui::SameLine(start + width - room);
    text_colored(ui.theme->muted, place);
    const FontScope small(ui.fonts.small);
    put_text_before(ImGui::GetItemRectMin().x - ui.px(14), ImGui::GetItemRectMax().y - ImGui::GetFontSize(),
                    ui.theme->muted, leave);
  }
  if (!state.texts) return muted(ui, state.fault.empty() ? "Computing the figures" : shown(state.fault));
  if (play.is_open()) {
    draw_rich(ui, state.texts->text);
    gap(ui, 8);
    Ui large = ui;  // there is room for it while the view is hidden
    if (play.hides_views()) large.fonts.body = large.fonts.strong = ui.fonts.title;
    beside_bar(ui, ui.theme->accent, [&] { draw_rich(large, state.texts->prompt); });
    const auto* const choice = std::get_if<lesson::AskChoice>(&play.step().ask->kind);
    if (choice == nullptr) return;
    gap(ui, 4);
    const FontScope font(large.fonts.body);  // of the numbers
    for (std::size_t i = 0; i < choice->choices.size(); ++i)
      draw_rich(large, fmt::format("{}. {}", i + 1, choice->choices[i]));
  } else if (play.step().ask) {
    Ui asked = ui;  // who came late reads what was asked
    asked.fonts.body = asked.fonts.strong = ui.fonts.small;
    draw_rich(asked, state.texts->prompt);
    gap(ui, 2);
    draw_verdict(ui, play);
    const FontScope font(ui.fonts.small);
    for (const StepTexts::Published& one : state.texts->published)
      text_colored(ui.theme->muted, elided(fmt::format("Published: {}, computed: {} ({}). {}", one.printed,
                                                       one.computed, one.off, shown(one.source)),
                                           width));
  } else {
    if (!state.ran) draw_rich(ui, state.texts->text);  // then the table needs the room
    if (play.step().slider) draw_slider(workspace, ui);
    if (play.step().run) draw_run(workspace, ui);
  }
}

// --- A lesson in front of an audience, and the keys that turn its steps.

bool Shell::lesson_takes_keys() {
  LessonPlay& play = workspace_.lesson;
  if (!play.plays() || browser_.is_open() || manual_.is_open()) return false;
  const auto go = [&](bool on) {
    workspace_.attempt([&] {
      if (on && play.presents && play.is_open())
        return play.reveal();  // the audience sees the question first
      find_action("lesson-step")->run(workspace_, on ? "next" : "back");
    });
    return true;
  };
  if (take_list_key(ListKey::page_down)) return go(true);
  if (take_list_key(ListKey::page_up)) return go(false);
  if (!play.presents || ImGui::GetIO().WantTextInput || ImGui::GetIO().KeyAlt || ImGui::GetIO().KeyCtrl)
    return false;
  if (take_list_key(ListKey::right) || take_space()) return go(true);
  if (take_list_key(ListKey::left)) return go(false);
  const bool in_front =
      ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (in_front || !take_list_key(ListKey::escape)) return false;
  play.presents = false;
  return true;
}

// Of another model the views say nothing about the question.
bool Shell::lesson_hides_views() const {
  return workspace_.lesson.hides_views() && workspace_.document().id == workspace_.lesson.document;
}

void Shell::draw_hidden_views(const Ui& ui, ImVec2 size) {
  const ChildScope body("body", size);
  draw_notices(ui);
  const CardScope card(ui, "hidden", {0, 0});
  empty_state(ui, "Predict first", "The views show this load once you have answered.");
  const std::string_view words = "Show the views";
  const float width = text_width(words) + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetCursorPos({(ImGui::GetWindowWidth() - width) / 2, ImGui::GetCursorPosY() + ui.px(10)});
  if (button(ui, words, ButtonKind::ghost)) run_action(workspace_, "lesson-view");
}

// The view that the step shows, and below it the text, as high as it needs to be.
void Shell::draw_presented(const Ui& ui, ImVec2 size) {
  const LessonPlay& play = workspace_.lesson;
  const ChildScope body("presented", size);
  draw_notices(ui);
  const float room = ImGui::GetContentRegionAvail().y, gap = ui.px(8);
  if (play.hides_views()) {
    const CardScope card(ui, "question", {0, 0});
    scroll_by_keys();
    draw_caption(workspace_, ui);
    ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY() + ui.px(10),
                                  ImGui::GetWindowContentRegionMax().y - ImGui::GetFontSize()));
    return muted(ui, "Space shows the answer");
  }
  // of the room: a table is read to its end, and the buttons of a slider are reached
  const float most = play.now().ran || play.step().slider ? 0.66f : 0.5f;
  const float strip = std::clamp(caption_, ui.px(70), room * most);
  {
    const ChildScope view("view", {0, room - strip - gap});
    const bool of_load = workspace_.settings.panel == "load";
    if (!workspace_.document().model) {
      empty_state(ui, "The lesson is being prepared", "The model is derived from a configuration.");
    } else if (of_load) {
      timeline_rect_.low = ImGui::GetCursorScreenPos();
      timeline_rect_.high = timeline_rect_.low + ImGui::GetContentRegionAvail();
      const CardScope card(ui, "timeline", {0, 0});
      timeline_->draw(workspace_, ui);
    } else {
      draw_panel(ui);
    }
  }
  ImGui::SetCursorPosY(ImGui::GetWindowContentRegionMax().y - strip);
  const CardScope card(ui, "caption", {0, strip});
  scroll_by_keys();
  draw_caption(workspace_, ui);
  caption_ = ImGui::GetCursorPosY() + ImGui::GetScrollY() + ImGui::GetStyle().WindowPadding.y;
}

}  // namespace loadline::gui
