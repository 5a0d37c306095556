// Ranks everything that has a name, and lists it.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/input.h"
#include "app/lesson/lesson.h"
#include "app/report/manual.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <imgui_stdlib.h>

namespace loadline::gui {

// --- Ranks everything that has a name by what was typed.

namespace {

constexpr int kLooseMatch = 120;  // and more: letters in order, not a run of them
constexpr int kWholeLine = 30;    // after titles that begin with what was typed

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
}

// The arguments of each word, from its row in the manual: "| `sort COLUMN [descending]` | sorts ... |".
std::string arguments_in_manual(std::string_view word) {
  const std::string_view page = report::find_manual_page("scripting").text;
  const std::string row = fmt::format("\n| `{}", word);
  for (std::size_t at = page.find(row); at != std::string_view::npos; at = page.find(row, at + 1)) {
    const std::size_t begin = at + row.size();
    if (page[begin] != ' ') continue;  // a longer word, or no argument
    std::string arguments(page.substr(begin + 1, page.find('`', begin) - begin - 1));
    std::erase(arguments, '\\');  // before the bars of a table's cell
    return arguments;
  }
  return "";
}

// The words of "on|off"; none where something else is to be typed.
std::vector<std::string_view> choices_of(std::string_view arguments) {
  if (arguments.find('|') == std::string_view::npos) return {};
  if (arguments.starts_with('[') && arguments.ends_with(']'))
    arguments = arguments.substr(1, arguments.size() - 2);
  const auto is_word = [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || c == '|' || c == '-';
  };
  return std::ranges::all_of(arguments, is_word) ? split(arguments, '|') : std::vector<std::string_view>();
}

// "then type a size": what is asked for, of "SIZE|none [UNIT]".
std::string asked_words(std::string_view arguments) {
  const std::vector<std::string_view> choices = choices_of(arguments);
  if (!choices.empty() && choices.size() <= 3) return fmt::format("then {}", fmt::join(choices, ", "));
  const std::string first = lower_case(arguments.substr(0, arguments.find_first_of(" |")));
  if (!choices.empty() || first.empty() || !std::isalpha(static_cast<unsigned char>(first.front())))
    return "then type more";
  return fmt::format("then type {} {}",
                     std::string_view("aeio").find(first.front()) != std::string_view::npos ? "an" : "a",
                     first);
}

PaletteItem item_of(std::string title, std::string hint, std::string_view word, bool needs_more) {
  PaletteItem item = {std::move(title), std::move(hint), std::string(word), "", needs_more};
  if (needs_more) item.takes = arguments_in_manual(word);
  return item;
}

class Collector {
 public:
  Collector(std::string_view typed, std::size_t most) : typed_(typed), most_(most) {}

  void add(PaletteItem item, int penalty) {
    if (const auto rank = match_rank(item.title, typed_)) keep(std::move(item), *rank + penalty);
  }
  // Makes the item only if its title matches: there may be a million.
  template <typename Make>
  void add(std::string_view title, int penalty, Make make) {
    const auto rank = match_rank(title, typed_);
    if (rank && (ranked_.size() < kKept || *rank + penalty < worst_)) keep(make(), *rank + penalty);
  }
  void keep(PaletteItem item, int rank) {
    ranked_.emplace_back(rank, std::move(item));
    worst_ = std::max(worst_, rank);
    if (ranked_.size() > 2 * kKept) shrink(kKept);
  }
  std::vector<PaletteItem> best() {
    shrink(most_);
    std::vector<PaletteItem> items;
    for (auto& [rank, item] : ranked_) items.push_back(std::move(item));
    return items;
  }

 private:
  static constexpr std::size_t kKept = 200;
  void shrink(std::size_t to) {
    std::ranges::stable_sort(ranked_, {}, [](const auto& entry) { return entry.first; });
    if (ranked_.size() > to) ranked_.resize(to);
    worst_ = ranked_.empty() ? 0 : ranked_.back().first;
  }

