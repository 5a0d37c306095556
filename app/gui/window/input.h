// Events of the desktop in order, and where the keyboard goes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string_view>

namespace loadline::gui {

// --- Events of keys and mouse buttons, handed on so that no frame misses one.

struct InputEvent {
  enum class Kind { press, release, character, button_press, button_release } kind = Kind::press;
  int code = 0;      // of the key, of the character, or the number of the mouse button
  int scancode = 0;  // of the key, as the system has it
  int modifiers = 0;
  bool shortcut = false;  // Ctrl, Alt or a function key: what is pressed may move the focus
  float x = 0, y = 0;     // where the mouse was, for its buttons
  bool of_button() const { return kind == Kind::button_press || kind == Kind::button_release; }
};

// Until version 1.87 ImGui looks at each frame which keys are down: of a key that was pressed and released
// between two frames it learns nothing, and of text that was typed right after a shortcut the wrong control
// learns. So a frame gets one change of a key at most, and nothing that came after a shortcut until the
// frames have passed that a change of the focus takes. ImGui asks for the place of the mouse when a frame
// begins, too: a button that was pressed before the mouse went on would be pressed elsewhere, and some
// controls answer only to a mouse that they have seen before. So a button comes with its place, one a frame,
// and after a frame with the mouse at that place.
class InputQueue {
 public:
  void push(InputEvent event) { waiting_.push_back(event); }
  bool empty() const { return waiting_.empty() && held_ == 0; }

  struct Place {
    float x = 0, y = 0;
    bool operator==(const Place&) const = default;
  };
  // Calls `apply(event)` for what the next frame may see, in the order in which it came. `seen`: where the
  // last frame saw the mouse. `typing`: whether a field takes text; then the keys of letters matter to
  // nobody, and a line that was typed or pasted key by key arrives in one frame. The place where the next
  // frame must see the mouse, if it is told of a button.
  template <typename Apply>
  std::optional<Place> deliver(Place seen, bool typing, Apply apply) {
    late_ = left_;
    const std::optional<Place> place = hand_out(seen, typing, apply);
    left_ = !empty();
    return place;
  }

  // What the frame that was just told of counts of the `seconds` since the one before. That one was short if
  // it left events waiting, however slow the machine is: a key whose release waits is not held, and must not
  // repeat.
  float counted(float seconds) const { return late_ ? std::min(seconds, kShortFrame) : seconds; }

 private:
  template <typename Apply>
  std::optional<Place> hand_out(Place seen, bool typing, Apply apply) {
    if (held_ > 0) {
      --held_;
      return std::nullopt;
    }
    std::set<int> changed;
    while (!waiting_.empty()) {
      const InputEvent event = waiting_.front();
      if (event.of_button()) {
        const Place place = {event.x, event.y};
        if (event.kind == InputEvent::Kind::button_press && seen != place) return place;
        waiting_.pop_front();
        apply(event);
        return place;
      }
      const bool writes = typing && !event.shortcut && event.code >= ' ' && event.code < kFirstNamedKey;
      const bool of_key = event.kind != InputEvent::Kind::character && !writes;
      if (of_key && !changed.insert(event.code).second) return std::nullopt;
      waiting_.pop_front();
      apply(event);
      if (event.kind != InputEvent::Kind::press || !event.shortcut) continue;
      held_ = kFocusFrames;
      return std::nullopt;
    }
    return std::nullopt;
  }

  static constexpr int kFirstNamedKey = 256;  // of GLFW: Escape, Enter, arrows and others
  static constexpr int kFocusFrames = 2;
  static constexpr float kShortFrame = 1.0f / 60;
  std::deque<InputEvent> waiting_;
  int held_ = 0;       // frames that get nothing
  bool left_ = false;  // the last frame left something for the next
  bool late_ = false;  // the one before it did
};

// --- Where the keyboard goes. ImGui's navigation moves among the controls of one ImGui window; here Tab and
// F6 move among the windows, and lists get their arrows for themselves. Works with version 1.86, whose keys
// are GLFW's codes.

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

// In a frame, before the first window: Escape closes the drop-down that was opened last, unless a text in it
// is edited or it asks for an answer; nobody else sees the key then. True if it closed one. ImGui gives
// Escape to its navigation, which closes drop-downs that keys opened alone.
bool close_drop_down();

// The last item gets the focus, as if keys had come to it: the first row of a menu that a key opened.
void focus_item_by_keys();

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
