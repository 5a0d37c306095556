// One frame: style, finished jobs, drawing; plays scripts.
#include "app/gui/frame/gui_app.h"

#include "app/gui/frame/actions.h"
#include "app/gui/state/load/arena.h"
#include "app/gui/window/window.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

namespace loadline::gui {

// --- One frame: apply the style if it changed, take in finished jobs, draw.

GuiApp::GuiApp(Window& window, importers::StorePlaces stores, std::stop_token stop,
               std::shared_ptr<const forward::ForwardAssets> assets)
    : window_(window),
      stop_(std::move(stop)),
      workspace_(std::move(stores), std::move(assets)),
      shell_(workspace_) {
  workspace_.set_wake(window_.waker());
}

GuiApp::~GuiApp() { workspace_.set_wake({}); }

void GuiApp::refresh_style() {
  if (workspace_.settings.scale != chosen_scale_) {
    chosen_scale_ = workspace_.settings.scale;
    window_.set_scale(chosen_scale_);
  }
  // in front of an audience everything is larger, and the window has as many pixels as before
  constexpr float kPresented = 1.5f;
  workspace_.settings.shown_scale = window_.scale();
  const float scale = window_.scale() * (workspace_.lesson.presents ? kPresented : 1);
  if (scale != styled_scale_) {
    ui_.fonts = load_fonts(scale);
    window_.upload_fonts();
  }
  const bool dark = export_.dark().value_or(workspace_.settings.dark);
  if (scale == styled_scale_ && styled_dark_ == dark) return;
  styled_scale_ = scale;
  styled_dark_ = dark;
  ui_.scale = scale;
  ui_.theme = dark ? &dark_theme() : &light_theme();
  apply_theme(*ui_.theme, scale);
}

// Asks once, when that begins; a desktop that does not answer leaves the theme as it is.
void GuiApp::follow_desktop() {
  const bool follows = workspace_.settings.follows_desktop;
  if (std::exchange(followed_desktop_, follows) || !follows) return;
  desktop_dark_.ask(
      workspace_.services.jobs, "Asking the desktop for its theme",
      [](Progress&) { return desktop_prefers_dark(); },
      [this] {
        if (desktop_dark_.value() && *desktop_dark_.value() && workspace_.settings.follows_desktop)
          workspace_.settings.dark = **desktop_dark_.value();
      });
}

void GuiApp::take_dropped() {
  for (const std::string& path : window_.take_dropped()) workspace_.open(path);
}

void GuiApp::frame() {
  workspace_.poll();
  if (window_.takes_close()) workspace_.ask_quit();
  take_dropped();
  follow_desktop();
  const std::string title = workspace_.document().model
                                ? safe_display(workspace_.document().model->name) + " - Loadline"
                                : "Loadline";
  if (title != title_) {
    title_ = title;
    window_.set_title(title);
  }
  refresh_style();
  window_.set_full_screen(workspace_.settings.full_screen);
  if (workspace_.services.requests.take<CallAttention>()) window_.request_attention();
  export_.before_frame(workspace_, window_);
  window_.hide_mouse(export_.is_busy());
  window_.frame([&] { shell_.draw(ui_); });
  export_.after_frame(workspace_, window_, ui_, shell_.panel_rect(), shell_.timeline_rect());
}

bool GuiApp::moves() const {
  const Document& document = workspace_.document();
  return document.arena->view.playing || document.time.playing() || export_.is_busy();
}

bool GuiApp::types() const { return ImGui::GetIO().WantTextInput; }

ImVec2 GuiApp::display_size() const {
  const ImVec2 pixels = ImGui::GetIO().DisplaySize;
  return {pixels.x / workspace_.settings.shown_scale, pixels.y / workspace_.settings.shown_scale};
}

void GuiApp::check_open() const {
  if (stop_.stop_requested()) throw Error(ErrorCode::canceled, "interrupted");
  if (wants_close()) throw Error(ErrorCode::canceled, "the window was closed");
}

void GuiApp::settle() {
  check_open();
  while (workspace_.busy() || export_.is_busy() || !workspace_.lesson.to_show.empty()) {
    frame();
    check_open();
    window_.wait_events(0.01);
  }
  workspace_.poll();
}

void GuiApp::draw_settled() {
  constexpr int kFrames = 4;
  for (int i = 0; i < kFrames; ++i) {
    check_open();
    frame();
  }
}

// --- Parses and plays script lines: actions, load options, and commands for the window itself.

namespace {

void wait(GuiApp& app, const std::string&) { app.settle(); }

void set_size(GuiApp& app, const std::string& text) {
  const std::size_t by = text.find('x');
  if (by == std::string::npos) refuse(fmt::format("'{}' is not WIDTHxHEIGHT", text));
  const std::string_view view = text;
  const int width = parse_number<int>(view.substr(0, by), 320, 16384);
  const int height = parse_number<int>(view.substr(by + 1), 240, 16384);
  app.window().set_size(width, height);
}

void set_scale(GuiApp& app, const std::string& text) {
  app.window().set_scale(parse_number<float>(text, 0.5f, 4));
}

void press(GuiApp& app, const std::string& argument, int times) {
  const auto words = two_words(argument, "X Y");
  const auto x = static_cast<float>(parse_number<int>(words[0], 0, 16384));
  const auto y = static_cast<float>(parse_number<int>(words[1], 0, 16384));
  app.window().set_mouse(x, y, false);
  app.frame();  // the item under the mouse is known one frame later
  app.frame();
  for (int i = 0; i < times; ++i) {
    app.window().set_mouse(x, y, true);
    app.frame();
    app.window().set_mouse(x, y, false);
    app.frame();
  }
}

void move_mouse(GuiApp& app, const std::string& at) { press(app, at, 0); }
void click(GuiApp& app, const std::string& at) { press(app, at, 1); }
void double_click(GuiApp& app, const std::string& at) { press(app, at, 2); }

void draw_frames(GuiApp& app, const std::string& text) {
  for (int left = parse_number<int>(text, 1, 10000); left > 0; --left) {
    app.check_open();
    app.frame();
  }
}

void screenshot(GuiApp& app, const std::string& file) {
  app.draw_settled();
  app.window().save_png(file);
}

void expect_notice(GuiApp& app, const std::string& words) {
  const auto& notices = app.workspace().services.notices.all();
  const bool found = std::ranges::any_of(
      notices, [&](const Notice& notice) { return notice.text.find(words) != std::string::npos; });
  if (!found) refuse(fmt::format("no notice says '{}'", words));
}

struct WindowWord {
  std::string_view id;
  Argument argument;
  void (*play)(GuiApp& app, const std::string& argument);
};

constexpr auto kWindowWords = std::to_array<WindowWord>({
    {"wait", Argument::none, wait},
    {"size", Argument::required, set_size},
    {"scale", Argument::required, set_scale},
    {"mouse", Argument::required, move_mouse},
    {"click", Argument::required, click},
    {"double-click", Argument::required, double_click},
    {"frames", Argument::required, draw_frames},
    {"screenshot", Argument::required, screenshot},
    {"expect-notice", Argument::required, expect_notice},
});

const WindowWord* find_window_word(std::string_view id) {
  const auto found = std::ranges::find(kWindowWords, id, &WindowWord::id);
  return found == kWindowWords.end() ? nullptr : &*found;
}

// Nothing for an unknown command.
std::optional<Argument> argument_of(std::string_view command) {
  if (const Action* action = find_action(command)) return action->argument;
  if (load::find_load_option(command) != nullptr) return Argument::required;
  if (const WindowWord* word = find_window_word(command)) return word->argument;
  return std::nullopt;
}

void play(GuiApp& app, const ScriptLine& line) {
  if (const Action* action = find_action(line.command))
    action->run(app.workspace(), line.argument);
  else if (load::find_load_option(line.command) != nullptr)
    app.workspace().document().load.set_option(line.command, line.argument);
  else
    find_window_word(line.command)->play(app, line.argument);
}

std::string unknown_word(const std::string& word) {
  const std::string unknown = fmt::format("unknown command '{}'", safe_display(word, 60));
  const std::string_view meant = nearest_word(word, script_words());
  return meant.empty() ? unknown + "; the manual's page 'scripting' lists the words"
                       : fmt::format("{}; did you mean {}?", unknown, meant);
}

Error at_line(const std::string& file, int line, const Error& error) {
  return Error(error.code(), {.file = file}, "line {}: {}", line, error.what());
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string_view> script_words() {
  std::vector<std::string_view> names;
  for (const Action& action : actions()) names.push_back(action.id);
  for (const load::LoadOption& option : load::load_options()) names.push_back(option.id);
  for (const WindowWord& word : kWindowWords) names.push_back(word.id);
  return names;
}

std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file) {
  std::vector<ScriptLine> lines;
  int number = 0;
  for (const std::string_view whole : lines_of(text)) {
    const std::string_view line = trimmed(whole);
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    ScriptLine parsed{number, std::string(line.substr(0, space)), std::string(trimmed(line.substr(space)))};
    const auto fail = [&](std::string_view detail) {
      throw at_line(file, number, Error(ErrorCode::usage, detail));
    };
    const std::optional<Argument> argument = argument_of(parsed.command);
    if (!argument) fail(unknown_word(parsed.command));
    if (argument == Argument::required && parsed.argument.empty())
      fail(fmt::format("{} needs an argument", parsed.command));
    if (argument == Argument::none && !parsed.argument.empty())
      fail(fmt::format("{} takes no argument", parsed.command));
    lines.push_back(std::move(parsed));
  }
  return lines;
}

bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file) {
  for (const ScriptLine& line : lines) {
    if (line.command == "quit") return true;  // the caller decides how to quit
    try {
      app.check_open();
      play(app, line);
      app.frame();
    } catch (const Error& error) {
      throw at_line(file, line.number, error);
    }
  }
  return false;
}

}  // namespace loadline::gui
