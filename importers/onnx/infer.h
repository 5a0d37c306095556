// Shape inference by the onnx library, in a process of its own that may die.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace loadline {

struct InferenceLimits {
  std::chrono::milliseconds time{5000};
  std::uint64_t memory = std::uint64_t{1} << 30;       // beyond what this process has
  std::uint64_t most_model = std::uint64_t{64} << 20;  // bytes; a larger model is not tried
  std::uint64_t most_answer = std::uint64_t{64} << 20;
};

struct Inference {
  std::string model;    // a ModelProto with the value_info and output of graphs only; empty after a failure
  std::string failure;  // why there is none: "it took more than 5 s"; empty if there is one
};

// The library reads the model with little suspicion: it divides by strides of zero, recurses through
// functions that call each other, takes what memory it likes. So a forked child runs it, with limits of
// time, memory and core dumps, and the answer, which is as little to be trusted as the model, comes back
// over a pipe. The child can reach neither files nor the network (confine.h). Never throws for what the child
// does. The checker is not used.
//
// Cost: about 8 ms, which the library takes to set up its operators, and, for fork(), 0.07 ms per MiB that
// this process has resident (measured on Debian 12).
//
// fork() in a program with threads: the child touches nothing but its own copy of the heap (glibc's malloc
// is usable after fork), the library and the pipe; whatever else might block it ends with the time limit.
Inference infer_shapes(std::string_view model, const InferenceLimits& limits);

}  // namespace loadline
