// The memory timeline of the chosen load, which is always in sight: curves, budgets, peaks, the time cursor.
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// The button that adds the first token: whether a forward pass follows the load.
void draw_first_token(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, 2> kEnds = {"Load", "With forward pass"};
  Asked asked = document.load.asked();
  asked.first_token = segmented(ui, "end", kEnds, asked.first_token ? 1 : 0) == 1;
  const load::LoadRequest& pass = asked.request;
  tooltip(ui,
          fmt::format(
              "Whether a forward pass follows the load: {} x {} tokens after {}, as set in the panel Forward."
              " The pass adds steps but no time.",
              pass.batch, format_grouped(pass.sequence), format_grouped(pass.past)));
  if (asked.first_token != document.load.asked().first_token)
    workspace.attempt([&] { document.load.ask(asked); });
}

bool has_pass(const Document& document) {
  return document.forward.scene.value() && document.forward.graph() != nullptr;
}

constexpr std::string_view kWhole = "Whole load";

class TimelinePanel final : public Panel {
 public:
  TimelinePanel() : Panel("Shows the memory of the load, step by step.") {}
  void forget() override {
    projection_.reset();
    ghost_.reset();
    upload_.reset();
  }

 private:
  // What the curves were made of.
  struct Key {
    view::RunAxis axis = view::RunAxis::steps;
    double length = 0;
    TimelineShape shape = TimelineShape::split;
    std::optional<std::uint64_t> device, host, unified;
    bool operator==(const Key&) const = default;
  };
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void refresh(const Workspace& workspace);
  void draw_header(Workspace& workspace, const Ui& ui);
  void draw_play(Document& document, const Ui& ui);
  static void draw_beside(Document& document, const Ui& ui);
  void draw_legend(const Ui& ui, float right);
  void draw_plot(Document& document, const Ui& ui, ImVec2 size);
  void draw_peaks(const Ui& ui, const TimelinePlot::Frame& frame);
  void draw_moment(const Document& document, const Ui& ui, ImVec2 at, float width) const;
  void label_failure(const Ui& ui, const TimelinePlot::Frame& frame, const Document::Failure& failure);
  void draw_selection(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame, float top);
  void handle_mouse(Document& document, const Ui& ui, const TimelinePlot::Frame& frame);
  void describe(const Document& document, const Ui& ui, std::size_t step) const;
  void refresh_selected(graph::StorageId storage);
  std::optional<plan::BlockId> block_of(const Document& document, graph::ValueId id);
  void draw_value(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame,
                  graph::ValueId id);
  double x_of(std::size_t step) const {
    return view::x_of_step(projection_->timeline, projection_->plan.steps.size(), key_.axis, step);
  }

  std::shared_ptr<const load::Projection> projection_, ghost_;
  std::shared_ptr<const UploadResult> upload_;
  Key key_;
  std::optional<TimelineShape> shape_;    // until the user chooses, as the kind of memory has it
  std::optional<PlotArea> failure_flag_;  // where it was drawn last
  TimelinePlot plot_;
  std::shared_ptr<const load::Projection> selected_of_;  // what the next two are of
  std::optional<graph::StorageId> selected_storage_;
  std::vector<plan::BlockId> selected_blocks_;
  std::shared_ptr<const load::Projection> places_of_;  // what the next one is of
  std::optional<plan::PassPlaces> places_;
};

