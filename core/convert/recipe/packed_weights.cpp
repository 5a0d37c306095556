// The arithmetic of each packing; FP4 codes and scales in the order of ggml blocks.
#include "core/convert/recipe/packed_weights.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/convert/numbers/elements.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

namespace loadline::convert {

// --- The arithmetic of each packing. core/graph/packed/packed_layouts.cpp has the layouts.
//
//   GPTQ, AWQ              (code - zero) * scale; GPTQ stores zero - 1, GPTQ v2 and AWQ zero
//   bitsandbytes 4-bit     codebook[code] * scale of a block; nested: codebook[scale] * its scale + offset
//   bitsandbytes 8-bit     code * (scale / 127)
//   8-bit with scales      code * scale, integers with zeros (code - zero) * scale
//   PyTorch's quantized    (code - zero) * scale: the form above with a state, for integers of any width
//   compressed integers    (code - zero) * scale; codes and zeros are stored plus half their range
//   FP4 and FP8 in groups  code * scale, scales are floats of 8 bits times a factor, or powers of two
//   MLX affine             code * scale, rounded to the type of the scales, + bias

namespace {

constexpr std::uint64_t kGroupOfExperts = 32;
// AWQ stores the outputs of a word in the order 0 2 4 6 1 3 5 7: where each of eight is found.
constexpr std::array<std::uint32_t, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

// Bits [at, at + bits) of words of 32 bits, lowest first.
std::uint32_t bits_at(const std::uint32_t* words, std::uint64_t at, std::uint32_t bits) {
  const std::uint64_t word = at / 32, shift = at % 32;
  std::uint64_t value = words[word] >> shift;
  if (shift + bits > 32) value |= static_cast<std::uint64_t>(words[word + 1]) << (32 - shift);
  return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace

Unpacker::Unpacker(const graph::MetaGraph& graph, const io::ReadTensor& read,
                   const graph::LogicalTensor& weight)
    : graph_(graph), read_(read), weight_(weight) {
  columns_ = weight.shape.empty() ? 1 : weight.shape.back();
  const graph::DType codes = graph.tensor(weight.codes).dtype;
  values_ = float_code_values(is_code_type(codes) && weight.bits == 8 ? codes : graph::DType::f4_e2m1);
  if (weight.packing == graph::WeightPacking::mlx_mxfp8) values_ = float_code_values(graph::DType::f8_e4m3);
  if (const auto scales = weight.companion(graph::Companion::scales)) {
    const graph::DType type = graph.tensor(*scales).dtype;
    const bool floats = type == graph::DType::f8_e4m3 || weight.packing == graph::WeightPacking::mlx_nvfp4;
    exponents_ = float_code_values(floats ? graph::DType::f8_e4m3 : graph::DType::f8_e8m0);
  }
  if (has(graph::Companion::global_scale)) {
    const std::vector<float> factor = all_floats(graph::Companion::global_scale);
    const bool divides = weight.packing == graph::WeightPacking::compressed_nvfp4;
    if (!factor.empty()) (divides ? divisor_ : factor_) = factor.front();
  }
  if (has(graph::Companion::groups) && weight.packing == graph::WeightPacking::compressed_integers)
    throw Error(ErrorCode::unsupported, {.tensor = weight.name},
                "its inputs are grouped out of order, which is not read for compressed-tensors");
  const bool by_input = weight.packing == graph::WeightPacking::gptq ||
                        weight.packing == graph::WeightPacking::gptq_v2 ||
                        weight.packing == graph::WeightPacking::awq;
  if (by_input && has(graph::Companion::groups)) {
    const Stored from = companion(graph::Companion::groups);
    load(from, {0, 1, 0, columns_}, bytes_);
    if (from.dtype != graph::DType::i32 || bytes_.size() != columns_ * sizeof(std::uint32_t))
      throw Error(ErrorCode::malformed, {.tensor = weight.name}, "its groups are not one number per input");
    groups_.resize(columns_);
    std::memcpy(groups_.data(), bytes_.data(), bytes_.size());
    const graph::Shape& scales = graph.tensor(*weight.companion(graph::Companion::scales)).shape;
    for (const std::uint32_t group : groups_)
      if (group >= scales[0])
        throw Error(ErrorCode::malformed, {.tensor = weight.name}, "an input has group {}, there are {}",
                    group, scales[0]);
  }
  if (weight.packing == graph::WeightPacking::bitsandbytes_4bit) {
    const std::vector<float> codebook = all_floats(graph::Companion::codebook);
    if (codebook.size() != 16)
      throw Error(ErrorCode::malformed, {.tensor = weight.name}, "its codebook has {} numbers, not 16",
                  codebook.size());
    std::ranges::copy(codebook, values_.begin());
    if (has(graph::Companion::nested_scales)) {
      read_nested_state();
      nested_scales_ = all_floats(graph::Companion::nested_scales);
      nested_codebook_ = all_floats(graph::Companion::nested_codebook);
      const std::uint64_t scales = graph::elements(graph.tensor(*weight.companion(graph::Companion::scales)));
      if (nested_codebook_.size() != 256 || nested_block_ == 0 ||
          graph.tensor(*weight.companion(graph::Companion::scales)).dtype != graph::DType::u8 ||
          nested_scales_.size() != scales / nested_block_ + (scales % nested_block_ == 0 ? 0 : 1))
        throw Error(ErrorCode::malformed, {.tensor = weight.name}, "the scales of its scales do not fit");
    }
  }
}

// {"nested_blocksize": 256, "nested_offset": 0.03}
void Unpacker::read_nested_state() {
  const auto state = small_json<nlohmann::json>(weight_.state_text());
  const auto number = [&](const char* key) {
    const auto found = state.is_object() ? state.find(key) : state.end();
    return found != state.end() && found->is_number() ? found->get<double>() : 0;
  };
  const double block = number("nested_blocksize");
  nested_block_ = block >= 1 && block <= 1 << 20 ? static_cast<std::uint64_t>(block) : 0;
  nested_offset_ = static_cast<float>(number("nested_offset"));
}

Unpacker::Stored Unpacker::stored(graph::TensorId id) const {
  const graph::Tensor& tensor = graph_.tensor(id);
  return {id, tensor.dtype, tensor.shape.empty() ? 1 : tensor.shape.back()};
}

Unpacker::Stored Unpacker::companion(graph::Companion kind) const {
  const auto id = weight_.companion(kind);
  if (!id)
    throw Error(ErrorCode::malformed, {.tensor = weight_.name}, "has no {}", graph::companion_name(kind));
  return stored(*id);
}

void Unpacker::load(const Stored& from, const Region& region, std::vector<std::byte>& into) const {
  const std::uint64_t size = graph::dtype_info(from.dtype).block_bytes;
  into.resize(static_cast<std::size_t>(region.rows * region.columns * size));
  const std::span<std::byte> out(into);
  if (region.columns == from.columns) return read_(from.tensor, region.row * from.columns * size, out);
  const auto row_bytes = static_cast<std::size_t>(region.columns * size);
  for (std::uint64_t i = 0; i < region.rows; ++i)
    read_(from.tensor, ((region.row + i) * from.columns + region.column) * size,
          out.subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes));
}

void Unpacker::load_floats(const Stored& from, const Region& region, const std::array<float, 256>& bytes,
                           std::vector<float>& into) {
  load(from, region, bytes_);
  into.resize(static_cast<std::size_t>(region.rows * region.columns));
  if (graph::dtype_info(from.dtype).block_bytes == 1) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = bytes[static_cast<std::uint8_t>(bytes_[i])];
  } else {
    if (!can_cast(from.dtype, graph::DType::f32))
      throw Error(ErrorCode::unsupported, {.tensor = weight_.name}, "its companion has numbers of type {}",
                  graph::dtype_info(from.dtype).name);
    cast(from.dtype, bytes_, graph::DType::f32, std::as_writable_bytes(std::span(into)));
  }
}

std::vector<float> Unpacker::all_floats(graph::Companion kind) {
  const Stored from = companion(kind);
  const std::uint64_t count = graph::elements(graph_.tensor(from.tensor));
  constexpr std::uint64_t kMost = 1 << 24;
  if (count > kMost)
    throw Error(ErrorCode::limit, {.tensor = weight_.name}, "has {} {}, at most {} are read", count,
                graph::companion_name(kind), kMost);
  std::vector<float> numbers;
  load_floats({from.tensor, from.dtype, count}, {0, 1, 0, count}, exponents_, numbers);
  return numbers;
}

// MLX multiplies and adds in the type of the scales.
void Unpacker::round_to(graph::DType dtype, std::span<float> numbers) {
  if (dtype == graph::DType::f32) return;
  bytes_.resize(numbers.size() * graph::dtype_info(dtype).block_bytes);
  cast(graph::DType::f32, std::as_bytes(numbers), dtype, bytes_);
  cast(dtype, bytes_, graph::DType::f32, std::as_writable_bytes(numbers));
}

void Unpacker::load_words(const Stored& from, const Region& region) {
  load(from, region, bytes_);
  words_.resize(bytes_.size() / sizeof(std::uint32_t) + 1);  // one more for codes that cross words
  words_.back() = 0;
  std::memcpy(words_.data(), bytes_.data(), bytes_.size());
}

Unpacker::Blocks Unpacker::blocks_of(const Region& region) const {
  const std::size_t rank = weight_.shape.size();
  Blocks blocks;
  blocks.width = weight_.block.back();
  blocks.height = rank < 2 ? 1 : weight_.block[rank - 2];
  blocks.matrix = rank < 2 ? 1 : weight_.shape[rank - 2];
  blocks.down = (blocks.matrix + blocks.height - 1) / blocks.height;
  blocks.row = region.row;
  blocks.column = region.column;
  blocks.top = blocks.row_of(region.row);
  blocks.rows = blocks.row_of(region.row + region.rows - 1) - blocks.top + 1;
  blocks.first = region.column / blocks.width;
  blocks.across = (region.column + region.columns - 1) / blocks.width - blocks.first + 1;
  blocks.all = (columns_ + blocks.width - 1) / blocks.width;
  return blocks;
}

// A single number stands for every block.
void Unpacker::load_blocks(graph::Companion kind, const Blocks& blocks, const std::array<float, 256>& bytes,
                           std::vector<float>& into) {
  const Stored from = companion(kind);
  const auto size = static_cast<std::size_t>(blocks.rows * blocks.across);
  const std::uint64_t count = graph::elements(graph_.tensor(from.tensor));
  if (count == 1) {
    load_floats({from.tensor, from.dtype, 1}, {0, 1, 0, 1}, bytes, into);
    return into.resize(size, into.front());
  }
  if (count < (blocks.top + blocks.rows) * blocks.all)
    throw Error(ErrorCode::malformed, {.tensor = weight_.name}, "has {} {}, {} are needed", count,
                graph::companion_name(kind), (blocks.top + blocks.rows) * blocks.all);
  load_floats({from.tensor, from.dtype, blocks.all}, {blocks.top, blocks.rows, blocks.first, blocks.across},
              bytes, into);
}

namespace {

// torch's quantize_per_tensor and quantize_per_channel (torch/_utils.py, _rebuild_qtensor). The state is
// {"scale": 0.1, "zero_point": 10} for all numbers, or {"axis": 0} for scales and zeros by its positions.
struct Affine {
  std::vector<float> scales;
  std::vector<std::int64_t> zeros;
  std::uint64_t inner = 1;  // numbers for each position of the dimension
  std::uint64_t first = 0;  // the position that the first scale is for
};

// Those of positions [first, first + many) of `count`.
template <typename T>
std::vector<T> read_part(const graph::MetaGraph& graph, const io::ReadTensor& read,
                         const graph::LogicalTensor& weight, graph::Companion kind, std::uint64_t count,
                         std::uint64_t first, std::uint64_t many) {
  const graph::DType dtype = std::is_same_v<T, double> ? graph::DType::f64 : graph::DType::i64;
  const auto id = weight.companion(kind);
  // no more numbers than bytes of a file: a tensor may name one byte any number of times
  if (!id || graph.tensor(*id).dtype != dtype || graph::elements(graph.tensor(*id)) != count ||
      graph.storage(graph.tensor(*id).storage).bytes / sizeof(T) < count)
    throw Error(ErrorCode::malformed, {.tensor = weight.name}, "its {} are not {} numbers of type {}",
                graph::companion_name(kind), count, graph::dtype_info(dtype).name);
  std::vector<T> numbers(static_cast<std::size_t>(many));
  read(*id, first * sizeof(T), std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// For numbers [begin, end) of the weight.
Affine affine_of(const graph::MetaGraph& graph, const io::ReadTensor& read,
                 const graph::LogicalTensor& weight, std::uint64_t begin, std::uint64_t end) {
  const auto state = small_json<nlohmann::json>(weight.state_text());
  const auto field = [&](const char* key) {
    return state.is_object() && state.contains(key) ? state[key] : nlohmann::json();
  };
  Affine affine;
  if (field("scale").is_number() && field("zero_point").is_number_integer()) {
    affine.scales = {static_cast<float>(field("scale").get<double>())};
    affine.zeros = {field("zero_point").get<std::int64_t>()};
    return affine;
  }
  const std::uint64_t axis =
      field("axis").is_number_unsigned() ? field("axis").get<std::uint64_t>() : UINT64_MAX;
  if (axis >= weight.shape.size())
    throw Error(ErrorCode::malformed, {.tensor = weight.name},
                "has neither a finite scale nor an axis of scales");
  const std::uint64_t count = weight.shape[static_cast<std::size_t>(axis)];
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < weight.shape.size(); ++i)
    affine.inner *= weight.shape[i];
  std::uint64_t positions = count;
  if (axis == 0) {  // each position comes once
    affine.first = begin / affine.inner;
    positions = (end - 1) / affine.inner - affine.first + 1;
  }
  const auto scales =
      read_part<double>(graph, read, weight, graph::Companion::scales, count, affine.first, positions);
  affine.zeros =
      read_part<std::int64_t>(graph, read, weight, graph::Companion::zeros, count, affine.first, positions);
  affine.scales.assign(scales.begin(), scales.end());
  return affine;
}

std::int32_t code_at(graph::DType dtype, std::span<const std::byte> codes, std::size_t at) {
  if (dtype == graph::DType::u8) return std::to_integer<std::uint8_t>(codes[at]);
  if (dtype == graph::DType::i8) return static_cast<std::int8_t>(codes[at]);
  std::int32_t code = 0;
  std::memcpy(&code, codes.data() + at * sizeof code, sizeof code);
  return code;
}

}  // namespace

void Unpacker::read(const Region& region, std::span<float> out) {
  if (region.rows == 0 || region.columns == 0) return;
  if (weight_.packing == graph::WeightPacking::scaled && !weight_.state.empty()) {
    const std::uint64_t begin = region.row * columns_ + region.column;
    const std::uint64_t end = (region.row + region.rows - 1) * columns_ + region.column + region.columns;
    const Affine affine = affine_of(graph_, read_, weight_, begin, end);
    const graph::DType dtype = graph_.tensor(weight_.codes).dtype;
    load({weight_.codes, dtype, columns_}, region, bytes_);
    for (std::size_t at = 0; at < out.size(); ++at) {
      const std::uint64_t number = begin + at / region.columns * columns_ + at % region.columns;
      const auto position =
          static_cast<std::size_t>((number / affine.inner - affine.first) % affine.scales.size());
      const double code = code_at(dtype, bytes_, at) - static_cast<double>(affine.zeros[position]);
      out[at] = static_cast<float>(code) * affine.scales[position];
    }
    return;
  }
  switch (weight_.packing) {
    case graph::WeightPacking::gptq:
    case graph::WeightPacking::gptq_v2:
    case graph::WeightPacking::awq:
      return read_by_input(region, out);
    case graph::WeightPacking::bitsandbytes_4bit:
      return read_flat(region, out);
    case graph::WeightPacking::bitsandbytes_8bit:
    case graph::WeightPacking::scaled:
    case graph::WeightPacking::mlx_mxfp8:
      return read_numbers(region, out);
    case graph::WeightPacking::compressed_integers:
    case graph::WeightPacking::mlx_affine:
      return read_words(region, out);
    case graph::WeightPacking::compressed_nvfp4:
    case graph::WeightPacking::compressed_mxfp4:
    case graph::WeightPacking::nvfp4:
    case graph::WeightPacking::mlx_mxfp4:
    case graph::WeightPacking::mlx_nvfp4:
      return read_nibbles(region, out);
    case graph::WeightPacking::mxfp4:
      return read_experts(region, out);
  }
}

// A code of 8 bits for each number.
void Unpacker::read_numbers(const Region& region, std::span<float> out) {
  const Blocks blocks = blocks_of(region);
  load_blocks(graph::Companion::scales, blocks, exponents_, scales_);
  zeros_.assign(scales_.size(), 0);
  if (has(graph::Companion::zeros)) load_blocks(graph::Companion::zeros, blocks, values_, zeros_);
  load({weight_.codes, graph::DType::u8, columns_}, region, bytes_);
  const bool vectorwise = weight_.packing == graph::WeightPacking::bitsandbytes_8bit;
  constexpr float kPerInt8 = 7.874015718698502e-3F;  // 1 / 127, as bitsandbytes has it
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < region.rows; ++i)
    for (std::uint64_t j = 0; j < region.columns; ++j, ++at) {
      const std::size_t block = blocks.at(i, j);
      const float number = (values_[static_cast<std::uint8_t>(bytes_[at])] - zeros_[block]) * scales_[block];
      out[at] = vectorwise ? number * kPerInt8 : number;
    }
}

// Two codes of 4 bits a byte, the first in its low half.
void Unpacker::read_nibbles(const Region& region, std::span<float> out) {
  const Blocks blocks = blocks_of(region);
  load_blocks(graph::Companion::scales, blocks, exponents_, scales_);
  for (float& scale : scales_) scale = divisor_ == 1 ? scale * factor_ : scale / divisor_;
  const std::uint64_t begin = region.column / 2, bytes = (region.column + region.columns + 1) / 2 - begin;
  load({weight_.codes, graph::DType::u8, columns_ / 2}, {region.row, region.rows, begin, bytes}, bytes_);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    const std::byte* const row = bytes_.data() + i * bytes;
    for (std::uint64_t j = 0; j < region.columns; ++j, ++at) {
      const std::uint64_t column = region.column + j;
      const auto pair = static_cast<std::uint8_t>(row[column / 2 - begin]);
      out[at] = values_[column % 2 == 0 ? pair & 15U : pair >> 4U] * scales_[blocks.at(i, j)];
    }
  }
}

