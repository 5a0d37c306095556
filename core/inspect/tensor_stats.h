// Statistics of tensor values, read from the model's files.
#pragma once

#include "core/base/tasks.h"
#include "core/convert/numbers/statistics.h"
#include "core/graph/meta_graph.h"
#include "core/io/storage_reader.h"

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace loadline {

// The reason why values of this dtype cannot be measured, for a person; nothing if they can.
std::optional<std::string> measure_refusal(DType dtype);

// Measures one tensor through a buffer of at most 1 MiB, or 4 MiB for a strided tensor. May be called from
// several threads with one reader. Adds tensor_bytes() to `progress` bit by bit; the caller adds them to its
// total. Elements are taken in the tensor's order; elements that a stride of 0 repeats count once. Throws
// Error{unsupported} with measure_refusal(), or for a view whose elements overlap or are smaller than a byte.
// Also throws as StorageReader does, and Error{cancelled}.
ValueStats tensor_stats(const StorageReader& reader, TensorId id, Progress& progress);

// The result for one tensor: its statistics, or the reason why there are none.
struct MeasuredTensor {
  std::optional<ValueStats> stats;
  std::string refusal;
};

// Measures all of `tensors`, several at once. Calls `done` with the position in `tensors` and the result of
// each, in any order and from other threads, but never concurrently. Adds its work to the total of
// `progress`. A tensor that cannot be measured or decoded gets a refusal; any other Error ends the
// measurement and is thrown here.
void measure_tensors(const StorageReader& reader, std::span<const TensorId> tensors, Progress& progress,
                     const std::function<void(std::size_t, MeasuredTensor)>& done);

}  // namespace loadline
