// XXH3 with a random seed per run.
#include "core/graph/text_hash.h"

#include <random>

#define XXH_INLINE_ALL  // texts are short: a call costs as much as the hash
#include <xxhash.h>

namespace loadline {

std::uint64_t text_hash(std::string_view text) {
  static const std::uint64_t seed = (std::uint64_t{std::random_device()()} << 32) ^ std::random_device()();
  return text.empty() ? 0 : XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace loadline
