// The bytes that a copy writes, the bytes that every block holds at the end, the blocks of a forward pass.
#pragma once

#include "core/io/graph_reader.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace loadline::plan {

// --- Computes the output of a copy with a cast, piece by piece; used by machines.

// Fills `out` with bytes of the cast result, starting at byte `at` of it. `fetch` supplies source bytes, for
// consecutive offsets and at most 1 MiB at a time. `at` and the size of `out` must be whole elements. Throws
// Error{unsupported} for a pair of types without a conversion here.
using Fetch = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
void cast_range(const Cast& cast, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Fills `out` with the bytes that a copy writes, starting at byte `at` of them: cast, or unchanged from
// `fetch`. Offsets passed to `fetch` count from the step's source range. Throws as cast_range() does.
void fill_from(const Step& step, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch);

// Executes a copy into a packed block, `out`. Offsets passed to `fetch` count from the step's source.
void fill_prepacked(const Step& step, const convert::Prepack& prepack, std::span<std::byte> out,
                    const Fetch& fetch);

// Why a plan cannot be run although it can be projected: it casts between types without a conversion here.
// Empty if it can be run.
std::string cast_refusal(const Plan& plan);

// --- Which bytes of which storages the blocks of a plan hold at its end. This defines a correct load, and it
// is what verification compares.

// A range of a block: `bytes` bytes from `offset` on hold the storage's bytes from `storage_offset` on,
// unchanged or cast.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  graph::StorageId storage{};
  std::uint64_t storage_offset = 0;
  std::optional<Cast> cast = {};
  bool operator==(const Extent&) const = default;

  std::uint64_t end() const { return offset + bytes; }
  std::uint64_t storage_bytes() const;  // size of the source range
};

// For each block its contents when the plan ends, sorted by offset, with continuing ranges merged; empty for
// freed blocks. Bytes that are cast twice or cut inside a number count as unknown and have no extent. The
// plan must have passed check_plan.
std::vector<std::vector<Extent>> final_contents(const Plan& plan);

// The bytes that a block must hold from `offset` on, according to its extents. Bytes of `out` that no extent
// covers are left unchanged. Throws as the reader does.
void expected_bytes(const io::StorageReader& reader, std::span<const Extent> extents, std::uint64_t offset,
                    std::span<std::byte> out);

// --- Where a forward pass that follows a load stands in its plan (plan.cpp, beside append_forward_pass()).

struct PassPlaces {
  std::vector<std::optional<BlockId>> blocks;  // per value; nothing: it has no memory of its own
  std::vector<std::size_t> begins;             // per operator, and one more: where the last one ends
};
// Nothing unless append_forward_pass() has put this pass at the end of the plan.
std::optional<PassPlaces> pass_places(const Plan& plan, const ForwardPass& pass);

}  // namespace loadline::plan
