// A thin wrapper around libxxhash.
#include "core/io/xxh3.h"

#include <new>

#include <xxhash.h>

namespace loadline {

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Xxh3::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t Xxh3::digest() const { return XXH3_64bits_digest(state_.get()); }

void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace loadline
