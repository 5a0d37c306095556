// Header, notices, details strip and status bar.
#include "app/gui/actions.h"
#include "app/gui/session/remedies.h"
#include "app/gui/shell.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr float kHalfTurn = std::numbers::pi_v<float>;

// A row of one: an icon button drawn by `paint(center, color)`.
template <typename Paint>
bool icon_button(const Ui& ui, const char* id, std::string_view hint, Paint paint) {
  const float side = ImGui::GetFrameHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = ImGui::InvisibleButton(id, {side, side});
  const bool hot = ImGui::IsItemHovered();
  if (hot)
    ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + side, at.y + side}, ui.theme->hovered, ui.px(6));
  paint(ImVec2{at.x + side / 2, at.y + side / 2}, hot ? ui.theme->text : ui.theme->muted);
  tooltip(ui, hint);
  return pressed;
}

void paint_cross(const Ui& ui, ImVec2 center, ImU32 color) {
  const float r = ui.px(4.5f);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddLine({center.x - r, center.y - r}, {center.x + r, center.y + r}, color, ui.px(1.6f));
  draw->AddLine({center.x - r, center.y + r}, {center.x + r, center.y - r}, color, ui.px(1.6f));
}

enum class Answer { none, dismiss, mend };

// Words over the whole width; `notice` is what they are, if it can be answered.
Answer notice_strip(const Ui& ui, Severity severity, std::string_view words, int id, const Notice* notice) {
  const ImU32 color = severity_color(*ui.theme, severity);
  const IdScope scope(id);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, mix(ui.theme->panel, color, 0.14f));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(14), ui.px(7)});
  const std::string safe = shown(words);
  const std::string remedy =
      notice != nullptr && notice->remedy ? remedy_title(std::span(&*notice->remedy, 1)) : "";
  const float remedy_room = remedy.empty() ? 0 : text_width(remedy) + ui.px(40);
  const float room = ImGui::GetContentRegionAvail().x - ui.px(64) - remedy_room;
  const float lines = ImGui::CalcTextSize(safe.c_str(), nullptr, false, room).y;
  const float height = std::min(lines, 4 * ImGui::GetFontSize()) + ui.px(18);
  const ChildScope child("notice", {0, height}, true, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 at = ImGui::GetWindowPos();
  ImGui::PushClipRect(at, {at.x + ImGui::GetWindowWidth(), at.y + height}, false);
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + ui.px(5), at.y + height}, color, ui.px(8),
                                            ImDrawFlags_RoundCornersLeft);
  ImGui::PopClipRect();
  ImGui::SetCursorPos({ui.px(16), ui.px(9)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room);
  text_colored(ui.theme->text, safe);
  ImGui::PopTextWrapPos();
  if (lines > height) tooltip(ui, safe);
  const float middle = std::min(ui.px(3), (height - ImGui::GetFrameHeight()) / 2);
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - ui.px(6), middle});
  Answer answer = Answer::none;
  if (id >= 0 &&
      icon_button(ui, "dismiss", "Dismiss", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
    answer = Answer::dismiss;
  if (!remedy.empty()) {
    ImGui::SetCursorPos({ImGui::GetWindowWidth() - ImGui::GetFrameHeight() - remedy_room, middle});
    if (button(ui, remedy, ButtonKind::primary)) answer = Answer::mend;
  }
  return answer;
}

}  // namespace

bool Shell::draw_theme_button(const Ui& ui) {
  return icon_button(ui, "theme",
                     fmt::format("{} theme ({})", workspace_.settings.dark ? "Light" : "Dark",
                                 find_action("theme")->shortcut),
                     [&](ImVec2 center, ImU32 color) {
                       ImDrawList* draw = ImGui::GetWindowDrawList();
                       const float r = ui.px(6);
                       // a disc, half of it in the shade
                       draw->AddCircle(center, r, color, 32, ui.px(1.5f));
                       draw->PathArcTo(center, r, -kHalfTurn / 2, kHalfTurn / 2, 24);
                       draw->PathFillConvex(color);
                     });
}

