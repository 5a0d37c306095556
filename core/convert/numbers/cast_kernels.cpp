// Vector loops with Google Highway, compiled for every instruction set it knows and chosen at run time.
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/kernels.h"

#include <cassert>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/numbers/cast_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Whether the machine narrows f32 to f16 itself; its NaNs keep a part of their payload, which ours do not.
#undef LOADLINE_NARROWS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define LOADLINE_NARROWS 1
#else
#define LOADLINE_NARROWS 0
#endif

#if HWY_TARGET != HWY_SCALAR
using Words = hn::ScalableTag<std::uint32_t>;
using Word = hn::Vec<Words>;
using Halves = hn::Rebind<std::uint16_t, Words>;
using Floats = hn::Rebind<float, Words>;

// The bits of some values as floats, from the bits of their type; and back. The scalar functions of the
// types define both.
HWY_INLINE Word widened(F32, Word bits) { return bits; }
HWY_INLINE Word widened(BF16, Word bits) { return hn::ShiftLeft<16>(bits); }
// Highway's own widening makes infinities finite where the machine has no instruction for it (version 1.0.3).
HWY_INLINE Word widened(F16, Word bits) {
  const Words du;
  const Floats df;
  const hn::RebindToSigned<Words> di;
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::AndNot(hn::Set(du, 0x7FFF), bits));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto small = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::Set(df, 0x1p-24f));
  const auto normal = hn::Add(shifted, hn::Set(du, 112u << 23));
  const auto special = hn::Or(shifted, hn::Set(du, 0x7F800000u));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x400)), hn::BitCast(du, small), normal);
  return hn::Or(sign, hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x7C00)), finite, special));
}

HWY_INLINE Word narrowed(F32, Word bits) { return bits; }
HWY_INLINE Word narrowed(BF16, Word bits) {
  const Words du;
  const auto nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7FFFFFFFu)), hn::Set(du, 0x7F800000u));
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
  return hn::IfThenElse(nan, hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40)), rounded);
}
HWY_INLINE Word narrowed(F16, Word bits) {
  const Words du;
  const Floats df;
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
#if LOADLINE_NARROWS
  const auto nan = hn::Gt(magnitude, hn::Set(du, 0x7F800000u));
  const auto quiet = hn::IfThenElse(nan, hn::Set(du, 0x7FC00000u), magnitude);
  const auto halves =
      hn::DemoteTo(hn::Rebind<hwy::float16_t, Words>(),
                   hn::BitCast(df, hn::Or(quiet, hn::AndNot(hn::Set(du, 0x7FFFFFFFu), bits))));
  return hn::PromoteTo(du, hn::BitCast(Halves(), halves));
#else
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0xFFFu - (112u << 23))), odd));
  const auto half = hn::Set(df, 0.5f);
  const auto small =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(du, half));
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000u)), small, normal);
  result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x477FF000u)), result, hn::Set(du, 0x7C00u));
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000u)), hn::Set(du, 0x7E00u), result);
  return hn::Or(sign, result);
#endif
}

template <typename Type>
HWY_INLINE Word load(Type, const std::byte* from) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
  const Words du;
  if constexpr (sizeof(typename Type::Bits) == 4) {
    return hn::BitCast(du, hn::LoadU(hn::Repartition<std::uint8_t, Words>(), bytes));
  } else {
    const Halves dh;
    return hn::PromoteTo(du, hn::BitCast(dh, hn::LoadU(hn::Repartition<std::uint8_t, Halves>(), bytes)));
  }
}

template <typename Type>
HWY_INLINE void store(Type, Word bits, std::byte* to) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(to);
  if constexpr (sizeof(typename Type::Bits) == 4) {
    const hn::Repartition<std::uint8_t, Words> d8;
    hn::StoreU(hn::BitCast(d8, bits), d8, bytes);
  } else {
    const hn::Repartition<std::uint8_t, Halves> d8;
    hn::StoreU(hn::BitCast(d8, hn::TruncateTo(Halves(), bits)), d8, bytes);
  }
}
#endif

// Whether any result is infinite or NaN.
template <typename From, typename To>
HWY_INLINE bool convert(const std::byte* source, std::size_t count, std::byte* out) {
  using In = typename From::Bits;
  using Out = typename To::Bits;
  constexpr Out kMagnitude = static_cast<Out>(static_cast<Out>(-1) / 2);
  std::size_t i = 0;
  bool special = false;
#if HWY_TARGET != HWY_SCALAR
  const Words du;
  const std::size_t lanes = hn::Lanes(du);
  auto most = hn::Zero(du);
  for (; i + lanes <= count; i += lanes) {
    const Word bits = narrowed(To(), widened(From(), load(From(), source + i * sizeof(In))));
    most = hn::Max(most, hn::And(bits, hn::Set(du, kMagnitude)));
    store(To(), bits, out + i * sizeof(Out));
  }
  special = !hn::AllFalse(du, hn::Gt(most, hn::Set(du, To::kInfinity - 1u)));
#endif
  for (; i < count; ++i) {
    In given;
    std::memcpy(&given, source + i * sizeof(In), sizeof given);
    const Out bits = To::narrow(From::widen(given));
    std::memcpy(out + i * sizeof(Out), &bits, sizeof bits);
    special |= (bits & kMagnitude) >= To::kInfinity;
  }
  return special;
}

}  // namespace

bool convert_all(graph::DType from, const std::byte* source, std::size_t count, graph::DType to,
                 std::byte* out) {
  if (from == graph::DType::f32)
    return to == graph::DType::f16 ? convert<F32, F16>(source, count, out)
                                   : convert<F32, BF16>(source, count, out);
  if (from == graph::DType::f16)
    return to == graph::DType::f32 ? convert<F16, F32>(source, count, out)
                                   : convert<F16, BF16>(source, count, out);
  return to == graph::DType::f32 ? convert<BF16, F32>(source, count, out)
                                 : convert<BF16, F16>(source, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::convert {

HWY_EXPORT(convert_all);

bool cast_floats(graph::DType from, std::span<const std::byte> source, graph::DType to,
                 std::span<std::byte> out) {
  const std::size_t size = from == graph::DType::f32 ? sizeof(F32::Bits) : sizeof(F16::Bits);
  assert(from != to && out.size() * size == source.size() * (to == graph::DType::f32 ? 4 : 2));
  return HWY_DYNAMIC_DISPATCH(convert_all)(from, source.data(), source.size() / size, to, out.data());
}

}  // namespace loadline::convert
#endif  // HWY_ONCE
