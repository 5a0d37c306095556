// The lifetimes of all values of the forward pass, with a cursor that lists the values alive at one operator.
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostName = 200;  // bytes of an operator's name that are drawn

// A weight, or of another value the operator from which on it is alive.
Selected thing_of(const PassRow& row) {
  if (row.lane == PassLane::weights) return graph::TensorId{row.id};
  return OperatorAt{row.ops.first};
}

class LifetimesPanel final : public Panel {
 public:
  LifetimesPanel() : Panel("Shows when each value of the forward pass is in memory.") {}
  void forget() override;

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void refresh(Document& document);
  void draw_figures(const Document& document, const Ui& ui);
  void draw_plot(Document& document, const Ui& ui, ImVec2 size);
  void handle_mouse(Document& document, const Ui& ui, LifetimesPlot::Frame& frame);
  void draw_alive(Document& document, const Ui& ui);
  void draw_row(Document& document, const Ui& ui, const PassRow& row);
  void describe(const Ui& ui, const PassRow& row) const;

  PlotRange& range(Document& document) { return plot_.data().on_load ? document.axis.range : range_; }
  void follow_time(Document& document);

  std::shared_ptr<const ForwardScene> scene_;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  std::shared_ptr<const load::Projection> load_;  // that the pass follows, if they share the axis
  std::optional<std::size_t> seen_shown_, seen_step_;
  OptionControls controls_;
  bool everything_ = false;
  bool shown_everything_ = false;  // what the data was made for
  LifetimesPlot plot_;
  PlotRange range_;
  std::uint32_t cursor_ = 0;
  // what is listed, and of what
  std::vector<PassRow> alive_;
  std::shared_ptr<const PassData> alive_of_;
  std::uint32_t alive_at_ = 0;
};

void LifetimesPanel::forget() {
  scene_.reset();
  figures_.reset();
  load_.reset();
  plot_.set_data(nullptr);
  alive_.clear();
  alive_of_.reset();
}

// A pass that follows the load stands on the axis of the load, if that counts steps: the pass takes no time.
void LifetimesPanel::refresh(Document& document) {
  const bool follows = document.load.pass() != nullptr && document.axis_unit() == view::RunAxis::steps;
  const auto load = follows ? document.load.projection.value() : nullptr;
  if (scene_ && scene_ == document.forward.scene.value() && figures_ == document.forward.figures() &&
      everything_ == shown_everything_ && load == load_)
    return;
  const bool same_model = scene_ && scene_->graph == document.forward.scene.value()->graph;
  if (!same_model) range_ = {};
  scene_ = document.forward.scene.value();
  figures_ = document.forward.figures();
  shown_everything_ = everything_;
  std::vector<double> steps;
  if (const auto places = load && figures_ ? places_of_pass(document) : std::nullopt)
    steps.assign(places->begins.begin(), places->begins.end());
  plot_.set_data(pass_data(scene_, figures_, everything_, std::move(steps)));
  const bool anew = load != load_;
  load_ = load;
  if (!anew || !plot_.data().on_load) return;
  seen_shown_ = document.forward.shown;
  seen_step_.reset();
  // the load is not drawn here: the pass comes to sight, and one click shows the whole axis
  if (document.axis.range.is_whole() && plot_.data().length > plot_.data().xs.front())
    document.axis.lent =
        document.axis.range = {std::min(plot_.data().xs.front() / plot_.data().length, 1 - 1e-4), 1};
}

// One cursor: of the operator and of the step, the one that was moved last leads.
void LifetimesPanel::follow_time(Document& document) {
  const std::vector<double>& xs = plot_.data().xs;
  if (!plot_.data().on_load) return;
  const std::size_t step = document.time.step();
  if (document.forward.shown != seen_shown_ && document.forward.shown &&
      *document.forward.shown + 1 < xs.size()) {
    document.time.set_step(static_cast<std::size_t>(xs[*document.forward.shown]));
  } else if (seen_step_ && step != *seen_step_ && static_cast<double>(step) >= xs.front()) {
    const auto after = std::ranges::upper_bound(xs, static_cast<double>(step)) - xs.begin();
    document.forward.shown = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(after - 1, 0, static_cast<std::ptrdiff_t>(xs.size()) - 2));
  }
  seen_shown_ = document.forward.shown;
  seen_step_ = document.time.step();
}

void LifetimesPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (forward_absent(document, ui)) return;
  forward_controls(workspace, ui, controls_);
  const bool trains = document.forward.graph()->training.has_value();
  const std::array<std::string_view, 2> curves = {
      trains ? "Without weights" : "Activations only",
      trains ? std::string_view("With weights") : "With weights and cache"};
  label_before(ui, "Curve", segmented_width(ui, curves));
  everything_ = segmented(ui, "curve", curves, everything_ ? 1 : 0) == 1;
  tooltip(ui, trains ? "Whether the curve has the weights below what the step adds"
                     : "Whether the curve has weights and cache below activations and temporaries");
  // a control may have set lowering going: what is shown stays until that is done
  if (forward_absent(document, ui)) return;
  refresh(document);
  follow_time(document);
  draw_figures(document, ui);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float list = list_width(ui, room);
  const auto last = static_cast<std::uint32_t>(scene_->forward()->ops.size() - 1);
  const std::uint32_t peak = figures_ ? figures_->peak.op : 0;
  cursor_ = static_cast<std::uint32_t>(std::min<std::size_t>(document.forward.shown.value_or(peak), last));
  draw_plot(document, ui, {room.x - (list > 0 ? list + ui.px(14) : 0), room.y});
  if (list <= 0) return;
  ImGui::SameLine(0, ui.px(14));
  const ChildScope child("alive", {list, room.y});
  draw_alive(document, ui);
}

void LifetimesPanel::draw_figures(const Document& document, const Ui& ui) {
  if (!document.forward.error().empty()) return name_text(ui, document.forward.error(), 0, ui.theme->bad);
  if (!figures_) return;
  const forward::ForwardFigures& figures = *figures_;
  const forward::LaneBytes& at = figures.usage[figures.peak.op];
  bool first = true;
  const auto entry = [&](PassLane lane, std::uint64_t bytes, const std::string& more) {
    if (plot_.data().lanes[static_cast<std::size_t>(lane)].rows.empty()) return;
    const std::string figure = format_bytes(bytes) + more;
    if (!std::exchange(first, false)) continue_line(ui, 18, legend_width(ui, pass_lane_title(lane), figure));
    legend_entry(ui, pass_lane_color(*ui.theme, lane), pass_lane_title(lane), figure);
    bytes_tooltip(ui, bytes);
  };
  const bool trains = document.forward.graph()->training.has_value();
  const bool sum = trains || (at.temporaries > 0 && at.activations > 0);
  const std::string estimated =
      forward::is_estimate(document.forward.scene.value()->model, figures) ? ", estimated" : "";
  const auto& alive = plot_.data().alive[figures.peak.op];
  for (const PassLane lane : {PassLane::states, PassLane::gradients, PassLane::kept})
    entry(lane, alive[static_cast<std::size_t>(lane)], "");
  entry(PassLane::activations, alive[static_cast<std::size_t>(PassLane::activations)],
        sum ? "" : " at the peak" + estimated);
  entry(PassLane::temporaries, at.temporaries, sum || at.temporaries == 0 ? "" : " at the peak" + estimated);
  const auto words = [&](const std::string& text_, std::string_view hint, ImU32 color) {
    const FontScope font(ui.fonts.small);
    continue_line(ui, 18, text_width(text_));
    text_colored(color, text_);
    tooltip(ui, hint);
  };
  if (sum)
    words(fmt::format("together {} at the peak{}", format_bytes(figures.peak.bytes), estimated),
          trains ? "All that the step holds at once besides the weights, by a sum"
                 : "Activations and temporaries alive at once, by a sum",
          ui.theme->muted);
  if (figures.reserved != figures.peak.bytes)
    words(fmt::format("the profile's allocator holds {}", format_bytes(figures.reserved)), "",
          ui.theme->muted);
  const std::uint64_t each = document.forward.scene.value()->model.cache_bytes_per_token.value_or(0);
  entry(PassLane::cache, figures.peak.cache_bytes,
        each > 0 ? fmt::format(", {} bytes per token of each sequence", format_grouped(each)) : "");
  entry(PassLane::weights, plot_.data().weight_bytes, "");
  if (figures.peak.unknown > 0)
    words(fmt::format("{} of unknown size", counted(figures.peak.unknown, "value")),
          "Their shapes are unknown: the peak is an estimate", ui.theme->warning);
  if (const auto& kinds = document.forward.scene.value()->model.graph->unaccounted; !kinds.empty())
    words(fmt::format("{} not accounted for", join_names(kinds, 2)),
          "The profile does not say what these operators need as they stand here: the peak is an estimate",
          ui.theme->warning);
}

