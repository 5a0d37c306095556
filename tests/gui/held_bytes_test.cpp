// Bytes in memory at a time cursor that jumps about, against a run from the beginning.
#include "app/gui/state/load/load.h"
#include "app/gui/state/workspace.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"

#include <map>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

// Of the whole model, from the beginning.
PerSpace<std::uint64_t> arrived(const Model& model, const Projection& projection, std::size_t last) {
  std::map<BlockId, std::uint64_t> written;
  for (std::size_t i = 0; i <= last; ++i) {
    const Step& step = projection.plan.steps[i];
    if (step.verb == Verb::free) written.erase(step.block);
    if (step.verb == Verb::copy) written[step.block] += step.written();
  }
  PerSpace<std::uint64_t> held = {};
  for (const auto& [id, bytes] : written) {
    const Block& block = projection.plan.block(id);
    if (!block.storage || block.bytes == 0) continue;
    for (std::size_t i = 0; i < model.graph->tensors.size(); ++i)
      if (model.graph->tensors[i].storage == *block.storage)
        held[index(block.space)] += static_cast<std::uint64_t>(
            static_cast<double>(model.bytes[i]) *
            (static_cast<double>(std::min(bytes, block.bytes)) / static_cast<double>(block.bytes)));
  }
  return held;
}

// Of blocks that hold tensors.
PerSpace<std::uint64_t> written_to_blocks(const Projection& projection, std::size_t last) {
  std::map<BlockId, std::uint64_t> written;
  for (std::size_t i = 0; i <= last; ++i) {
    const Step& step = projection.plan.steps[i];
    if (step.verb == Verb::free) written.erase(step.block);
    if (step.verb == Verb::copy) written[step.block] += step.written();
  }
  PerSpace<std::uint64_t> sum = {};
  for (const auto& [id, bytes] : written)
    if (const Block& block = projection.plan.block(id); block.storage)
      sum[index(block.space)] += std::min(bytes, block.bytes);
  return sum;
}

TEST(HeldBytes, FollowTheCursorEitherWay) {
  Workspace workspace("");
  HeldBytes held;
  for (const MetaGraphPtr& graph : {llama_70b_graph(), encoded_graph(), tiny_graph()}) {
    workspace.show(graph, "");
    for (const char* const method : {"state_dict", "staged_ring", "mmap_copy", "layer_streaming"}) {
      workspace.document().set_option("method", method);
      settle(workspace);
      const Document& document = workspace.document();
      if (!document.projection.value()) continue;
      const std::size_t steps = document.projection.value()->plan.steps.size();
      for (const std::size_t tenth : {0u, 3u, 4u, 9u, 10u, 2u, 7u, 6u, 0u, 1u, 10u}) {
        const std::size_t step = steps * tenth / 10;
        held.move_to(document.model, document.projection.value(), step);
        const std::size_t last = std::min(step, steps - 1);
        EXPECT_EQ(held.at(kRootNode), arrived(*document.model, *document.projection.value(), last))
            << method << " at " << step;
        EXPECT_EQ(held.arrived(), written_to_blocks(*document.projection.value(), last))
            << method << " at " << step;
        EXPECT_EQ(held.step(), last);
      }
    }
  }
  held.clear();
  EXPECT_TRUE(held.empty());
}

}  // namespace
}  // namespace loadline::gui