void TimelinePanel::refresh(const Workspace& workspace) {
  const Document& document = workspace.document();
  const auto upload = workspace.transfers.uploaded(workspace.document());
  const load::LoadMemory& memory = document.load.memory();
  const bool unified = memory.kind == plan::MemoryKind::unified;
  const std::shared_ptr<const load::Projection> beside = document.load.beside.value();
  const view::RunAxis axis = document.axis_unit();
  const Key key = {axis,
                   axis_length(workspace),
                   shape_.value_or(unified ? TimelineShape::stacked : TimelineShape::split),
                   memory.budget.device,
                   memory.budget.host,
                   memory.budget.unified};
  const std::shared_ptr<const load::Projection> ghost =
      document.advice.previewed.value() ? document.advice.previewed.value() : beside;
  if (document.load.projection.value() == projection_ && upload == upload_ && key == key_ && ghost == ghost_)
    return;
  projection_ = document.load.projection.value();
  upload_ = upload;
  key_ = key;
  const std::uint64_t weights = document.model->weight_bytes;
  TimelineCurves curves = timeline_curves(*projection_, upload_.get(), memory.budget, axis, key.shape,
                                          document.load.arrivals.get());
  curves.length = key.length;
  ghost_ = ghost;
  std::optional<TimelineCurves> outline;
  if (ghost_) {
    outline = timeline_curves(*ghost_, nullptr, memory.budget, axis, key.shape);
    if (axis == view::RunAxis::seconds) outline->length = key.length;
  }
  plot_.set_curves(std::move(curves), {{weights, "weights"}, {2 * weights, "2 x weights"}});
  plot_.set_ghost(std::move(outline),
                  ghost_ == beside ? std::string(document.load.beside_method()) : "as advised");
}

void TimelinePanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.load.projection.value())
    return document.load.projection.busy()
               ? empty_state(ui, "Projecting the load", "The plan is being run on the modeled machine.")
               : empty_state(ui, "This load could not be projected", "The message above says why.");
  refresh(workspace);
  draw_header(workspace, ui);
  draw_plot(document, ui, ImGui::GetContentRegionAvail());
}

void TimelinePanel::draw_header(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, 2> kShapes = {"Split", "Stacked"};
  constexpr std::array<std::string_view, 2> kEnds = {"Load", "With forward pass"};
  const FontScope font(ui.fonts.small);
  const StyleScope frame(ImGuiStyleVar_FramePadding, {ui.px(6), ui.px(3)});
  const float gap = ui.px(6);
  const bool pass = has_pass(document), zoomed = !document.axis.range.is_whole();
  const float whole = text_width(kWhole) + 2 * ImGui::GetStyle().FramePadding.x;
  const float controls = (zoomed ? whole + gap : 0) + segmented_width(ui, kShapes) + gap +
                         segmented_width(ui, kAxisUnits) + (pass ? gap + segmented_width(ui, kEnds) : 0);
  const float top = ImGui::GetCursorPosY();
  const float start = ImGui::GetCursorPosX();
  const float right = start + ImGui::GetContentRegionAvail().x - controls;
  draw_play(document, ui);
  draw_legend(ui, right - ui.px(12));
  ImGui::SameLine(right);
  ImGui::SetCursorPos({right, top});
  if (zoomed) {
    if (button(ui, kWhole)) document.axis.range = {};
    tooltip(ui, "Shows the whole time axis again (0, or a double click)");
    ImGui::SameLine(0, gap);
  }
  const TimelineShape shape = key_.shape;
  const auto picked =
      static_cast<TimelineShape>(segmented(ui, "shape", kShapes, static_cast<std::size_t>(shape)));
  tooltip(ui, "Split: the device above the axis, the host below it. Stacked: all memory as one sum.");
  if (picked != shape) shape_ = picked;
  ImGui::SameLine(0, gap);
  unit_switch(ui, document);
  if (!pass) return;
  ImGui::SameLine(0, gap);
  draw_first_token(workspace, ui);
}