  std::string typed_;
  std::size_t most_;
  std::vector<std::pair<int, PaletteItem>> ranked_;
  int worst_ = 0;
};

// What people want most, while nothing is typed; then what runs at once, then what asks for more.
constexpr std::array<std::string_view, 12> kCommon = {"browse", "advice",   "diff",   "play",
                                                      "undo",   "export",   "start",  "inspector",
                                                      "tree",   "timeline", "manual", "keys"};
int place_in_list(const Action& action) {
  constexpr int kFirst = -20, kAtOnce = 1, kAsks = 8;
  const auto at = std::ranges::find(kCommon, action.id);
  if (at != kCommon.end()) return kFirst + static_cast<int>(at - kCommon.begin());
  return action.argument == Argument::required ? kAsks : kAtOnce;
}

void add_actions(const Workspace& workspace, std::string_view typed, Collector& found) {
  for (const Action& action : actions()) {
    if (!action.enabled(workspace)) continue;
    found.add(std::string_view(action.title), typed.empty() ? place_in_list(action) : 0, [&] {
      return item_of(std::string(action.title), std::string(action.shortcut), action.id,
                     action.argument == Argument::required);
    });
  }
  if (workspace.document().model)
    for (const std::string_view form : {"json", "markdown"})
      found.add({fmt::format("Copy selection as {}", form), "action", "copy", std::string(form)}, 1);
  found.add({"Use the system's theme", "action", "theme", "system"}, 1);
  for (const PanelRow& row : panels())
    found.add({fmt::format("Show {}", row.title), "panel", "panel", std::string(row.id)}, 1);
}

void add_open(const Workspace& workspace, Collector& found) {
  const auto& documents = workspace.documents();
  for (std::size_t i = 0; i < documents.size() && documents.size() > 1; ++i)
    if (documents[i]->model && i != workspace.shown_document())
      found.add({fmt::format("Go to {}", tab_title(workspace, *documents[i])), "open model", "tab",
                 fmt::format("{}", i + 1)},
                2);
}

void add_recent(const Workspace& workspace, Collector& found) {
  for (const std::string& path : workspace.settings.favorites)
    found.add({fmt::format("Open {}", path), "favorite", "open", path}, 3);
  for (const std::string& path : workspace.settings.recent)
    found.add({fmt::format("Open {}", path), "recent", "open", path}, 4);
  for (const ShelfModel& model : workspace.shelf.models())
    if (!model.favorite && !model.recent && !model.stored.path.empty())
      found.add({fmt::format("Open {}", model.stored.name),
                 std::string(importers::store_id(model.stored.store)), "open", model.stored.path},
                4);
}

void add_lessons(const Workspace& workspace, Collector& found) {
  for (const lesson::Lesson& lesson : workspace.lesson.all())
    found.add({fmt::format("Lesson: {}", lesson.title), "lesson", "lesson", lesson.id}, 2);
}

// "device budget 8GiB": an option by its title, with its value behind it.
void add_values(std::string_view typed, Collector& found) {
  const std::size_t space = typed.find_last_of(' ');
  if (space == std::string_view::npos || space + 1 == typed.size()) return;
  const std::string_view words = typed.substr(0, space), value = typed.substr(space + 1);
  if (std::isdigit(static_cast<unsigned char>(value.front())) == 0) return;
  for (const load::LoadOption& option : load::load_options()) {
    const auto rank = match_rank(option.title, words);
    if (!rank || *rank >= kLooseMatch) continue;
    const auto offer = [&](const std::string& word, int behind) {
      found.keep({fmt::format("{}: {}", option.title, word), "Enter", std::string(option.id), word},
                 *rank + behind);
    };
    if (option.kind == OptionKind::bytes && is_bare_size(value))
      for (int behind = 0; const char* const unit : {"GiB", "MiB", ""})
        offer(fmt::format("{}{}", value, unit), behind++);
    else
      offer(std::string(value), 0);
  }
}

void add_options(const Workspace& workspace, Collector& found) {
  for (const load::Method& method : load::methods())
    if (is_offered(workspace.document(), method))
      found.add({fmt::format("Method {}", method.id), "load", "method", std::string(method.id)}, 2);
  for (const load::LoadOption& option : load::load_options()) {
    if (option.choices != nullptr && option.id != "method") {
      for (const std::string& word : option.choices())
        found.add({fmt::format("{} {}", option.title, word), "option", std::string(option.id), word}, 3);
    } else {
      found.add(option.title, 3,
                [&] { return item_of(std::string(option.title), "option", option.id, true); });
    }
  }
}

void add_names(const Workspace& workspace, Collector& found) {
  if (!workspace.document().model) return;
  const Model& model = *workspace.document().model;
  for (const graph::Tensor& tensor : model.graph->tensors)
    found.add(tensor.name.view(), 6, [&] {
      return PaletteItem{tensor.name.str(), "tensor", "select", tensor.name.str()};
    });
  for (std::uint32_t i = 1; i < model.tree.nodes.size(); ++i) {
    const graph::ModuleNode& node = model.tree.nodes[i];
    if (node.children.empty()) continue;
    found.add(node.name, 6, [&] {
      const std::string path = graph::module_path(model.tree, graph::NodeId{i});
      return PaletteItem{path, "module", "select-module", path};
    });
  }
}

// By its name, else by that of its first result.
void add_operators(const Workspace& workspace, Collector& found) {
  const auto& scene = workspace.document().forward.scene.value();
  if (!scene || scene->drawn() == nullptr) return;
  const graph::ForwardGraph& forward = *scene->drawn();
  std::unordered_set<std::string_view>
      seen;  // a function is there once for each call, and the first is led to
  const auto add = [&](const std::vector<graph::Op>& ops) {
    for (const graph::Op& op : ops) {
      if (op.name.empty() && op.outputs.empty()) continue;
      const std::string& name = op.name.empty() ? forward.value(op.outputs.front()).name : op.name;
      if (!seen.insert(name).second) continue;
      found.add(std::string_view(name), 7, [&] {
        return PaletteItem{fmt::format("{}  {}", name, op.kind), "operator", "graph", name};
      });
    }
  };
  add(forward.ops);
  for (const graph::Body& body : forward.bodies) add(body.ops);
}

}  // namespace

