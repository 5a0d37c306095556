// One random act after the other: of the mouse, of the keyboard, or of the table of actions.
#pragma once

#include "app/gui/frame/gui_app.h"
#include "tests/gui/monkey_models.h"

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

// The app may be on any window; a real mouse and keyboard are overruled.
class Monkey {
 public:
  Monkey(GuiApp& app, const MonkeyModels& models, std::mt19937_64& random);

  // Does something, and says what. The frame that shows it is the caller's.
  std::string act();

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  template <typename T>
  const T& any(std::span<const T> of) {
    return of[below(of.size())];
  }

  std::string use_mouse();
  std::string press_keys();
  std::string type_text();
  std::string run_action();
  std::string set_option();
  std::string change_window();
  std::string change_models();
  void release();
  void press(std::string_view shortcut);
  std::string any_text();
  std::string any_word();
  std::string argument_of(std::string_view action);

  GuiApp& app_;
  const MonkeyModels& models_;
  std::mt19937_64& random_;
};

}  // namespace loadline::gui
