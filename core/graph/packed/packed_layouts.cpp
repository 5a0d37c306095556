// Fits the tensors of one module to a layout.
//
// O outputs, I inputs, G groups of inputs that share a scale, W bits of a word, b bits of a code:
//
//   GPTQ                  qweight I32 [I*b/32, O], qzeros I32 [G, O*b/32], scales [G, O], g_idx [I]
//   AWQ                   qweight I32 [I, O*b/32], qzeros I32 [G, O*b/32], scales [G, O]
//   bitsandbytes 4-bit    weight U8 [O*I/2, 1], weight.absmax [blocks], weight.quant_map [16],
//                         weight.quant_state.bitsandbytes__nf4 U8: JSON with the shape
//   bitsandbytes 8-bit    weight I8 [O, I], SCB [O]
//   8-bit with scales     weight F8 or I8 [O, I], weight_scale or weight_scale_inv: [], [O, 1] or of blocks
//   compressed-tensors    weight_packed I32 [O, I*b/32], weight_scale [O, G], weight_shape I64 [2];
//                         weight_packed U8 [O, I/2], weight_scale F8 or U8 [O, G], weight_global_scale
//   NVFP4 (ModelOpt)      weight U8 [O, I/2], weight_scale F8 [O, I/16], weight_scale_2 []
//   MXFP4 (gpt-oss)       NAME_blocks U8 [E, O, I/32, 16], NAME_scales U8 [E, O, I/32]: NAME is [E, I, O]
//   MLX                   weight U32 [O, I*b/32], scales [O, G], biases [O, G] (affine)
#include "core/base/checked_arithmetic.h"
#include "core/base/json.h"
#include "core/graph/packed/stored_parts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <nlohmann/json.hpp>

namespace loadline::graph::packed {
namespace {

std::optional<std::uint64_t> quotient(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
}
constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

// Numbers in a word of 32 bits of which each has `bits` bits, in words where they run on: 32 of them fill
// `bits` words.
std::optional<std::uint64_t> unpacked(std::uint64_t words, std::uint64_t bits) {
  const auto all = checked_mul(words, 32);
  return all && bits != 0 ? quotient(*all, bits) : std::nullopt;
}

class Layouts {
 public:
  Layouts(const MetaGraph& graph, const QuantizationConfig& config, const ReadSmallTensor& read,
          std::string_view base, const Group& group)
      : graph_(graph), config_(config), read_(read), base_(base), group_(group) {}

  std::optional<LayoutFit> fit() const {
    for (const Rule& rule : kRuleTable) {
      const bool whole = group_.has_all(rule.codes, rule.needs[0], rule.needs[1]);
      // a weight beside its own codes: nothing says which of them counts
      if (!whole || (rule.codes != Slot::weight && has(Slot::weight)) || !(this->*rule.typed)()) continue;
      return LayoutFit{rule.packing, rule.codes, (this->*rule.fit)()};
    }
    return std::nullopt;
  }

 private:
  using Fit = std::optional<Fitted> (Layouts::*)() const;
  struct Rule {
    WeightPacking packing;
    Slot codes;
    std::array<Slot, 2> needs;  // besides the codes
    bool (Layouts::*typed)() const;
    Fit fit;
  };
  static constexpr std::size_t kRules = 15;
  static const std::array<Rule, kRules> kRuleTable;

  bool has(Slot slot) const { return group_.has(slot); }
  TensorId id(Slot slot) const { return group_.id(slot); }
  const Tensor& tensor(Slot slot) const { return graph_.tensor(id(slot)); }
  DType type(Slot slot) const { return tensor(slot).dtype; }
  const Shape& shape(Slot slot) const { return tensor(slot).shape; }
  bool matrix(Slot slot) const { return shape(slot).size() == 2; }
  bool floating(Slot slot) const {
    return type(slot) == DType::f16 || type(slot) == DType::bf16 || type(slot) == DType::f32;
  }
  // The scales have the type that the weight had, unless they were widened.
  std::optional<DType> half_of(Slot slot) const {
    return type(slot) == DType::f16 || type(slot) == DType::bf16 ? std::optional(type(slot)) : std::nullopt;
  }