std::optional<int> match_rank(std::string_view text, std::string_view typed) {
  if (typed.empty()) return 0;
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const auto found = std::search(text.begin(), text.end(), typed.begin(), typed.end(), same);
  const auto length = static_cast<int>(std::min<std::size_t>(text.size(), 200));
  if (found != text.end()) {
    const auto at = static_cast<std::size_t>(found - text.begin());
    return (at == 0 ? 0 : begins_word(text, at) ? 20 : 60) + length / 8;
  }
  // the words typed, each as the beginning of a word, in any order
  const std::vector<std::string_view> words = split(typed, ' ');
  const auto begins_one = [&](std::string_view word) {
    for (auto at = text.begin(); at != text.end(); ++at) {
      at = std::search(at, text.end(), word.begin(), word.end(), same);
      if (at == text.end()) return false;
      if (begins_word(text, static_cast<std::size_t>(at - text.begin()))) return true;
    }
    return false;
  };
  if (words.size() > 1 && std::ranges::all_of(words, begins_one)) return 22 + length / 8;
  // letters in order: the more of them begin words, the better
  std::size_t next = 0;
  int loose = 0;
  for (std::size_t i = 0; i < text.size() && next < typed.size(); ++i) {
    if (!same(text[i], typed[next])) continue;
    loose += begins_word(text, i) ? 1 : 6;
    ++next;
  }
  return next == typed.size() ? std::optional(kLooseMatch + loose + length / 8) : std::nullopt;
}

