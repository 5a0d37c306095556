// Cuts the pairs into parts of a few megabytes, which threads compare one after another.
#include "core/inspect/compare_models.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace loadline::inspect {
namespace {

constexpr std::uint64_t kBuffer = 1 << 20;           // bytes that are read of each model at once
constexpr std::uint64_t kNumbers = 64 << 10;         // numbers that are compared at once
constexpr std::uint64_t kPartElements = 8ull << 20;  // a multiple of kNumbers and of every block
constexpr std::uint64_t kRecipeMemory = 1 << 20;
constexpr std::size_t kMostThreads = 8;

// Elements [first, first + count) of a pair.
struct Part {
  std::uint32_t pair = 0;
  std::uint64_t first = 0, count = 0;
};

enum class How : std::uint8_t { bytes, packed_bytes, numbers };

// Types that a tolerance applies to.
bool is_number_type(const Weight& weight) {
  const graph::DTypeInfo& type = graph::dtype_info(weight.dtype);
  return weight.packed || type.kind == graph::DTypeKind::floating || convert::can_dequantize(weight.dtype);
}

// One tensor, as its file has it.
bool is_stored(const Weight& weight) { return !weight.packed && !weight.recipe; }

// Elements of a weight; for a type without a fixed size, its bytes.
std::uint64_t element_total(const graph::MetaGraph& graph, const Weight& weight) {
  return graph::dtype_info(weight.dtype).block_elements == 0 ? weight_bytes(graph, weight)
                                                             : graph::element_count(weight.shape).value_or(0);
}

// Whether what a weight is read from can only be read from front to back.
bool is_stream(const graph::MetaGraph& graph, const Weight& weight) {
  const auto of = [&](graph::TensorId id) {
    const graph::Encoding encoding = graph.storage(graph.tensor(id).storage).encoding;
    return encoding != graph::Encoding::plain && encoding != graph::Encoding::byte_swapped;
  };
  return weight.recipe ? std::ranges::any_of(convert::recipe_tensors(graph, *weight.recipe), of)
                       : of(weight.tensor);
}

// The bytes of a weight of one model, as stored or as computed. For one thread.
class ByteStream {
 public:
  ByteStream(const graph::MetaGraph& graph, const io::ReadTensor& read, const Weight& weight)
      : read_(read), tensor_(weight.tensor) {
    if (weight.recipe) computed_.emplace(graph, read, *weight.recipe, kRecipeMemory);
  }
  ByteStream(const io::ReadTensor& read, graph::TensorId tensor) : read_(read), tensor_(tensor) {}

  void read(std::uint64_t offset, std::span<std::byte> out) {
    if (computed_)
      computed_->read(offset, out);
    else
      read_(tensor_, offset, out);
  }

 private:
  const io::ReadTensor& read_;
  graph::TensorId tensor_;
  std::optional<convert::RecipeReader> computed_;
};

// The numbers of a weight of one model. For one thread.
class NumberStream {
 public:
  NumberStream(const graph::MetaGraph& graph, const io::ReadTensor& read, const Weight& weight)
      : bytes_of_(graph, read, weight), dtype_(weight.dtype) {
    if (weight.packed)
      unpacked_.emplace(graph, read, convert::unpack(*weight.packed), kRecipeMemory);
    else
      numbers_.emplace(weight.dtype);
  }

  // `first` is a multiple of kNumbers.
  std::span<const double> read(std::uint64_t first, std::uint64_t count) {
    doubles_.resize(static_cast<std::size_t>(count));
    if (unpacked_) {
      floats_.resize(doubles_.size());
      unpacked_->read(first * sizeof(float), std::as_writable_bytes(std::span(floats_)));
      std::ranges::copy(floats_, doubles_.begin());
    } else {
      bytes_.resize(static_cast<std::size_t>(graph::packed_byte_size(dtype_, count).value()));
      bytes_of_.read(graph::byte_size(dtype_, first).value(), bytes_);
      numbers_->read(bytes_, doubles_);
    }
    return doubles_;
  }

