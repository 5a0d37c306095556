// Groups tensors by the module that they belong to, and fits each group to a packing.
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
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

enum class Slot : std::uint8_t {
  weight,
  qweight,
  weight_packed,
  blocks,
  scales,
  qzeros,
  g_idx,
  biases,
  absmax,
  quant_map,
  nested_absmax,
  nested_quant_map,
  quant_state,
  scb,
  weight_format,
  weight_scale,
  weight_scale_inv,
  weight_scale_2,
  weight_global_scale,
  weight_zero_point,
  weight_shape,
  weight_g_idx,
  input_scale,
  input_global_scale,
};
constexpr std::size_t kSlots = 24;
constexpr std::uint32_t kNone = UINT32_MAX;

// The last part of a tensor's name, what comes before it and after the module's name, and its meaning.
struct Ending {
  std::string_view last, before;
  Slot slot;
};
constexpr std::array kEndings = std::to_array<Ending>({
    {"qweight", "", Slot::qweight},
    {"weight_packed", "", Slot::weight_packed},
    {"scales", "", Slot::scales},
    {"qzeros", "", Slot::qzeros},
    {"g_idx", "", Slot::g_idx},
    {"biases", "", Slot::biases},
    {"absmax", ".weight", Slot::absmax},
    {"quant_map", ".weight", Slot::quant_map},
    {"nested_absmax", ".weight", Slot::nested_absmax},
    {"nested_quant_map", ".weight", Slot::nested_quant_map},
    {"bitsandbytes__nf4", ".weight.quant_state", Slot::quant_state},
    {"bitsandbytes__fp4", ".weight.quant_state", Slot::quant_state},
    {"SCB", "", Slot::scb},
    {"weight_format", "", Slot::weight_format},
    {"weight_scale", "", Slot::weight_scale},
    {"weight_scale_inv", "", Slot::weight_scale_inv},
    {"weight_scale_2", "", Slot::weight_scale_2},
    {"weight_global_scale", "", Slot::weight_global_scale},
    {"weight_zero_point", "", Slot::weight_zero_point},
    {"weight_shape", "", Slot::weight_shape},
    {"weight_g_idx", "", Slot::weight_g_idx},
    {"input_scale", "", Slot::input_scale},
    {"input_global_scale", "", Slot::input_global_scale},
});
constexpr std::string_view kBlocks = "_blocks", kBlockScales = "_scales";

std::optional<Companion> companion_of(Slot slot) {
  switch (slot) {
    case Slot::weight:
    case Slot::qweight:
    case Slot::weight_packed:
    case Slot::blocks:
      return std::nullopt;
    case Slot::scales:
    case Slot::absmax:
    case Slot::scb:
    case Slot::weight_scale:
    case Slot::weight_scale_inv:
      return Companion::scales;
    case Slot::qzeros:
    case Slot::weight_zero_point:
      return Companion::zeros;
    case Slot::g_idx:
    case Slot::weight_g_idx:
      return Companion::groups;
    case Slot::biases:
      return Companion::biases;
    case Slot::quant_map:
      return Companion::codebook;
    case Slot::nested_absmax:
      return Companion::nested_scales;
    case Slot::nested_quant_map:
      return Companion::nested_codebook;
    case Slot::quant_state:
      return Companion::state;
    case Slot::weight_format:
      return Companion::format;
    case Slot::weight_scale_2:
    case Slot::weight_global_scale:
      return Companion::global_scale;
    case Slot::weight_shape:
      return Companion::shape;
    case Slot::input_scale:
    case Slot::input_global_scale:
      return Companion::activation_scale;
  }
  return std::nullopt;
}

// The tensors of one module.
struct Group {
  std::array<std::uint32_t, kSlots> tensors;
  Group() { tensors.fill(kNone); }
  std::uint32_t& at(Slot slot) { return tensors[static_cast<std::size_t>(slot)]; }
  bool has(Slot slot) const { return tensors[static_cast<std::size_t>(slot)] != kNone; }
};

// What a packing makes of a group.
struct Fitted {
  Shape shape;
  std::uint32_t bits = 0;
  Shape block;
  std::optional<DType> dtype = {};
  std::string state = {};
};

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

class Finder {
 public:
  Finder(const MetaGraph& graph, const ReadSmallTensor& read) : graph_(graph), read_(read) {}

  LogicalTensors find() {
    group_companions();
    if (groups_.empty()) return {};
    config_ = read_quantization_config(graph_);
    add_weights();
    found_.tensors.reserve(groups_.size());
    for (auto& [base, group] : groups_) fit(base, group);
    // companions mostly lie in the order of their codes
    if (!std::ranges::is_sorted(found_.tensors, {}, &LogicalTensor::codes))
      std::ranges::sort(found_.tensors, {}, &LogicalTensor::codes);
    std::ranges::sort(found_.notes, {}, [](const Note& note) { return note.tensor; });
    return std::move(found_);
  }

