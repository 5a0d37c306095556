// Every family against the figures that are published of its models (families.csv; "facts" where they are in
// the notes on architectures).
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace loadline {
namespace {

struct Row {
  std::string preset;
  std::uint64_t parameters = 0, elements = 0, bytes = 0, tensors = 0, operators = 0, cache = 0;
};

std::vector<Row> rows() {
  std::ifstream file(LOADLINE_GOLDEN "/../forward/families.csv");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Row row;
    std::getline(fields, row.preset, ',');
    for (std::uint64_t* number :
         {&row.parameters, &row.elements, &row.bytes, &row.tensors, &row.operators, &row.cache}) {
      std::string field;
      std::getline(fields, field, ',');
      *number = std::stoull(field);
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(Families, HaveTheirPublishedFigures) {
  const std::vector<Row> all = rows();
  ASSERT_GE(all.size(), 30u);
  for (const Row& row : all) {
    const Preset* const preset = find_preset(row.preset);
    ASSERT_NE(preset, nullptr) << row.preset;
    const MetaGraph graph = config_graph(preset->config_json, row.preset);
    std::uint64_t stored = 0;
    for (const Tensor& tensor : graph.tensors) stored += elements(tensor);
    EXPECT_EQ(stored, row.elements) << row.preset;
    EXPECT_EQ(storage_bytes(graph), row.bytes) << row.preset;
    EXPECT_EQ(graph.tensors.size(), row.tensors) << row.preset;
    const auto assets = built_in_assets();
    const ForwardModel model = forward_model(graph, *assets, assets->profile("fused"));
    ASSERT_EQ(model.source, ForwardSource::architecture) << row.preset << ": " << model.remark;
    EXPECT_EQ(model.graph->ops.size(), row.operators) << row.preset;
    EXPECT_EQ(model.cache_bytes_per_token, row.cache) << row.preset;
    EXPECT_EQ(parameters(*model.bound, graph), row.parameters) << row.preset;
    EXPECT_TRUE(model.bound->claims.unclaimed.empty()) << row.preset;
    // every profile can run every family
    for (const Profile& profile : assets->profiles) {
      if (!runs(profile, graph)) continue;
      const auto figures = forward_figures(forward_model(graph, *assets, profile), 2, 16, 3);
      ASSERT_TRUE(figures) << row.preset << " " << profile.id;
      EXPECT_GT(figures->peak.bytes, 0u);
      EXPECT_EQ(figures->peak.unknown, 0u) << row.preset << " " << profile.id;
      EXPECT_GE(figures->reserved, figures->peak.bytes);
    }
  }
}

}  // namespace
}  // namespace loadline
