// Breaks lines between words.
#include "app/report/wrap.h"

#include "core/base/text.h"

#include <algorithm>

namespace loadline::report {

std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::size_t width = display_width(word);
    const bool fresh = used == 0 || used + 1 + width > columns;
    lines.append(fresh ? (used == 0 ? "" : "\n") : " ").append(fresh ? indent : "").append(word);
    used = fresh ? indent.size() + width : used + 1 + width;
  }
  return lines + "\n";
}

}  // namespace loadline::report
