// Every tensor in a table that sorts and filters; only the rows in sight are drawn.
#include "app/gui/panels/panels.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"
#include "core/graph/filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

class TensorsPanel final : public Panel {
 public:
  void draw(Workspace& workspace, const Ui& ui) override;

 private:
  void draw_filter(Document& document, const Ui& ui);
  void draw_rows(Workspace& workspace, const Ui& ui);
  void draw_row(Workspace& workspace, const Ui& ui, TensorId id);
  static void draw_stored(const Model& model, const Ui& ui, TensorId id, ImU32 color);
  void agree_on_sort(Workspace& workspace);
  void scroll_to_selection(const Document& document);
  void move_selection(Document& document);

  std::string filter_;
  std::uint64_t seen_selection_ = 0;
  std::uint64_t seen_model_ = 0;
  struct Sort {
    SortColumn column = SortColumn::offset;
    bool ascending = true;
    bool operator==(const Sort&) const = default;
  };
  Sort agreed_;
  bool scroll_ = false;  // to the selection, at the next frame
};

// What each column sorts by, left to right; the share sorts as the size does.
constexpr std::array<SortColumn, 8> kSortOfColumn = {SortColumn::name,  SortColumn::dtype, SortColumn::shape,
                                                     SortColumn::bytes, SortColumn::bytes, SortColumn::bytes,
                                                     SortColumn::file,  SortColumn::offset};

void TensorsPanel::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model) {
    empty_state(ui, "No model is open", "Its tensors will be listed here.");
    return;
  }
  draw_filter(document, ui);
  if (document.table().rows.empty()) {
    empty_state(ui,
                document.model->graph->tensors.empty() ? "This model has no tensors" : "No tensor matches",
                document.model->graph->tensors.empty()
                    ? "Its files hold none."
                    : "The filter box lists its terms under the mouse: dtype:bf16 layer:0-7 size:>100MiB");
    return;
  }
  draw_rows(workspace, ui);
}

void TensorsPanel::draw_filter(Document& document, const Ui& ui) {
  filter_ = document.table().filter;
  ImGui::SetNextItemWidth(std::min(ui.px(420), ImGui::GetContentRegionAvail().x * 0.5f));
  const bool wrong = !document.table().error.empty();
  if (wrong) {
    ImGui::PushStyleColor(ImGuiCol_Border, ui.theme->bad);
    ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, ui.px(1));
  }
  if (ImGui::InputTextWithHint("##filter", "Filter: q_proj dtype:bf16 layer:12 size:>100MiB", &filter_))
    document.set_filter(filter_);
  if (wrong) {
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
  }
  if (!ImGui::IsItemActive()) tooltip(ui, filter_help());
  if (!document.table().filter.empty()) {
    ImGui::SameLine(0, ui.px(6));
    if (button(ui, "Clear", ButtonKind::ghost)) document.set_filter("");
  }
  const TableView& table = document.table();
  const std::string count = table.applied.empty()
                                ? counted(table.rows.size(), "tensor")
                                : fmt::format("{} of {}", format_grouped(table.rows.size()),
                                              counted(document.model->graph->tensors.size(), "tensor"));
  ImGui::SameLine(0, ui.px(14));
  ImGui::AlignTextToFramePadding();
  muted(ui, fmt::format("{}, {}", count, format_bytes(table.bytes)));
  if (!table.error.empty()) paragraph(ui, shown(table.error), ui.theme->bad);
}

// ImGui keeps the arrows of the header, the window's state the order of the rows; either may change it.
void TensorsPanel::agree_on_sort(Workspace& workspace) {
  Document& document = workspace.document();
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr || specs->SpecsCount != 1) return;
  const Sort wanted = {document.table().column, document.table().ascending};
  const Sort arrow = {static_cast<SortColumn>(specs->Specs[0].ColumnUserID),
                      specs->Specs[0].SortDirection != ImGuiSortDirection_Descending};
  specs->SpecsDirty = false;
  if (arrow == wanted) {
    agreed_ = wanted;
    return;
  }
  scroll_ = true;
  if (wanted != agreed_) {
    agreed_ = wanted;
    const auto column =
        std::find(kSortOfColumn.begin(), kSortOfColumn.end(), wanted.column) - kSortOfColumn.begin();
    ImGui::TableSetColumnSortDirection(
        static_cast<int>(column),
        wanted.ascending ? ImGuiSortDirection_Ascending : ImGuiSortDirection_Descending, false);
  } else {
    agreed_ = arrow;
    document.set_sort(arrow.column, arrow.ascending);
  }
}

