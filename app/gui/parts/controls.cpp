// The second half of widgets.h: controls, sheets, bars of jobs, lines of facts.

#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "app/report/does_it_run.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/core.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

namespace loadline::gui {

std::string elided_path(std::string_view text, float width) {
  const bool words = text.find(' ') != std::string_view::npos;
  return words || text.find_first_of("/.") == std::string_view::npos ? elided_front(text, width)
                                                                     : elided_name(text, width);
}

// --- Controls to press and pick: buttons, segments, combos, sliders, check boxes.

namespace {

constexpr float kSegmentPadding = 10;
constexpr std::int64_t kMostLinear = 200;

// The position of a value on a slider, as ImGui computes it: a logarithmic scale from 0 begins at a tenth.
float slider_share(std::int64_t value, std::int64_t least, std::int64_t most) {
  if (most <= kMostLinear)
    return static_cast<float>(value - least) / static_cast<float>(std::max<std::int64_t>(most - least, 1));
  const double begin = least > 0 ? static_cast<double>(least) : 0.1;
  if (static_cast<double>(value) <= begin) return 0;
  return static_cast<float>(std::log(static_cast<double>(value) / begin) /
                            std::log(static_cast<double>(most) / begin));
}

}  // namespace

bool press_area(const Ui& ui, const char* id, ImVec2 size) {
  const bool pressed = ImGui::InvisibleButton(id, {std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
  if (item_has_seen_focus())
    ImGui::GetWindowDrawList()->AddRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), ui.theme->accent,
                                        ui.px(5), 0, std::max(1.0f, ui.px(1.5f)));
  return pressed;
}

void plot_area(const char* id, ImVec2 size) {
  const NoFocusScope none;
  ImGui::InvisibleButton(id, {std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
}

bool button(const Ui& ui, std::string_view label, ButtonKind kind, bool enabled) {
  const Theme& theme = *ui.theme;
  const bool primary = kind == ButtonKind::primary;
  const ImU32 ground = primary                     ? theme.accent
                       : kind == ButtonKind::ghost ? with_alpha(theme.raised, 0)
                                                   : theme.raised;
  const ColorScope resting(ImGuiCol_Button, enabled ? ground : theme.raised);
  const ColorScope hovered(ImGuiCol_ButtonHovered,
                           primary ? mix(theme.accent, theme.highlight, 0.15f) : theme.hovered);
  const ColorScope held(ImGuiCol_ButtonActive, primary ? mix(theme.accent, theme.sea, 0.2f) : theme.active);
  const ColorScope ink(ImGuiCol_Text, !enabled ? theme.muted : primary ? theme.on_accent : theme.text);
  ImGui::BeginDisabled(!enabled);
  const StyleScope alpha(ImGuiStyleVar_DisabledAlpha, 1.0f);
  const FontScope font(primary ? ui.fonts.strong : ui.fonts.body);
  // drawn here: ImGui would take "##" in a name for the start of an id
  const ImVec2 pad = ImGui::GetStyle().FramePadding;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const IdScope scope(label);
  const bool pressed = ImGui::Button("##button", {text_width(label) + 2 * pad.x, 0});
  put_text(at + pad, ImGui::GetColorU32(ImGuiCol_Text), label);
  ImGui::EndDisabled();
  return pressed && enabled;
}

float segmented_width(const Ui& ui, std::span<const std::string_view> labels) {
  float total = 0;
  for (const std::string_view label : labels) total += text_width(label) + 2 * ui.px(kSegmentPadding);
  return total;
}

std::size_t segmented(const Ui& ui, const char* id, std::span<const std::string_view> labels,
                      std::size_t current) {
  const Theme& theme = *ui.theme;
  const IdScope scope(id);
  const float height = ImGui::GetFrameHeight();
  const float pad = ui.px(kSegmentPadding);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float total = segmented_width(ui, labels);
  draw->AddRectFilled(at, {at.x + total, at.y + height}, theme.raised, ui.px(6));
  std::size_t result = current;
  float x = at.x;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float width = text_width(labels[i]) + 2 * pad;
    ImGui::SetCursorScreenPos({x, at.y});
    if (press_area(ui, std::string(labels[i]).c_str(), {width, height})) result = i;
    const bool hot = ImGui::IsItemHovered();
    const ImVec2 low = {x + ui.px(2), at.y + ui.px(2)};
    const ImVec2 high = {x + width - ui.px(2), at.y + height - ui.px(2)};
    if (i == current)
      draw->AddRectFilled(low, high, theme.accent, ui.px(5));
    else if (hot)
      draw->AddRectFilled(low, high, theme.hovered, ui.px(5));
    const ImU32 ink = i == current ? theme.on_accent : hot ? theme.text : theme.muted;
    put_text({x + pad, at.y + (height - ImGui::GetFontSize()) / 2}, ink, labels[i]);
    x += width;
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({total, height});
  return result;
}

namespace {

// A row of the list with its label and what stands beside it; `room` fits both in every row.
bool combo_row(const Ui& ui, const ComboRow& row, bool current, float room) {
  const std::string label = shown(row.label);
  if (row.beside.empty()) return ImGui::Selectable(label.c_str(), current);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool picked = ImGui::Selectable("##row", current, 0, {room, 0});
  put_text(at, ui.theme->text, label);
  put_text_before(at.x + room, at.y, ui.theme->muted, shown(row.beside));
  return picked;
}

}  // namespace

std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 const std::vector<ComboRow>& rows, std::size_t current) {
  std::optional<std::size_t> picked;
  ImGui::SetNextItemWidth(width);
  const float frame = ImGui::GetFrameHeight();
  const std::string cut =
      preview.empty() ? "" : elided(shown(preview), width - frame - ImGui::GetStyle().FramePadding.x);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const bool open =
      ImGui::BeginCombo(id, cut.c_str(), ImGuiComboFlags_HeightLarge | ImGuiComboFlags_NoArrowButton);
  const ImVec2 middle = {at.x + width - frame * 0.5f, at.y + frame / 2};
  const float r = ui.px(3.5f);
  const std::array<ImVec2, 3> chevron = {
      {{middle.x - r, middle.y - r / 2}, {middle.x, middle.y + r / 2}, {middle.x + r, middle.y - r / 2}}};
  draw->AddPolyline(chevron.data(), static_cast<int>(chevron.size()), ui.theme->muted, 0, ui.px(1.6f));
  if (!open) {
    if (cut.size() != shown(preview).size()) tooltip(ui, shown(preview));
    return picked;
  }
  float room = 0;
  for (const ComboRow& row : rows)
    if (!row.beside.empty())
      room = std::max(room, text_width(shown(row.label)) + ui.px(24) + text_width(shown(row.beside)));
  if (room > 0) room = std::max(room, ImGui::GetContentRegionAvail().x);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const IdScope scope(i);
    if (!rows[i].heading.empty() && (i == 0 || rows[i].heading != rows[i - 1].heading))
      small_text(ui, rows[i].heading, ui.theme->muted);
    if (combo_row(ui, rows[i], i == current, room)) picked = i;
    if (i == current && ImGui::IsWindowAppearing()) ImGui::SetItemDefaultFocus();
  }
  ImGui::EndCombo();
  return picked;
}

std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 std::span<const std::string_view> labels, std::size_t current) {
  std::vector<ComboRow> rows;
  for (const std::string_view label : labels) rows.push_back({std::string(label)});
  return combo(ui, id, width, preview, rows, current);
}

