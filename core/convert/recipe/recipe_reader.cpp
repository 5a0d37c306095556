// Computes parts of a recipe's result. Each step asks its inputs for the parts that it needs.
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/convert/recipe/recipe.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

namespace loadline::convert {
namespace {

using Bytes = std::span<std::byte>;

std::uint64_t product(const graph::Shape& shape, std::size_t begin, std::size_t end) {
  std::uint64_t count = 1;
  for (std::size_t i = begin; i < end; ++i) count *= shape[i];  // recipe_forms() has checked all of them
  return count;
}

// One step, its form as a matrix, and its buffers.
struct Node {
  const RecipeStep* step = nullptr;
  Form form;
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t block = 1, block_bytes = 1;  // numbers and bytes of a block; 1 number for ordinary types
  std::vector<std::byte> buffer = {};
  std::vector<float> floats = {}, more = {};
  std::vector<double> sums = {};
  std::optional<Unpacker> unpacker = {};
  std::optional<Repacking> repacking = {};
  std::vector<std::byte> scales = {};             // repack
  std::array<float, 256> values = {};             // dequantize: of floats of 8 bits, by code
  Region loaded = {};                             // add_product: the part of the third input in `floats`
  std::optional<std::uint64_t> squared_row = {};  // quantize: the row whose mean square is `square`
  float square = 0;

