// Streams values through small buffers into sums, bins and cells.
#include "core/inspect/tensor_values.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/convert/numbers/elements.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <variant>

namespace loadline::inspect {

// --- Streams tensors into a StatsAccumulator.

namespace {

constexpr std::uint64_t kContiguousBuffer = 1 << 20;
// Rows of a transposed tensor are columns in its file: the more rows are read at once, the longer the reads.
constexpr std::uint64_t kStridedBuffer = 4 << 20;

// The tensor without its repetitions: elements that a stride of 0 repeats appear once.
graph::Tensor without_repeats(const io::StorageReader& reader, const graph::Tensor& tensor) {
  graph::Tensor once = tensor;
  std::uint64_t places = 1;  // cannot overflow: the tensor is valid
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    if (tensor.strides[i] == 0) once.shape[i] = 1;
    places *= once.shape[i];
  }
  const graph::DTypeInfo& info = graph::dtype_info(tensor.dtype);
  if (!once.strides.empty() && info.block_elements == 1 &&
      places > reader.graph().storage(tensor.storage).bytes / info.block_bytes)
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, "its view repeats elements of its storage");
  return once;
}

// Adds the elements in the tensor's order.
void add_values(const io::StorageReader& reader, const graph::Tensor& tensor,
                convert::StatsAccumulator& stats, Progress& progress) {
  const graph::DTypeInfo& info = graph::dtype_info(tensor.dtype);
  const io::TensorReader values(reader);
  std::uint64_t left = graph::elements(tensor), offset = 0;
  const std::uint64_t most_bytes = graph::is_contiguous(tensor) ? kContiguousBuffer : kStridedBuffer;
  const std::uint64_t most = std::min(left, most_bytes / info.block_bytes * info.block_elements);
  const auto buffer_bytes = static_cast<std::size_t>(graph::packed_byte_size(info.id, most).value());
  const std::unique_ptr<std::byte[]> buffer(new std::byte[buffer_bytes]);  // not set to zero first
  while (left > 0) {
    progress.check_canceled();
    const std::uint64_t count = std::min(left, most);
    const std::span part(buffer.get(),
                         static_cast<std::size_t>(graph::packed_byte_size(info.id, count).value()));
    values.read(tensor, offset, part);
    stats.add(part, count);
    progress.add(part.size());
    offset += part.size();
    left -= count;
  }
}

// Whether an error concerns one tensor only.
MeasuredTensor measure_or_refuse(const io::StorageReader& reader, graph::TensorId id, Progress& progress) {
  if (auto why = measure_refusal(reader.graph().tensor(id).dtype)) return {{}, std::move(*why)};
  try {
    return {tensor_stats(reader, id, progress), {}};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    return {{}, error.what()};
  }
}

}  // namespace

std::optional<std::string> measure_refusal(graph::DType dtype) {
  if (convert::can_measure(dtype)) return std::nullopt;
  return graph::dtype_info(dtype).kind == graph::DTypeKind::text ? "it holds text" : "its type is not known";
}

convert::ValueStats tensor_stats(const io::StorageReader& reader, graph::TensorId id, Progress& progress) {
  const graph::Tensor& tensor = reader.graph().tensor(id);
  if (const auto why = measure_refusal(tensor.dtype))
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, *why);
  convert::StatsAccumulator stats(tensor.dtype);
  if (graph::elements(tensor) > 0) add_values(reader, without_repeats(reader, tensor), stats, progress);
  return stats.result();
}

void measure_tensors(const io::StorageReader& reader, std::span<const graph::TensorId> tensors,
                     Progress& progress, const std::function<void(std::size_t, MeasuredTensor)>& done) {
  constexpr std::size_t kMostThreads = 8;  // and as many buffers
  const graph::MetaGraph& graph = reader.graph();
  for (const graph::TensorId id : tensors)
    if (!measure_refusal(graph.tensor(id).dtype))
      progress.add_total(graph::tensor_bytes(graph, graph.tensor(id)));
  std::mutex mutex;
  const auto turn = [&](std::size_t i) {
    MeasuredTensor measured = measure_or_refuse(reader, tensors[i], progress);
    const std::lock_guard lock(mutex);
    done(i, std::move(measured));
  };
  const std::size_t threads = std::min<std::size_t>({cores(), kMostThreads, tensors.size()});
  ParallelLoop(tensors.size(), threads, turn).finish();
}

