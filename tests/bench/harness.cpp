// Timing and printing of benchmarks.
#include "tests/bench/harness.h"

#include "core/base/text.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fmt/core.h>

namespace loadline::bench {

std::vector<Result> measure(const std::vector<Case>& cases, const Rounds& rounds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<std::vector<double>> seconds(cases.size());
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  const auto begin = Clock::now();
  for (int round = rounds.warm_up ? -1 : 0; round < rounds.most; ++round) {
    if (round >= rounds.least && since(begin) > rounds.seconds) break;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      cases[i].before();
      const auto start = Clock::now();
      cases[i].run();
      const double taken = since(start);
      cases[i].after();
      if (round >= 0) seconds[i].push_back(taken);
    }
  }
  std::vector<Result> results;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    results.push_back({cases[i].name, seconds[i][seconds[i].size() / 2], seconds[i].front(),
                       seconds[i].back(), static_cast<int>(seconds[i].size())});
  }
  return results;
}

std::vector<Result> measure(const std::vector<Case>& cases, int rounds) {
  return measure(cases, Rounds{.most = std::max(rounds, 7)});
}

void print(const std::string& title, const std::vector<Result>& results, std::uint64_t bytes,
           const std::string& table) {
  fmt::print("{}\n", title);
  for (const Result& result : results) {
    record(table.empty() ? title.substr(0, title.find_first_of(":(")) : table, result.name,
           results.front().median / result.median, result.median);
    fmt::print(
        "  {:<44} {:>9}  ({} to {}){}  x{:.2f} of {}\n", result.name, format_seconds(result.median),
        format_seconds(result.least), format_seconds(result.most),
        bytes == 0 ? "" : fmt::format("  {:>10}", format_rate(static_cast<double>(bytes) / result.median)),
        results.front().median / result.median, results.front().name);
  }
}

void record(const std::string& table, const std::string& row, double ratio, double seconds) {
  const char* path = std::getenv("LOADLINE_BENCH_ROWS");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app);
  file << fmt::format("{}\t{}\t{}\t{}\n", table, row, ratio, seconds);
  if (!file.flush()) throw std::runtime_error(fmt::format("cannot write to {}", path));
}

}  // namespace loadline::bench
