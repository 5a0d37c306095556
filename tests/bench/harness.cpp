// Timing and printing of benchmarks.
#include "tests/bench/harness.h"

#include "core/base/text.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include <fmt/format.h>

namespace loadline::bench {

std::vector<Result> measure(const std::vector<Case>& cases, int rounds) {
  std::vector<std::vector<double>> seconds(cases.size());
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (int round = -1; round < std::max(rounds, 7); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      cases[i].before();
      const auto start = std::chrono::steady_clock::now();
      cases[i].run();
      const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (round >= 0) seconds[i].push_back(taken);
    }
  }
  std::vector<Result> results;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    results.push_back(
        {cases[i].name, seconds[i][seconds[i].size() / 2], seconds[i].front(), seconds[i].back()});
  }
  return results;
}

void print(const std::string& title, const std::vector<Result>& results, std::uint64_t bytes) {
  fmt::print("{}\n", title);
  for (const Result& result : results)
    fmt::print(
        "  {:<44} {:>9}  ({} to {}){}  x{:.2f} of {}\n", result.name, format_seconds(result.median),
        format_seconds(result.least), format_seconds(result.most),
        bytes == 0 ? "" : fmt::format("  {:>10}", format_rate(static_cast<double>(bytes) / result.median)),
        results.front().median / result.median, results.front().name);
}

}  // namespace loadline::bench
