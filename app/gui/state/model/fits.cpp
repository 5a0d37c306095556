// Compares peaks with device memory, encodings with the method's needs, and computes converted sizes.
#include "app/gui/state/model/fits.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/cast.h"
#include "core/gpu/memory_need.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

gpu::MemorySupply supply_of(const gpu::DeviceInfo& device, std::optional<std::uint64_t> system) {
  const auto room = [](const gpu::DeviceHeap& heap) { return heap.budget.value_or(heap.bytes); };
  gpu::MemorySupply supply;
  supply.system = system;
  supply.shares_system = device.unified;
  supply.is_system = device.type == gpu::DeviceType::cpu;
  supply.set_aside = device.set_aside;
  const gpu::DeviceHeap* local = gpu::device_heap(device);
  if (local != nullptr) supply.device = room(*local);
  if (supply.is_system && local != nullptr && local->budget) supply.system = local->budget;
  supply.same_heap = true;
  for (const gpu::DeviceHeap& heap : device.heaps) {
    if (&heap == local || !heap.host_visible || heap.device_local) continue;
    supply.same_heap = false;
    supply.staging = std::max(supply.staging, room(heap));
  }
  return supply;
}

}  // namespace

std::string upload_misfit(const Projection& projection, const MetaGraph& graph, const gpu::DeviceInfo& device,
                          std::optional<std::uint64_t> system) {
  try {
    if (gpu::packs_weights(projection.plan)) gpu::require_packing(device);
    gpu::require_fit(gpu::needs_of(projection.timeline), supply_of(device, system), device.name);
    gpu::require_pieces(projection.plan, graph, device, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string mapping_misfit(const Model& model, const Projection& projection) {
  return projection.maps_files ? model.mapping_refusal : "";
}

std::string reading_misfit(const Model& model) {
  for (const EncodingShare& share : model.encodings)
    if (share.encoding == Encoding::unreadable)
      return fmt::format("{} of {} storages cannot be read: quantised blocks in big-endian order",
                         format_grouped(share.storages), format_grouped(model.graph->storages.size()));
  return "";
}

std::string use_misfit(const Model& model) {
  if (model.errors > 0) {
    const auto& notes = model.graph->notes;
    const auto first = std::ranges::find(notes, Severity::error, &Note::severity);
    return first->text + (model.errors > 1 ? fmt::format(" (and {} more errors)", model.errors - 1) : "");
  }
  if (model.shapes_only) return "it has shapes only: no file holds its weights";
  return reading_misfit(model);
}

}  // namespace loadline::gui
