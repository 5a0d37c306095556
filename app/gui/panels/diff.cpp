// The sheet that compares the model shown with another open one: weights by kind of difference, metadata.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// The models that can be chosen: all open ones but the one shown.
std::vector<const Document*> others(const Workspace& workspace) {
  std::vector<const Document*> all;
  for (const auto& document : workspace.documents())
    if (document->model && document->id != workspace.document().id) all.push_back(document.get());
  return all;
}

std::string whole_text(const DiffSide& side) {
  return fmt::format("{}, {}, {}", side.type, side.shape, format_bytes(side.bytes));
}

// What the column is about: the rest is in its tooltip.
std::string side_text(DiffKind kind, const std::optional<DiffSide>& side) {
  if (!side) return "-";
  if (kind == DiffKind::shape) return side->shape;
  if (kind == DiffKind::type) return fmt::format("{}, {}", side->type, format_bytes(side->bytes));
  return whole_text(*side);
}

class DiffPanel final : public Panel {
 public:
  DiffPanel() : Panel("Open two models to see what differs.") {}
  void forget() override {
    listed_.reset();
    rows_.clear();
  }

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_choice(Workspace& workspace, const Ui& ui, const std::vector<const Document*>& choice);
  void draw_kinds(const ModelDiff& diff, const Ui& ui);
  void draw_openers(Workspace& workspace, const Ui& ui);
  void draw_rows(Workspace& workspace, const ModelDiff& diff, const Ui& ui);
  void draw_metadata(const ModelDiff& diff, const Ui& ui);
  void move_selection(Document& document, const ModelDiff& diff, const Ui& ui);
  void list(const ModelDiff& diff);

  // The kind that is listed; kDiffKinds: all that differ; one more: the metadata.
  static constexpr std::size_t kAll = kDiffKinds, kMetadata = kDiffKinds + 1;
  std::size_t kind_ = kAll;
  std::shared_ptr<const ModelDiff> listed_;
  std::size_t listed_kind_ = kAll;
  std::vector<std::size_t> rows_;      // positions in the diff
  std::array<std::string, 2> titles_;  // of the columns of this model and of the other
  std::optional<std::size_t> at_;      // the row that the arrows came to
};

// The panel stays while another model opens, and then compares the two.
void DiffPanel::draw_openers(Workspace& workspace, const Ui& ui) {
  heading(ui, "Only one model is open");
  muted(ui, "Open the model to compare this one with:");
  if (button(ui, "Choose a file", ButtonKind::primary)) workspace.services.requests.add(OpenBrowser{});
  ImGui::Dummy({0, ui.px(6)});
  const std::string here = absolute_path(workspace.document().model->path);
  std::size_t listed = 0;
  for (const auto* const paths : {&workspace.settings.favorites, &workspace.settings.recent})
    for (const std::string& path : *paths) {
      constexpr std::size_t kMostListed = 12;
      const IdScope scope(listed);
      if (path == here || listed == kMostListed) continue;
      ++listed;
      if (link(ui, "path", path, 0, true)) return workspace.open(path);
    }
}

void DiffPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const CardScope card(ui, "diff", {0, 0});
  const std::vector<const Document*> choice = others(workspace);
  DiffView& diff = document.diff;
  if (choice.empty() && !diff.there()) {
    draw_openers(workspace, ui);
    return;
  }
  if (!diff.there())
    workspace.attempt(
        [&] { diff.begin(workspace.documents()[*workspace.nearest_document()]->model, false); });
  draw_choice(workspace, ui, choice);
  if (diff.result.busy()) {
    const auto job = workspace.services.jobs.find(diff.result.job());
    if (progress_with_stop(ui, job ? job->fraction : 0)) diff.result.cancel();
  } else if (diff.result.error() != nullptr) {
    paragraph(ui,
              diff.result.was_canceled() ? "Stopped before it was done." : shown(diff.result.error_text()),
              diff.result.was_canceled() ? ui.theme->muted : ui.theme->warning);
  }
  const std::shared_ptr<const ModelDiff> found = diff.result.value();
  if (!found) return;
  if (kind_ < kDiffKinds && found->counts[kind_] == 0) kind_ = kAll;  // of another pair of models
  draw_kinds(*found, ui);
  if (kind_ == kMetadata) return draw_metadata(*found, ui);
  if (listed_ != found || listed_kind_ != kind_) {
    listed_ = found;
    listed_kind_ = kind_;
    list(*found);
  }
  draw_rows(workspace, *found, ui);
}

