// loadline devices: the GPUs, and why one is chosen.
#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "core/base/text.h"

#ifdef LOADLINE_HAS_GPU
#include "core/gpu/device_info.h"
#endif

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

#ifdef LOADLINE_HAS_GPU

Json heap_json(const gpu::DeviceHeap& heap) {
  Json json = {{"bytes", heap.bytes}, {"flags", Json::array()}};
  if (heap.device_local) json["flags"].push_back("device_local");
  if (heap.host_visible) json["flags"].push_back("host_visible");
  if (heap.budget) json["budget"] = *heap.budget;
  return json;
}

Json device_json(const gpu::DeviceInfo& device, bool chosen, const std::vector<std::string>& reasons) {
  Json json = {{"index", device.index},
               {"name", json_text(device.name)},
               {"type", gpu::device_type_name(device.type)},
               {"vendor", device.vendor},
               {"driver", json_text(device.driver)},
               {"api_version", gpu::version_text(device.api_version)},
               {"heaps", Json::array()},
               {"max_allocation", device.max_allocation},
               {"unified", device.unified},
               {"extensions",
                {{"VK_EXT_memory_budget", device.memory_budget},
                 {"VK_EXT_external_memory_host", device.external_memory_host}}},
               {"timeline_semaphore", device.timeline_semaphore},
               {"chosen", chosen},
               {"reasons", reasons}};
  for (const gpu::DeviceHeap& heap : device.heaps) json["heaps"].push_back(heap_json(heap));
  return json;
}

std::string memory_cell(const gpu::DeviceInfo& device) {
  const gpu::DeviceHeap* const heap = gpu::device_heap(device);
  if (heap == nullptr) return "-";
  return device.type == gpu::DeviceType::cpu ? "the system's" : format_bytes(heap->bytes);
}

std::string available_cell(const gpu::DeviceInfo& device) {
  const gpu::DeviceHeap* const heap = gpu::device_heap(device);
  return heap != nullptr && heap->budget ? format_bytes(*heap->budget) : "-";
}

int devices(const Context& context) {
  const std::vector<gpu::DeviceInfo> found = gpu::list_devices();
  const gpu::DeviceChoice choice = gpu::choose_device(found);
  if (context.json) {
    Json json = {{"devices", Json::array()}};
    for (std::size_t i = 0; i < found.size(); ++i)
      json["devices"].push_back(device_json(found[i], choice.chosen == i, choice.reasons[i]));
    print_json(json);
    return kDone;
  }
  Table table({"", "index", "device", "type", "Vulkan", "memory", "available", "largest block", "why"},
              {Align::left, Align::right, Align::left, Align::left, Align::left, Align::right, Align::right,
               Align::right, Align::left});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const gpu::DeviceInfo& device = found[i];
    std::string why;
    for (const std::string& reason : choice.reasons[i]) why += (why.empty() ? "" : "; ") + reason;
    table.row({choice.chosen == i ? "*" : "", fmt::format("{}", device.index), safe_display(device.name, 60),
               std::string(gpu::device_type_name(device.type)), gpu::version_text(device.api_version),
               memory_cell(device), available_cell(device), format_bytes(device.max_allocation), why});
  }
  fmt::print("{}", table.text(context.colour));
  return kDone;
}

#else

int devices(const Context&) {
  throw Error(ErrorCode::unsupported, "built without Vulkan: there are no devices");
}

#endif

}  // namespace

Action setup_devices(CLI::App&) {
  return [](Context& context) { return devices(context); };
}

}  // namespace loadline::cli
