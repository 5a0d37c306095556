// Checks before an upload or a conversion: does the model fit on the device, and how large is the new file?
#pragma once

#include "app/gui/state/model/model.h"
#include "core/gpu/device_info.h"
#include "core/io/file_system.h"
#include "core/load/answer/projection.h"
#include "core/plan/timeline.h"
#include "exporters/convert.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline::gui {

// Why the uploader would refuse, in the uploader's words; empty if the device can take the upload. Uses the
// device's free memory when it was listed. `system` is the available memory of the machine, if known.
std::string upload_misfit(const Projection& projection, const MetaGraph& graph, const gpu::DeviceInfo& device,
                          std::optional<std::uint64_t> system);

// Why this load cannot map the model's files; empty if it maps no files, or if all weights have plain
// encoding.
std::string mapping_misfit(const Model& model, const Projection& projection);
// Why the weights cannot all be read, so that neither load nor conversion is possible; empty if they can.
std::string reading_misfit(const Model& model);
// Why the model can only be inspected, and its weights not be used; empty if they can.
std::string use_misfit(const Model& model);

}  // namespace loadline::gui
