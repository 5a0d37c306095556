// A person at the window of a test: the X server's own mouse and keyboard, moved by xdotool.
#pragma once

#include "app/gui/frame/gui_app.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// Frames are drawn while the person acts, so events come between them as they do on a desktop. What cannot be
// done is a failure of the running test.
class Person {
 public:
  explicit Person(GuiApp& app) : app_(app) {}

  // Presses and releases at once, as xdotool does: "ctrl+f", "Return".
  void press(const std::string& keys);
  // The same with 12 ms between going down and going up.
  void tap(const std::vector<std::string>& keys);
  // With 12 ms from one letter to the next.
  void type(const std::string& text);
  void move_to(ImVec2 pixel);
  void click_at(ImVec2 pixel);
  // Clicks on words once they are shown; `nth` of them in the order of drawing, from the last if negative.
  void click(std::string_view words, int nth = 0);
  // Goes to `at`, clicks and goes on to `away`, all faster than a frame.
  void flick(ImVec2 at, ImVec2 away);
  // What another program gets when it pastes.
  std::string paste();

  bool sees(std::string_view words) const;
  // Draws frames until `condition` holds; false if it never does.
  bool wait_until(const std::function<bool()>& condition);

 private:
  void frames(int count);
  std::string run(const std::vector<std::string>& command);

  GuiApp& app_;
  bool waited_in_vain_ = false;
};

// Why no person can be had here; empty if one can.
std::string no_person();

}  // namespace loadline::gui
