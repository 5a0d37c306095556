// Tab Files: keys and values, and one of them in full.

#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/workspace.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui_stdlib.h>

namespace loadline::gui {

// --- Shows one metadata entry in full: its text, or the elements of its array.

namespace {

class MetadataValue {
 public:
  // Draws the entry of the document's MetadataView, if any.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void draw_head(const Document& document, const Ui& ui);
  void draw_copy(const Ui& ui);
  void draw_text(const Ui& ui, const graph::MetaValue& value);
  void lay_out(float width);
  void draw_array(Workspace& workspace, const Ui& ui);
  void draw_search(const Workspace& workspace, ArrayView& view, const Ui& ui);
  void draw_elements(ArrayView& view, const Ui& ui);
  void go_to(const ArrayView& view, std::uint64_t element);

  std::uint64_t seen_look_ = 0;
  std::string text_;                // escaped, as it is copied
  std::vector<std::string> lines_;  // of text_, broken to fit
  std::string joined_;              // the same in one
  float head_ = 0;                  // position of the key
  float width_ = 0;                 // the width for which lines_ were broken
  std::uint64_t left_out_ = 0;      // bytes of the value that are not shown

  std::string index_;  // as typed
  std::string words_;
  std::uint64_t base_ = 0;  // the list holds a window of a very long array
  std::optional<std::uint64_t> marked_;
  bool scroll_ = false;  // to the marked element, at the next frame
  std::size_t found_at_ = 0;
  std::size_t found_seen_ = 0;
};

constexpr std::size_t kMostShown = 4 << 20;        // bytes of a text
constexpr std::size_t kMostSelectable = 64 << 10;  // what can be selected is drawn whole at every frame
constexpr std::uint64_t kWindow = 400'000;         // elements in one list: pixels are counted in floats

// Breaks escaped text after `columns` code points.
void break_line(std::string_view line, std::size_t columns, std::vector<std::string>& lines) {
  std::size_t begin = 0;
  std::size_t points = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xC0u) == 0x80u) continue;
    if (points++ == columns) {
      lines.emplace_back(line.substr(begin, i - begin));
      begin = i;
      points = 1;
    }
  }
  lines.emplace_back(line.substr(begin));
}

// Each line by itself: a line break is the one control character that is kept.
template <typename Consume>
void for_each_line(std::string_view text, Consume take) {
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line);
  }
}

void MetadataValue::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (seen_look_ != document.metadata.looks()) {
    *this = MetadataValue();
    seen_look_ = document.metadata.looks();
  }
  if (!document.metadata.entry()) return;
  draw_head(document, ui);
  if (document.metadata.array())
    draw_array(workspace, ui);
  else
    draw_text(ui, document.model->graph->metadata[*document.metadata.entry()].value);
}

void MetadataValue::draw_head(const Document& document, const Ui& ui) {
  const graph::MetaEntry& entry = document.model->graph->metadata[*document.metadata.entry()];
  head_ = ImGui::GetCursorPosY();
  {
    const FontScope font(ui.fonts.strong);
    const float copy = document.metadata.array() ? 0 : ui.px(66);
    name_text(ui, beginning(entry.key, 400), ImGui::GetContentRegionAvail().x - copy, ui.theme->text);
  }
  const FontScope font(ui.fonts.small);
  const auto* text = std::get_if<std::string>(&entry.value);
  const auto* array = std::get_if<graph::MetaArray>(&entry.value);
  std::string facts = meta_type_text(entry.value);
  if (text != nullptr) facts += fmt::format(", {} bytes", format_grouped(text->size()));
  if (array != nullptr)
    facts += fmt::format(", {} at byte {}", format_bytes(array->bytes), format_grouped(array->offset));
  muted(ui, facts);
}

void MetadataValue::lay_out(float width) {
  width_ = width;
  lines_.clear();
  joined_.clear();
  const float column = text_width("0");
  const auto columns = static_cast<std::size_t>(std::max(8.0f, std::floor(width / column)));
  for_each_line(text_, [&](std::string_view line) { break_line(shown(line), columns, lines_); });
  if (text_.size() > kMostSelectable) return;
  for (const std::string& line : lines_) joined_ += (joined_.empty() ? "" : "\n") + line;
}

// At the right of the head.
void MetadataValue::draw_copy(const Ui& ui) {
  const ImVec2 below = ImGui::GetCursorPos();
  const float width = text_width("Copy") + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetCursorPos({ImGui::GetWindowContentRegionMax().x - width, head_});
  if (button(ui, "Copy")) ImGui::SetClipboardText(text_.c_str());
  ImGui::SetCursorPos(below);
}

