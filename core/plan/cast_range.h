// Computes the output of a copy with a cast, piece by piece; used by machines.
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace loadline {

// Fills `out` with bytes of the cast result, starting at byte `at` of it. `fetch` supplies source bytes, for
// consecutive offsets and at most 1 MiB at a time. `at` and the size of `out` must be whole elements. Throws
// Error{unsupported} for a pair of types without a conversion here.
using Fetch = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
void cast_range(const Cast& cast, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Fills `out` with the bytes that a copy writes, starting at byte `at` of them: cast, or unchanged from
// `fetch`. Offsets passed to `fetch` count from the step's source range. Throws as cast_range() does.
void fill_from(const Step& step, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Executes a copy into a packed block, `out`. Offsets passed to `fetch` count from the step's source.
void fill_prepacked(const Step& step, const Prepack& prepack, std::span<std::byte> out, const Fetch& fetch);

// Why a plan cannot be run although it can be projected: it casts between types without a conversion here.
// Empty if it can be run.
std::string cast_refusal(const Plan& plan);

}  // namespace loadline
