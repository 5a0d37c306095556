// Which bytes of which storages the blocks of a plan hold at its end: what loading means, and what is
// verified.
#pragma once

#include "core/io/storage_reader.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// `bytes` of a block from `offset` on are those of the storage from `storage_offset` on, or what a cast made
// of them.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  StorageId storage{};
  std::uint64_t storage_offset = 0;
  std::optional<Cast> cast = {};
  bool operator==(const Extent&) const = default;

  std::uint64_t end() const { return offset + bytes; }
  std::uint64_t storage_bytes() const;  // that it was made of
};

// By block: what it holds when the plan ends, in the order of offsets, none touching another that continues
// it; empty for blocks that are freed. Bytes cast twice, or cut in the middle of a number, count as unknown.
// The plan must have passed check_plan.
std::vector<std::vector<Extent>> final_contents(const Plan& plan);

// The bytes of a block from `offset` on, as its extents say they must be; bytes that no extent covers are
// left as they are in `out`. Throws what the reader throws.
void expected_bytes(const StorageReader& reader, std::span<const Extent> extents, std::uint64_t offset,
                    std::span<std::byte> out);

}  // namespace loadline