void TensorsPanel::move_selection(Document& document) {
  if (!ImGui::IsWindowFocused() || ImGui::IsAnyItemActive() || !document.selection()) return;
  const bool up = ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_UpArrow));
  const bool down = ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_DownArrow));
  if (!up && !down) return;
  const auto& rows = document.table().rows;
  const auto at = std::find(rows.begin(), rows.end(), *document.selection());
  if (at == rows.end()) return;
  if (up && at != rows.begin()) document.select(*std::prev(at));
  if (down && std::next(at) != rows.end()) document.select(*std::next(at));
}

// What was selected elsewhere, or moved by sorting.
void TensorsPanel::scroll_to_selection(const Document& document) {
  if (!scroll_ && seen_selection_ == document.selections() && seen_model_ == document.id) return;
  scroll_ = false;
  seen_selection_ = document.selections();
  seen_model_ = document.id;
  const auto& rows = document.table().rows;
  const auto at =
      document.selection() ? std::find(rows.begin(), rows.end(), *document.selection()) : rows.end();
  if (at != rows.end()) scroll_to_row(static_cast<std::size_t>(at - rows.begin()));
}

void TensorsPanel::draw_rows(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_Sortable | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_ScrollY | ImGuiTableFlags_Resizable |
                                     ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX |
                                     ImGuiTableFlags_Reorderable | ImGuiTableFlags_NoBordersInBody;
  if (!ImGui::BeginTable("tensors", 8, kFlags, ImGui::GetContentRegionAvail())) return;
  // Figures get what they need; what else is read elsewhere too gives way to the name.
  const float width = ImGui::GetContentRegionAvail().x;
  const auto column = [&](const char* label, float size, SortColumn sort, ImGuiTableColumnFlags flags,
                          float least_width = 0) {
    const bool sortable = (flags & ImGuiTableColumnFlags_NoSort) == 0;
    const bool sorted = sortable && document.table().column == sort;
    if (sorted) {
      flags |= ImGuiTableColumnFlags_DefaultSort;
      if (!document.table().ascending) flags |= ImGuiTableColumnFlags_PreferSortDescending;
    }
    if (width < ui.px(least_width) && !sorted) flags |= ImGuiTableColumnFlags_Disabled;
    const bool stretch = (flags & ImGuiTableColumnFlags_WidthStretch) != 0;
    if (!stretch) flags |= ImGuiTableColumnFlags_WidthFixed;
    ImGui::TableSetupColumn(label, flags, stretch ? size : ui.px(size), static_cast<ImGuiID>(sort));
  };
  column("Name", 3, SortColumn::name, ImGuiTableColumnFlags_NoHide | ImGuiTableColumnFlags_WidthStretch);
  column("Type", 58, SortColumn::dtype, 0);
  column("Shape", 122, SortColumn::shape, 0);
  column("Size", 88, SortColumn::bytes,
         document.table().column == SortColumn::bytes ? 0 : ImGuiTableColumnFlags_PreferSortDescending);
  column("Share", 96, SortColumn::bytes, ImGuiTableColumnFlags_NoSort, 860);
  // where nothing is out of the ordinary the column would be empty
  column("Stored", 84, SortColumn::bytes,
         ImGuiTableColumnFlags_NoSort | (document.model->remarks ? 0 : ImGuiTableColumnFlags_Disabled), 620);
  column("File", 1, SortColumn::file, ImGuiTableColumnFlags_WidthStretch, 1080);
  column("Offset", 128, SortColumn::offset, 0);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableHeadersRow();
  agree_on_sort(workspace);
  move_selection(document);

  scroll_to_selection(document);
  const auto& rows = document.table().rows;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(workspace, ui, rows[static_cast<std::size_t>(i)]);
  ImGui::EndTable();
}

