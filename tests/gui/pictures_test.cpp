// Pictures of panels beside those in tests/gui/golden, drawn here: no driver has a say in them.

#include "app/gui/frame/gui_app.h"
#include "app/gui/state/load/arena.h"
#include "core/base/progress.h"
#include "core/forward/model/known_models.h"
#include "exporters/synth.h"
#include "tests/gui/harness.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <stb/stb_image.h>
#include <zlib.h>

namespace loadline::gui {

// --- What a GPU makes of a frame's triangles.

namespace {

using Color = std::array<unsigned char, 3>;

struct Pixels {
  int width = 0, height = 0;
  std::vector<Color> rgb;  // row after row; empty: there is no picture
};

// Each pixel takes the color of every triangle over its middle, in their order.
class Canvas {
 public:
  explicit Canvas(const ImDrawData& data) {
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&atlas_, &atlas_width_, &atlas_height_);
    pixels_.width = static_cast<int>(data.DisplaySize.x);
    pixels_.height = static_cast<int>(data.DisplaySize.y);
    pixels_.rgb.resize(static_cast<std::size_t>(pixels_.width) * static_cast<std::size_t>(pixels_.height));
    for (int i = 0; i < data.CmdListsCount; ++i) add(*data.CmdLists[i]);
  }
  const Pixels& pixels() const { return pixels_; }

 private:
  static constexpr std::int64_t kParts = 256;  // of a pixel, to which corners are rounded

  struct Corner {
    std::int64_t x, y;
    const ImDrawVert* vertex;
  };
  static Corner corner(const ImDrawVert& vertex) {
    const auto rounded = [](float pixel) { return std::llround(pixel * static_cast<float>(kParts)); };
    return {rounded(vertex.pos.x), rounded(vertex.pos.y), &vertex};
  }
  // Twice the area of the triangle of `from`, `to` and this place; positive on the inner side.
  static std::int64_t side(const Corner& from, const Corner& to, std::int64_t x, std::int64_t y) {
    return (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
  }
  // What lies on an edge belongs to the triangle that it is the upper or the left edge of.
  static std::int64_t least_inside(const Corner& from, const Corner& to) {
    return to.y < from.y || (to.y == from.y && to.x > from.x) ? 0 : 1;
  }

  void add(const ImDrawList& list) {
    for (const ImDrawCmd& command : list.CmdBuffer)
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
        const ImDrawIdx* const index = list.IdxBuffer.Data + command.IdxOffset + i;
        const ImDrawVert* const vertices = list.VtxBuffer.Data + command.VtxOffset;
        fill(corner(vertices[index[0]]), corner(vertices[index[1]]), corner(vertices[index[2]]),
             command.ClipRect);
      }
  }

  void fill(const Corner& a, Corner b, Corner c, const ImVec4& clip) {
    if (side(a, b, c.x, c.y) < 0) std::swap(b, c);
    const std::int64_t area = side(a, b, c.x, c.y);
    if (area == 0) return;
    const auto pixel = [](float edge, int most) {
      return std::clamp<std::int64_t>(std::int64_t(edge), 0, most);
    };
    const auto [left, right] = std::minmax({a.x, b.x, c.x});
    const auto [top, bottom] = std::minmax({a.y, b.y, c.y});
    const std::int64_t end_x = std::min(pixel(clip.z, pixels_.width), right / kParts + 1);
    const std::int64_t end_y = std::min(pixel(clip.w, pixels_.height), bottom / kParts + 1);
    for (std::int64_t y = std::max(pixel(clip.y, pixels_.height), top / kParts); y < end_y; ++y)
      for (std::int64_t x = std::max(pixel(clip.x, pixels_.width), left / kParts); x < end_x; ++x) {
        const std::int64_t at_x = x * kParts + kParts / 2, at_y = y * kParts + kParts / 2;
        const std::int64_t of_a = side(b, c, at_x, at_y), of_b = side(c, a, at_x, at_y),
                           of_c = area - of_a - of_b;
        if (of_a < least_inside(b, c) || of_b < least_inside(c, a) || of_c < least_inside(a, b)) continue;
        const auto share = [&](std::int64_t part) {
          return static_cast<float>(part) / static_cast<float>(area);
        };
        blend(pixels_.rgb[static_cast<std::size_t>(y * pixels_.width + x)],
              {{{a.vertex, share(of_a)}, {b.vertex, share(of_b)}, {c.vertex, share(of_c)}}});
      }
  }

  using Mix = std::array<std::pair<const ImDrawVert*, float>, 3>;  // of three corners, and their shares

