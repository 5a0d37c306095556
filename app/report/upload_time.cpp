// Words for two times and the rates behind one of them.
#include "app/report/upload_time.h"

#include "app/report/error_percent.h"
#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline::report {

std::string upload_time_text(double projected, double measured) {
  return fmt::format("{} projected, {} measured ({:+.1f} %).", format_seconds(projected),
                     format_seconds(measured), error_percent(projected, measured));
}

std::string upload_rates_text(const std::optional<MeasuredRates>& rates, std::string_view device) {
  std::string text = rates_line(rates);
  if (!rates)
    text += " `loadline devices --measure` measures this machine's.";
  else if (!rates->device.empty() && rates->device != device)
    text += fmt::format(" The device's rates are those of {}.", safe_display(rates->device, 60));
  return text + " Files that the page cache holds come faster than projected.";
}

}  // namespace loadline::report
