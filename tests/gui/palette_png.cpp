// PNG (ISO/IEC 15948): signature, IHDR, PLTE, IDAT with every row unfiltered, IEND. Each chunk is
//   u32 BE length | 4 bytes type | data | u32 BE CRC-32 of type and data
#include "tests/gui/palette_png.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string_view>

#include <stb/stb_image.h>
#include <zlib.h>

namespace loadline::gui {
namespace {

using Colour = std::array<unsigned char, 3>;

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

Colour rounded(const Colour& colour, int step) {
  Colour out;
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = static_cast<unsigned char>(std::min(255, (colour[i] + step / 2) / step * step));
  return out;
}

int distance(const Colour& a, const Colour& b) {
  int most = 0;
  for (std::size_t i = 0; i < 3; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The commonest 256 of the colours, rounded.
std::vector<Colour> palette_of(const Pixels& pixels) {
  constexpr std::size_t kMost = 256;
  std::map<Colour, std::size_t> count;
  for (const Colour& colour : pixels.rgb) ++count[rounded(colour, kPaletteStep)];
  std::vector<std::pair<std::size_t, Colour>> ranked;
  for (const auto& [colour, times] : count) ranked.emplace_back(times, colour);
  std::ranges::sort(ranked, std::greater<>());
  std::vector<Colour> palette;
  for (const auto& [times, colour] : ranked)
    if (palette.size() < kMost) palette.push_back(colour);
  return palette;
}

}  // namespace

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

bool write_palette_png(const Pixels& pixels, const std::string& path) {
  const std::vector<Colour> palette = palette_of(pixels);
  std::map<Colour, char> nearest;
  std::string rows;
  const auto width = static_cast<std::size_t>(pixels.width);
  for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
    if (i % width == 0) rows += '\0';  // no filter
    const Colour colour = rounded(pixels.rgb[i], kPaletteStep);
    const auto [known, fresh] = nearest.try_emplace(colour);
    if (fresh) {
      const auto best =
          std::ranges::min_element(palette, {}, [&](const Colour& c) { return distance(c, colour); });
      known->second = static_cast<char>(best - palette.begin());
    }
    rows += known->second;
  }
  std::string colours;
  for (const Colour& colour : palette) colours.append(colour.begin(), colour.end());
  const std::string header = big_endian(static_cast<std::uint32_t>(pixels.width)) +
                             big_endian(static_cast<std::uint32_t>(pixels.height)) +
                             std::string("\x08\x03\0\0\0", 5);
  std::ofstream file(path, std::ios::binary);
  file << "\x89PNG\r\n\x1a\n"
       << chunk("IHDR", header) << chunk("PLTE", colours) << chunk("IDAT", deflated(rows))
       << chunk("IEND", "");
  return file.good();
}

}  // namespace loadline::gui