std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 const std::vector<std::string>& labels, std::size_t current) {
  const std::vector<std::string_view> views(labels.begin(), labels.end());
  return combo(ui, id, width, preview, views, current);
}

bool path_field(const Ui& ui, std::string_view label, float share, std::string& path) {
  constexpr std::string_view kBrowse = "Browse";
  const float browse = text_width(kBrowse) + 2 * ImGui::GetStyle().FramePadding.x + ui.px(6);
  ImGui::SetNextItemWidth(field(ui, label, share) - browse);
  ImGui::InputText("##path", &path);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) tooltip(ui, shown(path));
  ImGui::SameLine(0, ui.px(6));
  return button(ui, kBrowse);
}

namespace {

// The one slider into which a number is typed.
struct TypedNumber {
  ImGuiID id = 0;  // 0: none
  std::string text = {};
  std::uint64_t before = 0;  // what the slider held before the first click of the two
  bool fresh = false;
};
TypedNumber& typed_number() {
  static TypedNumber typed;
  return typed;
}

// True when the value changed.
bool number_field(float width, std::uint64_t& value, std::uint64_t least, std::uint64_t most) {
  TypedNumber& typed = typed_number();
  ImGui::SetNextItemWidth(width);
  const bool fresh = std::exchange(typed.fresh, false);
  if (fresh) ImGui::SetKeyboardFocusHere();
  const bool entered = ImGui::InputText(
      "##typed", &typed.text, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const bool taken = entered || ImGui::IsItemDeactivatedAfterEdit();
  if (!fresh && !ImGui::IsItemActive() && !ImGui::IsItemActivated()) typed.id = 0;
  const auto number = taken ? report::tokens_of(typed.text) : std::nullopt;
  if (!number || std::clamp(*number, least, most) == value) return false;
  value = std::clamp(*number, least, most);
  return true;
}

}  // namespace

bool number_slider(const Ui& ui, const char* id, float width, std::uint64_t& value, std::uint64_t least,
                   std::uint64_t most, std::string_view hint, std::string_view words) {
  TypedNumber& typed = typed_number();
  const ImGuiID own = ImGui::GetID(id);
  if (typed.id == own) {
    const IdScope scope(id);
    return number_field(width, value, least, most);
  }
  ImGui::SetNextItemWidth(width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // signed: a logarithmic scale that begins at 0 needs it
  auto number = static_cast<std::int64_t>(value);
  const auto low = static_cast<std::int64_t>(least), high = static_cast<std::int64_t>(most);
  const ImGuiSliderFlags flags =
      ImGuiSliderFlags_AlwaysClamp | (high > kMostLinear ? ImGuiSliderFlags_Logarithmic : 0);
  // ImGui's knob would hide the figure: a filled part below it says the same
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->ChannelsSplit(2);
  draw->ChannelsSetCurrent(1);
  for (const ImGuiCol color : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive,
                               ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive})
    ImGui::PushStyleColor(color, with_alpha(ui.theme->raised, 0));
  std::string format = words.empty() ? "%lld" : "";
  for (const char c : words) format += c == '%' ? "%%" : std::string(1, c);
  const bool moved =
      ImGui::SliderScalar(id, ImGuiDataType_S64, &number, &low, &high, format.c_str(), flags) &&
      number != static_cast<std::int64_t>(value);
  ImGui::PopStyleColor(5);
  draw->ChannelsSetCurrent(0);
  const bool hot = ImGui::IsItemHovered() || ImGui::IsItemActive();
  const float rounding = ImGui::GetStyle().FrameRounding;
  const ImVec2 end = {at.x + width, at.y + ImGui::GetFrameHeight()};
  draw->AddRectFilled(at, end, hot ? ui.theme->hovered : ui.theme->raised, rounding);
  const float edge = at.x + std::max(slider_share(number, low, high) * width, ui.px(3));
  draw->PushClipRect(at, {edge, end.y}, true);
  draw->AddRectFilled(at, end, with_alpha(ui.theme->accent, 0.22f), rounding);
  draw->AddRectFilled({at.x, end.y - ui.px(3)}, {edge, end.y}, ui.theme->accent);
  draw->PopClipRect();
  draw->ChannelsMerge();
  if (!ImGui::IsItemActive()) tooltip(ui, fmt::format("{}\nDouble click to type a number", hint));
  if (ImGui::IsItemActivated() && !ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) typed.before = value;
  if (hot && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    typed = {own, fmt::format("{}", typed.before), typed.before, true};
    return std::exchange(value, typed.before) != typed.before;
  }
  if (moved) value = static_cast<std::uint64_t>(number);
  return moved;
}

void fold_arrow(const Ui& ui, ImVec2 center, bool open) {
  const float r = ui.px(4);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (open)
    draw->AddTriangleFilled({center.x - r, center.y - r * 0.6f}, {center.x + r, center.y - r * 0.6f},
                            {center.x, center.y + r * 0.8f}, ui.theme->muted);
  else
    draw->AddTriangleFilled({center.x - r * 0.6f, center.y - r}, {center.x - r * 0.6f, center.y + r},
                            {center.x + r * 0.8f, center.y}, ui.theme->muted);
}

bool checkbox(const Ui& ui, const char* label, bool* value) {
  // a smaller box than its neighbors: in the middle of their line, which the group keeps where it is
  const float own = ImGui::GetFontSize() + 2 * ui.px(3),
              line = ImGui::GetCurrentWindowRead()->DC.CurrLineSize.y;
  const GroupScope group;
  if (line > own) ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::round((line - own) / 2));
  const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(4), ui.px(3)});
  return ImGui::Checkbox(label, value);
}

