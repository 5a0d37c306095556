// Writes pictures: pixels by stb and giflib, draw lists as SVG.
#include "app/gui/window/picture.h"

#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <gif_lib.h>
#include <spawn.h>
#include <stb/stb_image_write.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::gui {

// --- PNG files by stb, GIF files by giflib.

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

namespace {

std::vector<std::byte> png_bytes(const Picture& picture) {
  std::vector<std::byte> bytes;
  const auto append = [](void* context, void* data, int size) {
    auto& out = *static_cast<std::vector<std::byte>*>(context);
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + size);
  };
  // stb would try five filters on each row; panels of one color are smallest and quickest without any
  static const int unfiltered = stbi_write_force_png_filter = 0;
  (void)unfiltered;
  const int width = static_cast<int>(picture.width);
  const int height = static_cast<int>(picture.height);
  if (stbi_write_png_to_func(append, &bytes, width, height, 4, picture.rgba.data(), width * 4) == 0)
    throw Error(ErrorCode::io, "cannot encode the picture");
  return bytes;
}

}  // namespace

void write_png(const Picture& picture, const std::string& path) {
  io::AtomicFile file(path);
  file.write_at(0, png_bytes(picture));
  file.commit();
}

void copy_picture(const Picture& picture) {
  const bool wayland = std::getenv("WAYLAND_DISPLAY") != nullptr;
  const io::TemporaryFolder folder(std::filesystem::temp_directory_path().string());
  const std::string path = folder.path() + "/picture.png";
  write_png(picture, path);
  std::vector<const char*> words = {"xclip", "-selection", "clipboard", "-t", "image/png", "-i"};
  if (wayland) words = {"wl-copy", "--type", "image/png"};
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, path.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failed =
      ::posix_spawnp(&child, words[0], &files, nullptr, const_cast<char* const*>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    throw Error(ErrorCode::unsupported, "a picture is copied by {}, which is not installed", words[0]);
  // it reads the file, then serves the clipboard in the background
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(ErrorCode::io, "{} could not put the picture on the clipboard", words[0]);
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
            "choosing the colors of");
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
  io::AtomicFile file(path);
  file.write_at(0, state_->bytes);
  file.commit();
}

// --- Takes the triangles of the draw lists apart again. A quad of the font atlas is a letter: its place in
// the atlas says which.

namespace {

struct Letter {
  const ImFont* font = nullptr;
  const ImFontGlyph* glyph = nullptr;
};
using Letters = std::map<std::pair<float, float>, Letter>;  // by the upper left corner in the atlas

Letters atlas_letters() {
  Letters letters;
  for (const ImFont* const font : ImGui::GetIO().Fonts->Fonts)
    for (const ImFontGlyph& glyph : font->Glyphs)
      if (glyph.Visible) letters.try_emplace({glyph.U0, glyph.V0}, Letter{font, &glyph});
  return letters;
}

void append_utf8(std::string& text, unsigned point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0u | point >> 6u);
    text += static_cast<char>(0x80u | (point & 0x3Fu));
  } else {
    text += static_cast<char>(0xE0u | point >> 12u);
    text += static_cast<char>(0x80u | (point >> 6u & 0x3Fu));
    text += static_cast<char>(0x80u | (point & 0x3Fu));
  }
}

std::string paint(ImU32 color) {
  const unsigned alpha = color >> IM_COL32_A_SHIFT & 0xFFu;
  std::string text = fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", color >> IM_COL32_R_SHIFT & 0xFFu,
                                 color >> IM_COL32_G_SHIFT & 0xFFu, color >> IM_COL32_B_SHIFT & 0xFFu);
  if (alpha < 255) text += fmt::format(" fill-opacity=\"{:.3f}\"", alpha / 255.0);
  return text;
}

ImU32 mean(ImU32 a, ImU32 b, ImU32 c) {
  ImU32 color = 0;
  for (const unsigned shift : {0u, 8u, 16u, 24u})
    color |= ((a >> shift & 0xFFu) + (b >> shift & 0xFFu) + (c >> shift & 0xFFu)) / 3 << shift;
  return color;
}

class Writer {
 public:
  Writer(ImVec2 low, ImVec2 high, const std::function<FontFace(const ImFont&)>& face_of)
      : low_(low),
        high_(high),
        face_of_(face_of),
        letters_(atlas_letters()),
        white_(ImGui::GetIO().Fonts->TexUvWhitePixel) {}