void Shell::draw_header(const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float middle = height / 2;
  const float frame = ImGui::GetFrameHeight();
  load_line_mark(ui, {ui.px(30), middle}, ui.px(12));
  const FontScope title(ui.fonts.title);
  ImGui::SetCursorPos({ui.px(52), middle - ImGui::GetFontSize() / 2});
  text("Loadline");
  ImGui::SameLine(0, ui.px(20));
  const FontScope body(ui.fonts.body);
  const float buttons =
      ui.px(14) + frame + ui.px(8) + text_width("Open") + 2 * ImGui::GetStyle().FramePadding.x;
  draw_header_model(ui, width - buttons - ui.px(20));
  ImGui::SetCursorPos({width - buttons, middle - frame / 2});
  if (button(ui, "Open")) run_action(workspace_, "browse");
  ImGui::SameLine(0, ui.px(8));
  if (draw_theme_button(ui)) run_action(workspace_, "theme");
}

void Shell::draw_header_model(const Ui& ui, float right) {
  if (!workspace_.document().model) return;
  const Model& model = *workspace_.document().model;
  const float x = ImGui::GetCursorPosX();
  const float middle = ui.px(27);
  ImGui::GetWindowDrawList()->AddLine({x, middle - ui.px(10)}, {x, middle + ui.px(10)}, ui.theme->border,
                                      ui.px(1));
  const std::string facts = fmt::format(
      "{} parameters   {}   {}   {}", format_count(model.parameters), format_bytes(model.weight_bytes),
      model.dtypes.empty() ? "" : dtype_info(model.dtypes.front().dtype).name,
      counted(model.graph->files.size(), "file"));
  const float facts_width = text_width(facts);
  const float line = ImGui::GetFontSize();
  const float room = right - x - ui.px(20);
  ImGui::SetCursorPos({x + ui.px(18), middle - line / 2});
  const float name_room = std::min(room * 0.5f, std::max(room - facts_width - ui.px(24), ui.px(120)));
  {
    const FontScope font(ui.fonts.strong);
    name_text(ui, model.name, name_room, ui.theme->text);
  }
  ImGui::SameLine(0, ui.px(18));
  if (ImGui::GetCursorPosX() + facts_width > right) return;
  ImGui::SetCursorPosY(middle - line / 2);
  muted(ui, facts);
}

void Shell::draw_notices(const Ui& ui) {
  const Model* model = workspace_.document().model.get();
  if (model != nullptr && model->errors > 0 && workspace_.settings.panel != "model" &&
      workspace_.settings.panel != "findings") {
    const auto& notes = model->graph->notes;
    const auto first = std::ranges::find(notes, Severity::error, &Note::severity);
    notice_strip(ui, Severity::error,
                 fmt::format("{}{}  (see Findings)", first->text,
                             model->errors > 1 ? fmt::format("  and {} more", model->errors - 1) : ""),
                 -1, nullptr);
  }
  std::optional<std::pair<std::size_t, Answer>> answered;
  const std::vector<Notice>& all = workspace_.shared.notices.all();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const Answer answer = notice_strip(ui, all[i].severity, all[i].text, static_cast<int>(i), &all[i]);
        answer != Answer::none)
      answered = {i, answer};
  if (!answered) return;
  const Notice notice = all[answered->first];
  workspace_.shared.notices.dismiss(answered->first);
  if (answered->second == Answer::mend)
    workspace_.attempt([&] { workspace_.mend({*notice.remedy}, notice.path); });
}

