// Words with less room than they need: cut in the middle, at the parts of a name, by whole clauses.
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

// Whether a character belongs to a number such as "1,024". The dot of "1.5" parts names, and stays outside.
bool is_of_number(std::string_view text, std::size_t at) {
  const auto digit = [&](std::size_t i) { return i < text.size() && is_digit(text[i]); };
  return digit(at) || (at < text.size() && text[at] == ',' && digit(at - 1) && digit(at + 1));
}

// The first `front` code points and the last `back` of a valid UTF-8 text; of a number all or nothing.
std::string keep_ends(std::string_view text, std::size_t front, std::size_t back) {
  std::size_t head = 0;
  for (std::size_t n = 0; head < text.size() && n < front; ++n) do
      ++head;
    while (head < text.size() && is_continuation(text[head]));
  std::size_t tail = text.size();
  for (std::size_t n = 0; tail > head && n < back; ++n) do
      --tail;
    while (tail > head && is_continuation(text[tail]));
  while (head > 0 && is_of_number(text, head - 1) && is_of_number(text, head)) --head;
  while (tail < text.size() && is_of_number(text, tail - 1) && is_of_number(text, tail)) ++tail;
  return std::string(text.substr(0, head)) + "\xE2\x80\xA6" + std::string(text.substr(tail));
}

// Both ends of a text that no window has room for, so that its size costs nothing.
constexpr std::size_t kMostShown = 4000;  // bytes
std::string ends_of(std::string_view text) {
  constexpr std::size_t kEnd = kMostShown / 2 - 4, kCharacter = 4;
  std::size_t head = kEnd, tail = text.size() - kEnd;
  while (head > kEnd - kCharacter && is_continuation(text[head])) --head;
  while (tail < text.size() - kEnd + kCharacter && is_continuation(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + "\xE2\x80\xA6" + std::string(text.substr(tail));
}

// Keeps as many code points as fit, `front` of them at the beginning.
template <typename Front>
std::string elided_by(std::string_view text, float width, Front front) {
  if (text.size() > kMostShown) return elided_by(ends_of(text), width, front);
  if (text_width(text) <= width) return std::string(text);
  std::size_t fits = 0;
  std::size_t too_many = text.size();
  while (fits + 1 < too_many) {
    const std::size_t middle = (fits + too_many) / 2;
    if (text_width(keep_ends(text, front(middle), middle - front(middle))) <= width)
      fits = middle;
    else
      too_many = middle;
  }
  return keep_ends(text, front(fits), fits - front(fits));
}

}  // namespace

float text_width(std::string_view text) {
  return ImGui::CalcTextSize(text.data(), text.data() + text.size()).x;
}

std::string shown(std::string_view name) {
  if (name.size() > kMostShown) return shown(ends_of(name));
  std::string safe = safe_display(name);
  if (is_ascii(safe)) return safe;
  const ImFont* font = ImGui::GetFont();
  std::string result;
  for (const char *at = safe.data(), *end = at + safe.size(); at < end;) {
    unsigned int point = 0;
    const int length = std::max(1, ImTextCharFromUtf8(&point, at, end));
    if (point > IM_UNICODE_CODEPOINT_MAX || font->FindGlyphNoFallback(static_cast<ImWchar>(point)) == nullptr)
      result += fmt::format("\\u{{{:X}}}", point);
    else
      result.append(at, static_cast<std::size_t>(length));
    at += length;
  }
  return result;
}

std::string elided(std::string_view text, float width) {
  return elided_by(text, width, [](std::size_t kept) { return (kept + 1) / 2; });
}

std::string whole_clauses(std::string_view text, float width) {
  constexpr std::string_view kBetween = ", ";
  std::string_view some = text;
  while (text_width(some) > width) {
    const std::size_t end = some.rfind(kBetween);
    if (end == std::string_view::npos) return elided(some, width);
    some = some.substr(0, end);
  }
  return std::string(some);
}

std::string elided_front(std::string_view text, float width) {
  return elided_by(text, width, [](std::size_t) { return std::size_t{0}; });
}

std::string elided_name(std::string_view name, float width) {
  constexpr std::string_view kMore = "\xE2\x80\xA6", kWeight = ".weight";
  if (name.size() > kMostShown) return elided_name(ends_of(name), width);
  if (text_width(name) <= width) return std::string(name);
  const char between = name.find('/') == std::string_view::npos ? '.' : '/';  // of ONNX
  const std::size_t last = name.rfind(between);
  if (last == std::string_view::npos || last == 0 || name.find(' ') != std::string_view::npos)
    return elided(name, width);
  const auto [layer, layer_end] = graph::layer_part(name);
  // "layer2.0.down.weight": the number alone says too little
  if (layer > 1 && layer < name.size() && is_digit(name[layer - 2])) {
    const std::string most = std::string(name.substr(0, last)).append(kMore);
    return name.ends_with(kWeight) && text_width(most) <= width ? most : elided_front(name, width);
  }
  // behind what the name shares with others: from the end, as many parts as fit, and two at least
  std::string best;
  for (std::size_t at = name.rfind(between, last - 1); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : name.rfind(between, at - 1)) {
    if (at + 1 == layer) continue;  // the number stands before it already
    std::string cut(layer < at ? name.substr(layer, layer_end - layer) : "");
    cut.append(at == layer_end ? "." : kMore).append(name.substr(at + 1));
    if (text_width(cut) <= width)
      best = std::move(cut);
    else if (text_width(name.substr(at + 1)) > width)
      break;
  }
  if (!best.empty()) return best;
  if (!name.ends_with(kWeight)) {
    const std::string end = std::string(kMore).append(name.substr(last + 1));
    return text_width(end) <= width ? end : elided_front(name, width);
  }
  // most are weights: what they are of says more than that they are
  const std::string_view most = name.substr(0, last), part = most.substr(most.rfind('.') + 1);
  const std::string_view number = layer_end < most.size() ? name.substr(layer, layer_end - layer) : "";
  const bool next = layer_end + 1 + part.size() == most.size();
  const std::string_view joint = number.empty() ? "" : next ? "." : kMore;
  return elided(fmt::format("{}{}{}{}", number, joint, part, kMore), width);
}

}  // namespace loadline::gui
