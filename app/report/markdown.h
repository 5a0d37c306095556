// The Markdown of the manual as blocks that a front end can draw: headings, paragraphs, items, code, tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

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

// What pages of the manual use of Markdown, and no more: lists have one level, pictures are left out.
std::vector<Block> markdown_blocks(std::string_view markdown);
RichText rich_text(std::string_view line);

}  // namespace loadline::report