// Codes of any width that run on through the words of a row.
void Unpacker::read_words(const Region& region, std::span<float> out) {
  const Blocks blocks = blocks_of(region);
  const std::uint32_t bits = weight_.bits;
  const bool affine = weight_.packing == graph::WeightPacking::mlx_affine;
  load_blocks(graph::Companion::scales, blocks, exponents_, scales_);
  if (affine)
    load_blocks(graph::Companion::biases, blocks, exponents_, zeros_);
  else if (has(graph::Companion::zeros))
    load_packed_zeros(region, blocks);
  else
    zeros_.assign(scales_.size(), static_cast<float>(1U << (bits - 1)));
  const Stored codes = stored(weight_.codes);
  const std::uint64_t begin = region.column * bits / 32;
  const std::uint64_t words = ((region.column + region.columns) * bits + 31) / 32 - begin;
  load_words(codes, {region.row, region.rows, begin, words});
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    const std::uint32_t* const row = words_.data() + i * words;
    for (std::uint64_t j = 0; j < region.columns; ++j, ++at) {
      const auto code = static_cast<float>(bits_at(row, (region.column + j) * bits - begin * 32, bits));
      const std::size_t block = blocks.at(i, j);
      out[at] = affine ? code * scales_[block] : (code - zeros_[block]) * scales_[block];
    }
  }
  if (!affine) return;
  round_to(weight_.dtype, out);
  at = 0;
  for (std::uint64_t i = 0; i < region.rows; ++i)
    for (std::uint64_t j = 0; j < region.columns; ++j, ++at) out[at] += zeros_[blocks.at(i, j)];
}

