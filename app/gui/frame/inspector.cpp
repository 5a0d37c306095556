// What is selected, and what is alive at the time cursor.

#include "app/gui/frame/facts.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {

// --- The list of blocks that are alive at one step of the load, largest first.

namespace {

// Follows the time cursor and the filter. A click on a block selects its tensor, or the block if it has none.
class AliveList {
 public:
  // Fills the rest of the region.
  void draw(Workspace& workspace, const Ui& ui);
  void forget() { of_.reset(); }

 private:
  void refresh(const Document& document);
  void keep_filtered(const Model& model, const TableView& table);
  void draw_row(Workspace& workspace, const Ui& ui, plan::BlockId id);

  std::shared_ptr<const load::Projection> of_;
  std::size_t step_ = 0;
  std::string filter_;
  std::vector<plan::BlockId> blocks_;
  std::string shared_;  // what all their names begin with, which goes without saying
  plan::PerSpace<std::uint64_t> bytes_ = {};
};

void AliveList::refresh(const Document& document) {
  const std::size_t step = document.hover.step.value_or(document.time.step());
  const TableView& table = document.table.view();
  const std::string& filter = table.lit.empty() ? std::string() : table.applied;
  if (of_ == document.load.projection.value() && step_ == step && filter_ == filter) return;
  filter_ = filter;
  of_ = document.load.projection.value();
  step_ = step;
  blocks_ = plan::alive_at(of_->timeline, of_->plan, step, plan::kAllSpaces);
  for (const plan::Space space : plan::kSpaceOrder)
    bytes_[plan::index(space)] = plan::usage_at(of_->timeline, step, plan::space_bit(space));
  const Model& model = *document.model;
  if (!filter_.empty()) keep_filtered(model, table);
  shared_.clear();
  for (std::size_t i = 0; i < blocks_.size() && (i == 0 || !shared_.empty()); ++i) {
    const std::string name = plan::block_label(of_->plan.block(blocks_[i]), *model.graph, model.owners);
    shared_ = i == 0 ? name : shared_;
    // the last two parts stay: "weight" alone names nothing
    shared_.resize(shared_parts(shared_, shared_.size(), std::string_view(name).substr(0, name.rfind('.'))));
  }
}

void AliveList::keep_filtered(const Model& model, const TableView& table) {
  std::erase_if(blocks_, [&](plan::BlockId id) {
    const auto storage = of_->plan.block(id).storage;
    const auto owner = storage ? model.owners[graph::index(*storage)] : std::nullopt;
    return !owner || !table.lit[graph::index(model.nodes[graph::index(*owner)])];
  });
  bytes_ = {};
  for (const plan::BlockId id : blocks_)
    bytes_[plan::index(of_->plan.block(id).space)] += of_->plan.block(id).bytes;
}

void AliveList::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.load.projection.value()) return;
  refresh(document);
  const bool peak = document.time.at_peak() && !document.hover.step;
  const bool end = step_ >= of_->plan.steps.size();
  heading(ui, peak  ? "In the load, at the peak"
              : end ? "In the load, at the end"
                    : fmt::format("In the load, at step {}", format_grouped(step_)));
  const FontScope font(ui.fonts.small);
  // a line each: no memory holds their sum
  for (const plan::Space space : plan::kSpaceOrder)
    if (const std::uint64_t bytes = bytes_[plan::index(space)]; bytes > 0)
      legend_entry(ui, ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)),
                   format_bytes(bytes));
  muted(ui, elided(fmt::format("{}{}", counted(blocks_.size(), "block"),
                               filter_.empty() ? ", largest first" : " that pass the filter"),
                   ImGui::GetContentRegionAvail().x));
  const float spacing = ui.px(2), row = marked_row_height(ui) + spacing;
  const float left = ImGui::GetContentRegionAvail().y + spacing;
  const ChildScope child("blocks", {0, std::max(row, row * std::floor(left / row)) - spacing});  // whole rows
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), spacing});
  for_rows_in_sight(blocks_.size(), [&](std::size_t i) { draw_row(workspace, ui, blocks_[i]); });
}