std::vector<PaletteItem> palette_items(const Workspace& workspace, std::string_view typed, std::size_t most) {
  Collector found(typed, most);
  // a word and its argument: what a script would say
  const std::size_t space = typed.find(' ');
  const std::string word(typed.substr(0, space));
  const Action* const action = find_action(word);
  const bool known =
      (action != nullptr && action->argument != Argument::none) || load::find_load_option(word) != nullptr;
  const std::string_view title = !known              ? ""
                                 : action != nullptr ? action->title
                                                     : load::find_load_option(word)->title;
  if (space != std::string_view::npos && known) {
    const std::string_view begun = typed.substr(space + 1);
    const std::string takes = arguments_in_manual(word);
    const std::vector<std::string_view> choices = choices_of(takes);
    for (const std::string_view choice : choices)
      if (choice.starts_with(begun) && choice != begun)
        found.keep({fmt::format("{}: {}", title, choice), "Enter", word, std::string(choice)}, 0);
    if (begun.empty() && choices.empty())
      found.keep({fmt::format("{}: {}", title, takes), "", word, "", true, "type it, then Enter"}, 0);
  }
  if (space != std::string_view::npos && space + 1 < typed.size() && known) {
    found.keep({fmt::format("{}: {}", title, typed.substr(space + 1)), "Enter", word,
                std::string(typed.substr(space + 1))},
               kWholeLine);
  }
  add_actions(workspace, typed, found);
  add_options(workspace, found);
  add_values(typed, found);
  add_open(workspace, found);
  add_lessons(workspace, found);
  add_recent(workspace, found);
  if (!typed.empty()) {
    add_names(workspace, found);
    add_operators(workspace, found);
  }
  return found.best();
}

void run_item(Workspace& workspace, const PaletteItem& item) {
  // a blank typed behind the last word is no part of it
  const std::string argument = item.argument.substr(0, item.argument.find_last_not_of(' ') + 1);
  if (const Action* const action = find_action(item.word)) return action->run(workspace, argument);
  workspace.document().load.set_option(item.word, argument);
}

// --- A field over a list; the arrows move in the list while the field has the keyboard.

namespace {

constexpr std::size_t kMostItems = 60;
constexpr float kTop = 64;  // logical

// ImGui leaves the caret where it was when the text of a field is replaced.
int caret_to_end(ImGuiInputTextCallbackData* data) {
  if (std::exchange(*static_cast<bool*>(data->UserData), false))
    data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
  return 0;
}

}  // namespace

// What was run last, before everything else that can be run.
void Palette::put_used_first() {
  std::vector<PaletteItem> items = used_;
  const auto same = [](const PaletteItem& a, const PaletteItem& b) {
    return a.word == b.word && a.argument == b.argument;
  };
  for (PaletteItem& item : items_)
    if (std::ranges::none_of(used_, [&](const PaletteItem& used) { return same(used, item); }))
      items.push_back(std::move(item));
  items_ = std::move(items);
}

void Palette::refresh(const Workspace& workspace) {
  if (listed_ == typed_ && !items_.empty() && document_ == workspace.document().id) return;
  listed_ = typed_;
  document_ = workspace.document().id;
  items_ = palette_items(workspace, typed_, kMostItems);
  if (typed_.empty()) {
    std::erase_if(used_, [&](const PaletteItem& used) {
      const Action* const action = find_action(used.word);
      return action != nullptr && !action->enabled(workspace);
    });
    put_used_first();
  }
  current_ = 0;
}

void Palette::run(Workspace& workspace, std::size_t at) {
  if (at >= items_.size()) return;
  const PaletteItem item = items_[at];
  if (item.needs_more) {
    typed_ = item.word + " ";
    to_end_ = true;
    return;
  }
  open_ = false;
  constexpr std::size_t kMostKept = 6;
  std::erase_if(used_, [&](const PaletteItem& used) { return used.title == item.title; });
  if (item.word != "select" && item.word != "select-module")  // of this model alone
    used_.insert(used_.begin(), item);
  if (used_.size() > kMostKept) used_.pop_back();
  workspace.attempt([&] { run_item(workspace, item); });
}

