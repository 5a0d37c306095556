// Runs the GPU tests of the program that this is linked into.
#pragma once

#include <string>

namespace loadline::gpu {

// The manifest of Mesa's software driver; "" where it is not installed.
std::string software_driver();

// Flags are GoogleTest's. Without a driver chosen by VK_ICD_FILENAMES the tests run on the software driver if
// it is installed; with LOADLINE_TEST_ANY_GPU in the environment, on the machine's best device. With
// LOADLINE_TEST_WITHOUT_LAYER they also run where the validation layer is not installed; tests of the layer
// itself are skipped then. Returns the exit code.
int run_tests(int argc, char** argv);

}  // namespace loadline::gpu
