// How the Run:ai streamer divides its limit into requests (runai-model-streamer 0.17, _ring_sizing).
#pragma once

#include <cstdint>
#include <span>

namespace loadline {

// A request holds whole tensors, at most `bytes` unless a single one is larger; `count` are in flight.
struct RunaiBuffers {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};
// `sizes` of the tensors in load order. A limit above their sum leaves every request in flight; a limit of 0
// reads one tensor of the largest size at a time.
RunaiBuffers runai_buffers(std::span<const std::uint64_t> sizes, std::uint64_t limit);

}  // namespace loadline
