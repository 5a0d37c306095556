// Groups reasons in the order in which they come up.
#include "app/report/refusals.h"

#include "app/report/wrap.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {

std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot) {
  constexpr std::size_t kColumns = 100;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reasons;
  for (const Refusal& refusal : refusals) {
    auto same = std::find_if(reasons.begin(), reasons.end(),
                             [&](const auto& reason) { return reason.first == refusal.why; });
    if (same == reasons.end()) same = reasons.insert(same, {refusal.why, {}});
    std::vector<std::string_view>& ids = same->second;
    if (std::find(ids.begin(), ids.end(), refusal.method) == ids.end()) ids.push_back(refusal.method);
  }
  std::string text;
  for (const auto& [why, ids] : reasons)
    text += wrapped(fmt::format("{} {}: {}.", fmt::join(ids, ", "), cannot, why), "", kColumns);
  return text;
}

}  // namespace loadline::report