  std::uint64_t bytes_of(std::uint64_t numbers) const { return numbers / block * block_bytes; }
  // Rows of the matrix for each position of dimension `axis`, which must not be the last.
  std::uint64_t inner(std::size_t axis) const { return product(form.shape, axis + 1, form.shape.size() - 1); }
};

// A number as torch and numpy have it beside a tensor of that type.
float rounded(float value, graph::DType dtype) {
  std::array<std::byte, sizeof(float)> bytes{};
  const Bytes narrow = Bytes(bytes).first(graph::dtype_info(dtype).block_bytes);
  cast(graph::DType::f32, std::as_bytes(std::span(&value, 1)), dtype, narrow);
  cast(dtype, narrow, graph::DType::f32, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

bool is_special(float value) { return (bits_of(value) & 0x7FFFFFFFu) >= F32::kInfinity; }

// The greatest finite number that blocks of the type hold whatever else is in them: that of their scale.
float most_of_scale(graph::DType dtype) {
  constexpr float kMostHalf = 65504, kMostE4m3 = 448 * 6;
  return dtype == graph::DType::nvfp4 ? kMostE4m3 : kMostHalf;
}

// Of one block: the numbers that count for its scale, and of which hardly anything is left. A search for a
// scale whose sums overflow ends in 0, and a scale of 8 bits stays at its greatest.
std::uint64_t lost_in_block(std::span<const double> before, std::span<const double> after, double least) {
  double greatest = 0;
  for (const double number : before)
    if (std::isfinite(number)) greatest = std::max(greatest, std::abs(number));
  if (greatest <= least) return 0;
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double size = std::abs(before[i]);
    const bool counts = size > least && size >= greatest / 2 && std::isfinite(before[i]);
    lost += counts && std::isfinite(after[i]) && std::abs(after[i]) < size / 4;
  }
  return lost;
}

// Compared number by number: of few parts of few tensors.
NumberFaults faults_in(graph::DType from, std::span<const std::byte> before, graph::DType to,
                       std::span<const std::byte> after) {
  constexpr std::size_t kNumbers = 4096;  // a multiple of every block
  const Numbers read_before(from), read_after(to);
  const std::size_t size = graph::dtype_info(from).block_bytes, count = before.size() / size;
  std::vector<double> a(kNumbers), b(kNumbers);
  NumberFaults faults;
  for (std::size_t at = 0; at < count; at += kNumbers) {
    const std::size_t part = std::min(kNumbers, count - at);
    read_before.read(before.subspan(at * size, part * size), std::span(a).first(part));
    read_after.read(after.subspan(static_cast<std::size_t>(graph::byte_size(to, at).value())),
                    std::span(b).first(part));
    for (std::size_t i = 0; i < part; ++i)
      if (!std::isfinite(a[i]))
        ++faults.special;
      else if (!std::isfinite(b[i]))
        ++faults.overflowed;
    const std::size_t block = graph::dtype_info(to).block_elements;
    for (std::size_t i = 0; block > 1 && i < part; i += block)
      faults.overflowed += lost_in_block(std::span(a).subspan(i, block), std::span(b).subspan(i, block),
                                         static_cast<double>(most_of_scale(to)));
  }
  return faults;
}

void resize(std::vector<std::byte>& buffer, std::uint64_t bytes) {
  buffer.resize(static_cast<std::size_t>(bytes));
}

}  // namespace

class RecipeReader::Impl {
 public:
  Impl(const graph::MetaGraph& graph, const io::ReadTensor& read, const Recipe& recipe, std::uint64_t memory)
      : read_(read), recipe_(recipe) {
    const std::vector<Form> forms = recipe_forms(graph, recipe_);
    memory = std::max(memory, kLeastMemory);
    most_columns_ = UINT64_MAX;
    std::vector<std::uint64_t> costs;  // bytes of buffers for each number
    for (std::size_t i = 0; i < recipe_.steps.size(); ++i) {
      const RecipeStep& step = recipe_.steps[i];
      Node& node = nodes_.emplace_back();
      node.step = &step;
      node.form = forms[i];
      node.columns = node.form.shape.empty() ? 1 : node.form.shape.back();
      node.rows = node.columns == 0 ? 0 : product(node.form.shape, 0, node.form.shape.size()) / node.columns;
      const graph::DTypeInfo& type = graph::dtype_info(node.form.dtype);
      node.block = std::max<std::uint64_t>(type.block_elements, 1);
      node.block_bytes = std::max<std::uint64_t>(type.block_bytes, 1);
      if (step.kind == StepKind::dequantize && is_code_type(forms[step.inputs[0]].dtype))
        node.values = float_code_values(forms[step.inputs[0]].dtype);
      if (step.kind == StepKind::unpack) node.unpacker.emplace(graph, read, graph.logical[step.packed]);
      if (step.kind == StepKind::repack) node.repacking = ggml_repacking(graph, graph.logical[step.packed]);
      std::uint64_t inputs = 0;
      for (const std::uint32_t input : step.inputs)
        inputs = step.kind == StepKind::concatenate ? std::max(inputs, costs[input]) : inputs + costs[input];
      costs.push_back(inputs + own_cost(node));
      if (step.kind == StepKind::add_product) {
        const std::uint64_t rank = std::max<std::uint64_t>(forms[step.inputs[1]].shape[1], 1);
        most_columns_ = std::min(most_columns_, std::max<std::uint64_t>(kPiece, memory / 2 / (8 * rank)));
      }
    }
    std::uint64_t part = memory / 2;
    if (streams()) part = std::min(part, kNearBytes);
    most_ =
        std::max<std::uint64_t>(kPiece, part / std::max<std::uint64_t>(costs.back(), 1) / kPiece * kPiece);
  }

  const Form& form() const { return nodes_.back().form; }
  std::uint64_t bytes() const { return nodes_.back().bytes_of(nodes_.back().rows * nodes_.back().columns); }

  NumberFaults take_faults() { return std::exchange(faults_, {}); }

  void read(std::uint64_t offset, Bytes out) {
    Node& last = nodes_.back();
    // a copy needs no buffer, whatever its size
    if (last.step->kind == StepKind::take) return read_(last.step->tensor, offset, out);
    assert(offset % last.block_bytes == 0 && out.size() % last.block_bytes == 0);
    read_linear(last, offset / last.block_bytes * last.block, out.size() / last.block_bytes * last.block,
                out);
  }

 private:
  static constexpr std::uint64_t kPiece = 1024;           // numbers; a multiple of every block
  static constexpr std::uint64_t kNearBytes = 256 << 10;  // of buffers that stay in the nearest caches

