// The memory timeline of the chosen method: curves, peak, cursor, and what is alive at it.
#include "app/gui/panels/panels.h"
#include "app/gui/panels/plan_controls.h"
#include "app/gui/panels/timeline_plot.h"
#include "app/gui/widgets.h"
#include "app/report/manual.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

void draw_first_token(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.forward.value() || document.forward.value()->forward() == nullptr) return;
  constexpr std::array<std::string_view, 2> kEnds = {"Load", "First token"};
  continue_line(ui, 8, segmented_width(ui, kEnds));
  Asked asked = document.asked();
  asked.first_token = segmented(ui, "end", kEnds, asked.first_token ? 1 : 0) == 1;
  const LoadRequest& pass = asked.request;
  tooltip(ui, fmt::format("Whether a forward pass follows the load: {} x {} tokens after {}, as the panel "
                          "Lifetimes has it. It takes steps, no modelled time.",
                          pass.batch, format_grouped(pass.sequence), format_grouped(pass.past)));
  if (asked.first_token != document.asked().first_token) workspace.attempt([&] { document.ask(asked); });
  if (!asked.first_token) return;
  const bool failed = !forward_error(document).empty();
  const std::string words =
      failed ? forward_error(document)
             : fmt::format("{} x {} tokens{}, {}", pass.batch, format_grouped(pass.sequence),
                           pass.past == 0 ? "" : fmt::format(" after {}", format_grouped(pass.past)),
                           document.forward.value()->model.profile);
  if (!continue_line(ui, 8, std::min(text_width(words), ui.px(220))) && !failed) return;
  ImGui::AlignTextToFramePadding();
  name_text(ui, words, ui.px(220), failed ? ui.theme->bad : ui.theme->muted);
}

class TimelinePanel final : public Panel {
 public:
  TimelinePanel() : Panel("How deep it sits in memory, step by step, will be drawn here.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void refresh(const Workspace& workspace);
  void draw_toolbar(Workspace& workspace, const Ui& ui);
  void draw_legend(const Ui& ui);
  void draw_plot(Document& document, const Ui& ui, ImVec2 size);
  void draw_selection(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame, float top);
  void handle_mouse(const TimelinePlot::Frame& frame);
  void draw_alive(Document& document, const Ui& ui);
  void draw_alive_row(Document& document, const Ui& ui, BlockId id);
  void refresh_alive();
  void refresh_selected(const Document& document);

  std::shared_ptr<const Projection> projection_;
  std::shared_ptr<const UploadResult> upload_;
  TimeAxis axis_ = TimeAxis::steps;
  bool lanes_ = false;
  PlotRange range_;
  TimelinePlot plot_;
  std::size_t pinned_ = 0;  // the step at which the cursor is pinned
  std::size_t cursor_ = 0;  // the step of the cursor now
  std::size_t alive_step_ = kNever;
  std::vector<BlockId> alive_;
  std::uint64_t alive_bytes_ = 0;
  std::shared_ptr<const Projection> selected_of_;  // what the next two are of
  std::optional<StorageId> selected_storage_;
  std::vector<BlockId> selected_blocks_;
};

void TimelinePanel::refresh(const Workspace& workspace) {
  const Document& document = workspace.document();
  const auto upload = workspace.uploaded();
  if (document.projection.value() == projection_ && upload == upload_ && plot_.curves().axis == axis_) return;
  if (document.projection.value() != projection_) {
    projection_ = document.projection.value();
    range_ = {};
    pinned_ = projection_->timeline.unified.step;
    cursor_ = pinned_;
    alive_step_ = kNever;
  }
  upload_ = upload;
  plot_.set_curves(timeline_curves(*projection_, upload_.get(), axis_));
}

void TimelinePanel::refresh_alive() {
  if (alive_step_ == cursor_) return;
  alive_step_ = cursor_;
  alive_ = alive_at(projection_->timeline, projection_->plan, cursor_, kAllSpaces);
  alive_bytes_ = usage_at(projection_->timeline, cursor_, kAllSpaces);
}

void TimelinePanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  draw_toolbar(workspace, ui);
  if (!document.projection.value())
    return document.projection.busy()
               ? empty_state(ui, "Projecting the load", "The plan is being run on the modelled machine.")
               : empty_state(ui, "This load could not be projected", "The message above says why.");
  refresh(workspace);
  draw_legend(ui);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float list = list_width(ui, room);
  cursor_ = pinned_;
  draw_plot(document, ui, {room.x - (list > 0 ? list + ui.px(14) : 0), room.y});
  if (list <= 0) return;
  refresh_alive();
  ImGui::SameLine(0, ui.px(14));
  const ChildScope child("alive", {list, room.y});
  draw_alive(document, ui);
}

