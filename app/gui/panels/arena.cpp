// The arena panel: the packing, its quality and the place of every buffer; in step mode, how it was found.
#include "app/gui/panels/arena_controls.h"
#include "app/gui/panels/arena_plot.h"
#include "app/gui/panels/arena_steps.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/meta_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr double kHeadroom = 1.07;
constexpr float kStrip = 52;  // of what is taken over time
constexpr float kStripGap = 10;
constexpr std::size_t kMostName = 120;

void draw_state(Document& document, const Ui& ui) {
  ArenaWork& work = *document.arena;
  if (work.opening()) return empty_state(ui, "Reading the problem", "");
  if (arena_waits(document))
    return empty_state(ui, "Working out what there is to pack",
                       "The plan is being run on the modelled machine.");
  if (work.packing()) return empty_state(ui, "Packing", "Every buffer gets an offset in the arena.");
  if (!work.cancelled()) return empty_state(ui, "It cannot be packed", shown(work.error()));
  empty_state(ui, "Cancelled", "Nothing was packed.");
}

class ArenaPanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void forget() override;

 private:
  struct Layout {
    ArenaFrame plot;
    PlotArea strip;
    double top = 1;  // bytes at the upper edge when everything is in sight
  };

  void draw_plot(Document& document, const Ui& ui, ImVec2 size);
  Layout layout(const Document& document, const Ui& ui, ImVec2 low, ImVec2 size) const;
  void arrange(const Ui& ui, const Layout& at);
  std::optional<float> paint_binding(const Ui& ui, const Layout& at) const;  // where it ends
  void paint_strip(const Ui& ui, const Layout& at) const;
  void paint_levels(const Ui& ui, const Layout& at, std::vector<PlotArea>& taken) const;
  void paint_selection(const Document& document, const Ui& ui, const Layout& at);
  void handle_mouse(Document& document, const Ui& ui, const Layout& at);
  void describe(const Ui& ui, std::uint32_t buffer, std::uint64_t tick) const;
  void describe_tick(const Ui& ui, double tick, std::string_view what) const;
  void outline(const Ui& ui, const Layout& at, std::uint32_t buffer, ImU32 color, float thickness) const;
  const view::ArenaChart& chart() const { return scene_->charts[arena_]; }
  const ArenaPacking& packing() const { return scene_->packing.arenas[arena_]; }

  ArenaControls controls_;
  ArenaStepsView steps_;
  std::shared_ptr<const ArenaScene> scene_;
  std::uint32_t arena_ = 0;
  // geometry, and of what it is
  view::ArenaPicture picture_;
  std::vector<view::CurveColumn> taken_, tops_;
  std::shared_ptr<const ArenaScene> arranged_;
  std::uint32_t arranged_arena_ = 0;
  view::ArenaSight sight_;
  ImVec2 size_ = {};
  // buffers of the tensor selected
  std::shared_ptr<const ArenaScene> selected_of_;
  std::optional<TensorId> selected_;
  std::vector<std::uint32_t> selected_buffers_;
};

void ArenaPanel::forget() {
  scene_.reset();
  arranged_.reset();
  selected_of_.reset();
  picture_ = {};
  steps_.forget();
}

void ArenaPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  show_arena(document);
  if (!workspace.lesson.presents) controls_.draw(workspace, ui);
  scene_ = document.arena->scene();
  if (!scene_) return draw_state(document, ui);
  arena_ = std::min(document.arena->view.arena, scene_->of->arenas - 1);
  if (chart().boxes().empty())
    return empty_state(ui, "Nothing to pack", "No buffer of it has both bytes and a lifetime.");
  ImGui::Dummy({0, ui.px(2)});
  if (document.arena->view.steps) return steps_.draw(document, ui);
  arena_figures(document, ui, *scene_, arena_);
  arena_legend(ui, *scene_, arena_);
  // ticks that are one double have no room between them
  if (static_cast<double>(chart().first_tick()) >= static_cast<double>(chart().last_tick()))
    return empty_state(
        ui, "Too far out to draw",
        fmt::format("Ticks {} to {} are too close together for numbers as large as that.",
                    format_grouped(chart().first_tick()), format_grouped(chart().last_tick())));
  draw_plot(document, ui, ImGui::GetContentRegionAvail());
}

