// What a copy with a cast writes, made in pieces from its source: for the machines.
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace loadline {

// Fills `out` with the bytes from `at` on of what `cast` makes of a source, whose bytes `fetch` gives for
// consecutive offsets, at most 1 MiB at a time. `at` and the size of `out` are whole elements. Throws
// Error{unsupported} for a pair of types that nothing here converts.
using Fetch = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
void cast_range(const Cast& cast, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Fills `out` with what a copy writes, from byte `at` of that on: cast, or as `fetch` gives it for offsets of
// the step's source. Throws what cast_range() does.
void fill_from(const Step& step, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Why a plan cannot be run although it can be projected: it casts to or from types that nothing here
// converts. Empty if it can.
std::string cast_refusal(const Plan& plan);

}  // namespace loadline
