// Loads that were run, compared with their projections: figures, SVG and HTML.
#pragma once

#include "core/load/measure/counter_curve.h"
#include "core/load/measure/rehearse.h"
#include "core/load/request/method.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

inline constexpr std::size_t kMeasuredColumns = 480;  // points per curve

// What one counter of memory should have counted during a load, and what it counted.
struct MeasuredCounter {
  std::string_view name = {};                 // for people
  std::string_view id = {};                   // JSON key
  std::uint64_t projected = 0, measured = 0;  // peaks
  bool own_count = false;                     // counted by the program itself: no judge of its projection
  CounterCurve curve = {};
  // Samples above the projected peak by more than near_enough() allows.
  struct Beyond {
    std::size_t samples = 0;
    std::size_t first_step = 0;
  } beyond = {};

  // Whether its curve is worth showing.
  bool shows() const;
};
// Without a name and a key. `steps`: of the plan.
MeasuredCounter measured_counter(std::uint64_t projected, std::span<const UsagePoint> usage, unsigned spaces,
                                 std::span<const StepCount> counted, std::size_t steps);

// One method in one order. Keeps figures and curves only, not the plan and the samples.
struct MeasuredLoad {
  const Method* method = nullptr;
  std::string order = {};
  double seconds = 0;
  std::size_t samples = 0;
  std::size_t steps = 0;
  std::vector<MeasuredCounter> counters = {};
  std::optional<PageCacheUse> page_cache = {};  // of a rehearsal

  // Whether every counter is within 2 % or 16 MiB of its projection. Absent if no counter was projected or
  // measured at 16 MiB or more, since then the comparison would always succeed.
  std::optional<bool> agrees() const;
};
// Its counters are kMemoryCounters.
MeasuredLoad rehearsed_load(const Method& method, std::string order, const Plan& plan,
                            const HostMeasurement& measurement);

// Whether both figures are so small that the comparison would always succeed.
bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured);
bool near_enough(std::uint64_t projected, std::uint64_t measured);

struct MeasuredLoads {
  const MetaGraph& graph;
  std::string how = {};  // "loaded in ordinary memory"
  std::vector<MeasuredLoad> rows = {};
  struct Refused {
    const Method* method = nullptr;
    std::string order = {};
    std::string why = {};
  };
  std::vector<Refused> refused = {};
};

// All rows as one SVG picture on a light ground. The curves of one counter have one scale.
std::string measured_svg(const MeasuredLoads& loads);
// The picture and `text` as one self-contained HTML page.
std::string measured_page(const MeasuredLoads& loads, std::string_view text);

}  // namespace loadline::report
