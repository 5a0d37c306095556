// Steps that all exporters share: choosing dtypes and copying tensors into the result graph.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <vector>

namespace loadline {

// The dtype in which `tensor` is written: options.outtype if the tensor's floating type can be cast to it,
// else the tensor's own.
DType output_dtype(const Tensor& tensor, const ExportOptions& options);

// The tensors to write; of tied tensors only the first. Throws Error{limit} if their total size is too large.
std::vector<TensorId> select_tensors(const MetaGraph& graph);

// The bytes of `tensor` written as `to`. Throws Error{limit} if they exceed 64 bits.
std::uint64_t output_bytes(const Tensor& tensor, DType to);
// Adds the slot's tensor to `result`, as importing file number `file` of the output would.
void add_result(MetaGraph& result, FileId file, const TensorSlot& slot, const Name& name, const Shape& shape);

void append_bytes(std::vector<std::byte>& out, std::string_view text);
// Little-endian.
void append_u32(std::vector<std::byte>& out, std::uint32_t value);
void append_u64(std::vector<std::byte>& out, std::uint64_t value);
// Appends the length as a u64, then the text.
void append_string(std::vector<std::byte>& out, std::string_view text);

// Throws Error{usage} unless `alignment` is 0 or a power of two up to 2 MiB, a huge page.
void check_alignment(std::uint64_t alignment);

}  // namespace loadline