// Zeros of compressed integers run down the rows. They are stored plus half their range, as the codes are.
void Unpacker::load_packed_zeros(const Region& region, const Blocks& blocks) {
  const Stored from = companion(graph::Companion::zeros);
  const std::uint64_t begin = region.row * weight_.bits / 32;
  const std::uint64_t words = ((region.row + region.rows) * weight_.bits + 31) / 32 - begin;
  if (from.dtype != graph::DType::i32 || from.columns != blocks.all ||
      graph::elements(graph_.tensor(from.tensor)) < (begin + words) * from.columns)
    throw Error(ErrorCode::malformed, {.tensor = weight_.name}, "its zeros do not fit its scales");
  load_words(from, {begin, words, blocks.first, blocks.across});
  zeros_.resize(static_cast<std::size_t>(region.rows * blocks.across));
  std::vector<std::uint32_t> run(static_cast<std::size_t>(words) + 1, 0);
  for (std::uint64_t g = 0; g < blocks.across; ++g) {
    for (std::uint64_t w = 0; w < words; ++w)
      run[static_cast<std::size_t>(w)] = words_[static_cast<std::size_t>(w * blocks.across + g)];
    for (std::uint64_t i = 0; i < region.rows; ++i)
      zeros_[static_cast<std::size_t>(i * blocks.across + g)] =
          static_cast<float>(bits_at(run.data(), (region.row + i) * weight_.bits - begin * 32, weight_.bits));
  }
}

