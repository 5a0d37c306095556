// Text for a terminal: tables, and words that are safe to paste into a shell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::cli {

// --- Plain text tables for a terminal.

enum Align : std::uint8_t { kLeft, kRight };

// A size as a cell; "-" for 0.
std::string bytes_cell(std::uint64_t bytes);

// Columns are as wide as their widest cell, two spaces apart; the header row is bold if `color` is set.
// Cells must be escaped by safe_display.
class Table {
 public:
  Table(std::vector<std::string> header, std::vector<Align> alignment)
      : header_(std::move(header)), alignment_(std::move(alignment)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(bool color) const;

 private:
  std::vector<std::string> header_;
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;
};

// --- Command lines for display, safe to paste into a shell.

// `raw` as one word for bash and zsh: unchanged if that is safe, else quoted; characters unsafe for a
// terminal are written as escapes.
std::string shell_word(std::string_view raw);

}  // namespace loadline::cli
