// The window as a whole: toolbar, tabs of models, lesson, shell, one frame after the other, scripts.
#pragma once

#include "app/gui/frame/export.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/theme.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/window.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The line at the top of the window: which model, where to, by which load, and whether that fits.

class Toolbar {
 public:
  // Draws over the width of the region, `height` pixels high.
  void draw(Workspace& workspace, const Ui& ui, float height);

 private:
  // What stands in the line; the rest is in the sheet of options and behind "More".
  struct Shown {
    bool context = true, diff = true, sheets = true, target = true, order = true, open = true, name = true;
  };
  static Shown shown_in(const Workspace& workspace, const Ui& ui, float width);
  static float buttons_width(const Workspace& workspace, const Ui& ui, bool model, const Shown& shown);
  static float request_width(const Ui& ui, const Shown& shown);
  void draw_model(const Workspace& workspace, const Ui& ui, float room);
  void draw_request(Workspace& workspace, const Ui& ui, const Shown& shown, float right);
  void draw_chip(Workspace& workspace, const Ui& ui, float room);
  void draw_options(Workspace& workspace, const Ui& ui, bool with_order);
  void draw_buttons(Workspace& workspace, const Ui& ui, const Shown& shown);

  OptionControls controls_;
  OptionControls sheet_controls_;
  bool advice_open_ = false;
};

// --- The strip of open models, below the toolbar.

// The strip's height in pixels: 0 for one model, which the toolbar names.
float model_tabs_height(const Workspace& workspace, const Ui& ui);
// Draws at the cursor over `width` pixels. A click shows a model; its cross or the middle button closes it.
void draw_model_tabs(Workspace& workspace, const Ui& ui, float width);

// --- The lines of a lesson's step that say what the views show: actions and load options, as in a script.

// Throws Error: usage for a word that is unknown, or that a lesson may not say, because it does more than
// change the view.
void run_lesson_line(Workspace& workspace, const std::string& line);

// In every frame: runs the lines that wait, each once it can be run. One that fails becomes a notice.
void follow_lesson(Workspace& workspace);

// --- What a lesson says when it is shown to an audience.

// The step's title, and its text and question, or the answer once that is shown, and its run; in the current
// region.
void draw_caption(Workspace& workspace, const Ui& ui);

// --- The frame around the panels: toolbar, module tree, tabs, notices, inspector, timeline, jobs line.

// Panels that are in no tab: they have fixed places in the window.
std::unique_ptr<Panel> make_tree_panel();
std::unique_ptr<Panel> make_inspector_panel();
std::unique_ptr<Panel> make_timeline_panel();
std::unique_ptr<Panel> make_start_panel();
std::unique_ptr<Panel> make_lesson_panel();

class Shell {
 public:
  explicit Shell(Workspace& workspace);

  // Draws one frame over the whole display.
  void draw(const Ui& ui);
  // Where the panel and the timeline were drawn last, in pixels.
  const ViewRect& panel_rect() const { return panel_rect_; }
  const ViewRect& timeline_rect() const { return timeline_rect_; }

 private:
  void handle_shortcuts();
  bool lesson_takes_keys();  // of this frame, in place of the shortcuts
  void draw_presented(const Ui& ui, ImVec2 size);
  void draw_views(const Ui& ui, ImVec2 size);
  bool sheet_is_open() const;
  void draw_upper(const Ui& ui, ImVec2 size);
  void draw_hidden_views(const Ui& ui, ImVec2 size);
  bool lesson_hides_views() const;
  void draw_body(const Ui& ui, ImVec2 size);
  void draw_start(const Ui& ui, ImVec2 size);
  void draw_main(const Ui& ui);
  void draw_tabs(const Ui& ui);
  void draw_sheet_title(const Ui& ui);
  bool leave_sheet();
  bool leave_body();
  void draw_quit(const Ui& ui);
  void draw_notices(const Ui& ui);
  void draw_panel(const Ui& ui);
  void draw_jobs(const Ui& ui, float height);
  Panel& panel(std::string_view id);

  Workspace& workspace_;
  std::map<std::string, std::unique_ptr<Panel>, std::less<>> panels_;  // made at first use
  std::unique_ptr<Panel> tree_, inspector_, timeline_, start_, lesson_;
  ViewRect panel_rect_, timeline_rect_;
  bool inspector_is_seen_ = false;
  Toolbar toolbar_;
  SelectionMenu menu_;
  Palette palette_;
  FileBrowser browser_;
  ExportSheet export_;
  ManualSheet manual_;
  KeySheet keys_;
  bool asks_quit_ = false;          // the sheet that asks is open
  std::string last_panel_ = "map";  // below a sheet
  float caption_ = 0;               // the height of the presented text
  std::uint64_t seen_model_ = 0;    // the id of the document that panels have seen
};

// --- Workspace, shell and window put together: one object that draws frames.

class GuiApp {
 public:
  // The window must outlive the app. A request on `stop` closes the window.
  GuiApp(Window& window, importers::StorePlaces stores, std::stop_token stop = {},
         std::shared_ptr<const forward::ForwardAssets> assets = nullptr);
  // With the hub cache as the only store.
  GuiApp(Window& window, std::string hub_cache, std::stop_token stop = {},
         std::shared_ptr<const forward::ForwardAssets> assets = nullptr)
      : GuiApp(window, importers::StorePlaces{.hub_cache = std::move(hub_cache)}, std::move(stop),
               std::move(assets)) {}
  GuiApp(const GuiApp&) = delete;
  GuiApp& operator=(const GuiApp&) = delete;
  ~GuiApp();

  Workspace& workspace() { return workspace_; }
  Window& window() { return window_; }
  // Takes in finished jobs and dropped files, then draws one frame.
  void frame();
  // Draws frames until no job is left. Throws what check_open() throws.
  void settle();
  // Draws a few frames, until items placed by the layout of the frame before are in place. Throws likewise.
  void draw_settled();
  bool wants_close() const { return stop_.stop_requested() || workspace_.services.requests.holds<Quit>(); }
  // Throws Error{canceled} once the window is to close, to end work whose result would not be seen.
  void check_open() const;
  // Whether something moves by itself, and whether a text field shows its cursor.
  bool moves() const;
  bool types() const;
  ImVec2 display_size() const;  // logical, of the last frame

 private:
  void refresh_style();
  void take_dropped();
  void follow_desktop();

  Window& window_;
  std::stop_token stop_;
  Workspace workspace_;
  Shell shell_;
  ViewExport export_;
  Ui ui_;
  std::optional<bool> styled_dark_;
  bool followed_desktop_ = false;  // in the last frame
  Latest<std::optional<bool>> desktop_dark_;
  float styled_scale_ = 0;
  float chosen_scale_ = 0;  // that the window was given
  std::string title_;
};

// --- A small script language that drives the window, for tests and demos.

// A line begins with an action (app/gui/frame/actions.h), a load option (core/load/request/load_options.h) or
// a command for the window itself. The rest of the line is the argument. The manual's page "scripting" lists
// the commands.
struct ScriptLine {
  int number = 0;
  std::string command;
  std::string argument;
};

std::vector<std::string_view> script_words();

// Throws Error{usage} `FILE: line N: ...` for unknown words and missing arguments.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file);

// Plays the lines in order, drawing as it goes. A failing line throws its Error with the line's
// number. Returns true if the script asked to quit.
bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file);

}  // namespace loadline::gui
