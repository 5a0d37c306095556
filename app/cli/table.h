// Plain tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace loadline::cli {

enum class Align { left, right };

// Columns as wide as their widest cell, two spaces apart; the header row is bold where `colour`.
// Cells hold text that safe_display has passed.
class Table {
 public:
  Table(std::vector<std::string> header, std::vector<Align> alignment)
      : header_(std::move(header)), alignment_(std::move(alignment)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(bool colour) const;

 private:
  std::vector<std::string> header_;
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace loadline::cli
