// Loads rehearsed in ordinary memory, laid over their projection: figures, SVG and HTML.
#pragma once

#include "core/load/methods.h"
#include "core/load/rehearse.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

inline constexpr std::size_t kRehearsedColumns = 480;  // of a row's curves

// One method in one order, rehearsed; its plan and samples are reduced to what is shown.
struct RehearsedRow {
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
  // Whether a counter, by its position, has anything to show.
  bool shows(std::size_t counter) const;
};
RehearsedRow rehearsed_row(const Method& method, std::string order, const Plan& plan,
                           const HostMeasurement& measurement);

// Below that projection and count agree whatever they are.
bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured);
bool near_enough(std::uint64_t projected, std::uint64_t measured);
// The highest of both curves.
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

// The rows as one picture, on a light ground.
std::string rehearsal_svg(const Rehearsal& rehearsal);
// The picture and `text` as one page that needs nothing else.
std::string rehearsal_page(const Rehearsal& rehearsal, std::string_view text);

}  // namespace loadline::report