// --- Streams numbers in the tensor's order, part by part.

namespace {

constexpr std::uint64_t kPartBytes = 1 << 20;
constexpr std::size_t kScatterSide = 96;

// The numbers of a part of a tensor, beginning at any element.
class PartReader {
 public:
  PartReader(const io::StorageReader& reader, graph::TensorId id)
      : reader_(reader), id_(id), tensor_(reader.graph().tensor(id)), numbers_(checked_type(tensor_)) {}

  std::uint64_t per_element() const { return numbers_.per_element(); }
  // Elements that one part may have: whole blocks.
  std::uint64_t part_elements() const {
    const graph::DTypeInfo& info = graph::dtype_info(tensor_.dtype);
    return std::max<std::uint64_t>(1, kPartBytes / info.block_bytes) * info.block_elements;
  }

  // The numbers of elements [first, first + count); `first` begins a block.
  std::span<const double> read(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t offset = graph::packed_byte_size(tensor_.dtype, first).value();
    bytes_.resize(
        static_cast<std::size_t>(graph::packed_byte_size(tensor_.dtype, first + count).value() - offset));
    io::TensorReader(reader_).read(id_, offset, bytes_);
    values_.resize(static_cast<std::size_t>(count * per_element()));
    numbers_.read(bytes_, values_);
    return values_;
  }
  std::size_t bytes_read() const { return bytes_.size(); }

 private:
  static graph::DType checked_type(const graph::Tensor& tensor) {
    if (const auto why = measure_refusal(tensor.dtype))
      throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, *why);
    return tensor.dtype;
  }

  const io::StorageReader& reader_;
  graph::TensorId id_;
  const graph::Tensor& tensor_;
  convert::Numbers numbers_;
  std::vector<std::byte> bytes_;
  std::vector<double> values_;
};

// Calls `take(first number, numbers)` for the elements [first, end), which may begin inside a block.
template <typename Consume>
void for_each_part(PartReader& stream, const graph::Tensor& tensor, std::uint64_t first, std::uint64_t end,
                   Progress& progress, Consume take) {
  const std::uint64_t block = graph::dtype_info(tensor.dtype).block_elements, per = stream.per_element();
  for (std::uint64_t at = first / block * block; at < end;) {
    progress.check_canceled();
    const std::uint64_t last = std::min(std::max(end, at + 1), at + stream.part_elements());
    // whole blocks, except at the tensor's end
    const std::uint64_t whole = std::min(graph::elements(tensor), (last + block - 1) / block * block);
    const std::span<const double> values = stream.read(at, whole - at);
    const std::uint64_t skipped = std::max(at, first) - at;
    const std::uint64_t count = std::min(whole, end) - at - skipped;
    take((at + skipped) * per,
         values.subspan(static_cast<std::size_t>(skipped * per), static_cast<std::size_t>(count * per)));
    progress.add(stream.bytes_read());
    at = whole;
  }
}

class CellTally {
 public:
  CellTally(const CellRange& range, std::uint64_t columns, std::size_t height, std::size_t width)
      : columns_(columns) {
    cells_.range = range;
    cells_.height = static_cast<std::size_t>(std::min<std::uint64_t>(height, range.rows));
    cells_.width = static_cast<std::size_t>(std::min<std::uint64_t>(width, range.columns));
    sums_.resize(cells_.height * cells_.width);
    counts_.resize(sums_.size());
    cells_.largest.resize(sums_.size(), std::numeric_limits<float>::quiet_NaN());
  }

