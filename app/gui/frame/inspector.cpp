// What is selected, and what is alive at the time cursor.

#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/forward.h"
#include "app/gui/panels/methods.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/report/manual.h"
#include "app/report/row_text.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {

// --- The list of blocks that are alive at one step of the load, largest first.

namespace {

// Follows the time cursor. A click on a block selects its tensor, or the block if it has none.
class AliveList {
 public:
  // Fills the rest of the region.
  void draw(Document& document, const Ui& ui);
  void forget() { of_.reset(); }

 private:
  void refresh(const Document& document);
  void draw_row(Document& document, const Ui& ui, plan::BlockId id);

  std::shared_ptr<const load::Projection> of_;
  std::size_t step_ = 0;
  std::vector<plan::BlockId> blocks_;
  std::uint64_t bytes_ = 0;
};

void AliveList::refresh(const Document& document) {
  const std::size_t step = document.hover.step.value_or(document.time.step());
  if (of_ == document.load.projection.value() && step_ == step) return;
  of_ = document.load.projection.value();
  step_ = step;
  blocks_ = plan::alive_at(of_->timeline, of_->plan, step, plan::kAllSpaces);
  bytes_ = plan::usage_at(of_->timeline, step, plan::kAllSpaces);
}

void AliveList::draw(Document& document, const Ui& ui) {
  if (!document.load.projection.value()) return;
  refresh(document);
  const bool peak = document.time.at_peak() && !document.hover.step;
  const bool end = step_ >= of_->plan.steps.size();
  heading(ui, peak  ? "Alive at the peak"
              : end ? "Alive at the end"
                    : fmt::format("Alive at step {}", format_grouped(step_)));
  const FontScope font(ui.fonts.small);
  const std::string sum = fmt::format("{} in {}", format_bytes(bytes_), counted(blocks_.size(), "block"));
  const std::string sorted = sum + ", largest first";
  const ImVec2 room = ImGui::GetContentRegionAvail();
  muted(ui, text_width(sorted) <= room.x ? sorted : elided(sum, room.x));
  const float spacing = ui.px(2), row = marked_row_height(ui) + spacing;
  const float left = ImGui::GetContentRegionAvail().y + spacing;
  const ChildScope child("blocks", {0, std::max(row, row * std::floor(left / row)) - spacing});  // whole rows
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), spacing});
  for_rows_in_sight(blocks_.size(), [&](std::size_t i) { draw_row(document, ui, blocks_[i]); });
}

void AliveList::draw_row(Document& document, const Ui& ui, plan::BlockId id) {
  const Model& model = *document.model;
  const plan::Block& block = of_->plan.block(id);
  const std::string label = plan::block_label(block, *model.graph, model.owners);
  const auto owner = block.storage ? model.owners[graph::index(*block.storage)] : std::nullopt;
  const auto tensor = document.selected_tensor();
  const bool selected = document.selected() == Selected(id) ||
                        (tensor && block.storage && model.tensor(*tensor).storage == *block.storage);
  const IdScope scope(graph::index(id));
  // a copy in another space differs in its letter, too
  if (marked_row(ui, selected, ui.theme->spaces[plan::index(block.space)], label, format_bytes(block.bytes),
                 ui.theme->muted, capitalized(plan::space_title(block.space)).substr(0, 1)))
    document.select(tensor_or_block(owner, id));
  hover_card(ui, [&] {
    text(shown(label));
    muted(ui, fmt::format("{} bytes in {}", format_grouped(block.bytes), plan::space_title(block.space)));
  });
}

}  // namespace

// --- What is selected, and what is alive at the time cursor.

namespace {

// A link that shows the selection elsewhere.
void show_in(Workspace& workspace, const Ui& ui, const char* words, std::string_view panel) {
  if (link(ui, words, words, text_width(words) + ui.px(2))) workspace.settings.panel = panel;
  ImGui::SameLine(0, ui.px(14));
}

class InspectorPanel final : public Panel {
 public:
  void forget() override { alive_.forget(); }

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_header(Document& document, const Ui& ui);
  void draw_selected(Workspace& workspace, const Ui& ui);
  void draw_model(const Document& document, const Ui& ui);
  static void draw_finding(Workspace& workspace, const Ui& ui, std::size_t at);
  void draw_tensor(Workspace& workspace, const Ui& ui, graph::TensorId id);
  void draw_lifetimes(const Document& document, const Ui& ui, graph::StorageId storage);
  void draw_module(Workspace& workspace, const Ui& ui, graph::NodeId id);
  void draw_operator(Workspace& workspace, const Ui& ui, std::size_t at);
  void draw_block(const Document& document, const Ui& ui, plan::BlockId id);
  void draw_load(Workspace& workspace, const Ui& ui, const LoadOf& load);

