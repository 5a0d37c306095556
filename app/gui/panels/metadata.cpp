// Every key and value that the files carry, searched by both.
#include "app/gui/panels/metadata_value.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/meta_text.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostLine = 300;  // bytes of a key or value that a row draws

// What a reader asks for first.
void look_at_first(Document& document) {
  const auto& entries = document.model->graph->metadata;
  const auto config = std::ranges::find(entries, kConfigKey, &MetaEntry::key);
  document.metadata.look_at(config == entries.end() ? 0 : static_cast<std::size_t>(config - entries.begin()));
}

class MetadataPanel final : public Panel {
 public:
  MetadataPanel() : Panel("What its files say of themselves will be listed here.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void match(const Document& document);
  void draw_search(Document& document, const Ui& ui);
  void draw_rows(Document& document, const Ui& ui);
  void draw_row(Document& document, const Ui& ui, std::size_t entry);
  void scroll_to_entry(const Document& document);
  void move_entry(Document& document, const Ui& ui);

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
    if (needle.in(entries[i].key) ||
        (text != nullptr ? needle.in(*text) : needle.in(meta_text(entries[i].value))))
      matches_.push_back(i);
  }
}

void MetadataPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (document.model->graph->metadata.empty()) {
    const CardScope card(ui, "none", {0, 0});
    return empty_state(ui, "The files carry no metadata",
                       "Keys and values of the file's header, and config.json, would be listed here.");
  }
  match(document);
  if (!document.metadata.entry()) look_at_first(document);
  const float room = ImGui::GetContentRegionAvail().x;
  const float least = ui.px(200);
  const float most = std::max(least, room - ui.px(220));
  const float list = std::clamp(room * share_, least, most);
  {
    const CardScope card(ui, "list", {list, 0});
    draw_search(document, ui);
    draw_rows(document, ui);
  }
  ImGui::SameLine(0, 0);
  share_ = splitter(ui, "share", list, least, most, true) / std::max(room, 1.0f);
  ImGui::SameLine(0, 0);
  const CardScope card(ui, "value", {0, 0});
  value_.draw(workspace, ui);
}

void MetadataPanel::draw_search(Document& document, const Ui& ui) {
  const std::size_t all = document.model->graph->metadata.size();
  const std::string count =
      searched_.empty() ? counted(all, "key")
                        : fmt::format("{} of {}", format_grouped(matches_.size()), format_grouped(all));
  ImGui::SetNextItemWidth(
      std::max(ui.px(90), ImGui::GetContentRegionAvail().x - text_width(count) - ui.px(12)));
  ImGui::InputTextWithHint("##search", "Search keys and values", &document.metadata.search);
  ImGui::SameLine(0, ui.px(10));
  control_text(count, ui.theme->muted);
  match(document);
}

void MetadataPanel::scroll_to_entry(const Document& document) {
  if (seen_look_ == document.metadata.looks()) return;
  seen_look_ = document.metadata.looks();
  const auto at = std::ranges::find(matches_, document.metadata.entry());
  if (at != matches_.end()) scroll_to_row(static_cast<std::size_t>(at - matches_.begin()));
}

// Up and down, as in the table of tensors.
void MetadataPanel::move_entry(Document& document, const Ui& ui) {
  const auto found = std::ranges::find(matches_, document.metadata.entry());
  std::optional<std::size_t> at;
  if (found != matches_.end()) at = static_cast<std::size_t>(found - matches_.begin());
  if (const auto now = row_by_keys(ui, at, matches_.size())) document.metadata.look_at(matches_[*now]);
}

void MetadataPanel::draw_rows(Document& document, const Ui& ui) {
  if (matches_.empty())
    return empty_state(ui, "Nothing matches", "Neither a key nor a value holds these words.");
  if (!ImGui::BeginTable("entries", 3, kListTable | ImGuiTableFlags_Resizable,
                         ImGui::GetContentRegionAvail()))
    return;
  stretched_column("Key", 5);
  fixed_column(ui, "Type", 124);
  stretched_column("Value", 4);
  table_headers(ui);
  move_entry(document, ui);
  scroll_to_entry(document);
  for_rows_in_sight(matches_.size(), [&](std::size_t i) { draw_row(document, ui, matches_[i]); });
  ImGui::EndTable();
}

void MetadataPanel::draw_row(Document& document, const Ui& ui, std::size_t entry) {
  const MetaEntry& row = document.model->graph->metadata[entry];
  const IdScope scope(entry);
  const bool selected = document.metadata.entry() == entry;
  if (table_row(selected) && !selected) {
    document.metadata.look_at(entry);
    seen_look_ = document.metadata.looks();  // it is in sight
  }
  const FontScope font(ui.fonts.mono);
  name_text(ui, beginning(row.key, kMostLine), 0, ui.theme->text);
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  ImGui::TableNextColumn();
  name_text(ui, meta_type_text(row.value), 0, second);
  ImGui::TableNextColumn();
  name_text(ui, meta_line(row.value, kMostLine), 0, second);
}

}  // namespace

std::unique_ptr<Panel> make_metadata_panel() { return std::make_unique<MetadataPanel>(); }

}  // namespace loadline::gui