bool typed_field(const Ui& ui, const char* id, float width, TypedField& field, const std::string& now,
                 const std::string& empty, std::string_view hint) {
  if (!field.editing) field.typed = now;
  ImGui::SetNextItemWidth(width);
  const std::string cut = elided(empty, width - 2 * ImGui::GetStyle().FramePadding.x);
  const bool entered =
      ImGui::InputTextWithHint(id, cut.c_str(), &field.typed, ImGuiInputTextFlags_EnterReturnsTrue);
  field.editing = ImGui::IsItemActive();
  const bool left = ImGui::IsItemDeactivatedAfterEdit();
  if (!field.editing) tooltip(ui, hint);
  return entered || left;
}

void label_before(const Ui& ui, std::string_view label, float width, bool continues) {
  const float own = label.empty() ? 0 : text_width(label) + ui.px(6);
  if (continues) continue_line(ui, 14, own + width);
  if (label.empty()) return;
  control_text(label, ui.theme->muted);
  ImGui::SameLine(0, ui.px(6));
}

float field(const Ui& ui, std::string_view label, float share) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float x = ImGui::GetCursorPosX();
  const float room = width * share;
  ImGui::AlignTextToFramePadding();
  name_text(ui, label, room - ui.px(8), ui.theme->muted);
  ImGui::SameLine(0, 0);
  ImGui::SetCursorPosX(x + room);
  return width - room;
}