  void add(const ImDrawList& list) {
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback != nullptr || command.ElemCount == 0) continue;
      const ImVec4 clip = command.ClipRect;
      if (clip.x >= high_.x || clip.y >= high_.y || clip.z <= low_.x || clip.w <= low_.y) continue;
      begin_clip(clip);
      const ImDrawVert* const vertices = list.VtxBuffer.Data + command.VtxOffset;
      const ImDrawIdx* const indices = list.IdxBuffer.Data + command.IdxOffset;
      for (unsigned i = 0; i + 2 < command.ElemCount;)
        i += letter(vertices, indices + i, command.ElemCount - i) ? 6 : triangle(vertices, indices + i);
    }
  }

  std::string take() {
    end_clip();
    const float width = high_.x - low_.x, height = high_.y - low_.y;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" "
        "viewBox=\"{2:g} {3:g} {0:g} {1:g}\">\n<defs>{4}</defs>\n{5}</svg>\n",
        width, height, low_.x, low_.y, clips_, body_);
  }

 private:
  static constexpr float kClose = 1.1f;  // pixels, to which letters are rounded

  void begin_clip(const ImVec4& clip) {
    const auto same = [](const ImVec4& a, const ImVec4& b) {
      return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
    };
    if (clip_ && same(*clip_, clip)) return;
    end_clip();
    clip_ = clip;
    ++clip_count_;
    clips_ += fmt::format(
        "<clipPath id=\"c{}\"><rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\"/></clipPath>",
        clip_count_, clip.x, clip.y, clip.z - clip.x, clip.w - clip.y);
    body_ += fmt::format("<g clip-path=\"url(#c{})\">\n", clip_count_);
  }
  void end_clip() {
    flush();
    if (clip_) body_ += "</g>\n";
    clip_.reset();
  }

  // Six indices 0 1 2, 0 2 3 over a rectangle of the atlas.
  bool letter(const ImDrawVert* vertices, const ImDrawIdx* at, unsigned left) {
    if (left < 6 || at[0] != at[3] || at[2] != at[4]) return false;
    const ImDrawVert &a = vertices[at[0]], &c = vertices[at[2]];
    const auto found = letters_.find({a.uv.x, a.uv.y});
    if (found == letters_.end() || c.uv.x != found->second.glyph->U1 || c.uv.y != found->second.glyph->V1)
      return false;
    const auto& [font, glyph] = found->second;
    const float scale = (c.pos.y - a.pos.y) / std::max(glyph->Y1 - glyph->Y0, 1e-3f);
    const float size = font->FontSize * scale;
    const float x = a.pos.x - glyph->X0 * scale;
    const float y = a.pos.y - glyph->Y0 * scale + font->Ascent * scale;
    flush_path();
    // a word goes on where its letters meet; ImGui draws nothing for the blanks between
    const float blank = font->GetCharAdvance(' ') * scale;
    const float gap = x - text_end_, blanks = std::round(gap / std::max(blank, 1e-3f));
    const bool goes_on = !text_.empty() && font == font_ && a.col == text_color_ &&
                         std::abs(y - text_y_) < 0.5f && std::abs(size - text_size_) < 0.01f && blanks >= 0 &&
                         blanks <= 2 && std::abs(gap - blanks * blank) < kClose;
    if (!goes_on) {
      flush_text();
      font_ = font;
      text_color_ = a.col;
      text_x_ = x;
      text_y_ = y;
      text_size_ = size;
    } else {
      text_.append(static_cast<std::size_t>(blanks), ' ');
    }
    append_utf8(text_, glyph->Codepoint);
    text_end_ = x + glyph->AdvanceX * scale;
    return true;
  }

  // Always three indices.
  unsigned triangle(const ImDrawVert* vertices, const ImDrawIdx* at) {
    const ImDrawVert &a = vertices[at[0]], &b = vertices[at[1]], &c = vertices[at[2]];
    if (a.uv.x != white_.x || a.uv.y != white_.y) return 3;  // of a letter that was cut: it is out of sight
    const ImU32 color = a.col == b.col && b.col == c.col ? a.col : mean(a.col, b.col, c.col);
    if ((color >> IM_COL32_A_SHIFT & 0xFFu) == 0) return 3;
    flush_text();
    if (color != path_color_) flush_path();
    path_color_ = color;
    path_ += fmt::format("M{:.6g} {:.6g}L{:.6g} {:.6g}L{:.6g} {:.6g}Z", a.pos.x, a.pos.y, b.pos.x, b.pos.y,
                         c.pos.x, c.pos.y);
    return 3;
  }

  void flush_path() {
    if (!path_.empty()) body_ += fmt::format("<path {} d=\"{}\"/>\n", paint(path_color_), path_);
    path_.clear();
  }
  void flush_text() {
    if (!text_.empty()) {
      const FontFace face = face_of_(*font_);
      // the length holds where the viewer has another font
      body_ += fmt::format(
          "<text xml:space=\"preserve\" font-family=\"{}\" font-weight=\"{}\" font-size=\"{:.4g}\" {} "
          "x=\"{:.6g}\" "
          "y=\"{:.6g}\" textLength=\"{:.5g}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
          face.family, face.weight, text_size_ * face.em, paint(text_color_), text_x_, text_y_,
          text_end_ - text_x_, report::markup_text(text_));
    }
    text_.clear();
  }
  void flush() {
    flush_path();
    flush_text();
  }

  const ImVec2 low_, high_;
  const std::function<FontFace(const ImFont&)>& face_of_;
  const Letters letters_;
  const ImVec2 white_;
  std::string body_, clips_;
  std::optional<ImVec4> clip_;
  std::size_t clip_count_ = 0;
  std::string path_;  // triangles of one color
  ImU32 path_color_ = 0;
  std::string text_;  // letters of one line
  const ImFont* font_ = nullptr;
  ImU32 text_color_ = 0;
  float text_x_ = 0, text_end_ = 0, text_y_ = 0, text_size_ = 0;
};

}  // namespace

std::string draw_svg(const ImDrawData& data, ImVec2 low, ImVec2 high,
                     const std::function<FontFace(const ImFont&)>& face_of) {
  Writer writer(low, high, face_of);
  for (int i = 0; i < data.CmdListsCount; ++i) writer.add(*data.CmdLists[i]);
  return writer.take();
}

}  // namespace loadline::gui