  AliveList alive_;
  float above_ = 0;  // what the selection took in the last frame
};

std::string_view kind_of(const Selected& selected) {
  constexpr std::array<std::string_view, std::variant_size_v<Selected>> kKinds = {
      "Model", "Tensor", "Module", "Operator", "Block", "Load", "Finding"};
  return kKinds[selected.index()];
}

void InspectorPanel::draw_header(Document& document, const Ui& ui) {
  const FontScope font(ui.fonts.small);
  const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(6), ui.px(2)});
  ImGui::AlignTextToFramePadding();
  muted(ui, kind_of(document.selected()));
  const float side = text_width("<") + ui.px(12);
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::SameLine(right - 2 * side - ui.px(2));
  if (button(ui, "<", ButtonKind::ghost, document.history.can_go_back())) document.history.go_back();
  tooltip(ui, "Previous selection (Alt+Left)");
  ImGui::SameLine(0, ui.px(2));
  if (button(ui, ">", ButtonKind::ghost, document.history.can_go_forward())) document.history.go_forward();
  tooltip(ui, "Next selection (Alt+Right)");
}

void InspectorPanel::draw_model(const Document& document, const Ui& ui) {
  const Model& model = *document.model;
  {
    const FontScope font(ui.fonts.strong);
    name_text(ui, model.name, 0, ui.theme->text);
  }
  const FontScope font(ui.fonts.small);
  fact_row(ui, "Weights", format_bytes(model.weight_bytes), format_grouped(model.weight_bytes) + " bytes");
  fact_row(ui, "Parameters", format_count(document.parameters()), format_grouped(document.parameters()));
  fact_row(ui, "Tensors", format_grouped(model.graph->tensors.size()));
  std::string types;
  for (const DTypeShare& share : model.dtypes)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", graph::dtype_info(share.dtype).name,
                         format_bytes(share.bytes));
  fact_row(ui, "Types", types);
  fact_row(ui, "Files",
           fmt::format("{}, {}", counted(model.graph->files.size(), "file"), format_bytes(model.disk_bytes)));
  paragraph(ui, "A selection shows in every view.", ui.theme->muted);
}

void InspectorPanel::draw_lifetimes(const Document& document, const Ui& ui, graph::StorageId storage) {
  const auto& projection = document.load.projection.value();
  if (!projection) return;
  constexpr int kMost = 4;
  int shown_rows = 0;
  const plan::Plan& plan = projection->plan;
  for (std::uint32_t i = 0; i < plan.blocks.size() && shown_rows < kMost; ++i) {
    const plan::Lifetime& life = projection->timeline.lifetimes[i];
    if (plan.blocks[i].storage != storage || life.from_step == plan::kNever) continue;
    const bool stays = life.to_step == plan::kNever || life.to_step >= plan.steps.size();
    fact_row(ui, capitalized(plan::space_title(plan.blocks[i].space)),
             fmt::format("step {} to {}", format_grouped(life.from_step),
                         stays ? "the end" : format_grouped(life.to_step)),
             stays ? "It is still allocated when the load has ended" : "");
    ++shown_rows;
  }
}

void InspectorPanel::draw_finding(Workspace& workspace, const Ui& ui, std::size_t at) {
  Document& document = workspace.document();
  if (!document.checks.findings.value() || at >= document.checks.findings.value()->size())
    return muted(ui, "This finding is from an earlier check.");
  const inspect::Finding& finding = (*document.checks.findings.value())[at];
  badge_line(ui, graph::severity_name(finding.severity), severity_color(*ui.theme, finding.severity),
             shown(finding.text), ui.theme->text);
  const FontScope font(ui.fonts.small);
  if (!finding.cost.empty()) paragraph(ui, "Cost: " + shown(finding.cost), ui.theme->text);
  if (!finding.remedy.empty()) paragraph(ui, "Fix: " + shown(finding.remedy), ui.theme->text);
  if (!finding.example) return;
  muted(ui, "For example");
  if (link(ui, "example", shown(document.model->tensor(*finding.example).name)))
    document.select(*finding.example);
}

