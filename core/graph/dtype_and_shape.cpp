// The dtype table. Columns: see DTypeInfo.
#include "core/graph/dtype_and_shape.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace loadline::graph {
namespace {

using D = DType;
using K = DTypeKind;

// clang-format off
constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    //                                        block     safetensors    torch                  ggml onnx  et  tfl  pt2  npy
    {D::opaque,      "OPAQUE",      K::opaque,    0,  0, "",            "",                     -1, -1, -1, -1, -1, ""},
    {D::boolean,     "BOOL",        K::boolean,   1,  1, "BOOL",        "bool",                 -1,  9, 11,  6, 12, "|b1"},
    {D::u8,          "U8",          K::integer,   1,  1, "U8",          "uint8",                -1,  2,  0,  3,  1, "|u1"},
    {D::i8,          "I8",          K::integer,   1,  1, "I8",          "int8",                 24,  3,  1,  9,  2, "|i1"},
    {D::i16,         "I16",         K::integer,   1,  2, "I16",         "int16",                25,  5,  2,  7,  3, "<i2"},
    {D::u16,         "U16",         K::integer,   1,  2, "U16",         "uint16",               -1,  4, 27, 16, 28, "<u2"},
    {D::i32,         "I32",         K::integer,   1,  4, "I32",         "int32",                26,  6,  3,  2,  4, "<i4"},
    {D::u32,         "U32",         K::integer,   1,  4, "U32",         "uint32",               -1, 12, 28, 15, 34, "<u4"},
    {D::i64,         "I64",         K::integer,   1,  8, "I64",         "int64",                27,  7,  4,  4,  5, "<i8"},
    {D::u64,         "U64",         K::integer,   1,  8, "U64",         "uint64",               -1, 13, 29, 12, 35, "<u8"},
    {D::f16,         "F16",         K::floating,  1,  2, "F16",         "float16",               1, 10,  5,  1,  6, "<f2"},
    {D::bf16,        "BF16",        K::floating,  1,  2, "BF16",        "bfloat16",             30, 16, 15, 18, 13, ""},
    {D::f32,         "F32",         K::floating,  1,  4, "F32",         "float32",               0,  1,  6,  0,  7, "<f4"},
    {D::f64,         "F64",         K::floating,  1,  8, "F64",         "float64",              28, 11,  7, 10,  8, "<f8"},
    {D::c64,         "C64",         K::complex,   1,  8, "C64",         "complex64",            -1, 14, -1,  8, 10, "<c8"},
    {D::c128,        "C128",        K::complex,   1, 16, "",            "complex128",           -1, 15, -1, 11, 11, "<c16"},
    {D::f8_e4m3,     "F8_E4M3",     K::floating,  1,  1, "F8_E4M3",     "float8_e4m3fn",        -1, 17, 24, 21, 29, ""},
    {D::f8_e4m3fnuz, "F8_E4M3FNUZ", K::floating,  1,  1, "F8_E4M3FNUZ", "float8_e4m3fnuz",      -1, 18, 26, -1, 31, ""},
    {D::f8_e5m2,     "F8_E5M2",     K::floating,  1,  1, "F8_E5M2",     "float8_e5m2",          -1, 19, 23, 22, 30, ""},
    {D::f8_e5m2fnuz, "F8_E5M2FNUZ", K::floating,  1,  1, "F8_E5M2FNUZ", "float8_e5m2fnuz",      -1, 20, 25, -1, 32, ""},
    {D::f8_e8m0,     "F8_E8M0",     K::floating,  1,  1, "F8_E8M0",     "float8_e8m0fnu",       -1, 24, -1, -1, 33, ""},
    {D::u4,          "U4",          K::integer,   2,  1, "",            "",                     -1, 21, -1, 20, -1, ""},
    {D::i4,          "I4",          K::integer,   2,  1, "",            "",                     -1, 22, -1, 17, -1, ""},
    {D::f4_e2m1,     "F4",          K::floating,  2,  1, "F4",          "float4_e2m1fn_x2",     -1, 23, -1, -1, -1, ""},
    {D::f6_e2m3,     "F6_E2M3",     K::floating,  4,  3, "F6_E2M3",     "",                     -1, 27, -1, -1, -1, ""},
    {D::f6_e3m2,     "F6_E3M2",     K::floating,  4,  3, "F6_E3M2",     "",                     -1, 28, -1, -1, -1, ""},
    {D::u2,          "U2",          K::integer,   4,  1, "",            "",                     -1, 25, -1, -1, -1, ""},
    {D::i2,          "I2",          K::integer,   4,  1, "",            "",                     -1, 26, -1, 19, -1, ""},
    {D::string,      "STRING",      K::text,      0,  0, "",            "",                     -1,  8, -1,  5, -1, ""},

