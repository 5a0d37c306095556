// PNG files by stb, GIF files by giflib.
#include "app/gui/window/picture.h"

#include "core/base/error.h"
#include "core/io/atomic_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <gif_lib.h>
#include <stb/stb_image_write.h>

namespace loadline::gui {

Picture cropped(const Picture& picture, std::uint32_t x, std::uint32_t y, std::uint32_t width,
                std::uint32_t height) {
  x = std::min(x, picture.width);
  y = std::min(y, picture.height);
  Picture part{std::min(width, picture.width - x), std::min(height, picture.height - y), {}};
  part.rgba.reserve(std::size_t{4} * part.width * part.height);
  for (std::uint32_t row = 0; row < part.height; ++row) {
    const auto from =
        picture.rgba.begin() + static_cast<std::ptrdiff_t>(4 * ((std::size_t{y} + row) * picture.width + x));
    part.rgba.insert(part.rgba.end(), from, from + static_cast<std::ptrdiff_t>(4 * std::size_t{part.width}));
  }
  return part;
}

void write_png(const Picture& picture, const std::string& path) {
  std::vector<std::byte> bytes;
  const auto append = [](void* context, void* data, int size) {
    auto& out = *static_cast<std::vector<std::byte>*>(context);
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + size);
  };
  const int width = static_cast<int>(picture.width);
  const int height = static_cast<int>(picture.height);
  if (stbi_write_png_to_func(append, &bytes, width, height, 4, picture.rgba.data(), width * 4) == 0)
    throw Error(ErrorCode::io, {.file = path}, "cannot encode the picture");
  AtomicFile file(path);
  file.write_at(0, bytes);
  file.commit();
}

namespace {

constexpr int kColors = 256, kColorBits = 8;

struct FreeMap {
  void operator()(ColorMapObject* map) const { GifFreeMapObject(map); }
};
using ColorMap = std::unique_ptr<ColorMapObject, FreeMap>;

void check_gif(int result, const char* what) {
  if (result != GIF_OK) throw Error(ErrorCode::io, "{} a GIF file failed", what);
}

}  // namespace

struct GifFile::State {
  std::uint32_t width = 0, height = 0;
  std::vector<std::byte> bytes;
  GifFileType* file = nullptr;

  ~State() {
    if (file != nullptr) EGifCloseFile(file, nullptr);
  }
};

GifFile::GifFile(std::uint32_t width, std::uint32_t height) : state_(std::make_unique<State>()) {
  constexpr std::uint32_t kMost = 65'535;
  if (width == 0 || height == 0 || width > kMost || height > kMost)
    throw Error(ErrorCode::limit, "a GIF file cannot have {} x {} pixels", width, height);
  state_->width = width;
  state_->height = height;
  const auto append = [](GifFileType* file, const GifByteType* data, int size) {
    auto& out = *static_cast<std::vector<std::byte>*>(file->UserData);
    const auto* from = reinterpret_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + size);
    return size;
  };
  state_->file = EGifOpen(&state_->bytes, append, nullptr);
  if (state_->file == nullptr) throw Error(ErrorCode::io, "beginning a GIF file failed");
  EGifSetGifVersion(state_->file, true);  // animations came with GIF89
  check_gif(EGifPutScreenDesc(state_->file, static_cast<int>(width), static_cast<int>(height), kColorBits, 0,
                              nullptr),
            "beginning");
  constexpr unsigned char kName[] = "NETSCAPE2.0";
  constexpr unsigned char kForEver[] = {1, 0, 0};
  check_gif(EGifPutExtensionLeader(state_->file, APPLICATION_EXT_FUNC_CODE), "writing");
  check_gif(EGifPutExtensionBlock(state_->file, sizeof(kName) - 1, kName), "writing");
  check_gif(EGifPutExtensionBlock(state_->file, sizeof(kForEver), kForEver), "writing");
  check_gif(EGifPutExtensionTrailer(state_->file), "writing");
}

GifFile::~GifFile() = default;

void GifFile::add(const Picture& picture, unsigned hundredths) {
  if (picture.width != state_->width || picture.height != state_->height)
    throw Error(ErrorCode::usage, "the window has another size now: {} x {} pixels instead of {} x {}",
                picture.width, picture.height, state_->width, state_->height);
  const std::size_t pixels = std::size_t{picture.width} * picture.height;
  std::vector<GifByteType> red(pixels), green(pixels), blue(pixels), indexed(pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    red[i] = picture.rgba[4 * i];
    green[i] = picture.rgba[4 * i + 1];
    blue[i] = picture.rgba[4 * i + 2];
  }
  const ColorMap map(GifMakeMapObject(kColors, nullptr));
  if (!map) throw Error(ErrorCode::limit, "not enough memory");
  int colors = kColors;
  check_gif(GifQuantizeBuffer(picture.width, picture.height, &colors, red.data(), green.data(), blue.data(),
                              indexed.data(), map->Colors),
            "choosing the colours of");
  const GraphicsControlBlock control = {.DisposalMode = DISPOSE_DO_NOT,
                                        .UserInputFlag = false,
                                        .DelayTime = static_cast<int>(hundredths),
                                        .TransparentColor = NO_TRANSPARENT_COLOR};
  GifByteType extension[4] = {};
  EGifGCBToExtension(&control, extension);
  check_gif(EGifPutExtension(state_->file, GRAPHICS_EXT_FUNC_CODE, sizeof(extension), extension), "writing");
  check_gif(EGifPutImageDesc(state_->file, 0, 0, static_cast<int>(picture.width),
                             static_cast<int>(picture.height), false, map.get()),
            "writing");
  for (std::uint32_t row = 0; row < picture.height; ++row)
    check_gif(EGifPutLine(state_->file, indexed.data() + std::size_t{row} * picture.width,
                          static_cast<int>(picture.width)),
              "writing");
}

void GifFile::write(const std::string& path) {
  check_gif(EGifCloseFile(std::exchange(state_->file, nullptr), nullptr), "ending");
  AtomicFile file(path);
  file.write_at(0, state_->bytes);
  file.commit();
}

}  // namespace loadline::gui
