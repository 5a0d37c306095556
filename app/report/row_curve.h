// The curve of a row, reduced while its projection is alive to what plots and pictures draw.
#pragma once

#include "core/load/projection.h"
#include "core/plan/memory_views.h"
#include "core/view/usage_columns.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

struct CurveOptions {
  view::CurveAxis axis = view::CurveAxis::seconds;
  std::size_t columns = 240;
  std::size_t slices = 0;  // with the tensors alive in each; 0: none
};

// What stands together: the spaces of a memory, stacked. With memory of its own the device stands above the
// water line and the host's spaces hang below it; unified memory is one stack.
struct CurveBand {
  unsigned mask = 0;
  std::vector<view::UsageColumn> columns = {};
  std::uint64_t most = 0;                // of the sum
  std::vector<std::string> slices = {};  // what is alive at the highest moment of each; safe to show
};

struct RowCurve {
  view::CurveAxis axis = view::CurveAxis::seconds;
  double end = 0;  // seconds or steps
  std::vector<CurveBand> bands = {};
  double peak_place = 0;  // of the leading peak: from 0 to 1
  double loaded_place = 1;
  bool has_pass = false;  // a forward pass follows: the curve ends with the first token
};

// The spaces of a band from the water line on, in the order they are stacked.
std::vector<Space> stack_of(unsigned mask);
std::string_view space_title(Space space);
std::vector<unsigned> band_masks(MemoryKind memory);

using BlockName = std::function<std::string(BlockId)>;
// `peak_step` is where the leading peak is first reached.
RowCurve row_curve(const Projection& projection, MemoryKind memory, const CurveOptions& options,
                   std::size_t peak_step, const BlockName& name);

}  // namespace loadline::report