 private:
  using Fit = std::optional<Fitted> (Finder::*)() const;
  struct Rule {
    WeightPacking packing;
    Slot codes;
    std::array<Slot, 2> needs;  // besides the codes
    bool (Finder::*typed)() const;
    Fit fit;
  };
  static constexpr std::size_t kRules = 15;
  static const std::array<Rule, kRules> kRuleTable;

  auto base_of() const {
    return [this](std::uint32_t position) { return groups_[position].first; };
  }

  void put(std::string_view base, Slot slot, std::size_t tensor) {
    if (groups_.empty()) {  // with one companion or more, a weight is at most every second tensor
      groups_.reserve(graph_.tensors.size() / 2 + 1);
      index_ = NameIndex(graph_.tensors.size() / 2 + 1);
    }
    const auto fresh = static_cast<std::uint32_t>(groups_.size());
    const auto known = index_.add(base, name_hash(base), fresh, base_of());
    if (!known) groups_.emplace_back(base, Group());
    std::uint32_t& place = groups_[known.value_or(fresh)].second.at(slot);
    if (place == kNone) place = static_cast<std::uint32_t>(tensor);
  }

  void group_companions() {
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const std::string_view name = graph_.tensors[i].name.view();
      const std::size_t dot = name.rfind('.');
      const std::string_view last = name.substr(dot + 1);
      if (last == "weight" || last == "bias") continue;
      if (last.ends_with(kBlocks)) {
        put(name.substr(0, name.size() - kBlocks.size()), Slot::blocks, i);
        blocks_ = true;
      } else if (last.ends_with(kBlockScales)) {
        put(name.substr(0, name.size() - kBlockScales.size()), Slot::scales, i);
      } else if (dot != std::string_view::npos) {
        for (const Ending& ending : kEndings)
          if (ending.last == last && name.substr(0, dot).ends_with(ending.before))
            put(name.substr(0, dot - ending.before.size()), ending.slot, i);
      }
    }
  }

  void add_weights() {
    constexpr std::string_view kWeight = ".weight";
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const std::string_view name = graph_.tensors[i].name.view();
      const bool weight = name.ends_with(kWeight);
      if (!weight && !blocks_) continue;
      const std::string_view base = weight ? name.substr(0, name.size() - kWeight.size()) : name;
      if (const auto group = index_.find(base, name_hash(base), base_of()))
        groups_[*group].second.at(Slot::weight) = static_cast<std::uint32_t>(i);
    }
  }

  void fit(std::string_view base, Group& group) {
    group_ = &group;
    base_ = base;
    for (const Rule& rule : kRuleTable) {
      const bool whole = group.has(rule.codes) &&
                         std::ranges::all_of(rule.needs, [&](Slot slot) { return group.has(slot); });
      // a weight beside its own codes: nothing says which of them counts
      if (!whole || (rule.codes != Slot::weight && group.has(Slot::weight)) || !(this->*rule.typed)())
        continue;
      const Tensor& codes = tensor(rule.codes);
      auto fitted = (this->*rule.fit)();
      const auto count = fitted ? element_count(fitted->shape) : std::nullopt;
      if (!count || *count >> 62 != 0)
        return found_.notes.push_back(make_note(Severity::warning, codes.name.str(),
                                                "looks like {}, but its {}: shown as stored",
                                                packing_name(rule.packing), parts_text()));
      found_.tensors.push_back(make(rule, std::move(*fitted)));
      return;
    }
  }

  LogicalTensor make(const Rule& rule, Fitted fitted) const {
    LogicalTensor weight;
    const Tensor& codes = tensor(rule.codes);
    if (rule.codes == Slot::weight)
      weight.name = codes.name;
    else
      weight.name = rule.codes == Slot::blocks ? Name(base_) : Name(std::string(base_) + ".weight");
    weight.packing = rule.packing;
    if (rule.packing == WeightPacking::gptq && config_.checkpoint_format == "gptq_v2")
      weight.packing = WeightPacking::gptq_v2;
    weight.shape = std::move(fitted.shape);
    weight.bits = fitted.bits;
    weight.block = std::move(fitted.block);
    weight.codes = id(rule.codes);
    weight.state = std::move(fitted.state);
    weight.dtype = fitted.dtype ? *fitted.dtype : config_.dtype.value_or(DType::f32);
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Slot slot = static_cast<Slot>(i);
      const auto kind = companion_of(slot);
      if (kind && group_->has(slot) && !weight.companion(*kind))
        weight.companions.push_back({*kind, id(slot)});
    }
    std::ranges::sort(weight.companions, {}, &CompanionTensor::kind);
    return weight;
  }

  // "parts do not fit together: qweight I32 [4, 4], scales F16 [1, 3]"
  std::string parts_text() const {
    std::string text;
    for (std::size_t i = 0; i < kSlots; ++i)
      if (const Slot slot = static_cast<Slot>(i); group_->has(slot)) {
        const Tensor& part = tensor(slot);
        const std::string_view name = part.name.view();
        text += fmt::format("{}{} {} [{}]", text.empty() ? "parts do not fit together: " : ", ",
                            safe_display(name.substr(name.rfind('.') + 1), 40), dtype_info(part.dtype).name,
                            fmt::join(part.shape, ","));
      }
    return text;
  }

  bool has(Slot slot) const { return group_->has(slot); }
  TensorId id(Slot slot) const { return TensorId{group_->tensors[static_cast<std::size_t>(slot)]}; }
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
    const auto keep = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) { return depth <= 2; };
    const auto state = nlohmann::json::parse(*text, keep, false);
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
  const ReadSmallTensor& read_;
  QuantizationConfig config_;
  std::vector<std::pair<std::string_view, Group>> groups_;  // with the name of the module
  NameIndex index_;                                         // of the modules' names
  bool blocks_ = false;
  LogicalTensors found_;
  // the group being fitted
  std::string_view base_;
  const Group* group_ = nullptr;
};

