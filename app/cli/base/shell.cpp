// Quotes words for a shell.
#include "app/cli/base/shell.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::cli {

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