void AliveList::draw_row(Workspace& workspace, const Ui& ui, plan::BlockId id) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const plan::Block& block = of_->plan.block(id);
  const std::string label = plan::block_label(block, *model.graph, model.owners);
  const auto owner = block.storage ? model.owners[graph::index(*block.storage)] : std::nullopt;
  const auto tensor = document.selected_tensor();
  const bool selected = document.selected() == Selected(id) ||
                        (tensor && block.storage && model.tensor(*tensor).storage == *block.storage);
  const IdScope scope(graph::index(id));
  // a copy in another space differs in its letter, too
  if (marked_row(ui, selected, ui.theme->spaces[plan::index(block.space)],
                 std::string_view(label).substr(shared_.size()), format_bytes(block.bytes), ui.theme->muted,
                 capitalized(plan::space_title(block.space)).substr(0, 1)))
    document.select(tensor_or_block(owner, id));
  if (is_right_clicked()) document.select_for_menu(tensor_or_block(owner, id));
  if (owner && ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    workspace.settings.panel = "values";
  hover_card(ui, [&] {
    text(shown(label));
    muted(ui, fmt::format("{} bytes in {}", format_grouped(block.bytes), plan::space_title(block.space)));
  });
}

}  // namespace

// --- What is selected, and what is alive at the time cursor.

namespace {

class InspectorPanel final : public Panel {
 public:
  void forget() override {
    alive_.forget();
    known_.reset();
  }

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  static void draw_header(Document& document, const Ui& ui, const SelectionFacts& of);
  static void draw_facts(Workspace& workspace, const Ui& ui, const SelectionFacts& of);
  static void draw_links(Workspace& workspace, const Ui& ui, const SelectionFacts& of);

  // What the facts were made of: an operator may have thousands of inputs.
  struct Known {
    Selected selected;
    std::array<std::shared_ptr<const void>, 5> of;
    std::size_t constants;
    std::string caveats, uncounted;
    std::uint64_t parameters;
    bool operator==(const Known&) const = default;
  };
  void refresh(Document& document);

  AliveList alive_;
  std::optional<Known> known_;
  SelectionFacts facts_;
  float above_ = 0;  // what the selection took in the last frame
};

// The facts as text, JSON or Markdown, or the name alone.
void draw_copies(const Ui& ui, const SelectionFacts& of) {
  constexpr std::array<std::string_view, kCopyFormNames.size()> kTitles = {"Text", "JSON", "Markdown",
                                                                           "Name only"};
  if (button(ui, "Copy", ButtonKind::ghost)) ImGui::OpenPopup("copy");
  tooltip(ui, "Copies what stands here, in one of several forms");
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  if (!ImGui::BeginPopup("copy")) return;
  for (std::size_t i = 0; i < kCopyFormNames.size(); ++i)
    if (ImGui::Selectable(kTitles[i].data()))
      ImGui::SetClipboardText(facts_text(of, static_cast<CopyForm>(i)).c_str());
  ImGui::EndPopup();
}

void InspectorPanel::draw_header(Document& document, const Ui& ui, const SelectionFacts& of) {
  const FontScope font(ui.fonts.small);
  const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(6), ui.px(2)});
  ImGui::AlignTextToFramePadding();
  muted(ui, of.kind);
  const float side = text_width("<") + ui.px(12);
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::SameLine(right - 2 * side - ui.px(10) - text_width("Copy") - ui.px(12));
  draw_copies(ui, of);
  ImGui::SameLine(right - 2 * side - ui.px(2));
  if (button(ui, "<", ButtonKind::ghost, document.history.can_go_back())) document.history.go_back();
  tooltip(ui, "Previous selection (Alt+Left)");
  ImGui::SameLine(0, ui.px(2));
  if (button(ui, ">", ButtonKind::ghost, document.history.can_go_forward())) document.history.go_forward();
  tooltip(ui, "Next selection (Alt+Right)");
}