void LifetimesPanel::draw_plot(Document& document, const Ui& ui, ImVec2 size) {
  if (size.x < ui.px(140) || size.y < ui.px(90)) return ImGui::Dummy(size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  plot_area("plot", size);
  PlotArea area = inside_axes(ui, at, at + size, kLanesAxisWidth);
  if (plot_.data().on_load) area = on_time_axis(ui, document, area);
  LifetimesPlot::Frame frame{area, range(document), shown_everything_, document.selected_tensor()};
  handle_mouse(document, ui, frame);
  ImGui::PushClipRect(at, at + size, true);
  plot_.draw(ui, frame);
  if (figures_) {
    const std::uint32_t peak = figures_->peak.op;
    plot_.mark(ui, frame, peak, ui.theme->text, fmt::format("Peak {}", format_bytes(figures_->peak.bytes)));
    if (cursor_ != peak) plot_.mark(ui, frame, cursor_, ui.theme->text, "");
  }
  ImGui::PopClipRect();
}

void LifetimesPanel::handle_mouse(Document& document, const Ui& ui, LifetimesPlot::Frame& frame) {
  if (!ImGui::IsItemHovered() && !ImGui::IsItemActive()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool hovered = ImGui::IsItemHovered();
  PlotRange& seen = range(document);
  zoom_with_mouse(seen, share_at_pixel(frame.area, seen, mouse.x), frame.area.width());
  frame.range = seen;
  cursor_ = plot_.op_at(frame, mouse.x);
  if (plot_.data().on_load && hovered)
    document.hover.set_step(static_cast<std::size_t>(plot_.data().xs[cursor_]));
  const PassRow* const row = hovered ? plot_.row_at(frame, mouse) : nullptr;
  if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left)) document.forward.shown = cursor_;
  if (row == nullptr) return;
  if (is_right_clicked()) return document.select_for_menu(thing_of(*row));
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && row->lane == PassLane::weights)
    document.select(graph::TensorId{row->id});
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) hover_card(ui, [&] { describe(ui, *row); });
}

void LifetimesPanel::describe(const Ui& ui, const PassRow& row) const {
  const PassData& data = plot_.data();
  const auto& ops = data.scene->forward()->ops;
  text(shown(row_name(data, row)));
  muted(ui, shown(row_shape(data, row)));
  if (figures_ || row.lane == PassLane::weights)
    muted(ui, fmt::format("{} ({} bytes)", format_bytes(row.bytes), format_grouped(row.bytes)));
  const auto words = [&](std::uint32_t op) { return shown(beginning(forward::op_text(ops[op]), kMostName)); };
  const std::string from = words(row.ops.first), to = words(row.ops.end - 1);
  const std::string_view verb = row.lane == PassLane::weights ? "used" : "alive";
  muted(ui, row.ops.end - row.ops.first == 1 ? fmt::format("{} at operator {}: {}", verb, row.ops.first, from)
                                             : fmt::format("{} from operator {}: {}\nto {}: {}", verb,
                                                           row.ops.first, from, row.ops.end - 1, to));
}

void LifetimesPanel::draw_alive(Document& document, const Ui& ui) {
  const PassData& data = plot_.data();
  if (alive_at_ != cursor_ || alive_of_.get() != &data) {
    alive_at_ = cursor_;
    alive_of_ = plot_.shared_data();
    alive_ = alive_rows(data, cursor_);
  }
  const graph::Op& op = data.scene->forward()->ops[cursor_];
  const bool at_peak = figures_ && cursor_ == figures_->peak.op;
  heading(ui, at_peak ? "In the pass, at its peak"
                      : fmt::format("In the pass, at operator {}", format_grouped(cursor_)));
  const FontScope font(ui.fonts.small);
  name_text(ui, beginning(forward::op_text(op), kMostName), 0, ui.theme->text, true);
  if (figures_) {
    const forward::LaneBytes& bytes = figures_->usage[cursor_];
    std::string words =
        format_bytes(bytes.passing()) + (data.scene->forward()->training ? " besides the weights"
                                         : bytes.temporaries > 0         ? " of activations and temporaries"
                                                                         : " of activations");
    if (!scene_->cache.empty()) words += fmt::format(", {} of cache so far", format_bytes(bytes.cache));
    paragraph(ui, words, ui.theme->muted);
  }
  const ChildScope child("rows", {0, 0});
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(2)});
  for_rows_in_sight(alive_.size(), [&](std::size_t i) {
    const IdScope scope(i);
    draw_row(document, ui, alive_[i]);
  });
}

void LifetimesPanel::draw_row(Document& document, const Ui& ui, const PassRow& row) {
  const bool weight = row.lane == PassLane::weights;
  const bool selected =
      weight && document.selected_tensor() && graph::index(*document.selected_tensor()) == row.id;
  const std::string bytes = figures_ || weight ? format_bytes(row.bytes) : "?";
  if (marked_row(ui, selected, pass_lane_color(*ui.theme, row.lane), row_name(plot_.data(), row), bytes,
                 selected ? ui.theme->text : ui.theme->muted, pass_lane_name(row.lane).substr(0, 1)) &&
      weight)
    document.select(graph::TensorId{row.id});
  if (is_right_clicked()) return document.select_for_menu(thing_of(row));
  hover_card(ui, [&] { describe(ui, row); });
}

}  // namespace

std::unique_ptr<Panel> make_lifetimes_panel() { return std::make_unique<LifetimesPanel>(); }

}  // namespace loadline::gui
