// The start page, shown while no model is open.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/facts.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "app/lesson/lesson.h"
#include "core/base/text.h"
#include "core/gpu/device_info.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <imgui_stdlib.h>

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

constexpr float kBetweenButtons = 6;
float buttons_of_row(const Ui& ui) {
  return text_width("Open") + text_width("Convert") + 4 * ImGui::GetStyle().FramePadding.x +
         ui.px(kBetweenButtons);
}

// The columns of the models, in pixels from the left edge of a row; a width of 0: there is no room for it.
struct Columns {
  float name = 0, size = 0, verdict = 0, context = 0, used = 0, buttons = 0;
  float name_width = 0, size_width = 0, verdict_width = 0, context_width = 0, used_width = 0;
};

Columns columns_in(const Ui& ui, float width) {
  constexpr float kLeastName = 190, kLeastVerdict = 210;
  const float gap = ui.px(14);
  Columns columns;
  columns.name = ui.px(10 + float(report::kThumbWidth) + 14);
  columns.buttons = width - buttons_of_row(ui) - ui.px(10);
  columns.size_width = ui.px(78);
  columns.context_width = ui.px(72);
  columns.used_width = ui.px(84);
  const auto spare = [&] {
    float taken = columns.name + gap + (width - columns.buttons);
    for (const float column : {columns.size_width, columns.context_width, columns.used_width})
      if (column > 0) taken += column + gap;
    return width - taken - gap;
  };
  for (float* const column : {&columns.used_width, &columns.context_width})
    if (spare() < ui.px(kLeastName + kLeastVerdict)) *column = 0;
  columns.name_width = std::max(ui.px(kLeastName), spare() * 0.48f);
  columns.verdict_width = spare() - columns.name_width;
  columns.size = columns.name + columns.name_width + gap;
  columns.verdict = columns.size + columns.size_width + gap;
  columns.context = columns.verdict + columns.verdict_width + gap;
  columns.used = columns.context + (columns.context_width > 0 ? columns.context_width + gap : 0);
  return columns;
}

// "today", "3 days ago", "2026-11-03".
std::string day_text(std::int64_t then, std::int64_t now) {
  constexpr std::int64_t kDay = 86'400, kDays = 14;
  const auto local_day = [](std::int64_t time) {
    const auto seconds = static_cast<std::time_t>(time);
    std::tm local = {};
    const bool known = ::localtime_r(&seconds, &local) != nullptr;
    return (time + (known ? local.tm_gmtoff : 0)) / kDay;
  };
  const std::int64_t days = local_day(now) - local_day(then);
  if (days <= 0) return "today";
  if (days == 1) return "yesterday";
  if (days < kDays) return fmt::format("{} days ago", days);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(local_day(then) * kDay)));
}

// "512", "32k": as it can be typed.
std::string tokens_word(std::uint64_t tokens) {
  return tokens >= 1024 && tokens % 1024 == 0 ? fmt::format("{}k", tokens / 1024) : fmt::format("{}", tokens);
}

class StartPanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    workspace.look_for_models();
    const bool roomy = room.y >= ui.px(kLeastRoomy);
    const float width = std::min(ui.px(1560), room.x - ui.px(48)), left = (room.x - width) / 2;
    float y = ui.px(roomy ? 26 : 12);
    const float words_width = width - buttons_width(ui);
    {
      const FontScope scope(ui.fonts.hero);
      put_text(origin + ImVec2{left, y}, ui.theme->text, headline(workspace.shelf, words_width));
      y += ImGui::GetFontSize() + ui.px(6);
    }
    ImGui::SetCursorScreenPos(origin + ImVec2{left, y});
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    muted(ui, machine_line(workspace));
    ImGui::PopTextWrapPos();
    y = ImGui::GetItemRectMax().y - origin.y;
    draw_buttons(workspace, ui, origin + ImVec2{left + width, ui.px(roomy ? 30 : 14)});
    y += ui.px(roomy ? 14 : 6);
    const float gap = ui.px(20),
                lessons = room.x > ui.px(kLeastWide) ? std::min(ui.px(340), room.x * 0.24f) : 0;
    const float height = std::max(ui.px(80), room.y - y - ui.px(12));
    ImGui::SetCursorScreenPos(origin + ImVec2{left, y});
    draw_models(workspace, ui, {width - (lessons > 0 ? lessons + gap : 0), height});
    draw_menu(workspace, ui);
    if (lessons == 0) return;
    ImGui::SetCursorScreenPos(origin + ImVec2{left + width - lessons, y});
    draw_lessons(workspace, ui, {lessons, height});
  }

 private:
  // The answer, once all is read.
  static std::string headline(const Shelf& shelf, float width) {
    if (shelf.models().empty() || shelf.asks_anew() || shelf.unread() > 0)
      return "What runs on this machine?";
    const auto run = std::ranges::count_if(shelf.models(), &ShelfModel::runs);
    const std::string answer =
        fmt::format("{} of {} {}", run, counted(shelf.models().size(), "model"), run == 1 ? "runs" : "run");
    const std::string words = answer + " on this machine";
    return text_width(words) <= width ? words : elided(answer + " here", width);
  }

  // What the machine has and can give.
  static std::string machine_line(const Workspace& workspace) {
    std::string words;
    const auto add = [&](const std::string& part) {
      words += (words.empty() ? "" : "   \xC2\xB7   ") + part;
    };
    if (const auto& memory = workspace.services.memory) {
      add(fmt::format("{} of {} of memory free", format_bytes(memory->to_give()),
                      format_bytes(memory->total)));
      if (memory->group_room && *memory->group_room < memory->available)
        add(fmt::format("the limit of a control group leaves {} of {}", format_bytes(*memory->group_room),
                        format_bytes(memory->available)));
    }
    std::string software;
    bool has_gpu = false;
    for (const gpu::DeviceInfo& device : workspace.devices()) {
      const gpu::DeviceHeap* const heap = gpu::device_heap(device);
      if (device.type == gpu::DeviceType::cpu) software = device.name.substr(0, device.name.find(' '));
      if (device.type == gpu::DeviceType::cpu || heap == nullptr) continue;
      has_gpu = true;
      add(fmt::format("{}: {} of {} free{}", shown(device.name),
                      format_bytes(heap->budget.value_or(heap->bytes)), format_bytes(heap->bytes),
                      device.unified ? ", shared with the system" : ""));
    }
    if (workspace.services.devices.value() && !has_gpu)
      add(software.empty() ? "no GPU: models run on the CPU"
                           : fmt::format("no GPU: {} (CPU) takes its place", shown(software)));
    return words;
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
    std::string wanted;
    for (const lesson::Lesson& lesson : workspace.lesson.all()) {
      const IdScope scope(lesson.id.c_str());
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const bool done = workspace.lesson.finished.contains(lesson.id);
      std::string words = done ? "done" : "";
      if (const auto left = workspace.lesson.left_at(lesson.id); left && !done)
        words = fmt::format("{} of {}", left->first + 1, left->second);
      const float mark = words.empty() ? 0 : text_width(words) + ui.px(12);
      const float room = width - ui.px(20) - mark;
      const std::string title = shown(lesson.title);
      const float high = ImGui::CalcTextSize(title.c_str(), nullptr, false, room).y;
      if (ImGui::Selectable("##lesson", false, 0, {width, high + ui.px(10)})) wanted = lesson.id;
      tooltip(ui, shown(lesson.question));
      put_text_before(at.x + width - ui.px(10), at.y + ui.px(5), done ? ui.theme->good : ui.theme->muted,
                      words);
      ImGui::GetWindowDrawList()->AddText(ImGui::GetFont(), ImGui::GetFontSize(),
                                          at + ImVec2{ui.px(10), ui.px(5)}, ui.theme->text, title.c_str(),
                                          nullptr, room);
    }
    if (!wanted.empty()) workspace.attempt([&] { workspace.stage.play(wanted); });
  }

  // A row for each model on this disk; a click opens it.
  void draw_models(Workspace& workspace, const Ui& ui, ImVec2 size) {
    const CardScope card(ui, "known", size);
    const Shelf& shelf = workspace.shelf;
    list_title(ui, "Models");
    ImGui::SameLine(0, ui.px(12));
    muted(ui, state_of(shelf));
    if (!shelf.models().empty()) draw_question(workspace, ui);
    const std::vector<std::size_t> rows = shelf_rows(shelf.models(), shelf.view);
    if (!shelf.models().empty())
      draw_titles(workspace.shelf.view, ui, list_width_ > 0 ? list_width_ : ImGui::GetContentRegionAvail().x);
    const ChildScope list("list");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    if (shelf.models().empty() && !shelf.listing())
      return empty_state(ui, "No models were found on this disk",
                         "Looked in the Hugging Face cache and the stores of Ollama and LM Studio. "
                         "Drop a file or a model folder anywhere in this window.");
    if (rows.empty() && !shelf.models().empty())
      return empty_state(ui, "No model passes the filter", "Empty the field above to see all of them.");
    std::optional<RowAnswer> answered;
    list_width_ = ImGui::GetContentRegionAvail().x;
    const Columns columns = columns_in(ui, list_width_);
    for_rows_in_sight(
        rows.size(),
        [&](std::size_t i) {
          const IdScope scope(rows[i]);
          const RowAnswer answer = draw_model(ui, shelf.models()[rows[i]], columns);
          if (answer.open || answer.convert || answer.menu)
            answered = {answer.open, answer.convert, answer.menu, rows[i]};
        },
        ui.px(kRow));
    if (answered) follow(workspace, *answered);
  }

  struct RowAnswer {
    bool open = false, convert = false, menu = false;
    std::size_t at = 0;  // of the model
  };

  void follow(Workspace& workspace, const RowAnswer& answer) {
    const ShelfModel& model = workspace.shelf.models()[answer.at];
    if (answer.menu) {
      menu_ = model;
      wants_menu_ = true;
      return;
    }
    if (model.stored.path.empty()) return;
    workspace.open(model.stored.path);
    if (answer.convert) workspace.settings.panel = "convert";
  }

  // What the models are asked, or what is being done.
  static std::string state_of(const Shelf& shelf) {
    if (shelf.listing() && (shelf.models().empty() || shelf.asks_anew())) return "looking for models";
    if (const std::size_t unread = shelf.unread(); unread > 0)
      return fmt::format("reading {}", counted(unread, "header"));
    if (shelf.models().empty()) return "";
    const report::RunQuestion& asked = shelf.question();
    return fmt::format("with a {} of {}", asked.context > 0 ? "context" : "prompt",
                       counted(asked.tokens(), "token"));
  }

  // The filter, and what the models are asked.
  void draw_question(Workspace& workspace, const Ui& ui) {
    ShelfView& view = workspace.shelf.view;
    const float left = ImGui::GetCursorPosX() + ui.px(10), field = ui.px(100);
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - ui.px(10);
    const float asked = text_width("prompt") + text_width("context") + 2 * field + ui.px(6 + 14 + 6);
    const float box = text_width("only what runs") + ImGui::GetFrameHeight() + ui.px(20);
    ImGui::SetCursorPosX(left);
    ImGui::SetNextItemWidth(std::clamp(right - left - asked - box - ui.px(28), ui.px(90), ui.px(320)));
    if (workspace.services.requests.take<FocusFilter>()) ImGui::SetKeyboardFocusHere();
    ImGui::InputTextWithHint("##filter", "Filter: name, type, folder", &view.filter);
    if (!ImGui::IsItemActive())
      tooltip(ui, "Lists models whose name, path, type or format has these words (Ctrl+F)");
    ImGui::SameLine(0, ui.px(14));
    checkbox(ui, "only what runs", &view.only_runs);
    ImGui::SameLine(right - asked);
    const Settings& settings = workspace.settings;
    control_text("prompt", ui.theme->muted);
    ImGui::SameLine(0, ui.px(6));
    if (typed_field(ui, "##prompt", field, prompt_, tokens_word(settings.prompt), "512",
                    "Tokens of the prompt that has to fit: 512, 32k"))
      ask(workspace, prompt_.typed, settings.context > 0 ? tokens_word(settings.context) : "");
    ImGui::SameLine(0, ui.px(14));
    control_text("context", ui.theme->muted);
    ImGui::SameLine(0, ui.px(6));
    if (typed_field(ui, "##context", field, context_,
                    settings.context > 0 ? tokens_word(settings.context) : "", "as prompt",
                    "Tokens that have to fit in all: the prompt, and those before it in the cache: 8k, 128k. "
                    "Empty: no more than the prompt"))
      ask(workspace, tokens_word(settings.prompt), context_.typed);
  }

  static void ask(Workspace& workspace, const std::string& prompt, const std::string& context) {
    const auto one_word = [](std::string text) {  // "8 192" is a number
      std::erase(text, ' ');
      return text;
    };
    const std::string words = context.empty() ? one_word(prompt) : one_word(prompt) + " " + one_word(context);
    workspace.attempt([&] { find_action("models-tokens")->run(workspace, words); });
  }

  // The titles of the columns; a click sorts by one, the next the other way round, the third as before.
  static void draw_titles(ShelfView& view, const Ui& ui, float width_of_rows) {
    const Columns columns = columns_in(ui, width_of_rows);  // in the font of the rows
    const FontScope font(ui.fonts.small);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetFontSize() + ui.px(8);
    const auto title = [&](ShelfColumn column, std::string_view words, float from, float width,
                           bool of_figures) {
      if (width <= 0) return;
      const IdScope scope(words);
      const bool now = view.by == column;
      const float own = std::min(width, text_width(words) + ui.px(16));
      const float x = at.x + from + (of_figures ? width - own : 0);
      ImGui::SetCursorScreenPos({x, at.y});
      if (press_area(ui, "title", {own, height})) sort_by(view, column);
      const ImU32 color = now || ImGui::IsItemHovered() ? ui.theme->text : ui.theme->muted;
      tooltip(ui, fmt::format("Sort by {}", lower_case(words)));
      const float pen = of_figures ? x + own - text_width(words) : x;
      put_text({pen, at.y + ui.px(4)}, color, words);
      if (now)
        draw_arrow(ui, {of_figures ? pen - ui.px(8) : pen + text_width(words) + ui.px(9), at.y + height / 2},
                   view.ascending);
    };
    title(ShelfColumn::name, "Name", columns.name, columns.name_width, false);
    title(ShelfColumn::size, "Size", columns.size, columns.size_width, true);
    title(ShelfColumn::verdict, "Runs here", columns.verdict, columns.verdict_width, false);
    title(ShelfColumn::context, "Context", columns.context, columns.context_width, true);
    title(ShelfColumn::used, "Last used", columns.used, columns.used_width, true);
    ImGui::SetCursorScreenPos({at.x, at.y + height});
    const float width = ImGui::GetContentRegionAvail().x;
    ImGui::GetWindowDrawList()->AddLine({at.x, at.y + height}, {at.x + width, at.y + height}, ui.theme->grid);
    ImGui::Dummy({0, 1});
  }

  static void sort_by(ShelfView& view, ShelfColumn column) {
    const bool first = column == ShelfColumn::name || column == ShelfColumn::verdict;  // a to z, the best
    if (view.by != column) {
      view.by = column;
      view.ascending = first;
    } else if (view.ascending == first) {
      view.ascending = !first;
    } else {
      view.by = ShelfColumn::kept;
      view.ascending = true;
    }
  }

  static void draw_arrow(const Ui& ui, ImVec2 center, bool up) {
    const float r = ui.px(3.5f), y = up ? -r : r;
    ImGui::GetWindowDrawList()->AddTriangleFilled({center.x - r, center.y - y * 0.6f},
                                                  {center.x + r, center.y - y * 0.6f},
                                                  {center.x, center.y + y * 0.8f}, ui.theme->text);
  }

  static RowAnswer draw_model(const Ui& ui, const ShelfModel& model, const Columns& columns) {
    RowAnswer answer;
    const float height = ui.px(kRow), width = ImGui::GetContentRegionAvail().x;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const report::ModelFacts* const facts = model.facts.get();
    const report::ModelRow* const row = facts != nullptr && facts->row ? &*facts->row : nullptr;
    answer.open =
        ImGui::Selectable("##model", false, ImGuiSelectableFlags_AllowItemOverlap, {width, height}) &&
        !model.gone;
    answer.menu = is_right_clicked() || (item_has_seen_focus() && shortcut_pressed("Shift+F10"));
    const bool hot = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenOverlapped);
    const RowWords words = row_words(ui, model, columns.context_width > 0 && context_of(row).has_value());
    tooltip(ui, fmt::format("{}{}{}\n{}\nRight click: what can be done with it", words.line,
                            words.below.empty() ? "" : "\n", words.below, shown(model.stored.path)));
    const float first = at.y + ui.px(5), second = at.y + ui.px(25);
    draw_thumbnail(ui, facts, {at.x + ui.px(10), at.y + (height - ui.px(float(report::kThumbHeight))) / 2});
    put_text({at.x + columns.name, first}, model.gone ? ui.theme->muted : ui.theme->text,
             elided(shown(model.stored.name), columns.name_width));
    const std::uint64_t bytes = row != nullptr ? row->bytes : model.stored.bytes;
    if (bytes > 0)
      put_text_before(at.x + columns.size + columns.size_width, first, ui.theme->text, format_bytes(bytes));
    const float verdict = at.x + columns.verdict + ui.px(16), room = columns.verdict_width - ui.px(16);
    ImGui::GetWindowDrawList()->AddCircleFilled(
        {at.x + columns.verdict + ui.px(4), first + ImGui::GetFontSize() / 2}, ui.px(4), words.color);
    put_text({verdict, first}, ui.theme->text, whole_clauses(words.line, room));
    if (const auto context = context_of(row); context && columns.context_width > 0)
      put_text_before(at.x + columns.context + columns.context_width, first, ui.theme->text, *context);
    {
      const FontScope font(ui.fonts.small);
      put_text({at.x + columns.name, second}, ui.theme->muted, elided(about(model), columns.name_width));
      if (row != nullptr)
        put_text_before(at.x + columns.size + columns.size_width, second, ui.theme->muted,
                        elided(row->type, columns.size_width));
      put_text({verdict, second}, ui.theme->muted, whole_clauses(words.below, room));
      if (columns.used_width > 0 && model.used > 0)
        put_text_before(at.x + columns.used + columns.used_width, first + ui.px(2), ui.theme->muted,
                        day_text(model.used, std::time(nullptr)));
    }
    ImGui::SetCursorScreenPos({at.x + columns.buttons, at.y + (height - ImGui::GetFrameHeight()) / 2});
    if (!model.gone && !model.stored.path.empty()) {
      const bool pressed = button(ui, "Open", hot ? ButtonKind::primary : ButtonKind::normal);
      ImGui::SameLine(0, ui.px(kBetweenButtons));
      answer.convert = row != nullptr && button(ui, "Convert");
      answer.open = (answer.open && !answer.convert) || pressed;
    }
    ImGui::SetCursorScreenPos({at.x, at.y + height});
    return answer;
  }

  // The most tokens that there is room and a position for.
  static std::optional<std::string> context_of(const report::ModelRow* row) {
    if (row == nullptr || row->verdict.context.value_or(0) == 0 || *row->verdict.context >= load::kMostTokens)
      return std::nullopt;
    return report::rounded_tokens(*row->verdict.context);
  }

  // What can be done with a model that was right-clicked.
  void draw_menu(Workspace& workspace, const Ui& ui) {
    if (std::exchange(wants_menu_, false)) ImGui::OpenPopup("menu of a model");
    const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
    if (!ImGui::BeginPopup("menu of a model")) return;
    const std::string& path = menu_.stored.path;
    const bool there = !menu_.gone && !path.empty();
    small_text(ui, elided_name(shown(menu_.stored.name), ui.px(320)), ui.theme->muted);
    ImGui::Dummy({ui.px(220), 0});
    const auto offer = [&](const char* title, bool enabled, auto run) {
      if (!enabled) return;
      if (ImGui::Selectable(title)) workspace.attempt(run);
    };
    const std::string folder = std::filesystem::path(path).parent_path().string();
    // a model of the hub may have been opened by its name
    const auto known_as = [&](const std::vector<std::string>& list) {
      const bool named = menu_.stored.store == importers::Store::hub &&
                         std::ranges::find(list, menu_.stored.name) != list.end();
      return named ? menu_.stored.name : path;
    };
    offer("Open", there, [&] { workspace.open(path); });
    offer("Open in a new tab", there, [&] { workspace.open_beside(path); });
    offer("Convert...", there && menu_.facts && menu_.facts->row, [&] {
      workspace.open(path);
      workspace.settings.panel = "convert";
    });
    if (there) ImGui::Separator();
    offer("Copy the path", !path.empty(), [&] { ImGui::SetClipboardText(path.c_str()); });
    offer("Copy the path of its folder", !folder.empty(), [&] { ImGui::SetClipboardText(folder.c_str()); });
    offer("Show its folder", there && !folder.empty(),
          [&] { find_action("browse")->run(workspace, folder); });
    ImGui::Separator();
    offer(menu_.favorite ? "Remove from favorites" : "Keep as a favorite", !path.empty(),
          [&] { workspace.toggle_favorite(known_as(workspace.settings.favorites)); });
    offer(menu_.gone ? "Forget it" : "Forget that it was opened", menu_.gone || menu_.recent, [&] {
      workspace.forget_model(known_as(workspace.settings.favorites));
      workspace.forget_model(known_as(workspace.settings.recent));
    });
    ImGui::EndPopup();
  }

  static void draw_thumbnail(const Ui& ui, const report::ModelFacts* facts, ImVec2 at) {
    ImDrawList* const draw = ImGui::GetWindowDrawList();
    const ImVec2 end = {at.x + ui.px(float(report::kThumbWidth)), at.y + ui.px(float(report::kThumbHeight))};
    draw->AddRectFilled(at, end, with_alpha(ui.theme->neutral, 0.18f), ui.px(3));
    if (facts == nullptr) return;
    draw->PushClipRect(at, end, true);
    for (const report::ThumbTile& tile : facts->map) {
      const ImVec2 corner = {at.x + ui.px(float(tile.rect.x)), at.y + ui.px(float(tile.rect.y))};
      draw->AddRectFilled(corner,
                          {corner.x + std::max(1.0f, ui.px(float(tile.rect.w)) - 1),
                           corner.y + std::max(1.0f, ui.px(float(tile.rect.h)) - 1)},
                          ui.theme->roles[static_cast<std::size_t>(tile.role)]);
    }
    draw->PopClipRect();
  }

  // Whether it runs, and what follows from that.
  struct RowWords {
    ImU32 color = 0;
    std::string line = {}, below = {};
  };
  // `has_column`: the context stands in a column of its own.
  static RowWords row_words(const Ui& ui, const ShelfModel& model, bool has_column) {
    if (model.gone) return {ui.theme->muted, "No longer there"};
    if (model.facts || model.stored.path.empty())
      if (const std::string missing = model.missing_part(); !missing.empty())
        return {ui.theme->warning, "Incomplete", capitalized(shown(missing))};
    if (!model.facts || !model.facts->is_judged()) return {with_alpha(ui.theme->muted, 0.5f), "Reading"};
    if (!model.facts->row)
      return {ui.theme->bad, "Cannot be read", report::fault_text(model.facts->fault, model.stored.path)};
    const report::RunVerdict& verdict = model.facts->row->verdict;
    const std::size_t clause = verdict.words.find(", ");
    RowWords words = {state_color(ui, verdict.state), capitalized(verdict.words.substr(0, clause)),
                      clause == std::string::npos ? "" : capitalized(verdict.words.substr(clause + 2))};
    if (has_column && verdict.fits())
      words.below.erase(std::min(words.below.rfind(", "), words.below.size()));
    const std::string better = better_words(*model.facts);
    if (better.empty()) return words;
    if (!words.below.empty()) words.line += ", " + verdict.words.substr(clause + 2);
    words.below = capitalized(better);
    return words;
  }

  // Type, parameters, weights, and where it is.
  static std::string about(const ShelfModel& model) {
    std::string words = model.favorite ? "favorite  " : model.recent ? "recent  " : "";
    if (model.facts && model.facts->row) {
      const report::ModelRow& row = *model.facts->row;
      words += fmt::format("{}  ", format_count(row.parameters));
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

  static std::string better_words(const report::ModelFacts& facts) {
    if (!facts.row || !facts.is_judged() || facts.row->verdict.fits() || !facts.row->verdict.whole) return {};
    if (!facts.tried_types) return "trying quantizations";
    if (!facts.row->better) return facts.row->no_better;
    return fmt::format("{} runs: {}", report::type_title(facts.row->better->policy),
                       format_bytes(facts.row->better->bytes));
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

  float list_width_ = 0;  // of the rows, in the last frame
  TypedField prompt_, context_;
  ShelfModel menu_;  // of the menu
  bool wants_menu_ = false;
};

}  // namespace

std::unique_ptr<Panel> make_start_panel() { return std::make_unique<StartPanel>(); }

}  // namespace loadline::gui
