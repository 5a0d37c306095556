// The dark and the light palette, and how they become ImGui's style and fonts.
#include "app/gui/parts/theme.h"

#include "embedded/fonts.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <imgui_freetype.h>

namespace loadline::gui {
namespace {

constexpr ImU32 rgb(std::uint32_t hex) {
  return 0xFF000000u | ((hex & 0xFFu) << 16) | (hex & 0xFF00u) | ((hex >> 16) & 0xFFu);
}

struct Shade {
  ImU32 Theme::*member;
  std::uint32_t dark;
  std::uint32_t light;
};
constexpr auto kShades = std::to_array<Shade>({
    {&Theme::sea, 0x0B111B, 0xE9EDF3},
    {&Theme::panel, 0x121A27, 0xFFFFFF},
    {&Theme::raised, 0x1C2737, 0xEFF3F8},
    {&Theme::hovered, 0x27364B, 0xE1E8F1},
    {&Theme::active, 0x31445E, 0xD2DCE9},
    {&Theme::border, 0x263347, 0xD3DBE6},
    {&Theme::grid, 0x1E2A3B, 0xE6EBF2},
    {&Theme::text, 0xE8EEF7, 0x16202E},
    {&Theme::muted, 0x9AA9BF, 0x536176},
    {&Theme::accent, 0x9DB0FF, 0x3D4FC4},
    {&Theme::on_accent, 0x0B1026, 0xFFFFFF},
    {&Theme::selected, 0x2C3B63, 0xD6DEFA},
    {&Theme::highlight, 0xFFFFFF, 0x0A0F18},
    {&Theme::good, 0x4FD1A1, 0x0A6B4C},
    {&Theme::warning, 0xF2C14E, 0x805600},
    {&Theme::bad, 0xFF8A73, 0xB3341A},
    {&Theme::neutral, 0x52627A, 0xA9B5C6},
});

Theme make_theme(bool dark) {
  Theme t;
  t.dark = dark;
  for (const Shade& shade : kShades) t.*shade.member = rgb(dark ? shade.dark : shade.light);
  return t;
}

Theme make_dark() {
  Theme t = make_theme(true);
  t.spaces = {rgb(0xCBA680), rgb(0x74839C), rgb(0xE6EAF2), rgb(0x9484F0)};
  t.categories = {rgb(0x4BA4FE), rgb(0x733292), rgb(0x8E9F38), rgb(0x0D712D),
                  rgb(0xCC67AD), rgb(0xA8CC5C), rgb(0x4BFBD1), rgb(0x995386)};
  t.roles = {rgb(0xE4A010), rgb(0x79C7F8), rgb(0x27B182), rgb(0x965A1E),
             rgb(0xF8E54A), rgb(0xCA91B3), rgb(0x6C7D95)};
  t.lives = {rgb(0x3F5FE8), rgb(0x1AA0A8), rgb(0x4B582A), rgb(0xB8B053),
             rgb(0xFAB0FC), rgb(0xBFEFA0), rgb(0xA83BC4)};
  return t;
}

Theme make_light() {
  Theme t = make_theme(false);
  t.spaces = {rgb(0x9C7448), rgb(0x8C98AC), rgb(0x4A5568), rgb(0x6C55D6)};
  t.categories = {rgb(0x5F8EF4), rgb(0x793069), rgb(0x418B1D), rgb(0x4A5408),
                  rgb(0xE787BF), rgb(0xA0B54B), rgb(0x67B7FD), rgb(0xA94FA4)};
  t.roles = {rgb(0xD18D0D), rgb(0x3C8DBE), rgb(0x4CB88B), rgb(0x785F50),
             rgb(0xD6CB2E), rgb(0xB46785), rgb(0x93A2B0)};
  t.lives = {rgb(0x172F80), rgb(0x0B7A75), rgb(0x4B3A10), rgb(0x93992C),
             rgb(0xFD74DE), rgb(0xA8D84A), rgb(0x8E24AA)};
  return t;
}

double channel(ImU32 color, int shift) { return static_cast<double>((color >> shift) & 0xFFu) / 255; }

double luminance(ImU32 color) {
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(channel(color, IM_COL32_R_SHIFT)) +
         0.7152 * linear(channel(color, IM_COL32_G_SHIFT)) +
         0.0722 * linear(channel(color, IM_COL32_B_SHIFT));
}

std::string_view embedded_font(std::string_view name) {
  for (const embedded::File& file : embedded::fonts())
    if (file.name == name) return file.bytes;
  IM_ASSERT(false && "font is not embedded");
  return {};
}

// Latin, punctuation, arrows, mathematical signs and shapes; then Greek and Cyrillic for names, and the
// blocks that vocabularies write for spaces.
constexpr std::array<ImWchar, 17> kSigns = {0x20,   0x17F,  0x2010, 0x2027, 0x2030, 0x203A,
                                            0x2190, 0x2195, 0x2212, 0x2212, 0x2248, 0x2248,
                                            0x2264, 0x2265, 0x25B2, 0x25CF, 0};
constexpr std::array<ImWchar, 15> kNames = {0x20,   0x17F,  0x370,  0x3FF,  0x400,  0x52F,  0x2010, 0x2027,
                                            0x2190, 0x2195, 0x2212, 0x2212, 0x2580, 0x259F, 0};

ImFont* add_font(std::string_view file, float pixels, std::span<const ImWchar> ranges) {
  const std::string_view bytes = embedded_font(file);
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;  // it is part of the program; the atlas only reads it
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
  auto* data = const_cast<char*>(bytes.data());
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(data, static_cast<int>(bytes.size()), std::round(pixels),
                                                    &config, ranges.data());
}

// `t` in [0, 1] of the way along a line of colors.
ImU32 along(std::span<const std::uint32_t> colors, double t) {
  const double at = std::clamp(t, 0.0, 1.0) * static_cast<double>(colors.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), colors.size() - 2);
  return mix(rgb(colors[below]), rgb(colors[below + 1]), static_cast<float>(at - static_cast<double>(below)));
}

void set_colors(const Theme& theme, ImGuiStyle& style) {
  const auto set = [&](ImGuiCol id, ImU32 color) {
    style.Colors[id] = ImGui::ColorConvertU32ToFloat4(color);
  };
  const ImU32 clear = with_alpha(theme.panel, 0);
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.muted);
  set(ImGuiCol_WindowBg, theme.sea);
  set(ImGuiCol_ChildBg, clear);
  set(ImGuiCol_PopupBg, theme.panel);
  set(ImGuiCol_Border, theme.border);
  set(ImGuiCol_BorderShadow, clear);
  set(ImGuiCol_FrameBg, theme.raised);
  set(ImGuiCol_FrameBgHovered, theme.hovered);
  set(ImGuiCol_FrameBgActive, theme.active);
  set(ImGuiCol_ScrollbarBg, clear);
  set(ImGuiCol_ScrollbarGrab, theme.active);
  set(ImGuiCol_ScrollbarGrabHovered, theme.muted);
  set(ImGuiCol_ScrollbarGrabActive, theme.muted);
  set(ImGuiCol_CheckMark, theme.accent);
  set(ImGuiCol_SliderGrab, theme.accent);
  set(ImGuiCol_SliderGrabActive, theme.accent);
  set(ImGuiCol_Button, theme.raised);
  set(ImGuiCol_ButtonHovered, theme.hovered);
  set(ImGuiCol_ButtonActive, theme.active);
  set(ImGuiCol_Header, theme.selected);
  set(ImGuiCol_HeaderHovered, theme.hovered);
  set(ImGuiCol_HeaderActive, theme.active);
  set(ImGuiCol_Separator, theme.border);
  set(ImGuiCol_SeparatorHovered, theme.accent);
  set(ImGuiCol_SeparatorActive, theme.accent);
  set(ImGuiCol_TableHeaderBg, theme.panel);
  set(ImGuiCol_TableBorderStrong, theme.border);
  set(ImGuiCol_TableBorderLight, theme.grid);
  set(ImGuiCol_TableRowBg, clear);
  set(ImGuiCol_TableRowBgAlt, with_alpha(theme.raised, 0.35f));
  set(ImGuiCol_TextSelectedBg, with_alpha(theme.accent, 0.35f));
  set(ImGuiCol_NavHighlight, theme.accent);
  set(ImGuiCol_ModalWindowDimBg, with_alpha(theme.dark ? rgb(0x04070D) : rgb(0x3A4557), 0.62f));
}

}  // namespace

