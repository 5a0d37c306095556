// Finds the smallest change that makes a load fit its budgets. Candidate changes are projected, not judged by
// rules of thumb.
#pragma once

#include "core/load/answer/advice.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct AdvisedLoad {
  std::vector<std::string> changes = {};  // for display; the largest change first
  // `settings`: ids and values of the options that differ from the original request; always includes method
  // and order. `request`: the whole changed request.
  std::vector<std::pair<std::string_view, std::string>> settings = {};
  LoadRequest request = {};
  const Method* method = nullptr;
  std::string order = {};
  PerSpace<std::uint64_t> peaks = {};
  std::uint64_t held = 0;  // the peak of device, host and staging together
  double seconds = 0;
  BudgetVerdict verdict = {};
};

struct Advice {
  std::vector<AdvisedLoad> loads = {};      // all fit; best first
  std::optional<AdvisedLoad> nearest = {};  // if nothing fits: the load least over its budgets
  std::size_t tried = 0;                    // number of loads projected
  bool complete = true;                     // false: the search ended at its limit of projections
};

inline constexpr std::size_t kMostAdvice = 4;

// Searches for loads that fit: first one change, then two changes if nothing fits. Methods that keep no
// weights on the device (streaming) come next, alone and, if still nothing fits, with another change. Ranks
// by the size of the changes (takes_less), then by modelled time, then by `held`. Of loads whose changes are
// of the same kinds, lists at most two, each of a different method. Candidates that device_lower_bound()
// rules out are projected only if nothing fits and they could be the nearest. Runs at most `most_projections`
// projections, `threads` at a time. Progress counts projections. Throws Error{usage | cancelled}.
Advice advise(const MetaGraph& graph, const AdviceRequest& request, Progress& progress,
              std::size_t threads = 2, std::size_t most_projections = 600);

}  // namespace loadline
