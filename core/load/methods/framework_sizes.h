// What llama.cpp holds in host memory besides the tensors of a file as they are: matrices repacked for the
// CPU, and the vocabulary. After ggml/src/ggml-cpu/repack.cpp of 2026.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/load/request/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// "x86" or "arm". Throws Error{usage} that lists them.
CpuRepack find_cpu_repack(std::string_view id);
std::string_view cpu_repack_id(CpuRepack cpu);
std::vector<std::string> cpu_repack_ids();

// By storage, whether the matrix is repacked where it is used on the host: its type has a kernel for the CPU
// (x86 with AVX2, ARM with dot products and i8mm) that takes its number of rows. Embeddings are only looked
// up.
std::vector<bool> repacked_storages(const MetaGraph& graph, std::optional<CpuRepack> cpu);
// Bytes of the copy of an embedding that is repacked to serve as the head too; 0 if there is none.
std::uint64_t repacked_head(const MetaGraph& graph, std::optional<CpuRepack> cpu);

// The host memory of a GGUF file's vocabulary: 243 bytes a token and 235 a merge, fitted to llama.cpp with
// 32,000 to 262,144 tokens. 0 without a tokenizer.
std::uint64_t vocabulary_bytes(const MetaGraph& graph);

}  // namespace loadline
