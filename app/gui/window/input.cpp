#include "app/gui/window/input.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

constexpr int kEscape = 256, kEnter = 257, kTab = 258, kBackspace = 259, kInsert = 260, kDelete = 261,
              kRight = 262, kLeft = 263, kDown = 264, kUp = 265, kPageUp = 266, kPageDown = 267, kHome = 268,
              kEnd = 269, kF1 = 290, kF6 = 295, kKeypadEnter = 335, kMenu = 348;

int code_of(std::string_view key) { return key == "Tab" ? kTab : key[0]; }  // letters are ASCII

// A list's window takes no part in ImGui's navigation.
bool is_list(const ImGuiWindow& window) { return (window.Flags & ImGuiWindowFlags_NoNavInputs) != 0; }

// In the order in which they are drawn.
void collect_parts(ImGuiWindow& window, std::vector<ImGuiWindow*>& parts) {
  constexpr int kMainLayer = 1 << ImGuiNavLayer_Main;
  if ((window.DC.NavLayersActiveMaskNext & kMainLayer) != 0 || is_list(window)) parts.push_back(&window);
  for (ImGuiWindow* child : window.DC.ChildWindows) collect_parts(*child, parts);
}

// What the focus did between two frames.
struct Memory {
  ImGuiWindow* window = nullptr;  // that had the keyboard
  bool alt = false;
  int step = 1;          // of the last move among parts
  bool by_keys = false;  // no mouse button was pressed since a key moved the focus
};
bool keeps_page_keys = false;
Memory memory;

void focus(ImGuiWindow& window) {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  ImGui::ClearActiveID();
  ImGui::FocusWindow(&window);
  ImGui::NavMoveRequestCancel();
  if (is_list(window))
    ImGui::SetNavID(0, ImGuiNavLayer_Main, 0, ImRect());
  else
    ImGui::NavInitWindow(&window, false);
  g.NavDisableHighlight = false;
  g.NavDisableMouseHover = true;
  memory.by_keys = true;
}

void focus_beside(int step) {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  if (g.NavWindow == nullptr) return;
  std::vector<ImGuiWindow*> parts;
  collect_parts(*g.NavWindow->RootWindow, parts);
  if (parts.empty()) return;
  const auto count = static_cast<std::ptrdiff_t>(parts.size());
  const auto found = std::ranges::find(parts, g.NavWindow);
  const std::ptrdiff_t at = found - parts.begin();
  const std::ptrdiff_t next = found != parts.end() ? (at + step + count) % count : step > 0 ? 0 : count - 1;
  focus(*parts[static_cast<std::size_t>(next)]);
}

// The child window that stands in its parent for all of its controls, if the focus has come to it.
ImGuiWindow* focused_child() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  if (g.NavWindow == nullptr || g.NavId == 0 || g.NavDisableHighlight) return nullptr;
  for (ImGuiWindow* child : g.NavWindow->DC.ChildWindows)
    if (child->ChildId == g.NavId) return child;
  return nullptr;
}

}  // namespace

bool shortcut_pressed(std::string_view shortcut) {
  constexpr std::string_view kControl = "Ctrl+", kShifted = "Ctrl+Shift+";
  if (shortcut == "Escape") return list_key_pressed(ListKey::escape);
  if (shortcut == "Backspace") return list_key_pressed(ListKey::backspace);
  if (shortcut.size() == 2 && shortcut[0] == 'F') return ImGui::IsKeyPressed(kF1 + shortcut[1] - '1', false);
  if (shortcut == "Shift+F10")  // or the key that keyboards have for it
    return (ImGui::GetIO().KeyShift && ImGui::IsKeyPressed(kF1 + 9, false)) ||
           ImGui::IsKeyPressed(kMenu, false);
  if (shortcut == "F11") return ImGui::IsKeyPressed(kF1 + 10, false);
  if (shortcut == "?") {  // on whichever key it lies
    const auto& typed = ImGui::GetIO().InputQueueCharacters;
    return std::find(typed.begin(), typed.end(), ImWchar{'?'}) != typed.end();
  }
  if (shortcut == "Space") return ImGui::IsKeyPressed(' ', false);
  if (shortcut.size() == 1) return !ImGui::GetIO().KeyCtrl && ImGui::IsKeyPressed(shortcut[0], true);
  if (shortcut == "Alt+Left") return ImGui::GetIO().KeyAlt && list_key_pressed(ListKey::left);
  if (shortcut == "Alt+Right") return ImGui::GetIO().KeyAlt && list_key_pressed(ListKey::right);
  if (!ImGui::GetIO().KeyCtrl || !shortcut.starts_with(kControl)) return false;
  const bool shifted = shortcut.starts_with(kShifted);
  if (ImGui::GetIO().KeyShift != shifted) return false;
  return ImGui::IsKeyPressed(code_of(shortcut.substr(shifted ? kShifted.size() : kControl.size())), false);
}

namespace {

int code_of(ListKey key) {
  constexpr std::array<int, 11> kCodes = {kUp,   kDown, kLeft,  kRight,  kPageUp,   kPageDown,
                                          kHome, kEnd,  kEnter, kEscape, kBackspace};
  return kCodes[static_cast<std::size_t>(key)];
}

bool take_key(int code) {
  if (!ImGui::IsKeyPressed(code, true)) return false;
  // a key that has just gone down has been held for no time: from here on it has been held a little
  ImGui::GetIO().KeysDownDuration[code] = std::max(ImGui::GetIO().KeysDownDuration[code], 1e-6f);
  return true;
}

}  // namespace

