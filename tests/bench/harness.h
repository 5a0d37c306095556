// Interleaved timing: every round runs each case once, so that a machine that drifts hits all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace loadline::bench {

struct Case {
  std::string name;
  std::function<void()> run;
  std::function<void()> before = [] {};  // not timed
  std::function<void()> after = [] {};   // not timed
};

struct Result {
  std::string name;
  double median = 0;  // seconds
  double least = 0;
  double most = 0;
  int rounds = 0;
};

// How often the cases run: `most` times, or until `seconds` are over and they have run `least` times.
struct Rounds {
  int most = 9;
  int least = 7;
  double seconds = std::numeric_limits<double>::infinity();
  bool warm_up = true;  // once more before, untimed
};

// Runs all cases, each time in another order: what a case leaves for the disk to do meets a different one
// each time.
std::vector<Result> measure(const std::vector<Case>& cases, const Rounds& rounds);
// The same, at least 7 times.
std::vector<Result> measure(const std::vector<Case>& cases, int rounds = 9);

// A table: median, spread, rate where `bytes` is not 0, and the ratio to the first case, which is
// the baseline; the ceiling is marked by its name. The ratios are recorded too, under `table`, by default the
// title up to a colon or a parenthesis: what follows there may change from run to run.
void print(const std::string& title, const std::vector<Result>& results, std::uint64_t bytes,
           const std::string& table = {});

// Adds a row to the file that the environment names (LOADLINE_BENCH_ROWS), if it does: `./dev bench` keeps
// them. A ratio of 2 is twice as fast as the baseline.
void record(const std::string& table, const std::string& row, double ratio, double seconds);

}  // namespace loadline::bench
