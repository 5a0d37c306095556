// The lanes of a forward pass: every row, and what is listed at an operator.
#include "app/gui/panels/forward.h"
#include "tests/gui/sample_graphs.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::shared_ptr<const PassData> data_of(const char* preset, const char* profile, bool everything) {
  Progress progress;
  auto scene = make_forward_scene(preset_graph(preset), built_in_assets(), {.profile = profile}, progress);
  auto figures = std::make_shared<const ForwardFigures>(*forward_figures(scene->model, 1, 64, 32));
  return pass_data(std::move(scene), std::move(figures), everything);
}

const LaneRows& lane(const PassData& data, PassLane which) {
  return data.lanes[static_cast<std::size_t>(which)];
}

TEST(PassData, rows_at_every_operator_add_up_to_its_usage) {
  for (const char* profile : {"fused", "hf_eager", "ggml"}) {
    const auto data = data_of("demo", profile, false);
    for (std::uint32_t op = 0; op < data->figures->usage.size(); ++op) {
      LaneBytes sum;
      for (const PassRow& row : alive_rows(*data, op)) {
        if (row.lane == PassLane::activations) sum.activations += row.bytes;
        if (row.lane == PassLane::temporaries) sum.temporaries += row.bytes;
        if (row.lane == PassLane::cache) sum.cache += row.bytes;
      }
      EXPECT_EQ(sum.activations, data->figures->usage[op].activations) << profile << " " << op;
      EXPECT_EQ(sum.temporaries, data->figures->usage[op].temporaries) << profile << " " << op;
      EXPECT_EQ(sum.cache, data->figures->usage[op].cache) << profile << " " << op;
    }
  }
}

TEST(PassData, rows_begin_in_order_and_have_spans) {
  const auto data = data_of("llama-3-8b", "hf_eager", false);
  for (const LaneRows& rows : data->lanes) {
    ASSERT_EQ(rows.rows.size(), rows.spans.size());
    EXPECT_TRUE(std::is_sorted(rows.spans.begin(), rows.spans.end(),
                               [](const auto& a, const auto& b) { return a.from < b.from; }));
  }
  EXPECT_EQ(lane(*data, PassLane::weights).bytes, data->weight_bytes);
  EXPECT_EQ(lane(*data, PassLane::cache).bytes, data->figures->peak.cache_bytes);
}

TEST(PassData, an_operator_lists_the_weights_that_it_uses) {
  const auto data = data_of("demo", "fused", false);
  const ForwardGraph& forward = *data->scene->forward();
  for (std::uint32_t op = 0; op < forward.ops.size(); ++op) {
    const auto rows = alive_rows(*data, op);
    const auto used = std::count_if(rows.begin(), rows.end(),
                                    [](const PassRow& row) { return row.lane == PassLane::weights; });
    EXPECT_EQ(static_cast<std::size_t>(used), forward.ops[op].weights.size()) << op;
  }
}

TEST(PassData, the_curve_can_stand_on_weights_and_cache) {
  const auto passing = data_of("demo", "fused", false);
  const auto everything = data_of("demo", "fused", true);
  const auto top = [](const PassData& data) {
    double most = 0;
    for (const view::CurvePoint& point : data.curves.back()) most = std::max(most, point.y);
    return most;
  };
  EXPECT_EQ(top(*passing), static_cast<double>(passing->figures->peak.bytes));
  EXPECT_GE(top(*everything), static_cast<double>(everything->weight_bytes + passing->figures->peak.bytes));
}

TEST(PassData, lifetimes_are_shown_where_sizes_cannot_be) {
  Progress progress;
  auto scene = make_forward_scene(preset_graph("demo"), built_in_assets(), {}, progress);
  const auto data = pass_data(scene, nullptr, true);
  EXPECT_FALSE(lane(*data, PassLane::activations).rows.empty());
  EXPECT_EQ(lane(*data, PassLane::activations).bytes, 0u);
  EXPECT_TRUE(data->curves.back().empty());
}

}  // namespace
}  // namespace loadline::gui
