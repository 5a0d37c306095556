// The model in figures: totals, dtypes, roles, findings, files and metadata.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// The panels of their own show all.
constexpr std::size_t kMostNotes = 12;
constexpr std::size_t kMostMetadata = 12;

void draw_figures(const Document& document, const Ui& ui) {
  const Model& model = *document.model;
  struct Figure {
    std::string label;
    std::string value;
    std::string detail;
  };
  const std::array<Figure, 4> figures = {{
      {"Weights", format_bytes(model.weight_bytes), format_grouped(model.weight_bytes) + " bytes"},
      {"Parameters", format_count(document.parameters()),
       format_grouped(document.parameters()) + document.uncounted()},
      {"Tensors", format_grouped(model.graph->tensors.size()),
       model.ties.empty() ? counted(model.graph->storages.size(), "storage")
                          : counted(model.ties.size(), "tied group")},
      {"Files", format_grouped(model.graph->files.size()), format_bytes(model.disk_bytes) + " on disk"},
  }};
  const float gap = ui.px(12);
  const float width = (ImGui::GetContentRegionAvail().x - 3 * gap) / 4;
  bool roomy = true;
  {
    const FontScope font(ui.fonts.hero);
    for (const Figure& figure : figures) roomy = roomy && text_width(figure.value) <= width - ui.px(28);
  }
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, gap);
    const CardScope card(ui, figures[i].label.c_str(), {width, ui.px(roomy ? 100 : 84)});
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(2)});
    small_text(ui, figures[i].label, ui.theme->muted);
    {
      const FontScope font(roomy ? ui.fonts.hero : ui.fonts.title);
      name_text(ui, figures[i].value, 0, ui.theme->text);
    }
    const FontScope font(ui.fonts.small);
    name_text(ui, figures[i].detail, 0, ui.theme->muted);
  }
}

void draw_notes(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const auto& notes = model.graph->notes;
  ImGui::Dummy({0, ui.px(4)});
  heading(ui, "Findings");
  const std::vector<Caveat>& caveats = document.caveats();
  if (notes.empty() && caveats.empty()) muted(ui, "No problems in the headers.");
  const auto finding = [&](graph::Severity severity, std::string_view words) {
    badge_line(ui, graph::severity_name(severity), severity_color(*ui.theme, severity), words, ui.theme->text,
               10);
  };
  for (const Caveat& caveat : caveats) finding(caveat.severity, shown(caveat.text));
  std::size_t drawn = 0;
  for (const graph::Note& note : std::span(notes).first(std::min(notes.size(), kMostNotes))) {
    ++drawn;
    if (note.severity == graph::Severity::info)
      finding(note.severity, (note.tensor ? shown(*note.tensor) + ": " : "") + shown(note.text));
  }
  if (link(ui, "all findings",
           drawn < notes.size()
               ? fmt::format("All {}, and what loading it costs", format_grouped(notes.size()))
               : "What may slow down loading"))
    workspace.settings.panel = "findings";
}

void draw_files(const Model& model, const Ui& ui) {
  if (model.graph->files.empty()) return;
  ImGui::Dummy({0, ui.px(4)});
  heading(ui, "Files");
  std::uint64_t most = 1;
  for (const graph::ModelFile& file : model.graph->files) most = std::max(most, file.bytes);
  if (!ImGui::BeginTable("files", 3, ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX)) return;
  stretched_column("name", 3);
  stretched_column("bar", 3);
  fixed_column(ui, "bytes", 120);
  const auto row = [&](std::size_t i) {
    const graph::ModelFile& file = model.graph->files[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const float y = ImGui::GetCursorPosY();
    {
      const FontScope font(ui.fonts.mono);
      name_text(ui, std::filesystem::path(file.path).filename().string(), 0, ui.theme->text);
    }
    ImGui::TableNextColumn();
    ImGui::SetCursorPosY(y + ui.px(6));
    bar(ui, share_of(file.bytes, most), ui.theme->category(i), {ImGui::GetContentRegionAvail().x, ui.px(8)});
    ImGui::TableNextColumn();
    ImGui::SetCursorPosY(y);
    right_aligned(format_bytes(file.bytes), ui.theme->muted);
    bytes_tooltip(ui, file.bytes);
  };
  for_rows_in_sight(model.graph->files.size(), row);
  ImGui::EndTable();
}

// The beginning of it; the rest has a panel of its own.
void draw_metadata(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::size_t kMostLine = 300;
  const auto& entries = document.model->graph->metadata;
  ImGui::Dummy({0, ui.px(4)});
  heading(ui, "Metadata");
  if (entries.empty()) return muted(ui, "The files have no metadata.");
  if (ImGui::BeginTable("metadata", 2, ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX)) {
    stretched_column("key", 1);
    stretched_column("value", 2);
    const FontScope font(ui.fonts.mono);
    for (std::size_t i = 0; i < std::min(entries.size(), kMostMetadata); ++i) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      name_text(ui, beginning(entries[i].key, kMostLine), 0, ui.theme->muted);
      ImGui::TableNextColumn();
      name_text(ui, meta_line(entries[i].value, kMostLine), 0, ui.theme->text);
    }
    ImGui::EndTable();
  }
  if (link(ui, "all metadata", fmt::format("All {} with their whole values", format_grouped(entries.size()))))
    workspace.settings.panel = "metadata";
}

class ModelPanel final : public Panel {
 public:
  ModelPanel() : Panel("Shows figures, files and metadata of the model.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const Model& model = *workspace.document().model;
    const ChildScope child("model");
    draw_figures(workspace.document(), ui);
    draw_shares(model, ui);
    draw_notes(workspace, ui);
    draw_files(model, ui);
    draw_metadata(workspace, ui);
  }
  void draw_shares(const Model& model, const Ui& ui);

  float shares_height_ = 0;  // as the last frame found it: legends may take two lines
};

void ModelPanel::draw_shares(const Model& model, const Ui& ui) {
  const CardScope card(ui, "shares", {0, shares_height_ > 0 ? shares_height_ : ui.px(176)});
  heading(ui, "By type");
  std::vector<Part> parts;
  for (const DTypeShare& share : model.dtypes)
    parts.push_back({graph::dtype_info(share.dtype).name, share.bytes, ui.theme->dtype(share.dtype)});
  parts_bar(ui, parts, ui.px(16));
  ImGui::Dummy({0, ui.px(4)});
  heading(ui, "By role");
  parts.clear();
  for (std::size_t i = 0; i < graph::kRoleCount; ++i)
    parts.push_back({graph::role_name(static_cast<graph::Role>(i)), model.role_bytes[i], ui.theme->roles[i]});
  parts_bar(ui, parts, ui.px(16));
  shares_height_ = ImGui::GetCursorPosY() + ImGui::GetScrollY() + ui.px(6);
}

}  // namespace

std::unique_ptr<Panel> make_model_panel() { return std::make_unique<ModelPanel>(); }

}  // namespace loadline::gui
