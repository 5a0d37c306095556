// Which sanitizer this build has: g++ and clang say so in different words.
#pragma once

#if defined(__has_feature)
#define LOADLINE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define LOADLINE_HAS_FEATURE(feature) 0
#endif

namespace loadline::testing {

#if defined(__SANITIZE_ADDRESS__) || LOADLINE_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || LOADLINE_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// Both keep memory of their own beside what a program asks for.
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace loadline::testing

#undef LOADLINE_HAS_FEATURE