const Theme& dark_theme() {
  static const Theme theme = make_dark();
  return theme;
}

const Theme& light_theme() {
  static const Theme theme = make_light();
  return theme;
}

ImU32 Theme::dtype(graph::DType type) const {
  // types with a color of their own; the others have the color of their kind
  constexpr auto kOwn = std::to_array<std::pair<graph::DType, std::size_t>>({
      {graph::DType::bf16, 0},
      {graph::DType::f16, 6},
      {graph::DType::f32, 5},
      {graph::DType::f64, 3},
      {graph::DType::f8_e4m3, 2},
      {graph::DType::f8_e4m3fnuz, 2},
      {graph::DType::f8_e5m2, 2},
      {graph::DType::f8_e5m2fnuz, 2},
      {graph::DType::f8_e8m0, 2},
  });
  // opaque, boolean, integer, floating, complex, text
  constexpr std::array<std::size_t, 6> kByKind = {7, 4, 4, 7, 3, 7};
  if (type == graph::DType::opaque) return neutral;
  // quantized ones by the bits of a number, of which they have 1 to 9: the more, the lighter
  static constexpr std::array<std::uint32_t, 6> kByBits = {0x3B1054, 0x6A2A86, 0x9C4BA6,
                                                           0xC973BE, 0xE09CCB, 0xF0C0DE};
  if (const graph::DTypeInfo& info = graph::dtype_info(type); info.kind == graph::DTypeKind::block)
    return along(kByBits, (8.0 * info.block_bytes / info.block_elements - 1) / 8);
  for (const auto& [own, place] : kOwn)
    if (own == type) return categories[place];
  return categories[kByKind[static_cast<std::size_t>(graph::dtype_info(type).kind)]];
}

