// What `bench open` measures against: raw reads of the same bytes, and Python readers.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>

namespace loadline::bench {

// Opens every file of a safetensors model and reads its header, or all of a file that is not one.
void read_headers(const graph::MetaGraph& graph);

// A GGUF file of one small tensor and a vocabulary: `tokens` strings, scores, types and merges.
void write_vocabulary(const std::string& path, std::uint64_t tokens);
// An ONNX file of `bytes` bytes, below 2^31: a MatMul whose weights, inline, are a hole in the file.
void write_large_onnx(const std::string& path, std::uint64_t bytes);
// Reads the first `bytes` bytes of a file in pieces of 128 KiB.
void read_start(const std::string& path, std::uint64_t bytes);

// The most that this process has held resident: VmHWM.
std::uint64_t peak_rss();

// Runs the Python reader of that name over `path` and prints its median; says so if it is not installed.
void print_python(const std::string& reader, const std::string& path);

}  // namespace loadline::bench
