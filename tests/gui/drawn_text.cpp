// A glyph is four corners that show its own place in the font atlas.
#include "tests/gui/drawn_text.h"

#include <cmath>
#include <map>
#include <utility>

#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

struct FontGlyph {
  const ImFontGlyph* glyph = nullptr;
  const ImFont* font = nullptr;
};
using Glyphs = std::map<std::pair<float, float>, FontGlyph>;  // by their upper left corner

Glyphs glyphs_of(const ImFontAtlas& atlas) {
  Glyphs glyphs;
  for (const ImFont* font : atlas.Fonts)
    for (const ImFontGlyph& glyph : font->Glyphs)
      if (glyph.Visible) glyphs.insert({{glyph.U0, glyph.V0}, {&glyph, font}});
  return glyphs;
}

bool shows(const ImDrawVert* corners, const ImFontGlyph& glyph) {
  return corners[1].uv.x == glyph.U1 && corners[1].uv.y == glyph.V0 && corners[2].uv.x == glyph.U1 &&
         corners[2].uv.y == glyph.V1 && corners[3].uv.x == glyph.U0 && corners[3].uv.y == glyph.V1;
}

struct Drawn {
  std::string utf8;
  ImVec2 low, high;  // of the ink
  float line = 0;    // the middle of the line that it stands in
  float size = 0;    // of the font
};

// In the order in which they were drawn.
std::vector<Drawn> drawn_glyphs() {
  const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  const Glyphs glyphs = glyphs_of(atlas);
  const ImDrawData& data = *ImGui::GetDrawData();
  std::vector<Drawn> drawn;
  for (int list = 0; list < data.CmdListsCount; ++list) {
    const ImVector<ImDrawVert>& vertices = data.CmdLists[list]->VtxBuffer;
    for (int i = 0; i + 3 < vertices.Size; ++i) {
      const ImDrawVert* corners = vertices.Data + i;
      const auto found = glyphs.find({corners->uv.x, corners->uv.y});
      if (found == glyphs.end() || !shows(corners, *found->second.glyph)) continue;
      const auto& [glyph, font] = found->second;
      char utf8[5] = {};
      const float top = corners->pos.y - glyph->Y0;
      drawn.push_back({ImTextCharToUtf8(utf8, glyph->Codepoint), corners[0].pos, corners[2].pos,
                       top + font->FontSize / 2, font->FontSize});
      i += 3;
    }
  }
  return drawn;
}

bool same_line(const Drawn& a, const Drawn& b) { return std::abs(a.line - b.line) < 1 && a.size == b.size; }

// Of one text: further to the right in the same line, with a blank between them at most.
bool follows(const Drawn& a, const Drawn& b) {
  return same_line(a, b) && b.low.x > a.low.x && b.low.x - a.high.x < a.size * 0.6f;
}

// Without even a blank between them.
bool touches(const Drawn& a, const Drawn& b) {
  return same_line(a, b) && b.low.x > a.low.x && b.low.x - a.high.x < a.size * 0.17f;
}

}  // namespace

std::string drawn_text() {
  std::string text;
  for (const Drawn& glyph : drawn_glyphs()) text += glyph.utf8;
  return text;
}

std::vector<ImVec2> drawn_at(std::string_view words) {
  const std::string wanted = without_blanks(words);
  const std::vector<Drawn> glyphs = drawn_glyphs();
  std::vector<ImVec2> places;
  for (std::size_t first = 0; first < glyphs.size(); ++first) {
    std::string text;
    std::size_t end = first;
    while (end < glyphs.size() && text.size() < wanted.size() &&
           (end == first || follows(glyphs[end - 1], glyphs[end])))
      text += glyphs[end++].utf8;
    if (text != wanted) continue;
    if (first > 0 && touches(glyphs[first - 1], glyphs[first])) continue;
    if (end < glyphs.size() && touches(glyphs[end - 1], glyphs[end])) continue;
    const Drawn &from = glyphs[first], &to = glyphs[end - 1];
    places.push_back({(from.low.x + to.high.x) / 2, (from.line + to.line) / 2});
  }
  return places;
}

std::string without_blanks(std::string_view text) {
  std::string rest;
  for (const char c : text)
    if (c != ' ') rest += c;
  return rest;
}

}  // namespace loadline::gui
