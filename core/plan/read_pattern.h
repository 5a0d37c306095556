// How a plan goes through the files: what an order costs where reads are not sequential.
#pragma once

#include "core/plan/plan.h"

#include <cstdint>

namespace loadline {

struct ReadPattern {
  std::uint64_t bytes = 0;     // read from files, as they are stored
  std::uint64_t reads = 0;     // copies from a storage
  std::uint64_t jumps = 0;     // reads that go on elsewhere than the one before ended
  std::uint64_t distance = 0;  // bytes between the end of the last read in a file and the next, either way
  bool operator==(const ReadPattern&) const = default;
};

// A read jumps where the one before was in another file, or where it does not start at the end of the last
// one in its file; skipping forward within a page, as padding does, is no jump but counts as distance. The
// first read of all is none. A file that comes up for the first time counts no distance. Part of an encoded
// storage lies where its share of the bytes does. Storages without a file are read and never jump. The plan
// must have passed check_plan.
ReadPattern read_pattern(const Plan& plan, const MetaGraph& graph);

}  // namespace loadline
