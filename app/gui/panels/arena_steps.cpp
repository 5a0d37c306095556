// Both plots show the same step number; the shorter run waits at its end.
#include "app/gui/panels/arena_steps.h"

#include "app/gui/parts/widgets.h"
#include "app/gui/window/keyboard.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr double kHeadroom = 1.07;

void step_to(ArenaView& view, std::size_t step, std::size_t length) {
  view.step = std::min(step, length);
  view.playing = false;
}

void step_back(ArenaView& view, std::size_t length) {
  step_to(view, view.step - std::min<std::size_t>(view.step, 1), length);
}

void play_or_stop(ArenaView& view, std::size_t length) {
  view.playing = !view.playing;
  if (view.playing && view.step >= length) view.step = 0;
}

// A triangle that points to the left (-1) or to the right (1), at a bar or not.
void paint_arrow(const Ui& ui, ImVec2 center, float points, bool bar, ImU32 color) {
  const float r = ui.px(5);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 tip = {center.x + points * r, center.y};
  const float base = center.x - points * r * 0.8f;
  draw->AddTriangleFilled({base, center.y - r}, {base, center.y + r}, tip, color);
  if (bar) {
    const float x = tip.x + points * ui.px(2);
    draw->AddLine({x, center.y - r}, {x, center.y + r}, color, ui.px(2));
  }
}

void paint_pause(const Ui& ui, ImVec2 center, ImU32 color) {
  const float r = ui.px(5);
  for (const float x : {center.x - ui.px(4.5f), center.x + ui.px(1)})
    ImGui::GetWindowDrawList()->AddRectFilled({x, center.y - r}, {x + ui.px(3.5f), center.y + r}, color);
}

bool icon(const Ui& ui, const char* id, std::string_view hint, bool primary,
          const std::function<void(ImVec2, ImU32)>& paint) {
  const float side = ImGui::GetFrameHeight(), width = side * 1.25f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = press_area(ui, id, {width, side});
  const bool hot = ImGui::IsItemHovered();
  const ImU32 ground = primary ? ui.theme->accent : hot ? ui.theme->hovered : ui.theme->raised;
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + side}, ground, ui.px(6));
  paint({at.x + width / 2, at.y + side / 2}, primary ? ui.theme->on_accent : ui.theme->text);
  tooltip(ui, hint);
  return pressed;
}

// What stands after so many steps, as boxes.
std::vector<view::ArenaBox> boxes_after(const Problem& problem, const PackingTrace& trace, std::size_t at) {
  std::vector<view::ArenaBox> boxes;
  const auto placed = placed_after(trace, problem.buffers.size(), at);
  for (std::uint32_t i = 0; i < placed.size(); ++i)
    if (placed[i]) view::append_boxes(problem.buffers[i], i, *placed[i], boxes);
  return boxes;
}