  void add(std::uint64_t first, std::span<const double> values) {
    const CellRange& range = cells_.range;
    for (std::size_t i = 0; i < values.size();) {
      const std::uint64_t row = (first + i) / columns_, column = (first + i) % columns_;
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(values.size() - i, columns_ - column));
      if (row >= range.row && row - range.row < range.rows) add_row(row, column, values.subspan(i, length));
      i += length;
    }
  }

  ValueCells result() {
    cells_.mean.resize(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i)
      cells_.mean[i] = counts_[i] == 0 ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(sums_[i] / static_cast<double>(counts_[i]));
    return std::move(cells_);
  }

 private:
  // Which of `parts` equal parts of `whole` holds the position; both fit into 64 bits, their product may not.
  static std::size_t part_of(std::uint64_t at, std::uint64_t whole, std::size_t parts) {
    return std::min(parts - 1, static_cast<std::size_t>(static_cast<double>(at) / static_cast<double>(whole) *
                                                        static_cast<double>(parts)));
  }

  void add_row(std::uint64_t row, std::uint64_t column, std::span<const double> values) {
    const CellRange& range = cells_.range;
    const std::size_t line = part_of(row - range.row, range.rows, cells_.height) * cells_.width;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t at = column + i;
      if (at < range.column || at - range.column >= range.columns || !std::isfinite(values[i])) continue;
      const std::size_t cell = line + part_of(at - range.column, range.columns, cells_.width);
      sums_[cell] += values[i];
      ++counts_[cell];
      const auto size = static_cast<float>(std::abs(values[i]));
      if (!(cells_.largest[cell] >= size)) cells_.largest[cell] = size;
    }
  }

  std::uint64_t columns_;
  ValueCells cells_;
  std::vector<double> sums_;
  std::vector<std::uint64_t> counts_;
};

double double_of(const convert::Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

std::size_t bin_of(double value, double low, double high, std::size_t bins) {
  if (!(high > low)) return 0;
  // halves, so that the distance of the largest floats is finite
  const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
  return std::min(bins - 1, static_cast<std::size_t>(std::max(0.0, share * static_cast<double>(bins))));
}

}  // namespace

std::uint64_t ValueHistogram::most() const { return counts.empty() ? 0 : *std::ranges::max_element(counts); }

MatrixSides matrix_sides(const graph::Tensor& tensor) {
  const std::uint64_t count = graph::elements(tensor);
  if (count == 0) return {};
  const std::uint64_t per =
      convert::can_measure(tensor.dtype) ? convert::Numbers(tensor.dtype).per_element() : 1;
  constexpr std::uint64_t kLargestKernel = 15;
  const bool kernels = tensor.shape.size() >= 3 && tensor.shape.back() <= kLargestKernel;
  const std::uint64_t rows = kernels                ? tensor.shape.front()
                             : tensor.shape.empty() ? 1
                                                    : count / tensor.shape.back();
  return {rows, count / rows * per};
}

ValuePicture picture_values(const io::StorageReader& reader, graph::TensorId id, std::size_t height,
                            std::size_t width, Progress& progress) {
  const graph::Tensor& tensor = reader.graph().tensor(id);
  progress.add_total(2 * graph::tensor_bytes(reader.graph(), tensor));
  ValuePicture picture;
  picture.stats = tensor_stats(reader, id, progress);
  const MatrixSides sides = matrix_sides(tensor);
  if (sides.rows == 0) return picture;
  ValueHistogram& histogram = picture.histogram;
  histogram.counts.resize(kHistogramBins);
  if (picture.stats.min) histogram.low = double_of(*picture.stats.min);
  if (picture.stats.max) histogram.high = double_of(*picture.stats.max);
  CellTally cells({0, sides.rows, 0, sides.columns}, sides.columns, height, width);
  PartReader stream(reader, id);
  for_each_part(stream, tensor, 0, graph::elements(tensor), progress,
                [&](std::uint64_t first, std::span<const double> values) {
                  cells.add(first, values);
                  for (const double value : values)
                    if (std::isfinite(value))
                      ++histogram.counts[bin_of(value, histogram.low, histogram.high, kHistogramBins)];
                });
  picture.cells = cells.result();
  return picture;
}