  bool words_by_input() const { return type(Slot::qweight) == DType::i32 && !words_by_output(); }
  bool words_by_output() const {
    return type(Slot::qweight) == DType::i32 && matrix(Slot::qweight) && matrix(Slot::qzeros) &&
           matrix(Slot::scales) && shape(Slot::qweight)[1] == shape(Slot::qzeros)[1] &&
           shape(Slot::qweight)[1] != shape(Slot::scales)[1];
  }
  // Both store zeros as [G, O*b/32] beside scales [G, O].
  std::optional<std::uint32_t> bits_of_zeros() const {
    if (!matrix(Slot::qweight) || !matrix(Slot::qzeros) || !matrix(Slot::scales) || !floating(Slot::scales) ||
        type(Slot::qzeros) != DType::i32)
      return std::nullopt;
    const Shape &zeros = shape(Slot::qzeros), &scales = shape(Slot::scales);
    const auto all = checked_mul(zeros[1], 32);
    const auto bits = all ? quotient(*all, scales[1]) : std::nullopt;
    if (!bits || *bits < 2 || *bits > 8 || zeros[0] != scales[0] || scales[0] == 0) return std::nullopt;
    return static_cast<std::uint32_t>(*bits);
  }
  std::optional<Fitted> fit_gptq() const {
    const auto bits = bits_of_zeros();
    const auto inputs = bits ? unpacked(shape(Slot::qweight)[0], *bits) : std::nullopt;
    const std::uint64_t outputs = shape(Slot::scales).back();
    if (!inputs || shape(Slot::qweight)[1] != outputs) return std::nullopt;
    if (has(Slot::g_idx) && shape(Slot::g_idx) != Shape{*inputs}) return std::nullopt;
    return Fitted{
        {outputs, *inputs}, *bits, {1, divide_up(*inputs, shape(Slot::scales)[0])}, half_of(Slot::scales)};
  }
  std::optional<Fitted> fit_awq() const {
    const auto bits = bits_of_zeros();
    if (!bits) return std::nullopt;
    const std::uint64_t inputs = shape(Slot::qweight)[0], outputs = shape(Slot::scales)[1];
    const auto group = quotient(inputs, shape(Slot::scales)[0]);
    if (!group) return std::nullopt;
    return Fitted{{outputs, inputs}, *bits, {1, *group}, half_of(Slot::scales)};
  }

  bool typed_nibbles() const { return type(Slot::weight) == DType::u8; }
  // The state says {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [4096, 4096]}.
  std::optional<Fitted> fit_bitsandbytes_4bit() const {
    const auto text = read_small(Slot::quant_state);
    if (!text) return std::nullopt;
    const auto state = small_json<nlohmann::json>(*text);
    if (!state.is_object()) return std::nullopt;
    const auto sides = state.find("shape"), block = state.find("blocksize"), dtype = state.find("dtype");
    if (sides == state.end() || !sides->is_array() || sides->size() > 8 || block == state.end() ||
        !block->is_number_unsigned())
      return std::nullopt;
    std::vector<std::uint64_t> shape;
    for (const auto& side : *sides) {
      if (!side.is_number_unsigned()) return std::nullopt;
      shape.push_back(side.get<std::uint64_t>());
    }
    const auto count = element_count(shape);
    const auto numbers = block->get<std::uint64_t>();
    if (!count || numbers == 0 || divide_up(*count, 2) != tensor_bytes(graph_, tensor(Slot::weight)) ||
        divide_up(*count, numbers) != elements(tensor(Slot::absmax)))
      return std::nullopt;
    Fitted fitted{Shape(shape), 4, {numbers}, {}, *text};
    if (dtype != state.end() && dtype->is_string())
      if (const auto known = dtype_from(&DTypeInfo::torch, dtype->get<std::string>());
          known && dtype_info(*known).kind == DTypeKind::floating)
        fitted.dtype = known;
    return fitted;
  }

  bool typed_bytes() const { return type(Slot::weight) == DType::i8; }
  std::optional<Fitted> fit_bitsandbytes_8bit() const {
    if (!matrix(Slot::weight) || elements(tensor(Slot::scb)) != shape(Slot::weight)[0]) return std::nullopt;
    return Fitted{shape(Slot::weight), 8, {1, shape(Slot::weight)[1]}, {}};
  }