    {D::q4_0,    "Q4_0",    K::block,  32,  18, "", "",  2, -1, -1, -1, -1, ""},
    {D::q4_1,    "Q4_1",    K::block,  32,  20, "", "",  3, -1, -1, -1, -1, ""},
    {D::q5_0,    "Q5_0",    K::block,  32,  22, "", "",  6, -1, -1, -1, -1, ""},
    {D::q5_1,    "Q5_1",    K::block,  32,  24, "", "",  7, -1, -1, -1, -1, ""},
    {D::q8_0,    "Q8_0",    K::block,  32,  34, "", "",  8, -1, -1, -1, -1, ""},
    {D::q8_1,    "Q8_1",    K::block,  32,  36, "", "",  9, -1, -1, -1, -1, ""},
    {D::q2_k,    "Q2_K",    K::block, 256,  84, "", "", 10, -1, -1, -1, -1, ""},
    {D::q3_k,    "Q3_K",    K::block, 256, 110, "", "", 11, -1, -1, -1, -1, ""},
    {D::q4_k,    "Q4_K",    K::block, 256, 144, "", "", 12, -1, -1, -1, -1, ""},
    {D::q5_k,    "Q5_K",    K::block, 256, 176, "", "", 13, -1, -1, -1, -1, ""},
    {D::q6_k,    "Q6_K",    K::block, 256, 210, "", "", 14, -1, -1, -1, -1, ""},
    {D::q8_k,    "Q8_K",    K::block, 256, 292, "", "", 15, -1, -1, -1, -1, ""},
    {D::iq2_xxs, "IQ2_XXS", K::block, 256,  66, "", "", 16, -1, -1, -1, -1, ""},
    {D::iq2_xs,  "IQ2_XS",  K::block, 256,  74, "", "", 17, -1, -1, -1, -1, ""},
    {D::iq3_xxs, "IQ3_XXS", K::block, 256,  98, "", "", 18, -1, -1, -1, -1, ""},
    {D::iq1_s,   "IQ1_S",   K::block, 256,  50, "", "", 19, -1, -1, -1, -1, ""},
    {D::iq4_nl,  "IQ4_NL",  K::block,  32,  18, "", "", 20, -1, -1, -1, -1, ""},
    {D::iq3_s,   "IQ3_S",   K::block, 256, 110, "", "", 21, -1, -1, -1, -1, ""},
    {D::iq2_s,   "IQ2_S",   K::block, 256,  82, "", "", 22, -1, -1, -1, -1, ""},
    {D::iq4_xs,  "IQ4_XS",  K::block, 256, 136, "", "", 23, -1, -1, -1, -1, ""},
    {D::iq1_m,   "IQ1_M",   K::block, 256,  56, "", "", 29, -1, -1, -1, -1, ""},
    {D::tq1_0,   "TQ1_0",   K::block, 256,  54, "", "", 34, -1, -1, -1, -1, ""},
    {D::tq2_0,   "TQ2_0",   K::block, 256,  66, "", "", 35, -1, -1, -1, -1, ""},
    {D::mxfp4,   "MXFP4",   K::block,  32,  17, "", "", 39, -1, -1, -1, -1, ""},
    {D::nvfp4,   "NVFP4",   K::block,  64,  36, "", "", 40, -1, -1, -1, -1, ""},
    {D::q1_0,    "Q1_0",    K::block, 128,  18, "", "", 41, -1, -1, -1, -1, ""},
    {D::q2_0,    "Q2_0",    K::block,  64,  18, "", "", 42, -1, -1, -1, -1, ""},
    {D::pq2_0,   "PQ2_0",   K::block, 128,  34, "", "", 142, -1, -1, -1, -1, ""},
}};
// clang-format on

static_assert(
    [] {
      for (int i = 0; i < kDTypeCount; ++i)
        if (static_cast<int>(kTable[static_cast<std::size_t>(i)].id) != i) return false;
      return true;
    }(),
    "rows stand in the order of the enum");

template <typename Code>
std::optional<DType> find_code(Code DTypeInfo::*column, Code code) {
  const auto row = std::ranges::find_if(kTable, [&](const DTypeInfo& info) { return info.*column == code; });
  return row == kTable.end() ? std::nullopt : std::optional(row->id);
}

}  // namespace

std::span<const DTypeInfo> dtype_table() { return kTable; }

const DTypeInfo& dtype_info(DType id) { return kTable[static_cast<std::size_t>(id)]; }

std::string dtype_word(DType id) { return lower_case(dtype_info(id).name); }

std::optional<DType> dtype_named(std::string_view name) {
  const std::string wanted = lower_case(name);
  for (const DTypeInfo& row : kTable)
    if (dtype_word(row.id) == wanted) return row.id;
  std::string_view torch = wanted;
  if (torch.starts_with("torch.")) torch.remove_prefix(6);
  return dtype_from(&DTypeInfo::torch, torch);
}

std::string spelled_dtype(std::string_view word) {
  const auto type = dtype_named(word);
  return type && lower_case(word) != dtype_word(*type) ? dtype_word(*type) : std::string(word);
}

std::optional<DType> dtype_from(std::string_view DTypeInfo::*column, std::string_view code) {
  return code.empty() ? std::nullopt : find_code(column, code);
}

std::optional<DType> dtype_from(std::int16_t DTypeInfo::*column, std::int64_t code) {
  if (code < 0 || code > INT16_MAX) return std::nullopt;
  return find_code(column, static_cast<std::int16_t>(code));
}

std::optional<std::uint64_t> byte_size(DType id, std::uint64_t elements) {
  const DTypeInfo& info = dtype_info(id);
  if (info.block_elements == 1) return checked_mul(elements, info.block_bytes);
  if (info.block_elements == 0 || elements % info.block_elements != 0) return std::nullopt;
  return checked_mul(elements / info.block_elements, info.block_bytes);
}

std::optional<std::uint64_t> packed_byte_size(DType id, std::uint64_t elements) {
  const DTypeInfo& info = dtype_info(id);
  if (info.kind == DTypeKind::block || info.block_elements <= 1) return byte_size(id, elements);
  const auto whole = checked_align_up(elements, info.block_elements);
  return whole ? byte_size(id, *whole) : std::nullopt;
}

std::string shape_words(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace loadline::graph