void Palette::draw(Workspace& workspace, const Ui& ui) {
  const auto wanted = workspace.services.requests.take<OpenPalette>();
  if (wanted) {
    open_ = true;
    typed_ = wanted->text;
    to_end_ = true;
    items_.clear();
  }
  if (!open_) return;
  refresh(workspace);
  const SheetScope sheet(ui, "palette", {ui.px(620), ui.px(430)}, ui.px(kTop));
  if (wanted || !ImGui::IsAnyItemActive()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered = ImGui::InputTextWithHint(
      "##typed", "An action, an option, a panel, a tensor, a module", &typed_,
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackAlways, caret_to_end, &to_end_);
  if (list_key_pressed(ListKey::down) && current_ + 1 < items_.size()) ++current_;
  if (list_key_pressed(ListKey::up) && current_ > 0) --current_;
  refresh(workspace);
  {
    const ChildScope child("items");
    const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
    const float height = ImGui::GetFontSize() + ui.px(10);
    if (items_.empty()) muted(ui, "No match");
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const IdScope scope(i);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float width = ImGui::GetContentRegionAvail().x;
      if (ImGui::Selectable("##item", i == current_, 0, {width, height})) run(workspace, i);
      if (!open_ || i >= items_.size()) break;
      const float y = at.y + ui.px(5);
      const std::string hint = items_[i].needs_more ? asked_words(items_[i].takes) : shown(items_[i].hint);
      put_text({at.x + ui.px(8), y}, ui.theme->text,
               elided(shown(items_[i].title), width - text_width(hint) - ui.px(30)));
      put_text_before(at.x + width - ui.px(8), y, ui.theme->muted, hint);
      if (i == current_ && (list_key_pressed(ListKey::down) || list_key_pressed(ListKey::up)))
        ImGui::SetScrollHereY(0.5f);
    }
  }
  if (sheet_is_left()) open_ = false;
  if (open_ && entered) run(workspace, current_);
}

void KeySheet::draw(Workspace& workspace, const Ui& ui) {
  if (workspace.services.requests.take<OpenKeys>()) open_ = true;
  if (!open_) return;
  const SheetScope sheet(ui, "keys", {ui.px(620), ui.px(560)}, ui.px(kTop));
  {
    const FontScope font(ui.fonts.strong);
    text("Keys");
  }
  const auto line = [&](std::string_view key, std::string_view words) {
    const float start = ImGui::GetCursorPosX();
    text_colored(ui.theme->accent, key);
    ImGui::SameLine(start + ui.px(130));
    ImGui::PushTextWrapPos(0);
    text(words);
    ImGui::PopTextWrapPos();
  };
  {
    const ChildScope child("list");
    scroll_by_keys();
    for (std::size_t i = 0; i < tabs().size(); ++i)
      line(fmt::format("Ctrl+{}", i + 1), fmt::format("Show {}", tabs()[i]));
    for (const Action& action : actions())
      if (!action.shortcut.empty() && action.shortcut != "Escape") line(action.shortcut, action.title);
    line("Page Down, Up", "Go to the next step of the lesson, or to the one before");
    line("Tab, F6", "Go to the next part of the window; with Shift to the previous one");
    line("Escape", "Close what is in front: a sheet, a message; then clear the selection");
    line("Arrows", "Move in lists and among buttons; fold and unfold the tree");
    line("Enter", "Press the button, or open the row: values, the map, the load");
    line("Enter, Down", "In the filter: select the next hit; go to the tree");
    line("Mouse wheel", "Zoom the timeline, Load, Lifetimes and Arena; the right button moves them");
    line("Ctrl, mouse wheel", "Zoom the strips of Bytes");
    line("Double click", "Show the values of a tensor, or a module in the map; reset the zoom of a plot");
    line("Right click", "List what can be done with what lies there");
  }
  if (sheet_is_left()) open_ = false;
}

}  // namespace loadline::gui
