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

std::size_t shared_parts(std::string_view first, std::size_t shared, std::string_view name) {
  const auto [a, b] = std::ranges::mismatch(first.substr(0, shared), name);
  const std::size_t same = static_cast<std::size_t>(a - first.begin());
  const std::size_t end = same == 0 ? std::string_view::npos : first.substr(0, same).find_last_of("./");
  return end == std::string_view::npos ? 0 : end + 1;
}

std::string elided_name(std::string_view name, float width) {
  constexpr std::string_view kMore = "\xE2\x80\xA6";
  if (name.size() > kMostShown) return elided_name(ends_of(name), width);
  if (text_width(name) <= width) return std::string(name);
  if (const std::size_t blank = name.rfind(' '); blank != std::string_view::npos) {
    // the name that ends the words, as in "12  Conv  /layer1/conv1/Conv"
    const std::string_view words = name.substr(0, blank + 1), end = name.substr(blank + 1);
    const float left = width - text_width(words);
    return left > width / 2 && end.find_first_of("./") < end.size() - 1
               ? std::string(words) + elided_name(end, left)
               : elided(name, width);
  }
  const char between = name.find('/') == std::string_view::npos ? '.' : '/';  // of ONNX
  const std::size_t last = name.rfind(between), first = name.find(between, 1);
  if (last == std::string_view::npos || last == 0) return elided(name, width);
  // layers share what stands before their number; the number of "layer2.0.down" alone says too little
  const auto [layer, layer_end] = graph::layer_part(name);
  const bool numbered = layer < last && !(layer > 1 && is_digit(name[layer - 2]));
  const std::size_t begin = numbered ? layer : 0, end = numbered ? layer_end : first;
  const std::string_view head = name.substr(begin, end - begin);
  if (text_width(name.substr(begin)) <= width) return std::string(name.substr(begin));
  const auto joined = [&](std::string_view tail) { return std::string(head).append(kMore).append(tail); };
  // from the end, as many parts as fit
  std::size_t kept = last + 1;
  for (std::size_t at = name.rfind(between, last - 1); at != std::string_view::npos && at > end;
       at = name.rfind(between, at - 1)) {
    if (text_width(joined(name.substr(at + 1))) > width) break;
    kept = at + 1;
  }
  // "weight" alone says little: the last words of the part before it
  if (kept == last + 1)
    for (std::size_t at = name.rfind('_', last); at != std::string_view::npos && at > end;
         at = name.rfind('_', at - 1)) {
      if (name.substr(at, last - at).find(between) != std::string_view::npos ||
          text_width(joined(name.substr(at + 1))) > width)
        break;
      kept = at + 1;
    }
  if (std::string cut = joined(name.substr(kept)); text_width(cut) <= width) return cut;
  // no room for two whole parts: the beginning of the first, and the last if it leaves some for that
  const std::string tail = std::string(kMore).append(name.substr(last + 1));
  const float left = width - text_width(tail);
  if (left < width / 3) return elided(name.substr(begin), width);
  std::size_t some = 0;
  for (std::size_t at = 1; at <= head.size() && text_width(head.substr(0, at)) <= left; ++at)
    if (at == head.size() || !is_continuation(head[at])) some = at;
  return std::string(head.substr(0, some)) + tail;
}

}  // namespace loadline::gui
