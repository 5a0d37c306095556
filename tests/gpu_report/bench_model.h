// The model that uploads and other loads are measured with.
#pragma once

#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/io/file_system.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::bench {

// A safetensors file of random bytes in a folder of its own: half of them in tensors of 128 MiB, half in
// tensors of 1 MiB, and smaller ones if the file is smaller than 512 MiB.
class BenchModel {
 public:
  // `bytes` is a multiple of 1 MiB. Throws Error{io}.
  BenchModel(const std::string& folder, std::uint64_t bytes);
  const MetaGraphPtr& graph() const { return graph_; }
  const std::string& path() const { return path_; }
  // The share of the file that is in the page cache, by the system's count.
  double cached() const;
  // Asks the system to drop the file's pages.
  void drop() const;

 private:
  TemporaryFolder folder_;
  std::string path_;
  MetaGraphPtr graph_;
};

// The size of model that fits the device, the system's memory and the disk of `folder`: on a GPU 16 GiB at
// most, on a software device 512 MiB. Adds a sentence to `missing` where a GPU gets less.
std::uint64_t fitting_bytes(const gpu::DeviceInfo& device, const std::string& folder,
                            std::vector<std::string>& missing);

}  // namespace loadline::bench
