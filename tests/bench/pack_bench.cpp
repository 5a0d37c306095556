// Arena planning: MiniMalloc's instances at their capacity, another solver beside them, and large problems
// beside TensorFlow Lite's greedy planner.
//   bench_pack [--data FOLDER] [--peer PATH] [--seeds N]
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "tests/bench/pack_forward_bench.h"
#include "tests/packing/guillotine.h"
#include "tests/support/packing.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::tests {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

struct Arguments {
  fs::path data = "tests/packing/data";
  std::string peer = {};
  int seeds = 20;
};

packing::Problem problem_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return packing::read_packing_csv(std::string(std::istreambuf_iterator<char>(in), {}), path.string());
}

double seconds_of(const std::function<void()>& act) {
  const auto begin = Clock::now();
  act();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds that MiniMalloc took on such a machine (one thread, median of 5, version of 2026-04-06).
struct Stored {
  char name;
  double seconds;
};
constexpr Stored kStored[] = {{'A', 4.308}, {'B', 3.317}, {'C', 0.582}, {'D', 2.267},
                              {'E', 3.137}, {'F', 4.375}, {'G', 0.931}, {'H', 1.444},
                              {'I', 3.270}, {'J', 0.739}, {'K', 0.518}};
constexpr std::uint64_t kCapacity = 1048576;

// Our time for one instance; validated.
double solve(const packing::Problem& problem, std::uint64_t capacity, unsigned threads, std::uint64_t seed) {
  packing::PackOptions options;
  options.capacity = {capacity};
  options.threads = threads;
  options.seed = seed;
  options.seconds = 60;
  packing::Packing packing;
  const double seconds = seconds_of([&] { packing = pack(problem, options); });
  if (packing.verdict != packing::Verdict::feasible ||
      packing::find_fault(problem, packing.offsets, options.capacity))
    fmt::print("  NOT SOLVED: seed {}\n", seed);
  return seconds;
}

double run_peer(const std::string& peer, const fs::path& file) {
  const std::string command =
      fmt::format("timeout 60 '{}' --capacity={} --input='{}' --output=/dev/null >/dev/null 2>&1", peer,
                  kCapacity, file.string());
  int code = 0;
  const double seconds = seconds_of([&] { code = std::system(command.c_str()); });
  if (code != 0) fmt::print("  the peer ended with {}\n", code);
  return seconds;
}

void hard_instances(const Arguments& arguments) {
  fmt::print("A-K at capacity {}, {} seeds; MiniMalloc {}\n", kCapacity, arguments.seeds,
             arguments.peer.empty() ? "as stored (another machine of this kind)" : "run beside them");
  std::vector<double> one(static_cast<std::size_t>(arguments.seeds)), two = one;
  double peers = 0;
  fmt::print("  {:>4} {:>8} {:>12} {:>12} {:>12} {:>9}\n", "", "buffers", "one thread", "two threads",
             "MiniMalloc", "ratio");
  for (const Stored& stored : kStored) {
    const fs::path file = arguments.data / "minimalloc" / fmt::format("{}.1048576.csv", stored.name);
    const packing::Problem problem = problem_in(file);
    std::vector<double> a, b;
    for (std::size_t seed = 0; seed < one.size(); ++seed) {
      a.push_back(solve(problem, kCapacity, 1, seed));
      b.push_back(solve(problem, kCapacity, 2, seed));
      one[seed] += a.back();
      two[seed] += b.back();
    }
    const double peer = arguments.peer.empty() ? stored.seconds : run_peer(arguments.peer, file);
    peers += peer;
    fmt::print("  {:>4} {:>8} {:>10.4f} s {:>10.4f} s {:>10.3f} s {:>8.1f}x\n", stored.name,
               problem.buffers.size(), median(a), median(b), peer, peer / median(a));
  }
  const auto line = [&](const char* name, const std::vector<double>& times) {
    fmt::print("  all eleven, {}: median {:.4f} s, least {:.4f}, most {:.4f}; MiniMalloc {:.2f} s: {:.1f}x\n",
               name, median(times), *std::min_element(times.begin(), times.end()),
               *std::max_element(times.begin(), times.end()), peers, peers / median(times));
  };
  line("one thread", one);
  line("two threads", two);
}

void zero_slack() {
  fmt::print("\nzero-slack guillotine cuts at capacity {}\n", kCapacity);
  for (const auto& [count, seeds] :
       {std::pair(250, 10), std::pair(500, 5), std::pair(1000, 5), std::pair(2000, 3)}) {
    std::vector<double> times;
    for (int seed = 0; seed < seeds; ++seed)
      times.push_back(solve(guillotine(static_cast<std::size_t>(count), static_cast<std::uint64_t>(seed)),
                            kCapacity, 1, 1));
    fmt::print("  n = {:>4}: {} instances, together {:.4f} s, most {:.4f} s\n", count, seeds,
               std::accumulate(times.begin(), times.end(), 0.0),
               *std::max_element(times.begin(), times.end()));
  }
}

// Sizes over five decades, mostly short lives, some long ones: as a compiler's buffers are.
packing::Problem mixed(std::size_t count) {
  packing::MixedSequence random(count);
  packing::Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t lower = random.below(count);
    const std::uint64_t most = random.below(20) == 0 ? count / 20 : 1000;
    const std::uint64_t size = (1 + random.below(64)) << random.below(17);
    problem.buffers.push_back({.lower = lower,
                               .upper = lower + 1 + random.below(std::max<std::uint64_t>(most, 1)),
                               .size = size * 64});
  }
  return problem;
}

void large(const std::string& name, const packing::Problem& problem, double seconds) {
  std::uint64_t greedy = 0;
  const double greedy_seconds = seconds_of([&] { greedy = packing::greedy_by_size_height(problem).value(); });
  packing::PackOptions options;
  options.minimize = true;
  options.seconds = seconds;
  const packing::Packing packing = pack(problem, options);
  fmt::print(
      "  {:<12} {:>8} buffers: {:.3f} % over the bound in {:.3f} s by {}{}; greedy by size {:.3f} % in "
      "{:.3f} s\n",
      name, problem.buffers.size(), packing::percent_over(packing.height(), packing.lower_bound()),
      packing.seconds, packing.algorithm, packing.proven_optimal() ? " (optimal)" : "",
      packing::percent_over(greedy, packing.lower_bound()), greedy_seconds);
}

void large_problems(const Arguments& arguments) {
  fmt::print("\nlarge problems, one thread, beside TensorFlow Lite's greedy by size\n");
  for (const auto& [name, seconds] : {std::pair("G_1", 0.15), std::pair("resnet50", 0.15),
                                      std::pair("pangu_2.6B", 0.15), std::pair("S_1", 2.0)})
    large(name, problem_in(arguments.data / "idealloc" / fmt::format("{}.csv", name)), seconds);
  large("mixed", mixed(100'000), 10);
  large("mixed", mixed(1'000'000), 60);
}

int main_with(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--data") arguments.data = words[i + 1];
    if (word == "--peer") arguments.peer = words[i + 1];
    if (word == "--seeds") arguments.seeds = std::max(1, std::atoi(words[i + 1]));
  }
  if (fs::exists(arguments.data))
    hard_instances(arguments);
  else
    fmt::print("no {}: the published instances are left out\n", arguments.data.string());
  zero_slack();
  bench::pack_forward_passes();
  if (fs::exists(arguments.data)) large_problems(arguments);
  return 0;
}

}  // namespace
}  // namespace loadline::tests

int main(int count, char** words) { return loadline::tests::main_with(count, words); }
