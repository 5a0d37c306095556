// Interleaved timing: every round runs each case once, so that a machine that drifts hits all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace loadline::bench {

struct Case {
  std::string name;
  std::function<void()> run;
  std::function<void()> before = [] {};  // not timed
};

struct Result {
  std::string name;
  double median = 0;  // seconds
  double least = 0;
  double most = 0;
};

// Runs all cases once untimed, then `rounds` times (at least 7), each time in another order: what a case
// leaves for the disk to do meets a different one each time.
std::vector<Result> measure(const std::vector<Case>& cases, int rounds = 9);

// A table: median, spread, rate where `bytes` is not 0, and the ratio to the first case, which is
// the baseline; the ceiling is marked by its name.
void print(const std::string& title, const std::vector<Result>& results, std::uint64_t bytes);

}  // namespace loadline::bench
