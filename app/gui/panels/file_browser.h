// The dialog that opens a model: a path line, a list of the folder, and the keyboard.
#pragma once

#include "app/gui/session.h"
#include "app/gui/ui.h"

#include <string>

namespace loadline::gui {

class FileBrowser {
 public:
  void open(Session& session);
  bool is_open() const { return open_; }
  void draw(Session& session, const Ui& ui);

 private:
  void draw_list(Session& session, const Ui& ui, float height);
  void draw_entry(Session& session, const Ui& ui, std::size_t i);
  void handle_keys(Session& session);
  void go(Session& session, const std::string& folder);
  void enter(Session& session, std::size_t i);
  void open_model(Session& session, const std::string& path);
  std::string path_of(const Session& session, std::size_t i) const;

  bool open_ = false;
  bool appearing_ = false;
  std::string path_;    // the line at the top
  std::string listed_;  // the folder that path_ was set from
  std::size_t current_ = 0;
  bool scroll_ = false;
};

}  // namespace loadline::gui