ArenaPanel::Layout ArenaPanel::layout(const Document& document, const Ui& ui, ImVec2 low, ImVec2 size) const {
  Layout at;
  const float left = std::round(low.x + ui.px(kPlotAxisWidth)), right = std::round(low.x + size.x - ui.px(4));
  const float bottom = std::round(low.y + size.y - ui.px(kPlotAxisHeight));
  const float strip = size.y > ui.px(220) ? ui.px(kStrip) : 0;
  at.strip = {{left, bottom - strip}, {right, bottom}};
  at.plot.area = {{left, std::round(low.y + ui.px(6))},
                  {right, bottom - strip - (strip > 0 ? ui.px(kStripGap) : 0)}};
  std::uint64_t top = std::max<std::uint64_t>({packing().height, packing().lower_bound, chart().height(), 1});
  // a capacity far above would leave the packing flat
  if (const auto capacity = scene_->options.capacity; capacity && *capacity / 2 <= top)
    top = std::max(top, *capacity);
  at.top = static_cast<double>(top) * kHeadroom;
  const ArenaView& view = document.arena->view;
  const auto first = static_cast<double>(chart().first_tick()),
             last = static_cast<double>(chart().last_tick());
  at.plot.sight = {first + view.time.from * (last - first), first + view.time.to * (last - first),
                   view.height.from * at.top, view.height.to * at.top};
  return at;
}

void ArenaPanel::arrange(const Ui& ui, const Layout& at) {
  const PlotArea& area = at.plot.area;
  const ImVec2 size = area.high - area.low;
  if (arranged_ == scene_ && arranged_arena_ == arena_ && sight_ == at.plot.sight && size_.x == size.x &&
      size_.y == size.y)
    return;
  arranged_ = scene_;
  arranged_arena_ = arena_;
  sight_ = at.plot.sight;
  size_ = size;
  picture_ = view::draw_arena(chart().boxes(), scene_->of->kinds, sight_, static_cast<double>(size.x),
                              static_cast<double>(size.y), static_cast<double>(ui.px(2)));
  const auto columns = static_cast<std::size_t>(std::max(1.0f, size.x));
  taken_ = view::step_columns(chart().taken(), sight_.x0, sight_.x1, columns);
  tops_ = view::step_columns(chart().tops(), sight_.x0, sight_.x1, columns);
}

