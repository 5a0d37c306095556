// Writes a model without its weights as protobuf bytes, for the onnx library's shape inference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The library of Debian 12 (onnx 1.12) knows the element types 1 to 16 and refuses a whole model that uses
// another. Each unknown type is written as a stand-in: a known type that the model does not use.
struct OnnxStandIns {
  static constexpr std::int64_t kMostKnown = 16;
  // The model's element type for `code` in the library's answer; 0 if it is ambiguous.
  std::int64_t original(std::int64_t code) const;

  std::array<std::int64_t, kMostKnown + 1> original_of = {};  // 0: stands for itself; -1: for several types
};

// Writes messages in one pass and patches in their lengths when they close.
class OnnxSkeleton {
 public:
  std::size_t size() const { return bytes_.size() + patches_.size() * sizeof(patches_[0]); }

  // Begins a message. Returns the argument for close().
  std::size_t open(std::uint32_t tag);
  void close(std::size_t content);
  void number(std::uint32_t tag, std::uint64_t value);
  void fixed32(std::uint32_t tag, std::uint32_t value);
  void text(std::uint32_t tag, std::string_view text);
  void element_type(std::uint32_t tag, std::int64_t code);
  // Appends bytes that are complete encoded fields.
  void fields(std::string_view bytes) { bytes_ += bytes; }
  // Forgets everything from position `size` on.
  void cut(std::size_t size);

  struct Result {
    std::string bytes;
    OnnxStandIns stand_ins;
  };
  Result finish() &&;

 private:
  struct Patch {
    std::size_t position;
    std::int64_t code;
  };
  void varint(std::uint64_t value);

  std::string bytes_;
  std::vector<Patch> patches_;  // bytes that hold a type above kMostKnown
  std::array<bool, OnnxStandIns::kMostKnown + 1> used_ = {};
};

}  // namespace loadline
