// Events of keys and mouse buttons, handed on so that no frame misses one.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

namespace loadline::gui {

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
  // last frame saw the mouse. The place where the next frame must see it, if it is told of a button.
  template <typename Apply>
  std::optional<Place> deliver(Place seen, Apply apply) {
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
      const bool of_key = event.kind != InputEvent::Kind::character;
      if (of_key && !changed.insert(event.code).second) return std::nullopt;
      waiting_.pop_front();
      apply(event);
      if (event.kind != InputEvent::Kind::press || !event.shortcut) continue;
      held_ = kFocusFrames;
      return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static constexpr int kFocusFrames = 2;
  std::deque<InputEvent> waiting_;
  int held_ = 0;  // frames that get nothing
};

}  // namespace loadline::gui
