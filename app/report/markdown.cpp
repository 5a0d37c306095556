// Reads Markdown, writes its blocks, wraps lines.
#include "app/report/markdown.h"

#include "app/report/page_parts.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace loadline::report {

// --- Reads Markdown: lines become blocks, texts of blocks become runs of one emphasis.

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Markup at the beginning of a text: what it encloses, and its length.
struct Markup {
  std::string_view inside;
  std::size_t length = 0;
};

std::optional<Markup> enclosed(std::string_view text, std::string_view mark) {
  if (!text.starts_with(mark)) return std::nullopt;
  const std::size_t end = text.find(mark, mark.size());
  if (end == std::string_view::npos || end == mark.size()) return std::nullopt;
  return Markup{text.substr(mark.size(), end - mark.size()), end + mark.size()};
}

// "*" is multiplication between blanks.
std::optional<Markup> stressed(std::string_view text) {
  if (const auto strong = enclosed(text, "**")) return strong;
  const auto word = enclosed(text, "*");
  if (!word || word->inside.front() == ' ' || word->inside.back() == ' ') return std::nullopt;
  return word;
}

// "[words](place)".
std::optional<Markup> linked(std::string_view text) {
  const std::size_t middle = text.find("](");
  if (!text.starts_with('[') || middle == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find(')', middle);
  if (end == std::string_view::npos) return std::nullopt;
  return Markup{text.substr(1, middle - 1), end + 1};
}

void append_run(RichText& text, std::string_view words, Emphasis emphasis) {
  if (text.empty() || text.back().emphasis != emphasis) text.push_back({{}, emphasis});
  text.back().text += words;
}

// A pipe behind a backslash belongs to a cell.
std::vector<RichText> row_cells(std::string_view line) {
  std::vector<RichText> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      cells.push_back(rich_text(trimmed(cell)));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

// "- " or "12. " before an item; empty for another line.
std::string_view item_mark(std::string_view line) {
  if (line.starts_with("- ")) return line.substr(0, 1);
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  return digits > 0 && line.substr(digits).starts_with(". ") ? line.substr(0, digits + 1)
                                                             : std::string_view{};
}

class BlockReader {
 public:
  std::vector<Block> read(std::string_view markdown) {
    for (const std::string_view line : lines_of(markdown)) read_line(line);
    end_text();
    return std::move(blocks_);
  }

 private:
  void read_line(std::string_view line) {
    in_table_ = in_table_ && line.starts_with('|');
    if (line.starts_with("```")) {
      end_text();
      if (!in_code_) blocks_.push_back({BlockKind::code});
      in_code_ = !in_code_;
    } else if (in_code_) {
      blocks_.back().code.append(line) += '\n';
    } else if (line.empty() || line.starts_with("![")) {
      end_text();
    } else if (line.starts_with('#')) {
      end_text();
      const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
      blocks_.push_back({BlockKind::heading, level, {}, rich_text(trimmed(line.substr(level)))});
    } else if (line.starts_with('|')) {
      end_text();
      read_row(line);
    } else {
      read_words(line);
    }
  }

  void read_row(std::string_view line) {
    if (line.starts_with("|-")) return;  // below the titles
    std::vector<RichText> cells = row_cells(line);
    if (!in_table_) {
      blocks_.push_back({BlockKind::table});
      for (RichText& title : cells)
        for (TextRun& run : title) run.emphasis = Emphasis::strong;
    }
    in_table_ = true;
    blocks_.back().rows.push_back(std::move(cells));
  }

  void read_words(std::string_view line) {
    const std::string_view mark = item_mark(line);
    if (!mark.empty()) {
      end_text();
      open_ = Block{BlockKind::item, 0, std::string(mark)};
    } else if (!open_) {
      open_ = Block{};
    }
    words_ += words_.empty() ? "" : " ";
    words_ += trimmed(line.substr(mark.size()));
  }

  // Of a paragraph or an item.
  void end_text() {
    if (open_) {
      open_->text = rich_text(words_);
      blocks_.push_back(std::move(*open_));
    }
    open_.reset();
    words_.clear();
  }

  std::vector<Block> blocks_;
  std::optional<Block> open_;  // a paragraph or an item; words_ are its lines so far
  std::string words_;
  bool in_code_ = false;
  bool in_table_ = false;
};

}  // namespace

RichText rich_text(std::string_view line) {
  RichText text;
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view rest = line.substr(at);
    if (const auto code = enclosed(rest, "`")) {
      append_run(text, code->inside, Emphasis::code);
      at += code->length;
    } else if (const auto strong = stressed(rest)) {
      append_run(text, strong->inside, Emphasis::strong);
      at += strong->length;
    } else if (const auto link = linked(rest)) {
      for (const TextRun& run : rich_text(link->inside)) append_run(text, run.text, run.emphasis);
      at += link->length;
    } else {
      append_run(text, rest.substr(0, 1), Emphasis::none);
      ++at;
    }
  }
  return text;
}

std::vector<Block> markdown_blocks(std::string_view markdown) { return BlockReader().read(markdown); }

// --- Writes blocks as lines.

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
