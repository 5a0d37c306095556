// The data of the lifetimes plot: a row with its bytes for each value, in lanes, and the curve above the
// lanes.
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

// A row: a tensor of the graph, or a value of its forward pass.
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

// The data for one scene with one set of sizes. On the x axis, operator i lasts from i to i + 1.
struct PassData {
  std::shared_ptr<const ForwardScene> scene;
  std::shared_ptr<const ForwardFigures> figures;
  std::array<LaneRows, kPassLanes> lanes;  // by PassLane; values of unknown or no size have no row
  // The stack from the bottom: activations, then temporaries; with `everything`, weights and cache below
  // them.
  std::array<std::vector<view::CurvePoint>, kPassLanes> curves;  // by PassLane, each the sum up to it
  double most_passing = 0, most_everything = 0;
  std::uint64_t weight_bytes = 0;
  double length = 0;  // operators
};

// With null `figures`, the rows have lifetimes but no bytes.
std::shared_ptr<const PassData> pass_data(std::shared_ptr<const ForwardScene> scene,
                                          std::shared_ptr<const ForwardFigures> figures, bool everything);

// The rows alive during an operator, largest first in each lane. Of the weights, only those that it uses.
std::vector<PassRow> alive_rows(const PassData& data, std::uint32_t op);

std::string_view row_name(const PassData& data, const PassRow& row);
// "[B, S, 768] F32", as the file or the architecture says it.
std::string row_shape(const PassData& data, const PassRow& row);

}  // namespace loadline::gui