// The first rule that applies decides. A slot that repeats the codes asks for nothing more.
const std::array<Finder::Rule, Finder::kRules> Finder::kRuleTable = {{
    {WeightPacking::awq,
     Slot::qweight,
     {Slot::qzeros, Slot::scales},
     &Finder::words_by_output,
     &Finder::fit_awq},
    {WeightPacking::gptq,
     Slot::qweight,
     {Slot::qzeros, Slot::scales},
     &Finder::words_by_input,
     &Finder::fit_gptq},
    {WeightPacking::bitsandbytes_4bit,
     Slot::weight,
     {Slot::absmax, Slot::quant_state},
     &Finder::typed_nibbles,
     &Finder::fit_bitsandbytes_4bit},
    {WeightPacking::bitsandbytes_8bit,
     Slot::weight,
     {Slot::scb, Slot::scb},
     &Finder::typed_bytes,
     &Finder::fit_bitsandbytes_8bit},
    {WeightPacking::compressed_nvfp4,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_scale},
     &Finder::typed_compressed_nvfp4,
     &Finder::fit_compressed_nvfp4},
    {WeightPacking::compressed_mxfp4,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_scale},
     &Finder::typed_compressed_mxfp4,
     &Finder::fit_compressed_mxfp4},
    {WeightPacking::compressed_integers,
     Slot::weight_packed,
     {Slot::weight_scale, Slot::weight_shape},
     &Finder::typed_words,
     &Finder::fit_compressed_integers},
    {WeightPacking::nvfp4,
     Slot::weight,
     {Slot::weight_scale, Slot::weight_scale_2},
     &Finder::typed_nvfp4,
     &Finder::fit_nvfp4},
    {WeightPacking::scaled,
     Slot::weight,
     {Slot::weight_scale_inv, Slot::weight_scale_inv},
     &Finder::typed_scaled,
     &Finder::fit_scaled_inverse},
    {WeightPacking::scaled,
     Slot::weight,
     {Slot::weight_scale, Slot::weight_scale},
     &Finder::typed_scaled,
     &Finder::fit_scaled},
    {WeightPacking::mxfp4,
     Slot::blocks,
     {Slot::scales, Slot::scales},
     &Finder::typed_mxfp4,
     &Finder::fit_mxfp4},
    {WeightPacking::mlx_affine,
     Slot::weight,
     {Slot::scales, Slot::biases},
     &Finder::typed_mlx_affine,
     &Finder::fit_mlx_affine},
    {WeightPacking::mlx_mxfp4,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Finder::typed_mlx<4, 32>,
     &Finder::fit_mlx_float<4, 32>},
    {WeightPacking::mlx_nvfp4,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Finder::typed_mlx<4, 16>,
     &Finder::fit_mlx_float<4, 16>},
    {WeightPacking::mlx_mxfp8,
     Slot::weight,
     {Slot::scales, Slot::scales},
     &Finder::typed_mlx<8, 32>,
     &Finder::fit_mlx_float<8, 32>},
}};

}  // namespace

LogicalTensors find_logical_tensors(const MetaGraph& graph, const ReadSmallTensor& read) {
  return Finder(graph, read).find();
}

std::vector<std::optional<std::uint32_t>> logical_positions(const MetaGraph& graph) {
  std::vector<std::optional<std::uint32_t>> positions(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.logical.size(); ++i) {
    positions[index(graph.logical[i].codes)] = i;
    for (const CompanionTensor& companion : graph.logical[i].companions)
      positions[index(companion.tensor)] = i;
  }
  return positions;
}

std::uint64_t elements(const LogicalTensor& weight) { return element_count(weight.shape).value_or(0); }

std::uint64_t packed_bytes(const MetaGraph& graph, const LogicalTensor& weight) {
  std::uint64_t bytes = tensor_bytes(graph, graph.tensor(weight.codes));
  for (const CompanionTensor& companion : weight.companions)
    bytes += tensor_bytes(graph, graph.tensor(companion.tensor));  // in files: their sum fits in 63 bits
  return bytes;
}

double bits_per_weight(const MetaGraph& graph, const LogicalTensor& weight) {
  const std::uint64_t count = elements(weight);
  return count == 0 ? 0 : 8 * static_cast<double>(packed_bytes(graph, weight)) / static_cast<double>(count);
}

}  // namespace loadline
