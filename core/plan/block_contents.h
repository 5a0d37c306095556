// Which bytes of which storages the blocks of a plan hold at its end. This defines a correct load, and it is
// what verification compares.
#pragma once

#include "core/io/storage_reader.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// A range of a block: `bytes` bytes from `offset` on hold the storage's bytes from `storage_offset` on,
// unchanged or cast.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  StorageId storage{};
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
void expected_bytes(const StorageReader& reader, std::span<const Extent> extents, std::uint64_t offset,
                    std::span<std::byte> out);

}  // namespace loadline
