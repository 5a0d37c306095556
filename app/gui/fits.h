// Whether what a button would do has room: on a device for an upload, on a disk for a conversion.
#pragma once

#include "app/gui/model.h"
#include "core/gpu/device_info.h"
#include "core/io/file_system.h"
#include "core/load/projection.h"
#include "core/plan/timeline.h"
#include "exporters/convert.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::gui {

// Why the uploader would refuse, in its words, from what the device had when it was listed; empty if
// it fits. `system` is the memory that the machine has left, if it says.
std::string upload_misfit(const Timeline& timeline, const gpu::DeviceInfo& device,
                          std::optional<std::uint64_t> system);

// Why this load of the model cannot be done from its files; empty if it needs no mapped files, or if all
// weights lie as they are.
std::string mapping_misfit(const Model& model, const Projection& projection);
// Why no load and no conversion can have all weights; empty if they can be read.
std::string reading_misfit(const Model& model);
// Why the model can be looked at only, whatever one would do with its weights; empty if it can be used.
std::string use_misfit(const Model& model);

// Whether a conversion to that format takes the option. What no exporter lists is not about the format.
bool takes(const Exporter& exporter, std::string_view option);

// What exporters write tensors of a type as when asked for `outtype`: what cannot be cast stays.
DType converted_dtype(DType dtype, std::optional<DType> outtype);
// The tensor bytes of a type, and of the model, once converted; headers come on top.
std::uint64_t converted_bytes(const DTypeShare& share, std::optional<DType> outtype);
std::uint64_t converted_bytes(const Model& model, std::optional<DType> outtype);

}  // namespace loadline::gui
