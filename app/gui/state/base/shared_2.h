// The services that all documents of the window share: background jobs, notices, devices, assets and targets.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/latest.h"
#include "app/gui/state/base/shared.h"
#include "core/forward/model/known_models.h"
#include "core/gpu/device_info.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/rates.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

struct Shared {
  // Enough that opening a model never waits for an upload, and planning never waits for an opening.
  static constexpr unsigned kWorkers = 3;

  Jobs jobs{kWorkers};  // first member: it is destroyed after everything that posts jobs
  Notices notices;
  std::shared_ptr<const ForwardAssets> assets;
  std::shared_ptr<const std::vector<Target>> targets;  // never null
  // The rates for time estimates, from the next plan on; nothing: assumed rates.
  std::optional<MeasuredRates> rates;
  Latest<std::vector<gpu::DeviceInfo>> devices;  // of this machine; null before the first look-up
  std::string device;                            // the device for uploads; empty: the best one
  std::uint64_t documents = 0;                   // documents made so far: the id of the newest
};

}  // namespace loadline::gui
