// Runs another program and reads what it prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::bench {

struct Child {
  std::vector<std::string> words = {};  // the program, by path or name, and its arguments
  std::vector<std::pair<std::string, std::string>> set = {};  // in the environment
  std::vector<std::string> unset = {};
};

// Calls `line` for each line of its output and errors, without '\n'. Returns how it ended: "" for exit code
// 0, else words: "ended with code 1", "was ended by signal 11", "cannot be started: ...".
std::string run_child(const Child& child, const std::function<void(std::string_view)>& line);

}  // namespace loadline::bench