  // Whether every step reads its inputs once and in order: larger parts then gain nothing.
  bool streams() const {
    return std::ranges::none_of(nodes_, [](const Node& node) {
      return node.step->kind == StepKind::transpose || node.step->kind == StepKind::permute_rows ||
             node.step->kind == StepKind::add_product;
    });
  }

  // Bytes of buffers that a step needs for each number of a part.
  std::uint64_t own_cost(const Node& node) const {
    const auto size_of = [&](std::size_t input) {
      const Node& from = nodes_[node.step->inputs[input]];
      return (from.block_bytes + from.block - 1) / from.block;
    };
    switch (node.step->kind) {
      case StepKind::unpack:
        return Unpacker::kBytesPerNumber;
      case StepKind::transpose:
        return size_of(0);
      case StepKind::add_constant:
        return sizeof(float);
      case StepKind::add:
        return size_of(1) + 2 * sizeof(float);
      case StepKind::add_product:
        return sizeof(float) + size_of(1) + sizeof(double);
      case StepKind::dequantize:
        return size_of(0);
      case StepKind::cast:
        return size_of(0);
      case StepKind::repack:
        return 1;
      case StepKind::quantize:  // and the squares of rows in parts
        return size_of(0) + (node.step->importance == nullptr ? 1 : 2) * sizeof(float);
      default:
        return 0;
    }
  }

  Node& input(const Node& node, std::size_t i) { return nodes_[node.step->inputs[i]]; }

  // Of the last step alone: what earlier ones make is looked at there.
  void count_faults(const Node& node, graph::DType from, std::span<const std::byte> before, Bytes after) {
    if (&node != &nodes_.back()) return;
    const NumberFaults found = faults_in(from, before, node.form.dtype, after);
    faults_.overflowed += found.overflowed;
    faults_.special += found.special;
  }
  void count_special(const Node& node, std::span<const float> numbers) {
    if (&node != &nodes_.back()) return;
    for (const float number : numbers) faults_.special += is_special(number);
  }
  // A sum, rounded to the type of its step.
  void write_sum(const Node& node, std::span<const float> sum, Bytes out) {
    const auto bytes = std::as_bytes(sum);
    if (node.form.dtype == graph::DType::f32) count_special(node, sum);
    if (cast(graph::DType::f32, bytes, node.form.dtype, out))
      count_faults(node, graph::DType::f32, bytes, out);
  }

  // Numbers [first, first + count) in C order: the end of a row, whole rows, the beginning of a row.
  void read_linear(Node& node, std::uint64_t first, std::uint64_t count, Bytes out) {
    while (count > 0) {
      const std::uint64_t row = first / node.columns, column = first % node.columns;
      Region region{row, 1, column, std::min(count, node.columns - column)};
      if (column == 0 && count >= node.columns && node.columns <= std::min(most_, most_columns_))
        region.rows = std::min(count / node.columns, std::max<std::uint64_t>(most_ / node.columns, 1));
      else
        region.columns = std::min({region.columns, most_, std::max(most_columns_ / kPiece * kPiece, kPiece)});
      const std::uint64_t numbers = region.rows * region.columns;
      const auto bytes = static_cast<std::size_t>(node.bytes_of(numbers));
      read_region(node, region, out.first(bytes));
      out = out.subspan(bytes);
      first += numbers;
      count -= numbers;
    }
  }

  void read_region(Node& node, const Region& region, Bytes out) {
    switch (node.step->kind) {
      case StepKind::take:
        return read_take(node, region, out);
      case StepKind::unpack:
        return read_unpack(node, region, out);
      case StepKind::slice:
        return read_slice(node, region, out);
      case StepKind::concatenate:
        return read_concatenate(node, region, out);
      case StepKind::permute_rows:
        return read_permuted(node, region, out);
      case StepKind::transpose:
        return read_transposed(node, region, out);
      case StepKind::reshape:
        return read_reshaped(node, region, out);
      case StepKind::add_constant:
        return add_constant(node, region, out);
      case StepKind::add:
        return add(node, region, out);
      case StepKind::add_product:
        return add_product(node, region, out);
      case StepKind::dequantize:
        return read_dequantized(node, region, out);
      case StepKind::cast:
        return read_cast(node, region, out);
      case StepKind::repack:
        return read_repacked(node, region, out);
      case StepKind::constants:
        std::memcpy(out.data(), node.step->constants.data() + region.column, out.size());
        return;
      case StepKind::quantize:
        return read_quantized(node, region, out);
    }
  }

