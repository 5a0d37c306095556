// Streams tensors into a StatsAccumulator.
#include "core/inspect/tensor_stats.h"

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/graph/validate.h"
#include "core/io/tensor_reader.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

namespace loadline {
namespace {

constexpr std::uint64_t kBuffer = 1 << 20;
// Rows of a transposed tensor are columns in its file: the more rows are read at once, the longer the reads.
constexpr std::uint64_t kStridedBuffer = 4 << 20;

// The tensor without its repetitions: elements that a stride of 0 repeats appear once.
Tensor without_repeats(const StorageReader& reader, const Tensor& tensor) {
  Tensor once = tensor;
  std::uint64_t places = 1;  // cannot overflow: the tensor is valid
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    if (tensor.strides[i] == 0) once.shape[i] = 1;
    places *= once.shape[i];
  }
  const DTypeInfo& info = dtype_info(tensor.dtype);
  if (!once.strides.empty() && info.block_elements == 1 &&
      places > reader.graph().storage(tensor.storage).bytes / info.block_bytes)
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, "its view repeats elements of its storage");
  return once;
}

// Adds the elements in the tensor's order.
void add_values(const StorageReader& reader, const Tensor& tensor, StatsAccumulator& stats,
                Progress& progress) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const TensorReader values(reader);
  std::uint64_t left = elements(tensor), offset = 0;
  const std::uint64_t most_bytes = is_contiguous(tensor) ? kBuffer : kStridedBuffer;
  const std::uint64_t most = std::min(left, most_bytes / info.block_bytes * info.block_elements);
  const auto buffer_bytes = static_cast<std::size_t>(packed_byte_size(info.id, most).value());
  const std::unique_ptr<std::byte[]> buffer(new std::byte[buffer_bytes]);  // not set to zero first
  while (left > 0) {
    progress.check_cancelled();
    const std::uint64_t count = std::min(left, most);
    const std::span part(buffer.get(), static_cast<std::size_t>(packed_byte_size(info.id, count).value()));
    values.read(tensor, offset, part);
    stats.add(part, count);
    progress.add(part.size());
    offset += part.size();
    left -= count;
  }
}

// Whether an error concerns one tensor only.
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
  return dtype_info(dtype).kind == DTypeKind::text ? "it holds text" : "its type is not known";
}

ValueStats tensor_stats(const StorageReader& reader, TensorId id, Progress& progress) {
  const Tensor& tensor = reader.graph().tensor(id);
  if (const auto why = measure_refusal(tensor.dtype))
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, *why);
  StatsAccumulator stats(tensor.dtype);
  if (elements(tensor) > 0) add_values(reader, without_repeats(reader, tensor), stats, progress);
  return stats.result();
}

void measure_tensors(const StorageReader& reader, std::span<const TensorId> tensors, Progress& progress,
                     const std::function<void(std::size_t, MeasuredTensor)>& done) {
  constexpr std::size_t kMostThreads = 8;  // and as many buffers
  const MetaGraph& graph = reader.graph();
  for (const TensorId id : tensors)
    if (!measure_refusal(graph.tensor(id).dtype)) progress.add_total(tensor_bytes(graph, graph.tensor(id)));
  std::mutex mutex;
  const auto turn = [&](std::size_t i) {
    MeasuredTensor measured = measure_or_refuse(reader, tensors[i], progress);
    const std::lock_guard lock(mutex);
    done(i, std::move(measured));
  };
  const std::size_t threads = std::min<std::size_t>(
      {std::max(std::thread::hardware_concurrency(), 1u), kMostThreads, tensors.size()});
  ParallelLoop(tensors.size(), threads, turn).finish();
}

}  // namespace loadline