// GPTQ and AWQ store inputs as rows: [inputs, outputs], scales and zeros [groups, outputs].
void Unpacker::read_by_input(const Region& region, std::span<float> out) {
  const std::uint32_t bits = weight_.bits;
  const bool awq = weight_.packing == graph::WeightPacking::awq;
  const Stored scales = companion(graph::Companion::scales), zeros = companion(graph::Companion::zeros);
  const std::uint64_t group_rows = graph_.tensor(scales.tensor).shape[0];
  load_floats(scales, {0, group_rows, region.row, region.rows}, exponents_, scales_);

  // words that hold the codes of the outputs: AWQ's codes and both packings' zeros
  const std::uint64_t word_begin = region.row * bits / 32;
  const std::uint64_t word_end = ((region.row + region.rows) * bits + 31) / 32;
  const std::uint64_t words = word_end - word_begin;
  const auto code_of = [&](const std::uint32_t* row, std::uint64_t output) {
    if (!awq) return bits_at(row, output * bits - word_begin * 32, bits);
    return (row[output / 8 - word_begin] >> (4 * kAwqPlaces[output % 8])) & 15U;
  };
  load_words(zeros, {0, group_rows, word_begin, words});
  zeros_.resize(static_cast<std::size_t>(group_rows * region.rows));
  // GPTQ stores zeros less one; its 3-bit layout lets the sum grow beyond three bits
  const std::uint32_t more = weight_.packing == graph::WeightPacking::gptq ? 1 : 0;
  const std::uint32_t mask = bits == 3 ? ~0U : (1U << bits) - 1;
  for (std::uint64_t g = 0; g < group_rows; ++g)
    for (std::uint64_t i = 0; i < region.rows; ++i)
      zeros_[static_cast<std::size_t>(g * region.rows + i)] =
          static_cast<float>((code_of(words_.data() + g * words, region.row + i) + more) & mask);

  const Stored codes = stored(weight_.codes);
  const std::uint64_t block = weight_.block.back();
  const auto put = [&](std::uint64_t i, std::uint64_t j, std::uint32_t code) {
    const std::uint64_t column = region.column + j;
    const std::uint64_t group = groups_.empty() ? column / block : groups_[static_cast<std::size_t>(column)];
    const auto at = static_cast<std::size_t>(group * region.rows + i);
    out[static_cast<std::size_t>(i * region.columns + j)] =
        (static_cast<float>(code) - zeros_[at]) * scales_[at];
  };
  if (awq) {
    load_words(codes, {region.column, region.columns, word_begin, words});
    for (std::uint64_t j = 0; j < region.columns; ++j)
      for (std::uint64_t i = 0; i < region.rows; ++i)
        put(i, j, code_of(words_.data() + j * words, region.row + i));
    return;
  }
  const std::uint64_t begin = region.column * bits / 32;
  const std::uint64_t end = ((region.column + region.columns) * bits + 31) / 32;
  load_words(codes, {begin, end - begin, region.row, region.rows});
  std::vector<std::uint32_t> run(static_cast<std::size_t>(end - begin) + 1, 0);
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    for (std::uint64_t w = 0; w < end - begin; ++w)
      run[static_cast<std::size_t>(w)] = words_[static_cast<std::size_t>(w * region.rows + i)];
    for (std::uint64_t j = 0; j < region.columns; ++j)
      put(i, j, bits_at(run.data(), (region.column + j) * bits - begin * 32, bits));
  }
}

