// What `bench open` measures against: raw reads of the same bytes, and Python readers.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>

namespace loadline::bench {

// Opens every file of a safetensors model and reads its header, or all of a file that is not one.
void read_headers(const MetaGraph& graph);

// The most that this process has held resident: VmHWM.
std::uint64_t peak_rss();

// Runs the Python reader of that name over `path` and prints its median; says so if it is not installed.
void print_python(const std::string& reader, const std::string& path);

}  // namespace loadline::bench
