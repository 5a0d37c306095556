// Pictures of the window and the files they are written to: PNG, GIF, SVG.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

namespace loadline::gui {

// --- Pictures of the window, and the files they are written to.

// RGBA pixels, row by row from the top.
struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<unsigned char> rgba;
};

// The part inside a rectangle in pixels, as far as it lies in the picture.
Picture cropped(const Picture& picture, std::uint32_t x, std::uint32_t y, std::uint32_t width,
                std::uint32_t height);

// Throws Error{io}. The file appears whole or not at all.
void write_png(const Picture& picture, const std::string& path);

// Puts the picture on the clipboard of the desktop, as a PNG. GLFW can put only words there: a program that
// serves the clipboard does it, wl-copy under Wayland, xclip under X. Throws Error{unsupported} that names it
// where it is not installed.
void copy_picture(const Picture& picture);

// An animation of pictures of one size, in at most 256 colors each. It repeats for ever.
class GifFile {
 public:
  // Throws Error{limit} for a size that GIF files cannot have.
  GifFile(std::uint32_t width, std::uint32_t height);
  GifFile(const GifFile&) = delete;
  GifFile& operator=(const GifFile&) = delete;
  ~GifFile();

  // Shown for so many hundredths of a second. Pictures of another size are refused: Error{usage}. Throws
  // Error{io}.
  void add(const Picture& picture, unsigned hundredths);
  // Ends the file. Throws Error{io}; it appears whole or not at all.
  void write(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// --- A frame as a scalable picture: its shapes as paths, its words as text.

// How a font of ImGui is called outside of it.
struct FontFace {
  std::string_view family;  // "Inter"
  int weight = 400;
  float em = 1;  // its em as a share of its line's height, which is what ImGui calls its size
};

// The part of the last frame inside the rectangle, in pixels. The frame must have been built without
// anti-aliasing, which SVG viewers do themselves. Gradients become the mean of their corners.
std::string draw_svg(const ImDrawData& data, ImVec2 low, ImVec2 high,
                     const std::function<FontFace(const ImFont&)>& face_of);

}  // namespace loadline::gui
