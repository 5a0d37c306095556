// Colours that must be told apart are apart for every kind of colour vision.
#include "app/gui/parts/theme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& m, const Triple& v) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return result;
}

// Linear RGB as seen without one kind of cone: Machado, Oliveira, Fernandes, 2009, severity 1. The first is
// what is seen with all.
constexpr std::array<Matrix, 4> kVisions = {
    {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};

// Ottosson, "A perceptual color space for image processing", 2020.
Triple oklab(ImU32 color, const Matrix& vision) {
  Triple rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = static_cast<double>((color >> (8 * i)) & 0xFFu) / 255;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  rgb = times(vision, rgb);
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  Triple cones = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                         {0.2119034982, 0.6806995451, 0.1073969566},
                         {0.0883024619, 0.2817188376, 0.6299787005}}},
                       rgb);
  for (double& c : cones) c = std::cbrt(c);
  return times({{{0.2104542553, 0.7936177850, -0.0040720468},
                 {1.9779984951, -2.4285922050, 0.4505937099},
                 {0.0259040371, 0.7827717662, -0.8086757660}}},
               cones);
}

double least_distance(const std::vector<ImU32>& colors) {
  double least = 1;
  for (const Matrix& vision : kVisions)
    for (std::size_t i = 0; i < colors.size(); ++i)
      for (std::size_t j = i + 1; j < colors.size(); ++j) {
        const Triple a = oklab(colors[i], vision), b = oklab(colors[j], vision);
        least = std::min(least, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
      }
  return least;
}

TEST(Theme, colors_are_apart_for_every_colour_vision) {
  constexpr double kApart = 0.05;
  for (const Theme* theme : {&dark_theme(), &light_theme()}) {
    EXPECT_GE(least_distance({theme->roles.begin(), theme->roles.end()}), kApart);
    EXPECT_GE(least_distance({theme->categories.begin(), theme->categories.end()}), kApart);
    EXPECT_GE(least_distance({theme->spaces.begin(), theme->spaces.end()}), kApart);
  }
}

}  // namespace
}  // namespace loadline::gui
