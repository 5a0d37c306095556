// The start page, shown while no model is open.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/lesson/lesson.h"
#include "importers/importer.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// Logical heights of the parts of the page below its top.
struct Places {
  bool mark = true;
  float title = 92, purpose = 138, buttons = 186, drop = 250, known = 290;
};
constexpr Places kRoomy = {};
constexpr Places kLow = {.mark = false, .title = 0, .purpose = 32, .buttons = 64, .drop = 116, .known = 146};
constexpr float kLeastRoomy = 475;

class StartPanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    // in a low window the words give way, so that the models below them are in sight
    const Places at = room.y < ui.px(kLeastRoomy) ? kLow : kRoomy;
    if (at.mark) draw_water(ui, origin, room);
    const float top = at.mark ? std::max(ui.px(16), room.y * 0.40f - ui.px(260)) : ui.px(14);
    if (at.mark) load_line_mark(ui, {origin.x + room.x / 2, origin.y + top + ui.px(34)}, ui.px(34));
    centered(at.mark ? ui.fonts.hero : ui.fonts.title, ui.theme->text, "How much memory will it need?",
             room.x, top + ui.px(at.title));
    centered(ui.fonts.body, ui.theme->muted, "Memory peaks of loading a model, before it is loaded.", room.x,
             top + ui.px(at.purpose));
    ImGui::SetCursorPosY(top + ui.px(at.buttons));
    draw_buttons(workspace, ui, room.x);
    const bool busy = workspace.opening.busy();
    centered(ui.fonts.body, ui.theme->muted,
             busy ? "Reading the headers" : "or drop a file or a model folder anywhere in this window",
             room.x, top + ui.px(at.drop));
    workspace.places.find_cached();
    const float width = std::min(ui.px(920), room.x - ui.px(48)), left = (room.x - width) / 2;
    const float gap = ui.px(24), half = (width - gap) / 2;
    float y = top + ui.px(at.known);
    const auto place = [&](float x) { ImGui::SetCursorScreenPos(origin + ImVec2{left + x, y}); };
    const auto height = [&] { return std::max(ui.px(60), room.y - y - ui.px(12)); };
    if (!workspace.settings.favorites.empty() || !workspace.settings.recent.empty() ||
        !workspace.places.cached.or_empty().empty()) {
      place(0);
      draw_known(workspace, ui, {half, height()});
      place(half + gap);
      return draw_lessons(workspace, ui, {half, height()}, 1);
    }
    if (at.mark) {
      draw_formats(ui, room.x, y);
      y += ui.px(80);
    }
    place(0);
    draw_lessons(workspace, ui, {width, height()}, room.x > ui.px(760) ? 2 : 1);
  }

 private:
  static void draw_formats(const Ui& ui, float room, float y) {
    std::string formats;
    for (const importers::Importer& importer : importers::importers())
      formats += (formats.empty() ? "" : ", ") + std::string(importer.name);
    const FontScope small(ui.fonts.small);
    const float lines = std::min(ui.px(640), room - ui.px(32));
    ImGui::SetCursorPos({(room - lines) / 2, y});
    centered_lines("Reads " + formats, lines, ui.theme->muted);
  }

  static void list_title(const Ui& ui, std::string_view words) {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ui.px(10));
    const FontScope font(ui.fonts.strong);
    text_colored(ui.theme->text, words);
  }

  // A line for each lesson, from the top of a column to its end; a click plays one.
  static void draw_lessons(Workspace& workspace, const Ui& ui, ImVec2 size, std::size_t columns) {
    const CardScope card(ui, "lessons", size);
    list_title(ui, "Lessons");
    const ChildScope list("list");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    const float width = ImGui::GetContentRegionAvail().x / static_cast<float>(columns);
    const float height = ImGui::GetFontSize() + ui.px(11);
    const std::vector<lesson::Lesson>& lessons = workspace.lesson.all();
    const std::size_t lines = (lessons.size() + columns - 1) / columns;
    std::string wanted;
    for (std::size_t i = 0; i < lines * columns; ++i) {
      const std::size_t column = i % columns, which = column * lines + i / columns;
      if (which >= lessons.size()) continue;
      if (column > 0) ImGui::SameLine(width * static_cast<float>(column), 0);
      const IdScope scope(which);
      const lesson::Lesson& lesson = lessons[which];
      const ImVec2 at = ImGui::GetCursorScreenPos();
      if (ImGui::Selectable("##lesson", false, 0, {width - ui.px(8), height})) wanted = lesson.id;
      tooltip(ui, shown(lesson.question));
      const bool done = workspace.lesson.finished.contains(lesson.id);
      const float mark = done ? text_width("done") + ui.px(12) : 0;
      if (done) put_text_before(at.x + width - ui.px(18), at.y + ui.px(5), ui.theme->good, "done");
      put_text({at.x + ui.px(10), at.y + ui.px(5)}, ui.theme->text,
               elided(shown(lesson.title), width - ui.px(28) - mark));
    }
    if (!wanted.empty()) workspace.attempt([&] { workspace.stage.play(wanted); });
  }

  // The models opened last, then those of the cache; a click opens one.
  static void draw_known(Workspace& workspace, const Ui& ui, ImVec2 size) {
    struct Line {
      std::string open, name, place;
    };
    std::vector<Line> lines;
    const auto add = [&](const std::string& path, std::string_view mark) {
      const std::filesystem::path whole(path);
      const std::filesystem::path named = whole.filename().empty() ? whole.parent_path() : whole;
      lines.push_back(
          {path, named.filename().string(), fmt::format("{}{}", mark, named.parent_path().string())});
    };
    for (const std::string& path : workspace.settings.favorites) add(path, "favorite  ");
    for (const std::string& path : workspace.settings.recent)
      if (std::ranges::find(workspace.settings.favorites, path) == workspace.settings.favorites.end())
        add(path, "");
    for (const std::string& name : workspace.places.cached.or_empty())
      if (std::ranges::find(workspace.settings.recent, name) == workspace.settings.recent.end())
        lines.push_back({name, name, "cached"});
    const float width = size.x, height = ImGui::GetFontSize() + ui.px(12);
    const CardScope card(ui, "known", size);
    list_title(ui, "Models");
    const ChildScope list("list");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    for_rows_in_sight(
        lines.size(),
        [&](std::size_t i) {
          const IdScope scope(i);
          const ImVec2 at = ImGui::GetCursorScreenPos();
          if (ImGui::Selectable("##path", false, 0, {width, height})) workspace.open(lines[i].open);
          put_text({at.x + ui.px(10), at.y + ui.px(6)}, ui.theme->text,
                   elided(shown(lines[i].name), width * 0.5f));
          const FontScope font(ui.fonts.small);
          put_text_before(at.x + width - ui.px(14), at.y + ui.px(7), ui.theme->muted,
                          elided_front(shown(lines[i].place), width * 0.45f));
        },
        height);
  }

  static void draw_buttons(Workspace& workspace, const Ui& ui, float room) {
    const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(18), ui.px(10)});
    const float gap = ui.px(10);
    const std::string_view browse = find_action("browse")->title;
    const std::string_view demo = find_action("demo")->title;
    const float buttons = text_width(browse) + text_width(demo) + text_width("Arena packing") +
                          6 * ui.px(18) + 2 * gap + ui.px(8);
    ImGui::SetCursorPosX((room - buttons) / 2);
    if (button(ui, browse, ButtonKind::primary)) run_action(workspace, "browse");
    ImGui::SameLine(0, gap);
    if (button(ui, demo, ButtonKind::normal, !workspace.opening.busy())) run_action(workspace, "demo");
    ImGui::SameLine(0, gap);
    if (button(ui, "Arena packing")) workspace.settings.panel = "arena";
    tooltip(ui, "See how buffers get their offsets: an example that greedy cannot pack, or a .csv problem");
  }

  // Breaks at commas; each line in the middle of `width`.
  static void centered_lines(std::string_view words, float width, ImU32 color) {
    const float left = ImGui::GetCursorPosX();
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 2});
    while (!words.empty()) {
      std::size_t end = 0;
      for (std::size_t next = 0; next < words.size();) {
        next = std::min(words.find(", ", next), words.size() - 1) + 1;
        if (end > 0 && text_width(words.substr(0, next)) > width) break;
        end = next;
      }
      const std::string_view line = words.substr(0, end);
      ImGui::SetCursorPosX(left + std::max(0.0f, (width - text_width(line)) / 2));
      text_colored(color, line);
      words.remove_prefix(end);
      while (words.starts_with(' ')) words.remove_prefix(1);
    }
  }

  static void centered(ImFont* font, ImU32 color, std::string_view words, float room, float y) {
    const FontScope scope(font);
    const std::string cut = elided(words, room);
    ImGui::SetCursorPos({(room - text_width(cut)) / 2, y});
    text_colored(color, cut);
  }

  // Bands of deepening water below the load line.
  static void draw_water(const Ui& ui, ImVec2 at, ImVec2 room) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImU32 water = ui.theme->spaces[plan::index(plan::Space::device)];
    const float line = at.y + room.y * 0.80f;
    for (int i = 0; i < 4; ++i) {
      const float y = line + static_cast<float>(i) * room.y * 0.05f;
      draw->AddRectFilled({at.x, y}, {at.x + room.x, at.y + room.y}, with_alpha(water, 0.07f), ui.px(8),
                          ImDrawFlags_RoundCornersBottom);
    }
    draw->AddLine({at.x, line}, {at.x + room.x, line}, with_alpha(water, 0.55f), ui.px(1.5f));
  }
};

}  // namespace

std::unique_ptr<Panel> make_start_panel() { return std::make_unique<StartPanel>(); }

}  // namespace loadline::gui
