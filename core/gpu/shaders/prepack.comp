// Converts stored weights and puts each number in its place: core/convert/prepack.h, bit for bit.
// One invocation per element. Numbers are converted as integers wherever the precision of a device's own
// conversions is its own choice.
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 128) in;

// the order of core/gpu/prepack_shader.cpp
const uint kF32 = 0, kF16 = 1, kBF16 = 2, kQ8_0 = 3, kQ4_0 = 4, kQ4_K = 5;
const uint kRows = 0, kTransposed = 1, kFourRows = 2;
layout(constant_id = 0) const uint kFrom = 0;
layout(constant_id = 1) const uint kTo = 1;
layout(constant_id = 2) const uint kLayout = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Source { uint words[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Halves { uint16_t at[]; };

layout(push_constant) uniform Push {
  Source source;  // begins with element `first`
  uvec2 target;   // the whole packed weight
  uint first;
  uint count;
  uint rows;
  uint columns;
};

uint byte_at(uint at) { return (source.words[at >> 2] >> ((at & 3) << 3)) & 0xFF; }
uint half_at(uint at) { return (source.words[at >> 2] >> ((at & 2) << 3)) & 0xFFFF; }  // `at` is even

uint f32_of_f16(uint bits) {
  const uint sign = (bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude >= 0x7C00) return sign | 0x7F800000 | (magnitude << 13);
  if (magnitude >= 0x400) return sign | ((magnitude << 13) + (112u << 23));
  if (magnitude == 0) return sign;
  const uint highest = findMSB(magnitude);
  return sign | ((highest + 103) << 23) | ((magnitude << (23 - highest)) & 0x7FFFFF);
}

uint f16_of_f32(uint bits) {
  const uint sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;
  if (magnitude >= 0x477FF000) return sign | 0x7C00;
  if (magnitude >= 0x38800000)
    return sign | ((magnitude - (112u << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13);
  const uint exponent = magnitude >> 23;
  if (exponent < 102) return sign;  // under half of the smallest number
  const uint digits = (magnitude & 0x7FFFFF) | 0x800000, shift = 126 - exponent;
  const uint result = digits >> shift, rest = digits & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return sign | (result + uint(rest > tie || (rest == tie && (result & 1) == 1)));
}

uint bf16_of_f32(uint bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (bits >> 16) | 0x40;
  return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
}

// d times a small integer, exact. The sign is set apart, so that a zero has it too.
uint scaled(uint d, int q) {
  precise float product = uintBitsToFloat(f32_of_f16(d) & 0x7FFFFFFF) * float(abs(q));
  return floatBitsToUint(product) | ((d & 0x8000) << 16) ^ (q < 0 ? 0x80000000 : 0);
}

uint of_q8_0(uint element) {
  const uint block = element / 32 * 34;
  return scaled(half_at(block), bitfieldExtract(int(byte_at(block + 2 + element % 32)), 0, 8));
}

uint of_q4_0(uint element) {
  const uint block = element / 32 * 18, in_block = element % 32;
  const uint pair = byte_at(block + 2 + in_block % 16);
  return scaled(half_at(block), int((pair >> (in_block / 16 * 4)) & 15) - 8);
}

uint of_q4_k(uint element) {
  const uint block = element / 256 * 144, in_block = element % 256, part = in_block / 32;
  const uint packed = block + 4;
  uint scale, least;
  if (part < 4) {
    scale = byte_at(packed + part) & 63;
    least = byte_at(packed + part + 4) & 63;
  } else {
    const uint low = byte_at(packed + part + 4);
    scale = (low & 15) | (byte_at(packed + part - 4) >> 6) << 4;
    least = (low >> 4) | (byte_at(packed + part) >> 6) << 4;
  }
  const uint pair = byte_at(block + 16 + part / 2 * 32 + in_block % 32);
  const uint q = (pair >> (part % 2 * 4)) & 15;
  precise float factor = uintBitsToFloat(f32_of_f16(half_at(block))) * float(scale);
  precise float offset = uintBitsToFloat(f32_of_f16(half_at(block + 2))) * float(least);
  precise float product = factor * float(q);
  precise float value = product - offset;
  return floatBitsToUint(value);
}

// The bits of the number in the target type.
uint number(uint element) {
  if (kFrom == kTo) return kFrom == kF32 ? source.words[element] : half_at(2 * element);
  uint wide;
  switch (kFrom) {
    case kF32: wide = source.words[element]; break;
    case kF16: wide = f32_of_f16(half_at(2 * element)); break;
    case kBF16: wide = half_at(2 * element) << 16; break;
    case kQ8_0: wide = of_q8_0(element); break;
    case kQ4_0: wide = of_q4_0(element); break;
    default: wide = of_q4_k(element);
  }
  if (kFrom >= kQ8_0 && (wide & 0x7FFFFFFF) > 0x7F800000) return 0x7E00;
  return kTo == kF32 ? wide : kTo == kF16 ? f16_of_f32(wide) : bf16_of_f32(wide);
}

void put(uint place, uint bits) {
  if (kTo == kF32)
    Words(target).at[place] = bits;
  else
    Halves(target).at[place] = uint16_t(bits);
}

void main() {
  const uint element = gl_GlobalInvocationID.x;
  if (element >= count) return;
  const uint bits = number(element);
  if (kLayout == kRows) {
    put(first + element, bits);
    return;
  }
  const uint row = (first + element) / columns, column = (first + element) % columns;
  if (kLayout == kTransposed) {
    put(column * rows + row, bits);
    return;
  }
  const uint place = (row / 4 * columns + column) * 4 + row % 4;
  put(place, bits);
  if (row + 1 == rows)
    for (uint lane = row % 4 + 1; lane < 4; ++lane) put(place - row % 4 + lane, 0);
}
