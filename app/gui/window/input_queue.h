// Keyboard events, handed on so that no frame misses one.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

namespace loadline::gui {

struct InputEvent {
  enum class Kind { press, release, character } kind = Kind::press;
  int code = 0;      // of the key, or of the character
  int scancode = 0;  // of the key, as the system has it
  int modifiers = 0;
  bool shortcut = false;  // Ctrl, Alt or a function key: what is pressed may move the focus
};

// Until version 1.87 ImGui looks at each frame which keys are down: of a key that was pressed and released
// between two frames it learns nothing, and of text that was typed right after a shortcut the wrong control
// learns. So a frame gets one change of a key at most, and nothing that came after a shortcut until the
// frames have passed that a change of the focus takes.
class InputQueue {
 public:
  void push(InputEvent event) { waiting_.push_back(event); }
  bool empty() const { return waiting_.empty() && held_ == 0; }

  // Calls `apply(event)` for what the next frame may see, in the order in which it came.
  template <typename Apply>
  void deliver(Apply apply) {
    if (held_ > 0) {
      --held_;
      return;
    }
    std::set<int> changed;
    while (!waiting_.empty()) {
      const InputEvent event = waiting_.front();
      const bool of_key = event.kind != InputEvent::Kind::character;
      if (of_key && !changed.insert(event.code).second) return;
      waiting_.pop_front();
      apply(event);
      if (event.kind != InputEvent::Kind::press || !event.shortcut) continue;
      held_ = kFocusFrames;
      return;
    }
  }

 private:
  static constexpr int kFocusFrames = 2;
  std::deque<InputEvent> waiting_;
  int held_ = 0;  // frames that get nothing
};

}  // namespace loadline::gui
