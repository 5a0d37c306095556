// The rehearsing machine: real reads and mappings in ordinary memory, without an accelerator.
#pragma once

#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "core/plan/run.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace loadline::plan {

// host blocks are private anonymous memory (RssAnon), device and staging blocks are memfd mappings
// (RssShmem), page_cache blocks map the file (RssFile). Pages are touched when a block is allocated
// (page_cache: when copied to). A freed block is unmapped. Copies are synchronous. The reader must outlive
// the machine.
class HostMachine final : public Machine {
 public:
  explicit HostMachine(const io::StorageReader& reader);
  ~HostMachine() override;

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override;
  void drain() override {}
  std::optional<PerSpace<std::uint64_t>> live_bytes() const override { return live_; }
  std::optional<ProcessMemory> sample() const override;

  // The bytes of a block that is alive; read-only for a page_cache block.
  std::span<std::byte> bytes(BlockId id);

 private:
  struct Mapping {
    void* base = nullptr;                            // page aligned; null = not allocated or empty
    std::size_t length = 0;                          // mapped
    std::size_t lead = 0;                            // bytes from base to the block's first byte
    std::size_t bytes = 0;                           // size of the block
    std::optional<graph::StorageId> mapped_storage;  // of a page_cache block
  };
  Mapping map_anonymous(const Block& block) const;
  Mapping map_file(const Block& block) const;
  void touch_file(const Step& step);
  // Reads bytes of a storage or of a block that is alive.
  void fetch(const CopySource& source, std::uint64_t offset, std::span<std::byte> out);

  const io::StorageReader& reader_;
  std::chrono::steady_clock::time_point start_;
  io::ProcessMemoryCounters before_;
  std::vector<Mapping> blocks_;
  PerSpace<std::uint64_t> live_ = {};  // of the existing mappings
};

}  // namespace loadline::plan
