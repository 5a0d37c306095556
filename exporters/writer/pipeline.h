// Reads, computes and hashes the windows of an output file on several threads, and hands them on in order.
#pragma once

#include "core/base/tasks.h"
#include "core/io/xxh3.h"
#include "exporters/writer/file_content.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace loadline {

// How a memory budget is shared.
struct PipelineSizes {
  unsigned threads = 1;       // that read and compute; one more waits for the disk
  std::size_t windows = 0;    // buffers
  std::size_t window = 0;     // bytes of each, a multiple of 4096
  std::uint64_t recipes = 0;  // bytes for the recipes of each thread; 0 if none computes
  std::uint64_t bytes() const { return windows * window + (recipes == 0 ? 0 : (threads + 2) * recipes); }
};
// `computes`: whether any recipe is more than a copy. `gathers`: whether any tensor is strided. Below a few
// hundred KiB a budget is exceeded.
PipelineSizes share_budget(std::uint64_t budget, unsigned threads, bool computes, bool gathers);

class Pipeline {
 public:
  explicit Pipeline(const PipelineSizes& sizes);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // `digest` is that of the file up to the window's end.
  using Write =
      std::function<void(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t digest)>;

  // Passes bytes [begin, end) of the content to `write`, in order and one call at a time, from any thread.
  // `hash` has seen the bytes before `begin`, a multiple of 4096. The memory of all but the last window of a
  // file is aligned to 4096 bytes, and so are its offset and size. Rethrows what a reader or `write` threw.
  void run(FileContent& content, std::uint64_t begin, std::uint64_t end, Xxh3& hash, const Write& write,
           const Progress& progress);

 private:
  class Run;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline
