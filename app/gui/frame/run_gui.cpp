// Chooses the kind of window, opens the model, and runs frames until the window closes or the script ends.
#include "app/gui/frame/gui_app.h"
#include "app/gui/state/settings.h"
#include "app/gui_request.h"
#include "core/base/error.h"
#include "core/io/source_file.h"

namespace loadline::gui {
namespace {

// Seconds to wait for events: a job's progress is redrawn ten times a second, a blinking cursor twice.
// Nothing else changes without an event; results of jobs are events.
constexpr double kBusyWait = 0.1;
constexpr double kTypingWait = 0.5;
constexpr double kIdleWait = 3600;
constexpr double kMovingWait = 0.03;
// Then everything that an event has set off is there, a picture that was written among it.
constexpr double kSettleWait = 0.15;
constexpr std::uint64_t kMostScriptBytes = 1 << 20;

std::string read_text(const std::string& path) {
  const io::SourceFile file = io::SourceFile::open(path);
  if (file.size() > kMostScriptBytes) throw Error(ErrorCode::limit, {.file = path}, "too long for a script");
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// Reports notices of severity error, which only a person looking at the window would see.
void throw_failures(const Workspace& workspace) {
  for (const Notice& notice : workspace.services.notices.all())
    if (notice.severity == graph::Severity::error) throw Error(ErrorCode::io, notice.text);
}

void run_until_closed(GuiApp& app, const std::stop_token& stop) {
  const std::stop_callback wake(stop, app.window().waker());
  // after an event ImGui takes a frame or two until everything has followed it
  constexpr int kAfterEvent = 3;
  int frames = kAfterEvent;
  bool settled = false;
  while (!app.wants_close()) {
    for (; frames > 0 && !app.wants_close(); --frames) {
      app.frame();
      app.window().wait_events(0);
    }
    if (app.wants_close())
      return;  // what said so may have been taken in between frames, and would not come again
    const double wait = app.moves()              ? kMovingWait
                        : app.workspace().busy() ? kBusyWait
                        : !settled               ? kSettleWait
                        : app.types()            ? kTypingWait
                                                 : kIdleWait;
    const bool event = app.window().wait_events(wait);
    frames = event || !settled ? kAfterEvent : 1;
    settled = !event;
  }
}

// A picture or a script shows the same everywhere: only a window that a person looks at remembers.
bool remembers(const GuiRequest& request) { return !request.state_file.empty() && request.script.empty(); }

void take_state(Settings& settings, const GuiRequest& request, Remembered state) {
  if (request.theme_given) {
    state.dark = settings.dark;
    state.follows_desktop = settings.follows_desktop;
  }
  if (request.scale > 0) state.scale = settings.scale;
  static_cast<Remembered&>(settings) = std::move(state);
}

// The last model is shown; the request is about that one.
void open_models(Workspace& workspace, const GuiRequest& request) {
  const std::size_t all = request.paths.size();
  for (std::size_t i = 0; i < all; ++i)
    if (i + 1 < all || request.request.empty()) workspace.open(request.paths[i]);
  if (!request.request.empty()) workspace.open_request(request.request, all > 0 ? request.paths.back() : "");
}

void keep_state(GuiApp& app, const GuiRequest& request) {
  WindowState state;
  static_cast<Remembered&>(state) = app.workspace().settings;
  state.width = static_cast<int>(app.display_size().x);
  state.height = static_cast<int>(app.display_size().y);
  try {
    write_state(state, request.state_file);
  } catch (const Error&) {
    // a window that cannot be remembered is not worth a message while it closes
  }
}

}  // namespace

int run_gui(const GuiRequest& request) {
  if (!request.panel.empty()) find_panel(request.panel);
  std::vector<ScriptLine> script;
  if (!request.script.empty()) script = parse_script(read_text(request.script), request.script);
  const bool offscreen = request.offscreen || !request.screenshot.empty();
  const bool keeps = !offscreen && remembers(request);
  const WindowState state = keeps ? read_state(request.state_file) : WindowState();
  WindowOptions options = {.width = request.width, .height = request.height, .scale = request.scale};
  if (keeps && !request.size_given && state.width >= kLeastWidth && state.height >= kLeastHeight) {
    options.width = state.width;
    options.height = state.height;
  }
  const std::unique_ptr<Window> window =
      offscreen ? open_offscreen_window(options) : open_desktop_window(options);
  GuiApp app(*window, request.stores, request.stop, request.assets);
  app.workspace().settings.dark = request.dark;
  app.workspace().settings.follows_desktop = request.follows_desktop;
  if (keeps) take_state(app.workspace().settings, request, state);
  if (!request.targets.empty()) app.workspace().set_data_sheets(request.targets);
  if (keeps) app.workspace().shelf.keep_in(request.facts);
  // a picture or a script shows the same on every machine, unless it asks for this one
  if (!offscreen && request.script.empty()) app.workspace().ask_of_this_machine();
  app.workspace().services.rates = request.rates;
  if (!request.panel.empty()) app.workspace().settings.panel = find_panel(request.panel).id;
  app.workspace().lesson.folder = request.lesson_folder;
  open_models(app.workspace(), request);
  if (!request.lesson.empty()) app.workspace().stage.play(request.lesson);

  bool quit = false;
  if (!script.empty()) quit = play_script(app, script, request.script);
  if (!offscreen) {
    if (!quit) run_until_closed(app, request.stop);
    if (keeps) keep_state(app, request);
    return 0;
  }
  app.settle();
  app.draw_settled();
  app.settle();  // a panel may ask for something when it is first drawn
  app.draw_settled();
  if (script.empty()) throw_failures(app.workspace());
  if (!request.screenshot.empty()) window->save_png(request.screenshot);
  return 0;
}

}  // namespace loadline::gui