// What is out of the ordinary about where its bytes lie, and the rest of it in a tooltip.
void TensorsPanel::draw_stored(const Model& model, const Ui& ui, TensorId id, ImU32 color) {
  const std::string remark = storage_remark(model, id);
  if (remark.empty()) return;
  const Tensor& tensor = model.tensor(id);
  const Storage& storage = model.graph->storage(tensor.storage);
  const bool plain = storage.encoding == Encoding::plain;
  text_colored(plain ? color : ui.theme->warning, elided(remark, ImGui::GetContentRegionAvail().x));
  hover_card(ui, [&] {
    text(remark);
    if (!plain)
      text_colored(ui.theme->muted,
                   fmt::format("{} in the file, cannot be mapped", format_bytes(storage.stored_bytes)));
    if (!tensor.strides.empty()) text_colored(ui.theme->muted, strides_text(tensor));
    if (model.bytes[index(id)] < storage.bytes)
      text_colored(ui.theme->muted, fmt::format("{} of a storage of {}", format_bytes(model.bytes[index(id)]),
                                                format_bytes(storage.bytes)));
    constexpr std::size_t kMostTies = 12;
    if (const std::uint32_t tie = model.tie_of[index(id)]; tie > 0) {
      const auto& group = model.ties[tie - 1];
      text_colored(ui.theme->muted, "one storage for");
      for (std::size_t i = 0; i < std::min(group.size(), kMostTies); ++i)
        text(shown(model.tensor(group[i]).name));
      if (group.size() > kMostTies) text(fmt::format("and {} more", group.size() - kMostTies));
    }
  });
}

void TensorsPanel::draw_row(Workspace& workspace, const Ui& ui, TensorId id) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const Tensor& tensor = model.tensor(id);
  const Storage& storage = model.graph->storage(tensor.storage);
  const std::uint64_t bytes = model.bytes[index(id)];
  const double share =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(model.weight_bytes, 1));
  ImGui::PushID(static_cast<int>(index(id)));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool selected = document.selection() == id;
  const ImVec2 start = ImGui::GetCursorPos();
  if (ImGui::Selectable("##row", selected, ImGuiSelectableFlags_SpanAllColumns)) document.select(id);
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    document.zoom(model.tree.node(model.nodes[index(id)]).parent);
    workspace.settings.panel = "map";
  }
  ImGui::SetCursorPos(start);
  {
    const FontScope font(ui.fonts.mono);
    name_text(ui, tensor.name, 0, ui.theme->text);
  }
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  ImGui::TableNextColumn();
  text_colored(ui.theme->text, dtype_info(tensor.dtype).name);
  ImGui::TableNextColumn();
  name_text(ui, shape_text(tensor), 0, ui.theme->text);
  ImGui::TableNextColumn();
  right_aligned(format_bytes(bytes), ui.theme->text);
  tooltip(ui, format_grouped(bytes) + " bytes");
  if (ImGui::TableNextColumn()) {
    const float line = ImGui::GetTextLineHeight();
    const float figure = ui.px(46);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + (line - ui.px(6)) / 2);
    bar(ui, share, ui.theme->roles[static_cast<std::size_t>(model.roles[index(id)])],
        {std::max(ui.px(8), ImGui::GetContentRegionAvail().x - figure - ui.px(6)), ui.px(6)});
    ImGui::SameLine(0, ui.px(6));
    ImGui::SetCursorPosY(start.y);
    right_aligned(percent_text(share), second);
  }
  if (ImGui::TableNextColumn()) draw_stored(model, ui, id, second);
  if (ImGui::TableNextColumn()) {
    const std::string file =
        storage.file == kNoFile
            ? "none"
            : std::filesystem::path(model.graph->files[index(storage.file)].path).filename().string();
    name_text(ui, file, 0, second);
  }
  ImGui::TableNextColumn();
  right_aligned(storage.file == kNoFile ? "" : format_grouped(storage.offset + tensor.offset), second);
  ImGui::PopID();
}

}  // namespace

std::unique_ptr<Panel> make_tensors_panel() { return std::make_unique<TensorsPanel>(); }

}  // namespace loadline::gui
