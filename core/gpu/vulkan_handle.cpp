// Names of Vulkan result codes.
#include "core/gpu/vulkan_handle.h"

#include "core/base/error.h"

namespace loadline::gpu {

std::string_view result_name(VkResult result) {
  constexpr std::pair<VkResult, std::string_view> kNames[] = {
      {VK_SUCCESS, "VK_SUCCESS"},
      {VK_TIMEOUT, "VK_TIMEOUT"},
      {VK_INCOMPLETE, "VK_INCOMPLETE"},
      {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
      {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
      {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
      {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
      {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
      {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
      {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
      {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
      {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
      {VK_ERROR_FRAGMENTATION, "VK_ERROR_FRAGMENTATION"},
      {VK_ERROR_INVALID_EXTERNAL_HANDLE, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
  };
  for (const auto& [known, name] : kNames)
    if (known == result) return name;
  return "an unexpected result";
}

void check(VkResult result, std::string_view what) {
  if (result >= 0) return;
  // drivers that find memory for work when it is submitted say this too if there is none
  const std::string_view hint =
      result == VK_ERROR_DEVICE_LOST
          ? " (the device stopped answering, or its memory ran out; nothing on it can be used)"
          : "";
  throw Error(ErrorCode::gpu, "cannot {}: {} ({}){}", what, result_name(result), static_cast<int>(result),
              hint);
}

}  // namespace loadline::gpu
