// The palette, which runs everything by its name, and the sheet of keys.
#pragma once

#include "app/gui/frame/palette_items.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <string>
#include <vector>

namespace loadline::gui {

class Palette {
 public:
  bool is_open() const { return open_; }
  // Draws it while workspace.wants_palette is set, until something is run or Escape is pressed.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void refresh(const Workspace& workspace);
  void run(Workspace& workspace, std::size_t at);

  bool open_ = false;
  bool to_end_ = false;  // the caret goes behind a text that was put into the field
  std::string typed_, listed_;
  std::vector<PaletteItem> items_;
  std::size_t current_ = 0;
  std::uint64_t document_ = 0;
};

// The keys of all actions, while workspace.shows_keys is set.
void draw_keys(Workspace& workspace, const Ui& ui);

}  // namespace loadline::gui
