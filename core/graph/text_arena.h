// Stores many short texts in few allocations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace loadline {

// The views that keep() returns stay valid for the arena's lifetime, also after it is moved.
class TextArena {
 public:
  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > room_) {
      const std::size_t bytes = std::max(kBlock, text.size());
      blocks_.emplace_back(new char[bytes]);
      at_ = blocks_.back().get();
      room_ = bytes;
    }
    char* const to = at_;
    std::memcpy(to, text.data(), text.size());
    at_ += text.size();
    room_ -= text.size();
    return {to, text.size()};
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{64} << 10;

  std::vector<std::unique_ptr<char[]>> blocks_;  // their addresses never change
  char* at_ = nullptr;                           // free part of the last block
  std::size_t room_ = 0;
};

}  // namespace loadline
