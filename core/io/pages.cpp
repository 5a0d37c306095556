#include "core/io/pages.h"

#include "core/base/error.h"

#include <cerrno>

#include <sys/mman.h>

namespace loadline {

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw system_error("", "get memory for buffers", errno);
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace loadline
