// The bytes of an output file window by window, and the threads that fill windows.
#pragma once

#include "core/base/progress.h"
#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"
#include "core/io/atomic_file.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- The header of an output file, with the metadata arrays that are copied from the source, front to back.

// A metadata array of the source as little-endian bytes, front to back in pieces. Throws Error{io}, and
// Error{malformed} if the file has changed since it was opened.
class ElementStream {
 public:
  ElementStream(const graph::MetaGraph& source, const graph::MetaArray& array);
  ~ElementStream();
  // The next piece; empty at the end. Valid until the next call.
  std::span<const std::byte> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The bytes [0, header_bytes(file)) of an output file. `file` and `source` must outlive it.
class HeaderStream {
 public:
  HeaderStream(const LayoutFile& file, const graph::MetaGraph& source) : file_(file), source_(source) {}

  // Fills `out` with the next bytes. `out` must not reach past the end of the header.
  void read(std::span<std::byte> out);

 private:
  std::span<const std::byte> next_piece();

  const LayoutFile& file_;
  const graph::MetaGraph& source_;
  std::uint64_t at_ = 0;       // bytes passed on, copies included
  std::size_t header_at_ = 0;  // of file_.header
  std::size_t copy_ = 0;       // the next of file_.copies
  std::unique_ptr<ElementStream> elements_;
  std::span<const std::byte> piece_;
};

// --- The bytes of one output file, window by window: some must come in order, the others any thread can
// fill.

// A range of an output file. It passes begin(), fill() and finish() of a FileContent, in this order.
struct Window {
  struct Part {
    const Slot* slot = nullptr;  // null: of the file that is copied
    std::uint64_t from = 0;      // in the slot's bytes, or in that file
    std::span<std::byte> bytes;
  };
  std::uint64_t offset = 0;    // in the file
  std::span<std::byte> bytes;  // to fill
  std::vector<Part> parts;     // set by begin(): what fill() has to do
  // Set by fill(): CRC-32 and size of this window's share of each checksum that it touches, in order.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> crcs;
};

// Recipes keep buffers between windows: each thread that calls fill() has its own.
class RecipeBuffers {
 public:
  explicit RecipeBuffers(std::uint64_t memory) : memory_(memory) {}  // bytes
  // The reader of a slot's recipe. Valid until the next call.
  convert::RecipeReader& reader(const graph::MetaGraph& source, const io::ReadTensor& read, const Slot& slot);

 private:
  std::uint64_t memory_;
  const Slot* slot_ = nullptr;
  std::optional<convert::RecipeReader> reader_;
};

// `file`, `source` and `read` must outlive it.
class FileContent {
 public:
  // `memory`: bytes for recipes that must be computed in order.
  FileContent(const LayoutFile& file, const graph::MetaGraph& source, const io::ReadTensor& read,
              std::uint64_t memory);

  // Whether windows may start at `offset`, which continues an interrupted file.
  bool can_start_at(std::uint64_t offset) const { return offset == 0 || offset >= header_; }
  // Before the first window of such a file: its bytes before that offset, in order.
  void pass(std::uint64_t offset, std::span<const std::byte> bytes);

  // Windows come in order, without gaps; one thread at a time. Their borders may cut elements.
  void begin(Window& window);
  // From any thread, any number of windows at a time. The buffers are this thread's.
  void fill(Window& window, RecipeBuffers& buffers) const;
  // Windows come in order; one thread at a time, which may be another than that of begin().
  void finish(Window& window);

  // By slot, of the windows that are filled so far; from any thread.
  std::map<const Slot*, convert::NumberFaults> faults() const;

 private:
  using Place = std::pair<std::uint64_t, std::size_t>;  // an offset, and a position in file_.checksums

  using Crcs = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // as Window::crcs
  Crcs crcs_of(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void join_crcs(std::uint64_t offset, const Crcs& crcs);
  std::vector<Checksum>::const_iterator first_checksum(std::uint64_t offset) const;
  std::uint64_t begin_next(Window& window, std::uint64_t at);
  void read_part(const Window::Part& part, RecipeBuffers& buffers) const;
  bool reads_in_order(const Slot& slot) const;

  const LayoutFile& file_;
  const graph::MetaGraph& source_;
  const io::ReadTensor& read_;
  std::uint64_t header_;  // bytes
  HeaderStream stream_;
  std::optional<io::SourceFile> copied_;
  RecipeBuffers in_order_;
  std::size_t slot_ = 0, piece_ = 0;  // the next ones, or those under way
  std::vector<std::uint32_t> crcs_;   // parallel to file_.checksums
  std::vector<Place> places_;         // sorted
  mutable std::mutex mutex_;
  mutable std::map<const Slot*, convert::NumberFaults> faults_;
};

// --- Reads, computes, hashes and writes the windows of an output file on several threads.

// How a memory budget is shared.
struct PipelineSizes {
  unsigned threads = 1;       // that read and compute
  unsigned writers = 1;       // more threads, which wait for the disk: windows that are written at a time
  std::size_t windows = 0;    // buffers
  std::size_t window = 0;     // bytes of each, a multiple of 4096
  std::uint64_t recipes = 0;  // bytes for the recipes of each thread; 0 if none computes
  std::uint64_t bytes() const { return windows * window + (recipes == 0 ? 0 : shares() * recipes); }
  std::uint64_t shares() const { return threads + writers + 1; }  // of each thread, and of what goes in order
};
// `computes`: whether any recipe is more than a copy. `gathers`: whether any tensor is strided. Below a few
// hundred KiB a budget is exceeded.
PipelineSizes share_budget(std::uint64_t budget, unsigned threads, unsigned writers, bool computes,
                           bool gathers);

class Pipeline {
 public:
  explicit Pipeline(const PipelineSizes& sizes);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Where windows go, from any thread.
  struct Output {
    // Begins with them in order, as many at a time as there are writers.
    std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)> write;
    // Takes them in order, one call at a time, once all bytes up to the window's end are written. `digest` is
    // that of the file up to there.
    std::function<void(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t digest)> written;
    // No window is written before those of earlier steps of as many bytes, in whole windows, are taken.
    std::uint64_t step = UINT64_MAX;
  };

  // Passes bytes [begin, end) of the content to the output. `hash` has seen the bytes before `begin`, a
  // multiple of 4096. The memory of all but the last window of a file is aligned to 4096 bytes, and so are
  // its offset and size. Rethrows what a reader or the output threw.
  void run(FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash, const Output& output,
           const Progress& progress);

 private:
  class Run;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline::exporters
