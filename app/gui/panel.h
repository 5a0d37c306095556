// A panel: one thing to look at, in the space it is given.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/workspace.h"

#include <memory>
#include <span>
#include <string_view>

namespace loadline::gui {

// Keeps what only it needs between frames: scroll, zoom, cached geometry. Draws into the content
// region of the current ImGui window, whatever its size, for every state of the workspace.
class Panel {
 public:
  // `promise`: what is to be seen in it once a model is open; empty: it needs none.
  explicit Panel(std::string_view promise = {}) : promise_(promise) {}
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;
  virtual ~Panel() = default;

  void draw(Workspace& workspace, const Ui& ui);
  // Another model is shown, or none: gives back what keeps the last one in memory.
  virtual void forget() {}

 private:
  virtual void draw_content(Workspace& workspace, const Ui& ui) = 0;

  std::string_view promise_;
};

// `id` is the title in small letters: what scripts and --panel say.
struct PanelRow {
  std::string_view id;
  std::string_view title;
  std::string_view manual;  // the topic of the manual that is about it
  bool own_cards;           // it is made of cards, else it lies on one
  std::unique_ptr<Panel> (*make)();
};

// In the order of the tabs; the first is shown at the start.
std::span<const PanelRow> panels();
// Throws Error{usage} that lists the ids, or names the new one of a former id.
const PanelRow& find_panel(std::string_view id);

}  // namespace loadline::gui