 private:
  ByteStream bytes_of_;
  graph::DType dtype_;
  std::optional<convert::RecipeReader> unpacked_;
  std::optional<convert::Numbers> numbers_;
  std::vector<std::byte> bytes_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

class Comparer {
 public:
  Comparer(const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b, const CompareOptions& options,
           Progress& progress, Comparison& into)
      : a_(a),
        b_(b),
        options_(options),
        progress_(progress),
        result_(into),
        reader_a_(a),
        reader_b_(b),
        how_(into.match.pairs.size()),
        same_as_(into.match.pairs.size(), UINT32_MAX),
        tallies_(into.match.pairs.size()) {
    result_.results.resize(into.match.pairs.size());
  }

  void run() {
    for (std::uint32_t i = 0; i < result_.match.pairs.size(); ++i) prepare(i);
    const std::size_t threads =
        std::min<std::size_t>({cores(), kMostThreads, std::max<std::size_t>(parts_.size(), 1)});
    ParallelLoop(parts_.size(), threads, [&](std::size_t i) { compare(parts_[i]); }).finish();
    for (std::uint32_t i = 0; i < result_.results.size(); ++i) finish(i);
  }

 private:
  const Weight& a(std::uint32_t pair) const { return result_.match.a[result_.match.pairs[pair].a]; }
  const Weight& b(std::uint32_t pair) const { return result_.match.b[result_.match.pairs[pair].b]; }

  void prepare(std::uint32_t pair) {
    PairResult& result = result_.results[pair];
    const Weight &of_a = a(pair), &of_b = b(pair);
    if (!same_shape(of_a.shape, of_b.shape)) {
      result.state = PairState::other_shape;
      return;
    }
    const auto how = way(of_a, of_b);
    if (!how) {
      result.state = PairState::other_type;
      return;
    }
    if (element_total(*a_, of_a) != element_total(*b_, of_b)) {  // of a type without a fixed size
      result.state = PairState::other_shape;
      return;
    }
    if (!options_.values) return;
    how_[pair] = *how;
    if (const auto twin = same_bytes_before(pair)) {
      same_as_[pair] = *twin;
      return;
    }
    result_.bytes += weight_bytes(*a_, of_a);
    if (is_one_range(of_a, of_b)) {
      result.state = PairState::equal;
      return;
    }
    progress_.add_total(weight_bytes(*a_, of_a) + weight_bytes(*b_, of_b));
    const std::uint64_t total = element_total(*a_, of_a);
    const bool whole = *how == How::packed_bytes || is_stream(*a_, of_a) || is_stream(*b_, of_b);
    const std::uint64_t most = whole ? std::max<std::uint64_t>(total, 1) : kPartElements;
    for (std::uint64_t first = 0; first < total; first += most)
      parts_.push_back({pair, first, std::min(most, total - first)});
  }

  // How two weights of the same shape are compared; nothing if their types differ.
  std::optional<How> way(const Weight& of_a, const Weight& of_b) const {
    const bool packed = of_a.packed || of_b.packed;
    if (!packed && of_a.dtype == of_b.dtype) return How::bytes;
    if (options_.tolerance && is_number_type(of_a) && is_number_type(of_b)) return How::numbers;
    return packed_alike(*a_, of_a, *b_, of_b) ? std::optional(How::packed_bytes) : std::nullopt;
  }

  // An earlier pair of tensors on the same bytes: tied weights.
  std::optional<std::uint32_t> same_bytes_before(std::uint32_t pair) {
    if (!is_stored(a(pair)) || !is_stored(b(pair))) return std::nullopt;
    const graph::Tensor &x = a_->tensor(a(pair).tensor), &y = b_->tensor(b(pair).tensor);
    const auto [found, added] = seen_.try_emplace(std::tuple(x.storage, x.offset, y.storage, y.offset), pair);
    if (added) return std::nullopt;
    const graph::Tensor& earlier_x = a_->tensor(a(found->second).tensor);
    const graph::Tensor& earlier_y = b_->tensor(b(found->second).tensor);
    const auto same_view = [](const graph::Tensor& one, const graph::Tensor& other) {
      return one.dtype == other.dtype && one.shape == other.shape && one.strides == other.strides;
    };
    return same_view(x, earlier_x) && same_view(y, earlier_y) ? std::optional(found->second) : std::nullopt;
  }

