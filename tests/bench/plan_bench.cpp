// Projecting the loads of a model with 91,991 tensors: one method in one order, and every method in every
// order as `plan --method all --order all` does.
#include "core/forward/model/known_models.h"
#include "core/load/answer/rows.h"
#include "core/load/order/optimal_order.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::tests {
namespace {

// With files, so that orders differ in what they read.
graph::MetaGraph sharded_model(const std::string& id) {
  const testing::TemporaryFolder folder;
  Progress progress;
  const forward::Preset& preset = *forward::find_preset(id);
  const std::string path = folder / id;
  exporters::synthesize(forward::config_graph(preset.config_json, id), path,
                        {.seed = {}, .max_shard_bytes = preset.max_shard_bytes, .overwrite = false},
                        progress);
  return importers::open_model(path, {});
}

void one_method(const graph::MetaGraph& graph) {
  for (const char* id : {"per_tensor", "state_dict", "staged_ring"}) {
    const load::Method& method = load::find_method(id);
    const load::StorageOrder order = load::find_order("file").make(graph);
    const plan::Plan plan = load::make_plan(graph, method, order, {});
    Progress progress;
    std::uint64_t sum = 0;
    const auto results = bench::measure(
        {{"plan, check, dry run, peaks, reads",
          [&] { sum += load::project(graph, method, "file", order, {}, progress).timeline.unified.bytes; }},
         {"the plan alone", [&] { sum += load::make_plan(graph, method, order, {}).steps.size(); }},
         {"the optimal order", [&] { sum += load::optimal_order(graph, method, {}).order.size(); }},
         {"ceiling: one sum over the steps",
          [&] {
            sum = std::accumulate(plan.steps.begin(), plan.steps.end(), sum,
                                  [](std::uint64_t s, const plan::Step& step) { return s + step.bytes; });
          }}},
        21);
    bench::print(fmt::format("{}: {} blocks, {} steps (checksum {})", id, plan.blocks.size(),
                             plan.steps.size(), sum % 1000),
                 results, 0);
  }
}

void all_methods(const graph::MetaGraph& graph) {
  std::vector<const load::Method*> rows;
  for (const load::Method& method : load::methods()) rows.push_back(&method);
  std::vector<load::OrderChoice> columns;
  for (const load::Order& order : load::orders()) columns.push_back({std::string(order.id), &order, {}});
  std::atomic<std::uint64_t> sum = 0, taken = 0;
  const load::RowTaker taker = {
      [&](std::size_t, const load::Projection& p) { sum += p.timeline.unified.bytes, ++taken; },
      [&](std::size_t, const Error&) { ++taken; }};
  const auto with = [&](std::size_t threads) {
    return [&, threads] {
      Progress progress;
      load::compare(graph, rows, {.orders = columns}, nullptr, taker, progress, threads);
    };
  };
  const plan::Plan plan =
      load::make_plan(graph, load::find_method("per_tensor"), load::find_order("file").make(graph), {});
  const auto sum_per_row = [&] {
    for (std::size_t row = 0; row < rows.size() * columns.size(); ++row)
      sum += std::accumulate(plan.steps.begin(), plan.steps.end(), sum.load(),
                             [](std::uint64_t s, const plan::Step& step) { return s + step.bytes; });
  };
  const auto results = bench::measure({{"one thread", with(1)},
                                       {"two threads", with(2)},
                                       {"ceiling: one sum over a plan's steps for each row", sum_per_row}},
                                      7);
  bench::print(fmt::format("every method in every order ({} and {}, checksum {}, {} rows)", rows.size(),
                           columns.size(), sum % 1000, taken.load()),
               results, 0);
}

}  // namespace
}  // namespace loadline::tests

int main() {
  using namespace loadline;
  using namespace loadline::tests;
  const graph::MetaGraph graph = sharded_model("deepseek-v3");
  fmt::print("deepseek-v3: {} tensors in {} files\n", graph.tensors.size(), graph.files.size());
  one_method(graph);
  all_methods(graph);
}