void TimelinePanel::draw_play(Document& document, const Ui& ui) {
  const bool pressed = icon_button(
      ui, "play", document.time.playing() ? "Stop (Space)" : "Play the load (Space)",
      [&](ImVec2 center, ImU32 ink) {
        ImDrawList* draw = ImGui::GetWindowDrawList();
        const float r = ui.px(5);
        if (!document.time.playing())
          return draw->AddTriangleFilled({center.x - r * 0.7f, center.y - r},
                                         {center.x - r * 0.7f, center.y + r}, {center.x + r, center.y}, ink);
        draw->AddRectFilled({center.x - r, center.y - r}, {center.x - r / 3, center.y + r}, ink);
        draw->AddRectFilled({center.x + r / 3, center.y - r}, {center.x + r, center.y + r}, ink);
      });
  if (pressed) document.time.play(!document.time.playing());
  ImGui::SameLine(0, ui.px(2));
  const std::string speed = fmt::format("{:g}x", document.time.speed);
  if (button(ui, speed, ButtonKind::ghost))
    document.time.speed = document.time.speed >= 4 ? 0.5 : document.time.speed * 2;
  tooltip(ui, "Speed of the play; J slower, L faster");
  ImGui::SameLine(0, ui.px(4));
  draw_beside(document, ui);
  ImGui::SameLine(0, ui.px(10));
}

// The method that is played in step with the load.
void TimelinePanel::draw_beside(Document& document, const Ui& ui) {
  std::vector<std::string> names = {"alone"};
  std::size_t now = 0;
  for (const load::Method& method : load::methods()) {
    if (method.id == shown_method(document.load.asked()).id) continue;  // it plays already
    if (!is_offered(document, method)) continue;
    if (method.id == document.load.beside_method()) now = names.size();
    names.emplace_back(method.id);
  }
  const std::string preview = now == 0 ? "alone" : "and " + names[now];
  const auto picked = combo(ui, "##beside", ui.px(now == 0 ? 76 : 150), preview, names, now);
  tooltip(ui, "Second method: its outline is drawn over the curve, its map beside the map");
  if (picked) document.load.set_beside(*picked == 0 ? "" : names[*picked]);
}

void TimelinePanel::draw_legend(const Ui& ui, float right) {
  const auto room_for = [&](float width) { return ImGui::GetCursorPosX() + width <= right; };
  // where not all have room, the figures go: the plot names its peaks
  float all = 0;
  for (const plan::Space space : plan::kSpaceOrder)
    if (const std::uint64_t bytes = projection_->timeline.peaks[plan::index(space)].bytes; bytes > 0)
      all += legend_width(ui, capitalized(plan::space_title(space)), format_bytes(bytes)) + ui.px(16);
  const bool figures = room_for(all);
  bool first = true;
  const float top = ImGui::GetCursorPosY();
  const auto entry = [&](ImU32 color, std::string_view words, const std::string& figure,
                         const std::string& hint) {
    if (!first) ImGui::SameLine(0, ui.px(16));
    if (!room_for(legend_width(ui, words, figure))) return ImGui::Dummy({0, 0});
    first = false;
    ImGui::SetCursorPosY(top + ImGui::GetStyle().FramePadding.y);  // in line with the buttons
    legend_entry(ui, color, words, figure);
    tooltip(ui, hint);
  };
  for (const plan::Space space : plan::kSpaceOrder) {
    const plan::Peak& peak = projection_->timeline.peaks[plan::index(space)];
    if (peak.bytes == 0) continue;
    entry(ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)),
          figures ? format_bytes(peak.bytes) : "",
          fmt::format("{}: at most {} bytes, first at step {}{}", capitalized(plan::space_title(space)),
                      format_grouped(peak.bytes), format_grouped(peak.step),
                      space == plan::Space::page_cache
                          ? ". Mapped pages can be dropped: budgets do not count them"
                          : ""));
  }
  if (plot_.shows_waiting())
    entry(
        allocated_color(*ui.theme, largest_space(*projection_)), "pale: not yet arrived", "",
        "A block is allocated at once, its bytes arrive copy by copy: pale is what is allocated and waits for"
        " its bytes, full color is what has arrived");
  if (!plot_.curves().sides[0].measured.empty() || !plot_.curves().sides[1].measured.empty())
    entry(ui.theme->highlight, "measured: allocated", "", "What the upload allocated");
  if (!plot_.curves().process.empty())
    entry(ui.theme->good, "measured: process", "", "What the system counted for this process");
  if (!plot_.curves().driver.empty())
    entry(ui.theme->accent, "measured: driver", "", "What the driver counted on the device");
}

