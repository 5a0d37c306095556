// Writes the file and describes it.
#include "tests/gpu/model_file.h"

#include "core/graph/meta_graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

namespace loadline::gpu {

namespace {

std::vector<TensorKind> bytes_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<TensorKind> kinds;
  for (const std::uint64_t size : sizes) kinds.push_back({DType::u8, {size}});
  return kinds;
}

}  // namespace

ModelFile::ModelFile(const std::vector<std::uint64_t>& sizes, std::uint32_t seed)
    : ModelFile(bytes_of(sizes), seed) {}

ModelFile::ModelFile(const std::vector<TensorKind>& kinds, std::uint32_t seed) {
  static std::atomic<int> count = 0;
  path_ = (std::filesystem::temp_directory_path() /
           fmt::format("loadline-gpu-{}-{}.bin", ::getpid(), count.fetch_add(1)))
              .string();
  MetaGraph graph;
  graph.format = "test";
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::uint64_t elements =
        std::accumulate(kinds[i].shape.begin(), kinds[i].shape.end(), std::uint64_t{1}, std::multiplies<>());
    const std::uint64_t bytes = *byte_size(kinds[i].dtype, elements);
    graph.storages.push_back(plain_storage(FileId{0}, total, bytes));
    Tensor tensor;
    tensor.name = fmt::format("t{}", i);
    tensor.dtype = kinds[i].dtype;
    tensor.shape = kinds[i].shape;
    tensor.storage = StorageId{static_cast<std::uint32_t>(i)};
    graph.tensors.push_back(tensor);
    total += bytes;
  }
  graph.files.push_back({.path = path_, .bytes = total});
  validate(graph);
  graph_ = std::make_shared<const MetaGraph>(std::move(graph));

  std::mt19937_64 random(seed);
  content_.resize(static_cast<std::size_t>(total));
  for (std::size_t at = 0; at < content_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(content_.data() + at, &word, std::min(sizeof word, content_.size() - at));
  }
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(content_.size()));
}

ModelFile::~ModelFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::vector<std::byte> ModelFile::bytes(StorageId id) const {
  const Storage& storage = graph_->storage(id);
  const auto begin = content_.begin() + static_cast<std::ptrdiff_t>(storage.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(storage.bytes)};
}

void ModelFile::flip(std::uint64_t offset) const {
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(~std::to_integer<unsigned char>(content_[static_cast<std::size_t>(offset)])));
}

}  // namespace loadline::gpu