void draw_plot(const Ui& ui, const ArenaSteps& steps, const PackingTrace& trace, std::size_t at,
               ImVec2 size) {
  const ArenaProblem& problem = *steps.of->of;
  const view::ArenaChart& chart = steps.of->charts[steps.arena];
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  if (size.y < ui.px(60) || problem.problem.buffers.empty()) return;
  const auto most = static_cast<double>(
      std::max({steps.capacity, steps.greedy.height, steps.search.height, std::uint64_t{1}}));
  const ArenaFrame frame = {
      {{std::round(low.x + ui.px(kPlotAxisWidth)), std::round(low.y + ui.px(4))},
       {std::round(low.x + size.x - ui.px(2)), std::round(low.y + size.y - ui.px(kPlotAxisHeight))}},
      {static_cast<double>(chart.first_tick()), static_cast<double>(chart.last_tick()), 0, most * kHeadroom}};
  if (!(frame.sight.x0 < frame.sight.x1)) return;
  ImGui::GetWindowDrawList()->AddRectFilled(frame.area.low, frame.area.high,
                                            with_alpha(ui.theme->raised, 0.35f));
  paint_arena_bytes(ui, frame);
  paint_arena_ticks(ui, frame, frame.area, problem.tick);
  const std::vector<view::ArenaBox> boxes = boxes_after(problem.problem, trace, at);
  paint_arena(ui, frame,
              view::draw_arena(boxes, problem.kinds, frame.sight, static_cast<double>(frame.area.width()),
                               static_cast<double>(frame.area.height()), static_cast<double>(ui.px(2))),
              problem);
  std::vector<PlotArea> taken;  // the label keeps off what is too high
  for (const view::ArenaBox& box : boxes) {
    if (box.to <= steps.capacity) continue;
    taken.push_back(
        {{frame.x_of(static_cast<double>(box.lower)), frame.y_of(static_cast<double>(box.to))},
         {frame.x_of(static_cast<double>(box.upper)), frame.y_of(static_cast<double>(box.from))}});
    paint_box(ui, frame, box, {ui.theme->bad, ui.theme->panel, 1}, problem.name(box.buffer));
  }
  // what was just placed, or the run of what was just taken back: the older the fainter
  float strength = 1;
  for (std::size_t i = at; i-- > 0;) {
    const PackingStep& step = trace.steps[i];
    const bool back = step.event == PackingEvent::taken_back;
    if (i + 1 < at && !back) break;
    std::vector<view::ArenaBox> now;
    view::append_boxes(problem.problem.buffers[step.buffer], step.buffer, step.offset, now);
    for (const view::ArenaBox& box : now)
      if (back)
        paint_box(
            ui, frame, box,
            {with_alpha(ui.theme->warning, 0.35f * strength), with_alpha(ui.theme->warning, strength), 2});
      else
        paint_box(ui, frame, box, {0, box.to > steps.capacity ? ui.theme->bad : ui.theme->highlight, 3});
    if (!back) break;
    strength *= 0.6f;
  }
  paint_level_line(ui, frame, static_cast<double>(steps.capacity), ui.theme->accent, false,
                   fmt::format("capacity {}", format_bytes(steps.capacity)), taken);
}

void draw_status(const Ui& ui, const ArenaSteps& steps, const PackingTrace& trace, std::size_t at) {
  const bool ended = at >= trace.steps.size();
  const bool bad =
      ended ? trace.end != TraceEnd::packed : at > 0 && trace.steps[at - 1].event == PackingEvent::too_high;
  const bool good = ended && trace.end == TraceEnd::packed;
  const bool back = !ended && at > 0 && trace.steps[at - 1].event == PackingEvent::taken_back;
  const ImU32 color = bad ? ui.theme->bad : good ? ui.theme->good : back ? ui.theme->warning : ui.theme->text;
  const std::string count = fmt::format("{} / {}", format_grouped(at), format_grouped(trace.steps.size()));
  const float width = ImGui::GetContentRegionAvail().x;
  const float x = ImGui::GetCursorPosX();
  const FontScope font(ui.fonts.body);
  text_colored(color, elided(shown(step_text(steps, trace, at)), width - text_width(count) - ui.px(14)));
  ImGui::SameLine();
  ImGui::SetCursorPosX(x + width - text_width(count));
  muted(ui, count);
}