  void read_take(Node& node, const Region& region, Bytes out) {
    const graph::TensorId id = node.step->tensor;
    const auto at = [&](std::uint64_t row) { return node.bytes_of(row * node.columns + region.column); };
    if (region.columns == node.columns) return read_(id, at(region.row), out);
    const auto bytes = static_cast<std::size_t>(node.bytes_of(region.columns));
    for (std::uint64_t i = 0; i < region.rows; ++i)
      read_(id, at(region.row + i), out.subspan(static_cast<std::size_t>(i) * bytes, bytes));
  }

  void read_unpack(Node& node, const Region& region, Bytes out) {
    node.floats.resize(out.size() / sizeof(float));
    node.unpacker->read(region, node.floats);
    count_special(node, node.floats);
    std::memcpy(out.data(), node.floats.data(), out.size());
  }

  // Codes and scales lie row after row without gaps, as the blocks do.
  void read_repacked(Node& node, const Region& region, Bytes out) {
    if (region.columns != node.columns && region.rows > 1) {
      const auto row = out.size() / static_cast<std::size_t>(region.rows);
      for (std::uint64_t i = 0; i < region.rows; ++i)
        read_repacked(node, {region.row + i, 1, region.column, region.columns},
                      out.subspan(static_cast<std::size_t>(i) * row, row));
      return;
    }
    const std::uint64_t first = region.row * node.columns + region.column,
                        count = region.rows * region.columns;
    resize(node.buffer, count / 2);
    resize(node.scales, count / node.repacking->group);
    read_(node.repacking->codes, first / 2, node.buffer);
    read_(node.repacking->scales, first / node.repacking->group, node.scales);
    repack(*node.repacking, node.buffer, node.scales, out);
  }

  // Calls `read(row of the input, rows, part of out)` for runs of rows that lie together in an input.
  // `place(row)` gives that row and how many rows from there on lie together.
  template <typename Place, typename Read>
  void by_runs(const Node& node, const Region& region, Bytes out, Place place, Read read) {
    const std::uint64_t row_bytes = node.bytes_of(region.columns);
    for (std::uint64_t done = 0; done < region.rows;) {
      const auto [row, together] = place(region.row + done);
      const std::uint64_t rows = std::min(together, region.rows - done);
      read(row, rows,
           out.subspan(static_cast<std::size_t>(done * row_bytes),
                       static_cast<std::size_t>(rows * row_bytes)));
      done += rows;
    }
  }
  using Run = std::pair<std::uint64_t, std::uint64_t>;

  void read_slice(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    const RecipeStep& step = *node.step;
    const auto axis = static_cast<std::size_t>(step.axis);
    if (axis + 1 == node.form.shape.size())
      return read_region(from, {region.row, region.rows, region.column + step.first, region.columns}, out);
    const std::uint64_t inner = node.inner(axis), whole = from.form.shape[axis] * inner;
    by_runs(
        node, region, out,
        [&](std::uint64_t row) {
          const std::uint64_t outer = row / (step.count * inner), rest = row % (step.count * inner);
          return Run(outer * whole + step.first * inner + rest, step.count * inner - rest);
        },
        [&](std::uint64_t row, std::uint64_t rows, Bytes part) {
          read_region(from, {row, rows, region.column, region.columns}, part);
        });
  }

