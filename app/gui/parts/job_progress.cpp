// A job whose bytes went down is another job: its rate begins anew.
#include "app/gui/parts/job_progress.h"

#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace loadline::gui {

bool JobProgress::draw(const Ui& ui, const JobView& job) {
  const bool stops = progress_with_stop(ui, job.fraction);
  if (job.done < rated_) rate_.reset();
  rated_ = job.done;
  const double bytes_per_second = rate_.add(job.done);
  if (job.total == 0) {
    muted(ui, "Preparing");
    return stops;
  }
  std::string line = fmt::format("{} of {}", format_bytes(job.done), format_bytes(job.total));
  if (bytes_per_second > 0)
    line += fmt::format(
        ", {}, {} left", format_rate(bytes_per_second),
        format_seconds(static_cast<double>(job.total - std::min(job.done, job.total)) / bytes_per_second));
  muted(ui, line);
  return stops;
}

}  // namespace loadline::gui
