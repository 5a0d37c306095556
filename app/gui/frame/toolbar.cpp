// The request as controls, the verdict, the tabs of models.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/summary.h"
#include "app/gui/state/workspace.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/forward/gguf/type_policy.h"

#include <algorithm>
#include <array>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::gui {

// --- The request as controls, the verdict as a chip that opens the advice, and what can be done with the
// model.

namespace {

constexpr float kContext = 132, kContextLabel = 58;
constexpr float kHalfTurn = std::numbers::pi_v<float>;

bool draw_theme_button(const Workspace& workspace, const Ui& ui) {
  return icon_button(ui, "theme",
                     fmt::format("{} theme ({})", workspace.settings.dark ? "Light" : "Dark",
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

// Logical widths of the line's parts, and of what is left between them.
constexpr float kMark = 50, kLeastName = 80, kAfterName = 18, kBudget = 126, kTarget = 158, kOrder = 84,
                kItemGap = 6, kGroupsGap = 10, kBeforeButtons = 14, kEdge = 14;

float button_width(std::string_view words) {
  return text_width(words) + 2 * ImGui::GetStyle().FramePadding.x;
}

float chip_padding(const Ui& ui) { return ui.px(12); }

// Of long words, whatever the verdict is now: nothing shall move when it changes.
float least_chip(const Ui& ui) { return text_width("estimated, 88.88 GiB left") + 2 * chip_padding(ui); }

float method_width(const Ui& ui, bool roomy) { return ui.px(roomy ? 168 : 140); }

// The sheets that buttons of the toolbar open; a second model beside the first brings a button of its own.
struct SheetButton {
  std::string_view words, action, hint;
};
constexpr auto kSheets = std::to_array<SheetButton>({
    {"Convert", "panel convert", "Write the model in another format or type"},
    {"Upload", "panel upload", "Load the model into the memory of a GPU of this machine, and measure it"},
    {"Diff", "diff", "What differs from another model, which is opened for that (Ctrl+D)"},
});

std::span<const SheetButton> sheet_buttons(const Workspace& workspace, bool diff = true) {
  return std::span(kSheets).first(workspace.documents().size() > 1 || !diff ? 2 : 3);
}

void run_sheet(Workspace& workspace, const SheetButton& sheet) {
  const std::size_t space = sheet.action.find(' ');
  const std::string argument(space == std::string_view::npos ? "" : sheet.action.substr(space + 1));
  workspace.attempt([&] { find_action(sheet.action.substr(0, space))->run(workspace, argument); });
}

// "Options 2": how many are set, so that none works unseen.
std::string options_label(const Document& document) {
  const std::size_t set = changed_options(document).size();
  return set == 0 ? "Options" : fmt::format("Options {}", set);
}

std::string changed_text(const Document& document) {
  const std::size_t set = changed_options(document).size();
  std::string words = "All options of the load";
  if (set > 0)
    words += fmt::format("; {} set besides those in the toolbar:",
                         set == 1 ? "one is" : fmt::format("{} are", set));
  for (const load::LoadOption* const option : changed_options(document))
    words +=
        fmt::format("\n{}: {}", option->title, shown(value_text(document.load.asked().request, *option)));
  return words;
}

// Each option that is set, as a button that resets it; and one for all.
void draw_changed(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const std::vector<const load::LoadOption*> changed = changed_options(document);
  const FontScope font(ui.fonts.small);
  ImGui::AlignTextToFramePadding();  // as high without buttons: nothing below moves with the first change
  for (const std::string_view id : {"undo", "redo"}) {
    const Action& action = *find_action(id);
    if (button(ui, id == "undo" ? "Undo" : "Redo", ButtonKind::ghost, action.enabled(workspace)))
      run_action(workspace, id);
    const std::string change = id == "undo" ? document.load.undone_by_undo() : document.load.done_by_redo();
    tooltip(ui, fmt::format("{}{}{} ({})", action.title, change.empty() ? "" : ": ", shown(change),
                            action.shortcut));
    ImGui::SameLine(0, ui.px(4));
  }
  muted(ui, changed.empty() ? "All options below are at their defaults" : "Press to reset:");
  std::vector<std::string_view> reset;
  const auto offer = [&](const std::string& words, std::vector<std::string_view> ids) {
    continue_line(ui, 6, button_width(words));
    if (button(ui, words)) reset = std::move(ids);
  };
  std::vector<std::string_view> all;
  for (const load::LoadOption* const option : changed) {
    all.push_back(option->id);
    offer(elided(
              fmt::format("{}: {}", option->title, shown(value_text(document.load.asked().request, *option))),
              ui.px(200)),
          {option->id});
  }
  if (changed.size() > 1) offer("all", std::move(all));
  ImGui::Separator();
  if (!reset.empty()) workspace.attempt([&] { document.load.reset_options(reset); });
}

// What has no button of its own in a narrow line.
void draw_more(Workspace& workspace, const Ui& ui, bool with_open) {
  if (button(ui, "More")) ImGui::OpenPopup("more");
  tooltip(ui,
          with_open ? "Open, convert, upload or compare a model" : "Convert, upload or compare the model");
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  if (!ImGui::BeginPopup("more")) return;
  if (with_open && ImGui::Selectable("Open")) run_action(workspace, "browse");
  for (const SheetButton& sheet : sheet_buttons(workspace))
    if (ImGui::Selectable(std::string(sheet.words).c_str())) run_sheet(workspace, sheet);
  ImGui::EndPopup();
}

}  // namespace

float Toolbar::buttons_width(const Workspace& workspace, const Ui& ui, bool model, const Shown& shown) {
  float width = ImGui::GetFrameHeight() + ui.px(kEdge);  // the theme's
  const auto add = [&](std::string_view words) { width += button_width(words) + ui.px(kItemGap); };
  if (shown.open) add("Open");
  if (model && shown.sheets)
    for (const SheetButton& sheet : sheet_buttons(workspace, shown.diff)) add(sheet.words);
  else if (model)
    add("More");
  return width;
}

float Toolbar::request_width(const Ui& ui, const Shown& shown) {
  return ui.px(kBudget + 3 * kGroupsGap) + (shown.target ? ui.px(kTarget) : 0) +
         method_width(ui, shown.target) + (shown.order ? ui.px(kOrder + kItemGap) : 0) +
         button_width("Options 9") + least_chip(ui) +
         (shown.context ? ui.px(kContext + kContextLabel + kGroupsGap + kItemGap) : 0);
}

// What matters least goes first, until nothing lies over anything else.
Toolbar::Shown Toolbar::shown_in(const Workspace& workspace, const Ui& ui, float width) {
  Shown shown;
  const auto needed = [&] {
    return ui.px(kMark + kBeforeButtons) + (shown.name ? ui.px(kLeastName + kAfterName) : 0) +
           request_width(ui, shown) + buttons_width(workspace, ui, true, shown);
  };
  for (bool Shown::*const part : {&Shown::context, &Shown::diff, &Shown::sheets, &Shown::target,
                                  &Shown::order, &Shown::open, &Shown::name})
    if (needed() > width) shown.*part = false;
  shown.diff = true;  // in the room that another part has left
  shown.diff = needed() <= width;
  return shown;
}

void Toolbar::draw_model(const Workspace& workspace, const Ui& ui, float room) {
  const Model& model = *workspace.document().model;
  std::string type = forward::quantization_name(*model.graph, forward::built_in_type_policies());
  if (type.empty() && !model.dtypes.empty()) type = graph::dtype_info(model.dtypes.front().dtype).name;
  const std::string facts = fmt::format("{}   {}   {}   {}", format_bytes(model.weight_bytes),
                                        format_count(workspace.document().parameters()), type,
                                        counted(model.graph->files.size(), "file"));
  const float y = ImGui::GetCursorPosY();
  const FontScope strong(ui.fonts.strong);
  const float name = std::min(text_width(shown(model.name)), std::max(ui.px(80), room));
  ImGui::AlignTextToFramePadding();
  name_text(ui, model.name, name, ui.theme->text);
  const FontScope small(ui.fonts.small);
  tooltip(ui, fmt::format("{}\n{}", shown(model.path), facts));
  if (name + ui.px(16) + text_width(facts) > room) return;
  ImGui::SameLine(0, ui.px(16));
  ImGui::SetCursorPosY(y + ui.px(1));
  ImGui::AlignTextToFramePadding();
  muted(ui, facts);
}

// The chip says whether the load fits; behind it is what would make it fit.
void Toolbar::draw_chip(Workspace& workspace, const Ui& ui, float room) {
  const Verdict verdict = verdict_of(workspace.document());
  const bool over = verdict.state == Verdict::State::over;
  const ImU32 color = verdict_color(ui, verdict);
  // without a budget the chip asks; that there is none stands in the field of the budget
  std::string words = verdict.state == Verdict::State::unknown    ? "projecting"
                      : verdict.state == Verdict::State::unjudged ? "Does it fit?"
                                                                  : verdict.words;
  const std::string longer = words + ": suggestions";
  const float pad = chip_padding(ui);
  if (over && text_width(longer) + 2 * pad <= room) words = longer;
  const std::string whole = std::exchange(words, whole_clauses(words, std::max(ui.px(40), room - 2 * pad)));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {text_width(words) + 2 * pad, ImGui::GetFrameHeight()};
  if (press_area(ui, "chip", size)) ImGui::OpenPopup("advice");
  const bool hot = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, mix(ui.theme->panel, color, hot ? 0.34f : 0.20f), size.y / 2);
  draw->AddRect(at, at + size, with_alpha(color, 0.8f), size.y / 2, 0, std::max(1.0f, ui.px(1)));
  put_text({at.x + pad, at.y + (size.y - ImGui::GetFontSize()) / 2}, ui.theme->text, words);
  const std::string about = verdict.about.empty()
                                ? "Whether this load fits, and which changes would make it fit (F2)"
                                : verdict.about;
  tooltip(ui, words == whole ? about : capitalized(whole) + ". " + about);
  if (workspace.services.requests.take<OpenAdvice>()) ImGui::OpenPopup("advice");
  ImGui::SetNextWindowPos({at.x, at.y + size.y + ui.px(6)});
  ImGui::SetNextWindowSize({ui.px(440), 0});
  ImGui::SetNextWindowSizeConstraints({0, 0},
                                      {ui.px(440), ImGui::GetIO().DisplaySize.y - at.y - size.y - ui.px(20)});
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(12)});
  const bool open = ImGui::BeginPopup("advice");
  if (open) {
    draw_advice(workspace, ui);
    ImGui::EndPopup();
  }
  if (advice_open_ && !open) workspace.document().advice.preview(nullptr);
  advice_open_ = open;
}