bool list_key_pressed(ListKey key) { return ImGui::IsKeyPressed(code_of(key), true); }
bool take_list_key(ListKey key) { return take_key(code_of(key)); }
bool take_space() { return take_key(' '); }
void keep_page_keys(bool keep) { keeps_page_keys = keep; }

void prepare_keyboard() {
  ImGuiIO& io = ImGui::GetIO();
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  constexpr auto kKeys = std::to_array<std::pair<ImGuiKey, int>>({{ImGuiKey_LeftArrow, kLeft},
                                                                  {ImGuiKey_RightArrow, kRight},
                                                                  {ImGuiKey_UpArrow, kUp},
                                                                  {ImGuiKey_DownArrow, kDown},
                                                                  {ImGuiKey_PageUp, kPageUp},
                                                                  {ImGuiKey_PageDown, kPageDown},
                                                                  {ImGuiKey_Home, kHome},
                                                                  {ImGuiKey_End, kEnd},
                                                                  {ImGuiKey_Insert, kInsert},
                                                                  {ImGuiKey_Delete, kDelete},
                                                                  {ImGuiKey_Backspace, kBackspace},
                                                                  {ImGuiKey_Enter, kEnter},
                                                                  {ImGuiKey_KeyPadEnter, kKeypadEnter},
                                                                  {ImGuiKey_Space, kEnter},
                                                                  {ImGuiKey_A, 'A'},
                                                                  {ImGuiKey_C, 'C'},
                                                                  {ImGuiKey_V, 'V'},
                                                                  {ImGuiKey_X, 'X'},
                                                                  {ImGuiKey_Y, 'Y'},
                                                                  {ImGuiKey_Z, 'Z'}});
  for (const auto& [key, code] : kKeys) io.KeyMap[key] = code;
  if (keeps_page_keys) io.KeyMap[ImGuiKey_PageUp] = io.KeyMap[ImGuiKey_PageDown] = -1;
  const bool held = g.ActiveId != 0;
  const bool edited = held && g.InputTextState.ID == g.ActiveId;
  io.KeyMap[ImGuiKey_Tab] = edited && !io.KeyCtrl ? kTab : -1;
  io.KeyMap[ImGuiKey_Escape] = held ? kEscape : -1;
}

void move_focus() {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  const ImGuiIO& io = ImGui::GetIO();
  const Memory before = std::exchange(memory, {g.NavWindow, io.KeyAlt, memory.step, memory.by_keys});
  // ImGui takes a tap of Alt for a way to menus; here it begins a shortcut and moves nothing
  if ((before.alt || io.KeyAlt) && before.window != nullptr && g.NavWindow != before.window &&
      g.Windows.contains(before.window) && before.window->WasActive && !io.MouseClicked[0])
    ImGui::FocusWindow(before.window);
  if (io.MouseClicked[0] || io.MouseClicked[1]) memory.by_keys = false;
  const bool edited = g.ActiveId != 0;
  const bool tab = !edited && !io.KeyCtrl && !io.KeyAlt && ImGui::IsKeyPressed(kTab, false);
  // without repeats: frames may be so slow that a tap looks held down, and would go past a part of the window
  if (tab || ImGui::IsKeyPressed(kF6, false)) {
    memory.step = io.KeyShift ? -1 : 1;
    focus_beside(memory.step);
  } else if (ImGuiWindow* const child = focused_child()) {
    // backwards, what lies in it had its turn already
    if (memory.step > 0)
      focus(*child);
    else
      focus_beside(-1);
  } else if (!g.NavInitRequest) {
    memory.step = 1;
  }
  memory.window = g.NavWindow;
}

void focus_item_by_keys() {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  ImGui::SetItemDefaultFocus();
  g.NavDisableHighlight = false;
  g.NavDisableMouseHover = true;
  memory.by_keys = true;
}

bool close_drop_down() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  const bool typing = g.ActiveId != 0 && g.InputTextState.ID == g.ActiveId;
  if (g.OpenPopupStack.empty() || typing) return false;
  const ImGuiWindow* const last = g.OpenPopupStack.back().Window;
  if ((last != nullptr && (last->Flags & ImGuiWindowFlags_Modal) != 0) || !take_list_key(ListKey::escape))
    return false;
  ImGui::ClosePopupToLevel(g.OpenPopupStack.Size - 1, true);
  return true;
}

// ImGui's own flag is about items: a list that has the keyboard has none marked.
bool focus_is_seen() { return memory.by_keys || !ImGui::GetCurrentContext()->NavDisableHighlight; }

bool item_has_seen_focus() { return focus_is_seen() && ImGui::IsItemFocused(); }

bool list_has_keyboard() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  g.CurrentWindow->Flags |= ImGuiWindowFlags_NoNavInputs;
  return g.NavWindow == g.CurrentWindow && g.ActiveId == 0;
}

void give_keyboard() {
  ImGuiWindow* const window = ImGui::GetCurrentWindow();
  window->Flags |= ImGuiWindowFlags_NoNavInputs;
  focus(*window);
}

NoFocusScope::NoFocusScope() {
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  ImGui::PushItemFlag(ImGuiItemFlags_NoNavDefaultFocus, true);
}

NoFocusScope::~NoFocusScope() {
  ImGui::PopItemFlag();
  ImGui::PopItemFlag();
}

}  // namespace loadline::gui