void TimelinePanel::draw_toolbar(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  method_and_order(workspace, ui, ui.px(176), ui.px(110));
  constexpr std::array<std::string_view, 2> kShapes = {"Stacked", "By space"};
  constexpr std::array<std::string_view, 2> kAxes = {"Steps", "Time"};
  continue_line(ui, 12, segmented_width(ui, kShapes) + ui.px(8) + segmented_width(ui, kAxes));
  lanes_ = segmented(ui, "shape", kShapes, lanes_ ? 1 : 0) == 1;
  ImGui::SameLine(0, ui.px(8));
  axis_ = static_cast<TimeAxis>(segmented(ui, "axis", kAxes, static_cast<std::size_t>(axis_)));
  draw_first_token(workspace, ui);
  const Method& method = shown_method(document.asked());
  if (!continue_line(ui, 14, text_width("Peak") + ui.px(6) + text_width(method.peak_law))) return;
  control_text("Peak", ui.theme->muted);
  ImGui::SameLine(0, ui.px(6));
  control_text(method.peak_law, ui.theme->accent);
  tooltip(ui, report::method_explanation(method.id));
}

void TimelinePanel::draw_legend(const Ui& ui) {
  bool first = true;
  for (const Space space : kStackOrder) {
    const Peak& peak = projection_->timeline.peaks[index(space)];
    if (peak.bytes == 0) continue;
    const std::string figure = "peak " + format_bytes(peak.bytes);
    if (!first && !continue_line(ui, 18, legend_width(ui, space_title(space), figure))) return;
    first = false;
    legend_entry(ui, ui.theme->spaces[index(space)], space_title(space), figure);
    tooltip(ui, fmt::format("{}: {} bytes at step {}", space_title(space), format_grouped(peak.bytes),
                            format_grouped(peak.step)));
  }
  for (const MeasuredCurve& curve : plot_.curves().measured) {
    if (lanes_ && !curve.ledger) continue;  // the system does not count by space
    if (!continue_line(ui, 18, legend_width(ui, curve.label, ""))) return;
    legend_entry(ui, curve.ledger ? ui.theme->highlight : ui.theme->accent, curve.label, "");
  }
}

void TimelinePanel::draw_plot(Document& document, const Ui& ui, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float strip = document.selection() && size.y > ui.px(110) ? ui.px(20) : 0;
  if (size.x < ui.px(140) || size.y < ui.px(60)) return ImGui::Dummy(size);
  ImGui::InvisibleButton("plot", size);
  TimelinePlot::Frame frame{inside_axes(ui, at, at + size - ImVec2{0, strip}, kPlotAxisWidth), range_,
                            lanes_};
  handle_mouse(frame);
  frame.range = range_;
  ImGui::PushClipRect(at, at + size, true);
  plot_.draw(ui, frame);
  const Peak& peak = projection_->timeline.unified;
  plot_.mark(ui, frame, x_of_step(*projection_, axis_, peak.step), ui.theme->bad,
             fmt::format("Peak {}", format_bytes(peak.bytes)));
  const std::vector<Mark>& marks = projection_->plan.marks;
  if (marks.size() > 1)  // else there is the end alone
    for (const Mark& mark : marks)
      if (mark.step < projection_->plan.steps.size())
        plot_.mark(ui, frame, x_of_step(*projection_, axis_, mark.step), ui.theme->muted, mark.label);
  if (cursor_ != peak.step)
    plot_.mark(ui, frame, x_of_step(*projection_, axis_, cursor_), ui.theme->text, "");
  if (strip > 0) draw_selection(document, ui, frame, at.y + size.y - strip);
  ImGui::PopClipRect();
}