void ArenaPanel::draw_plot(Document& document, const Ui& ui, ImVec2 size) {
  if (size.x < ui.px(200) || size.y < ui.px(76))
    return ImGui::Dummy({std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
  const ImVec2 low = ImGui::GetCursorScreenPos();
  plot_area("plot", size);
  Layout at = layout(document, ui, low, size);
  ArenaView& view = document.arena->view;
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const auto first = static_cast<double>(chart().first_tick());
    const double length = static_cast<double>(chart().last_tick()) - first;
    zoom_with_mouse(view.time, view.height, (at.plot.tick_at(mouse.x) - first) / length,
                    at.plot.byte_at(mouse.y) / at.top, at.plot.area.width(), at.plot.area.height());
    at = layout(document, ui, low, size);
  }
  arrange(ui, at);
  ImGui::GetWindowDrawList()->AddRectFilled(at.plot.area.low, at.plot.area.high,
                                            with_alpha(ui.theme->raised, 0.35f));
  paint_arena_bytes(ui, at.plot);
  ImGui::PushClipRect(at.plot.area.low, at.plot.area.high, true);
  paint_arena(ui, at.plot, picture_, *scene_->of);
  ImGui::PopClipRect();
  if (at.strip.high.y > at.strip.low.y) paint_strip(ui, at);
  const auto binding = paint_binding(ui, at);
  paint_selection(document, ui, at);
  std::vector<PlotArea> taken;
  paint_levels(ui, at, taken);
  if (binding)
    paint_flag(ui, at.plot.area, *binding, ui.theme->good, "binding: the lower bound is here", taken);
  paint_arena_ticks(ui, at.plot, at.strip, scene_->of->tick);
  handle_mouse(document, ui, at);
}

// Where the lower bound comes from; and the buffer that ends highest, where that is higher.
std::optional<float> ArenaPanel::paint_binding(const Ui& ui, const Layout& at) const {
  const auto highest = chart().highest();
  if (highest && packing().height > packing().lower_bound) outline(ui, at, *highest, ui.theme->warning, 2);
  const auto lower = static_cast<double>(packing().bound_ticks.lower);
  const auto upper = static_cast<double>(packing().bound_ticks.upper);
  if (lower >= upper || upper <= at.plot.sight.x0 || lower >= at.plot.sight.x1) return std::nullopt;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float left = std::round(at.plot.x_of(lower));
  const float right = std::max(std::round(at.plot.x_of(upper)), left + ui.px(2));
  draw->AddRectFilled({left, at.plot.area.low.y}, {right, at.strip.high.y},
                      with_alpha(ui.theme->good, 0.16f));
  for (const float x : {left, right})
    draw->AddLine({x, at.plot.area.low.y}, {x, at.strip.high.y}, with_alpha(ui.theme->good, 0.8f),
                  std::max(1.0f, ui.px(1)));
  return right - ui.px(6);
}

void ArenaPanel::paint_strip(const Ui& ui, const Layout& at) const {
  const double most = std::max(1.0, static_cast<double>(chart().height())) * kPlotHeadroom;
  ImGui::GetWindowDrawList()->AddRectFilled(at.strip.low, at.strip.high, with_alpha(ui.theme->raised, 0.35f));
  paint_level(ui, at.strip, most, tops_, mix(ui.theme->panel, ui.theme->warning, 0.7f));
  paint_level(ui, at.strip, most, taken_, mix(ui.theme->panel, ui.theme->accent, 0.85f));
  const FontScope font(ui.fonts.small);
  const float right = at.strip.low.x - ui.px(8), middle = at.strip.low.y + at.strip.height() / 2;
  put_text_before(right, middle - ImGui::GetFontSize(), ui.theme->warning, "free");
  put_text_before(right, middle, ui.theme->accent, "taken");
}

void ArenaPanel::paint_levels(const Ui& ui, const Layout& at, std::vector<PlotArea>& taken) const {
  const ArenaPacking& arena = packing();
  const auto level = [&](std::uint64_t bytes, ImU32 color, bool dashed, const std::string& label) {
    paint_level_line(ui, at.plot, static_cast<double>(bytes), color, dashed, label, taken);
  };
  if (scene_->options.capacity)
    level(*scene_->options.capacity, ui.theme->accent, false,
          fmt::format("capacity {}", format_bytes(*scene_->options.capacity)));
  if (arena.height == arena.lower_bound)
    return level(arena.height, ui.theme->good, true,
                 fmt::format("height = lower bound {}", format_bytes(arena.height)));
  level(arena.height, ui.theme->warning, true, fmt::format("height {}", format_bytes(arena.height)));
  level(arena.lower_bound, ui.theme->good, true,
        fmt::format("lower bound {}", format_bytes(arena.lower_bound)));
}

void ArenaPanel::outline(const Ui& ui, const Layout& at, std::uint32_t buffer, ImU32 color,
                         float thickness) const {
  std::vector<view::ArenaBox> boxes;
  view::append_boxes(scene_->of->problem.buffers[buffer], buffer, scene_->packing.offsets[buffer], boxes);
  for (const view::ArenaBox& box : boxes) paint_box(ui, at.plot, box, {0, color, thickness});
}

void ArenaPanel::paint_selection(const Document& document, const Ui& ui, const Layout& at) {
  const ArenaProblem& problem = *scene_->of;
  if (!document.selected_tensor() || problem.blocks.empty()) return;
  if (selected_of_ != scene_ || selected_ != document.selected_tensor()) {
    selected_of_ = scene_;
    selected_ = document.selected_tensor();
    selected_buffers_.clear();
    const StorageId storage = problem.of.model->tensor(*selected_).storage;
    for (std::uint32_t i = 0; i < problem.blocks.size(); ++i)
      if (problem.of.projection->plan.block(problem.blocks[i]).storage == storage)
        selected_buffers_.push_back(i);
  }
  for (const std::uint32_t buffer : selected_buffers_) outline(ui, at, buffer, ui.theme->highlight, 2.5f);
}

void ArenaPanel::handle_mouse(Document& document, const Ui& ui, const Layout& at) {
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (mouse.x < at.strip.low.x || mouse.x >= at.strip.high.x || mouse.y >= at.strip.high.y) return;
  const double tick = std::floor(at.plot.tick_at(mouse.x));
  const float x = std::round(mouse.x);
  ImGui::GetWindowDrawList()->AddLine({x, at.plot.area.low.y}, {x, at.strip.high.y},
                                      with_alpha(ui.theme->text, 0.35f));
  if (mouse.y < at.plot.area.low.y || tick < 0) return;
  if (mouse.y >= at.plot.area.high.y) return hover_card(ui, [&] { describe_tick(ui, tick, "Everything"); });
  const double byte = std::floor(at.plot.byte_at(mouse.y));
  if (byte < 0) return;
  const auto buffer = chart().buffer_at(whole(tick), whole(byte));
  if (!buffer) return hover_card(ui, [&] { describe_tick(ui, tick, "Free"); });
  outline(ui, at, *buffer, ui.theme->highlight, 2);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    if (const auto tensor = scene_->of->tensor(*buffer)) document.select(*tensor);
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Right))
    hover_card(ui, [&] { describe(ui, *buffer, whole(tick)); });
}

