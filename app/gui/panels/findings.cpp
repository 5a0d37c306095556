// Problems of the model and of its loading, each with its cost and its remedy.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/base/services.h"
#include "app/gui/state/model/model.h"
#include "core/base/text.h"

#include <algorithm>
#include <variant>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr std::string_view kLookedFor =
    "misaligned tensors, pages shared by two tensors, gaps and remainders, partly used storages, "
    "encodings that cannot be mapped, the order of use against the "
    "order in the file, equal bytes stored twice, files outside the index, and slow file systems";

// What cannot be done with the model, before why.
void draw_use(const Document& document, const Ui& ui) {
  const Model& model = *document.model;
  const auto refusal = [&](std::string_view verdict, const std::string& why, ImU32 color) {
    if (!why.empty()) badge_line(ui, verdict, color, shown(why), ui.theme->text, 10);
  };
  refusal("cannot be converted or uploaded", use_misfit(model), ui.theme->bad);
  refusal("cannot be mapped", model.mapping_refusal, ui.theme->warning);
}

void draw_note(Document& document, const Ui& ui, const graph::Note& note) {
  paragraph(ui, shown(note.text), ui.theme->text);
  if (!note.tensor) return;
  const FontScope font(ui.fonts.mono);
  if (!link(ui, "tensor", *note.tensor)) return;
  const auto& tensors = document.model->graph->tensors;
  const auto named =
      std::ranges::find_if(tensors, [&](const graph::Tensor& t) { return t.name == *note.tensor; });
  if (named != tensors.end())
    document.select(graph::TensorId{static_cast<std::uint32_t>(named - tensors.begin())});
}

void draw_finding(Workspace& workspace, const Ui& ui, const inspect::Finding& finding) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  {
    const FontScope font(ui.fonts.strong);
    paragraph(ui, shown(finding.text), ui.theme->text);
  }
  const float labels = ui.px(66);
  const float left = ImGui::GetCursorPosX();
  const auto labeled = [&](std::string_view label, const auto& draw) {
    muted(ui, label);
    ImGui::SameLine(labels);
    draw();
  };
  labeled("cost", [&] { paragraph(ui, shown(finding.cost), ui.theme->text); });
  labeled("fix", [&] { paragraph(ui, shown(finding.remedy), ui.theme->text); });
  if (finding.example)
    labeled("example", [&] {
      const FontScope font(ui.fonts.mono);
      if (link(ui, "example", model.tensor(*finding.example).name)) document.select(*finding.example);
    });
  if (!finding.files.empty())
    labeled("files", [&] { paragraph(ui, shown(join_names(finding.files, 4)), ui.theme->text); });
  if (finding.settings.empty()) return;
  ImGui::Dummy({0, ui.px(1)});
  ImGui::SetCursorPosX(left + labels);
  const bool converts = remedy_kind(finding.settings) == RemedyKind::convert;
  if (button(ui, remedy_title(finding.settings), ButtonKind::normal, !converts || use_misfit(model).empty()))
    workspace.attempt([&] { workspace.mend(finding.settings); });
}

