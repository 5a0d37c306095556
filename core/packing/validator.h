// Checks a packing without knowing how it was made.
#pragma once

#include "core/packing/pack.h"
#include "core/packing/problem.h"

#include <optional>
#include <span>
#include <string>

namespace loadline {

// The first fault of `offsets` (one per buffer), in words; nothing if the packing keeps every rule. Faults
// are: an offset that breaks alignment or pin; a buffer, alive at some tick, that ends past `capacity` (by
// arena; absent: unbounded); members of a group at different offsets; two buffers alive at the same tick that
// share a byte. Sweeps over the ticks: a million buffers take seconds.
std::optional<std::string> find_fault(const Problem& problem, std::span<const std::uint64_t> offsets,
                                      std::span<const std::optional<std::uint64_t>> capacity = {});

// The first fault of a whole answer: offsets that break a rule, a height that is not the highest end, a
// height below its lower bound, or a verdict that contradicts the heights. Nothing if the answer may be
// shown.
std::optional<std::string> packing_fault(const Problem& problem, const Packing& packing,
                                         std::span<const std::optional<std::uint64_t>> capacity = {});

// Whether both buffers are alive at some common tick; a buffer is not alive in its gaps.
bool alive_together(const Buffer& a, const Buffer& b);

}  // namespace loadline
