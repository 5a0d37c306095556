// Private memory that begins at a page and is returned to the system at once.
#pragma once

#include <cstddef>
#include <span>

namespace loadline {

// O_DIRECT wants offsets, sizes and addresses that are multiples of this.
inline constexpr std::size_t kDirectUnit = 4096;

class Pages {
 public:
  // Throws Error{io} if the system gives none. No bytes: no memory.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace loadline
