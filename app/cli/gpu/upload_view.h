// What `upload` says of its loads: text, JSON and curves.
#pragma once

#include "app/cli/base/command.h"
#include "app/report/measured_loads.h"
#include "core/gpu/upload.h"
#include "core/load/request/rates.h"
#include "core/load/request/request.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::cli {

// One load of a resolved request.
struct AskedUpload {
  const LoadRequest& request;
  const Method& method;
  std::string order;
  CostModel costs = {};  // of the projected time
  std::optional<MeasuredRates> rates = {};
};

struct FinishedUpload {
  AskedUpload asked;
  gpu::UploadReport report;
};

Json upload_json(const FinishedUpload& upload);
// All that is known of one load. `validation`: it ran under the validation layer.
std::string upload_text(const Context& context, const FinishedUpload& upload, bool validation);

// The counters of a load: the system's, and the driver's or the uploader's own of the device. `steps`: of its
// plan.
report::MeasuredLoad measured_upload(const AskedUpload& asked, const gpu::UploadReport& report,
                                     std::size_t steps);
// Several loads side by side. `uploads` are those of `loads.rows`.
std::string uploads_text(const Context& context, const report::MeasuredLoads& loads,
                         const std::vector<FinishedUpload>& uploads);
Json uploads_json(const report::MeasuredLoads& loads, const std::vector<FinishedUpload>& uploads);

}  // namespace loadline::cli
