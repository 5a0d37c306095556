// Elements of GGUF arrays; files opened at first use; strided tensors gathered by boxes.
#include "core/io/graph_reader.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace loadline::io {

// --- Reads GGUF arrays, the only kind so far: consecutive numbers, or strings that each follow a u64 length.

namespace {

template <typename T>
graph::MetaValue number(Cursor& cursor) {
  return cursor.read<T>("a number");
}

}  // namespace

graph::MetaValue read_meta_number(Cursor& cursor, graph::MetaType type) {
  using Read = graph::MetaValue (*)(Cursor&);
  // in the order of MetaType
  constexpr Read kReaders[] = {
      [](Cursor& in) -> graph::MetaValue { return in.read<std::uint8_t>("a bool") != 0; },
      number<std::uint8_t>,
      number<std::int8_t>,
      number<std::uint16_t>,
      number<std::int16_t>,
      number<std::uint32_t>,
      number<std::int32_t>,
      number<std::uint64_t>,
      number<std::int64_t>,
      number<float>,
      number<double>};
  const auto at = static_cast<std::size_t>(type);
  if (at < std::size(kReaders)) return kReaders[at](cursor);
  throw cursor.malformed(cursor.at(), "no number, but {}", graph::meta_type_name(type));
}

namespace {

graph::MetaValue read_element(Cursor& cursor, graph::MetaType type) {
  if (type != graph::MetaType::string) return read_meta_number(cursor, type);
  const auto bytes = cursor.read<std::uint64_t>("a string's length");
  const std::uint64_t kept = std::min(bytes, kMostElementText);
  std::string text = cursor.read_text(kept, kMostElementText, "a string");
  cursor.skip(bytes - kept, "a string");
  return text;
}

}  // namespace

MetaArrayReader::MetaArrayReader(const graph::MetaGraph& graph, const graph::MetaArray& array)
    : MetaArrayReader(SourceFile::open(graph.file(array.file).path), array) {}
MetaArrayReader::MetaArrayReader(const SourceFile& file, const graph::MetaArray& array)
    : MetaArrayReader(file.part(file.path(), 0, file.size()), array) {}
MetaArrayReader::MetaArrayReader(SourceFile&& file, const graph::MetaArray& array)
    : array_(array), file_(std::move(file)), cursor_(file_, array.offset, array.offset + array.bytes) {
  cursor_.set_big_endian(array.big_endian);
}

void MetaArrayReader::skip(std::uint64_t count) {
  const std::uint64_t stepped = std::min(count, remaining());
  if (array_.element == graph::MetaType::string)
    for (std::uint64_t i = 0; i < stepped; ++i)
      cursor_.skip(cursor_.read<std::uint64_t>("a string's length"), "a string");
  else if (stepped > 0)
    cursor_.skip(stepped * (array_.bytes / array_.count), "elements");
  at_ += stepped;
}

graph::MetaValue MetaArrayReader::next() {
  ++at_;
  return read_element(cursor_, array_.element);
}

std::vector<graph::MetaValue> read_meta_array(const graph::MetaGraph& graph, const graph::MetaArray& array,
                                              std::uint64_t first, std::uint64_t count) {
  MetaArrayReader reader(graph, array);
  reader.skip(first);
  std::vector<graph::MetaValue> elements;
  for (std::uint64_t left = std::min(count, reader.remaining()); left > 0; --left)
    elements.push_back(reader.next());
  return elements;
}

// --- Opens the files of a graph's storages at their first use.

StorageReader::StorageReader(graph::MetaGraphPtr graph)
    : graph_(std::move(graph)), files_(graph_->files.size()) {}

const SourceFile& StorageReader::file_of(graph::StorageId id) const {
  const graph::Storage& storage = graph_->storage(id);
  if (storage.file == graph::kNoFile)
    throw Error(ErrorCode::usage, "this model has shapes only: no file holds its weights");
  const graph::ModelFile& file = graph_->files[graph::index(storage.file)];
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SourceFile>& slot = files_[graph::index(storage.file)];
  if (!slot) {
    auto opened = std::make_unique<SourceFile>(SourceFile::open(file.path));
    if (opened->size() != file.bytes)
      throw Error(ErrorCode::io, {.file = file.path}, "has {} bytes now, it had {} when the model was opened",
                  opened->size(), file.bytes);
    slot = std::move(opened);
  }
  return *slot;
}

void StorageReader::require_range(graph::StorageId id, std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t most = graph_->storage(id).bytes;
  if (!range_fits(offset, bytes, most))
    throw Error(ErrorCode::usage, "reads {} bytes at {} of a storage of {}", bytes, offset, most);
}

