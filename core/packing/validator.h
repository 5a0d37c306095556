// Checks a packing without knowing how it was made.
#pragma once

#include "core/packing/pack.h"
#include "core/packing/problem.h"

#include <optional>
#include <span>
#include <string>

namespace loadline {

// What is wrong with offsets, one per buffer: the first of an offset that breaks alignment or pin, an end
// past `capacity` (by arena; nothing: unbounded) of a buffer that is ever alive, members of a group that lie
// apart, or two buffers alive at the same tick that share a byte. Nothing: the packing keeps every rule.
// Sweeps over the ticks: a million buffers take seconds.
std::optional<std::string> find_fault(const Problem& problem, std::span<const std::uint64_t> offsets,
                                      std::span<const std::optional<std::uint64_t>> capacity = {});

// What is wrong with an answer as a whole: offsets that break a rule, a height that is not the highest end,
// a height below its lower bound, or a verdict that the heights contradict. Nothing: it may be printed.
std::optional<std::string> packing_fault(const Problem& problem, const Packing& packing,
                                         std::span<const std::optional<std::uint64_t>> capacity = {});

// Whether two buffers are both alive, gaps left out, at some tick.
bool alive_together(const Buffer& a, const Buffer& b);

}  // namespace loadline
