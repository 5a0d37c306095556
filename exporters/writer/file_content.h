// The bytes of one output file, window by window: some must come in order, the others any thread can fill.
#pragma once

#include "core/convert/recipe/recipe.h"
#include "core/io/source_file.h"
#include "core/io/tensor_reader.h"
#include "exporters/exporter.h"
#include "exporters/writer/header_stream.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace loadline {

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
  RecipeReader& reader(const MetaGraph& source, const ReadTensor& read, const Slot& slot);

 private:
  std::uint64_t memory_;
  const Slot* slot_ = nullptr;
  std::optional<RecipeReader> reader_;
};

// `file`, `source` and `read` must outlive it.
class FileContent {
 public:
  // `memory`: bytes for recipes that must be computed in order.
  FileContent(const LayoutFile& file, const MetaGraph& source, const ReadTensor& read, std::uint64_t memory);

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
  const MetaGraph& source_;
  const ReadTensor& read_;
  std::uint64_t header_;  // bytes
  HeaderStream stream_;
  std::optional<SourceFile> copied_;
  RecipeBuffers in_order_;
  std::size_t slot_ = 0, piece_ = 0;  // the next ones, or those under way
  std::vector<std::uint32_t> crcs_;   // parallel to file_.checksums
  std::vector<Place> places_;         // sorted
};

}  // namespace loadline
