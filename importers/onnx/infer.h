// Runs the onnx library's shape inference in a separate process, because it may crash.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace loadline {

struct InferenceLimits {
  std::chrono::milliseconds time{5000};
  std::uint64_t memory = std::uint64_t{1} << 30;       // bytes beyond the use of this process
  std::uint64_t most_model = std::uint64_t{64} << 20;  // bytes; a larger model is not tried
  std::uint64_t most_answer = std::uint64_t{64} << 20;
};

struct Inference {
  std::string model;    // a ModelProto with the value_info and output of graphs only; empty after a failure
  std::string failure;  // why there is no model: "it took more than 5 s"; empty on success
};

// The library is not safe on hostile models: it divides by strides of zero, recurses through functions that
// call each other, and uses unlimited memory. So a forked child runs it, with limits on time, memory and core
// dumps. The child can open neither files nor the network (confine.h). Its answer comes back over a pipe and
// is trusted no more than the model. A failure of the child never throws. The onnx checker is not used.
//
// Cost: about 8 ms for the library to set up its operators, and 0.07 ms for fork() per MiB that this process
// has resident (measured on Debian 12).
//
// fork() in a program with threads: the child touches only its own copy of the heap (glibc's malloc is usable
// after fork), the library and the pipe. If anything else blocks it, the time limit ends it.
Inference infer_shapes(std::string_view model, const InferenceLimits& limits);

}  // namespace loadline
