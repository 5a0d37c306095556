// A glyph is four corners that show its own place in the font atlas.
#include "tests/gui/drawn_text.h"

#include <map>
#include <utility>

#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

using Glyphs = std::map<std::pair<float, float>, const ImFontGlyph*>;  // by their upper left corner

Glyphs glyphs_of(const ImFontAtlas& atlas) {
  Glyphs glyphs;
  for (const ImFont* font : atlas.Fonts)
    for (const ImFontGlyph& glyph : font->Glyphs)
      if (glyph.Visible) glyphs.insert({{glyph.U0, glyph.V0}, &glyph});
  return glyphs;
}

bool shows(const ImDrawVert* corners, const ImFontGlyph& glyph) {
  return corners[1].uv.x == glyph.U1 && corners[1].uv.y == glyph.V0 && corners[2].uv.x == glyph.U1 &&
         corners[2].uv.y == glyph.V1 && corners[3].uv.x == glyph.U0 && corners[3].uv.y == glyph.V1;
}

}  // namespace

std::string drawn_text() {
  const Glyphs glyphs = glyphs_of(*ImGui::GetIO().Fonts);
  const ImDrawData& data = *ImGui::GetDrawData();
  std::string text;
  for (int list = 0; list < data.CmdListsCount; ++list) {
    const ImVector<ImDrawVert>& vertices = data.CmdLists[list]->VtxBuffer;
    for (int i = 0; i + 3 < vertices.Size; ++i) {
      const ImDrawVert* corners = vertices.Data + i;
      const auto glyph = glyphs.find({corners->uv.x, corners->uv.y});
      if (glyph == glyphs.end() || !shows(corners, *glyph->second)) continue;
      char utf8[5] = {};
      text += ImTextCharToUtf8(utf8, glyph->second->Codepoint);
      i += 3;
    }
  }
  return text;
}

std::string without_blanks(std::string_view text) {
  std::string rest;
  for (const char c : text)
    if (c != ' ') rest += c;
  return rest;
}

}  // namespace loadline::gui
