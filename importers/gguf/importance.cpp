// Importance matrices (llama.cpp tools/imatrix). A GGUF file:
//
//   general.type "imatrix", imatrix.datasets [string], imatrix.chunk_count u32
//   NAME.in_sum2 F32 [experts, columns]   sums of squares
//   NAME.counts  F32 [experts, 1]         by how many to divide them; 0: not measured, all weights are 1
//
// The binary form, little-endian:
//
//   i32 entries | { i32 length; name; i32 calls; i32 values; f32 value[values] }
//   optional: i32 chunks | i32 length; dataset's name
//
// where values are divided by `calls`, if that is positive.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"
#include "importers/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace loadline::importers {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr std::uint64_t kMostName = 65'535;
constexpr std::uint64_t kMostDatasetText = 1 << 20;
constexpr std::uint64_t kMostDatasets = 10'000;

// Sorts the entries and checks what both forms promise.
graph::ImportanceMatrix checked(graph::ImportanceMatrix matrix, const io::SourceFile& file) {
  std::ranges::sort(matrix.tensors, {}, &graph::TensorImportance::name);
  const auto fail = [&](const graph::TensorImportance& entry, std::string_view detail) {
    return Error(ErrorCode::malformed, {.file = file.path(), .tensor = entry.name}, detail);
  };
  for (std::size_t i = 0; i < matrix.tensors.size(); ++i) {
    const graph::TensorImportance& entry = matrix.tensors[i];
    if (i > 0 && entry.name == matrix.tensors[i - 1].name) throw fail(entry, "the entry occurs twice");
    const auto wrong = std::ranges::find_if(
        entry.weights, [](float weight) { return !(weight >= 0) || std::isinf(weight); });
    if (wrong != entry.weights.end())
      throw fail(entry, fmt::format("weight {} is {}", wrong - entry.weights.begin(), *wrong));
  }
  return matrix;
}

class GgufImportance {
 public:
  explicit GgufImportance(const io::SourceFile& file) : file_(file), graph_(read_gguf_file(file).graph) {}

  graph::ImportanceMatrix read() {
    const graph::MetaValue* const type = graph::find_metadata(graph_, "general.type");
    const auto* const text = type == nullptr ? nullptr : std::get_if<std::string>(type);
    if (text == nullptr || *text != "imatrix")
      throw Error(ErrorCode::unsupported, {.file = file_.path()},
                  "is not an importance matrix: its general.type is not 'imatrix'");
    if (const graph::MetaValue* const chunks = graph::find_metadata(graph_, "imatrix.chunk_count"))
      if (const auto* const count = std::get_if<std::uint32_t>(chunks)) matrix_.chunks = *count;
    read_datasets();
    for (const graph::Tensor& tensor : graph_.tensors) {
      const std::string_view name = tensor.name.view();
      if (name.ends_with(kSums))
        entries_[std::string(name.substr(0, name.size() - kSums.size()))].first = &tensor;
      if (name.ends_with(kCounts))
        entries_[std::string(name.substr(0, name.size() - kCounts.size()))].second = &tensor;
    }
    if (entries_.empty())
      throw Error(ErrorCode::malformed, {.file = file_.path()}, "has no tensor NAME{}", kSums);
    for (const auto& [name, pair] : entries_) add(name, pair.first, pair.second);
    return std::move(matrix_);
  }

