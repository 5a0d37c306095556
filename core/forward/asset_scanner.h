// The common base of the parsers of asset lines; for expression_parser.cpp and op_line.cpp only.
#pragma once

#include "core/forward/expression.h"

#include <cstddef>
#include <string_view>

namespace loadline {

// A position in one line of an asset.
class AssetScanner {
 public:
  AssetScanner(std::string_view text, const AssetPlace& place) : text_(text), place_(place) {}

  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  void skip_space() {
    while (!at_end() && text_[at_] == ' ') ++at_;
  }
  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> detail, const Values&... values) const {
    place_.moved(at_).fail(fmt::vformat(detail, fmt::make_format_args(values...)));
  }

 protected:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
  }

  std::string_view text_;
  AssetPlace place_;
  std::size_t at_ = 0;
};

}  // namespace loadline
