// Tab Arena: paints a packing; two runs step by step.
#include "app/gui/panels/arena_plot.h"

#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"
#include "core/view/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <fmt/core.h>

namespace loadline::gui {

// --- Geometry comes from core/view/arena_chart.h; here it gets pixels and colors.

namespace {

constexpr float kBordered = 5;  // pixels from which on neighbors are set apart by a line
constexpr std::size_t kMostName = 80;

// Neighbors of one kind differ a little.
float shade(std::uint32_t buffer) {
  constexpr std::array<float, 5> kShades = {0.90f, 0.74f, 0.82f, 0.66f, 0.78f};
  return kShades[buffer % kShades.size()];
}

// "1.50 MiB", or every byte where that would be the same at two ticks.
std::string byte_label(double byte, double apart) {
  const std::uint64_t bytes = whole(byte);
  if (format_bytes(bytes) == format_bytes(whole(byte + apart))) return format_grouped(bytes);
  return tick_label(bytes);
}

void paint_name(const Ui& ui, const view::Rect& rect, ImVec2 low, ImU32 ground, const std::string& name) {
  const float line = ImGui::GetFontSize(), pad = ui.px(5);
  const auto width = static_cast<float>(rect.w), height = static_cast<float>(rect.h);
  if (height < line + ui.px(2) || width < ui.px(16)) return;
  const std::string cut = elided_name(name, width - 2 * pad);
  const float wide = text_width(cut);
  if (wide > width - 2 * pad || (cut != name && width < ui.px(60))) return;
  put_text({std::round(low.x + (width - wide) / 2), std::round(low.y + (height - line) / 2)}, text_on(ground),
           cut);
}

}  // namespace

ImU32 arena_kind_color(const Theme& theme, ArenaPalette palette, std::uint8_t kind) {
  if (palette == ArenaPalette::each) return theme.category(kind);
  if (palette == ArenaPalette::sizes) return theme.ramp(0.12 + 0.88 * std::min<int>(kind, 7) / 7.0);
  // as the lanes of a pass; then the ring
  constexpr std::array<std::size_t, kArenaKinds - 1> kLives = {0, 5, 6};
  return kind < kLives.size() ? theme.lives[kLives[kind]] : theme.neutral;
}

std::string_view arena_kind_name(ArenaKind kind) {
  constexpr std::array<std::string_view, kArenaKinds> kNames = {"Weights", "Activations", "Temporaries",
                                                                "Ring slots"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::uint64_t whole(double place) {
  constexpr double kMost = 0x1p64 - 2048;  // the last double below
  if (std::isnan(place)) return 0;
  return static_cast<std::uint64_t>(std::clamp(std::floor(place), 0.0, kMost));
}

float ArenaFrame::x_of(double tick) const {
  if (!(sight.x0 < sight.x1)) return area.low.x;
  const double share = std::clamp((tick - sight.x0) / (sight.x1 - sight.x0), 0.0, 1.0);
  return area.low.x + static_cast<float>(share) * area.width();
}

float ArenaFrame::y_of(double byte) const {
  if (!(sight.y0 < sight.y1)) return area.high.y;
  const double share = std::clamp((byte - sight.y0) / (sight.y1 - sight.y0), 0.0, 1.0);
  return area.high.y - static_cast<float>(share) * area.height();
}

double ArenaFrame::tick_at(float x) const {
  const auto share = static_cast<double>((x - area.low.x) / area.width());
  return sight.x0 + share * (sight.x1 - sight.x0);
}

double ArenaFrame::byte_at(float y) const {
  const auto share = static_cast<double>((area.high.y - y) / area.height());
  return sight.y0 + share * (sight.y1 - sight.y0);
}

void paint_arena_bytes(const Ui& ui, const ArenaFrame& frame) {
  const FontScope font(ui.fonts.small);
  const PlotArea& area = frame.area;
  const double shown = frame.sight.y1 - frame.sight.y0;
  const double wanted = static_cast<double>(std::clamp(area.height() / ui.px(40), 2.0f, 10.0f));
  const double apart = std::max(1.0, std::exp2(std::ceil(std::log2(shown / wanted))));
  for (double at = std::ceil(frame.sight.y0 / apart) * apart; at <= frame.sight.y1 && at + apart > at;
       at += apart) {
    const float y = std::round(frame.y_of(at));
    ImGui::GetWindowDrawList()->AddLine({area.low.x, y}, {area.high.x, y}, ui.theme->grid,
                                        std::max(1.0f, ui.px(1)));
    put_text_before(area.low.x - ui.px(8), y - ImGui::GetFontSize() / 2, ui.theme->muted,
                    byte_label(at, apart));
  }
}

void paint_arena_ticks(const Ui& ui, const ArenaFrame& frame, const PlotArea& area, std::string_view tick) {
  for (const double at : view::decimal_ticks(frame.sight.x0, frame.sight.x1, tick_room(ui, area)))
    if (at == std::floor(at))
      paint_tick(ui, area, frame.x_of(at), fmt::format("{} {}", tick, format_grouped(whole(at))));
}

void paint_arena(const Ui& ui, const ArenaFrame& frame, const view::ArenaPicture& picture,
                 const ArenaProblem& problem) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const ImVec2 origin = frame.area.low;
  const auto corner = [&](double x, double y) {
    return origin + ImVec2{static_cast<float>(x), static_cast<float>(y)};
  };
  const auto opposite = [&](const view::Rect& rect) { return corner(rect.x + rect.w, rect.y + rect.h); };
  std::array<ImU32, view::kMostArenaKinds> colors = {};
  for (std::uint8_t kind = 0; kind < colors.size(); ++kind)
    colors[kind] = arena_kind_color(*ui.theme, problem.palette, kind);
  for (const view::ArenaCells& cells : picture.cells) {
    const float strength = 0.15f + 0.65f * static_cast<float>(cells.eighths) / 8;
    draw->AddRectFilled(corner(cells.rect.x, cells.rect.y), opposite(cells.rect),
                        mix(ui.theme->panel, colors[cells.kind], strength));
  }
  const auto bordered = static_cast<double>(ui.px(kBordered));
  for (const view::ArenaRect& rect : picture.rects) {
    const ImU32 fill = mix(ui.theme->panel, colors[problem.kinds[rect.buffer]], shade(rect.buffer));
    const ImVec2 low = corner(rect.rect.x, rect.rect.y), high = opposite(rect.rect);
    draw->AddRectFilled(low, high, fill);
    if (rect.rect.w < bordered || rect.rect.h < bordered) continue;
    draw->AddRect(low, high, ui.theme->panel, 0, 0, std::max(1.0f, ui.px(1)));
    if (rect.rect.w >= static_cast<double>(ui.px(16)) && rect.rect.h >= static_cast<double>(ui.px(12)))
      paint_name(ui, rect.rect, low, fill, shown(beginning(problem.name(rect.buffer), kMostName)));
  }
}

void paint_box(const Ui& ui, const ArenaFrame& frame, const view::ArenaBox& box, const BoxPaint& paint,
               std::string_view name) {
  const ImVec2 low = {frame.x_of(static_cast<double>(box.lower)), frame.y_of(static_cast<double>(box.to))};
  ImVec2 high = {frame.x_of(static_cast<double>(box.upper)), frame.y_of(static_cast<double>(box.from))};
  const auto& sight = frame.sight;
  if (static_cast<double>(box.upper) <= sight.x0 || static_cast<double>(box.lower) >= sight.x1 ||
      static_cast<double>(box.to) <= sight.y0 || static_cast<double>(box.from) >= sight.y1)
    return;
  high = {std::max(high.x, low.x + 2), std::max(high.y, low.y + 2)};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (paint.fill != 0) draw->AddRectFilled(low, high, paint.fill);
  if (paint.line != 0) draw->AddRect(low, high, paint.line, 0, 0, std::max(1.0f, ui.px(paint.thickness)));
  if (name.empty()) return;
  const FontScope font(ui.fonts.small);
  const view::Rect rect = {0, 0, static_cast<double>(high.x - low.x), static_cast<double>(high.y - low.y)};
  paint_name(ui, rect, low, paint.fill != 0 ? paint.fill : ui.theme->panel,
             shown(beginning(name, kMostName)));
}

void paint_level_line(const Ui& ui, const ArenaFrame& frame, double byte, ImU32 color, bool dashed,
                      std::string_view label, std::vector<PlotArea>& taken) {
  if (byte < frame.sight.y0 || byte > frame.sight.y1) return;
  const float y = std::round(frame.y_of(byte));
  const float dash = dashed ? ui.px(6) : frame.area.width();
  paint_dashed({frame.area.low.x, y}, {frame.area.high.x, y}, color, dash, dash, std::max(1.0f, ui.px(1.5f)));
  const FontScope font(ui.fonts.small);
  const float width = text_width(label) + ui.px(12), height = ImGui::GetFontSize() + ui.px(4);
  const float right = frame.area.high.x - width, left = frame.area.low.x;
  const float above = y - height, below = y + ui.px(1);
  for (const ImVec2 low : {ImVec2{right, above}, {left, above}, {right, below}, {left, below}}) {
    const PlotArea box = {low, {low.x + width, low.y + height}};
    if (box.low.y < frame.area.low.y || box.high.y > frame.area.high.y) continue;
    if (std::ranges::any_of(taken, [&](const PlotArea& other) { return box.overlaps(other); })) continue;
    taken.push_back(box);
    ImGui::GetWindowDrawList()->AddRectFilled(box.low, box.high, color, ui.px(3));
    return put_text(box.low + ImVec2{ui.px(6), ui.px(2)}, text_on(color), label);
  }
}

// --- Both plots show the same step number; the shorter run waits at its end.

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
std::vector<view::ArenaBox> boxes_after(const packing::Problem& problem, const packing::PackingTrace& trace,
                                        std::size_t at) {
  std::vector<view::ArenaBox> boxes;
  const auto placed = packing::placed_after(trace, problem.buffers.size(), at);
  for (std::uint32_t i = 0; i < placed.size(); ++i)
    if (placed[i]) view::append_boxes(problem.buffers[i], i, *placed[i], boxes);
  return boxes;
}

void draw_plot(const Ui& ui, const ArenaSteps& steps, const packing::PackingTrace& trace, std::size_t at,
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
    const packing::PackingStep& step = trace.steps[i];
    const bool back = step.event == packing::PackingEvent::taken_back;
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

void draw_status(const Ui& ui, const ArenaSteps& steps, const packing::PackingTrace& trace, std::size_t at) {
  const bool ended = at >= trace.steps.size();
  const bool bad = ended ? trace.end != packing::TraceEnd::packed
                         : at > 0 && trace.steps[at - 1].event == packing::PackingEvent::too_high;
  const bool good = ended && trace.end == packing::TraceEnd::packed;
  const bool back = !ended && at > 0 && trace.steps[at - 1].event == packing::PackingEvent::taken_back;
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

void draw_side(Document& document, const Ui& ui, const packing::PackingTrace& trace, bool greedy,
               ImVec2 size) {
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
    for (const packing::GreedyRule& rule : packing::greedy_rules()) ids.push_back(rule.id);
    const auto picked = combo(ui, "##rule", ui.px(124), fmt::format("by {}", ids[view.rule]), ids, view.rule);
    tooltip(ui,
            "In what order buffers are placed; each goes where it fits, and stays. \"size\" is "
            "TensorFlow Lite's");
    if (picked) view.rule = *picked;
  } else {
    ImGui::AlignTextToFramePadding();
    const std::string about = trace.attempts > 1
                                  ? fmt::format("the last of {} attempts", format_grouped(trace.attempts))
                                  : std::string("places at the lowest offset; backtracks");
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
  if (arrow("first", "First step", -1, true)) step_to(view, 0, length);
  if (arrow("back", "Previous step (left arrow)", -1, false)) step_back(view, length);
  if (icon(ui, "play", view.playing ? "Stop (Enter)" : "Play (Enter)", true, [&](ImVec2 at, ImU32 color) {
        if (view.playing)
          paint_pause(ui, at, color);
        else
          paint_arrow(ui, at, 1, false, color);
      }))
    play_or_stop(view, length);
  ImGui::SameLine(0, ui.px(4));
  if (arrow("forward", "Next step (right arrow)", 1, false)) step_to(view, view.step + 1, length);
  if (arrow("last", "Last step", 1, true)) step_to(view, length, length);
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
        ui, "Too many buffers for step mode",
        fmt::format("Step mode is for problems of at most {} buffers, these are {}: choose the example",
                    format_grouped(kMostTraced), format_grouped(buffers)));
    return true;
  }
  work.update_steps();
  if (work.steps()) return false;
  if (work.steps_canceled())
    empty_state(ui, "Canceled", "The steps were discarded. \"Pack again\" repeats the packing.");
  else if (work.steps_error().empty())
    empty_state(ui, "Packing step by step",
                "Greedy and exact search run again, and their steps are recorded.");
  else
    empty_state(ui, "There are no steps", shown(work.steps_error()));
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