ImU32 Theme::ramp(double t) const {
  static constexpr std::array<std::uint32_t, 7> kCividis = {0x1A3A6E, 0x3D4F74, 0x61656F, 0x807D75,
                                                            0xA49973, 0xCBB760, 0xFBE24B};
  return along(kCividis, t);
}

double contrast(ImU32 a, ImU32 b) {
  const double la = luminance(a);
  const double lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

ImU32 text_on(ImU32 ground) {
  const ImU32 ink = rgb(0x060A12);
  const ImU32 paper = rgb(0xFFFFFF);
  return contrast(ink, ground) >= contrast(paper, ground) ? ink : paper;
}

ImU32 with_alpha(ImU32 color, float alpha) {
  const auto a = static_cast<ImU32>(std::lround(std::clamp(alpha, 0.0f, 1.0f) * 255));
  return (color & ~IM_COL32_A_MASK) | (a << IM_COL32_A_SHIFT);
}

ImU32 mix(ImU32 a, ImU32 b, float t) {
  ImU32 result = 0;
  for (const int shift : {IM_COL32_R_SHIFT, IM_COL32_G_SHIFT, IM_COL32_B_SHIFT, IM_COL32_A_SHIFT}) {
    const auto from = static_cast<float>((a >> shift) & 0xFFu);
    const auto to = static_cast<float>((b >> shift) & 0xFFu);
    result |= static_cast<ImU32>(std::lround(from + (to - from) * t)) << shift;
  }
  return result;
}

Fonts load_fonts(float scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  Fonts fonts;
  fonts.body = add_font("Inter-Regular.otf", 17 * scale, kSigns);
  fonts.small = add_font("Inter-Regular.otf", 15 * scale, kSigns);
  fonts.strong = add_font("Inter-SemiBold.otf", 17 * scale, kSigns);
  fonts.title = add_font("Inter-SemiBold.otf", 22 * scale, kSigns);
  fonts.hero = add_font("Inter-SemiBold.otf", 36 * scale, kSigns);
  fonts.mono = add_font("JetBrainsMono-Regular.ttf", 16 * scale, kNames);
  return fonts;
}

void apply_theme(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.WindowPadding = {12, 12};
  style.FramePadding = {10, 6};
  style.ItemSpacing = {8, 8};
  style.ItemInnerSpacing = {6, 6};
  style.CellPadding = {8, 4};
  style.IndentSpacing = 16;
  style.ScrollbarSize = 11;
  style.GrabMinSize = 12;
  style.WindowRounding = 0;
  style.ChildRounding = 8;
  style.FrameRounding = 6;
  style.PopupRounding = 8;
  style.ScrollbarRounding = 6;
  style.GrabRounding = 6;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 1;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 0;
  style.ScaleAllSizes(scale);
  set_colors(theme, style);
  ImGui::GetStyle() = style;
}

}  // namespace loadline::gui
