// Escapes for markup.
#include "app/report/markup.h"

#include "core/base/text.h"

namespace loadline {
namespace {

std::string escaped(std::string_view shown) {
  std::string text;
  text.reserve(shown.size());
  for (const char c : shown) switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '\'':
        text += "&#39;";
        break;
      default:
        text += c;
    }
  return text;
}

}  // namespace

std::string markup_text(std::string_view raw) { return escaped(safe_display(raw)); }

std::string markup_text(std::string_view raw, std::size_t columns) {
  return escaped(safe_display(raw, columns));
}

}  // namespace loadline