void DiffPanel::draw_choice(Workspace& workspace, const Ui& ui, const std::vector<const Document*>& choice) {
  Document& document = workspace.document();
  DiffView& diff = document.diff;
  control_text(elided(shown(document.model->name), ui.px(200)), ui.theme->text);
  ImGui::SameLine(0, ui.px(8));
  control_text(format_bytes(document.model->weight_bytes), ui.theme->muted);
  ImGui::SameLine(0, ui.px(8));
  control_text("against", ui.theme->muted);
  ImGui::SameLine(0, ui.px(8));
  std::vector<std::string> names;
  std::size_t now = choice.size();
  for (std::size_t i = 0; i < choice.size(); ++i) {
    names.push_back(tab_title(workspace, *choice[i]));
    if (choice[i]->model == diff.there()) now = i;
  }
  const std::string preview = now < choice.size() ? names[now] : diff.there() ? diff.there()->name : "";
  titles_ = {shown(tab_title(workspace, document)), shown(preview)};
  if (const auto picked = combo(ui, "##other", ui.px(220), shown(preview), names, now))
    workspace.attempt([&] { diff.begin(choice[*picked]->model, false); });
  tooltip(ui, diff.there() ? shown(diff.there()->path) : "");
  if (diff.there()) {
    ImGui::SameLine(0, ui.px(8));
    control_text(format_bytes(diff.there()->weight_bytes), ui.theme->muted);
  }
  const bool valued = diff.result.value() && diff.result.value()->values;
  if (!diff.result.busy()) {
    ImGui::SameLine(0, ui.px(12));
    if (button(ui, valued ? "Compare values again" : "Compare values",
               valued ? ButtonKind::normal : ButtonKind::primary))
      workspace.attempt([&] { diff.begin(diff.there(), true); });
    tooltip(ui, "Reads both models. Where types differ, the numbers are compared");
  }
}

// A chip for each kind there is, which lists it alone.
void DiffPanel::draw_kinds(const ModelDiff& diff, const Ui& ui) {
  ImGui::Dummy({0, ui.px(2)});
  const auto chip = [&](std::size_t kind, const std::string& words, bool first) {
    if (!first) continue_line(ui, 8, text_width(words) + ui.px(24));
    if (button(ui, words, kind_ == kind ? ButtonKind::primary : ButtonKind::normal)) kind_ = kind;
  };
  const std::size_t equal = diff.counts[static_cast<std::size_t>(DiffKind::equal)];
  chip(kAll, fmt::format("differ {}", format_grouped(diff.rows.size() - equal)), true);
  for (std::size_t i = 0; i < kDiffKinds; ++i)
    if (diff.counts[i] > 0)
      chip(i, fmt::format("{} {}", diff_kind_name(static_cast<DiffKind>(i)), format_grouped(diff.counts[i])),
           false);
  if (!diff.metadata.empty() || !diff.metadata_problem.empty())
    chip(kMetadata, fmt::format("metadata {}", format_grouped(diff.metadata.size())), false);
  std::string note;
  if (diff.mapped) note = "Compared as a GGUF file holds them: llama.cpp's names, norms in F32. ";
  if (!diff.values) note += "Values were not compared.";
  if (!note.empty()) muted(ui, note);
  ImGui::Dummy({0, ui.px(2)});
}

void DiffPanel::list(const ModelDiff& diff) {
  rows_.clear();
  for (std::size_t i = 0; i < diff.rows.size(); ++i) {
    const auto kind = static_cast<std::size_t>(diff.rows[i].kind);
    if (kind_ == kAll ? diff.rows[i].kind != DiffKind::equal : kind == kind_) rows_.push_back(i);
  }
}

