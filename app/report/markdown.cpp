// Reads Markdown, writes its blocks, wraps lines.
#include "app/report/markdown.h"

#include "app/report/page_parts.h"
#include "core/base/text.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <md4c.h>

namespace loadline::report {

// --- Reads Markdown: md4c finds the markup, the reader makes blocks of one emphasis a run.

namespace {

class BlockReader {
 public:
  std::vector<Block> read(std::string_view markdown) {
    MD_PARSER parser = {};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_NOHTML | MD_FLAG_NOINDENTEDCODEBLOCKS;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* reader) {
      return guarded(reader, [&](BlockReader& self) { self.enter(type, detail); });
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* reader) {
      return guarded(reader, [&](BlockReader& self) { self.leave(type); });
    };
    parser.enter_span = [](MD_SPANTYPE type, void*, void* reader) {
      return guarded(reader, [&](BlockReader& self) { self.enclose(type, 1); });
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* reader) {
      return guarded(reader, [&](BlockReader& self) { self.enclose(type, -1); });
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* reader) {
      return guarded(reader, [&](BlockReader& self) { self.add(type, {text, size}); });
    };
    const int result = md_parse(markdown.data(), static_cast<MD_SIZE>(markdown.size()), &parser, this);
    if (failure_) std::rethrow_exception(failure_);
    if (result != 0) throw std::bad_alloc();  // nothing else makes the library give up
    return std::move(blocks_);
  }

 private:
  // No exception may pass through the library, which is C.
  template <class Call>
  static int guarded(void* reader, Call call) {
    auto& self = *static_cast<BlockReader*>(reader);
    try {
      call(self);
      return 0;
    } catch (...) {
      self.failure_ = std::current_exception();
      return 1;
    }
  }

  void enter(MD_BLOCKTYPE type, const void* detail) {
    switch (type) {
      case MD_BLOCK_H:
        open({BlockKind::heading, static_cast<const MD_BLOCK_H_DETAIL*>(detail)->level});
        break;
      case MD_BLOCK_P:
        // The words of an item stand in a paragraph where blank lines part the items.
        open_ = open_ && blocks_.back().kind == BlockKind::item && blocks_.back().text.empty();
        break;
      case MD_BLOCK_UL:
        numbers_.emplace_back();
        break;
      case MD_BLOCK_OL:
        numbers_.emplace_back(static_cast<const MD_BLOCK_OL_DETAIL*>(detail)->start);
        break;
      case MD_BLOCK_LI:
        open({BlockKind::item, 0, numbers_.back() ? fmt::format("{}.", (*numbers_.back())++) : "-"});
        break;
      case MD_BLOCK_CODE:
        open({BlockKind::code});
        break;
      case MD_BLOCK_TABLE:
        open({BlockKind::table});
        break;
      case MD_BLOCK_TR:
        blocks_.back().rows.emplace_back();
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD:
        blocks_.back().rows.back().emplace_back();
        in_title_ = type == MD_BLOCK_TH;
        break;
      default:
        break;
    }
  }

  void leave(MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_UL || type == MD_BLOCK_OL) numbers_.pop_back();
    if (type == MD_BLOCK_TH) in_title_ = false;
    if (type != MD_BLOCK_TH && type != MD_BLOCK_TD && type != MD_BLOCK_TR && type != MD_BLOCK_THEAD)
      open_ = false;
  }

  void enclose(MD_SPANTYPE type, int depth) {
    if (type == MD_SPAN_EM || type == MD_SPAN_STRONG) strong_ += depth;
    if (type == MD_SPAN_CODE) code_ += depth;
    if (type == MD_SPAN_IMG) pictures_ += depth;
  }

  void add(MD_TEXTTYPE type, std::string_view words) {
    if (pictures_ > 0) return;
    if (!open_) open({});
    Block& block = blocks_.back();
    if (block.kind == BlockKind::code) {
      block.code += words;
    } else if (type == MD_TEXT_SOFTBR || type == MD_TEXT_BR) {
      append_run(block.text, " ");
    } else if (block.kind == BlockKind::table) {
      // The library leaves the backslash in front of a pipe within code.
      std::string cell(words);
      for (std::size_t at = 0; code_ > 0 && (at = cell.find("\\|", at)) != std::string::npos; ++at)
        cell.erase(at, 1);
      append_run(block.rows.back().back(), cell);
    } else {
      append_run(block.text, words);
    }
  }

  void append_run(RichText& text, std::string_view words) const {
    const Emphasis emphasis = in_title_ || (strong_ > 0 && code_ == 0) ? Emphasis::strong
                              : code_ > 0                              ? Emphasis::code
                                                                       : Emphasis::none;
    if (text.empty() || text.back().emphasis != emphasis) text.push_back({{}, emphasis});
    text.back().text += words;
  }

  void open(Block block) {
    blocks_.push_back(std::move(block));
    open_ = true;
  }

  std::vector<Block> blocks_;
  bool open_ = false;                             // the last block takes text; else text begins a paragraph
  std::vector<std::optional<unsigned>> numbers_;  // of the lists that are open: that of the next item
  int strong_ = 0, code_ = 0, pictures_ = 0;      // how deep the text is in each
  bool in_title_ = false;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<Block> markdown_blocks(std::string_view markdown) { return BlockReader().read(markdown); }

// A line that begins as an item or a table does is text within a heading, which a '#' at its end would close.
RichText rich_text(std::string_view line) {
  std::string text = "# " + std::string(line);
  std::ranges::replace(text, '\n', ' ');
  if (text.ends_with('#')) text.insert(text.find_last_not_of('#') + 1, "\\");
  std::vector<Block> blocks = markdown_blocks(text);
  return blocks.empty() ? RichText() : std::move(blocks.front().text);
}

// --- Writes blocks as lines.

std::string plain_text(const RichText& text) {
  std::string words;
  for (const TextRun& run : text) words += run.text;
  return words;
}

namespace {

// A user's own lesson can hold anything.
std::string shown(const RichText& text) { return safe_display(plain_text(text)); }

// The last column is filled to what is left of the line.
std::string table_text(const Block& block, std::size_t columns) {
  constexpr std::size_t kGap = 2, kLeast = 24;
  std::vector<std::size_t> widths;
  for (const auto& row : block.rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], display_width(shown(row[i])));
    }
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kGap;
  const std::size_t room = std::max(columns > before ? columns - before : 0, kLeast);
  std::string text;
  for (const auto& row : block.rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string cell = shown(row[i]);
      line += cell + std::string(widths[i] - display_width(cell) + kGap, ' ');
    }
    const std::string last = row.empty() ? "" : wrapped(shown(row.back()), "", room);
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
      for (const std::string_view line : lines_of(block.code)) text += "    " + safe_display(line) + "\n";
    } else if (block.kind == BlockKind::table) {
      text += table_text(block, columns);
    } else if (block.kind == BlockKind::heading && bold) {
      text += "\033[1m" + shown(block.text) + "\033[0m\n";
    } else if (item) {
      text += wrapped(block.mark + " " + shown(block.text), "  ", columns);
    } else {
      text += wrapped(shown(block.text), "", columns);
    }
    if (!item) text += "\n";
  }
  if (in_list) text += "\n";
  return text;
}

// --- Writes blocks as elements.

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

// --- Breaks lines between words.

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
