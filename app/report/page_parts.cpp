// Escapes text for markup, and finds the embedded style sheets.
#include "app/report/page_parts.h"

#include "core/base/text.h"
#include "embedded/report_files.h"

#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string escaped(std::string_view shown) {
  constexpr std::string_view kMarks = "&<>\"'";
  constexpr std::array<std::string_view, kMarks.size()> kEntities = {"&amp;", "&lt;", "&gt;", "&quot;",
                                                                     "&#39;"};
  std::string text;
  text.reserve(shown.size());
  for (const char c : shown)
    if (const std::size_t mark = kMarks.find(c); mark == std::string_view::npos)
      text += c;
    else
      text += kEntities[mark];
  return text;
}

}  // namespace

std::string markup_text(std::string_view raw) { return escaped(safe_display(raw)); }

std::string markup_text(std::string_view raw, std::size_t columns) {
  return escaped(safe_display(raw, columns));
}

std::string_view report::style_sheet(std::string_view name) {
  for (const embedded::File& file : embedded::report_files())
    if (file.name.substr(0, file.name.find('.')) == name) return file.bytes;
  return {};
}

std::string report::page_head(std::string_view title, std::initializer_list<std::string_view> sheets) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n"
      "<style>\n{}@media(prefers-color-scheme:dark){{\n{}}}\n",
      markup_text(title), style_sheet("light"), style_sheet("dark"));
  for (const std::string_view sheet : sheets) html += style_sheet(sheet);
  return html + "</style>\n</head>\n";
}

}  // namespace loadline