  bool typed_scaled() const {
    switch (type(Slot::weight)) {
      case DType::i8:
      case DType::f8_e4m3:
      case DType::f8_e4m3fnuz:
      case DType::f8_e5m2:
      case DType::f8_e5m2fnuz:
        return true;
      default:
        return false;
    }
  }
  std::optional<Fitted> fit_scaled() const { return fit_blocks(Slot::weight_scale); }
  std::optional<Fitted> fit_scaled_inverse() const { return fit_blocks(Slot::weight_scale_inv); }
  // Scales of the whole tensor, of each row, or of blocks: [.., rows of blocks, columns of blocks].
  std::optional<Fitted> fit_blocks(Slot slot) const {
    const Shape &weight = shape(Slot::weight), &scales = shape(slot);
    Fitted fitted{weight, 8, weight, half_of(slot)};
    if (elements(tensor(slot)) == 1) return fitted;
    if (weight.size() < 2) return std::nullopt;
    const std::size_t rank = weight.size();
    const bool rows = scales.size() + 1 == rank;  // [O] beside [O, I]
    if (scales.size() != rank && !rows) return std::nullopt;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (scales[i] != weight[i]) return std::nullopt;
      fitted.block[i] = 1;
    }
    const auto side = [&](std::size_t i, std::uint64_t blocks,
                          const std::optional<std::uint64_t>& configured) -> std::optional<std::uint64_t> {
      if (blocks == 0 || blocks > weight[i]) return std::nullopt;
      if (configured && divide_up(weight[i], *configured) == blocks) return *configured;
      if (blocks == 1) return weight[i];
      const std::uint64_t block = std::bit_ceil(divide_up(weight[i], blocks));
      if (divide_up(weight[i], block) == blocks) return block;
      return quotient(weight[i], blocks);
    };
    const auto height = side(rank - 2, scales[rank - 2], config_.block_rows);
    const auto width = side(rank - 1, rows ? 1 : scales[rank - 1], config_.block_columns);
    if (!height || !width) return std::nullopt;
    fitted.block[rank - 2] = *height;
    fitted.block[rank - 1] = *width;
    return fitted;
  }

  bool typed_words() const { return type(Slot::weight_packed) == DType::i32; }
  // Codes run on from word to word. A row may end with unused bits: only the shape says how long it is.
  std::optional<Fitted> fit_compressed_integers() const {
    const auto bytes = read_small(Slot::weight_shape);
    if (!bytes || type(Slot::weight_shape) != DType::i64 || bytes->size() != 16 ||
        !matrix(Slot::weight_packed) || !matrix(Slot::weight_scale))
      return std::nullopt;
    std::array<std::int64_t, 2> sides{};
    std::memcpy(sides.data(), bytes->data(), bytes->size());
    if (sides[0] <= 0 || sides[1] <= 0) return std::nullopt;
    const auto outputs = static_cast<std::uint64_t>(sides[0]), inputs = static_cast<std::uint64_t>(sides[1]);
    const Shape &words = shape(Slot::weight_packed), &scales = shape(Slot::weight_scale);
    if (words[0] != outputs || words[1] == 0 || scales[0] != outputs || scales[1] == 0) return std::nullopt;
    for (const std::uint32_t bits : {4U, 8U, 2U, 3U, 5U, 6U, 7U, 1U})
      if (const auto all = checked_mul(inputs, bits); all && divide_up(*all, 32) == words[1])
        return Fitted{
            {outputs, inputs}, bits, {1, divide_up(inputs, scales[1])}, half_of(Slot::weight_scale)};
    return std::nullopt;
  }