void TimelinePanel::draw_peaks(const Ui& ui, const TimelinePlot::Frame& frame) {
  const auto& sides = plot_.curves().sides;
  const bool stacked = plot_.curves().shape == TimelineShape::stacked;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const plan::Peak& peak = sides[i].peak;
    if (peak.bytes == 0) continue;
    const std::string_view what = stacked ? "peak" : i == 0 ? "device peak" : "host peak";
    plot_.mark_peak(ui, frame, i, x_of(peak.step), fmt::format("{} {}", what, format_bytes(peak.bytes)));
  }
}

void TimelinePanel::draw_plot(Document& document, const Ui& ui, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float strip = document.selected_tensor() && size.y > ui.px(90) ? ui.px(20) : 0;
  if (size.x < ui.px(140) || size.y < ui.px(50)) return ImGui::Dummy(size);
  plot_area("plot", size);
  TimelinePlot::Frame frame{
      inside_axes(ui, at, at + size - ImVec2{ui.px(kLevelLabels), strip}, kPlotAxisWidth),
      document.axis.range};
  if (const auto& panel = document.axis.panel) {  // the panel above is this axis unfolded
    frame.area.low.x = panel->left;
    frame.area.high.x = panel->right;
  }
  document.axis.room = PlotEdges{frame.area.low.x, frame.area.high.x};
  handle_mouse(document, ui, frame);
  frame.range = document.axis.range;
  ImGui::PushClipRect(at, at + size, true);
  const float beside = frame.area.low.x - ui.px(kPlotAxisWidth + 16) - at.x;
  if (beside > ui.px(170)) draw_moment(document, ui, at + ImVec2{0, ui.px(6)}, std::min(beside, ui.px(260)));
  plot_.draw(ui, frame);
  const std::vector<plan::Mark>& marks = projection_->plan.marks;
  const auto each_mark = [&](auto draw) {
    if (marks.size() > 1)  // else there is the end alone
      for (const plan::Mark& mark : marks)
        if (mark.step < projection_->plan.steps.size()) draw(mark);
  };
  each_mark([&](const plan::Mark& mark) { plot_.mark(ui, frame, x_of(mark.step), ui.theme->muted); });
  plot_.mark(ui, frame, x_of(document.time.step()), ui.theme->text);
  if (document.hover.step) plot_.mark(ui, frame, x_of(*document.hover.step), ui.theme->muted);
  const auto failure = document.failure();
  if (failure) plot_.mark(ui, frame, x_of(failure->step), ui.theme->bad);
  draw_peaks(ui, frame);
  plot_.label_ghosts(ui, frame);
  failure_flag_.reset();
  if (failure) label_failure(ui, frame, *failure);
  each_mark([&](const plan::Mark& mark) {
    plot_.label_mark(ui, frame, x_of(mark.step), ui.theme->raised, mark.label);
  });
  if (document.hover.value()) draw_value(document, ui, frame, *document.hover.value());
  // a click in this frame may have selected something else
  if (strip > 0 && document.selected_tensor()) draw_selection(document, ui, frame, at.y + size.y - strip);
  ImGui::PopClipRect();
}

// The end of the name says more than its beginning.
void TimelinePanel::label_failure(const Ui& ui, const TimelinePlot::Frame& frame,
                                  const Document::Failure& failure) {
  const FontScope font(ui.fonts.small);
  const std::string name = elided_name(shown(failure.label), std::min(ui.px(260), frame.area.width() * 0.4f));
  failure_flag_ = plot_.label_mark(ui, frame, x_of(failure.step), ui.theme->bad,
                                   fmt::format("fails at step {}: {}", format_grouped(failure.step), name));
}