  void read_concatenate(Node& node, const Region& region, Bytes out) {
    const auto axis = static_cast<std::size_t>(node.step->axis);
    if (axis + 1 == node.form.shape.size()) return read_side_by_side(node, region, out);
    const std::uint64_t inner = node.inner(axis), whole = node.form.shape[axis] * inner;
    Node* from = nullptr;
    by_runs(
        node, region, out,
        [&](std::uint64_t row) {
          std::uint64_t rest = row % whole;
          for (std::size_t i = 0;; ++i) {
            from = &input(node, i);
            const std::uint64_t own = from->form.shape[axis] * inner;
            if (rest < own) return Run(row / whole * own + rest, own - rest);
            rest -= own;
          }
        },
        [&](std::uint64_t row, std::uint64_t rows, Bytes part) {
          read_region(*from, {row, rows, region.column, region.columns}, part);
        });
  }

  // Along the last dimension: each input gives some columns of every row.
  void read_side_by_side(Node& node, const Region& region, Bytes out) {
    const auto row_bytes = static_cast<std::size_t>(node.bytes_of(region.columns));
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < node.step->inputs.size(); ++i) {
      Node& from = input(node, i);
      const std::uint64_t first = std::max(begin, region.column);
      const std::uint64_t end = std::min(begin + from.columns, region.column + region.columns);
      if (first < end) {
        const auto at = static_cast<std::size_t>(node.bytes_of(first - region.column));
        const auto bytes = static_cast<std::size_t>(node.bytes_of(end - first));
        for (std::uint64_t row = 0; row < region.rows; ++row)
          read_region(from, {region.row + row, 1, first - begin, end - first},
                      out.subspan(static_cast<std::size_t>(row) * row_bytes + at, bytes));
      }
      begin += from.columns;
    }
  }

  // Position f of the result's groups of b x a, in groups of a x b.
  static std::uint64_t permuted(const RecipeStep& step, std::uint64_t f) {
    const std::uint64_t within = f % (step.a * step.b);
    return f - within + within % step.a * step.b + within / step.a;
  }

  void read_permuted(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    const RecipeStep& step = *node.step;
    if (node.form.shape.size() == 1) {  // the numbers themselves are the rows
      const auto size = static_cast<std::size_t>(node.block_bytes);
      for (std::uint64_t j = 0; j < region.columns; ++j)
        read_region(from, {0, 1, permuted(step, region.column + j), 1},
                    out.subspan(static_cast<std::size_t>(j) * size, size));
      return;
    }
    const std::uint64_t inner = node.inner(0);
    by_runs(
        node, region, out,
        [&](std::uint64_t row) {
          return Run(permuted(step, row / inner) * inner + row % inner, inner - row % inner);
        },
        [&](std::uint64_t row, std::uint64_t rows, Bytes part) {
          read_region(from, {row, rows, region.column, region.columns}, part);
        });
  }

  // A part of each matrix is read in the input's order, then turned.
  void read_transposed(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    const std::uint64_t height = node.form.shape[node.form.shape.size() - 2];  // columns of the input
    const auto size = static_cast<std::size_t>(node.block_bytes);
    for (std::uint64_t done = 0; done < region.rows;) {
      const std::uint64_t row = region.row + done;
      const std::uint64_t matrix = row / height, column = row % height;
      const std::uint64_t count = std::min(region.rows - done, height - column);
      resize(node.buffer, count * region.columns * size);
      read_region(from, {matrix * node.columns + region.column, region.columns, column, count}, node.buffer);
      std::byte* const to = out.data() + static_cast<std::size_t>(done * region.columns) * size;
      turn(node.buffer.data(), static_cast<std::size_t>(region.columns), static_cast<std::size_t>(count),
           size, to);
      done += count;
    }
  }

  // `to` gets the transpose of a matrix, tile by tile, so that reads and writes both stay in the cache.
  static void turn(const std::byte* from, std::size_t rows, std::size_t columns, std::size_t size,
                   std::byte* to) {
    constexpr std::size_t kTile = 32;
    for (std::size_t i0 = 0; i0 < rows; i0 += kTile)
      for (std::size_t j0 = 0; j0 < columns; j0 += kTile)
        for (std::size_t j = j0; j < std::min(j0 + kTile, columns); ++j)
          for (std::size_t i = i0; i < std::min(i0 + kTile, rows); ++i)
            std::memcpy(to + (j * rows + i) * size, from + (i * columns + j) * size, size);
  }