void Toolbar::draw_options(Workspace& workspace, const Ui& ui, bool with_order) {
  Document& document = workspace.document();
  if (button(ui, options_label(document))) ImGui::OpenPopup("options");
  tooltip(ui, changed_text(document));
  ImGui::SetNextWindowPos({ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + ui.px(6)});
  ImGui::SetNextWindowSize({ui.px(460), std::min(ui.px(860), ImGui::GetIO().DisplaySize.y - ui.px(80))});
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(16), ui.px(12)});
  if (!ImGui::BeginPopup("options")) return;
  draw_changed(workspace, ui);
  if (with_order) order_choice(workspace, ui, field(ui, load::find_load_option("order")->title));
  std::string_view group;
  for (const load::LoadOption& option : load::load_options()) {
    if (option.group == load::load_groups::kWhich) continue;
    const auto look = look_of(document, option);
    if (!look) continue;
    if (group != option.group) {
      if (!group.empty()) ImGui::Dummy({0, ui.px(4)});
      group = option.group;
      heading(ui, group);
    }
    sheet_controls_.draw_line(ui, *look,
                              [&](std::string_view word) { document.load.set_option(option.id, word); });
  }
  ImGui::EndPopup();
}

void Toolbar::draw_request(Workspace& workspace, const Ui& ui, const Shown& shown, float right) {
  Document& document = workspace.document();
  if (shown.target) {
    controls_.draw_bare(document, ui, *load::find_load_option("target"), "no target");
    ImGui::SameLine(0, ui.px(kItemGap));
  }
  controls_.draw_bare(document, ui, *load::find_load_option("device_budget"), "no budget");
  ImGui::SameLine(0, ui.px(kGroupsGap));
  method_choice(workspace, ui, method_width(ui, shown.target));
  ImGui::SameLine(0, ui.px(kItemGap));
  if (shown.order) {
    order_choice(workspace, ui, ui.px(kOrder));
    ImGui::SameLine(0, ui.px(kItemGap));
  }
  draw_options(workspace, ui, !shown.order);
  if (workspace.lesson.hides_views()) return;
  if (shown.context && has_context(document)) {
    ImGui::SameLine(0, ui.px(kGroupsGap));
    ImGui::AlignTextToFramePadding();
    muted(ui, "context");
    ImGui::SameLine(0, ui.px(kItemGap));
    draw_context(workspace, ui, ui.px(kContext));
  }
  ImGui::SameLine(0, ui.px(kGroupsGap));
  draw_chip(workspace, ui, right - ImGui::GetCursorPosX());
}

