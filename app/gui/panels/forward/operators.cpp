// What the model computes: its modules, or operator by operator, with the sizes of what flows between them.
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostName = 300;  // bytes of a name that a row draws

// The first one, its shape before its name where both do not fit; all of them in a tooltip.
void draw_values(const graph::ForwardGraph& forward, const Ui& ui, const std::vector<graph::ValueId>& values,
                 ImU32 second) {
  constexpr std::size_t kMostListed = 12;
  if (values.empty()) return;
  std::string shape = shown(sides_text(forward, values.front()));
  if (values.size() > 1) shape += fmt::format("  +{}", values.size() - 1);
  const float room = ImGui::GetContentRegionAvail().x;
  const float gap = ui.px(6);
  const std::string name = shown(beginning(forward.value(values.front()).name, kMostName));
  shape = elided(shape, std::max(room - gap - std::min(text_width(name), room * 0.3f), ui.px(20)));
  {
    const GroupScope group;
    text_colored(ui.theme->text, elided_path(name, std::max(room - text_width(shape) - gap, ui.px(10))));
    ImGui::SameLine(0, gap);
    text_colored(second, shape);
  }
  hover_card(ui, [&] {
    for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i)
      text(shown(value_text(forward, values[i])));
    if (values.size() > kMostListed) muted(ui, fmt::format("and {} more", values.size() - kMostListed));
  });
}

class OperatorsPanel final : public Panel {
 public:
  OperatorsPanel() : Panel("Lists the operators of the model.") {}
  void forget() override;

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void prepare(const Document& document);
  void draw_head(Workspace& workspace, const Ui& ui);
  void draw_kinds(Document& document, const Ui& ui);
  void draw_rows(Workspace& workspace, const Ui& ui, float height);
  void draw_row(Document& document, const Ui& ui, std::uint32_t at);
  void draw_operator(Document& document, const Ui& ui);
  const graph::ForwardGraph& forward() const { return *scene_->forward(); }

  std::shared_ptr<const ForwardScene> scene_;
  std::string searched_;
  OperatorSummary summary_;
  std::vector<std::uint32_t> rows_;  // positions of what matches
  std::optional<std::size_t> seen_;  // the operator that the list was scrolled to
  float seen_scale_ = 0;
  bool wide_ = true;
  ModuleLines modules_;
  OptionControls controls_;
};

void OperatorsPanel::forget() {
  scene_.reset();
  rows_.clear();
  modules_.forget();
}

void OperatorsPanel::prepare(const Document& document) {
  const bool fresh = !scene_ || scene_ != document.forward.scene.value();
  if (!fresh && searched_ == document.forward.search) return;
  scene_ = document.forward.scene.value();
  searched_ = document.forward.search;
  rows_ = matching_operators(*scene_->graph, forward(), searched_);
  if (!fresh) return;
  seen_.reset();
  summary_ = summarize(forward());
}

void OperatorsPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (forward_absent(document, ui)) return;
  prepare(document);
  draw_head(workspace, ui);
  if (workspace.settings.operators_as_list) draw_kinds(document, ui);
  const auto detail = [&] {
    return document.forward.shown && *document.forward.shown < forward().ops.size();
  };
  const bool divided = detail();
  const float room = ImGui::GetContentRegionAvail().y;
  const float lower = divided ? std::clamp(room * 0.4f, ui.px(110), ui.px(220)) : 0;
  const float upper = room - lower - (divided ? ui.px(8) : 0);
  if (workspace.settings.operators_as_list)
    draw_rows(workspace, ui, upper);
  else
    modules_.draw(workspace, ui, upper);
  if (!divided || !detail()) return;  // a click on its row closes it
  ImGui::Dummy({0, 0});
  const CardScope card(ui, "detail", {0, 0});
  draw_operator(document, ui);
}

