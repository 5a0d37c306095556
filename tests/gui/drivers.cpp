// Environment and libraries of the software driver.
#include "tests/gui/drivers.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <dlfcn.h>

namespace loadline::gui {

void prepare_drivers() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", ignored))
    if (entry.path().filename().string().starts_with("lvp_icd"))
      ::setenv("VK_ICD_FILENAMES", entry.path().c_str(), 0);
  for (const char* library : {"libVkLayer_khronos_validation.so", "libvulkan_lvp.so"})
    ::dlopen(library, RTLD_NOW | RTLD_NODELETE);
}

}  // namespace loadline::gui

// Asked by the leak checker. The layer keeps objects of its own.
extern "C" const char* __lsan_default_suppressions() { return "leak:libVkLayer_khronos_validation.so\n"; }

// Asked by ThreadSanitizer, which sees none of the driver's own atomics and condition variables.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libvulkan_lvp.so\nrace:libVkLayer_khronos_validation.so\ndeadlock:libVkLayer_khronos_"
         "validation.so\n";
}