void Toolbar::draw_buttons(Workspace& workspace, const Ui& ui, const Shown& shown) {
  if (shown.open) {
    if (button(ui, "Open")) run_action(workspace, "browse");
    tooltip(ui, fmt::format("Open a model ({})", find_action("browse")->shortcut));
    ImGui::SameLine(0, ui.px(kItemGap));
  }
  if (workspace.document().model) {
    if (shown.sheets) {
      for (const SheetButton& sheet : sheet_buttons(workspace, shown.diff)) {
        if (&sheet != kSheets.data()) ImGui::SameLine(0, ui.px(kItemGap));
        if (button(ui, sheet.words)) run_sheet(workspace, sheet);
        tooltip(ui, sheet.hint);
      }
    } else {
      draw_more(workspace, ui, !shown.open);
    }
    ImGui::SameLine(0, ui.px(kItemGap));
  }
  if (draw_theme_button(workspace, ui)) run_action(workspace, "theme");
}

void Toolbar::draw(Workspace& workspace, const Ui& ui, float height) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float middle = height / 2;
  const float frame = ImGui::GetFrameHeight();
  const bool model = workspace.document().model != nullptr;
  load_line_mark(ui, {ui.px(28), middle}, ui.px(11));
  bool start = false;  // once all is drawn: what follows is about the model
  if (model) {
    ImGui::SetCursorPos({ui.px(14), middle - frame / 2});
    start = press_area(ui, "start", {ui.px(28), frame});
    tooltip(ui, fmt::format("What runs on this machine? ({})", find_action("start")->shortcut));
  }
  const Shown shown = model ? shown_in(workspace, ui, width) : Shown();
  const float buttons = buttons_width(workspace, ui, model, shown);
  ImGui::SetCursorPos({ui.px(kMark), middle - frame / 2});
  if (model) {
    if (shown.name) {
      // the request needs some room; the name takes what is left of it
      const float request = std::max(request_width(ui, shown), shown.target ? ui.px(800) : 0);
      draw_model(workspace, ui, width - buttons - request - ui.px(kMark + kAfterName));
      ImGui::SameLine(0, ui.px(kAfterName));
      ImGui::SetCursorPosY(middle - frame / 2);
    }
    draw_request(workspace, ui, shown, width - buttons - ui.px(kBeforeButtons));
  } else {
    const FontScope title(ui.fonts.title);
    ImGui::SetCursorPosY(middle - ImGui::GetFontSize() / 2);
    text("Loadline");
  }
  ImGui::SetCursorPos({width - buttons, middle - frame / 2});
  draw_buttons(workspace, ui, shown);
  if (start) run_action(workspace, "start");
}

