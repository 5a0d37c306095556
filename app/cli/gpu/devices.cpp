// loadline devices: lists the GPUs, why one is chosen, and the measured rates of the machine.
#include "app/cli/base/command.h"
#include "app/cli/base/rates.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/system_memory.h"

#ifdef LOADLINE_HAS_GPU
#include "core/gpu/device_info.h"
#include "core/gpu/memory_need.h"
#endif

#include <cstdio>

#include <fmt/core.h>
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
               {"queues", Json::array()},
               {"max_allocation", device.max_allocation},
               {"max_buffer", device.max_buffer},
               {"max_binding", device.max_binding},
               {"max_allocations", device.max_allocations},
               {"unified", device.unified},
               {"mappable", device.mappable},
               {"extensions",
                {{"VK_EXT_memory_budget", device.memory_budget},
                 {"VK_EXT_external_memory_host", device.external_memory_host},
                 {"VK_EXT_memory_priority", device.memory_priority},
                 {"VK_EXT_pageable_device_local_memory", device.pageable_memory}}},
               {"prepack", device.packs},
               {"timeline_semaphore", device.timeline_semaphore},
               {"chosen", chosen},
               {"reasons", reasons}};
  for (const gpu::QueueFamily& family : device.queues)
    json["queues"].push_back({{"family", family.index}, {"kind", gpu::queue_family_words(family)}});
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

// With `without`, a missing GPU driver is no error: there is more than GPUs to ask about.
std::vector<gpu::DeviceInfo> found_devices(bool without) {
  try {
    return gpu::list_devices();
  } catch (const Error& error) {
    if (!without || error.code() != ErrorCode::gpu) throw;
    return {};
  }
}

Json devices_json(bool measure) {
  const std::vector<gpu::DeviceInfo> found = found_devices(measure);
  const gpu::DeviceChoice choice = gpu::choose_device(found);
  Json json = Json::array();
  for (std::size_t i = 0; i < found.size(); ++i)
    json.push_back(device_json(found[i], choice.chosen == i, choice.reasons[i]));
  return json;
}

std::string devices_text(const Context& context, bool measure) {
  const std::vector<gpu::DeviceInfo> found = found_devices(measure);
  const gpu::DeviceChoice choice = gpu::choose_device(found);
  Table table({"", "index", "device", "type", "Vulkan", "memory", "available", "largest block", "why"},
              {kLeft, kRight, kLeft, kLeft, kLeft, kRight, kRight, kRight, kLeft});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const gpu::DeviceInfo& device = found[i];
    std::string why;
    for (const std::string& reason : choice.reasons[i]) why += (why.empty() ? "" : "; ") + reason;
    table.row({choice.chosen == i ? "*" : "", fmt::format("{}", device.index), safe_display(device.name, 60),
               std::string(gpu::device_type_name(device.type)), gpu::version_text(device.api_version),
               memory_cell(device), available_cell(device), format_bytes(gpu::largest_piece(device, 1)),
               why});
  }
  std::string text = table.text(context.color);
  if (const std::string hidden = gpu::hidden_gpu_text(found); !hidden.empty()) text += "\n" + hidden + "\n";
  return text;
}

#else

void require_vulkan(bool measure) {
  if (!measure) throw Error(ErrorCode::unsupported, "built without Vulkan: there are no devices");
}

Json devices_json(bool measure) {
  require_vulkan(measure);
  return Json::array();
}

std::string devices_text(const Context&, bool measure) {
  require_vulkan(measure);
  return "Built without Vulkan: there are no devices.\n";
}

#endif

int devices(const Context& context, const MeasureArguments& arguments) {
  if (context.json) {
    Json json = {{"devices", devices_json(arguments.measure)}};
    if (arguments.measure) json["rates"] = measure_json(measure_rates(context, arguments));
    print_json(json);
    return kDone;
  }
  fmt::print("{}", devices_text(context, arguments.measure));
  if (arguments.measure) {
    std::fflush(stdout);  // the measurement takes a while
    fmt::print("\n{}", measure_text(context, measure_rates(context, arguments)));
  }
  return kDone;
}

}  // namespace

load::Target this_machine() {
#ifdef LOADLINE_HAS_GPU
  return load::machine_target(gpu::machine_memory(found_devices(true)));  // without a driver: the processor
#else
  return load::machine_target({.system = io::available_system_memory().value_or(0)});
#endif
}

Action setup_devices(CLI::App& app) {
  auto arguments = std::make_shared<MeasureArguments>();
  add_measure_options(app, *arguments);
  return [arguments](Context& context) { return devices(context, *arguments); };
}

}  // namespace loadline::cli
