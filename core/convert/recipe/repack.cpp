// Layouts: core/convert/dequantize.cpp. A scale in front of its numbers, and numbers of the first half of a
// group in the low halves of its bytes.
#include "core/convert/recipe/repack.h"

#include "core/base/error.h"

#include <cassert>
#include <utility>

namespace loadline {
namespace {

std::optional<DType> blocks_of(WeightPacking packing) {
  switch (packing) {
    case WeightPacking::mxfp4:
    case WeightPacking::compressed_mxfp4:
    case WeightPacking::mlx_mxfp4:
      return DType::mxfp4;
    case WeightPacking::nvfp4:
    case WeightPacking::compressed_nvfp4:
    case WeightPacking::mlx_nvfp4:
      return DType::nvfp4;
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

std::optional<Repacking> ggml_repacking(const MetaGraph& graph, const LogicalTensor& weight) {
  const auto dtype = blocks_of(weight.packing);
  const auto scales = weight.companion(Companion::scales);
  const auto count = element_count(weight.shape);
  if (!dtype || !scales || !count || weight.shape.empty()) return std::nullopt;
  Repacking result{*dtype, weight.shape, weight.codes, *scales, *dtype == DType::mxfp4 ? 32U : 16U};
  if (weight.packing == WeightPacking::mxfp4) {
    if (weight.shape.size() < 2) return std::nullopt;
    std::swap(result.shape[weight.shape.size() - 1], result.shape[weight.shape.size() - 2]);
    result.turned = true;
  }
  const Tensor &codes = graph.tensor(weight.codes), &factors = graph.tensor(*scales);
  const bool fits = result.shape.back() % dtype_info(*dtype).block_elements == 0 && *count > 0 &&
                    byte_size(codes.dtype, elements(codes)) == *count / 2 &&
                    byte_size(factors.dtype, elements(factors)) == *count / result.group;
  return fits ? std::optional(std::move(result)) : std::nullopt;
}

void repack(const Repacking& repacking, std::span<const std::byte> codes, std::span<const std::byte> scales,
            std::span<std::byte> blocks) {
  const DTypeInfo& type = dtype_info(repacking.dtype);
  const std::size_t count = blocks.size() / type.block_bytes, group = repacking.group,
                    groups = type.block_elements / group;
  assert(codes.size() == count * type.block_elements / 2 && scales.size() == count * groups);
  for (std::size_t i = 0; i < count; ++i) {
    const auto block = blocks.subspan(i * type.block_bytes, type.block_bytes);
    for (std::size_t g = 0; g < groups; ++g) {
      block[g] = scale_of(scales[i * groups + g], repacking.dtype == DType::mxfp4);
      const auto from = codes.subspan((i * groups + g) * group / 2, group / 2);
      const auto to = block.subspan(groups + g * group / 2, group / 2);
      const auto code = [&](std::size_t at) {
        return at % 2 == 0 ? from[at / 2] & std::byte{15} : from[at / 2] >> 4;
      };
      for (std::size_t j = 0; j < group / 2; ++j) to[j] = code(j) | code(j + group / 2) << 4;
    }
  }
}

}  // namespace loadline