  // Whether both are the same bytes of one file.
  bool is_one_range(const Weight& of_a, const Weight& of_b) {
    if (!is_stored(of_a) || !is_stored(of_b) || of_a.dtype != of_b.dtype) return false;
    const graph::Tensor &x = a_->tensor(of_a.tensor), &y = b_->tensor(of_b.tensor);
    const graph::Storage &s = a_->storage(x.storage), &t = b_->storage(y.storage);
    if (s.encoding != graph::Encoding::plain || t.encoding != graph::Encoding::plain ||
        s.file == graph::kNoFile || t.file == graph::kNoFile || s.offset + x.offset != t.offset + y.offset ||
        x.strides != y.strides)
      return false;
    const auto [found, added] = one_file_.try_emplace({s.file, t.file}, false);
    if (added) {
      std::error_code failure;
      found->second = std::filesystem::equivalent(a_->file(s.file).path, b_->file(t.file).path, failure);
    }
    return found->second;
  }

  void compare(const Part& part) {
    DifferenceTally tally;
    try {
      const Weight &of_a = a(part.pair), &of_b = b(part.pair);
      // a reader decodes one storage at a time
      std::optional<io::StorageReader> own_a, own_b;
      if (is_stream(*a_, of_a)) own_a.emplace(a_);
      if (is_stream(*b_, of_b)) own_b.emplace(b_);
      const io::TensorReader tensors_a(own_a ? *own_a : reader_a_), tensors_b(own_b ? *own_b : reader_b_);
      const io::ReadTensor read_a = counted(tensors_a), read_b = counted(tensors_b);
      if (how_[part.pair] == How::numbers)
        compare_numbers(part, read_a, read_b, tally, *options_.tolerance);
      else if (how_[part.pair] == How::bytes)
        compare_bytes(of_a, of_b, part, read_a, read_b, tally);
      else
        compare_packed(part, read_a, read_b, tally);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      const std::lock_guard lock(mutex_);
      result_.results[part.pair].refusal = error.what();
      return;
    }
    const std::lock_guard lock(mutex_);
    tallies_[part.pair].join(tally);
  }

  io::ReadTensor counted(const io::TensorReader& tensors) {
    return [this, &tensors](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
      progress_.check_canceled();
      tensors.read(id, offset, out);
      progress_.add(out.size());
      read_ += out.size();
    };
  }

  // Reads a range of two weights of one type; calls `differ(first, count, bytes of a, bytes of b)` for pieces
  // of it that are not equal.
  template <typename Differ>
  void read_both(graph::DType dtype, ByteStream of_a, ByteStream of_b, const Part& part, Differ differ) {
    const graph::DTypeInfo& type = graph::dtype_info(dtype);
    const std::uint64_t unit = std::max<std::uint32_t>(type.block_elements, 1);
    const std::uint64_t unit_bytes = std::max<std::uint32_t>(type.block_bytes, 1);
    const std::uint64_t most = std::min(part.count, kBuffer / unit_bytes * unit);
    std::unique_ptr<io::Pages> buffers = take_buffers();
    for (std::uint64_t done = 0; done < part.count;) {
      const std::uint64_t count = std::min(most, part.count - done);
      const std::uint64_t offset = (part.first + done) / unit * unit_bytes;
      const auto bytes = static_cast<std::size_t>((count + unit - 1) / unit * unit_bytes);
      const auto to_a = buffers->span().first(bytes), to_b = buffers->span().subspan(kBuffer, bytes);
      of_a.read(offset, to_a);
      of_b.read(offset, to_b);
      if (std::memcmp(to_a.data(), to_b.data(), bytes) != 0) differ(part.first + done, count, to_a, to_b);
      done += count;
    }
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(buffers));
  }

  // For bytes of both models. Parts hand them on: each page of new memory costs a trap.
  std::unique_ptr<io::Pages> take_buffers() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<io::Pages>(2 * kBuffer);
    std::unique_ptr<io::Pages> taken = std::move(spare_.back());
    spare_.pop_back();
    return taken;
  }

  void compare_bytes(const Weight& of_a, const Weight& of_b, const Part& part, const io::ReadTensor& read_a,
                     const io::ReadTensor& read_b, DifferenceTally& tally) {
    const bool numbers = options_.tolerance && is_number_type(of_a);
    read_both(of_a.dtype, ByteStream(*a_, read_a, of_a), ByteStream(*b_, read_b, of_b), part,
              [&](std::uint64_t first, std::uint64_t count, std::span<const std::byte> x,
                  std::span<const std::byte> y) {
                if (numbers)
                  tally.add_close(of_a.dtype, first, count, x, y, *options_.tolerance);
                else
                  tally.add_bytes(of_a.dtype, first, count, x, y);
              });
  }