void MetadataValue::draw_text(const Ui& ui, const graph::MetaValue& value) {
  if (width_ == 0) {
    const auto* text = std::get_if<std::string>(&value);
    const std::string whole =
        text != nullptr ? broken_json(beginning(*text, kMostShown)) : graph::meta_text(value);
    left_out_ = text != nullptr && text->size() > kMostShown ? text->size() - kMostShown : 0;
    text_.clear();
    for_each_line(whole, [&](std::string_view line) { text_ += safe_display(line) + "\n"; });
    text_.pop_back();
  }
  draw_copy(ui);
  if (left_out_ > 0)
    paragraph(ui,
              fmt::format("The first {}; {} more are not shown.", format_bytes(kMostShown),
                          format_bytes(left_out_)),
              ui.theme->warning);
  if (text_.empty()) return muted(ui, "An empty text.");
  const FontScope font(ui.fonts.mono);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = room.x - ImGui::GetStyle().ScrollbarSize - ui.px(14);
  if (width != width_) lay_out(width);
  const ColorScope color(ImGuiCol_FrameBg, ui.theme->raised);
  if (text_.size() <= kMostSelectable) {
    ImGui::InputTextMultiline("##text", &joined_, room, ImGuiInputTextFlags_ReadOnly);
  } else {
    const ChildScope child("text", room);
    for_rows_in_sight(
        lines_.size(), [&](std::size_t i) { text(lines_[i]); }, ImGui::GetTextLineHeightWithSpacing());
  }
}

void MetadataValue::go_to(const ArrayView& view, std::uint64_t element) {
  if (view.array().count == 0) return;
  marked_ = std::min(element, view.array().count - 1);
  base_ = *marked_ / kWindow * kWindow;
  scroll_ = true;
}

void MetadataValue::draw_array(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  ArrayView& view = *document.metadata.array();
  if (document.metadata.wants_element) go_to(view, *document.metadata.wants_element);
  document.metadata.wants_element.reset();
  if (view.array().count == 0) return muted(ui, "An empty array.");
  const float index_width = ui.px(104);
  ImGui::SetNextItemWidth(index_width);
  if (ImGui::InputTextWithHint("##index", "Go to index", &index_,
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CharsDecimal)) {
    if (const auto element = text_as<std::uint64_t>(index_)) go_to(view, *element);
  }
  ImGui::SameLine(0, ui.px(8));
  draw_search(workspace, view, ui);
  if (!view.error().empty()) {
    paragraph(ui, shown(view.error()), ui.theme->bad);
    if (button(ui, "Read again")) view.retry();
  }
  draw_elements(view, ui);
}

void MetadataValue::draw_search(const Workspace& workspace, ArrayView& view, const Ui& ui) {
  ImGui::SetNextItemWidth(-ui.px(1));
  if (ImGui::InputTextWithHint("##words", "Search all elements, then Enter", &words_,
                               ImGuiInputTextFlags_EnterReturnsTrue))
    view.search(words_);
  if (view.searching()) {
    found_seen_ = 0;
    const auto job = workspace.services.jobs.find(view.search_job());
    if (progress_with_stop(ui, job ? job->fraction : 0)) view.stop_search();
    return;
  }
  if (view.searched().empty()) return;
  if (!view.search_error().empty()) return paragraph(ui, shown(view.search_error()), ui.theme->bad);
  const auto& found = view.found();
  if (found_seen_ != found.size() && !found.empty()) {
    found_seen_ = found.size();
    found_at_ = 0;
    go_to(view, found[0]);
  }
  if (found.empty())
    return control_text(fmt::format("No element holds '{}'", shown(beginning(view.searched(), 60))),
                        ui.theme->muted);
  control_text(
      fmt::format("{} of {}{} with '{}'", format_grouped(found_at_ + 1), format_grouped(found.size()),
                  found.size() == ArrayView::kMostFound ? " and more" : "",
                  shown(beginning(view.searched(), 40))),
      ui.theme->muted);
  ImGui::SameLine(0, ui.px(10));
  const bool back = button(ui, "Previous", ButtonKind::normal, found_at_ > 0);
  ImGui::SameLine(0, ui.px(6));
  const bool on = button(ui, "Next", ButtonKind::normal, found_at_ + 1 < found.size());
  if (back) --found_at_;
  if (on) ++found_at_;
  if (back || on) go_to(view, found[found_at_]);
}

