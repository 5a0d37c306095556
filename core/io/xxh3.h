// The 64-bit XXH3 checksum of bytes that arrive in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace loadline {

class Xxh3 {
 public:
  Xxh3();
  void update(std::span<const std::byte> bytes);
  std::uint64_t digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace loadline