  void blend(Color& pixel, const Mix& mix) const {
    const auto channel = [&](int shift) {
      float sum = 0;
      for (const auto& [vertex, share] : mix) sum += share * static_cast<float>(vertex->col >> shift & 0xFFu);
      return sum;
    };
    float u = 0, v = 0;
    for (const auto& [vertex, share] : mix) u += share * vertex->uv.x, v += share * vertex->uv.y;
    const float alpha = channel(IM_COL32_A_SHIFT) / 255 * ink(u, v);
    constexpr std::array<int, 3> kShifts = {IM_COL32_R_SHIFT, IM_COL32_G_SHIFT, IM_COL32_B_SHIFT};
    for (std::size_t i = 0; i < 3; ++i)
      pixel[i] = static_cast<unsigned char>(
          std::lround(channel(kShifts[i]) * alpha + static_cast<float>(pixel[i]) * (1 - alpha)));
  }

  // How much the atlas has there, from 0 to 1: the four texels around it in proportion.
  float ink(float u, float v) const {
    const float x = u * static_cast<float>(atlas_width_) - 0.5f,
                y = v * static_cast<float>(atlas_height_) - 0.5f;
    const auto texel = [&](float column, float row) {
      const int at_x = std::clamp(static_cast<int>(column), 0, atlas_width_ - 1);
      const int at_y = std::clamp(static_cast<int>(row), 0, atlas_height_ - 1);
      return static_cast<float>(atlas_[at_y * atlas_width_ + at_x]) / 255;
    };
    const float left = std::floor(x), top = std::floor(y), right_part = x - left, low_part = y - top;
    const float above = std::lerp(texel(left, top), texel(left + 1, top), right_part);
    const float below = std::lerp(texel(left, top + 1), texel(left + 1, top + 1), right_part);
    return std::lerp(above, below, low_part);
  }

  Pixels pixels_;
  unsigned char* atlas_ = nullptr;
  int atlas_width_ = 0, atlas_height_ = 0;
};

}  // namespace

// --- Small PNG files of screens: 256 colors, one byte a pixel.

namespace {

// No pixel differs from the picture's by more than this in any channel, if the picture has few enough
// colors.
inline constexpr int kPaletteStep = 12;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string chunk(std::string_view type, const std::string& data) {
  const std::string content = std::string(type) + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + content +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION) != Z_OK)
    return "";
  out.resize(size);
  return out;
}

Color rounded(const Color& color, int step) {
  Color out;
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = static_cast<unsigned char>(std::min(255, (color[i] + step / 2) / step * step));
  return out;
}

int distance(const Color& a, const Color& b) {
  int most = 0;
  for (std::size_t i = 0; i < 3; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The commonest 256 of the colors, rounded.
std::vector<Color> palette_of(const Pixels& pixels) {
  constexpr std::size_t kMost = 256;
  std::map<Color, std::size_t> count;
  for (const Color& color : pixels.rgb) ++count[rounded(color, kPaletteStep)];
  std::vector<std::pair<std::size_t, Color>> ranked;
  for (const auto& [color, times] : count) ranked.emplace_back(times, color);
  std::ranges::sort(ranked, std::greater<>());
  std::vector<Color> palette;
  for (const auto& [times, color] : ranked)
    if (palette.size() < kMost) palette.push_back(color);
  return palette;
}

// A picture of any PNG file; an empty one if it cannot be read.
Pixels read_pixels(const std::string& path) {
  Pixels pixels;
  int channels = 0;
  unsigned char* const data = stbi_load(path.c_str(), &pixels.width, &pixels.height, &channels, 3);
  if (data == nullptr) return {};
  pixels.rgb.resize(static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(pixels.height));
  for (std::size_t i = 0; i < pixels.rgb.size(); ++i)
    pixels.rgb[i] = {data[3 * i], data[3 * i + 1], data[3 * i + 2]};
  stbi_image_free(data);
  return pixels;
}

// Colors are rounded until 256 suffice. False if the file cannot be written.
bool write_palette_png(const Pixels& pixels, const std::string& path) {
  const std::vector<Color> palette = palette_of(pixels);
  std::map<Color, char> nearest;
  std::string rows;
  const auto width = static_cast<std::size_t>(pixels.width);
  for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
    if (i % width == 0) rows += '\0';  // no filter
    const Color color = rounded(pixels.rgb[i], kPaletteStep);
    const auto [known, fresh] = nearest.try_emplace(color);
    if (fresh) {
      const auto best =
          std::ranges::min_element(palette, {}, [&](const Color& c) { return distance(c, color); });
      known->second = static_cast<char>(best - palette.begin());
    }
    rows += known->second;
  }
  std::string colors;
  for (const Color& color : palette) colors.append(color.begin(), color.end());
  const std::string header = big_endian(static_cast<std::uint32_t>(pixels.width)) +
                             big_endian(static_cast<std::uint32_t>(pixels.height)) +
                             std::string("\x08\x03\0\0\0", 5);
  std::ofstream file(path, std::ios::binary);
  file << "\x89PNG\r\n\x1a\n"
       << chunk("IHDR", header) << chunk("PLTE", colors) << chunk("IDAT", deflated(rows))
       << chunk("IEND", "");
  return file.good();
}

}  // namespace

}  // namespace loadline::gui

