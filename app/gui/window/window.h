// The interface of a window that draws frames, and the theme that the desktop wants.
#pragma once

#include "app/gui/window/picture.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The interface of the window: it draws frames. Everything that depends on Vulkan, GLFW or the version of
// Dear ImGui stays behind this header.

// The smallest size, in logical units, at which panels have room for their content.
inline constexpr int kLeastWidth = 1024;
inline constexpr int kLeastHeight = 600;

struct WindowOptions {
  std::string title = "Loadline";
  int width = 1280;  // logical
  int height = 800;
  float scale = 0;          // pixels per logical unit; 0 = what the monitor says, 1 offscreen
  bool validation = false;  // Vulkan validation layer; see validation_messages()
};

// Owns the ImGui context: one Window at a time. Used from the thread that made it.
class Window {
 public:
  Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  virtual ~Window();

  // Calls `build` between ImGui's NewFrame and Render, then shows the result. A window that is
  // minimized builds nothing. Throws Error{gpu}.
  virtual void frame(const std::function<void()>& build) = 0;
  // Draws what the last frame showed, and waits until it is drawn. Throws Error{gpu}.
  virtual Picture picture() = 0;
  // Writes what the last frame showed. Throws Error{gpu} or Error{io}.
  void save_png(const std::string& path) { write_png(picture(), path); }
  // Uploads the font atlas. Needed after fonts were added or the scale changed.
  virtual void upload_fonts() = 0;
  virtual void set_size(int width, int height) = 0;  // logical
  // Pixels per logical unit; fonts and sizes are multiplied by it. 0 sets what it was at first, or the
  // monitor's.
  virtual float scale() const = 0;
  virtual void set_scale(float scale) = 0;
  // The next frames are built for a picture of that size, logical, with so many pixels for each unit, and not
  // shown, until this is called with nothing.
  struct PictureFrame {
    int width = 0, height = 0;
    float scale = 1;
    bool operator==(const PictureFrame&) const = default;
  };
  void draw_aside(const std::optional<PictureFrame>& frame) { aside_ = frame; }
  // While frames are built for a picture, nothing is under the mouse.
  void hide_mouse(bool hidden) { mouse_hidden_ = hidden; }

  // Only a desktop window has user input; the defaults answer for a window without input.
  // Whether the user asked to close the window since the last call.
  virtual bool takes_close() { return false; }
  virtual void set_title(const std::string&) {}
  // Covers the monitor that the window is on, or stands where it stood before.
  virtual void set_full_screen(bool) {}
  // Something is done that the user may have turned away from.
  virtual void request_attention() {}
  // Sleeps until an event comes, at most `seconds`; 0 only collects pending events. False if the time ran
  // out.
  virtual bool wait_events(double seconds);
  // Files dropped on the window since the last call.
  virtual std::vector<std::string> take_dropped() { return {}; }
  // Ends a wait_events(); may be called from any thread while the window lives.
  virtual std::function<void()> waker() { return {}; }

  // Simulates the mouse, in logical units; a desktop window has a real mouse and ignores this.
  virtual void set_mouse(float x, float y, bool down);

  // The messages of the validation layer, if it is enabled.
  virtual std::vector<std::string> validation_messages() const { return {}; }

 protected:
  // Just before NewFrame.
  void prepare_mouse() const;
  std::optional<PictureFrame> aside_;

 private:
  bool mouse_hidden_ = false;
};

// Throws Error{gpu} that says what is missing: a display, a Vulkan device.
std::unique_ptr<Window> open_desktop_window(const WindowOptions& options);
// Draws into an image through Vulkan; needs no display.
std::unique_ptr<Window> open_offscreen_window(const WindowOptions& options);

// --- Whether the desktop wants dark windows.

// Asks the desktop's portal (org.freedesktop.appearance, color-scheme) over D-Bus; waits at most half a
// second. Nothing without a session bus, without a portal, or where the user prefers neither.
std::optional<bool> desktop_prefers_dark();

}  // namespace loadline::gui
