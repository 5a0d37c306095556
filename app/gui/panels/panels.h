// The base class of panels, the table of panels, and what makes each.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/workspace.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The base class of panels, and the table of all panels.

// A panel draws one view of the document into the content region of the current ImGui window, of any size and
// in every state of the workspace. It keeps its own state between frames: scroll, zoom, cached geometry.
class Panel {
 public:
  // `promise` is shown while no model is open: it says what the panel will show. Empty: the panel needs no
  // model.
  explicit Panel(std::string_view promise = {}) : promise_(promise) {}
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;
  virtual ~Panel() = default;

  void draw(Workspace& workspace, const Ui& ui);
  // Called when the document changes. Drops cached data that keeps the last model in memory.
  virtual void forget() {}

 private:
  virtual void draw_content(Workspace& workspace, const Ui& ui) = 0;

  std::string_view promise_;
};

// `id` is the title in lower case, which scripts and --panel use.
struct PanelRow {
  std::string_view id;
  std::string_view title;
  // The tab that holds it, beside other views of the same matter; empty: a sheet over the panel, which a
  // button or an action opens.
  std::string_view tab;
  std::string_view manual;  // the manual's topic about the panel
  bool own_cards;           // the panel draws its own cards; else the shell draws one behind it
  std::unique_ptr<Panel> (*make)();
};

// All panels, in the order of the tabs. The first is shown at the start.
std::span<const PanelRow> panels();
// The panel with this id, or the first of the tab that is called so: "forward". Throws Error{usage} that
// lists the ids.
const PanelRow& find_panel(std::string_view id);
// The titles of the tabs, from left to right.
std::span<const std::string_view> tabs();
// The panels of a tab, in the order of the table. Throws nothing: an unknown tab has none.
std::vector<const PanelRow*> panels_of(std::string_view tab);

// --- The functions that make each panel, for the table of panels and for panels made of others.

std::unique_ptr<Panel> make_map_panel();
std::unique_ptr<Panel> make_lifetimes_panel();
std::unique_ptr<Panel> make_arena_panel();
std::unique_ptr<Panel> make_load_panel();
std::unique_ptr<Panel> make_methods_panel();
std::unique_ptr<Panel> make_tensors_panel();
std::unique_ptr<Panel> make_model_panel();
std::unique_ptr<Panel> make_bytes_panel();
std::unique_ptr<Panel> make_metadata_panel();
std::unique_ptr<Panel> make_operators_panel();
std::unique_ptr<Panel> make_graph_panel();
std::unique_ptr<Panel> make_findings_panel();
std::unique_ptr<Panel> make_convert_panel();
std::unique_ptr<Panel> make_upload_panel();
std::unique_ptr<Panel> make_diff_panel();
std::unique_ptr<Panel> make_values_panel();

}  // namespace loadline::gui