// In the room at the left that the panel above leaves: the moment under the mouse, or at the cursor.
void TimelinePanel::draw_moment(const Document& document, const Ui& ui, ImVec2 at, float width) const {
  const FontScope font(ui.fonts.small);
  const std::size_t step = document.hover.step.value_or(document.time.step());
  const std::size_t steps = projection_->plan.steps.size();
  const float line = ImGui::GetFontSize() + ui.px(4);
  const auto put = [&](ImU32 color, const std::string& words) {
    put_text(at, color, elided(words, width));
    at.y += line;
  };
  put(ui.theme->text, step >= steps
                          ? "At the end"
                          : fmt::format("Step {} of {}", format_grouped(step), format_grouped(steps)));
  if (const std::string words = step_text(*document.model, *projection_, step); !words.empty())
    put(ui.theme->muted, words);
  const Arrivals* const arrivals = document.load.arrivals.get();
  for (const plan::Space space : plan::kSpaceOrder) {
    if (projection_->timeline.peaks[plan::index(space)].bytes == 0) continue;
    const std::uint64_t held = plan::usage_at(projection_->timeline, step, plan::space_bit(space));
    ImGui::GetWindowDrawList()->AddRectFilled(at + ImVec2{0, ui.px(3)}, at + ImVec2{ui.px(9), ui.px(12)},
                                              ui.theme->spaces[plan::index(space)], ui.px(2));
    put_text(at + ImVec2{ui.px(15), 0}, ui.theme->text, capitalized(plan::space_title(space)));
    put_text_before(at.x + width, at.y, ui.theme->text, format_bytes(held));
    at.y += line;
    const std::uint64_t arrived =
        arrivals != nullptr ? arrived_at(*arrivals, step)[plan::index(space)] : held;
    if (held == 0) continue;
    put_text(at + ImVec2{ui.px(15), 0}, ui.theme->muted, "arrived");
    put_text_before(at.x + width, at.y, ui.theme->muted, format_bytes(std::min(arrived, held)));
    at.y += line;
  }
}

void TimelinePanel::refresh_selected(graph::StorageId storage) {
  if (selected_of_ == projection_ && selected_storage_ == storage) return;
  selected_of_ = projection_;
  selected_storage_ = storage;
  selected_blocks_.clear();
  for (std::uint32_t i = 0; i < projection_->plan.blocks.size(); ++i)
    if (projection_->plan.blocks[i].storage == storage &&
        projection_->timeline.lifetimes[i].from_step != plan::kNever)
      selected_blocks_.push_back(plan::BlockId{i});
}

// Nothing where no pass follows the load, and for values without memory.
std::optional<plan::BlockId> TimelinePanel::block_of(const Document& document, graph::ValueId id) {
  if (places_of_ != projection_) places_ = places_of_pass(document);
  places_of_ = projection_;
  return places_ && graph::index(id) < places_->blocks.size() ? places_->blocks[graph::index(id)]
                                                              : std::nullopt;
}

// The lifetime of the edge under the mouse in the graph of operators.
void TimelinePanel::draw_value(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame,
                               graph::ValueId id) {
  const auto block = block_of(document, id);
  if (!block) return;
  const plan::Lifetime& life = projection_->timeline.lifetimes[graph::index(*block)];
  const std::size_t end = std::min<std::size_t>(life.to_step, projection_->plan.steps.size());
  const float from = plot_.pixel_of(frame, x_of(life.from_step));
  const float left = std::max(frame.area.low.x, from);
  const float right =
      std::min(frame.area.high.x, std::max(left + ui.px(2), plot_.pixel_of(frame, x_of(end))));
  if (right <= left) return;
  ImGui::GetWindowDrawList()->AddRectFilled({left, frame.area.low.y}, {right, frame.area.high.y},
                                            with_alpha(ui.theme->accent, 0.35f));
  const FontScope font(ui.fonts.small);
  plot_.label_mark(
      ui, frame, x_of(life.from_step), ui.theme->accent,
      fmt::format("{}, {}", elided_path(shown(document.forward.graph()->value(id).name), ui.px(220)),
                  format_bytes(projection_->plan.block(*block).bytes)));
}

