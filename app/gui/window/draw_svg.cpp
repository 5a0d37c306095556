// Takes the triangles of the draw lists apart again. A quad of the font atlas is a letter: its place in the
// atlas says which.
#include "app/gui/window/draw_svg.h"

#include "app/report/page_parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {
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
          text_end_ - text_x_, markup_text(text_));
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
  std::string path_;  // triangles of one colour
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
