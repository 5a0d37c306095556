// Every key and value that the files carry, searched by both.
#include "app/gui/meta_text.h"
#include "app/gui/panels/metadata_value.h"
#include "app/gui/panels/panels.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostLine = 300;  // bytes of a key or value that a row draws

class MetadataPanel final : public Panel {
 public:
  void draw(Workspace& workspace, const Ui& ui) override;

 private:
  void match(const Document& document);
  static void look_at_first(Document& document);
  void draw_search(Workspace& workspace, const Ui& ui);
  void draw_rows(Workspace& workspace, const Ui& ui);
  void draw_row(Workspace& workspace, const Ui& ui, std::size_t entry);
  void scroll_to_entry(const Document& document);
  void move_entry(Document& document);

  MetadataValue value_;
  std::uint64_t seen_model_ = 0;
  std::uint64_t seen_look_ = 0;
  std::string searched_;
  std::vector<std::uint32_t> matches_;  // positions in the metadata
  float share_ = 0.54f;                 // of the width that the list takes
};

void MetadataPanel::match(const Document& document) {
  if (seen_model_ == document.id && searched_ == document.metadata.search) return;
  seen_model_ = document.id;
  searched_ = document.metadata.search;
  matches_.clear();
  const Needle needle(searched_);
  const auto& entries = document.model->graph->metadata;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const auto* text = std::get_if<std::string>(&entries[i].value);
    if (needle.empty() || needle.in(entries[i].key) ||
        (text != nullptr ? needle.in(*text) : needle.in(meta_text(entries[i].value))))
      matches_.push_back(i);
  }
}

// What a reader asks for first.
void MetadataPanel::look_at_first(Document& document) {
  const auto& entries = document.model->graph->metadata;
  const auto config = std::find_if(entries.begin(), entries.end(),
                                   [](const MetaEntry& entry) { return entry.key == kConfigKey; });
  document.metadata.look_at(config == entries.end() ? 0 : static_cast<std::size_t>(config - entries.begin()));
}

void MetadataPanel::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model || document.model->graph->metadata.empty()) {
    begin_card(ui, "none", {0, 0});
    if (!document.model)
      empty_state(ui, "No model is open", "What its files say of themselves will be listed here.");
    else
      empty_state(ui, "The files carry no metadata",
                  "Keys and values of the file's header, and config.json, would be listed here.");
    end_card();
    return;
  }
  match(document);
  if (!document.metadata.entry()) look_at_first(document);
  const float room = ImGui::GetContentRegionAvail().x;
  const float least = ui.px(200);
  const float most = std::max(least, room - ui.px(220));
  const float list = std::clamp(room * share_, least, most);
  begin_card(ui, "list", {list, 0});
  draw_search(workspace, ui);
  draw_rows(workspace, ui);
  end_card();
  ImGui::SameLine(0, 0);
  share_ = splitter(ui, "share", list, least, most, true) / std::max(room, 1.0f);
  ImGui::SameLine(0, 0);
  begin_card(ui, "value", {0, 0});
  value_.draw(workspace, ui);
  end_card();
}

void MetadataPanel::draw_search(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const std::size_t all = document.model->graph->metadata.size();
  const std::string count =
      searched_.empty() ? counted(all, "key")
                        : fmt::format("{} of {}", format_grouped(matches_.size()), format_grouped(all));
  ImGui::SetNextItemWidth(
      std::max(ui.px(90), ImGui::GetContentRegionAvail().x - text_width(count) - ui.px(12)));
  ImGui::InputTextWithHint("##search", "Search keys and values", &document.metadata.search);
  ImGui::SameLine(0, ui.px(10));
  ImGui::AlignTextToFramePadding();
  muted(ui, count);
  match(document);
}

void MetadataPanel::scroll_to_entry(const Document& document) {
  if (seen_look_ == document.metadata.looks()) return;
  seen_look_ = document.metadata.looks();
  if (!document.metadata.entry()) return;
  const auto at = std::find(matches_.begin(), matches_.end(), *document.metadata.entry());
  if (at != matches_.end()) scroll_to_row(static_cast<std::size_t>(at - matches_.begin()));
}

// Up and down, as in the table of tensors.
void MetadataPanel::move_entry(Document& document) {
  if (!ImGui::IsWindowFocused() || ImGui::IsAnyItemActive() || !document.metadata.entry()) return;
  const bool up = ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_UpArrow));
  const bool down = ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_DownArrow));
  if (!up && !down) return;
  const auto at = std::find(matches_.begin(), matches_.end(), *document.metadata.entry());
  if (at == matches_.end()) return;
  if (up && at != matches_.begin()) document.metadata.look_at(*std::prev(at));
  if (down && std::next(at) != matches_.end()) document.metadata.look_at(*std::next(at));
}

void MetadataPanel::draw_rows(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (matches_.empty()) {
    empty_state(ui, "Nothing matches", "Neither a key nor a value holds these words.");
    return;
  }
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerH |
                                     ImGuiTableFlags_PadOuterX | ImGuiTableFlags_NoBordersInBody;
  if (!ImGui::BeginTable("entries", 3, kFlags, ImGui::GetContentRegionAvail())) return;
  ImGui::TableSetupColumn("Key", ImGuiTableColumnFlags_WidthStretch, 5);
  ImGui::TableSetupColumn("Type", ImGuiTableColumnFlags_WidthFixed, ui.px(124));
  ImGui::TableSetupColumn("Value", ImGuiTableColumnFlags_WidthStretch, 4);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableHeadersRow();
  move_entry(document);
  scroll_to_entry(document);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(matches_.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(workspace, ui, matches_[static_cast<std::size_t>(i)]);
  ImGui::EndTable();
}

void MetadataPanel::draw_row(Workspace& workspace, const Ui& ui, std::size_t entry) {
  Document& document = workspace.document();
  const MetaEntry& row = document.model->graph->metadata[entry];
  ImGui::PushID(static_cast<int>(entry));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool selected = document.metadata.entry() == entry;
  const ImVec2 start = ImGui::GetCursorPos();
  if (ImGui::Selectable("##row", selected, ImGuiSelectableFlags_SpanAllColumns) && !selected) {
    document.metadata.look_at(entry);
    seen_look_ = document.metadata.looks();  // it is in sight
  }
  ImGui::SetCursorPos(start);
  const FontScope font(ui.fonts.mono);
  name_text(ui, beginning(row.key, kMostLine), 0, ui.theme->text);
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  ImGui::TableNextColumn();
  name_text(ui, meta_type_text(row.value), 0, second);
  ImGui::TableNextColumn();
  name_text(ui, meta_line(row.value, kMostLine), 0, second);
  ImGui::PopID();
}

}  // namespace

std::unique_ptr<Panel> make_metadata_panel() { return std::make_unique<MetadataPanel>(); }

}  // namespace loadline::gui