void ArenaPanel::describe(const Ui& ui, std::uint32_t buffer, std::uint64_t tick) const {
  const ArenaProblem& problem = *scene_->of;
  const Buffer& row = problem.problem.buffers[buffer];
  const std::uint64_t offset = scene_->packing.offsets[buffer];
  const auto name = [&](std::uint32_t of) { return shown(beginning(problem.name(of), kMostName)); };
  text(name(buffer));
  muted(ui, fmt::format("{} ({} bytes) at offset {}", format_bytes(row.size), format_grouped(row.size),
                        format_grouped(offset)));
  muted(ui, fmt::format("alive from {} {} to {}{}", problem.tick, format_grouped(row.lower),
                        format_grouped(row.upper - 1), row.gaps.empty() ? "" : ", with gaps"));
  if (row.offset) muted(ui, "pinned there by the problem");
  if (chart().highest() == buffer) muted(ui, "ends highest of all");
  const auto neighbour = [&](std::string_view where, std::optional<std::uint32_t> other) {
    muted(ui, fmt::format("{} {}", where, other ? name(*other) : "nothing"));
  };
  neighbour("above it:", chart().buffer_at(tick, offset + row.size));
  if (offset > 0) neighbour("below it:", chart().buffer_at(tick, offset - 1));
}

void ArenaPanel::describe_tick(const Ui& ui, double tick, std::string_view what) const {
  const double taken = view::value_at(chart().taken(), tick), top = view::value_at(chart().tops(), tick);
  const auto bytes = [](double value) { return format_bytes(whole(value)); };
  text(fmt::format("{} at {} {}", what, scene_->of->tick, format_grouped(whole(tick))));
  muted(ui, fmt::format("{} taken, highest end {}", bytes(taken), bytes(top)));
  muted(ui, fmt::format("{} free below it{}", bytes(top - taken),
                        top > 0 ? fmt::format(", {}", percent_text((top - taken) / top)) : ""));
}

}  // namespace

std::unique_ptr<Panel> make_arena_panel() { return std::make_unique<ArenaPanel>(); }

}  // namespace loadline::gui
