// The curve of a row, reduced to the columns that plots draw, made before its projection is destroyed.
#pragma once

#include "core/load/answer/projection.h"
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
  std::size_t slices = 0;  // number of slices that list the blocks alive; 0: none
};

// A stack of spaces in one memory. With discrete memory the device is above the water line and the host's
// spaces are below it; unified memory is a single stack.
struct CurveBand {
  unsigned mask = 0;
  std::vector<view::UsageColumn> columns = {};
  std::uint64_t most = 0;                // greatest sum of the spaces
  std::vector<std::string> slices = {};  // for each slice the blocks alive at its highest moment; escaped
};

struct RowCurve {
  view::CurveAxis axis = view::CurveAxis::seconds;
  double end = 0;  // seconds or steps
  std::vector<CurveBand> bands = {};
  double peak_place = 0;  // position of the leading peak, from 0 to 1
  double loaded_place = 1;
  bool has_pass = false;  // a forward pass follows; the curve ends with the first token
};

// The spaces of a band in stacking order, from the water line outwards.
std::vector<Space> stack_of(unsigned mask);
std::string_view space_title(Space space);
// The class and the colour of a space in style sheets.
std::string_view space_class(Space space);
std::vector<unsigned> band_masks(MemoryKind memory);

using BlockName = std::function<std::string(BlockId)>;
// `peak_step` is the step that first reaches the leading peak.
RowCurve row_curve(const Projection& projection, MemoryKind memory, const CurveOptions& options,
                   std::size_t peak_step, const BlockName& name);

}  // namespace loadline::report