// gpt-oss stores [experts, outputs, groups of inputs]; the weight is [experts, inputs, outputs].
void Unpacker::read_experts(const Region& region, std::span<float> out) {
  const Stored scales = companion(graph::Companion::scales);
  const std::uint64_t inputs = weight_.shape[weight_.shape.size() - 2], groups = inputs / kGroupOfExperts;
  for (std::uint64_t done = 0; done < region.rows;) {
    const std::uint64_t row = region.row + done;
    const std::uint64_t expert = row / inputs, input = row % inputs;
    const std::uint64_t count = std::min(region.rows - done, inputs - input);
    const std::uint64_t first = input / kGroupOfExperts;
    const std::uint64_t last = (input + count - 1) / kGroupOfExperts, taken = last - first + 1;
    const std::uint64_t output = expert * columns_ + region.column;
    load_floats({scales.tensor, scales.dtype, groups}, {output, region.columns, first, taken}, exponents_,
                scales_);
    constexpr std::uint64_t kBytes = kGroupOfExperts / 2;
    load({weight_.codes, graph::DType::u8, groups * kBytes},
         {output, region.columns, first * kBytes, taken * kBytes}, bytes_);
    for (std::uint64_t j = 0; j < region.columns; ++j)
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t number = input + i - first * kGroupOfExperts;
        const auto pair =
            static_cast<std::uint8_t>(bytes_[static_cast<std::size_t>(j * taken * kBytes + number / 2)]);
        const float scale = scales_[static_cast<std::size_t>(j * taken + number / kGroupOfExperts)];
        out[static_cast<std::size_t>((done + i) * region.columns + j)] =
            values_[number % 2 == 0 ? pair & 15U : pair >> 4U] * scale;
      }
    done += count;
  }
}

