// Points the Vulkan loader at the software driver, so that every machine runs the same tests.
#include "tests/gpu/run_tests.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

// Keeps the driver and the layer in memory to the end: once unloaded, what they still own looks like
// leaks without a name to the leak checker. Absent libraries do not matter.
void never_unload() {
  for (const char* library : {"libVkLayer_khronos_validation.so", "libvulkan_lvp.so"})
    ::dlopen(library, RTLD_NOW | RTLD_NODELETE);
}

}  // namespace

// Asked by the leak checker. The layer's synchronization validation of submissions keeps cycles of its
// own objects (1.3.239); the driver's is the fence that one test forgets on purpose.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libVkLayer_khronos_validation.so\nleak:libvulkan_lvp.so\n";
}

std::string loadline::gpu::software_driver() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", ignored))
    if (entry.path().filename().string().rfind("lvp_icd", 0) == 0) return entry.path().string();
  return {};
}

int loadline::gpu::run_tests(int argc, char** argv) {
  // LOADLINE_TEST_ANY_GPU runs the same tests on the machine's best device instead
  const std::string driver = software_driver();
  if (!driver.empty() && std::getenv("LOADLINE_TEST_ANY_GPU") == nullptr)
    ::setenv("VK_ICD_FILENAMES", driver.c_str(), 0);
  // hazards between submissions; the layer has no other switch for them
  ::setenv("VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", 0);
  never_unload();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