void OperatorsPanel::draw_head(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, 2> kViews = {"Modules", "List"};
  workspace.settings.operators_as_list =
      segmented(ui, "view", kViews, workspace.settings.operators_as_list ? 1 : 0) == 1;
  ImGui::SameLine(0, ui.px(12));
  if (workspace.settings.operators_as_list) {
    ImGui::SetNextItemWidth(std::min(ui.px(260), ImGui::GetContentRegionAvail().x * 0.28f));
    ImGui::InputTextWithHint("##search", "Search names and kinds", &document.forward.search);
    prepare(document);
  } else {
    const float line = ImGui::GetCursorPosY();
    ImGui::SetCursorPosY(line + ui.px(3));  // its frame is lower
    checkbox(ui, "Merge repeats", &workspace.settings.fold_operators);
    tooltip(ui, "Modules that compute the same with weights of the same shapes are one line");
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosY(line);
    ImGui::Dummy({0, 0});
  }
  ImGui::SameLine(0, ui.px(12));
  const std::string all = counted(summary_.operators, "operator");
  const bool some = workspace.settings.operators_as_list && !searched_.empty();
  control_text(some ? fmt::format("{} of {}", format_grouped(rows_.size()), all) : all, ui.theme->muted);
  const auto continued = [&](float width) {
    if (continue_line(ui, 14, width)) ImGui::AlignTextToFramePadding();
  };
  if (!scene_->model.family.empty()) {
    const std::string words = fmt::format("architecture {}", shown(scene_->model.family));
    continued(text_width(words));
    muted(ui, words);
  }
  if (summary_.unknown > 0) {
    const std::string words = fmt::format("{} of {} shapes unknown", format_grouped(summary_.unknown),
                                          format_grouped(summary_.values));
    continued(text_width(words));
    text_colored(ui.theme->warning, words);
    tooltip(ui,
            "The file does not state these sizes, and they could not be inferred. Peaks do not count them.");
  }
  if (!document.forward.error().empty()) {
    continued(ui.px(120));
    name_text(ui, document.forward.error(), 0, ui.theme->bad);
  }
  forward_controls(workspace, ui, controls_);
}

void OperatorsPanel::draw_kinds(Document& document, const Ui& ui) {
  constexpr std::size_t kMostKinds = 12;
  for (std::size_t i = 0; i < std::min(summary_.kinds.size(), kMostKinds); ++i) {
    const auto& [kind, count] = summary_.kinds[i];
    const std::string name = elided(shown(beginning(kind, 80)), ui.px(140));
    const std::string figure = format_grouped(count);
    if (i > 0) continue_line(ui, 16, legend_width(ui, name, figure));
    const bool chosen = searched_ == kind;
    legend_entry(ui, chosen ? ui.theme->accent : ui.theme->neutral, name, figure);
    if (ImGui::IsItemClicked()) document.forward.search = document.forward.search == kind ? "" : kind;
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  }
  if (summary_.kinds.size() > kMostKinds) {
    const FontScope font(ui.fonts.small);
    const std::string more = fmt::format("and {} more kinds", summary_.kinds.size() - kMostKinds);
    continue_line(ui, 16, text_width(more));
    muted(ui, more);
  }
  ImGui::Dummy({0, ui.px(2)});
}

void OperatorsPanel::draw_rows(Workspace& workspace, const Ui& ui, float height) {
  Document& document = workspace.document();
  if (rows_.empty())
    return empty_state(ui, "Nothing matches", "No operator, value or weight has a name with these words.");
  const float width = ImGui::GetContentRegionAvail().x;
  wide_ = width > ui.px(860) && summary_.named;
  if (!ImGui::BeginTable(wide_ ? "operators" : "operators, narrow", 7, kListTable | ImGuiTableFlags_Resizable,
                         {0, height}))
    return;
  fixed_column(ui, "#", 48);
  fixed_column(ui, "Operator", wide_ ? 140 : 118);
  stretched_column("Name", 1, wide_ ? 0 : ImGuiTableColumnFlags_Disabled);
  stretched_column("Inputs", 1.3f);
  stretched_column("Weights", 1);
  stretched_column("Outputs", 1.3f);
  fixed_column(ui, "Bytes", 86);
  table_headers(ui, {0, 6});
  if (table_is_measured(rows_.size(), height) &&
      (seen_ != document.forward.shown || seen_scale_ != ui.scale)) {
    seen_ = document.forward.shown;
    seen_scale_ = ui.scale;
    const auto at = seen_ ? std::ranges::find(rows_, *seen_) : rows_.end();
    if (at != rows_.end()) scroll_to_row(static_cast<std::size_t>(at - rows_.begin()));
  }
  const auto shown_at =
      document.forward.shown ? std::ranges::find(rows_, *document.forward.shown) : rows_.end();
  std::optional<std::size_t> at;
  if (shown_at != rows_.end()) at = static_cast<std::size_t>(shown_at - rows_.begin());
  if (const auto now = row_by_keys(ui, at, rows_.size())) document.forward.shown = rows_[*now];
  for_rows_in_sight(rows_.size(), [&](std::size_t i) { draw_row(document, ui, rows_[i]); });
  ImGui::EndTable();
}

