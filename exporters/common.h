// Steps that all exporters share: choosing dtypes and copying tensors into the result graph.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <vector>

namespace loadline {

// What is written of a model, in the order asked for, without offsets: of tied tensors the first, and with an
// outtype packed weights as one tensor each; options.recipes instead of what they replace. Throws
// Error{limit} if their total size is too large.
std::vector<Slot> output_slots(const MetaGraph& graph, const ExportOptions& options);
// As output_slots(); without an outtype, packed weights of 4-bit floats become blocks of ggml.
std::vector<Slot> ggml_slots(const MetaGraph& graph, const ExportOptions& options);
// The size of a tensor. Throws Error{limit} beyond 64 bits.
std::uint64_t slot_bytes(const Name& name, DType dtype, const Shape& shape);
// Throws Error{limit} if the tensors together are too large for the offsets of a file.
void check_total(const std::vector<Slot>& slots);
// Puts slots in the order asked for. Tensors of one storage stay together, as they follow in the source.
void arrange(const MetaGraph& graph, const ExportOptions& options, std::vector<Slot>& slots);
// The type in which a slot's tensor is stored in the source, or the first of several.
DType stored_dtype(const MetaGraph& graph, const Slot& slot);
// Whether a tensor of this type can be written as `options.outtype`.
bool can_become(DType dtype, DType outtype);

// Adds the slot's tensor to `result`, as importing file number `file` of the output would.
void add_result(MetaGraph& result, FileId file, const Slot& slot);
// Finds the packed weights of a complete `result`, as importing it would.
void add_logical(const MetaGraph& source, MetaGraph& result);

void append_bytes(std::vector<std::byte>& out, std::string_view text);
// Little-endian.
void append_u32(std::vector<std::byte>& out, std::uint32_t value);
void append_u64(std::vector<std::byte>& out, std::uint64_t value);
// Appends the length as a u64, then the text.
void append_string(std::vector<std::byte>& out, std::string_view text);

// The alignment of data in a zip archive. Throws Error{usage} for one that is too large, and for shards.
std::uint64_t zip_alignment(const ExportOptions& options, std::uint64_t otherwise);

// Throws Error{usage} unless `alignment` is 0 or a power of two up to 2 MiB, a huge page.
void check_alignment(std::uint64_t alignment);

}  // namespace loadline