 private:
  Error at_entry(const std::string& name, std::string_view detail) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .tensor = name}, detail);
  }

  void read_datasets() {
    const graph::MetaValue* const value = graph::find_metadata(graph_, "imatrix.datasets");
    const auto* const array = value == nullptr ? nullptr : std::get_if<graph::MetaArray>(value);
    if (array == nullptr || array->element != graph::MetaType::string) return;
    if (array->count > kMostDatasets)
      throw Error(ErrorCode::limit, {.file = file_.path(), .byte = array->offset},
                  "names {} datasets, the limit is {}", array->count, kMostDatasets);
    io::Cursor in(file_, array->offset, array->offset + array->bytes);
    in.set_big_endian(array->big_endian);
    for (std::uint64_t i = 0; i < array->count; ++i)
      matrix_.datasets.push_back(
          in.read_text(in.read<std::uint64_t>("a length"), kMostDatasetText, "a dataset"));
  }

  // The numbers of an F32 tensor. The file has as many bytes as it needs: the GGUF reader has checked that.
  std::vector<float> floats_of(const std::string& name, const graph::Tensor& tensor) const {
    if (tensor.dtype != graph::DType::f32)
      throw at_entry(
          name, fmt::format("'{}' is {}, not F32", tensor.name.view(), graph::dtype_info(tensor.dtype).name));
    const graph::Storage& storage = graph_.storage(tensor.storage);
    std::vector<float> floats(static_cast<std::size_t>(storage.bytes / sizeof(float)));
    file_.read_at(storage.offset, std::as_writable_bytes(std::span(floats)));
    if (storage.encoding == graph::Encoding::byte_swapped)
      for (float& number : floats)
        number = std::bit_cast<float>(__builtin_bswap32(std::bit_cast<std::uint32_t>(number)));
    return floats;
  }

  void add(const std::string& name, const graph::Tensor* sums, const graph::Tensor* counts) {
    if (sums == nullptr || counts == nullptr)
      throw at_entry(name, fmt::format("has no tensor '{}{}'", name, sums == nullptr ? kSums : kCounts));
    graph::TensorImportance entry{name, floats_of(name, *sums)};
    const std::vector<float> divisors = floats_of(name, *counts);
    const std::uint64_t columns = sums->shape.empty() ? 1 : sums->shape.back();
    const std::uint64_t experts = columns == 0 ? 0 : entry.weights.size() / columns;
    if (experts == 0 || divisors.size() != experts)
      throw at_entry(name, fmt::format("has {} counts for {} sums in rows of {}", divisors.size(),
                                       entry.weights.size(), columns));
    for (std::size_t i = 0; i < entry.weights.size(); ++i) {
      const float divisor = divisors[i / static_cast<std::size_t>(columns)];
      if (!(divisor >= 0)) throw at_entry(name, fmt::format("has a count of {}", divisor));
      entry.weights[i] = divisor > 0 ? entry.weights[i] / divisor : 1.0F;
    }
    matrix_.tensors.push_back(std::move(entry));
  }

  const io::SourceFile& file_;
  graph::MetaGraph graph_;
  std::map<std::string, std::pair<const graph::Tensor*, const graph::Tensor*>> entries_;  // sums and counts
  graph::ImportanceMatrix matrix_;
};

class BinaryImportance {
 public:
  explicit BinaryImportance(const io::SourceFile& file) : in_(file) {}

  graph::ImportanceMatrix read() {
    graph::ImportanceMatrix matrix;
    const std::uint64_t count = read_count("entries", kLeastEntry);
    for (std::uint64_t i = 0; i < count; ++i) matrix.tensors.push_back(read_entry());
    if (in_.remaining() == 0) return matrix;
    if (const auto chunks = in_.read<std::int32_t>("the number of chunks"); chunks > 0)
      matrix.chunks = static_cast<std::uint64_t>(chunks);
    if (in_.remaining() == 0) return matrix;
    if (const std::uint64_t length = read_count("bytes of a dataset's name", 1, 0); length > 0)
      matrix.datasets.push_back(in_.read_text(length, kMostDatasetText, "a dataset's name"));
    if (in_.remaining() != 0)
      throw in_.malformed(in_.at(), "{} bytes after the importance matrix", in_.remaining());
    return matrix;
  }

 private:
  static constexpr std::uint64_t kLeastEntry = 4 + 1 + 4 + 4 + 4;

  // A count of things of at least `size` bytes each, which must fit in what remains.
  std::uint64_t read_count(std::string_view what, std::uint64_t size, std::int32_t least = 1) {
    const std::uint64_t at = in_.at();
    const auto count = in_.read<std::int32_t>("a count");
    if (count < least || static_cast<std::uint64_t>(count) > in_.remaining() / size)
      throw in_.malformed(at, "claims {} {}, {} bytes follow", count, what, in_.remaining());
    return static_cast<std::uint64_t>(count);
  }

  graph::TensorImportance read_entry() {
    graph::TensorImportance entry;
    entry.name = in_.read_text(read_count("bytes of a name", 1), kMostName, "a name");
    const auto calls = in_.read<std::int32_t>("the number of calls");
    entry.weights.resize(static_cast<std::size_t>(read_count("values", sizeof(float))));
    in_.read_bytes(std::as_writable_bytes(std::span(entry.weights)), "the values");
    if (calls > 0)
      for (float& weight : entry.weights) weight /= static_cast<float>(calls);
    return entry;
  }

  io::Cursor in_;
};

}  // namespace

graph::ImportanceMatrix read_importance_matrix(const io::SourceFile& file) {
  if (file.head(4) == "GGUF") return checked(GgufImportance(file).read(), file);
  return checked(BinaryImportance(file).read(), file);
}

std::shared_ptr<const graph::ImportanceFile> read_importance_file(const std::string& path) {
  return std::make_shared<const graph::ImportanceFile>(
      graph::ImportanceFile{path, read_importance_matrix(io::SourceFile::open(path))});
}

}  // namespace loadline::importers
