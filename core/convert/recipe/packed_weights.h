// Packed weights of a graph as floats, or as ggml blocks.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline::convert {

// --- Turns packed weights (core/graph/meta_graph.h) into floats, a part of the matrix at a time.

// A part of a matrix. The rows of a tensor are all its dimensions but the last.
struct Region {
  std::uint64_t row = 0, rows = 0;
  std::uint64_t column = 0, columns = 0;
};

// Reads one packed weight; for one thread. Graph and weight must outlive it. The numbers are computed
// in float by the definition of the packing. Rounded once to LogicalTensor::dtype, they are those of the
// library that packed the weight (tests/interop/test_packings.py).
class Unpacker {
 public:
  // Reads the companions that all rows share. Throws as `read` does, and Error{malformed} for
  // companions whose values do not fit.
  Unpacker(const graph::MetaGraph& graph, const io::ReadTensor& read, const graph::LogicalTensor& weight);

  // `out` has rows * columns numbers, in C order.
  void read(const Region& region, std::span<float> out);

  // Most bytes that buffers need for each number of a region.
  static constexpr std::uint64_t kBytesPerNumber = 16;

 private:
  // A matrix as it is stored.
  struct Stored {
    graph::TensorId tensor{};
    graph::DType dtype{};
    std::uint64_t columns = 0;
  };
  // The blocks that share a scale, as far as a region touches them.
  struct Blocks {
    std::uint64_t height = 1, width = 1;           // of a block
    std::uint64_t matrix = 1, down = 1;            // rows of a matrix, in numbers and in blocks
    std::uint64_t row = 0, column = 0;             // of the region
    std::uint64_t top = 0, rows = 0;               // in blocks
    std::uint64_t first = 0, across = 0, all = 0;  // columns in blocks: touched, and of a whole row
    std::uint64_t row_of(std::uint64_t at) const { return at / matrix * down + at % matrix / height; }
    // Where the scale of the region's number (i, j) was loaded.
    std::size_t at(std::uint64_t i, std::uint64_t j) const {
      return static_cast<std::size_t>((row_of(row + i) - top) * across + (column + j) / width - first);
    }
  };

  void read_nested_state();
  Stored stored(graph::TensorId tensor) const;
  Stored companion(graph::Companion kind) const;
  bool has(graph::Companion kind) const { return weight_.companion(kind).has_value(); }
  void load(const Stored& from, const Region& region, std::vector<std::byte>& into) const;
  // `bytes` has the numbers for which bytes stand.
  void load_floats(const Stored& from, const Region& region, const std::array<float, 256>& bytes,
                   std::vector<float>& into);
  std::vector<float> all_floats(graph::Companion kind);
  void load_words(const Stored& from, const Region& region);
  void round_to(graph::DType dtype, std::span<float> numbers);
  Blocks blocks_of(const Region& region) const;
  void load_blocks(graph::Companion kind, const Blocks& blocks, const std::array<float, 256>& bytes,
                   std::vector<float>& into);
  void load_packed_zeros(const Region& region, const Blocks& blocks);

  void read_numbers(const Region& region, std::span<float> out);
  void read_nibbles(const Region& region, std::span<float> out);
  void read_words(const Region& region, std::span<float> out);
  void read_by_input(const Region& region, std::span<float> out);
  void read_experts(const Region& region, std::span<float> out);
  void read_flat(const Region& region, std::span<float> out);

  const graph::MetaGraph& graph_;
  const io::ReadTensor read_;
  const graph::LogicalTensor& weight_;
  std::uint64_t columns_ = 0;
  std::array<float, 256> values_{};     // by code, where a code of 8 or 4 bits stands for a number
  std::array<float, 256> exponents_{};  // by scale, where scales are powers of two or floats of 8 bits
  float factor_ = 1, divisor_ = 1;      // of all scales
  std::vector<std::uint32_t> groups_;   // by input, its group
  std::vector<float> nested_scales_, nested_codebook_;
  float nested_offset_ = 0;
  std::uint64_t nested_block_ = 0;
  // buffers
  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> words_;
  std::vector<float> scales_, zeros_;
};

// --- Packed weights of 4-bit floats as blocks of ggml: the same codes and scales in another order.

// The rows of a packed weight as ggml's MXFP4 or NVFP4.
struct Repacking {
  graph::DType dtype = graph::DType::opaque;
  graph::Shape shape;  // of the rows that are stored: with MXFP4 of gpt-oss, outputs x inputs
  graph::TensorId codes{}, scales{};
  std::uint32_t group = 0;  // numbers for each scale
  bool turned = false;      // the rows are columns of the weight: its last two dimensions have changed places
};

// Nothing for packings of other numbers, and where rows do not fill whole blocks. Scales of the whole weight
// are no part of the blocks: they stay tensors of their own.
std::optional<Repacking> ggml_repacking(const graph::MetaGraph& graph, const graph::LogicalTensor& weight);

// Whole blocks. `codes` has two numbers a byte, the first in its low half. Throws Error{unsupported} for
// scales that ggml would read as other numbers: not a number, or negative.
void repack(const Repacking& repacking, std::span<const std::byte> codes, std::span<const std::byte> scales,
            std::span<std::byte> blocks);

}  // namespace loadline::convert
