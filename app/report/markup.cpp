// Escapes text for markup, and finds the embedded style sheets.
#include "app/report/markup.h"

#include "core/base/text.h"
#include "embedded/report_files.h"

#include <array>

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

}  // namespace loadline
