// Rehearsed loads compared with their projections: figures, SVG and HTML.
#pragma once

#include "core/load/methods.h"
#include "core/load/rehearse.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

inline constexpr std::size_t kRehearsedColumns = 480;  // points per curve

// One rehearsed method in one order. Keeps figures and curves only, not the plan and the samples.
struct RehearsedRow {
  const Method* method = nullptr;
  std::string order = {};
  ProcessMemory projected = {}, measured = {};
  PageCacheUse page_cache = {};
  double seconds = 0;
  std::size_t samples = 0;
  std::vector<CounterCurve> curves = {};  // parallel to kMemoryCounters
  std::size_t steps = 0;
  // Samples whose counter is above the projected peak by more than near_enough() allows.
  struct Beyond {
    std::size_t samples = 0;
    std::size_t first_step = 0;
  };
  std::vector<Beyond> beyond = {};  // parallel to kMemoryCounters

  // Whether every counter is within 2 % or 16 MiB of its projection. Absent if no counter was projected or
  // measured at 16 MiB or more, since then the comparison would always succeed.
  std::optional<bool> agrees() const;
  // Whether the curves of counter number `counter` are worth showing.
  bool shows(std::size_t counter) const;
};
RehearsedRow rehearsed_row(const Method& method, std::string order, const Plan& plan,
                           const HostMeasurement& measurement);

// Whether both figures are so small that the comparison would always succeed.
bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured);
bool near_enough(std::uint64_t projected, std::uint64_t measured);
// The maximum of both curves.
std::uint64_t most_of(const CounterCurve& curve);

struct Rehearsal {
  const MetaGraph& graph;
  bool cold = false;
  std::vector<RehearsedRow> rows = {};
  struct Refused {
    const Method* method = nullptr;
    std::string order = {};
    std::string why = {};
  };
  std::vector<Refused> refused = {};
};

// All rows as one SVG picture on a light ground.
std::string rehearsal_svg(const Rehearsal& rehearsal);
// The picture and `text` as one self-contained HTML page.
std::string rehearsal_page(const Rehearsal& rehearsal, std::string_view text);

}  // namespace loadline::report
