// A panel: one thing to look at, in the space it is given.
#pragma once

#include "app/gui/session.h"
#include "app/gui/ui.h"

#include <memory>
#include <span>
#include <string_view>

namespace loadline::gui {

// Keeps what only it needs between frames: scroll, zoom, cached geometry. Draws into the content
// region of the current ImGui window, whatever its size, for every state of the session.
class Panel {
 public:
  Panel() = default;
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;
  virtual ~Panel() = default;

  virtual void draw(Session& session, const Ui& ui) = 0;
  // Another model is shown, or none: gives back what keeps the last one in memory.
  virtual void forget() {}
};

// `id` is what scripts and --panel say.
struct PanelRow {
  std::string_view id;
  std::string_view title;
  std::unique_ptr<Panel> (*make)();
};

// In the order of the tabs; the first is where a session starts.
std::span<const PanelRow> panels();
// Throws Error{usage} that lists the ids.
const PanelRow& find_panel(std::string_view id);

}  // namespace loadline::gui
