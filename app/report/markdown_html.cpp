// Writes blocks as elements.
#include "app/report/markdown_html.h"

#include "app/report/markdown.h"
#include "app/report/page_parts.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::report {
namespace {

std::string runs_html(const RichText& text) {
  std::string html;
  for (const TextRun& run : text) {
    const std::string words = markup_text(run.text);
    html += run.emphasis == Emphasis::strong ? fmt::format("<strong>{}</strong>", words)
            : run.emphasis == Emphasis::code ? fmt::format("<code>{}</code>", words)
                                             : words;
  }
  return html;
}

std::string table_html(const Block& block) {
  std::string html = "<div class=\"scroll\"><table>\n";
  for (std::size_t i = 0; i < block.rows.size(); ++i) {
    html += "<tr>";
    for (const RichText& cell : block.rows[i])
      html += fmt::format("<{0} class=\"left\">{1}</{0}>", i == 0 ? "th" : "td", runs_html(cell));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// Line ends must survive, so each line is escaped by itself.
std::string code_html(std::string_view code) {
  std::string html = "<pre>";
  for (const std::string_view line : lines_of(code)) html += markup_text(line) + "\n";
  return html + "</pre>\n";
}

}  // namespace

std::string rich_html(std::string_view line) { return runs_html(rich_text(line)); }

std::string markdown_html(std::string_view markdown, std::size_t first) {
  constexpr std::size_t kDeepest = 6;
  std::string html, list;  // the list that is open
  const auto leave_list = [&] {
    if (!list.empty()) html += fmt::format("</{}>\n", list);
    list.clear();
  };
  for (const Block& block : markdown_blocks(markdown)) {
    if (block.kind != BlockKind::item) leave_list();
    switch (block.kind) {
      case BlockKind::heading:
        html += fmt::format("<h{0}>{1}</h{0}>\n", std::min(block.level + first - 1, kDeepest),
                            runs_html(block.text));
        break;
      case BlockKind::paragraph:
        html += fmt::format("<p>{}</p>\n", runs_html(block.text));
        break;
      case BlockKind::item: {
        const std::string kind = block.mark == "-" ? "ul" : "ol";
        if (list != kind) {
          leave_list();
          list = kind;
          html += fmt::format("<{}>\n", kind);
        }
        html += fmt::format("<li>{}</li>\n", runs_html(block.text));
        break;
      }
      case BlockKind::code:
        html += code_html(block.code);
        break;
      case BlockKind::table:
        html += table_html(block);
        break;
    }
  }
  leave_list();
  return html;
}

}  // namespace loadline::report
