// Progress arithmetic and the cancellation error.
#include "core/base/error.h"
#include "core/base/tasks.h"

#include <algorithm>

namespace loadline {

double Progress::fraction() const {
  const std::uint64_t total = total_;
  return total == 0 ? 0.0 : std::min(1.0, static_cast<double>(done_) / static_cast<double>(total));
}

void Progress::check_cancelled() const {
  if (cancelled()) throw Error(ErrorCode::cancelled, "cancelled");
}

}  // namespace loadline
