// The statistics of a tensor's values, read from its file.
#pragma once

#include "core/base/progress.h"
#include "core/convert/stats.h"
#include "core/graph/meta_graph.h"
#include "core/io/storage_reader.h"

#include <optional>
#include <string>

namespace loadline {

// Why the values of this dtype cannot be measured, for a person; nothing if they can.
std::optional<std::string> measure_refusal(DType dtype);

// Reads through a buffer of at most 1 MiB; may be called from several threads with one reader. Adds
// tensor_bytes() to `progress` as it goes: the caller announces them. The elements of a strided tensor are
// taken in the order of memory, each place once: those that a stride of 0 repeats are not counted again.
// Throws Error{unsupported} with measure_refusal(), or for a view whose elements overlap or are packed below
// a byte; what StorageReader throws; and Error{cancelled}.
ValueStats tensor_stats(const StorageReader& reader, TensorId id, Progress& progress);

}  // namespace loadline
