// Lays out tables, quotes words.
#include "app/cli/base/terminal.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::cli {

// --- Lays out tables.

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

std::string Table::text(bool color) const {
  std::vector<std::size_t> widths(header_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], display_width(cells[i]));
  };
  measure(header_);
  for (const auto& cells : rows_) measure(cells);

  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string gap(widths[i] - display_width(cells[i]), ' ');
      out += i == 0 ? "" : "  ";
      out += alignment_[i] == kRight ? gap + cells[i] : cells[i] + gap;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::string out = color ? "\033[1m" + line(header_) + "\033[0m" : line(header_);
  for (const auto& cells : rows_) out += line(cells);
  return out;
}

// --- Quotes words for a shell.

std::string shell_word(std::string_view raw) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  };
  if (!raw.empty() && std::ranges::all_of(raw, plain)) return std::string(raw);
  std::string word;
  if (safe_display(raw) == raw) {
    for (const char c : raw) word += c == '\'' ? "'\\''" : std::string(1, c);
    return "'" + word + "'";
  }
  for (const char c : raw)
    word += plain(c) ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  return "$'" + word + "'";
}

}  // namespace loadline::cli
