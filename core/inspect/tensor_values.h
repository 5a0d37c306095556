// The values of a tensor as pictures: a histogram over the values, and a map of cells over the places. Also
// two tensors against each other.
#pragma once

#include "core/base/tasks.h"
#include "core/convert/numbers/statistics.h"
#include "core/graph/meta_graph.h"
#include "core/io/storage_reader.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loadline {

// A tensor as a matrix: its last dimension, and the product of all others. A complex number is two columns.
struct MatrixSides {
  std::uint64_t rows = 0, columns = 0;
};
MatrixSides matrix_sides(const Tensor& tensor);

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
  ValueStats stats;
  ValueHistogram histogram;
  ValueCells cells;  // of the whole tensor
};

inline constexpr std::size_t kHistogramBins = 128;

// Reads the tensor twice through buffers of at most 4 MiB; adds twice tensor_bytes() to the progress, and to
// its total. The cells are at most as many as rows and columns. Throws as tensor_stats() does.
ValuePicture picture_values(const StorageReader& reader, TensorId id, std::size_t height, std::size_t width,
                            Progress& progress);

// The cells of a part alone: reads its rows. The range must lie inside the matrix and not be empty. Throws
// likewise.
ValueCells value_cells(const StorageReader& reader, TensorId id, const CellRange& range, std::size_t height,
                       std::size_t width, Progress& progress);

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
ValueComparison compare_values(const StorageReader& reader, TensorId first, TensorId second,
                               Progress& progress);

}  // namespace loadline
