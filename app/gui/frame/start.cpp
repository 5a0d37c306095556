// The start page, shown while no model is open.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/lesson/lesson.h"
#include "core/base/text.h"
#include "core/gpu/device_info.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr float kLeastRoomy = 560, kLeastWide = 760;
constexpr float kRow = 46;

ImU32 state_color(const Ui& ui, report::RunVerdict::State state) {
  switch (state) {
    case report::RunVerdict::State::fits:
      return ui.theme->good;
    case report::RunVerdict::State::estimated:
    case report::RunVerdict::State::tight:
    case report::RunVerdict::State::incomplete:
      return ui.theme->warning;
    case report::RunVerdict::State::over:
      return ui.theme->bad;
    default:
      return ui.theme->muted;
  }
}

class StartPanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const Shelf::Wanted wanted = {workspace.settings.favorites, workspace.settings.recent,
                                  workspace.settings.folders};
    if (!workspace.shelf.is_current(wanted)) {
      workspace.measure_machine();
      workspace.shelf.look(wanted);
    }
    const bool roomy = room.y >= ui.px(kLeastRoomy);
    const float width = std::min(ui.px(1240), room.x - ui.px(48)), left = (room.x - width) / 2;
    float y = ui.px(roomy ? 26 : 12);
    const float words_width = width - buttons_width(ui);
    const auto line = [&](ImFont* font, ImU32 color, std::string_view words) {
      const FontScope scope(font);
      ImGui::SetCursorScreenPos(origin + ImVec2{left, y});
      text_colored(color, elided(words, words_width));
      y += ImGui::GetFontSize() + ui.px(6);
    };
    line(ui.fonts.hero, ui.theme->text, "What runs on this machine?");
    for (const std::string& words : machine_lines(workspace)) line(ui.fonts.body, ui.theme->muted, words);
    draw_buttons(workspace, ui, origin + ImVec2{left + width, ui.px(roomy ? 30 : 14)});
    y += ui.px(roomy ? 14 : 6);
    const float gap = ui.px(20),
                lessons = room.x > ui.px(kLeastWide) ? std::min(ui.px(380), room.x * 0.3f) : 0;
    const float height = std::max(ui.px(80), room.y - y - ui.px(12));
    ImGui::SetCursorScreenPos(origin + ImVec2{left, y});
    draw_models(workspace, ui, {width - (lessons > 0 ? lessons + gap : 0), height});
    if (lessons == 0) return;
    ImGui::SetCursorScreenPos(origin + ImVec2{left + width - lessons, y});
    draw_lessons(workspace, ui, {lessons, height});
  }

 private:
  // What the machine has and can give, a line each.
  static std::vector<std::string> machine_lines(const Workspace& workspace) {
    std::vector<std::string> lines;
    std::size_t gpus = 0;
    if (const auto& memory = workspace.services.memory) {
      std::string words = fmt::format("Memory: {} of {} available", format_bytes(memory->to_give()),
                                      format_bytes(memory->total));
      if (memory->group_room && *memory->group_room < memory->available)
        words += fmt::format(". A control group limits this process; the system has {} available",
                             format_bytes(memory->available));
      lines.push_back(std::move(words));
    }
    for (const gpu::DeviceInfo& device : workspace.devices()) {
      const gpu::DeviceHeap* const heap = gpu::device_heap(device);
      if (device.type == gpu::DeviceType::cpu || heap == nullptr) continue;
      ++gpus;
      lines.push_back(fmt::format("{}: {} of {} available{}", shown(device.name),
                                  format_bytes(heap->budget.value_or(heap->bytes)), format_bytes(heap->bytes),
                                  device.unified ? ", shared with the system" : ""));
    }
    if (workspace.services.devices.value() && gpus == 0)
      lines.emplace_back("No GPU was found. Models run on the processor.");
    return lines;
  }

  static void list_title(const Ui& ui, std::string_view words) {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ui.px(10));
    const FontScope font(ui.fonts.strong);
    text_colored(ui.theme->text, words);
  }

  // A line for each lesson; a click plays one.
  static void draw_lessons(Workspace& workspace, const Ui& ui, ImVec2 size) {
    const CardScope card(ui, "lessons", size);
    list_title(ui, "Lessons");
    const ChildScope list("list");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    const float width = ImGui::GetContentRegionAvail().x;
    const float height = ImGui::GetFontSize() + ui.px(11);
    std::string wanted;
    for (const lesson::Lesson& lesson : workspace.lesson.all()) {
      const IdScope scope(lesson.id.c_str());
      const ImVec2 at = ImGui::GetCursorScreenPos();
      if (ImGui::Selectable("##lesson", false, 0, {width, height})) wanted = lesson.id;
      tooltip(ui, shown(lesson.question));
      const bool done = workspace.lesson.finished.contains(lesson.id);
      std::string words = done ? "done" : "";
      if (const auto left = workspace.lesson.left_at(lesson.id); left && !done)
        words = fmt::format("{} of {}", left->first + 1, left->second);
      const float mark = words.empty() ? 0 : text_width(words) + ui.px(12);
      put_text_before(at.x + width - ui.px(10), at.y + ui.px(5), done ? ui.theme->good : ui.theme->muted,
                      words);
      put_text({at.x + ui.px(10), at.y + ui.px(5)}, ui.theme->text,
               elided(shown(lesson.title), width - ui.px(20) - mark));
    }
    if (!wanted.empty()) workspace.attempt([&] { workspace.stage.play(wanted); });
  }

  // A row for each model on this disk; a click opens it.
  static void draw_models(Workspace& workspace, const Ui& ui, ImVec2 size) {
    const CardScope card(ui, "known", size);
    const Shelf& shelf = workspace.shelf;
    list_title(ui, "Models");
    if (const std::size_t unread = shelf.unread(); shelf.listing() || unread > 0) {
      ImGui::SameLine(0, ui.px(12));
      muted(ui,
            shelf.listing() ? "looking for models" : fmt::format("reading {}", counted(unread, "header")));
    } else if (!shelf.models().empty()) {
      const auto run = std::ranges::count_if(shelf.models(), [](const ShelfModel& model) {
        return model.facts && model.facts->row && model.facts->row->verdict.fits() &&
               missing_part(model).empty();
      });
      ImGui::SameLine(0, ui.px(12));
      muted(ui, fmt::format("{} of {} {}, with a prompt of {} tokens", run,
                            counted(shelf.models().size(), "model"), run == 1 ? "runs" : "run",
                            report::kUsualPrompt));
    }
    const ChildScope list("list");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    if (shelf.models().empty() && !shelf.listing())
      return empty_state(ui, "No models were found on this disk",
                         "Looked in the Hugging Face cache and the stores of Ollama and LM Studio. "
                         "Drop a file or a model folder anywhere in this window.");
    std::optional<std::size_t> opened, converted;
    for_rows_in_sight(
        shelf.models().size(),
        [&](std::size_t i) {
          const IdScope scope(i);
          const RowAnswer answer = draw_model(ui, shelf.models()[i]);
          if (answer.open) opened = i;
          if (answer.convert) converted = i;
        },
        ui.px(kRow));
    if (!opened && !converted) return;
    const std::string& path = shelf.models()[opened ? *opened : *converted].stored.path;
    if (path.empty()) return;
    workspace.open(path);
    if (converted) workspace.settings.panel = "convert";
  }

  struct RowAnswer {
    bool open = false, convert = false;
  };

  static RowAnswer draw_model(const Ui& ui, const ShelfModel& model) {
    RowAnswer answer;
    const float height = ui.px(kRow), width = ImGui::GetContentRegionAvail().x;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ShelfFacts* const facts = model.facts.get();
    const report::ModelRow* const row = facts != nullptr && facts->row ? &*facts->row : nullptr;
    answer.open =
        ImGui::Selectable("##model", false, ImGuiSelectableFlags_AllowItemOverlap, {width, height}) &&
        !model.gone;
    const bool hot = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenOverlapped);
    const auto [color, words] = verdict_words(ui, model);
    const std::string better = better_words(facts);
    tooltip(ui,
            fmt::format("{}\n{}{}", words, better.empty() ? "" : better + "\n", shown(model.stored.path)));
    const float pad = ui.px(10), first = at.y + ui.px(5), second = at.y + ui.px(25);
    draw_thumbnail(ui, facts, {at.x + pad, at.y + (height - ui.px(float(kThumbHeight))) / 2});
    const float text_left = at.x + pad + ui.px(float(kThumbWidth) + 14);
    const float verdict_left = at.x + width * 0.52f;
    put_text({text_left, first}, model.gone ? ui.theme->muted : ui.theme->text,
             elided(shown(model.stored.name), verdict_left - text_left - ui.px(16)));
    const ImVec2 answer_at = {verdict_left, first};
    const float answer_width = at.x + width - verdict_left - ui.px(row != nullptr ? 96 : 10);
    ImGui::GetWindowDrawList()->AddCircleFilled({answer_at.x + ui.px(4), first + ImGui::GetFontSize() / 2},
                                                ui.px(4), color);
    // what has no room, the context, goes below, where nothing else stands there
    const std::size_t comma = words.rfind(", ");
    const bool cut =
        better.empty() && comma != std::string::npos && text_width(words) > answer_width - ui.px(16);
    put_text({answer_at.x + ui.px(16), first}, ui.theme->text,
             elided(cut ? words.substr(0, comma) : words, answer_width - ui.px(16)));
    {
      const FontScope font(ui.fonts.small);
      put_text({text_left, second}, ui.theme->muted,
               elided(about(model), verdict_left - text_left - ui.px(16)));
      put_text({answer_at.x + ui.px(16), second}, ui.theme->muted,
               elided(cut ? words.substr(comma + 2) : better, answer_width - ui.px(16)));
    }
    if (row != nullptr) {
      ImGui::SetCursorScreenPos({at.x + width - ui.px(92), at.y + (height - ImGui::GetFrameHeight()) / 2});
      answer.convert = button(ui, "Convert", hot ? ButtonKind::normal : ButtonKind::ghost);
      answer.open = answer.open && !answer.convert;
      ImGui::SetCursorScreenPos({at.x, at.y + height});
    }
    return answer;
  }

  static void draw_thumbnail(const Ui& ui, const ShelfFacts* facts, ImVec2 at) {
    ImDrawList* const draw = ImGui::GetWindowDrawList();
    const ImVec2 end = {at.x + ui.px(float(kThumbWidth)), at.y + ui.px(float(kThumbHeight))};
    draw->AddRectFilled(at, end, with_alpha(ui.theme->neutral, 0.18f), ui.px(3));
    if (facts == nullptr) return;
    draw->PushClipRect(at, end, true);
    for (const ThumbTile& tile : facts->map) {
      const ImVec2 corner = {at.x + ui.px(float(tile.rect.x)), at.y + ui.px(float(tile.rect.y))};
      draw->AddRectFilled(corner,
                          {corner.x + std::max(1.0f, ui.px(float(tile.rect.w)) - 1),
                           corner.y + std::max(1.0f, ui.px(float(tile.rect.h)) - 1)},
                          ui.theme->roles[static_cast<std::size_t>(tile.role)]);
    }
    draw->PopClipRect();
  }

  static std::string missing_part(const ShelfModel& model) {
    return report::missing_part(model.stored.incomplete, model.stored.unfinished,
                                model.facts ? model.facts->row : std::nullopt);
  }

  static std::pair<ImU32, std::string> verdict_words(const Ui& ui, const ShelfModel& model) {
    if (model.gone) return {ui.theme->muted, "no longer there"};
    if (model.facts || model.stored.path.empty())
      if (const std::string missing = missing_part(model); !missing.empty())
        return {ui.theme->warning, "incomplete: " + shown(missing)};
    if (!model.facts) return {with_alpha(ui.theme->muted, 0.5f), "reading"};
    if (!model.facts->row) return {ui.theme->bad, report::fault_text(model.facts->fault, model.stored.path)};
    const report::RunVerdict& verdict = model.facts->row->verdict;
    return {state_color(ui, verdict.state), verdict.words};
  }

  // Type, parameters, weights, and where it is.
  static std::string about(const ShelfModel& model) {
    std::string words = model.favorite ? "favorite  " : model.recent ? "recent  " : "";
    if (model.facts && model.facts->row) {
      const report::ModelRow& row = *model.facts->row;
      words += fmt::format("{}  {}  {}  ", format_bytes(row.bytes), format_count(row.parameters), row.type);
    }
    switch (model.stored.store) {
      case importers::Store::hub:
        return words + "Hugging Face cache";
      case importers::Store::ollama:
        return words + "Ollama";
      case importers::Store::lm_studio:
        return words + "LM Studio";
      case importers::Store::folder:
        break;
    }
    return words + shown(std::filesystem::path(model.stored.path).parent_path().string());
  }

  static std::string better_words(const ShelfFacts* facts) {
    if (facts == nullptr || !facts->row || facts->row->verdict.fits() || !facts->row->verdict.whole)
      return {};
    if (!facts->tried_types) return "trying quantizations";
    if (facts->row->better)
      return fmt::format("{} runs: {}", facts->row->better->policy, format_bytes(facts->row->better->bytes));
    return facts->row->no_better;
  }

  static float buttons_width(const Ui& ui) {
    return text_width(find_action("browse")->title) + text_width(find_action("demo")->title) +
           text_width("Arena packing") + 6 * ui.px(18) + 3 * ui.px(10);
  }

  // Right-aligned at `corner`.
  static void draw_buttons(Workspace& workspace, const Ui& ui, ImVec2 corner) {
    const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(14), ui.px(7)});
    const float gap = ui.px(10);
    const std::string_view browse = find_action("browse")->title;
    const std::string_view demo = find_action("demo")->title;
    const float buttons =
        text_width(browse) + text_width(demo) + text_width("Arena packing") + 6 * ui.px(14) + 2 * gap;
    ImGui::SetCursorScreenPos({corner.x - buttons, corner.y});
    if (button(ui, browse, ButtonKind::primary)) run_action(workspace, "browse");
    ImGui::SameLine(0, gap);
    if (button(ui, demo, ButtonKind::normal, !workspace.opening.busy())) run_action(workspace, "demo");
    ImGui::SameLine(0, gap);
    if (button(ui, "Arena packing")) workspace.settings.panel = "arena";
    tooltip(ui, "See how buffers get their offsets: an example that greedy cannot pack, or a .csv problem");
  }
};

}  // namespace

std::unique_ptr<Panel> make_start_panel() { return std::make_unique<StartPanel>(); }

}  // namespace loadline::gui
