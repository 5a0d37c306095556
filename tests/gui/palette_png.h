// Small PNG files of screens: 256 colours, one byte a pixel.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace loadline::gui {

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::array<unsigned char, 3>> rgb;  // row after row; empty: there is no picture
};

// No pixel differs from the picture's by more than this in any channel, if the picture has few enough
// colours.
inline constexpr int kPaletteStep = 12;

// A picture of any PNG file; an empty one if it cannot be read.
Pixels read_pixels(const std::string& path);
// Colours are rounded until 256 suffice. False if the file cannot be written.
bool write_palette_png(const Pixels& pixels, const std::string& path);

}  // namespace loadline::gui
