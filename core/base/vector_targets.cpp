// What Highway's headers ask its library for: which vector instructions this processor has, and the end of
// the program where a check of debug builds fails. The library itself is not linked: before main() it
// measures the resolution of the clock, a quarter of a start of the program.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

#if HWY_ARCH_X86

// The instructions that __builtin_cpu_supports() of some compilers cannot name.
bool has_lzcnt_and_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return f16c && __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}

// As hwy/targets.cc of Highway 1.0.3 has it: what each target is compiled with.
std::int64_t found_targets() {
  std::int64_t targets = HWY_STATIC_TARGET;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("ssse3")) return targets;
  targets |= HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul"))
    return targets;
  targets |= HWY_SSE4;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !has_lzcnt_and_f16c())
    return targets;
  targets |= HWY_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    targets |= HWY_AVX3;
  return targets;
}

#else

// What the compiler may use everywhere.
std::int64_t found_targets() { return HWY_STATIC_TARGET; }

#endif

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t targets = found_targets();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