  // Two codes of 4 bits a byte; scales for each `group` of a row.
  std::optional<Fitted> fit_nibbles(Slot codes, Slot scales, std::uint64_t group) const {
    const Shape& bytes = shape(codes);
    if (bytes.size() < 2 || shape(scales).size() != bytes.size()) return std::nullopt;
    const auto inputs = checked_mul(bytes.back(), 2);
    if (!inputs || shape(scales).back() != divide_up(*inputs, group)) return std::nullopt;
    if (!std::equal(bytes.begin(), bytes.end() - 1, shape(scales).begin())) return std::nullopt;
    return Fitted{widened(bytes, *inputs), 4, row_block(bytes.size(), group), {}};
  }
  bool typed_compressed_nvfp4() const {
    return type(Slot::weight_packed) == DType::u8 && type(Slot::weight_scale) == DType::f8_e4m3 &&
           has(Slot::weight_global_scale);
  }
  std::optional<Fitted> fit_compressed_nvfp4() const {
    return fit_nibbles(Slot::weight_packed, Slot::weight_scale, 16);
  }
  bool typed_compressed_mxfp4() const {
    return type(Slot::weight_packed) == DType::u8 &&
           (type(Slot::weight_scale) == DType::u8 || type(Slot::weight_scale) == DType::f8_e8m0);
  }
  std::optional<Fitted> fit_compressed_mxfp4() const {
    return fit_nibbles(Slot::weight_packed, Slot::weight_scale, 32);
  }
  bool typed_nvfp4() const { return typed_nibbles() && type(Slot::weight_scale) == DType::f8_e4m3; }
  std::optional<Fitted> fit_nvfp4() const { return fit_nibbles(Slot::weight, Slot::weight_scale, 16); }

  bool typed_mxfp4() const { return type(Slot::blocks) == DType::u8 && type(Slot::scales) == DType::u8; }
  // transformers keeps the unpacked weight with inputs before outputs.
  std::optional<Fitted> fit_mxfp4() const {
    constexpr std::uint64_t kGroup = 32;
    const Shape &blocks = shape(Slot::blocks), &scales = shape(Slot::scales);
    if (blocks.size() < 3 || blocks.back() != kGroup / 2 || scales.size() + 1 != blocks.size() ||
        !std::equal(scales.begin(), scales.end(), blocks.begin()))
      return std::nullopt;
    const auto inputs = checked_mul(scales.back(), kGroup);
    if (!inputs) return std::nullopt;
    std::vector<std::uint64_t> unpacked_shape(scales.begin(), scales.end() - 2), block(scales.size(), 1);
    unpacked_shape.push_back(*inputs);
    unpacked_shape.push_back(scales[scales.size() - 2]);
    block[scales.size() - 2] = kGroup;
    return Fitted{Shape(unpacked_shape), 4, Shape(block), config_.dtype.value_or(DType::bf16)};
  }

  bool typed_mlx_affine() const { return type(Slot::weight) == DType::u32 && floating(Slot::scales); }
  bool typed_mlx_float() const { return type(Slot::weight) == DType::u32 && type(Slot::scales) == DType::u8; }
  // Bits of all codes that share a scale: words of 32 bits over groups.
  std::optional<std::uint64_t> mlx_group_bits() const {
    const Shape &words = shape(Slot::weight), &scales = shape(Slot::scales);
    if (words.size() < 2 || scales.size() != words.size() ||
        !std::equal(words.begin(), words.end() - 1, scales.begin()))
      return std::nullopt;
    const auto all = checked_mul(words.back(), 32);
    return all ? quotient(*all, scales.back()) : std::nullopt;
  }
  std::optional<Fitted> fit_mlx(std::uint32_t bits, std::uint64_t group) const {
    const auto inputs = unpacked(shape(Slot::weight).back(), bits);
    if (!inputs) return std::nullopt;
    const Shape& words = shape(Slot::weight);
    return Fitted{widened(words, *inputs), bits, row_block(words.size(), group), half_of(Slot::scales)};
  }
  // Without a configuration, MLX's default of 64 numbers in a group decides where it gives whole bits.
  std::optional<Fitted> fit_mlx_affine() const {
    const auto bits = mlx_group_bits();
    if (!bits || shape(Slot::biases) != shape(Slot::scales)) return std::nullopt;
    const CodeGroups* const asked = config_.groups_of(base_);
    if (asked != nullptr && *bits == asked->bits * asked->group) return fit_mlx(asked->bits, asked->group);
    if (asked != nullptr) return std::nullopt;
    for (const std::uint64_t group : {64U, 32U, 128U})
      if (const auto code = quotient(*bits, group); code && *code >= 2 && *code <= 8 && *code != 7)
        return fit_mlx(static_cast<std::uint32_t>(*code), group);
    return std::nullopt;
  }
  template <std::uint32_t kBits, std::uint64_t kGroup>
  bool typed_mlx() const {
    return typed_mlx_float() && mlx_group_bits() == kBits * kGroup;
  }
  template <std::uint32_t kBits, std::uint64_t kGroup>
  std::optional<Fitted> fit_mlx_float() const {
    return fit_mlx(kBits, kGroup);
  }