// bitsandbytes numbers all elements through, two a byte, the first in its high half.
void Unpacker::read_flat(const Region& region, std::span<float> out) {
  const Stored scales = companion(graph::Companion::scales);
  const std::uint64_t block = weight_.block[0], count = graph::elements(graph_.tensor(scales.tensor));
  const std::uint64_t bytes = graph::tensor_bytes(graph_, graph_.tensor(weight_.codes));
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    const std::uint64_t begin = (region.row + i) * columns_ + region.column, end = begin + region.columns;
    const std::uint64_t first = begin / block, last = (end - 1) / block;
    if (nested_codebook_.empty()) {
      load_floats({scales.tensor, scales.dtype, count}, {0, 1, first, last - first + 1}, exponents_, scales_);
    } else {
      load({scales.tensor, graph::DType::u8, count}, {0, 1, first, last - first + 1}, bytes_);
      scales_.resize(bytes_.size());
      for (std::size_t k = 0; k < scales_.size(); ++k)
        scales_[k] = nested_codebook_[static_cast<std::uint8_t>(bytes_[k])] *
                         nested_scales_[static_cast<std::size_t>((first + k) / nested_block_)] +
                     nested_offset_;
    }
    load({weight_.codes, graph::DType::u8, bytes}, {0, 1, begin / 2, (end + 1) / 2 - begin / 2}, bytes_);
    for (std::uint64_t at = begin; at < end; ++at) {
      const auto pair = static_cast<std::uint8_t>(bytes_[static_cast<std::size_t>(at / 2 - begin / 2)]);
      out[static_cast<std::size_t>(i * region.columns + at - begin)] =
          values_[at % 2 == 0 ? pair >> 4U : pair & 15U] *
          scales_[static_cast<std::size_t>(at / block - first)];
    }
  }
}

