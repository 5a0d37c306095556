// One pass over the values for the rows, one over the operators for the curves.
#include "app/gui/panels/lifetimes_data.h"

#include "app/gui/panels/operator_rows.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/meta_text.h"

#include <algorithm>

namespace loadline::gui {
namespace {

void add_row(PassData& data, PassRow row) {
  LaneRows& lane = data.lanes[static_cast<std::size_t>(row.lane)];
  lane.most_bytes = std::max(lane.most_bytes, row.bytes);
  lane.bytes += row.bytes;
  lane.spans.push_back({static_cast<double>(row.ops.first), static_cast<double>(row.ops.end)});
  lane.rows.push_back(row);
}

void add_rows(PassData& data) {
  const ForwardScene& scene = *data.scene;
  for (const ForwardScene::WeightUse& use : scene.weights)
    add_row(data, {PassLane::weights, static_cast<std::uint32_t>(use.tensor),
                   tensor_bytes(*scene.graph, scene.graph->tensor(use.tensor)), use.ops});
  const auto value = [&](PassLane lane, ValueId id, OpRange ops) {
    const std::uint64_t bytes = data.figures ? data.figures->sizes[index(id)].value_or(0) : 1;
    if (bytes > 0) add_row(data, {lane, static_cast<std::uint32_t>(id), data.figures ? bytes : 0, ops});
  };
  for (const auto& [id, ops] : scene.cache) value(PassLane::cache, id, ops);
  for (const ValueId id : scene.activations) value(PassLane::activations, id, scene.model.lives[index(id)]);
  for (const ValueId id : scene.temporaries) value(PassLane::temporaries, id, scene.model.lives[index(id)]);
}

// The sums from the bottom. A lane that does not count has the curve of the lane below it.
void add_curves(PassData& data, bool everything) {
  const std::vector<LaneBytes>& usage = data.figures->usage;
  for (std::size_t i = 0; i < usage.size(); ++i) {
    const std::array<std::uint64_t, kPassLanes> parts = {everything ? data.weight_bytes : 0,
                                                         everything ? usage[i].cache : 0,
                                                         usage[i].activations, usage[i].temporaries};
    double sum = 0;
    for (std::size_t lane = 0; lane < kPassLanes; ++lane) {
      sum += static_cast<double>(parts[lane]);
      data.curves[lane].push_back({static_cast<double>(i), sum});
    }
    data.most_everything = std::max(data.most_everything, sum);
  }
  data.most_passing = static_cast<double>(data.figures->peak.bytes);
}

}  // namespace

std::shared_ptr<const PassData> pass_data(std::shared_ptr<const ForwardScene> scene,
                                          std::shared_ptr<const ForwardFigures> figures, bool everything) {
  auto data = std::make_shared<PassData>();
  data->scene = std::move(scene);
  data->figures = std::move(figures);
  data->length = static_cast<double>(data->scene->forward()->ops.size());
  data->weight_bytes = data->scene->tree.nodes.front().weight_bytes;
  add_rows(*data);
  if (data->figures) add_curves(*data, everything);
  return data;
}

std::vector<PassRow> alive_rows(const PassData& data, std::uint32_t op) {
  // what it uses, which may lie between the first and the last use of the tensor only
  std::vector<bool> used(data.scene->graph->tensors.size(), false);
  for (const TensorId id : data.scene->forward()->ops[op].weights) used[index(id)] = true;
  std::vector<PassRow> alive;
  for (const PassLane lane :
       {PassLane::activations, PassLane::temporaries, PassLane::cache, PassLane::weights}) {
    const std::size_t first = alive.size();
    for (const PassRow& row : data.lanes[static_cast<std::size_t>(lane)].rows)
      if (lane == PassLane::weights ? used[row.id] : row.ops.first <= op && op < row.ops.end)
        alive.push_back(row);
    std::stable_sort(alive.begin() + static_cast<std::ptrdiff_t>(first), alive.end(),
                     [](const PassRow& a, const PassRow& b) { return a.bytes > b.bytes; });
  }
  return alive;
}

std::string_view row_name(const PassData& data, const PassRow& row) {
  constexpr std::size_t kMost = 300;
  if (row.lane == PassLane::weights)
    return beginning(data.scene->graph->tensor(TensorId{row.id}).name, kMost);
  return beginning(data.scene->forward()->value(ValueId{row.id}).name, kMost);
}

std::string row_shape(const PassData& data, const PassRow& row) {
  if (row.lane == PassLane::weights) {
    const Tensor& tensor = data.scene->graph->tensor(TensorId{row.id});
    return shape_text(tensor) + " " + std::string(dtype_info(tensor.dtype).name);
  }
  const ForwardGraph& forward = *data.scene->forward();
  const Value& value = forward.value(ValueId{row.id});
  std::string text = sides_text(forward, ValueId{row.id});
  if (value.dtype) text += " " + std::string(dtype_info(*value.dtype).name);
  return text;
}

}  // namespace loadline::gui
