// The statistics of a tensor's values, read from its file.
#pragma once

#include "core/base/progress.h"
#include "core/convert/stats.h"
#include "core/graph/meta_graph.h"
#include "core/io/storage_reader.h"

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace loadline {

// Why the values of this dtype cannot be measured, for a person; nothing if they can.
std::optional<std::string> measure_refusal(DType dtype);

// Reads through a buffer of at most 1 MiB, 4 MiB for a strided tensor, as TensorReader does; may be called
// from several threads with one reader. Adds tensor_bytes() to `progress` as it goes: the caller announces
// them. Elements are taken in the tensor's order; those that a stride of 0 repeats are counted once.
// Throws Error{unsupported} with measure_refusal(), or for a view whose elements overlap or are packed below
// a byte; what StorageReader throws; and Error{cancelled}.
ValueStats tensor_stats(const StorageReader& reader, TensorId id, Progress& progress);

// What came of one tensor: its statistics, or the reason why there are none.
struct MeasuredTensor {
  std::optional<ValueStats> stats;
  std::string refusal;
};

// Measures all of `tensors`, several at once, and gives each to `done` with its place in `tensors`, in no
// order and from other threads, but one at a time. Announces its work to `progress`. What cannot be measured
// or does not decode has a refusal; any other Error ends the whole and is thrown here.
void measure_tensors(const StorageReader& reader, std::span<const TensorId> tensors, Progress& progress,
                     const std::function<void(std::size_t, MeasuredTensor)>& done);

}  // namespace loadline
