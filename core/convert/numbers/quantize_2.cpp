// Chooses the quantiser of a type.
#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize.h"

#include <cassert>

namespace loadline {
namespace {

QuantizeRun plain_quantizer(DType dtype) {
  const QuantizeRun small = plain_small_quantizer(dtype);
  return small != nullptr ? small : plain_super_quantizer(dtype);
}

// Whether quantising without importance searches for scales.
bool is_searched(DType dtype) { return plain_super_quantizer(dtype) != nullptr || dtype == DType::iq4_nl; }

BlockRun run_of(DType dtype, std::span<const float> numbers, const RowImportance& importance,
                std::span<std::byte> blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  assert(can_quantize(dtype) && numbers.size() % info.block_elements == 0);
  assert(blocks.size() / info.block_bytes == numbers.size() / info.block_elements);
  assert(importance.columns.empty() || importance.columns.size() == numbers.size());
  const bool heeded = heeds_importance(dtype) && !importance.columns.empty();
  return {numbers.data(), heeded ? importance.columns.data() : nullptr, importance.mean_square,
          blocks.size() / info.block_bytes, reinterpret_cast<std::uint8_t*>(blocks.data())};
}

}  // namespace

bool can_quantize(DType dtype) { return plain_quantizer(dtype) != nullptr; }

bool heeds_importance(DType dtype) {
  switch (dtype) {
    case DType::q8_0:
    case DType::mxfp4:
    case DType::nvfp4:
    case DType::tq2_0:
      return false;
    default:
      return can_quantize(dtype);
  }
}

bool needs_row_square(DType dtype) {
  return dtype == DType::q4_0 || dtype == DType::q4_1 || dtype == DType::q5_0 || dtype == DType::q5_1;
}

float sum_squares(std::span<const float> numbers, float sum) {
  for (const float number : numbers) sum += number * number;
  return sum;
}

void quantize_plain(DType dtype, std::span<const float> numbers, const RowImportance& importance,
                    std::span<std::byte> blocks) {
  plain_quantizer(dtype)(run_of(dtype, numbers, importance, blocks));
}

void quantize(DType dtype, std::span<const float> numbers, const RowImportance& importance,
              std::span<std::byte> blocks) {
  const BlockRun run = run_of(dtype, numbers, importance, blocks);
  const bool searched = run.importance != nullptr || is_searched(dtype);
  (searched ? quantize_searched : quantize_small)(dtype, run, plain_quantizer(dtype));
}

void quantize(DType dtype, std::span<const float> numbers, std::span<std::byte> blocks) {
  quantize(dtype, numbers, RowImportance{}, blocks);
}

void quantize_rows(DType dtype, std::span<const float> rows, std::span<const float> importance,
                   std::span<std::byte> blocks) {
  if (importance.empty() || !heeds_importance(dtype)) return quantize(dtype, rows, blocks);
  const std::size_t columns = importance.size();
  assert(rows.size() % columns == 0);
  const std::size_t count = rows.size() / columns, bytes = count == 0 ? 0 : blocks.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = rows.subspan(i * columns, columns);
    const float square = needs_row_square(dtype) ? sum_squares(row) / static_cast<float>(columns) : 0.0F;
    quantize(dtype, row, RowImportance{importance, square}, blocks.subspan(i * bytes, bytes));
  }
}

}  // namespace loadline