void DiffPanel::move_selection(Document& document, const ModelDiff& diff, const Ui& ui) {
  const auto is_selected = [&](std::size_t i) {
    return diff.rows[i].here && document.selected() == Selected(*diff.rows[i].here);
  };
  const auto found = std::ranges::find_if(rows_, is_selected);
  if (found != rows_.end()) at_ = static_cast<std::size_t>(found - rows_.begin());
  if (at_ && *at_ >= rows_.size()) at_.reset();
  const auto now = row_by_keys(ui, at_, rows_.size());
  if (!now) return;
  at_ = now;
  if (const auto& here = diff.rows[rows_[*now]].here)
    document.select(*here);
  else
    document.select({});  // there is nothing of it in this model
  scroll_to_row(*now);
}

void DiffPanel::draw_rows(Workspace& workspace, const ModelDiff& diff, const Ui& ui) {
  if (rows_.empty())
    return empty_state(
        ui, diff.values ? "No tensor differs" : "No name, type or shape differs",
        diff.values ? "Both models hold the same weights." : "Compare values to be sure of the numbers.");
  Document& document = workspace.document();
  const int columns = diff.values ? 5 : 4;
  if (!ImGui::BeginTable("rows", columns, kListTable | ImGuiTableFlags_Resizable,
                         ImGui::GetContentRegionAvail()))
    return;
  fixed_column(ui, "Differs in", 88);
  stretched_column("Tensor", 5);
  for (const std::string& title : titles_) stretched_column(title.c_str(), 3);
  if (diff.values) stretched_column("Numbers", 4);
  table_headers(ui);
  move_selection(document, diff, ui);
  for_rows_in_sight(rows_.size(), [&](std::size_t i) {
    const DiffRow& row = diff.rows[rows_[i]];
    const IdScope scope(i);
    const bool selected = row.here ? document.selected() == Selected(*row.here) : at_ == i;
    if (table_row(selected)) {
      at_ = i;
      document.select(row.here ? Selected(*row.here) : Selected());
    }
    text_colored(row.kind == DiffKind::equal ? ui.theme->muted : diff_color(*ui.theme, row.kind),
                 diff_kind_name(row.kind));
    ImGui::TableNextColumn();
    name_text(ui, row.name, 0, ui.theme->text);
    for (const std::optional<DiffSide>& side : {row.a, row.b}) {
      ImGui::TableNextColumn();
      name_text(ui, side_text(row.kind, side), 0, ui.theme->muted);
      if (side) tooltip(ui, whole_text(*side));
    }
    if (!diff.values) return;
    ImGui::TableNextColumn();
    // the largest difference; how many numbers differ is in the tooltip
    name_text(ui, row.detail.substr(0, row.detail.find(" at most, ")), 0, ui.theme->muted);
    tooltip(ui, shown(row.detail));
  });
  ImGui::EndTable();
}

void DiffPanel::draw_metadata(const ModelDiff& diff, const Ui& ui) {
  if (!diff.metadata_problem.empty()) paragraph(ui, shown(diff.metadata_problem), ui.theme->warning);
  if (diff.metadata.empty()) return;
  if (!ImGui::BeginTable("metadata", 3, kListTable | ImGuiTableFlags_Resizable,
                         ImGui::GetContentRegionAvail()))
    return;
  stretched_column("Key", 4);
  for (const std::string& title : titles_) stretched_column(title.c_str(), 4);
  table_headers(ui);
  for_rows_in_sight(diff.metadata.size(), [&](std::size_t i) {
    const inspect::MetadataDifference& row = diff.metadata[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    name_text(ui, row.key, 0, ui.theme->text);
    for (const auto& value : {row.a, row.b}) {
      ImGui::TableNextColumn();
      name_text(ui, value ? *value : "-", 0, ui.theme->muted);
    }
  });
  ImGui::EndTable();
}

}  // namespace

std::unique_ptr<Panel> make_diff_panel() { return std::make_unique<DiffPanel>(); }

}  // namespace loadline::gui
