// One pass over each text; nothing here knows what keys mean.
#include "app/gui/state/model/meta_text.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  // a sequence has at most three bytes after its first
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u; ++i) --end;
  return text.substr(0, end);
}

std::string meta_line(const MetaValue& value, std::size_t most) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return meta_text(value);
  const std::string_view kept = beginning(*text, most);
  std::string line;
  for (const char c : kept)
    if (!is_blank(c))
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return kept.size() == text->size() ? line : line + "\xE2\x80\xA6";
}

std::string meta_type_text(const MetaValue& value) {
  if (const auto* array = std::get_if<MetaArray>(&value))
    return fmt::format("{}[{}]", meta_type_name(array->element), format_grouped(array->count));
  return std::string(meta_type_name(meta_type(value)));
}

std::string broken_json(std::string_view text) {
  constexpr std::size_t kDeepest = 40;  // indents no further
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[') ||
      text.find('\n') != std::string_view::npos)
    return std::string(text);
  std::string out;
  std::size_t depth = 0;
  bool quoted = false;
  const auto new_line = [&] { out += "\n" + std::string(2 * std::min(depth, kDeepest), ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      quoted = c != '"';
      continue;
    }
    if (is_blank(c)) continue;
    const bool closes = c == '}' || c == ']';
    if (closes && depth > 0) --depth;
    // an empty pair stays together
    if (closes && !out.empty() && out.back() != (c == '}' ? '{' : '[')) new_line();
    if (!out.empty() && (out.back() == '{' || out.back() == '[') && !closes) new_line();
    out += c;
    if (c == '{' || c == '[') ++depth;
    if (c == ',') new_line();
    if (c == ':') out += ' ';
    quoted = c == '"';
  }
  return out;
}

Needle::Needle(std::string_view text) : lower_(lower_case(text)) {}

bool Needle::in(std::string_view text) const {
  return lower_.empty() || std::search(text.begin(), text.end(), lower_.begin(), lower_.end(),
                                       [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace loadline::gui