void InspectorPanel::draw_tensor(Workspace& workspace, const Ui& ui, graph::TensorId id) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const graph::Tensor& tensor = model.tensor(id);
  const graph::Storage& storage = model.graph->storage(tensor.storage);
  const std::uint64_t bytes = model.bytes[graph::index(id)];
  fact_title(ui, tensor.name);
  const FontScope font(ui.fonts.small);
  const std::string remark = storage_remark(model, id);
  const std::string_view type = graph::dtype_info(tensor.dtype).name;
  fact_row(ui, "Type", remark.empty() ? std::string(type) : fmt::format("{}, {}", type, remark),
           strides_text(tensor));
  fact_row(ui, "Shape", shape_text(tensor));
  fact_row(ui, "Size",
           fmt::format("{} ({})", format_bytes(bytes), percent_text(share_of(bytes, model.weight_bytes))),
           format_grouped(bytes) + " bytes");
  fact_row(ui, "Role", graph::role_name(model.roles[graph::index(id)]));
  if (const std::uint32_t tie = model.tie_of[graph::index(id)]; tie > 0) {
    fact_row(ui, "Shares", fmt::format("its bytes with {} other tensors", model.ties[tie - 1].size() - 1));
    hover_card(ui, [&] {
      for (const graph::TensorId other : model.ties[tie - 1]) text(shown(model.tensor(other).name));
    });
  }
  if (storage.file != graph::kNoFile) {
    const std::string& path = model.graph->files[graph::index(storage.file)].path;
    fact_row(ui, "File", std::filesystem::path(path).filename().string(), shown(path));
    fact_row(ui, "At byte", format_grouped(storage.offset + tensor.offset));
  }
  draw_lifetimes(document, ui, tensor.storage);
  show_in(workspace, ui, "Map", "map");
  show_in(workspace, ui, "Tensors", "tensors");
  show_in(workspace, ui, "Load", "load");
  ImGui::NewLine();
}

void InspectorPanel::draw_module(Workspace& workspace, const Ui& ui, graph::NodeId id) {
  constexpr std::size_t kMost = 12;
  Document& document = workspace.document();
  const Model& model = *document.model;
  const graph::ModuleNode& node = model.tree.node(id);
  fact_title(ui, id == graph::kRootNode ? model.name : graph::module_path(model.tree, id));
  const FontScope font(ui.fonts.small);
  fact_row(ui, "Size",
           fmt::format("{} ({})", format_bytes(node.bytes),
                       percent_text(share_of(node.bytes, model.weight_bytes))),
           format_grouped(node.bytes) + " bytes");
  fact_row(ui, "Parameters", format_count(node.parameters));
  fact_row(ui, "Tensors", format_grouped(node.tensors));
  if (link(ui, "zoom", "Show in the map", ui.px(120))) {
    document.zoom(id);
    workspace.settings.panel = "map";
  }
  std::vector<graph::NodeId> children(node.children.begin(), node.children.end());
  std::ranges::stable_sort(children, std::ranges::greater(),
                           [&](graph::NodeId child) { return model.tree.node(child).bytes; });
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(2)});
  for (std::size_t i = 0; i < std::min(children.size(), kMost); ++i) {
    const graph::ModuleNode& child = model.tree.node(children[i]);
    const IdScope scope(i);
    if (marked_row(ui, false, ui.theme->neutral, child.name, format_bytes(child.bytes), ui.theme->muted))
      document.select(child.tensor && child.children.empty() ? Selected(*child.tensor)
                                                             : Selected(children[i]));
  }
  if (children.size() > kMost) muted(ui, fmt::format("and {} more", format_grouped(children.size() - kMost)));
}

void InspectorPanel::draw_operator(Workspace& workspace, const Ui& ui, std::size_t at) {
  constexpr std::size_t kMost = 8;
  Document& document = workspace.document();
  const graph::ForwardGraph* const graph =
      document.forward.scene.value() ? document.forward.graph() : nullptr;
  if (graph == nullptr || at >= graph->ops.size()) return muted(ui, "The forward pass is being computed.");
  const graph::Op& op = graph->ops[at];
  {
    const FontScope strong(ui.fonts.strong);
    name_text(ui, fmt::format("{}  {}", at, op.kind), 0, ui.theme->text);
  }
  const FontScope font(ui.fonts.small);
  if (!op.name.empty()) fact_row(ui, "Name", op.name);
  const auto values = [&](std::string_view label, const std::vector<graph::ValueId>& list) {
    for (std::size_t i = 0; i < std::min(list.size(), kMost); ++i)
      fact_row(ui, i == 0 ? label : "",
               fmt::format("{}  {}", value_text(*graph, list[i]),
                           value_size_text(document.forward.figures().get(), list[i])));
  };
  values("Inputs", op.inputs);
  values("Outputs", op.outputs);
  for (std::size_t i = 0; i < std::min(op.weights.size(), kMost); ++i) {
    const IdScope scope(i);
    const graph::TensorId id = op.weights[i];
    if (marked_row(ui, false, ui.theme->neutral, document.model->tensor(id).name.str(),
                   format_bytes(document.model->bytes[graph::index(id)]), ui.theme->muted))
      document.select(id);
  }
  show_in(workspace, ui, "Operators", "operators");
  show_in(workspace, ui, "Lifetimes", "lifetimes");
  ImGui::NewLine();
}

