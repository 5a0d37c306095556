// plan --measure: loads run for real in ordinary memory, laid over their projection.
#pragma once

#include "app/cli/command.h"
#include "app/cli/plan_plot.h"
#include "core/load/methods.h"
#include "core/load/rehearse.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::cli {

inline constexpr std::size_t kMeasuredColumns = 480;  // of a row's curves

// One method in one order, measured; its plan and samples are reduced to what is shown.
struct MeasuredRow {
  const Method* method = nullptr;
  std::string order = {};
  ProcessMemory projected = {}, measured = {};
  PageCacheUse page_cache = {};
  double seconds = 0;
  std::size_t samples = 0;
  std::vector<CounterCurve> curves = {};  // parallel to kMemoryCounters
  std::size_t steps = 0;

  // Whether every counter is within 2 % or 16 MiB of what was projected. Absent where nothing of that size
  // was projected or measured: then it would always be.
  std::optional<bool> agrees() const;
};
MeasuredRow measured_row(const Method& method, std::string order, const Plan& plan,
                         const HostMeasurement& measurement);

struct MeasureAnswer {
  const MetaGraph& graph;
  bool cold = false;
  std::vector<MeasuredRow> rows;
  struct Refused {
    const Method* method = nullptr;
    std::string order = {};
    std::string why = {};
  };
  std::vector<Refused> refused;
};

Json measure_json(const MeasureAnswer& answer);
std::string measure_table(const MeasureAnswer& answer, bool colour);
// A plot per row and counter that counted something: the projection as areas, the measurement as points.
std::string measure_plots(const MeasureAnswer& answer, const PlotStyle& style);
// The same as one picture, on a light ground.
std::string measure_svg(const MeasureAnswer& answer);
// Picture and table as one page that needs nothing else.
std::string measure_page(const MeasureAnswer& answer);

}  // namespace loadline::cli