// Under the axis: when the selected tensor has a block, and in which space.
void TimelinePanel::draw_selection(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame,
                                   float top) {
  const PlotArea& area = frame.area;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  put_text_before(area.low.x - ui.px(8), top, ui.theme->muted, "selected");
  draw->AddRectFilled({area.low.x, top}, {area.high.x, top + ui.px(16)}, ui.theme->raised, ui.px(3));
  refresh_selected(document.model->tensor(*document.selected_tensor()).storage);
  const plan::Plan& plan = projection_->plan;
  for (const plan::BlockId id : selected_blocks_) {
    const plan::Lifetime& life = projection_->timeline.lifetimes[graph::index(id)];
    const plan::Space space = plan.block(id).space;
    const std::size_t end = std::min<std::size_t>(life.to_step, plan.steps.size());
    const double x1 = life.to_step == plan::kNever ? plot_.curves().modeled_length : x_of(end);
    const float left = std::max(area.low.x, plot_.pixel_of(frame, x_of(life.from_step)));
    const float right = std::min(area.high.x, std::max(left + ui.px(2), plot_.pixel_of(frame, x1)));
    if (right <= area.low.x || left >= area.high.x) continue;
    // one row per space, so that copies that live at once are both seen
    std::size_t row = 0;
    while (plan::kSpaceOrder[row] != space) ++row;
    const float y = top + ui.px(4) * static_cast<float>(row);
    draw->AddRectFilled({left, y}, {right, y + ui.px(4)}, ui.theme->spaces[plan::index(space)]);
  }
}

void TimelinePanel::describe(const Document& document, const Ui& ui, std::size_t step) const {
  const std::size_t steps = projection_->plan.steps.size();
  text(step >= steps ? "At the end"
                     : fmt::format("Step {} of {}", format_grouped(step), format_grouped(steps)));
  if (const std::string words = step_text(*document.model, *projection_, step); !words.empty())
    muted(ui, words);
  const Arrivals* const arrivals = document.load.arrivals.get();
  for (const plan::Space space : plan::kSpaceOrder) {
    if (projection_->timeline.peaks[plan::index(space)].bytes == 0) continue;
    const std::uint64_t held = plan::usage_at(projection_->timeline, step, plan::space_bit(space));
    const std::uint64_t arrived =
        arrivals != nullptr ? arrived_at(*arrivals, step)[plan::index(space)] : held;
    legend_entry(ui, ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)),
                 arrived >= held ? format_bytes(held)
                                 : fmt::format("{}, {} arrived", format_bytes(held), format_bytes(arrived)));
  }
  muted(ui, "Click to keep the cursor here.");
}

void TimelinePanel::handle_mouse(Document& document, const Ui& ui, const TimelinePlot::Frame& frame) {
  if (!ImGui::IsItemHovered() && !ImGui::IsItemActive()) return;
  const double share = share_at_pixel(frame.area, frame.range, ImGui::GetIO().MousePos.x);
  zoom_with_mouse(document.axis.range, share, frame.area.width());
  const std::size_t step = view::step_at_x(projection_->timeline, projection_->plan.steps.size(), key_.axis,
                                           share * plot_.curves().length);
  const auto failure = document.failure();
  if (failure && failure_flag_ && ImGui::IsMouseHoveringRect(failure_flag_->low, failure_flag_->high)) {
    if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) document.time.set_step(failure->step);
    return hover_card(ui, [&] { describe(document, ui, failure->step); });
  }
  if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left)) document.time.set_step(step);
  if (is_right_clicked()) {
    document.time.set_step(step);
    return document.select_for_menu(
        LoadOf{std::string(shown_method(document.load.asked()).id), shown_order(document.load.asked())});
  }
  document.hover.set_step(step);
  hover_card(ui, [&] { describe(document, ui, step); });
}

}  // namespace

std::unique_ptr<Panel> make_timeline_panel() { return std::make_unique<TimelinePanel>(); }

}  // namespace loadline::gui