class FindingsPanel final : public Panel {
 public:
  FindingsPanel() : Panel("Lists problems in the files of the model.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  // A note of the import, a finding of the doctor, or a caveat that is no note.
  struct Item {
    enum class From { finding, caveat, note } from = From::note;
    graph::Severity severity = graph::Severity::info;
    std::size_t at = 0;
    float height = 0;  // as last drawn in `width`
    float width = 0;
  };
  void collect(const Document& document);
  void draw_head(Workspace& workspace, const Ui& ui);
  void draw_item(Workspace& workspace, const Ui& ui, const Item& item);

  std::uint64_t seen_model_ = 0;
  bool seen_findings_ = false;
  std::size_t seen_caveats_ = 0;
  std::vector<Item> items_;  // the gravest first
  std::size_t left_out_ = 0;
};

void FindingsPanel::collect(const Document& document) {
  // every row takes its share of every frame
  constexpr std::size_t kMostNotes = 2000;
  const bool found = document.checks.findings.value() != nullptr;
  const std::vector<Caveat>& caveats = document.caveats();
  if (seen_model_ == document.id && seen_findings_ == found && seen_caveats_ == caveats.size()) return;
  seen_model_ = document.id;
  seen_findings_ = found;
  seen_caveats_ = caveats.size();
  items_.clear();
  const graph::MetaGraph& graph = *document.model->graph;
  if (found)
    for (std::size_t i = 0; i < document.checks.findings.value()->size(); ++i)
      items_.push_back({Item::From::finding, (*document.checks.findings.value())[i].severity, i});
  for (std::size_t i = 0; i < caveats.size(); ++i)  // the doctor finds what is missing, too
    if (!caveats[i].is_note && (!found || caveats[i].severity != graph::Severity::error))
      items_.push_back({Item::From::caveat, caveats[i].severity, i});
  std::vector<Item> notes;
  for (std::size_t i = 0; i < graph.notes.size(); ++i)
    notes.push_back({Item::From::note, graph.notes[i].severity, i});
  const auto graver = [](const Item& a, const Item& b) { return a.severity > b.severity; };
  std::ranges::stable_sort(notes, graver);
  left_out_ = notes.size() - std::min(notes.size(), kMostNotes);
  notes.resize(notes.size() - left_out_);
  items_.insert(items_.end(), notes.begin(), notes.end());
  std::ranges::stable_sort(items_, graver);
}

void FindingsPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  collect(document);
  const CardScope card(ui, "findings", {0, 0});
  draw_head(workspace, ui);
  collect(document);  // whoever looks again has no findings meanwhile
  if (items_.empty() && !document.checks.findings.busy())
    return document.checks.findings.value()
               ? empty_state(ui, "No problems found", "The model can be loaded as it is.")
           : document.model->shapes_only
               ? empty_state(ui, "No problems in the headers",
                             "Only the configuration of this model is known.")
               : empty_state(ui, "No problems in the headers", "\"Check files\" looks further.");
  const ChildScope child("items");
  const float width = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (item.width == width && !ImGui::IsRectVisible({width, item.height})) {
      ImGui::Dummy({0, item.height});
      continue;
    }
    const IdScope scope(i);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool selectable = item.from == Item::From::finding;
    const auto* const selected = std::get_if<FindingAt>(&document.selected());
    if (selectable && selected != nullptr && selected->at == item.at)
      ImGui::GetWindowDrawList()->AddRectFilled(at, at + ImVec2{width, item.height}, ui.theme->selected,
                                                ui.px(4));
    {
      const GroupScope group;
      draw_item(workspace, ui, item);
    }
    if (selectable && ImGui::IsItemHovered() && !ImGui::IsAnyItemActive() &&
        ImGui::IsMouseClicked(ImGuiMouseButton_Left))
      document.select(FindingAt{item.at});
    if (selectable && is_right_clicked()) document.select_for_menu(FindingAt{item.at});
    item.height = ImGui::GetItemRectSize().y;
    item.width = width;
  }
  if (left_out_ > 0) muted(ui, fmt::format("and {} more notes", format_grouped(left_out_)));
}

void FindingsPanel::draw_head(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  draw_use(document, ui);
  const bool files = !model.graph->files.empty() && !model.shapes_only;
  const bool looked = document.checks.findings.value() != nullptr;
  if (document.checks.findings.busy()) {
    const auto job = workspace.services.jobs.find(document.checks.findings.job());
    control_text("Checking files", ui.theme->text);
    ImGui::SameLine(0, ui.px(12));
    if (progress_with_stop(ui, job ? job->fraction : 0)) document.checks.findings.cancel();
    if (job && job->total > 0)
      muted(ui, fmt::format("{} of {} compared: equal sizes may hold equal bytes", format_bytes(job->done),
                            format_bytes(job->total)));
  } else {
    if (button(ui, looked ? "Check again" : "Check files", looked ? ButtonKind::normal : ButtonKind::primary,
               files))
      workspace.attempt([&] { document.checks.diagnose(); });
    ImGui::SameLine(0, ui.px(14));
    ImGui::AlignTextToFramePadding();
    std::size_t found = 0;
    for (const Item& item : items_) found += item.from == Item::From::finding;
    if (!files)
      muted(ui, "No file holds the weights of this model: there is nothing to check.");
    else if (looked)
      muted(ui,
            fmt::format("{} in the files, {} from opening them", found, items_.size() - found + left_out_));
    else
      name_text(ui, "Reads tensors that may be duplicates; headers tell the rest.", 0, ui.theme->muted);
    if (!document.checks.diagnosis_error().empty())
      paragraph(ui, shown(document.checks.diagnosis_error()), ui.theme->warning);
  }
  if (!looked && files) {
    const FontScope font(ui.fonts.small);
    paragraph(ui, fmt::format("Checks for {}.", kLookedFor), ui.theme->muted);
  }
  ImGui::Dummy({0, ui.px(4)});
  ImGui::Separator();
}

void FindingsPanel::draw_item(Workspace& workspace, const Ui& ui, const Item& item) {
  Document& document = workspace.document();
  const graph::MetaGraph& graph = *document.model->graph;
  ImGui::Dummy({0, ui.px(3)});
  badge(ui, graph::severity_name(item.severity), severity_color(*ui.theme, item.severity));
  ImGui::SameLine(ui.px(76));
  {
    const GroupScope group;
    if (item.from == Item::From::finding)
      draw_finding(workspace, ui, (*document.checks.findings.value())[item.at]);
    else if (item.from == Item::From::note)
      draw_note(document, ui, graph.notes[item.at]);
    else
      paragraph(ui, shown(document.caveats()[item.at].text), ui.theme->text);
  }
  ImGui::Dummy({0, ui.px(3)});
}

}  // namespace

std::unique_ptr<Panel> make_findings_panel() { return std::make_unique<FindingsPanel>(); }

}  // namespace loadline::gui
