// Breaks lines between words.
#include "app/report/wrap.h"

#include "core/base/text.h"

#include <algorithm>

namespace loadline::report {

std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const std::size_t width = display_width(word);
    const bool fresh = used == 0 || used + 1 + width > columns;
    lines.append(fresh ? (used == 0 ? "" : "\n") : " ").append(fresh ? indent : "").append(word);
    used = fresh ? indent.size() + width : used + 1 + width;
  }
  return lines + "\n";
}

std::string reflowed(std::string_view text, std::size_t columns) {
  std::string lines;
  for (const std::string_view line : lines_of(text)) {
    const std::string_view indent = line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
    if (display_width(line) <= columns || line.substr(indent.size()).starts_with('('))
      lines.append(line) += '\n';
    else
      lines += wrapped(line, indent, columns);
  }
  return lines;
}

}  // namespace loadline::report
