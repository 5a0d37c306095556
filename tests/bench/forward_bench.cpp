// What a move of the window's sliders costs: new sizes, lifetimes and peak of a whole model; and what
// choosing another profile does, which lowers the architecture anew.
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lowering.h"
#include "tests/bench/harness.h"

#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace loadline::tests {
namespace {

void run(std::string_view id) {
  const forward::Preset& preset = *forward::find_preset(id);
  const graph::MetaGraph graph = forward::config_graph(preset.config_json, preset.id.data());
  const auto assets = forward::built_in_assets();
  const forward::ForwardModel model = forward::forward_model(graph, *assets, assets->profile("hf_eager"));
  const graph::ForwardGraph& forward = *model.graph;
  std::vector<std::uint64_t> numbers(forward.values.size(), 1);
  std::uint64_t sequence = 1, sum = 0;
  const auto results =
      bench::measure({{"baseline: claims, lowering, then the figures",
                       [&] {
                         const forward::ForwardModel fresh =
                             forward::forward_model(graph, *assets, assets->profile("hf_eager"));
                         sum += forward::forward_figures(fresh, 1, ++sequence, 7)->peak.bytes;
                       }},
                      {"a slider moves: sizes, lifetimes, peak",
                       [&] { sum += forward::forward_figures(model, 1, ++sequence, 7)->peak.bytes; }},
                      {"ceiling: one sum over a number per value",
                       [&] { sum += std::accumulate(numbers.begin(), numbers.end(), sum); }}},
                     21);
  bench::print(fmt::format("{}: {} operators, {} values (checksum {})", id, forward.ops.size(),
                           forward.values.size(), sum % 1000),
               results, 0);
}

}  // namespace
}  // namespace loadline::tests

int main() {
  loadline::tests::run("llama-3-8b");
  loadline::tests::run("deepseek-v3");
}
