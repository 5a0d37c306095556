// Uploading 512 MiB. On a software device its memory is this process's, taken from malloc: first with pages
// that were touched before, as a real device's are, then with fresh ones, whose first touch costs more than
// the copy. Baseline: memcpy of the same bytes. No upload can beat the slower of reading and copying.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/gpu/vulkan_machine.h"
#include "core/io/page_residency.h"
#include "core/io/striped_reader.h"
#include "core/load/projection.h"
#include "core/plan/host_machine.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <malloc.h>

namespace {

using namespace loadline;

// Makes malloc keep what is freed, with its pages.
void keep_pages() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// A case that begins without the pages that malloc keeps.
bench::Case fresh(bench::Case one) {
  one.before = [] { ::malloc_trim(0); };
  return one;
}

struct Bench {
  testing::TemporaryFolder folder;
  std::vector<std::uint64_t> sizes = [] {
    std::vector<std::uint64_t> all = {128ull << 20, 128ull << 20};
    all.insert(all.end(), 256, 1ull << 20);
    return all;
  }();
  MetaGraphPtr graph = testing::byte_model(folder, sizes);
  std::uint64_t total = storage_bytes(*graph);
  StorageReader reader{graph};
  gpu::Device device{gpu::DeviceOptions{}};
  std::vector<std::byte> from = std::vector<std::byte>(total), to = std::vector<std::byte>(total);

  bench::Case copy_all() {
    return {"memcpy of touched memory (baseline)", [this] { std::memcpy(to.data(), from.data(), total); }};
  }
  bench::Case read_all(unsigned threads, FileReading reading = FileReading::cached) {
    return {fmt::format("pread into touched memory, {}{} (ceiling)", counted(threads, "thread"),
                        reading == FileReading::cached ? "" : ", past the cache"),
            [this, threads, reading] {
              StripedReader reads(reader, threads, reading);
              for (std::size_t i = 0, at = 0; i < sizes.size(); at += sizes[i++])
                reads.start(StorageId{static_cast<std::uint32_t>(i)}, 0, std::span(to).subspan(at, sizes[i]));
              reads.wait(reads.newest());
            }};
  }
  bench::Case upload(const char* method, std::uint64_t slots = 4, std::uint64_t slot_mib = 16,
                     unsigned readers = 1, FileReading reading = FileReading::cached) {
    LoadInputs inputs;
    inputs.request.staging_bytes = slots * slot_mib << 20;
    inputs.request.slots = static_cast<std::uint32_t>(slots);
    const bool ring = std::string_view(method) == "staged_ring";
    const std::string shape = ring ? fmt::format(", {} x {} MiB", slots, slot_mib) : "";
    return {fmt::format("{}{}, {}{}", method, shape, counted(readers, "reader"),
                        reading == FileReading::cached ? "" : ", past the cache"),
            [this, method, inputs, readers, reading] {
              const Plan plan =
                  make_plan(*graph, find_method(method), find_order("file").make(*graph), inputs);
              gpu::VulkanMachine machine(device, reader, plan, {.reads = {readers, reading}});
              run(plan, machine);
            }};
  }
  void drop_cache() {
    for (std::size_t i = 0; i < graph->files.size(); ++i) drop_pages(SourceFile::open(graph->files[i].path));
  }
  void print(std::string_view what, const std::vector<bench::Case>& cases) {
    bench::print(fmt::format("upload {} to {}, {}", format_bytes(total), device.info().name, what),
                 bench::measure(cases, 7), total);
  }
};

}  // namespace

int main() try {
  Bench bench;
  keep_pages();
  bench.print(
      "warm cache, touched pages",
      {bench.copy_all(), bench.read_all(1), bench.read_all(2), bench.upload("direct", 4, 16, 1),
       bench.upload("direct", 4, 16, 2), bench.upload("staged_ring", 4, 1), bench.upload("staged_ring", 4, 2),
       bench.upload("staged_ring", 4, 4), bench.upload("staged_ring", 4, 4, 2),
       bench.upload("staged_ring", 4, 8), bench.upload("staged_ring", 4, 16),
       bench.upload("staged_ring", 4, 32), bench.upload("per_tensor"), bench.upload("state_dict")});
  bench.print("warm cache, fresh pages",
              {bench.copy_all(), fresh(bench.upload("direct", 4, 16, 2)), fresh(bench.upload("staged_ring")),
               fresh(bench.upload("staged_ring", 4, 4))});
  const auto reading_again = [&](bench::Case one) {
    one.before = [&] {
      ::malloc_trim(0);
      bench.drop_cache();
    };
    return one;
  };
  std::vector<bench::Case> cold = {bench.read_all(1), bench.read_all(4),
                                   bench.read_all(4, FileReading::direct)};
  for (const FileReading reading : {FileReading::cached, FileReading::cold})
    for (const unsigned readers : {1u, 2u, 4u})
      cold.push_back(bench.upload("staged_ring", 4, 16, readers, reading));
  for (bench::Case& one : cold) one = reading_again(one);
  bench.print("cold cache, fresh pages", cold);
} catch (const loadline::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
