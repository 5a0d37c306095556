// Where the keyboard goes. ImGui's navigation moves among the controls of one ImGui window; here Tab and F6
// move among the windows, and lists get their arrows for themselves. Works with version 1.86, whose keys are
// GLFW's codes.
#pragma once

#include <cstdint>
#include <string_view>

namespace loadline::gui {

// Inside a frame: whether a shortcut such as "Ctrl+O", "Escape" or "Backspace" was pressed.
bool shortcut_pressed(std::string_view shortcut);
// Inside a frame: whether a key that navigates lists was pressed, or repeats.
enum class ListKey : std::uint8_t {
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  enter,
  escape,
  backspace
};
bool list_key_pressed(ListKey key);
// As list_key_pressed(); until the end of the frame nobody else sees the key.
bool take_list_key(ListKey key);
bool take_space();
// From the next frame on: whether the page keys are kept from ImGui's navigation, which scrolls by them.
void keep_page_keys(bool keep);

// Before ImGui::NewFrame(): which keys ImGui's navigation gets. Enter presses what is marked, because Space
// plays; Tab is ImGui's only in a text field, where it goes to the next field; Escape is ImGui's only while a
// control is held.
void prepare_keyboard();

// In a frame, before the first window: Tab, Shift+Tab, F6 and Shift+F6 give the keyboard to the next or the
// previous part, that is, a child window with controls or a list. Where arrows reach a part, they go into it.
void move_focus();

// Whether keys moved the focus last, so that it must be seen.
bool focus_is_seen();
// Whether the last item has the focus and that must be seen.
bool item_has_seen_focus();

// In the window of a list, between its Begin and its End, in every frame: its arrows are the list's own from
// now on. True while the keyboard is given to it and no field in it is edited.
bool list_has_keyboard();
// Gives the keyboard to the current window, away from any field.
void give_keyboard();

// Items in between get no focus: plots, which only a mouse can point into, and bars to drag.
class NoFocusScope {
 public:
  NoFocusScope();
  NoFocusScope(const NoFocusScope&) = delete;
  NoFocusScope& operator=(const NoFocusScope&) = delete;
  ~NoFocusScope();
};

}  // namespace loadline::gui