// --- One tab for each open model, as wide as its name while there is room for all.

namespace {

constexpr float kHeight = 30;
constexpr float kLeastTab = 72, kMostTab = 240;

struct TabAnswer {
  bool shown = false, closed = false;
};

TabAnswer draw_tab(const Ui& ui, const Document& document, std::string_view title, bool current,
                   float width) {
  const IdScope scope(static_cast<int>(document.id));
  const float height = ui.px(kHeight - 4), cross = ui.px(22), pad = ui.px(10);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TabAnswer answer;
  answer.shown = press_area(ui, "tab", {width, height});
  ImGui::SetItemAllowOverlap();
  const bool hot = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenOverlapped);
  answer.closed = hot && ImGui::IsMouseReleased(ImGuiMouseButton_Middle);
  tooltip(ui, document.model ? shown(document.model->path) : "Nothing is open here");
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end = {at.x + width, at.y + height};
  if (current || hot)
    draw->AddRectFilled(at, end, current ? ui.theme->panel : with_alpha(ui.theme->panel, 0.5f), ui.px(6));
  if (current) draw->AddRect(at, end, ui.theme->border, ui.px(6));
  const float room = width - 2 * pad - (current || hot ? cross - ui.px(4) : 0);
  put_text({at.x + pad, at.y + (height - ImGui::GetFontSize()) / 2},
           current || hot ? ui.theme->text : ui.theme->muted, elided(title, room));
  if (!current && !hot) return answer;
  ImGui::SameLine(0, 0);
  ImGui::SetCursorScreenPos({end.x - cross, at.y});
  if (press_area(ui, "close", {cross, height})) answer = {false, true};
  const bool hot_cross = ImGui::IsItemHovered();
  tooltip(ui, fmt::format("Close ({})", find_action("close")->shortcut));
  paint_cross(ui, {end.x - cross / 2 - ui.px(2), at.y + height / 2},
              hot_cross ? ui.theme->text : ui.theme->muted);
  return answer;
}

}  // namespace

