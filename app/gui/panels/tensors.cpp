// Every tensor in a table that sorts and filters; only the rows in sight are drawn.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// The remark on unusual storage of a tensor, with details in a tooltip.
void draw_stored(const Model& model, const Ui& ui, graph::TensorId id, ImU32 color) {
  const std::string remark = storage_remark(model, id);
  if (remark.empty()) return;
  const graph::Tensor& tensor = model.tensor(id);
  const graph::Storage& storage = model.graph->storage(tensor.storage);
  const bool plain = storage.encoding == graph::Encoding::plain;
  text_colored(plain ? color : ui.theme->warning, elided(remark, ImGui::GetContentRegionAvail().x));
  hover_card(ui, [&] {
    text(remark);
    if (!plain)
      muted(ui, fmt::format("{} in the file, cannot be mapped", format_bytes(storage.stored_bytes)));
    if (!tensor.strides.empty()) muted(ui, strides_text(tensor));
    if (model.bytes[graph::index(id)] < storage.bytes)
      muted(ui, fmt::format("{} of a storage of {}", format_bytes(model.bytes[graph::index(id)]),
                            format_bytes(storage.bytes)));
    constexpr std::size_t kMostTies = 12;
    if (const std::uint32_t tie = model.tie_of[graph::index(id)]; tie > 0) {
      const auto& group = model.ties[tie - 1];
      muted(ui, "one storage for");
      for (std::size_t i = 0; i < std::min(group.size(), kMostTies); ++i)
        text(shown(model.tensor(group[i]).name));
      if (group.size() > kMostTies) text(fmt::format("and {} more", group.size() - kMostTies));
    }
  });
}

class TensorsPanel final : public Panel {
 public:
  TensorsPanel() : Panel("Lists the tensors of the model.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_filter(Document& document, const Ui& ui);
  void draw_rows(Workspace& workspace, const Ui& ui);
  void draw_row(Workspace& workspace, const Ui& ui, graph::TensorId id);
  void agree_on_sort(Document& document);
  void measure_shapes(const Model& model, const Ui& ui);
  void scroll_to_selection(const Document& document);
  void move_selection(Workspace& workspace, const Ui& ui);

  std::uint64_t seen_selection_ = 0;
  std::uint64_t seen_model_ = 0;
  graph::MetaGraphPtr measured_;
  float shape_width_ = 0, shape_scale_ = 0;
  TableSort seen_sort_;
  SortArrows arrows_;
};

ImGuiID sort_id(SortColumn column) { return static_cast<ImGuiID>(column) + 1; }

// The sort key of each column, left to right; the share sorts by size.
constexpr std::array<SortColumn, 8> kSortOfColumn = {SortColumn::name,  SortColumn::dtype, SortColumn::shape,
                                                     SortColumn::bytes, SortColumn::bytes, SortColumn::bytes,
                                                     SortColumn::file,  SortColumn::offset};

void TensorsPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  draw_filter(document, ui);
  if (document.model->graph->tensors.empty())
    return empty_state(ui, "This model has no tensors", "The files contain no tensors.");
  if (document.table.view().rows.empty())
    return empty_state(
        ui, "No tensor matches",
        "The filter above the tree lists its terms under the mouse: dtype:bf16 layer:0-7 size:>100MiB");
  draw_rows(workspace, ui);
}

// The longest shape decides: none of its numbers is cut.
void TensorsPanel::measure_shapes(const Model& model, const Ui& ui) {
  if (measured_ == model.graph && shape_scale_ == ui.scale) return;
  measured_ = model.graph;
  shape_scale_ = ui.scale;
  std::string longest;
  for (const graph::Tensor& tensor : model.graph->tensors)
    if (tensor.shape.size() > 1)
      if (std::string words = shape_text(tensor); words.size() > longest.size()) longest = std::move(words);
  shape_width_ = std::clamp(text_width(longest) + ui.px(6), ui.px(96), ui.px(230));
}

void TensorsPanel::draw_filter(Document& document, const Ui& ui) {
  const TableView& table = document.table.view();
  const std::string count = table.applied.empty()
                                ? counted(table.rows.size(), "tensor")
                                : fmt::format("{} of {}", format_grouped(table.rows.size()),
                                              counted(document.model->graph->tensors.size(), "tensor"));
  control_text(fmt::format("{}, {}", count, format_bytes(table.bytes)), ui.theme->muted);
  if (table.filter.empty()) return;
  ImGui::SameLine(0, ui.px(10));
  if (button(ui, "Show all", ButtonKind::ghost)) document.table.set_filter("");
}

void TensorsPanel::agree_on_sort(Document& document) {
  const TableView& table = document.table.view();
  const auto at = std::ranges::find(kSortOfColumn, table.column);
  const auto arrow = arrows_.agree({sort_id(table.column), table.ascending},
                                   static_cast<std::size_t>(at - kSortOfColumn.begin()));
  if (arrow && arrow->column != 0)
    document.table.set_sort(static_cast<SortColumn>(arrow->column - 1), arrow->ascending);
}

void TensorsPanel::move_selection(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const auto& rows = document.table.view().rows;
  std::optional<std::size_t> at;
  if (document.selected_tensor())
    if (const auto found = std::ranges::find(rows, *document.selected_tensor()); found != rows.end())
      at = static_cast<std::size_t>(found - rows.begin());
  if (const auto now = row_by_keys(ui, at, rows.size())) document.select(rows[*now]);
  if (at && row_is_entered()) workspace.settings.panel = "values";
}

