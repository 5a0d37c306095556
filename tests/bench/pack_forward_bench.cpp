// Arenas for forward passes of every architecture: gap to the lower bound and time, beside TensorFlow Lite's
// greedy planner.
#include "tests/bench/pack_forward_bench.h"

#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "tests/support/packing.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::bench {
namespace {

constexpr std::uint64_t kSequence = 2048;
constexpr double kSeconds = 5;

struct Line {
  double gap = 0;  // percent over the lower bound
  double greedy = 0;
  double seconds = 0;
  bool proved = false;
};

Line pack_pass(const std::string& name, const std::string& profile, const packing::Problem& problem) {
  packing::PackOptions options;
  options.minimize = true;
  options.seconds = kSeconds;
  const packing::Packing packing = tests::pack(problem, options);
  if (const auto fault = packing::find_fault(problem, packing.offsets)) fmt::print("  FAULT: {}\n", *fault);
  const std::uint64_t bound = packing.lower_bound();
  const Line line{packing::percent_over(packing.height(), bound),
                  packing::percent_over(packing::greedy_by_size_height(problem).value(), bound),
                  packing.seconds, packing.proven_optimal()};
  fmt::print("  {:<24} {:<9} {:>6} {:>14} {:>8.4f} {:>8.3f} s {:>9.3f}  {}\n", name, profile,
             problem.buffers.size(), bound, line.gap, line.seconds, line.greedy,
             line.proved ? "least" : packing.algorithm);
  std::fflush(stdout);
  return line;
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void summary(const std::vector<Line>& lines) {
  const auto told = [&](const char* what, double Line::*figure) {
    std::vector<double> values;
    for (const Line& line : lines) values.push_back(line.*figure);
    fmt::print("  {}: median {:.4f}, worst {:.4f}\n", what, middle(values),
               *std::max_element(values.begin(), values.end()));
  };
  const auto proved = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.proved; });
  fmt::print("  {} of {} proved to be the least\n", proved, lines.size());
  told("gap in %", &Line::gap);
  told("seconds", &Line::seconds);
  told("greedy by size, gap in %", &Line::greedy);
}

}  // namespace

void pack_forward_passes() {
  fmt::print("\nforward passes at batch 1, S = {}, at most {} s each\n", kSequence, kSeconds);
  fmt::print(
      "  S: new tokens; T5 has as many to read as to write, Whisper's are what it writes, CLIP's and "
      "SigLIP's\n"
      "  are of the text tower, ViT has none\n");
  fmt::print("  {:<24} {:<9} {:>6} {:>14} {:>8} {:>10} {:>9}\n", "model", "profile", "values", "bound, bytes",
             "gap %", "time", "greedy %");
  const auto assets = forward::built_in_assets();
  std::vector<Line> lines;
  std::set<std::string> families, notes;
  for (const testing::DescribedModel& described : testing::described_models())
    for (const char* profile : {"fused", "hf_eager"}) {
      const forward::ForwardModel model =
          forward::forward_model(described.graph, *assets, assets->profile(profile));
      lines.push_back(pack_pass(described.name, profile, testing::pass_problem(model, 1, kSequence)));
      families.insert(model.family);
      for (const std::string& note : forward::pass_notes(model, 1, kSequence, 0))
        notes.insert(fmt::format("{}: {}", model.family, note));
    }
  summary(lines);
  fmt::print("  {} of {} families\n", families.size(), assets->architectures.size());
  for (const std::string& note : notes) fmt::print("  {}\n", note);
}

}  // namespace loadline::bench
