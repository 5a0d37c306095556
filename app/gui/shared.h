// What every document of the window uses: background jobs, notices, devices, and what figures depend on.
#pragma once

#include "app/gui/jobs.h"
#include "app/gui/latest.h"
#include "app/gui/notices.h"
#include "core/forward/assets.h"
#include "core/gpu/device_info.h"
#include "core/load/rates.h"
#include "core/load/targets.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

struct Shared {
  // Opening must not wait behind an upload, and planning not behind an open.
  static constexpr unsigned kWorkers = 3;

  Jobs jobs{kWorkers};  // first: everything that asks them something goes before they do
  Notices notices;
  std::shared_ptr<const ForwardAssets> assets;
  std::shared_ptr<const std::vector<Target>> targets;  // never null
  // Times are estimated with them from the next plan on; absent: assumed rates.
  std::optional<MeasuredRates> rates;
  Latest<std::vector<gpu::DeviceInfo>> devices;  // of this machine; null before somebody looked
  std::string device;                            // the one that uploads go to; empty: the best one
  std::uint64_t documents = 0;                   // how many were made: the id of the newest
};

}  // namespace loadline::gui
