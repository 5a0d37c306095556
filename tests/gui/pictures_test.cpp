// Pictures of panels beside those in tests/gui/golden.

#include "app/gui/frame/gui_app.h"
#include "app/gui/state/load/arena.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/forward/model/known_models.h"
#include "core/gpu/device_info.h"
#include "exporters/synth.h"
#include "tests/gui/harness.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <stb/stb_image.h>
#include <zlib.h>

namespace loadline::gui {

// --- Small PNG files of screens: 256 colors, one byte a pixel.

namespace {

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::array<unsigned char, 3>> rgb;  // row after row; empty: there is no picture
};

// No pixel differs from the picture's by more than this in any channel, if the picture has few enough
// colors.
inline constexpr int kPaletteStep = 12;

using Color = std::array<unsigned char, 3>;

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

// --- The looks of seven panels beside pictures of them (tests/gui/golden). test_gui_pictures --update makes
// the pictures anew. Skipped (exit code 77) on another version of the Vulkan driver than the one that made
// them: it draws other edges.

namespace loadline::gui {
namespace {

bool update = false;

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

// The driver that draws: the tests' own list has one device (tests/gui/harness.h).
std::string driver() {
  const std::vector<gpu::DeviceInfo> devices = gpu::list_devices();
  return devices.empty() ? "none" : devices.front().driver;
}

std::string driver_of_pictures() {
  std::ifstream file(golden("driver.txt"));
  std::string line;
  std::getline(file, line);
  return line;
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

// The share of pixels that differ by more than rounding and the dithering of edges.
double differing(const Pixels& a, const Pixels& b, Pixels& marked) {
  constexpr int kTolerance = 24;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    int most = 0;
    for (std::size_t c = 0; c < 3; ++c) most = std::max(most, std::abs(a.rgb[i][c] - b.rgb[i][c]));
    if (most <= kTolerance) continue;
    ++count;
    marked.rgb[i] = {255, 0, 0};
  }
  return static_cast<double>(count) / static_cast<double>(a.rgb.size());
}

using Case = std::tuple<const char*, const char*, std::size_t>;  // panel, theme, size

class Pictures : public ::testing::TestWithParam<Case> {};

TEST_P(Pictures, look_as_they_did) {
  constexpr double kMostDiffering = 0.005;
  const auto& [panel, theme, size] = GetParam();
  const Looks& looks = kSizes[size];
  const testing::TemporaryFolder folder;
  const auto window =
      open_offscreen_window({.width = looks.width, .height = looks.height, .scale = looks.scale});
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
  const std::string drawn = folder / "drawn.png";
  window->save_png(drawn);
  Pixels now = read_pixels(drawn);
  ASSERT_FALSE(now.rgb.empty());
  if (update) {
    ASSERT_TRUE(write_palette_png(now, golden(name)));
    return;
  }
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

int run(int argc, char** argv) {
  constexpr int kSkipped = 77;
  prepare_drivers();
  ::testing::InitGoogleTest(&argc, argv);
  update = argc > 1 && std::string_view(argv[1]) == "--update";
  std::string here;
  try {
    here = driver();
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    return kSkipped;
  }
  if (update) {
    std::filesystem::create_directories(LOADLINE_PICTURES);
    std::ofstream(golden("driver.txt")) << here << "\n";
  } else if (here != driver_of_pictures()) {
    std::printf("skipped: the pictures are of %s, here is %s\n", driver_of_pictures().c_str(), here.c_str());
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace loadline::gui

int main(int argc, char** argv) { return loadline::gui::run(argc, argv); }
