// Writes blocks as lines.
#include "app/report/markdown_text.h"

#include "app/report/markdown.h"
#include "app/report/wrap.h"
#include "core/base/text.h"

#include <algorithm>

namespace loadline::report {
namespace {

std::string words_of(const RichText& text) {
  std::string words;
  for (const TextRun& run : text) words += run.text;
  return words;
}

// The last column is filled to what is left of the line.
std::string table_text(const Block& block, std::size_t columns) {
  constexpr std::size_t kGap = 2, kLeast = 24;
  std::vector<std::size_t> widths;
  for (const auto& row : block.rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], display_width(words_of(row[i])));
    }
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kGap;
  const std::size_t room = std::max(columns > before ? columns - before : 0, kLeast);
  std::string text;
  for (const auto& row : block.rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string cell = words_of(row[i]);
      line += cell + std::string(widths[i] - display_width(cell) + kGap, ' ');
    }
    const std::string last = row.empty() ? "" : wrapped(words_of(row.back()), "", room);
    for (const std::string_view part : lines_of(last)) {
      line += part;
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line.assign(before, ' ');
    }
  }
  return text;
}

}  // namespace

std::string markdown_text(std::string_view markdown, std::size_t columns, bool bold) {
  std::string text;
  bool in_list = false;
  for (const Block& block : markdown_blocks(markdown)) {
    const bool item = block.kind == BlockKind::item;
    if (in_list && !item) text += "\n";
    in_list = item;
    if (block.kind == BlockKind::code) {
      for (const std::string_view line : lines_of(block.code)) text += "    " + std::string(line) + "\n";
    } else if (block.kind == BlockKind::table) {
      text += table_text(block, columns);
    } else if (block.kind == BlockKind::heading && bold) {
      text += "\033[1m" + words_of(block.text) + "\033[0m\n";
    } else if (item) {
      text += wrapped(block.mark + " " + words_of(block.text), "  ", columns);
    } else {
      text += wrapped(words_of(block.text), "", columns);
    }
    if (!item) text += "\n";
  }
  if (in_list) text += "\n";
  return text;
}

}  // namespace loadline::report