void MetadataValue::draw_elements(ArrayView& view, const Ui& ui) {
  const std::uint64_t count = view.array().count;
  const std::uint64_t window = std::min(count - base_, kWindow);
  if (count > kWindow) {
    if (button(ui, "Before", ButtonKind::normal, base_ > 0)) base_ -= kWindow;
    ImGui::SameLine(0, ui.px(6));
    if (button(ui, "After", ButtonKind::normal, count - base_ > kWindow)) base_ += kWindow;
    ImGui::SameLine(0, ui.px(10));
    control_text(fmt::format("{} to {} of {}", format_grouped(base_), format_grouped(base_ + window - 1),
                             format_grouped(count)),
                 ui.theme->muted);
  }
  const FontScope font(ui.fonts.mono);
  const ChildScope child("elements");
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float height = ImGui::GetFontSize() + ui.px(6);
  const float figures = text_width(format_grouped(count)) + ui.px(16);
  if (scroll_ && marked_) {
    const float top = height * static_cast<float>(*marked_ - base_);
    ImGui::SetScrollY(std::max(0.0f, std::round((top - ImGui::GetWindowHeight() / 2) / height) * height));
    scroll_ = false;
  }
  std::uint64_t first = count;
  std::uint64_t last = 0;
  const float width = ImGui::GetContentRegionAvail().x;
  const auto draw_element = [&](std::size_t i) {
    const std::uint64_t at = base_ + i;
    first = std::min(first, at);
    last = std::max(last, at + 1);
    const ImVec2 pen = ImGui::GetCursorScreenPos();
    const bool marked = marked_ == at;
    if (marked)
      ImGui::GetWindowDrawList()->AddRectFilled(pen, pen + ImVec2{width, height}, ui.theme->selected,
                                                ui.px(3));
    const float y = pen.y + ui.px(3);
    put_text_before(pen.x + figures - ui.px(10), y, marked ? ui.theme->text : ui.theme->muted,
                    format_grouped(at));
    const std::string* element = view.element(at);
    ImGui::Dummy({width, height});
    if (element == nullptr) return;
    const std::string whole = shown(*element);
    const std::string cut = elided(whole, width - figures - ui.px(6));
    put_text({pen.x + figures, y}, ui.theme->text, cut);
    if (cut.size() != whole.size()) tooltip(ui, whole);
  };
  for_rows_in_sight(window, draw_element, height);
  if (first < last) view.want(first, last);
}

}  // namespace

// --- Every key and value that the files carry, searched by both.

namespace {

constexpr std::size_t kMostLine = 300;  // bytes of a key or value that a row draws

// What a reader asks for first.
void look_at_first(Document& document) {
  const auto& entries = document.model->graph->metadata;
  const auto config = std::ranges::find(entries, graph::kConfigKey, &graph::MetaEntry::key);
  document.metadata.look_at(config == entries.end() ? 0 : static_cast<std::size_t>(config - entries.begin()));
}

class MetadataPanel final : public Panel {
 public:
  MetadataPanel() : Panel("Lists the metadata of the files.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void match(const Document& document);
  void draw_search(Document& document, const Ui& ui);
  void draw_rows(Document& document, const Ui& ui);
  void draw_row(Document& document, const Ui& ui, std::size_t entry);
  static void draw_menu(const graph::MetaEntry& entry, const Ui& ui);
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
        (text != nullptr ? needle.in(*text) : needle.in(graph::meta_text(entries[i].value))))
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
  stretched_column("Key", 3);
  fixed_column(ui, "Type", 56);
  stretched_column("Value", 2);
  table_headers(ui);
  move_entry(document, ui);
  scroll_to_entry(document);
  for_rows_in_sight(matches_.size(), [&](std::size_t i) { draw_row(document, ui, matches_[i]); });
  ImGui::EndTable();
}

// Looks like the menu of what is selected.
void MetadataPanel::draw_menu(const graph::MetaEntry& entry, const Ui& ui) {
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  if (!ImGui::BeginPopup("menu of the entry")) return;
  small_text(ui, elided_name("metadata  " + shown(beginning(entry.key, kMostLine)), ui.px(340)),
             ui.theme->muted);
  ImGui::Dummy({ui.px(220), 0});
  if (ImGui::Selectable("Copy the key")) ImGui::SetClipboardText(safe_display(entry.key).c_str());
  const auto* const text = std::get_if<std::string>(&entry.value);
  if (std::holds_alternative<graph::MetaArray>(entry.value)) {
    muted(ui, "Its elements are copied from the list at the right.");
  } else if (ImGui::Selectable("Copy the value")) {
    const std::string value = text != nullptr ? *text : graph::meta_text(entry.value);
    std::string words;
    for_each_line(value, [&](std::string_view line) { words += safe_display(line) + "\n"; });
    words.pop_back();
    ImGui::SetClipboardText(words.c_str());
  }
  ImGui::EndPopup();
}

void MetadataPanel::draw_row(Document& document, const Ui& ui, std::size_t entry) {
  const graph::MetaEntry& row = document.model->graph->metadata[entry];
  const IdScope scope(entry);
  const bool selected = document.metadata.entry() == entry;
  if (table_row(selected) && !selected) {
    document.metadata.look_at(entry);
    seen_look_ = document.metadata.looks();  // it is in sight
  }
  if (is_right_clicked()) {
    document.metadata.look_at(entry);
    seen_look_ = document.metadata.looks();
    ImGui::OpenPopup("menu of the entry");
  }
  draw_menu(row, ui);
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