void TimelinePanel::refresh_selected(const Document& document) {
  const StorageId storage = document.model->tensor(*document.selection()).storage;
  if (selected_of_ == projection_ && selected_storage_ == storage) return;
  selected_of_ = projection_;
  selected_storage_ = storage;
  selected_blocks_.clear();
  for (std::uint32_t i = 0; i < projection_->plan.blocks.size(); ++i)
    if (projection_->plan.blocks[i].storage == storage &&
        projection_->timeline.lifetimes[i].from_step != kNever)
      selected_blocks_.push_back(BlockId{i});
}

// Under the axis: when the selected tensor has a block, and in which space.
void TimelinePanel::draw_selection(const Document& document, const Ui& ui, const TimelinePlot::Frame& frame,
                                   float top) {
  const PlotArea& area = frame.area;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  put_text_before(area.low.x - ui.px(8), top, ui.theme->muted, "selected");
  draw->AddRectFilled({area.low.x, top}, {area.high.x, top + ui.px(16)}, ui.theme->raised, ui.px(3));
  refresh_selected(document);
  const Plan& plan = projection_->plan;
  for (const BlockId id : selected_blocks_) {
    const Lifetime& life = projection_->timeline.lifetimes[index(id)];
    const Space space = plan.block(id).space;
    const std::size_t end = std::min(life.to_step, plan.steps.size());
    const double x1 =
        life.to_step == kNever ? plot_.curves().modelled_length : x_of_step(*projection_, axis_, end);
    const float left =
        std::max(area.low.x, plot_.pixel_of(frame, x_of_step(*projection_, axis_, life.from_step)));
    const float right = std::min(area.high.x, std::max(left + ui.px(2), plot_.pixel_of(frame, x1)));
    if (right <= area.low.x || left >= area.high.x) continue;
    // one row per space, so that copies that live at once are both seen
    std::size_t row = 0;
    while (kStackOrder[row] != space) ++row;
    const float y = top + ui.px(4) * static_cast<float>(kSpaceCount - 1 - row);
    draw->AddRectFilled({left, y}, {right, y + ui.px(4)}, ui.theme->spaces[index(space)]);
  }
}

void TimelinePanel::handle_mouse(const TimelinePlot::Frame& frame) {
  if (!ImGui::IsItemHovered() && !ImGui::IsItemActive()) return;
  const double share = share_at_pixel(frame.area, frame.range, ImGui::GetIO().MousePos.x);
  zoom_with_mouse(range_, share, frame.area.width());
  const std::size_t step = step_at_x(*projection_, axis_, share * plot_.curves().length);
  if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left)) pinned_ = step;
  cursor_ = step;
}

void TimelinePanel::draw_alive(Document& document, const Ui& ui) {
  const bool at_peak = cursor_ == projection_->timeline.unified.step;
  heading(ui, at_peak ? "Alive at the peak" : fmt::format("Alive at step {}", format_grouped(cursor_)));
  const FontScope font(ui.fonts.small);
  muted(ui, fmt::format("{} in {} blocks, largest first", format_bytes(alive_bytes_),
                        format_grouped(alive_.size())));
  const ChildScope child("blocks", {0, 0});
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(2)});
  for_rows_in_sight(alive_.size(), [&](std::size_t i) { draw_alive_row(document, ui, alive_[i]); });
}

void TimelinePanel::draw_alive_row(Document& document, const Ui& ui, BlockId id) {
  const Model& model = *document.model;
  const Block& block = projection_->plan.block(id);
  const std::string label = block_label(block, *model.graph, model.owners);
  const auto owner = block.storage ? model.owners[index(*block.storage)] : std::nullopt;
  const bool selected =
      document.selection() && block.storage && model.tensor(*document.selection()).storage == *block.storage;
  const IdScope scope(index(id));
  if (marked_row(ui, selected, ui.theme->spaces[index(block.space)], label, format_bytes(block.bytes),
                 ui.theme->muted) &&
      owner)
    document.select(owner);
  hover_card(ui, [&] {
    text(shown(label));
    muted(ui, fmt::format("{} bytes in {}", format_grouped(block.bytes), space_name(block.space)));
  });
}

}  // namespace

std::unique_ptr<Panel> make_timeline_panel() { return std::make_unique<TimelinePanel>(); }

}  // namespace loadline::gui
