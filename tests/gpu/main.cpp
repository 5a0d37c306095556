// The GPU tests as a program.
#include "tests/gpu/run_tests.h"

int main(int argc, char** argv) { return loadline::gpu::run_tests(argc, argv); }