void Shell::draw_details(const Ui& ui) {
  const CardScope card(ui, "details", {0, 0});
  const Model& model = *workspace_.document().model;
  if (!workspace_.document().selection()) {
    ImGui::SetCursorPosY(ui.px(22));
    return muted(
        ui,
        "Select a tensor in the tree, the map, the table or the timeline: it is selected in all of them.");
  }
  const TensorId id = *workspace_.document().selection();
  const Tensor& tensor = model.tensor(id);
  const Storage& storage = model.graph->storage(tensor.storage);
  const std::uint64_t bytes = model.bytes[index(id)];
  const std::uint32_t tie = model.tie_of[index(id)];
  const float spacing = ui.px(30);
  {
    const float room = std::clamp(ImGui::GetContentRegionAvail().x * 0.36f, ui.px(180), ui.px(640));
    const GroupScope group;
    {
      const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, ui.px(2)});
      const FontScope font(ui.fonts.small);
      muted(ui, tie > 0 ? fmt::format("Tensor, shares its bytes with {} more", model.ties[tie - 1].size() - 1)
                        : fmt::format("Tensor, {}", role_name(model.roles[index(id)])));
      if (tie > 0)
        hover_card(ui, [&] {
          for (const TensorId other : model.ties[tie - 1]) text(shown(model.tensor(other).name));
        });
      const FontScope mono(ui.fonts.mono);
      name_text(ui, tensor.name, room, ui.theme->text);
    }
    ImGui::Dummy({room, 0});
  }
  ImGui::SameLine(0, spacing);
  const auto put = [&](std::string_view label, std::string_view value, std::string_view hint) {
    fact(ui, label, value, ui.theme->text, ui.fonts.body, 2);
    tooltip(ui, hint);
    ImGui::SameLine(0, spacing);
  };
  const std::string remark = storage_remark(model, id);
  const std::string_view type = dtype_info(tensor.dtype).name;
  put("Type", remark.empty() ? std::string(type) : fmt::format("{}, {}", type, remark), strides_text(tensor));
  put("Shape", elided(shape_text(tensor), ui.px(170)), shape_text(tensor));
  put("Size", format_bytes(bytes), format_grouped(bytes) + " bytes");
  if (storage.file == kNoFile || ImGui::GetContentRegionAvail().x <= ui.px(250)) return;
  const std::string& path = model.graph->files[index(storage.file)].path;
  const std::string offset = format_grouped(storage.offset + tensor.offset);
  const float room = ImGui::GetContentRegionAvail().x - spacing - text_width(offset) - ui.px(40);
  const std::string file = shown(std::filesystem::path(path).filename().string());
  put("File", elided(file, std::max(ui.px(80), room)), shown(path));
  put("At byte", offset, "");
}

void Shell::draw_status(const Ui& ui) {
  const float height = ui.px(28);
  const float width = ImGui::GetContentRegionAvail().x;
  const FontScope font(ui.fonts.small);
  const float y = ImGui::GetCursorPosY() + (height - ImGui::GetFontSize()) / 2;
  ImGui::SetCursorPos({ui.px(18), y});
  const std::vector<JobView> jobs = workspace_.shared.jobs.view();
  std::string right;
  if (workspace_.document().projection.value()) {
    const Projection& projection = *workspace_.document().projection.value();
    right = fmt::format("{}, {} order: device peak {}, all spaces {}", projection.method->id,
                        projection.order, format_bytes(projection.timeline.peaks[index(Space::device)].bytes),
                        format_bytes(projection.timeline.unified.bytes));
  }
  const float right_width = text_width(right);
  if (jobs.empty()) muted(ui, "Ready");
  for (const JobView& job : jobs) {
    if (ImGui::GetCursorPosX() + ui.px(280) > width - right_width - ui.px(36)) break;
    const IdScope scope(static_cast<int>(job.id));
    ImGui::SetCursorPosY(y);
    text(elided(job.name, ui.px(220)));
    ImGui::SameLine(0, ui.px(8));
    ImGui::SetCursorPosY(y + ImGui::GetFontSize() / 2 - ui.px(3));
    bar(ui, job.fraction, ui.theme->accent, {ui.px(90), ui.px(6)});
    if (job.total > 0) {
      ImGui::SameLine(0, ui.px(8));
      ImGui::SetCursorPosY(y);
      muted(ui, job.cancelling ? "stopping" : fmt::format("{:.0f}%", job.fraction * 100));
    }
    ImGui::SameLine(0, ui.px(2));
    ImGui::SetCursorPosY(y - (ImGui::GetFrameHeight() - ImGui::GetFontSize()) / 2);
    if (icon_button(ui, "cancel", "Cancel", [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
      workspace_.shared.jobs.cancel(job.id);
    ImGui::SameLine(0, ui.px(14));
  }
  if (right.empty()) return;
  ImGui::SetCursorPos({width - right_width - ui.px(18), y});
  muted(ui, right);
}

}  // namespace loadline::gui
