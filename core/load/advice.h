// The cheapest change that makes a load fit: found by projecting what could be changed, not by rules of
// thumb.
#pragma once

#include "core/load/advice_candidates.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct AdvisedLoad {
  std::vector<std::string> changes = {};  // for people; what takes most first
  // Options and values that differ from what was asked for, method and order always among them; and the
  // whole request.
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
  std::optional<AdvisedLoad> nearest = {};  // where nothing fits: what is least over its budgets
  std::size_t tried = 0;                    // loads that were projected
  bool complete = true;                     // false: the search ended at its limit of projections
};

inline constexpr std::size_t kMostAdvice = 4;

// Tries one change, and two while nothing fits; a method that keeps nothing on the device only after that,
// alone and then with another change. Ranks by what the changes take (takes_less), then by the modelled time,
// then by `held`. Of loads whose changes are of the same kinds at most two are told, of different methods.
// Candidates that device_lower_bound() rules out are not projected, unless nothing fits and they could be the
// nearest. At most `most_projections` in all, `threads` of them at a time. Progress counts projections.
// Throws Error{usage | cancelled}.
Advice advise(const MetaGraph& graph, const AdviceRequest& request, Progress& progress,
              std::size_t threads = 2, std::size_t most_projections = 600);

}  // namespace loadline
