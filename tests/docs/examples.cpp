// Cuts Markdown into examples and compares outputs line by line.
#include "tests/docs/examples.h"

#include <algorithm>
#include <cstdlib>

namespace loadline::testing {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool is_wildcard(std::string_view line) { return line == "..."; }

// What stands at the end of a line does not show.
std::string_view shown(std::string_view line) { return line.substr(0, line.find_last_not_of(" \t") + 1); }

bool match_from(const std::vector<std::string_view>& expected, std::size_t e,
                const std::vector<std::string_view>& output, std::size_t o) {
  if (e == expected.size()) return o == output.size();
  if (is_wildcard(expected[e])) {
    for (std::size_t skip = o; skip <= output.size(); ++skip)
      if (match_from(expected, e + 1, output, skip)) return true;
    return false;
  }
  return o < output.size() && shown(expected[e]) == shown(output[o]) &&
         match_from(expected, e + 1, output, o + 1);
}

}  // namespace

std::vector<Example> examples_of(const std::string& file, std::string_view text) {
  std::vector<Example> examples;
  bool inside = false;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t next = std::min(end + 1, text.size());
    ++number;
    if (line.starts_with("```")) {
      inside = !inside && line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      examples.push_back({file, number, std::string(line.substr(2)), {}, next, next, 0});
    } else if (inside && !examples.empty()) {
      Example& example = examples.back();
      if (line.starts_with("[exit "))
        example.exit = std::atoi(std::string(line.substr(6)).c_str());
      else
        example.expected.append(line).append("\n");
      example.last = next;
    }
    at = next;
  }
  return examples;
}

bool matches(std::string_view expected, std::string_view output) {
  return match_from(lines_of(expected), 0, lines_of(output), 0);
}

std::string updated(std::string_view expected, std::string_view output) {
  const std::vector<std::string_view> old = lines_of(expected);
  const auto wildcard = std::find_if(old.begin(), old.end(), is_wildcard);
  if (wildcard == old.end()) return std::string(output);
  // the lines before the first wildcard are renewed; those behind it stay for a person to look at
  std::string text;
  const std::vector<std::string_view> now = lines_of(output);
  for (std::size_t i = 0;
       i < std::min<std::size_t>(static_cast<std::size_t>(wildcard - old.begin()), now.size()); ++i)
    text.append(now[i]).append("\n");
  for (auto line = wildcard; line != old.end(); ++line) text.append(*line).append("\n");
  return text;
}

}  // namespace loadline::testing
