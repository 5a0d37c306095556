// What the lanes of a forward pass show: a row for each value, its bytes, and the curve above them.
#pragma once

#include "app/gui/panels/forward_controls.h"
#include "core/view/curves.h"
#include "core/view/lanes.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace loadline::gui {

// What a row stands for: a tensor of the graph or a value of its forward pass.
struct PassRow {
  PassLane lane = PassLane::activations;
  std::uint32_t id = 0;  // TensorId or ValueId
  std::uint64_t bytes = 0;
  OpRange ops = {};
};

struct LaneRows {
  std::vector<PassRow> rows;
  std::vector<view::Span> spans;  // parallel to rows
  std::uint64_t most_bytes = 0;   // of a row
  std::uint64_t bytes = 0;        // of all rows
};

// Of one scene with one set of sizes; x is the operator's position, which lasts from i to i + 1.
struct PassData {
  std::shared_ptr<const ForwardScene> scene;
  std::shared_ptr<const ForwardFigures> figures;
  std::array<LaneRows, kPassLanes> lanes;  // by PassLane; values of unknown or no size have no row
  // From the bottom: activations, and temporaries on top; with everything, weights and cache below them.
  std::array<std::vector<view::CurvePoint>, kPassLanes> curves;  // by PassLane, each the sum up to it
  double most_passing = 0, most_everything = 0;
  std::uint64_t weight_bytes = 0;
  double length = 0;  // operators
};

// `figures` may be null: then there are lifetimes without bytes.
std::shared_ptr<const PassData> pass_data(std::shared_ptr<const ForwardScene> scene,
                                          std::shared_ptr<const ForwardFigures> figures, bool everything);

// The rows alive during an operator, largest first in each lane; of the weights those that it uses.
std::vector<PassRow> alive_rows(const PassData& data, std::uint32_t op);

std::string_view row_name(const PassData& data, const PassRow& row);
// "[B, S, 768] F32", as the file or the architecture says it.
std::string row_shape(const PassData& data, const PassRow& row);

}  // namespace loadline::gui