// Scrolls to a tensor that was selected elsewhere or moved by sorting.
void TensorsPanel::scroll_to_selection(const Document& document) {
  const TableSort sort = {sort_id(document.table.view().column), document.table.view().ascending};
  if (seen_sort_ == sort && seen_selection_ == document.history.count() && seen_model_ == document.id) return;
  seen_sort_ = sort;
  seen_selection_ = document.history.count();
  seen_model_ = document.id;
  const auto& rows = document.table.view().rows;
  const auto at =
      document.selected_tensor() ? std::ranges::find(rows, *document.selected_tensor()) : rows.end();
  if (at != rows.end()) scroll_to_row(static_cast<std::size_t>(at - rows.begin()));
}

void TensorsPanel::draw_rows(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr ImGuiTableFlags kFlags =
      kListTable | ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable;
  if (!ImGui::BeginTable("tensors", 8, kFlags, ImGui::GetContentRegionAvail())) return;
  measure_shapes(*document.model, ui);
  // Figures get the width they need; columns whose content is also shown elsewhere give way to the name.
  const float width = ImGui::GetContentRegionAvail().x;
  const auto column = [&](const char* label, float size, SortColumn sort, ImGuiTableColumnFlags flags,
                          float least_width = 0) {
    const bool sortable = (flags & ImGuiTableColumnFlags_NoSort) == 0;
    const bool sorted = sortable && document.table.view().column == sort;
    if (sorted) {
      flags |= ImGuiTableColumnFlags_DefaultSort;
      if (!document.table.view().ascending) flags |= ImGuiTableColumnFlags_PreferSortDescending;
    }
    if (width < ui.px(least_width) && !sorted) flags |= ImGuiTableColumnFlags_Disabled;
    const bool stretch = (flags & ImGuiTableColumnFlags_WidthStretch) != 0;
    if (!stretch) flags |= ImGuiTableColumnFlags_WidthFixed;
    ImGui::TableSetupColumn(label, flags, stretch ? size : ui.px(size), sort_id(sort));
  };
  column("Name", 3, SortColumn::name, ImGuiTableColumnFlags_NoHide | ImGuiTableColumnFlags_WidthStretch);
  column("Type", 58, SortColumn::dtype, 0, 460);
  column("Shape", shape_width_ / ui.scale, SortColumn::shape, 0, 640);
  column("Size", 88, SortColumn::bytes,
         document.table.view().column == SortColumn::bytes ? 0 : ImGuiTableColumnFlags_PreferSortDescending,
         330);
  column("Share", 96, SortColumn::bytes, ImGuiTableColumnFlags_NoSort, 860);
  // where nothing is out of the ordinary the column would be empty
  column("Stored", 84, SortColumn::bytes,
         ImGuiTableColumnFlags_NoSort | (document.model->remarks ? 0 : ImGuiTableColumnFlags_Disabled), 620);
  column("File", 1, SortColumn::file, ImGuiTableColumnFlags_WidthStretch, 1080);
  column("Offset", 128, SortColumn::offset, 0, 620);
  table_headers(ui, {3, 4, 7});
  agree_on_sort(document);
  move_selection(workspace, ui);

  scroll_to_selection(document);
  const auto& rows = document.table.view().rows;
  for_rows_in_sight(rows.size(), [&](std::size_t i) { draw_row(workspace, ui, rows[i]); });
  ImGui::EndTable();
}

void TensorsPanel::draw_row(Workspace& workspace, const Ui& ui, graph::TensorId id) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const graph::Tensor& tensor = model.tensor(id);
  const graph::Storage& storage = model.graph->storage(tensor.storage);
  const std::uint64_t bytes = model.bytes[graph::index(id)];
  const IdScope scope(graph::index(id));
  const bool selected = document.selected_tensor() == id;
  if (table_row(selected)) document.select(id);
  if (is_right_clicked()) document.select_for_menu(id);
  if (ImGui::IsItemHovered()) document.hover.set(model.nodes[graph::index(id)]);
  if (document.hover.module() == model.nodes[graph::index(id)] && !selected)
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, with_alpha(ui.theme->hovered, 0.8f));
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    workspace.settings.panel = "values";
  {
    const FontScope font(ui.fonts.mono);
    name_text(ui, tensor.name, 0, ui.theme->text);
  }
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  if (ImGui::TableNextColumn()) text_colored(ui.theme->text, graph::dtype_info(tensor.dtype).name);
  if (ImGui::TableNextColumn()) text_colored(ui.theme->text, shape_text(tensor));
  if (ImGui::TableNextColumn()) {
    right_aligned(format_bytes(bytes), ui.theme->text);
    bytes_tooltip(ui, bytes);
  }
  if (ImGui::TableNextColumn()) {
    const double share = share_of(bytes, model.weight_bytes);
    bar_with_figure(ui, share, ui.theme->roles[static_cast<std::size_t>(model.roles[graph::index(id)])], 52,
                    percent_text(share), second);
  }
  if (ImGui::TableNextColumn()) draw_stored(model, ui, id, second);
  if (ImGui::TableNextColumn()) {
    // files of one model differ in their numbers, at the end
    const std::string file =
        storage.file == graph::kNoFile
            ? "none"
            : std::filesystem::path(model.graph->files[graph::index(storage.file)].path).stem().string();
    name_text(ui, file, 0, second, true);
  }
  if (ImGui::TableNextColumn())
    right_aligned(storage.file == graph::kNoFile ? "" : format_grouped(storage.offset + tensor.offset),
                  second);
}

}  // namespace

std::unique_ptr<Panel> make_tensors_panel() { return std::make_unique<TensorsPanel>(); }

}  // namespace loadline::gui