  void compare_numbers(const Part& part, const io::ReadTensor& read_a, const io::ReadTensor& read_b,
                       DifferenceTally& tally, const Tolerance& tolerance) {
    NumberStream x(*a_, read_a, a(part.pair)), y(*b_, read_b, b(part.pair));
    for (std::uint64_t done = 0; done < part.count; done += kNumbers) {
      const std::uint64_t count = std::min(kNumbers, part.count - done);
      tally.add_numbers(part.first + done, x.read(part.first + done, count), y.read(part.first + done, count),
                        tolerance);
    }
  }

  // All stored parts of two packed weights; if any differ, the numbers that they give.
  void compare_packed(const Part& part, const io::ReadTensor& read_a, const io::ReadTensor& read_b,
                      DifferenceTally& tally) {
    const graph::LogicalTensor& x = a_->logical[*a(part.pair).packed];
    const graph::LogicalTensor& y = b_->logical[*b(part.pair).packed];
    bool same = same_tensor(x.codes, y.codes, read_a, read_b);
    for (std::size_t i = 0; i < x.companions.size() && same; ++i)
      same = same_tensor(x.companions[i].tensor, y.companions[i].tensor, read_a, read_b);
    if (same) return;
    tally.add_hidden();
    compare_numbers(part, read_a, read_b, tally, Tolerance());
  }

  bool same_tensor(graph::TensorId x, graph::TensorId y, const io::ReadTensor& read_a,
                   const io::ReadTensor& read_b) {
    const graph::Tensor &of_a = a_->tensor(x), &of_b = b_->tensor(y);
    const std::uint64_t bytes = graph::tensor_bytes(*a_, of_a);
    if (bytes != graph::tensor_bytes(*b_, of_b)) return false;
    bool same = true;
    read_both(graph::DType::opaque, ByteStream(read_a, x), ByteStream(read_b, y), {0, 0, bytes},
              [&](std::uint64_t, std::uint64_t, auto, auto) { same = false; });
    return same;
  }

  void finish(std::uint32_t pair) {
    PairResult& result = result_.results[pair];
    if (!options_.values || result.state != PairState::not_looked) return;
    if (same_as_[pair] != UINT32_MAX) {
      result = result_.results[same_as_[pair]];
      return;
    }
    result.difference = tallies_[pair].result(element_total(*a_, a(pair)));
    result.state = !result.refusal.empty() ? PairState::refused
                   : result.difference     ? PairState::other_values
                                           : PairState::equal;
    result_.bytes_read = read_;
  }

  graph::MetaGraphPtr a_, b_;
  const CompareOptions& options_;
  Progress& progress_;
  Comparison& result_;
  io::StorageReader reader_a_, reader_b_;
  std::vector<How> how_;                // by pair
  std::vector<std::uint32_t> same_as_;  // by pair: an earlier pair with the same bytes
  std::vector<Part> parts_;
  std::map<std::tuple<graph::StorageId, std::uint64_t, graph::StorageId, std::uint64_t>, std::uint32_t> seen_;
  std::map<std::pair<graph::FileId, graph::FileId>, bool> one_file_;
  std::atomic<std::uint64_t> read_ = 0;
  std::mutex mutex_;
  std::vector<DifferenceTally> tallies_;  // by pair
  std::vector<std::unique_ptr<io::Pages>> spare_;
};

}  // namespace

std::uint64_t Comparison::count(PairState state) const {
  return static_cast<std::uint64_t>(std::ranges::count(results, state, &PairResult::state));
}

Comparison compare_models(const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b,
                          const CompareOptions& options, Progress& progress) {
  return compare_models(a, b, match_weights(*a, *b), options, progress);
}

Comparison compare_models(const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b, Matching match,
                          const CompareOptions& options, Progress& progress) {
  Comparison result;
  result.match = std::move(match);
  Comparer(a, b, options, progress, result).run();
  return result;
}

}  // namespace loadline::inspect