void draw_fact(const Ui& ui, const Fact& fact) {
  if (fact.form == Fact::Form::row) {
    for (std::size_t i = 0; i < fact.lines.size(); ++i)
      fact_row(ui, i == 0 ? fact.label : "", fact.lines[i], fact.hint);
    return;
  }
  const ImU32 color = fact.form == Fact::Form::good      ? ui.theme->good
                      : fact.form == Fact::Form::warning ? ui.theme->warning
                      : fact.form == Fact::Form::bad     ? ui.theme->bad
                                                         : ui.theme->text;
  for (const std::string& line : fact.lines)
    paragraph(ui, fact.label.empty() ? line : fact.label + ": " + line, color);
}

void InspectorPanel::draw_facts(Workspace& workspace, const Ui& ui, const SelectionFacts& of) {
  if (of.severity)
    badge_line(ui, graph::severity_name(*of.severity), severity_color(*ui.theme, *of.severity),
               shown(of.title), ui.theme->text);
  else if (!of.title.empty())
    fact_title(ui, of.title);
  const FontScope font(ui.fonts.small);
  if (!of.absent.empty()) muted(ui, of.absent);
  for (const Fact& fact : of.facts) draw_fact(ui, fact);
  draw_links(workspace, ui, of);
}

void InspectorPanel::draw_links(Workspace& workspace, const Ui& ui, const SelectionFacts& of) {
  Document& document = workspace.document();
  const Selected selected = document.selected();  // a click may change it
  for (std::size_t i = 0; i < of.panels.size(); ++i) {
    const PanelRow& panel = find_panel(of.panels[i]);
    if (i > 0) continue_line(ui, 14, text_width(panel.title));
    if (!link(ui, of.panels[i].data(), panel.title, text_width(panel.title) + ui.px(2))) continue;
    if (const auto* const module = std::get_if<graph::NodeId>(&selected)) document.zoom(*module);
    workspace.settings.panel = panel.id;
  }
  if (!of.links_title.empty()) muted(ui, of.links_title);
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(2)});
  for (std::size_t i = 0; i < of.links.size(); ++i) {
    const IdScope scope(i);
    const std::uint64_t bytes = of.links[i].bytes;
    if (marked_row(ui, false, ui.theme->neutral, of.links[i].name, bytes > 0 ? format_bytes(bytes) : "",
                   ui.theme->muted))
      document.select(of.links[i].to);
    if (is_right_clicked()) document.select_for_menu(of.links[i].to);
  }
  if (of.more_links > 0) muted(ui, fmt::format("and {} more", format_grouped(of.more_links)));
}

void InspectorPanel::refresh(Document& document) {
  std::string caveats;
  for (const Caveat& caveat : document.caveats()) caveats += caveat.text;
  const Known now = {
      document.selected(),
      {document.load.projection.value(), document.forward.scene.value(), document.forward.figures(),
       document.checks.findings.value(), document.load.comparison.value()},
      document.constants.known(),
      std::move(caveats),
      document.uncounted(),
      document.parameters()};
  if (known_ == now) return;
  known_ = now;
  document.constants.want(constants_of(document));
  facts_ = facts_of(document, document.selected());
}

void InspectorPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model) return;
  refresh(document);
  const SelectionFacts& facts = facts_;
  draw_header(document, ui, facts);
  const float room = ImGui::GetContentRegionAvail().y;
  {
    // what is alive keeps its title, its sums and a row, and takes what the selection leaves
    const float most = std::max(room * 0.45f, room - ui.px(130));
    // and what is selected ends with a whole line
    const float lines = fact_height(ui) * std::floor(most / fact_height(ui));
    const ChildScope child("selected", {0, above_ <= most ? std::max(above_, ui.px(40)) : lines});
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(4)});
    draw_facts(workspace, ui, facts);
    above_ = ImGui::GetCursorPosY() + ui.px(6);
  }
  ImGui::Separator();
  alive_.draw(workspace, ui);
}

}  // namespace

std::unique_ptr<Panel> make_inspector_panel() { return std::make_unique<InspectorPanel>(); }

}  // namespace loadline::gui
