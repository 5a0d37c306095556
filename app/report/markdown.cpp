// Reads Markdown: lines become blocks, texts of blocks become runs of one emphasis.
#include "app/report/markdown.h"

#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace loadline::report {
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

}  // namespace loadline::report
