// Uploading 512 MiB through the staging ring, warm page cache. Baseline: reading the same files into one
// touched buffer, which no upload can beat. On lavapipe device memory is host memory that is taken at
// first touch, so the ceiling for a fresh upload reads into fresh memory and then copies it.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/gpu/vulkan_machine.h"
#include "core/load/projection.h"
#include "core/plan/host_machine.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <cstring>

#include <fmt/format.h>

int main() try {
  using namespace loadline;
  const testing::TemporaryFolder folder;
  std::vector<std::uint64_t> sizes = {128ull << 20, 128ull << 20};
  sizes.insert(sizes.end(), 256, 1ull << 20);
  const MetaGraphPtr graph = testing::byte_model(folder, sizes);
  const std::uint64_t total = storage_bytes(*graph);
  const StorageReader reader(graph);
  const gpu::Device device(gpu::DeviceOptions{});

  std::vector<std::byte> touched(total), small(16 << 20);
  const auto read_all = [&](std::span<std::byte> out) {
    for (std::size_t i = 0, at = 0; i < sizes.size(); at += sizes[i++])
      reader.read(StorageId{static_cast<std::uint32_t>(i)}, 0, out.subspan(at, sizes[i]));
  };
  // read through a warm buffer, copy into memory that has never been touched
  const auto fresh_copy = [&] {
    const std::unique_ptr<std::byte[]> fresh(new std::byte[total]);
    for (std::size_t i = 0, to = 0; i < sizes.size(); ++i)
      for (std::uint64_t at = 0; at < sizes[i]; at += small.size()) {
        const auto piece = std::span(small).first(std::min<std::uint64_t>(small.size(), sizes[i] - at));
        reader.read(StorageId{static_cast<std::uint32_t>(i)}, at, piece);
        std::memcpy(fresh.get() + to, piece.data(), piece.size());
        to += piece.size();
      }
  };
  const auto upload = [&](const char* method, LoadInputs options) {
    return [&, method, options] {
      const Plan plan = make_plan(*graph, find_method(method), find_order("file").make(*graph), options);
      gpu::VulkanMachine machine(device, reader, plan);
      run(plan, machine);
    };
  };
  const LoadInputs ring = {};
  const LoadInputs tiny = {.request = {.staging_bytes = 4 << 20, .slots = 4, .activation_bytes = 0}};
  const auto results = bench::measure({{"pread into touched memory (baseline)", [&] { read_all(touched); }},
                                       {"pread + memcpy into fresh memory (ceiling)", fresh_copy},
                                       {"staged_ring, 4 x 16 MiB", upload("staged_ring", ring)},
                                       {"staged_ring, 4 x 1 MiB", upload("staged_ring", tiny)},
                                       {"per_tensor", upload("per_tensor", ring)},
                                       {"state_dict", upload("state_dict", ring)}},
                                      7);
  bench::print(fmt::format("upload {} to {}", format_bytes(total), device.info().name), results, total);
} catch (const loadline::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