  static Shape widened(const Shape& shape, std::uint64_t last) {
    Shape wide = shape;
    wide[wide.size() - 1] = last;
    return wide;
  }
  static Shape row_block(std::size_t rank, std::uint64_t group) {
    std::vector<std::uint64_t> block(rank, 1);
    block.back() = group;
    return Shape(block);
  }

  std::optional<std::string> read_small(Slot slot) const {
    if (!read_ || tensor_bytes(graph_, tensor(slot)) > kMostSmallTensor) return std::nullopt;
    return read_(id(slot));
  }

  const MetaGraph& graph_;
  const QuantizationConfig& config_;
  const ReadSmallTensor& read_;
  const std::string_view base_;
  const Group& group_;
};

// The first rule that applies decides. A slot that repeats the codes asks for nothing more.
const std::array<Layouts::Rule, Layouts::kRules> Layouts::kRuleTable = {{
    {WeightPacking::awq,
     Slot::qweight,
     {Slot::qzeros, Slot::scales},
     &Layouts::words_by_output,
     &Layouts::fit_awq},
    {WeightPacking::gptq,
     Slot::qweight,
     {Slot::qzeros, Slot::scales},
     &Layouts::words_by_input,
     &Layouts::fit_gptq},
    {WeightPacking::bitsandbytes_4bit,
     Slot::weight,
     {Slot::absmax, Slot::quant_state},
     &Layouts::typed_nibbles,
     &Layouts::fit_bitsandbytes_4bit},
    {WeightPacking::bitsandbytes_8bit,
     Slot::weight,
     {Slot::scb, Slot::scb},
     &Layouts::typed_bytes,
     &Layouts::fit_bitsandbytes_8bit},
    {WeightPacking::compressed_nvfp4,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_scale},
     &Layouts::typed_compressed_nvfp4,
     &Layouts::fit_compressed_nvfp4},
    {WeightPacking::compressed_mxfp4,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_scale},
     &Layouts::typed_compressed_mxfp4,
     &Layouts::fit_compressed_mxfp4},
    {WeightPacking::compressed_integers,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_shape},
     &Layouts::typed_words,
     &Layouts::fit_compressed_integers},
    {WeightPacking::nvfp4,
     Slot::weight,
     {Slot::weight_scale, Slot::weight_scale_2},
     &Layouts::typed_nvfp4,
     &Layouts::fit_nvfp4},
    {WeightPacking::scaled,
     Slot::weight,
     {Slot::weight_scale_inv, Slot::weight_scale_inv},
     &Layouts::typed_scaled,
     &Layouts::fit_scaled_inverse},
    {WeightPacking::scaled,
     Slot::weight,
     {Slot::weight_scale, Slot::weight_scale},
     &Layouts::typed_scaled,
     &Layouts::fit_scaled},
    {WeightPacking::mxfp4,
     Slot::blocks,
     {Slot::scales, Slot::scales},
     &Layouts::typed_mxfp4,
     &Layouts::fit_mxfp4},
    {WeightPacking::mlx_affine,
     Slot::weight,
     {Slot::scales, Slot::biases},
     &Layouts::typed_mlx_affine,
     &Layouts::fit_mlx_affine},
    {WeightPacking::mlx_mxfp4,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Layouts::typed_mlx<4, 32>,
     &Layouts::fit_mlx_float<4, 32>},
    {WeightPacking::mlx_nvfp4,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Layouts::typed_mlx<4, 16>,
     &Layouts::fit_mlx_float<4, 16>},
    {WeightPacking::mlx_mxfp8,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Layouts::typed_mlx<8, 32>,
     &Layouts::fit_mlx_float<8, 32>},
}};

}  // namespace

std::optional<LayoutFit> fit_layout(const MetaGraph& graph, const QuantizationConfig& config,
                                    const ReadSmallTensor& read, std::string_view base, const Group& group) {
  return Layouts(graph, config, read, base, group).fit();
}

}  // namespace loadline::graph::packed
