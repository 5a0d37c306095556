// Statistics of a tensor's values, their histogram and map, two tensors against each other.
#pragma once

#include "core/base/progress.h"
#include "core/convert/numbers/statistics.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::inspect {

// --- Statistics of tensor values, read from the model's files.

// The reason why values of this dtype cannot be measured, for a person; nothing if they can.
std::optional<std::string> measure_refusal(graph::DType dtype);

// Measures one tensor through a buffer of at most 1 MiB, or 4 MiB for a strided tensor. May be called from
// several threads with one reader. Adds tensor_bytes() to `progress` bit by bit; the caller adds them to its
// total. Elements are taken in the tensor's order; elements that a stride of 0 repeats count once. Throws
// Error{unsupported} with measure_refusal(), or for a view whose elements overlap or are smaller than a byte.
// Also throws as StorageReader does, and Error{canceled}.
convert::ValueStats tensor_stats(const io::StorageReader& reader, graph::TensorId id, Progress& progress);

// The result for one tensor: its statistics, or the reason why there are none.
struct MeasuredTensor {
  std::optional<convert::ValueStats> stats;
  std::string refusal;
};

// Measures all of `tensors`, several at once. Calls `done` with the position in `tensors` and the result of
// each, in any order and from other threads, but never concurrently. Adds its work to the total of
// `progress`. A tensor that cannot be measured or decoded gets a refusal; any other Error ends the
// measurement and is thrown here.
void measure_tensors(const io::StorageReader& reader, std::span<const graph::TensorId> tensors,
                     Progress& progress, const std::function<void(std::size_t, MeasuredTensor)>& done);

// --- The values of a tensor as pictures: a histogram over the values, and a map of cells over the places.
// Also two tensors against each other.

// A tensor as a matrix: its last dimension, and the product of all others; of a convolution's weight, whose
// last dimension is the side of a kernel, the first, and the product of all others. A complex number is two
// columns.
struct MatrixSides {
  std::uint64_t rows = 0, columns = 0;
};
MatrixSides matrix_sides(const graph::Tensor& tensor);

struct CellRange {
  std::uint64_t row = 0, rows = 0, column = 0, columns = 0;
  bool operator==(const CellRange&) const = default;
};

// Cells in rows of `width`, each over an equal part of the range; NaN where no value is finite.
struct ValueCells {
  CellRange range;
  std::size_t height = 0, width = 0;
  std::vector<float> mean;
  std::vector<float> largest;  // of the magnitudes
};

// Equal bins from the least finite value to the largest.
struct ValueHistogram {
  double low = 0, high = 0;
  std::vector<std::uint64_t> counts;
  std::uint64_t most() const;
};

struct ValuePicture {
  convert::ValueStats stats;
  ValueHistogram histogram;
  ValueCells cells;  // of the whole tensor
};

inline constexpr std::size_t kHistogramBins = 128;

// Reads the tensor twice through buffers of at most 4 MiB; adds twice tensor_bytes() to the progress, and to
// its total. The cells are at most as many as rows and columns. Throws as tensor_stats() does.
ValuePicture picture_values(const io::StorageReader& reader, graph::TensorId id, std::size_t height,
                            std::size_t width, Progress& progress);

// The cells of a part alone: reads its rows. The range must lie inside the matrix and not be empty. Throws
// likewise.
ValueCells value_cells(const io::StorageReader& reader, graph::TensorId id, const CellRange& range,
                       std::size_t height, std::size_t width, Progress& progress);

struct ValueComparison {
  std::uint64_t count = 0, equal = 0;  // equal as numbers
  double largest = 0;                  // difference of two finite values
  double mean = 0;                     // of the magnitudes of differences
  double relative = 0;                 // root mean square of differences over that of the first's values
  double cosine = 0;                   // 0 where one of them is 0
  // Pairs of finite values: row by the second's bin, column by the first's, both from low to high.
  double low = 0, high = 0;
  std::size_t side = 0;
  std::vector<std::uint64_t> scatter;
};

// Element by element, of tensors with equally many. Throws Error{usage} for different counts, and as
// tensor_stats() does.
ValueComparison compare_values(const io::StorageReader& reader, graph::TensorId first, graph::TensorId second,
                               Progress& progress);

}  // namespace loadline::inspect