  void read_reshaped(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    const auto bytes = static_cast<std::size_t>(node.bytes_of(region.columns));
    if (region.columns == node.columns)
      return read_linear(from, region.row * node.columns, region.rows * node.columns, out);
    for (std::uint64_t i = 0; i < region.rows; ++i)
      read_linear(from, (region.row + i) * node.columns + region.column, region.columns,
                  out.subspan(static_cast<std::size_t>(i) * bytes, bytes));
  }

  // A part of an input as floats; `bytes` holds it as it is.
  void read_floats(Node& from, const Region& region, std::vector<std::byte>& bytes,
                   std::vector<float>& floats) {
    const std::uint64_t count = region.rows * region.columns;
    floats.resize(static_cast<std::size_t>(count));
    const Bytes to = std::as_writable_bytes(std::span(floats));
    if (from.form.dtype == graph::DType::f32) return read_region(from, region, to);
    resize(bytes, from.bytes_of(count));
    read_region(from, region, bytes);
    cast(from.form.dtype, bytes, graph::DType::f32, to);
  }

  void add_constant(Node& node, const Region& region, Bytes out) {
    read_floats(input(node, 0), region, node.buffer, node.floats);
    const float value = rounded(static_cast<float>(node.step->value), node.form.dtype);
    for (float& number : node.floats) number += value;
    write_sum(node, node.floats, out);
  }

  void add(Node& node, const Region& region, Bytes out) {
    read_floats(input(node, 0), region, node.buffer, node.floats);
    read_floats(input(node, 1), region, node.buffer, node.more);
    for (std::size_t i = 0; i < node.floats.size(); ++i) node.floats[i] += node.more[i];
    write_sum(node, node.floats, out);
  }

  void add_product(Node& node, const Region& region, Bytes out) {
    const std::uint64_t rank = input(node, 1).columns;
    const Region thin{0, rank, region.column, region.columns};
    if (node.loaded.rows == 0 || node.loaded.column != thin.column || node.loaded.columns != thin.columns) {
      read_floats(input(node, 2), thin, node.buffer, node.floats);
      node.loaded = thin;
    }
    std::vector<float> left, sum;
    read_floats(input(node, 1), {region.row, region.rows, 0, rank}, node.buffer, left);
    read_floats(input(node, 0), region, node.buffer, node.more);
    const auto columns = static_cast<std::size_t>(region.columns), ranks = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < static_cast<std::size_t>(region.rows); ++i) {
      node.sums.assign(columns, 0);
      for (std::size_t k = 0; k < ranks; ++k) {
        const double factor = left[i * ranks + k];
        const float* const right = node.floats.data() + k * columns;
        for (std::size_t j = 0; j < columns; ++j) node.sums[j] += factor * static_cast<double>(right[j]);
      }
      float* const row = node.more.data() + i * columns;
      for (std::size_t j = 0; j < columns; ++j)
        row[j] = static_cast<float>(static_cast<double>(row[j]) + node.step->value * node.sums[j]);
    }
    write_sum(node, node.more, out);
  }

  // Parts begin and end at whole blocks, but for the last block of a row.
  void read_dequantized(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    const std::uint64_t block = from.block;
    const std::uint64_t begin = region.column / block * block;
    const std::uint64_t end = (region.column + region.columns + block - 1) / block * block;
    const std::uint64_t width = end - begin;
    resize(node.buffer, from.bytes_of(region.rows * width));
    read_region(from, {region.row, region.rows, begin, width}, node.buffer);
    node.floats.resize(static_cast<std::size_t>(region.rows * width));
    if (can_dequantize(from.form.dtype))
      dequantize(from.form.dtype, node.buffer, node.floats);
    else
      for (std::size_t i = 0; i < node.floats.size(); ++i)
        node.floats[i] = node.values[static_cast<std::uint8_t>(node.buffer[i])];
    for (std::uint64_t i = 0; i < region.rows; ++i) {
      const auto row = std::span<const float>(node.floats)
                           .subspan(static_cast<std::size_t>(i * width + (region.column - begin)),
                                    static_cast<std::size_t>(region.columns));
      count_special(node, row);
      std::memcpy(out.data() + static_cast<std::size_t>(i) * row.size_bytes(), row.data(), row.size_bytes());
    }
  }