void InspectorPanel::draw_block(const Document& document, const Ui& ui, plan::BlockId id) {
  const load::Projection& projection = *document.load.projection.value();
  const plan::Block& block = projection.plan.block(id);
  fact_title(ui, plan::block_label(block, *document.model->graph, document.model->owners));
  const FontScope font(ui.fonts.small);
  fact_row(ui, "Memory", capitalized(plan::space_title(block.space)));
  fact_row(ui, "Size", format_bytes(block.bytes), format_grouped(block.bytes) + " bytes");
  const plan::Lifetime& life = projection.timeline.lifetimes[graph::index(id)];
  if (life.from_step == plan::kNever) return;
  fact_row(ui, "Alive",
           fmt::format("step {} to {}", format_grouped(life.from_step),
                       life.to_step == plan::kNever ? "the end" : format_grouped(life.to_step)));
}

void InspectorPanel::draw_load(Workspace& workspace, const Ui& ui, const LoadOf& load) {
  Document& document = workspace.document();
  const auto& rows = document.load.comparison.value()->answer.rows;
  const auto found = std::ranges::find_if(rows, [&](const load::LoadRow& one) {
    return one.method->id == load.method && one.order == load.order;
  });
  {
    const FontScope strong(ui.fonts.strong);
    name_text(ui, fmt::format("{}, {} order", load.method, load.order), 0, ui.theme->text);
  }
  const FontScope font(ui.fonts.small);
  if (found == rows.end()) return muted(ui, "This load is not in the comparison.");
  paragraph(ui, found->method->summary, ui.theme->text);
  fact_row(ui, "Peak law", load::law_text(*found->method),
           fmt::format("The peak as a formula. {}\n\n{}", report::law_legend({found->method}),
                       report::method_explanation(found->method->id)));
  if (found->refusal) return paragraph(ui, shown(found->refusal->what()), ui.theme->bad);
  for (const plan::Space space : plan::kSpaceOrder)
    if (const load::RowPeak& peak = found->peaks[plan::index(space)]; peak.bytes > 0)
      fact_row(ui, capitalized(plan::space_title(space)), format_bytes(peak.bytes),
               fmt::format("reached at {}", shown(peak.tensor)));
  const load::BoundRequest& bound = *document.load.comparison.value()->answer.bound;
  if (bound.judged())
    paragraph(ui, report::verdict_text(*found, bound), found->fits() ? ui.theme->good : ui.theme->bad);
}

void InspectorPanel::draw_selected(Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Selected selected = document.selected();  // a click may change it
  if (const auto* const tensor = std::get_if<graph::TensorId>(&selected))
    return draw_tensor(workspace, ui, *tensor);
  if (const auto* const module = std::get_if<graph::NodeId>(&selected))
    return draw_module(workspace, ui, *module);
  if (const auto* const finding = std::get_if<FindingAt>(&selected))
    return draw_finding(workspace, ui, finding->at);
  if (const auto* const op = std::get_if<OperatorAt>(&selected)) return draw_operator(workspace, ui, op->at);
  if (const auto* const block = std::get_if<plan::BlockId>(&selected))
    return draw_block(document, ui, *block);
  if (const auto* const load = std::get_if<LoadOf>(&selected)) return draw_load(workspace, ui, *load);
  draw_model(document, ui);
}

void InspectorPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model) return;
  draw_header(document, ui);
  const float room = ImGui::GetContentRegionAvail().y;
  {
    // what is alive keeps at least some rows
    const float most = std::max(room * 0.45f, room - ui.px(170));
    // and what is selected ends with a whole line
    const float lines = fact_height(ui) * std::floor(most / fact_height(ui));
    const ChildScope child("selected", {0, above_ <= most ? std::max(above_, ui.px(40)) : lines});
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(4)});
    draw_selected(workspace, ui);
    above_ = ImGui::GetCursorPosY() + ui.px(6);
  }
  ImGui::Separator();
  alive_.draw(document, ui);
}

}  // namespace

std::unique_ptr<Panel> make_inspector_panel() { return std::make_unique<InspectorPanel>(); }

}  // namespace loadline::gui