// --- Layouts: core/convert/numbers/dequantize.cpp. A scale in front of its numbers, and numbers of the first
// half of a group in the low halves of its bytes.

namespace {

std::optional<graph::DType> blocks_of(graph::WeightPacking packing) {
  switch (packing) {
    case graph::WeightPacking::mxfp4:
    case graph::WeightPacking::compressed_mxfp4:
    case graph::WeightPacking::mlx_mxfp4:
      return graph::DType::mxfp4;
    case graph::WeightPacking::nvfp4:
    case graph::WeightPacking::compressed_nvfp4:
    case graph::WeightPacking::mlx_nvfp4:
      return graph::DType::nvfp4;
    default:
      return std::nullopt;
  }
}

// E8M0 of 255 is not a number, but 2^128 for ggml. E4M3 has a sign, and ggml reads not a number as 0.
std::byte scale_of(std::byte scale, bool exponent) {
  const auto bits = std::to_integer<unsigned>(scale);
  if (!exponent && bits == 0x80) return std::byte{0};
  if (exponent ? bits == 0xFF : bits >= 0x7F)
    throw Error(ErrorCode::unsupported, "a scale of {:#04x} is {}, which blocks of ggml cannot hold", bits,
                !exponent && bits > 0x80 && bits < 0xFF ? "negative" : "not a number");
  return scale;
}

}  // namespace

