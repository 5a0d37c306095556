// Measured loads beside their projections: counters, times, SVG and HTML.
#pragma once

#include "core/load/measure/rehearse.h"
#include "core/load/request/method.h"
#include "core/load/request/rates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- Loads that were run, compared with their projections: figures, SVG and HTML.

inline constexpr std::size_t kMeasuredColumns = 480;  // points per curve

// A count of bytes while a step ran.
struct StepCount {
  std::size_t step = 0;
  std::uint64_t bytes = 0;
};

// What a plan holds and what was counted while it ran, over its steps: the maximum in each column.
struct CounterCurve {
  std::vector<std::uint64_t> projected, measured;
  std::uint64_t most() const;
};

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
MeasuredCounter measured_counter(std::uint64_t projected, std::span<const plan::UsagePoint> usage,
                                 unsigned spaces, std::span<const StepCount> counted, std::size_t steps);

// One method in one order. Keeps figures and curves only, not the plan and the samples.
struct MeasuredLoad {
  const load::Method* method = nullptr;
  std::string order = {};
  double seconds = 0;
  std::size_t samples = 0;
  std::size_t steps = 0;
  std::vector<MeasuredCounter> counters = {};
  std::optional<load::PageCacheUse> page_cache = {};  // of a rehearsal

  // Whether every counter is within 2 % or 16 MiB of its projection. Absent if no counter was projected or
  // measured at 16 MiB or more, since then the comparison would always succeed.
  std::optional<bool> agrees() const;
};
// Its counters are kMemoryCounters.
MeasuredLoad rehearsed_load(const load::Method& method, std::string order, const plan::Plan& plan,
                            const load::HostMeasurement& measurement);

// Whether both figures are so small that the comparison would always succeed.
bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured);
bool near_enough(std::uint64_t projected, std::uint64_t measured);

struct MeasuredLoads {
  const graph::MetaGraph& graph;
  std::string how = {};  // "loaded in ordinary memory"
  std::vector<MeasuredLoad> rows = {};
  struct Refused {
    const load::Method* method = nullptr;
    std::string order = {};
    std::string why = {};
  };
  std::vector<Refused> refused = {};
};

// All rows as one SVG picture on a light ground. The curves of one counter have one scale.
std::string measured_svg(const MeasuredLoads& loads);
// The picture and `text` as one self-contained HTML page.
std::string measured_page(const MeasuredLoads& loads, std::string_view text);

// --- How far a measured figure is from the projected one.

// In percent of the projected figure; 0 if both are 0, 100 if only the projected one is.
inline double error_percent(double projected, double measured) {
  if (projected == measured) return 0;
  return projected == 0 ? 100 : 100 * (measured / projected - 1);
}
inline double error_percent(std::uint64_t projected, std::uint64_t measured) {
  return error_percent(static_cast<double>(projected), static_cast<double>(measured));
}

// --- The time that an upload should have taken beside the time that it took.

struct UploadTime {
  double measured = 0;           // seconds
  double projected = 0;          // with the files as they lay: in the page cache, or on the disk
  double from_disk = 0;          // projected, as if the page cache held nothing
  std::uint64_t file_bytes = 0;  // of the model
  bool packs = false;            // weights on the device, which is not projected
  bool by_measured_rates = false;
  std::optional<std::uint64_t> cached_bytes = {};  // of these, read from the page cache; absent: not known
};
// Whether an upload to `device` is projected by rates that were measured, and not by assumed ones.
bool measured_for(const std::optional<load::MeasuredRates>& rates, std::string_view device);
// `report`: gpu::UploadReport, of which builds without Vulkan know nothing.
template <typename Report>
UploadTime upload_time(const Report& report, const std::optional<load::MeasuredRates>& rates) {
  return {report.seconds,
          report.expected_seconds,
          report.projected_seconds,
          report.file_bytes,
          report.packs,
          measured_for(rates, report.device),
          report.cached_bytes};
}

// "85.2 ms projected, 66.9 ms measured (-21.5 %)." Without the difference if rates were assumed, or if the
// device packed.
std::string upload_time_text(const UploadTime& time);
// Sentences on the projected time of an upload to `device`: what the page cache held, and the rates.
std::string upload_rates_text(const UploadTime& time, const std::optional<load::MeasuredRates>& rates,
                              std::string_view device);

}  // namespace loadline::report