void StorageReader::read(graph::StorageId id, std::uint64_t offset, std::span<std::byte> out) const {
  const graph::Storage& storage = graph_->storage(id);
  require_range(id, offset, out.size());
  switch (storage.encoding) {
    case graph::Encoding::plain:
      return file_of(id).read_at(storage.offset + offset, out);
    case graph::Encoding::byte_swapped:
      return read_swapped(file_of(id), storage, offset, out);
    default:
      return read_decoded(id, offset, out);
  }
}

void StorageReader::read_decoded(graph::StorageId id, std::uint64_t offset, std::span<std::byte> out) const {
  const SourceFile& file = file_of(id);
  const std::lock_guard lock(decoder_mutex_);
  if (!decoder_ || decoded_ != id || decoder_->at() > offset) {
    decoder_ = make_decoder(file, graph_->storage(id));
    decoded_ = id;
  }
  try {
    std::array<std::byte, 16 << 10> passed = {};
    while (decoder_->at() < offset)
      decoder_->read(std::span(passed).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(passed.size(), offset - decoder_->at()))));
    decoder_->read(out);
  } catch (...) {
    decoder_.reset();  // it stopped in the middle of the storage
    throw;
  }
}

// --- Gathers strided tensors. A range is cut into boxes of indices. A box whose bytes lie close together is
// read whole and its elements are copied out in memory; any other box is split along its longest stride.

namespace {

// A read may be this many times larger than the wanted bytes, or one page.
constexpr std::uint64_t kMostWaste = 4;
constexpr std::uint64_t kPage = 4096;

struct Dimension {
  std::uint64_t size = 0;
  std::uint64_t stride = 0;  // in elements of the storage
  std::uint64_t inner = 1;   // elements of the tensor that one step passes
};

// The dimensions without those of size 1; neighbors that are contiguous together are merged.
std::vector<Dimension> dimensions(const graph::Tensor& tensor) {
  std::vector<Dimension> result;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const std::uint64_t size = tensor.shape[i], stride = tensor.strides[i];
    if (size == 1) continue;
    if (!result.empty() && result.back().stride == size * stride) {
      result.back().size *= size;
      result.back().stride = stride;
    } else {
      result.push_back({size, stride, 1});
    }
  }
  if (result.empty()) result.push_back({1, 1, 1});
  for (std::size_t i = result.size() - 1; i-- > 0;)
    result[i].inner = result[i + 1].inner * result[i + 1].size;
  return result;
}

// Indices [begin, begin + count) in each dimension.
struct Box {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> count;
};

class Gatherer {
 public:
  Gatherer(const StorageReader& storages, const graph::Tensor& tensor)
      : storages_(storages),
        tensor_(tensor),
        dimensions_(dimensions(tensor)),
        item_(graph::dtype_info(tensor.dtype).block_bytes) {}

  // Reads elements from `first` on until `out` is full.
  void gather(std::uint64_t first, std::span<std::byte> out) {
    out_ = out.data();
    first_ = first;
    const std::uint64_t end = first + out.size() / item_;
    for (std::uint64_t at = first; at < end;) {
      Box box;
      at += largest_box(at, end, box);
      gather_box(std::move(box));
    }
  }

 private:
  // The box of the most elements that begins at element `at` and is whole in `end`.
  std::uint64_t largest_box(std::uint64_t at, std::uint64_t end, Box& box) const {
    for (const Dimension& dimension : dimensions_) {
      box.begin.push_back(at / dimension.inner % dimension.size);
      box.count.push_back(1);
    }
    for (std::size_t i = 0;; ++i) {
      const std::uint64_t inner = dimensions_[i].inner;
      const std::uint64_t whole = std::min(dimensions_[i].size - box.begin[i], (end - at) / inner);
      if (at % inner != 0 || whole == 0) continue;  // the last dimension always fits
      box.count[i] = whole;
      for (std::size_t j = i + 1; j < dimensions_.size(); ++j) box.count[j] = dimensions_[j].size;
      return whole * inner;
    }
  }