  void read_cast(Node& node, const Region& region, Bytes out) {
    Node& from = input(node, 0);
    resize(node.buffer, from.bytes_of(region.rows * region.columns));
    read_region(from, region, node.buffer);
    if (cast(from.form.dtype, node.buffer, node.form.dtype, out))
      count_faults(node, from.form.dtype, node.buffer, out);
  }

  void read_quantized(Node& node, const Region& region, Bytes out) {
    quantize_region(node, region, out);
    // of smaller numbers every scale is a number of its type
    std::uint32_t most = 0;
    for (const float number : node.floats) most = std::max(most, bits_of(number) & 0x7FFFFFFFu);
    if (most > bits_of(most_of_scale(node.form.dtype)))
      count_faults(node, graph::DType::f32, std::as_bytes(std::span(node.floats)), out);
  }

  void quantize_region(Node& node, const Region& region, Bytes out) {
    const graph::DType dtype = node.form.dtype;
    const graph::TensorImportance* const importance = node.step->importance.get();
    read_floats(input(node, 0), region, node.buffer, node.floats);
    if (importance == nullptr) return quantize(dtype, node.floats, out);
    const std::uint64_t rows_each = node.rows / (importance->weights.size() / node.columns);
    const auto columns = static_cast<std::size_t>(region.columns);
    const auto bytes = static_cast<std::size_t>(node.bytes_of(region.columns));
    for (std::size_t i = 0; i < region.rows; ++i) {
      const std::uint64_t row = region.row + i;
      const auto first = static_cast<std::size_t>(row / rows_each * node.columns + region.column);
      const auto part = std::span<const float>(node.floats).subspan(i * columns, columns);
      RowImportance own{std::span<const float>(importance->weights).subspan(first, columns)};
      if (needs_row_square(dtype))
        own.mean_square = columns == node.columns ? sum_squares(part) / static_cast<float>(columns)
                                                  : mean_square(node, row, region.columns);
      quantize(dtype, part, own, out.subspan(i * bytes, bytes));
    }
  }

  // Of a row that comes in parts of `columns` numbers: kept for the next part.
  float mean_square(Node& node, std::uint64_t row, std::uint64_t columns) {
    if (node.squared_row == row) return node.square;
    float sum = 0;
    for (std::uint64_t at = 0; at < node.columns; at += columns) {
      read_floats(input(node, 0), {row, 1, at, std::min(columns, node.columns - at)}, node.buffer, node.more);
      sum = sum_squares(node.more, sum);
    }
    node.squared_row = row;
    node.square = sum / static_cast<float>(node.columns);
    return node.square;
  }

  io::ReadTensor read_;
  Recipe recipe_;
  std::vector<Node> nodes_;
  NumberFaults faults_;
  std::uint64_t most_ = 0;          // numbers of a part
  std::uint64_t most_columns_ = 0;  // of a part of several rows
};

RecipeReader::RecipeReader(const graph::MetaGraph& graph, const io::ReadTensor& read, const Recipe& recipe,
                           std::uint64_t memory)
    : impl_(std::make_unique<Impl>(graph, read, recipe, memory)) {}
RecipeReader::~RecipeReader() = default;
RecipeReader::RecipeReader(RecipeReader&&) noexcept = default;

const Form& RecipeReader::form() const { return impl_->form(); }
std::uint64_t RecipeReader::bytes() const { return impl_->bytes(); }
void RecipeReader::read(std::uint64_t offset, std::span<std::byte> out) { impl_->read(offset, out); }
NumberFaults RecipeReader::take_faults() { return impl_->take_faults(); }

}  // namespace loadline::convert
