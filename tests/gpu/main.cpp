// The GPU tests as a program.
#include "tests/gpu/device_test.h"

int main(int argc, char** argv) { return loadline::gpu::run_tests(argc, argv); }