ValueCells value_cells(const io::StorageReader& reader, graph::TensorId id, const CellRange& range,
                       std::size_t height, std::size_t width, Progress& progress) {
  const graph::Tensor& tensor = reader.graph().tensor(id);
  const MatrixSides sides = matrix_sides(tensor);
  if (range.rows == 0 || range.columns == 0 || range.row >= sides.rows ||
      range.rows > sides.rows - range.row || range.column >= sides.columns ||
      range.columns > sides.columns - range.column)
    throw Error(ErrorCode::usage, {.tensor = tensor.name},
                "the cells asked for lie outside of its {} x {} values", sides.rows, sides.columns);
  PartReader stream(reader, id);
  const std::uint64_t row_elements = sides.columns / stream.per_element();
  CellTally cells(range, sides.columns, height, width);
  for_each_part(stream, tensor, range.row * row_elements, (range.row + range.rows) * row_elements, progress,
                [&](std::uint64_t first, std::span<const double> values) { cells.add(first, values); });
  return cells.result();
}

ValueComparison compare_values(const io::StorageReader& reader, graph::TensorId first, graph::TensorId second,
                               Progress& progress) {
  const graph::Tensor &a = reader.graph().tensor(first), &b = reader.graph().tensor(second);
  PartReader of_a(reader, first), of_b(reader, second);
  const std::uint64_t count = graph::elements(a) * of_a.per_element();
  if (graph::elements(b) * of_b.per_element() != count)
    throw Error(ErrorCode::usage, {.tensor = b.name}, "has {} values, '{}' has {}",
                graph::elements(b) * of_b.per_element(), a.name, count);
  progress.add_total(2 * (graph::tensor_bytes(reader.graph(), a) + graph::tensor_bytes(reader.graph(), b)));
  ValueComparison result;
  const convert::ValueStats stats_a = tensor_stats(reader, first, progress),
                            stats_b = tensor_stats(reader, second, progress);
  result.count = count;
  result.side = kScatterSide;
  result.scatter.resize(kScatterSide * kScatterSide);
  for (const convert::ValueStats* stats : {&stats_a, &stats_b}) {
    if (stats->min) result.low = std::min(result.low, double_of(*stats->min));
    if (stats->max) result.high = std::max(result.high, double_of(*stats->max));
  }
  double distance = 0, squares = 0, square_a = 0, square_b = 0, product = 0;
  std::uint64_t pairs = 0;
  // parts of one are not parts of the other: whole blocks of both
  std::vector<double> left;
  std::uint64_t left_at = 0;
  const auto pair = [&](double x, double y) {
    result.equal += x == y || (std::isnan(x) && std::isnan(y));
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    ++pairs;
    const double apart = std::abs(x - y);
    result.largest = std::max(result.largest, apart);
    distance += apart;
    squares += apart * apart;
    square_a += x * x;
    square_b += y * y;
    product += x * y;
    ++result.scatter[bin_of(y, result.low, result.high, kScatterSide) * kScatterSide +
                     bin_of(x, result.low, result.high, kScatterSide)];
  };
  for_each_part(of_a, a, 0, graph::elements(a), progress,
                [&](std::uint64_t from, std::span<const double> values) {
                  left.assign(values.begin(), values.end());
                  left_at = from;
                  const std::uint64_t per = of_b.per_element();
                  for_each_part(of_b, b, from / per, (from + values.size() + per - 1) / per, progress,
                                [&](std::uint64_t at, std::span<const double> others) {
                                  for (std::size_t i = 0; i < others.size(); ++i)
                                    if (at + i >= left_at && at + i < left_at + left.size())
                                      pair(left[static_cast<std::size_t>(at + i - left_at)], others[i]);
                                });
                });
  if (pairs > 0) result.mean = distance / static_cast<double>(pairs);
  if (square_a > 0) result.relative = std::sqrt(squares / square_a);
  if (square_a > 0 && square_b > 0) result.cosine = product / std::sqrt(square_a) / std::sqrt(square_b);
  return result;
}

}  // namespace loadline::inspect
