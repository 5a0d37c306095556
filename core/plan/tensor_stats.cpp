// Streams tensors into a StatsAccumulator.
#include "core/plan/tensor_stats.h"

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/graph/validate.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

// The part of a storage that is being measured, and where to.
struct Stream {
  const StorageReader& reader;
  const Tensor& tensor;
  Progress& progress;
  std::unique_ptr<std::byte[]> buffer{new std::byte[kBuffer]};  // not set to zero first

  std::span<std::byte> read(std::uint64_t offset, std::size_t bytes) {
    progress.check_cancelled();
    const auto part = std::span(buffer.get(), bytes);
    reader.read(tensor.storage, tensor.offset + offset, part);
    return part;
  }
};

void add_contiguous(Stream& stream, StatsAccumulator& stats, std::uint64_t elements) {
  const DTypeInfo& info = dtype_info(stream.tensor.dtype);
  const std::uint64_t piece_elements = kBuffer / info.block_bytes * info.block_elements;
  std::uint64_t offset = 0;
  while (elements > 0) {
    const std::uint64_t count = std::min(elements, piece_elements);
    const auto bytes = static_cast<std::size_t>(packed_byte_size(info.id, count).value());
    stats.add(stream.read(offset, bytes), count);
    stream.progress.add(bytes);
    offset += bytes;
    elements -= count;
  }
}

struct Dimension {
  std::uint64_t size;
  std::uint64_t stride;
};

// The view's dimensions in the order of memory, the innermost last, joined where they follow each other
// without a gap. Those that do not move are left out.
std::vector<Dimension> memory_order(const Tensor& tensor) {
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] != 1 && tensor.strides[i] != 0)
      dimensions.push_back({tensor.shape[i], tensor.strides[i]});
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
  std::vector<Dimension> joined;
  for (const Dimension& next : dimensions) {
    if (!joined.empty() && joined.back().stride == next.stride * next.size)
      joined.back() = {joined.back().size * next.size, next.stride};
    else
      joined.push_back(next);
  }
  if (joined.empty()) joined.push_back({1, 1});
  return joined;
}

// `row.size` elements from element `first` on: whole ranges are read and what lies between is dropped.
void add_row(Stream& stream, StatsAccumulator& stats, std::uint64_t first, const Dimension& row,
             std::size_t unit) {
  const std::uint64_t most = (kBuffer / unit - 1) / row.stride + 1;
  for (std::uint64_t done = 0; done < row.size;) {
    const std::uint64_t count = std::min(row.size - done, most);
    const auto bytes = static_cast<std::size_t>((count - 1) * row.stride + 1) * unit;
    const auto part = stream.read((first + done * row.stride) * unit, bytes);
    if (row.stride != 1)
      for (std::size_t i = 1; i < count; ++i)
        std::memmove(part.data() + i * unit, part.data() + i * row.stride * unit, unit);
    stats.add(part.first(static_cast<std::size_t>(count) * unit));
    stream.progress.add(count * unit);
    done += count;
  }
}

void add_strided(Stream& stream, StatsAccumulator& stats) {
  const Tensor& tensor = stream.tensor;
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, why);
  };
  if (info.block_elements != 1) refuse("a strided view of elements that share bytes is not measured");
  std::vector<Dimension> outer = memory_order(tensor);
  std::uint64_t places = 1;
  for (const Dimension& dimension : outer) places *= dimension.size;
  if (places > stream.reader.graph().storage(tensor.storage).bytes / info.block_bytes)
    refuse("its view repeats elements of its storage");
  const Dimension row = outer.back();
  outer.pop_back();
  std::vector<std::uint64_t> at(outer.size(), 0);
  std::uint64_t first = 0;
  while (true) {
    add_row(stream, stats, first, row, info.block_bytes);
    std::size_t i = outer.size();
    while (i > 0 && ++at[i - 1] == outer[i - 1].size) {
      first -= (outer[i - 1].size - 1) * outer[i - 1].stride;
      at[--i] = 0;
    }
    if (i == 0) return;
    first += outer[i - 1].stride;
  }
}

// Errors that say something about one tensor, and nothing about the next.
MeasuredTensor measure_or_refuse(const StorageReader& reader, TensorId id, Progress& progress) {
  if (auto why = measure_refusal(reader.graph().tensor(id).dtype)) return {{}, std::move(*why)};
  try {
    return {tensor_stats(reader, id, progress), {}};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    return {{}, error.what()};
  }
}

}  // namespace

std::optional<std::string> measure_refusal(DType dtype) {
  if (can_measure(dtype)) return std::nullopt;
  const DTypeInfo& info = dtype_info(dtype);
  switch (info.kind) {
    case DTypeKind::opaque:
      return "its type is not known";
    case DTypeKind::text:
      return "it holds text";
    default:
      return fmt::format("the code books of {} are not known", info.name);
  }
}

ValueStats tensor_stats(const StorageReader& reader, TensorId id, Progress& progress) {
  const Tensor& tensor = reader.graph().tensor(id);
  if (const auto why = measure_refusal(tensor.dtype))
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, *why);
  StatsAccumulator stats(tensor.dtype);
  const std::uint64_t count = elements(tensor);
  if (count == 0) return stats.result();
  Stream stream = {reader, tensor, progress};
  if (is_contiguous(tensor))
    add_contiguous(stream, stats, count);
  else
    add_strided(stream, stats);
  return stats.result();
}

void measure_tensors(const StorageReader& reader, std::span<const TensorId> tensors, Progress& progress,
                     const std::function<void(std::size_t, MeasuredTensor)>& done) {
  constexpr std::size_t kMostThreads = 8;  // and as many buffers
  const MetaGraph& graph = reader.graph();
  for (const TensorId id : tensors)
    if (!measure_refusal(graph.tensor(id).dtype)) progress.add_total(tensor_bytes(graph, graph.tensor(id)));
  std::mutex mutex;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  const auto turn = [&](std::size_t i) {
    if (failed) return;
    try {
      MeasuredTensor measured = measure_or_refuse(reader, tensors[i], progress);
      const std::lock_guard lock(mutex);
      done(i, std::move(measured));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  const std::size_t threads = std::min<std::size_t>(
      {std::max(std::thread::hardware_concurrency(), 1u), kMostThreads, tensors.size()});
  ParallelLoop(tensors.size(), threads, turn).finish();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace loadline
