// Examples in Markdown: blocks of commands with the output that they must have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::testing {

// One command of a ```console block: "$ loadline ...", its output below, and "[exit N]" at the end where it
// must fail. A line "..." stands for any number of lines.
struct Example {
  std::string file;
  std::size_t line = 0;   // of the command, from 1
  std::string command;    // without "$ "
  std::string expected;   // lines, each ended; without the exit line
  std::size_t first = 0;  // byte range of `expected` and the exit line in the text
  std::size_t last = 0;
  int exit = 0;
};
std::vector<Example> examples_of(const std::string& file, std::string_view text);

// Whether `output` is what `expected` says.
bool matches(std::string_view expected, std::string_view output);
// `output` in the place of `expected`, as long as no line of that was "..."; those stay and swallow what they
// stand for where the lines around them still match.
std::string updated(std::string_view expected, std::string_view output);

}  // namespace loadline::testing
