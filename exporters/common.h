// What every exporter does the same way: choosing dtypes and copying tensors into the result graph.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <vector>

namespace loadline {

// The dtype that `tensor` is written in: --outtype for floating types that can be cast to it, else
// its own.
DType output_dtype(const Tensor& tensor, const ExportOptions& options);

// The tensors to write: of tied names the first only. Throws Error{limit} if they are too large together.
std::vector<TensorId> select_tensors(const MetaGraph& graph);

// What `tensor` takes as `to`. Throws Error{limit} beyond 64 bits.
std::uint64_t output_bytes(const Tensor& tensor, DType to);
// The slot's tensor as importing file number `file` gives it.
void add_result(MetaGraph& result, FileId file, const TensorSlot& slot, const Name& name, const Shape& shape);

void append_bytes(std::vector<std::byte>& out, std::string_view text);
// Little-endian.
void append_u32(std::vector<std::byte>& out, std::uint32_t value);
void append_u64(std::vector<std::byte>& out, std::uint64_t value);
// Behind its length, a u64.
void append_string(std::vector<std::byte>& out, std::string_view text);

// Throws Error{usage} unless `alignment` is 0 or a power of two up to 2 MiB, a huge page.
void check_alignment(std::uint64_t alignment);

}  // namespace loadline