float model_tabs_height(const Workspace& workspace, const Ui& ui) {
  return workspace.documents().size() > 1 ? ui.px(kHeight) : 0;
}

void draw_model_tabs(Workspace& workspace, const Ui& ui, float width) {
  const FontScope font(ui.fonts.small);
  const float gap = ui.px(4), plus = ui.px(28);
  const auto& documents = workspace.documents();
  std::vector<float> widths;
  std::vector<std::string> titles;
  float all = plus;
  for (const auto& document : documents) {
    titles.push_back(shown(tab_title(workspace, *document)));
    widths.push_back(std::clamp(text_width(titles.back()) + ui.px(46), ui.px(kLeastTab), ui.px(kMostTab)));
    all += widths.back() + gap;
  }
  const float each = std::max(ui.px(kLeastTab), (width - plus) / static_cast<float>(documents.size()) - gap);
  if (all > width)
    for (float& tab : widths) tab = std::min(tab, each);
  const ChildScope strip("models", {width, ui.px(kHeight)}, false,
                         all > width ? ImGuiWindowFlags_HorizontalScrollbar : ImGuiWindowFlags_NoScrollbar);
  std::optional<std::size_t> shown, closed;
  const StyleScope spacing(ImGuiStyleVar_ItemSpacing, {gap, 0});
  for (std::size_t i = 0; i < documents.size(); ++i) {
    ImGui::SetCursorPos({ImGui::GetCursorPosX(), 0});
    const float left = ImGui::GetCursorPosX();
    const TabAnswer answer =
        draw_tab(ui, *documents[i], titles[i], i == workspace.shown_document(), widths[i]);
    if (answer.shown) shown = i;
    if (answer.closed) closed = i;
    ImGui::SetCursorPos({left + widths[i] + gap, 0});
  }
  if (icon_button(ui, "open", fmt::format("Open another model ({})", find_action("browse")->shortcut),
                  [&](ImVec2 center, ImU32 color) {
                    const float r = ui.px(5);
                    ImDrawList* draw = ImGui::GetWindowDrawList();
                    draw->AddLine({center.x - r, center.y}, {center.x + r, center.y}, color, ui.px(1.5f));
                    draw->AddLine({center.x, center.y - r}, {center.x, center.y + r}, color, ui.px(1.5f));
                  }))
    run_action(workspace, "browse");
  const float room = width - text_width("Diff") - 2 * ImGui::GetStyle().FramePadding.x;
  if (ImGui::GetCursorPosX() < room && workspace.document().model) {
    ImGui::SameLine(room);
    ImGui::SetCursorPosY(0);
    if (button(ui, "Diff", ButtonKind::ghost)) workspace.settings.panel = "diff";
    tooltip(ui, fmt::format("What differs between two open models ({})", find_action("diff")->shortcut));
  }
  if (shown) workspace.show_document(*shown);
  if (!closed) return;
  workspace.show_document(*closed);
  workspace.close_model();
}

}  // namespace loadline::gui