SheetScope::SheetScope(const Ui& ui, const char* id, ImVec2 size, float top) {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float margin = ui.px(40), above = top < 0 ? margin : top;
  const ImVec2 at = {screen.x / 2, top < 0 ? screen.y / 2 : top};
  ImGui::SetNextWindowPos(at, ImGuiCond_Always, {0.5f, top < 0 ? 0.5f : 0.0f});
  ImGui::SetNextWindowSize(
      {std::min(size.x, screen.x - margin), std::min(size.y, screen.y - above - margin)});
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(14)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(10));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.theme->panel);
  ImGui::Begin(id, nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

ModalScope::ModalScope(const Ui& ui, const char* id, std::string_view title, ImVec2 size, bool appears,
                       bool own_arrows) {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float margin = ui.px(80);
  ImGui::SetNextWindowSize({std::min(size.x, screen.x - margin), std::min(size.y, screen.y - margin)});
  ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
  if (appears) ImGui::OpenPopup(id);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(18), ui.px(16)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(10));
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoSavedSettings;
  visible_ = ImGui::BeginPopupModal(id, nullptr, kFlags | (own_arrows ? ImGuiWindowFlags_NoNavInputs : 0));
  ImGui::PopStyleVar(2);
  if (!visible_) return;
  const FontScope font(ui.fonts.title);
  text(title);
}

