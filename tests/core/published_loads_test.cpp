// Peaks of loads that others have measured and published.
#include "core/forward/config_graph.h"
#include "core/forward/presets.h"
#include "core/plan/projection.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A notebook that loads GPT-2 XL in six ways prints 6.4, 12.8, 6.7, 12.8, 6.4 and 6.4 "GB" (GiB) of
// torch.cuda.max_memory_allocated(), which counts blocks of the caching allocator.
TEST(PublishedLoads, SixWaysToLoadGpt2Xl) {
  const MetaGraph graph = config_graph(find_preset("gpt2-xl-notebook")->config_json, "config.json");
  EXPECT_NEAR(static_cast<double>(storage_bytes(graph)) / kGiB, 6.290, 0.0005);
  struct Row {
    const char* method;
    double allocated;  // GiB, as modelled; the notebook prints one digit
  };
  for (const Row& row :
       {Row{"to_device", 6.416}, Row{"state_dict", 12.832}, Row{"sequential", 6.715},
        Row{"meta_map_location", 12.832}, Row{"mmap_assign", 6.416}, Row{"per_tensor", 6.416}}) {
    const Timeline timeline =
        project(graph, find_method(row.method), find_order("file"), {.allocator = AllocatorModel::torch})
            .timeline;
    ASSERT_TRUE(timeline.allocated_peak) << row.method;
    EXPECT_NEAR(static_cast<double>(*timeline.allocated_peak) / kGiB, row.allocated, 0.001) << row.method;
    EXPECT_GE((*timeline.reserved_peak)[index(Space::device)], *timeline.allocated_peak) << row.method;
    EXPECT_GE(*timeline.allocated_peak, timeline.peaks[index(Space::device)].bytes) << row.method;
  }
}

}  // namespace
}  // namespace loadline
