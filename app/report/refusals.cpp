// Groups reasons in the order of their first occurrence.
#include "app/report/refusals.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {

std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reasons;
  for (const Refusal& refusal : refusals) {
    auto same =
        std::ranges::find_if(reasons, [&](const auto& reason) { return reason.first == refusal.why; });
    if (same == reasons.end()) same = reasons.insert(same, {refusal.why, {}});
    std::vector<std::string_view>& ids = same->second;
    if (std::ranges::find(ids, refusal.method) == ids.end()) ids.push_back(refusal.method);
  }
  std::string text;
  for (const auto& [why, ids] : reasons)
    text += fmt::format("{} {}: {}.\n", fmt::join(ids, ", "), cannot, why);
  return text;
}

}  // namespace loadline::report