ModalScope::~ModalScope() {
  if (!visible_) return;
  if (closes_) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

bool sheet_is_left() {
  // what the mouse has just gone down on in the sheet is active, which ImGui would not count as hovered
  constexpr ImGuiHoveredFlags kInside =
      ImGuiHoveredFlags_ChildWindows | ImGuiHoveredFlags_AllowWhenBlockedByActiveItem;
  return list_key_pressed(ListKey::escape) || (ImGui::IsMouseClicked(0) && !ImGui::IsWindowHovered(kInside));
}

// --- A job whose bytes went down is another job: its rate begins anew.

bool JobProgress::draw(const Ui& ui, const JobView& job) {
  const bool stops = progress_with_stop(ui, job.fraction);
  if (job.done < rated_) rate_.reset();
  rated_ = job.done;
  const double bytes_per_second = rate_.add(job.done);
  if (job.total == 0) {
    muted(ui, "Preparing");
    return stops;
  }
  std::string line = fmt::format("{} of {}", format_bytes(job.done), format_bytes(job.total));
  if (bytes_per_second > 0)
    line += fmt::format(
        ", {}, {} left", format_rate(bytes_per_second),
        format_seconds(static_cast<double>(job.total - std::min(job.done, job.total)) / bytes_per_second));
  muted(ui, line);
  return stops;
}

// --- Breaks values into lines: sentences between words, names of files between their parts.

namespace {

// The length of the text up to where a line may end: behind one of `ends`.
std::size_t part_length(std::string_view text, std::string_view ends) {
  const std::size_t end = text.find_first_of(ends);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// None if a part is wider than a line, or the text too long to be a fact: files can hold any name.
std::optional<std::string> in_lines(std::string_view text, float width, std::string_view ends) {
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) return std::nullopt;
  std::string lines;
  std::size_t line = 0;  // where the last one begins
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view part = text.substr(at, part_length(text.substr(at), ends));
    const std::string_view visible = part.ends_with(' ') ? part.substr(0, part.size() - 1) : part;
    if (text_width(visible) > width) return std::nullopt;
    if (text_width(lines.substr(line) + std::string(visible)) > width) {
      lines += '\n';
      line = lines.size();
    }
    lines += part;
    at += part.size();
  }
  return lines;
}

// Each line as high as a line of facts.
void draw_lines(const Ui& ui, std::string_view lines, float left) {
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, fact_height(ui) - ImGui::GetFontSize()});
  for (const std::string_view line : split(lines, '\n')) {
    ImGui::SetCursorPosX(left);
    text_colored(ui.theme->text, line);
  }
}

}  // namespace

std::string capitalized(std::string_view text) {
  std::string words(text);
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

float fact_height(const Ui& ui) { return ui.fonts.small->FontSize + ui.px(4); }

void fact_title(const Ui& ui, std::string_view name) {
  const FontScope font(ui.fonts.mono);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string whole = shown(name);
  auto lines = in_lines(whole, room, " ./");
  if (!lines) lines = in_lines(whole, room, " ._-/");
  draw_lines(ui, lines ? *lines : elided_name(whole, room), ImGui::GetCursorPosX());
}

void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint) {
  const float start = ImGui::GetCursorPosX(), column = ui.px(84), indent = ui.px(10);
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string whole = shown(value);
  {
    const GroupScope group;
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, fact_height(ui) - ImGui::GetFontSize()});
    const float top = ImGui::GetCursorPosY();
    muted(ui, label);
    if (const auto beside = in_lines(whole, room - column, " ")) {
      ImGui::SetCursorPosY(top);
      draw_lines(ui, *beside, start + column);
    } else {
      const auto below = in_lines(whole, room - indent, " -_.");
      draw_lines(ui, below ? *below : elided(whole, room - indent), start + indent);
    }
  }
  tooltip(ui, hint);
}

}  // namespace loadline::gui