  void gather_box(Box whole) {
    std::vector<Box> waiting;
    waiting.push_back(std::move(whole));
    while (!waiting.empty()) {
      Box box = std::move(waiting.back());
      waiting.pop_back();
      std::uint64_t from = 0, span = 1, elements = 1;
      for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        from += box.begin[i] * dimensions_[i].stride;
        span += (box.count[i] - 1) * dimensions_[i].stride;
        elements *= box.count[i];
      }
      const bool close = span <= kMostWaste * elements || span * item_ <= kPage;
      if (elements == 1 || (close && span * item_ <= TensorReader::kMostGathered)) {
        load(from, span);
        pick(box);
      } else {
        split(std::move(box), waiting);
      }
    }
  }

  // Splits the box along its longest stride. The half that lies first in the file goes on top of the stack.
  void split(Box box, std::vector<Box>& waiting) const {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      if (box.count[i] > 1 &&
          (box.count[longest] == 1 || dimensions_[i].stride > dimensions_[longest].stride))
        longest = i;
    const std::uint64_t half = box.count[longest] / 2;
    Box rest = box;
    rest.begin[longest] += half;
    rest.count[longest] -= half;
    box.count[longest] = half;
    waiting.push_back(std::move(rest));
    waiting.push_back(std::move(box));
  }

  // Reads elements [from, from + span) of the storage into the buffer, unless they are there already, as with
  // a stride of 0.
  void load(std::uint64_t from, std::uint64_t span) {
    if (loaded_ && from == loaded_from_ && span * item_ == buffer_.size()) return;
    buffer_.resize(static_cast<std::size_t>(span * item_));
    loaded_ = false;
    storages_.read(tensor_.storage, tensor_.offset + from * item_, buffer_);
    loaded_ = true;
    loaded_from_ = from;
  }

  // Copies a box out of the buffer in runs along its longest side: a row of a transposed tensor's storage is
  // a column here.
  void pick(const Box& box) const {
    const auto longest = std::max_element(box.count.rbegin(), box.count.rend());
    const auto along = static_cast<std::size_t>(box.count.rend() - longest) - 1;
    std::vector<std::uint64_t> at(dimensions_.size(), 0);
    while (true) {
      std::uint64_t from = 0, to = 0;
      for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        from += at[i] * dimensions_[i].stride;
        to += (box.begin[i] + at[i]) * dimensions_[i].inner;
      }
      copy_run(buffer_.data() + from * item_, out_ + (to - first_) * item_, dimensions_[along],
               box.count[along]);
      std::size_t i = dimensions_.size();
      while (i-- > 0 && (i == along || ++at[i] == box.count[i])) at[i] = 0;
      if (i == static_cast<std::size_t>(-1)) return;
    }
  }

  void copy_run(const std::byte* from, std::byte* to, const Dimension& along, std::uint64_t count) const {
    if (along.stride == 1 && along.inner == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(count * item_));
      return;
    }
    const auto item = static_cast<std::size_t>(item_);
    const std::size_t step = static_cast<std::size_t>(along.stride) * item;
    const std::size_t to_step = static_cast<std::size_t>(along.inner) * item;
    const auto copy = [&](auto width) {
      for (std::uint64_t i = 0; i < count; ++i, from += step, to += to_step) std::memcpy(to, from, width);
    };
    // with a width known to the compiler each copy is one move
    switch (item_) {
      case 1:
        return copy(std::integral_constant<std::size_t, 1>());
      case 2:
        return copy(std::integral_constant<std::size_t, 2>());
      case 4:
        return copy(std::integral_constant<std::size_t, 4>());
      case 8:
        return copy(std::integral_constant<std::size_t, 8>());
      default:
        return copy(item);
    }
  }

  const StorageReader& storages_;
  const graph::Tensor& tensor_;
  std::vector<Dimension> dimensions_;
  std::uint64_t item_;
  std::byte* out_ = nullptr;
  std::uint64_t first_ = 0;  // element that out_ begins with
  std::vector<std::byte> buffer_;
  std::uint64_t loaded_from_ = 0;
  bool loaded_ = false;
};

}  // namespace

void TensorReader::read(graph::TensorId tensor, std::uint64_t offset, std::span<std::byte> out) const {
  read(storages_.graph().tensor(tensor), offset, out);
}

void TensorReader::read(const graph::Tensor& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  if (graph::is_contiguous(tensor)) return storages_.read(tensor.storage, tensor.offset + offset, out);
  const graph::DTypeInfo& info = graph::dtype_info(tensor.dtype);
  if (info.block_elements != 1)
    throw Error(ErrorCode::unsupported, {.tensor = tensor.name}, "a strided view of {} cannot be read",
                info.name);
  const std::uint64_t item = info.block_bytes;
  if (offset > graph::elements(tensor) * item || out.size() > graph::elements(tensor) * item - offset)
    throw Error(ErrorCode::usage, {.tensor = tensor.name}, "reads {} bytes at {} of a tensor of {}",
                out.size(), offset, graph::elements(tensor) * item);
  Gatherer gatherer(storages_, tensor);
  std::array<std::byte, 16> one = {};
  while (!out.empty()) {
    const std::uint64_t within = offset % item;
    std::size_t n = out.size() / item * item;
    if (within == 0 && n > 0) {
      gatherer.gather(offset / item, out.first(n));
    } else {  // a part of an element
      gatherer.gather(offset / item, std::span(one).first(item));
      n = std::min<std::size_t>(out.size(), item - within);
      std::copy_n(one.begin() + static_cast<std::ptrdiff_t>(within), n, out.begin());
    }
    offset += n;
    out = out.subspan(n);
  }
}

}  // namespace loadline::io
