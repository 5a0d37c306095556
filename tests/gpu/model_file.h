// A small model over a temporary file of random bytes.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace loadline::gpu {

struct TensorKind {
  graph::DType dtype = graph::DType::u8;
  std::vector<std::uint64_t> shape = {};
};

// The file is removed with the object.
class ModelFile {
 public:
  // One tensor "t0", "t1", ... per size, back to back in the file.
  explicit ModelFile(const std::vector<std::uint64_t>& sizes, std::uint32_t seed = 1);
  // Tensors of these kinds, likewise.
  static ModelFile of_kinds(const std::vector<TensorKind>& kinds) { return ModelFile(kinds, 1); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ~ModelFile();

  const graph::MetaGraphPtr& graph() const { return graph_; }
  const std::string& path() const { return path_; }
  std::vector<std::byte> bytes(graph::StorageId id) const;
  // Changes one byte in the file.
  void flip(std::uint64_t offset) const;

 private:
  ModelFile(const std::vector<TensorKind>& kinds, std::uint32_t seed);

  std::string path_;
  std::vector<std::byte> content_;
  graph::MetaGraphPtr graph_;
};

}  // namespace loadline::gpu