void draw_side(Document& document, const Ui& ui, const PackingTrace& trace, bool greedy, ImVec2 size) {
  const ArenaSteps& steps = *document.arena->steps();
  ArenaView& view = document.arena->view;
  const std::size_t at = std::min(view.step, trace.steps.size());
  const ChildScope child(greedy ? "greedy" : "search", size, false,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::AlignTextToFramePadding();
  heading(ui, greedy ? "Greedy" : "Exact search");
  ImGui::SameLine(0, ui.px(10));
  if (greedy) {
    std::vector<std::string_view> ids;
    for (const GreedyRule& rule : greedy_rules()) ids.push_back(rule.id);
    const auto picked = combo(ui, "##rule", ui.px(124), fmt::format("by {}", ids[view.rule]), ids, view.rule);
    tooltip(ui,
            "In what order buffers are placed; each goes where it fits, and stays. \"size\" is "
            "TensorFlow Lite's");
    if (picked) view.rule = *picked;
  } else {
    ImGui::AlignTextToFramePadding();
    const std::string about = trace.attempts > 1
                                  ? fmt::format("the last of {} attempts", format_grouped(trace.attempts))
                                  : std::string("fills the lowest place, takes back what leaves no room");
    name_text(ui, about, 0, ui.theme->muted);
  }
  draw_status(ui, steps, trace, at);
  draw_plot(ui, steps, trace, at, ImGui::GetContentRegionAvail());
}

void draw_controls(Document& document, const Ui& ui, const ArenaSteps& steps) {
  ArenaView& view = document.arena->view;
  const std::size_t length = steps.length();
  ImGui::Dummy({0, ui.px(2)});
  const auto arrow = [&](const char* id, std::string_view hint, float points, bool bar) {
    const bool pressed =
        icon(ui, id, hint, false, [&](ImVec2 at, ImU32 color) { paint_arrow(ui, at, points, bar, color); });
    ImGui::SameLine(0, ui.px(4));
    return pressed;
  };
  if (arrow("first", "To the beginning", -1, true)) step_to(view, 0, length);
  if (arrow("back", "A step back (left arrow)", -1, false)) step_back(view, length);
  if (icon(ui, "play", view.playing ? "Stop (Enter)" : "Play (Enter)", true, [&](ImVec2 at, ImU32 color) {
        if (view.playing)
          paint_pause(ui, at, color);
        else
          paint_arrow(ui, at, 1, false, color);
      }))
    play_or_stop(view, length);
  ImGui::SameLine(0, ui.px(4));
  if (arrow("forward", "A step forward (right arrow)", 1, false)) step_to(view, view.step + 1, length);
  if (arrow("last", "To the end", 1, true)) step_to(view, length, length);
  ImGui::SameLine(0, ui.px(14));
  constexpr std::array<std::string_view, std::size(kArenaSpeeds)> kSpeeds = {"1/s", "2/s", "5/s", "20/s"};
  view.speed = segmented(ui, "speed", kSpeeds, view.speed);
  tooltip(ui, "Steps per second");
  ImGui::SameLine(0, ui.px(14));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  auto step = static_cast<int>(view.step);
  if (ImGui::SliderInt("##step", &step, 0, static_cast<int>(length), "", ImGuiSliderFlags_AlwaysClamp))
    step_to(view, static_cast<std::size_t>(std::max(step, 0)), length);
}

}  // namespace

bool ArenaStepsView::absent(Document& document, const Ui& ui) const {
  ArenaWork& work = *document.arena;
  const std::size_t buffers = work.scene()->of->problem.buffers.size();
  if (buffers > kMostTraced) {
    empty_state(
        ui, "Too many to watch",
        fmt::format("Step mode is for problems of at most {} buffers, these are {}: choose the example",
                    format_grouped(kMostTraced), format_grouped(buffers)));
    return true;
  }
  work.update_steps();
  if (work.steps()) return false;
  if (work.steps_cancelled())
    empty_state(ui, "Cancelled", "Nothing was kept of what was tried: \"Pack again\" does it once more.");
  else if (work.steps_error().empty())
    empty_state(ui, "Packing step by step", "Greedy and search are run once more, and what they do is kept.");
  else
    empty_state(ui, "There is nothing to watch", shown(work.steps_error()));
  return true;
}

void ArenaStepsView::advance(ArenaView& view, const ArenaSteps& steps) {
  constexpr double kLongest = 0.25;  // a window that was hidden does not race
  if (!ImGui::GetIO().WantTextInput && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)) {
    if (list_key_pressed(ListKey::right)) step_to(view, view.step + 1, steps.length());
    if (list_key_pressed(ListKey::left)) step_back(view, steps.length());
    if (list_key_pressed(ListKey::enter)) play_or_stop(view, steps.length());
  }
  if (!view.playing) {
    waited_ = 0;
    return;
  }
  waited_ += std::min(static_cast<double>(ImGui::GetIO().DeltaTime), kLongest);
  const double each = 1 / kArenaSpeeds[view.speed];
  for (; waited_ >= each && view.step < steps.length(); waited_ -= each) ++view.step;
  if (view.step >= steps.length()) view.playing = false;
}

void ArenaStepsView::draw(Document& document, const Ui& ui) {
  if (absent(document, ui)) return;
  const auto steps = document.arena->steps();
  advance(document.arena->view, *steps);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float controls = ImGui::GetFrameHeight() + 2 * ImGui::GetStyle().ItemSpacing.y + ui.px(4);
  const float gap = ui.px(18);
  const ImVec2 side = {(room.x - gap) / 2, room.y - controls};
  if (side.x < ui.px(160) || side.y < ui.px(120)) return;
  draw_side(document, ui, steps->greedy, true, side);
  ImGui::SameLine(0, gap);
  draw_side(document, ui, steps->search, false, side);
  draw_controls(document, ui, *steps);
}

}  // namespace loadline::gui