std::optional<Repacking> ggml_repacking(const graph::MetaGraph& graph, const graph::LogicalTensor& weight) {
  const auto dtype = blocks_of(weight.packing);
  const auto scales = weight.companion(graph::Companion::scales);
  const auto count = graph::element_count(weight.shape);
  if (!dtype || !scales || !count || weight.shape.empty()) return std::nullopt;
  Repacking result{*dtype, weight.shape, weight.codes, *scales, *dtype == graph::DType::mxfp4 ? 32U : 16U};
  if (weight.packing == graph::WeightPacking::mxfp4) {
    if (weight.shape.size() < 2) return std::nullopt;
    std::swap(result.shape[weight.shape.size() - 1], result.shape[weight.shape.size() - 2]);
    result.turned = true;
  }
  const graph::Tensor &codes = graph.tensor(weight.codes), &factors = graph.tensor(*scales);
  const bool fits = result.shape.back() % graph::dtype_info(*dtype).block_elements == 0 && *count > 0 &&
                    graph::byte_size(codes.dtype, graph::elements(codes)) == *count / 2 &&
                    graph::byte_size(factors.dtype, graph::elements(factors)) == *count / result.group;
  return fits ? std::optional(std::move(result)) : std::nullopt;
}

void repack(const Repacking& repacking, std::span<const std::byte> codes, std::span<const std::byte> scales,
            std::span<std::byte> blocks) {
  const graph::DTypeInfo& type = graph::dtype_info(repacking.dtype);
  const std::size_t count = blocks.size() / type.block_bytes, group = repacking.group,
                    groups = type.block_elements / group;
  assert(codes.size() == count * type.block_elements / 2 && scales.size() == count * groups);
  for (std::size_t i = 0; i < count; ++i) {
    const auto block = blocks.subspan(i * type.block_bytes, type.block_bytes);
    for (std::size_t g = 0; g < groups; ++g) {
      block[g] = scale_of(scales[i * groups + g], repacking.dtype == graph::DType::mxfp4);
      const auto from = codes.subspan((i * groups + g) * group / 2, group / 2);
      const auto to = block.subspan(groups + g * group / 2, group / 2);
      const auto code = [&](std::size_t at) {
        return at % 2 == 0 ? from[at / 2] & std::byte{15} : from[at / 2] >> 4;
      };
      for (std::size_t j = 0; j < group / 2; ++j) to[j] = code(j) | code(j + group / 2) << 4;
    }
  }
}

}  // namespace loadline::convert
