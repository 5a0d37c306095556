// load_file of safetensors with torch, on the file that the uploads were measured with.
#pragma once

#include "tests/gpu_report/report.h"

#include <string>

namespace loadline::bench {

// Runs python3 where it is there, with torch and safetensors and a CUDA device; else says what is absent.
TorchFigures measure_torch(const std::string& path, std::uint64_t bytes, int rounds);

}  // namespace loadline::bench