void OperatorsPanel::draw_row(Document& document, const Ui& ui, std::uint32_t at) {
  const graph::MetaGraph& graph = *scene_->graph;
  const graph::Op& op = forward().ops[at];
  const IdScope scope(std::size_t{at});
  const bool selected = document.forward.shown == at;
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  if (table_row(selected, 0, ImGuiSelectableFlags_AllowItemOverlap)) {
    document.forward.shown = selected ? std::nullopt : std::optional<std::size_t>(at);
    seen_ = document.forward.shown;  // it is in sight
  }
  if (is_right_clicked()) document.select_for_menu(OperatorAt{at});
  ImGui::SetItemAllowOverlap();
  right_aligned(format_grouped(at), second);
  ImGui::TableNextColumn();
  const std::string_view part = graph::is_part_of_next(forward(), at) ? ", before it" : "";
  name_text(ui, fmt::format("{}{}", beginning(op.kind, kMostName), part), 0, ui.theme->text);
  if (ImGui::TableNextColumn()) name_text(ui, beginning(op.name, kMostName), 0, second, true);
  ImGui::TableNextColumn();
  draw_values(forward(), ui, op.inputs, second);
  ImGui::TableNextColumn();
  if (!op.weights.empty()) {
    const std::string more = op.weights.size() > 1 ? fmt::format("+{}", op.weights.size() - 1) : "";
    const float room = ImGui::GetContentRegionAvail().x - (more.empty() ? 0 : text_width(more) + ui.px(6));
    if (link(ui, "weight", beginning(graph.tensor(op.weights.front()).name, kMostName),
             std::max(room, ui.px(10)), true))
      document.select(op.weights.front());
    if (!more.empty()) {
      ImGui::SameLine(0, ui.px(6));
      text_colored(second, more);
    }
  }
  ImGui::TableNextColumn();
  draw_values(forward(), ui, op.outputs, second);
  ImGui::TableNextColumn();
  if (!op.outputs.empty()) {
    const std::string bytes = value_size_text(document.forward.figures().get(), op.outputs.front());
    right_aligned(op.outputs.size() > 1 ? bytes + " +" : bytes, bytes == "?" ? second : ui.theme->text);
    tooltip(ui, shown(value_size_formula(forward(), op.outputs.front())));
  }
}

void OperatorsPanel::draw_operator(Document& document, const Ui& ui) {
  constexpr std::size_t kMostListed = 200;
  const graph::MetaGraph& graph = *scene_->graph;
  const graph::Op& op = forward().ops[*document.forward.shown];
  heading(ui, fmt::format("{}  {}", *document.forward.shown, shown(beginning(op.kind, kMostName))));
  ImGui::SameLine(0, ui.px(12));
  name_text(ui, beginning(op.name, kMostName), 0, ui.theme->muted);
  const FontScope font(ui.fonts.small);
  const float labels = ui.px(62);
  const auto labeled = [&](std::string_view label, std::size_t i) {
    muted(ui, i == 0 ? label : "");
    ImGui::SameLine(ImGui::GetStyle().WindowPadding.x + labels);
  };
  const auto more = [&](std::size_t count) {
    if (count > kMostListed) muted(ui, fmt::format("and {} more", format_grouped(count - kMostListed)));
  };
  const auto values = [&](std::string_view label, const std::vector<graph::ValueId>& list) {
    for (std::size_t i = 0; i < std::min(list.size(), kMostListed); ++i) {
      labeled(label, i);
      const std::string formula = value_size_formula(forward(), list[i]);
      const std::string size = value_size_text(document.forward.figures().get(), list[i]);
      name_text(ui,
                fmt::format("{}   {}{}", value_text(forward(), list[i]), size,
                            formula.empty() ? "" : "  =  " + formula),
                0, ui.theme->text);
    }
    more(list.size());
  };
  if (document.forward.figures()) {
    const forward::LaneBytes& alive = document.forward.figures()->usage[*document.forward.shown];
    labeled("alive", 0);
    name_text(ui,
              fmt::format("{} of activations, {} of temporaries during it", format_bytes(alive.activations),
                          format_bytes(alive.temporaries)),
              0, ui.theme->text);
  }
  values("inputs", op.inputs);
  for (std::size_t i = 0; i < std::min(op.weights.size(), kMostListed); ++i) {
    labeled("weights", i);
    const graph::Tensor& tensor = graph.tensor(op.weights[i]);
    const IdScope scope(i);
    if (link(ui, "weight", tensor.name, ImGui::GetContentRegionAvail().x * 0.6f))
      document.select(op.weights[i]);
    ImGui::SameLine(0, ui.px(10));
    muted(ui, fmt::format("{}  {}  {}", shape_text(tensor), graph::dtype_info(tensor.dtype).name,
                          format_bytes(document.model->bytes[graph::index(op.weights[i])])));
  }
  more(op.weights.size());
  values("outputs", op.outputs);
  values("needs", op.temporaries);
}

}  // namespace

std::unique_ptr<Panel> make_operators_panel() { return std::make_unique<OperatorsPanel>(); }

}  // namespace loadline::gui