// --- The looks of seven panels beside pictures of them (tests/gui/golden). LOADLINE_UPDATE_GOLDEN=1 makes
// the pictures anew.

namespace loadline::gui {
namespace {

struct Looks {
  int width, height;  // logical
  float scale;
};
constexpr std::array<Looks, 2> kSizes = {{{1280, 720, 1}, {1067, 667, 1.5f}}};
constexpr std::array<const char*, 7> kPictured = {"map",   "load",   "methods", "lifetimes",
                                                  "arena", "values", "model"};
constexpr std::array<const char*, 2> kThemes = {"dark", "light"};

std::string golden(const std::string& name) {
  return (std::filesystem::path(LOADLINE_PICTURES) / name).string();
}

// A model that lies nowhere else: weights from a fixed seed.
const std::string& model() {
  static const testing::TemporaryFolder folder;
  static const std::string path = [] {
    Progress progress;
    exporters::synthesize(forward::config_graph(forward::find_preset("demo")->config_json, "config.json"),
                          folder / "demo", {.seed = 1}, progress);
    return folder / "demo";
  }();
  return path;
}

// The share of pixels that differ by more than the rounding of colors.
double differing(const Pixels& a, const Pixels& b, Pixels& marked) {
  constexpr int kTolerance = 24;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    if (distance(a.rgb[i], b.rgb[i]) <= kTolerance) continue;
    ++count;
    marked.rgb[i] = {255, 0, 0};
  }
  return static_cast<double>(count) / static_cast<double>(a.rgb.size());
}

using Case = std::tuple<const char*, const char*, std::size_t>;  // panel, theme, size

class Pictures : public ::testing::TestWithParam<Case> {};

TEST_P(Pictures, look_as_they_did) {
  constexpr double kMostDiffering = 0.001;  // the time that a packing took is among the words
  const auto& [panel, theme, size] = GetParam();
  const Looks& looks = kSizes[size];
  const testing::TemporaryFolder folder;
  const auto window = open_null_window({.width = looks.width, .height = looks.height, .scale = looks.scale});
  GuiApp app(*window, folder / "no hub");
  Workspace& workspace = app.workspace();
  workspace.settings.panel = panel;
  workspace.settings.dark = std::string_view(theme) == "dark";
  workspace.open(model());
  app.settle();
  ASSERT_TRUE(workspace.document().model);
  Document& document = workspace.document();
  document.load.set_option("device_budget", "48MiB");
  document.select(graph::TensorId{1});
  // what is packed does not depend on how fast the search is: it ends with a proof
  document.arena->options.threads = 1;
  document.arena->options.seconds = 60;
  // until a panel asks for nothing more
  for (int i = 0; i < 4; ++i) {
    app.settle();
    app.draw_settled();
  }
  const std::string name = fmt::format("{}-{}-{}x{}.png", panel, theme, looks.width, looks.height);
  const Pixels now = Canvas(*ImGui::GetDrawData()).pixels();
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) ASSERT_TRUE(write_palette_png(now, golden(name)));
  const Pixels before = read_pixels(golden(name));
  ASSERT_EQ(std::pair(now.width, now.height), std::pair(before.width, before.height)) << name;
  Pixels marked = now;
  const double share = differing(now, before, marked);
  if (share <= kMostDiffering) return;
  ADD_FAILURE() << fmt::format("{}: {:.2f}% of the pixels differ: see {} and different-{}", name, share * 100,
                               name, name);
  write_palette_png(now, name);
  write_palette_png(marked, "different-" + name);
}

INSTANTIATE_TEST_SUITE_P(Panels, Pictures,
                         ::testing::Combine(::testing::ValuesIn(kPictured), ::testing::ValuesIn(kThemes),
                                            ::testing::Values(std::size_t{0}, std::size_t{1})),
                         [](const ::testing::TestParamInfo<Case>& row) {
                           return fmt::format("{}_{}_{}", std::get<0>(row.param), std::get<1>(row.param),
                                              std::get<2>(row.param));
                         });

}  // namespace
}  // namespace loadline::gui
