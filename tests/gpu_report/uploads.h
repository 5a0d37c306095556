// What uploads to one device cost in time and memory, and the model that they are measured with.
#pragma once

#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/io/file_system.h"
#include "tests/bench/harness.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace loadline::bench {

// --- The model that uploads and other loads are measured with.

// A safetensors file of random bytes in a folder of its own: half of them in tensors of 128 MiB, half in
// tensors of 1 MiB, and smaller ones if the file is smaller than 512 MiB.
class BenchModel {
 public:
  // `bytes` is a multiple of 1 MiB. Throws Error{io}.
  BenchModel(const std::string& folder, std::uint64_t bytes);
  const graph::MetaGraphPtr& graph() const { return graph_; }
  const std::string& path() const { return path_; }
  // The share of the file that is in the page cache, by the system's count.
  double cached() const;
  // Asks the system to drop the file's pages.
  void drop() const;

 private:
  io::TemporaryFolder folder_;
  std::string path_;
  graph::MetaGraphPtr graph_;
};

// The size of model that fits the device, the system's memory and the disk of `folder`: on a GPU 16 GiB at
// most, on a software device 512 MiB. Adds a sentence to `missing` where a GPU gets less.
std::uint64_t fitting_bytes(const gpu::DeviceInfo& device, const std::string& folder,
                            std::vector<std::string>& missing);

// --- What uploads to one device cost in time and memory, as plain figures: for a terminal, a page and JSON.

inline constexpr double kRateGoal = 0.9;   // of the ceiling
inline constexpr double kHeldGoal = 1.02;  // of the weights, plus the ring
inline constexpr std::size_t kMethodsGoal = 8;
// Memory is judged for models of this many bytes and more: of smaller ones, what a process takes besides is
// beyond 2 %.
inline constexpr std::uint64_t kMemorySizeGoal = 512ull << 20;
inline constexpr std::uint64_t kSizeGoal = 16'000'000'000;  // bytes of the model, on a GPU

enum class RowUse : std::uint8_t { upload, reference, baseline, ceiling };

struct RateFigure {
  RowUse use = RowUse::upload;
  Result times;
};

// Rows that move the same bytes. Nothing can be faster than the fastest ceiling.
struct RateTable {
  std::string id = {};  // warm, fresh or cold
  std::string title = {};
  std::string about = {};
  std::uint64_t bytes = 0;
  std::vector<RateFigure> rows = {};

  double rate(const RateFigure& row) const { return static_cast<double>(bytes) / row.times.median; }
  // The fastest row of this use; null if there is none.
  const RateFigure* best(RowUse use) const;
};

// Peaks of one method, projected and measured. Bytes.
struct MethodFigure {
  std::string method = {};
  std::string refusal = {};  // why it could not be run; then nothing else is set
  std::uint64_t device = 0, device_measured = 0;
  std::uint64_t staging = 0, staging_measured = 0;  // with the uploader's own ring
  std::uint64_t anon = 0, anon_measured = 0;        // RssAnon, by the system's count
  std::optional<bool> verified = {};

  bool agrees() const;  // each within 2 % or 16 MiB
};

// What staged_ring holds with one ring. Bytes.
struct RingFigure {
  std::uint32_t slots = 0;
  std::uint64_t ring = 0;
  std::uint64_t held = 0;  // with the ring, by `UploadFigures::held_by`
  // Bytes held besides the ring over the weights.
  double over(std::uint64_t weights) const;
};

struct UploadFigures {
  gpu::DeviceInfo device;
  gpu::QueueFamily queue = {};     // that copied
  gpu::QueueRates queues = {};     // the link on each, of a device with several families
  std::uint64_t bytes = 0;         // of the weights
  std::uint64_t method_bytes = 0;  // of those that all methods were run with
  std::vector<RateTable> tables = {};
  std::vector<MethodFigure> methods = {};
  std::vector<RingFigure> rings = {};
  std::string held_by = {};               // who counted
  std::vector<std::string> missing = {};  // sentences: what was not measured, and why

  bool software() const { return device.type == gpu::DeviceType::cpu; }
  const RateTable* table(std::string_view id) const;
};

struct UploadBenchOptions {
  std::string device = {};  // index or part of a name; empty = the best
  int rounds = 7;           // of each row, fewer in a table that takes long
};

// Measures everything. `progress` gets what is measured so far when the memory of all methods is, and after
// each table. Throws Error{gpu | usage | io}.
UploadFigures measure_uploads(const BenchModel& model, const UploadBenchOptions& options,
                              const std::function<void(const UploadFigures&)>& progress);

}  // namespace loadline::bench
