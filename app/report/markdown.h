// Markdown as blocks, as text for a terminal and as HTML; prose wrapped for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- The Markdown of the manual as blocks that a front end can draw: headings, paragraphs, items, code,
// tables.

enum class Emphasis { none, strong, code };

struct TextRun {
  std::string text;
  Emphasis emphasis = Emphasis::none;
};
// A text without its markup: links are reduced to their words, `*` and `**` are both strong.
using RichText = std::vector<TextRun>;

enum class BlockKind { heading, paragraph, item, code, table };

struct Block {
  BlockKind kind = BlockKind::paragraph;
  std::size_t level = 0;                         // of a heading, from 1
  std::string mark = {};                         // before an item: "-" or "1."
  RichText text = {};                            // of a heading, paragraph or item, in one line
  std::string code = {};                         // whole lines
  std::vector<std::vector<RichText>> rows = {};  // of a table; the first has the titles
};

// CommonMark with tables. Items of inner lists come in a row with those of the outer one, quotes are
// paragraphs, pictures and rules are left out. HTML and entities stay the text that they are.
std::vector<Block> markdown_blocks(std::string_view markdown);
RichText rich_text(std::string_view line);
std::string plain_text(const RichText& text);

// --- The Markdown of pages as plain text for a terminal.

// What markdown_blocks() reads: paragraphs filled to `columns`, an empty line after each, code indented,
// tables in columns whose last is filled too. Everything is escaped for a terminal. With `bold`, headings
// have the terminal's escape sequences for that.
std::string markdown_text(std::string_view markdown, std::size_t columns, bool bold = false);

// --- The Markdown of pages as HTML.

// What markdown_blocks() reads, as HTML; a heading of level 1 becomes <h`first`>. Everything is escaped.
std::string markdown_html(std::string_view markdown, std::size_t first = 2);
// The inside of one line.
std::string rich_html(std::string_view line);

// --- Wraps prose for a terminal.

// `text` in lines of at most `columns` columns, each begun by `indent`; ends with a line break.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns);

// Wraps every line that is too long and keeps its indent. Lines that begin with a parenthesis (commands) stay
// whole, so that they can be copied.
std::string reflowed(std::string_view text, std::size_t columns);

}  // namespace loadline::report
