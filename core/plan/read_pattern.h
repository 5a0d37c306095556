// How a plan reads the files: the cost of an order without sequential reads.
#pragma once

#include "core/plan/plan.h"

#include <cstdint>

namespace loadline {

struct ReadPattern {
  std::uint64_t bytes = 0;     // read from files, in their stored size
  std::uint64_t reads = 0;     // copies from a storage
  std::uint64_t jumps = 0;     // reads that do not continue where the previous one ended
  std::uint64_t distance = 0;  // bytes skipped in a file between two reads, in either direction
  bool operator==(const ReadPattern&) const = default;
};

// A read jumps if the previous read was in another file, or if it does not start at the end of the last read
// in its file. A forward skip of less than a page, as over padding, is no jump but counts as distance. The
// very first read is no jump. The first read in a file adds no distance. A part of an encoded storage is
// located by its share of the bytes. Storages without a file are read and never jump. The plan must have
// passed check_plan.
ReadPattern read_pattern(const Plan& plan, const MetaGraph& graph);

}  // namespace loadline
