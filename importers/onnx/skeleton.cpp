// Writes protobuf wire data with lengths of a fixed width.
#include "importers/onnx/skeleton.h"

#include "core/io/protobuf_wire.h"

#include <algorithm>
#include <map>

namespace loadline {
namespace {

// A length as a varint of five bytes, the longest that protobuf's readers accept for a length.
constexpr std::size_t kLengthBytes = 5;

// Candidates for stand-ins, the least used types first.
constexpr std::array<std::int64_t, 9> kStandIns = {4, 12, 13, 5, 15, 14, 11, 2, 3};

}  // namespace

std::int64_t OnnxStandIns::original(std::int64_t code) const {
  if (code < 0 || code > kMostKnown) return 0;
  const std::int64_t held = original_of[static_cast<std::size_t>(code)];
  return held == 0 ? code : std::max<std::int64_t>(held, 0);
}

void OnnxSkeleton::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

std::size_t OnnxSkeleton::open(std::uint32_t tag) {
  varint(tag);
  bytes_.append(kLengthBytes, '\0');
  return bytes_.size();
}

void OnnxSkeleton::close(std::size_t content) {
  std::size_t length = bytes_.size() - content;
  for (std::size_t i = 0; i < kLengthBytes; ++i, length >>= 7)
    bytes_[content - kLengthBytes + i] =
        static_cast<char>((length & 0x7F) | (i + 1 < kLengthBytes ? 0x80 : 0));
}

void OnnxSkeleton::number(std::uint32_t tag, std::uint64_t value) {
  varint(tag);
  varint(value);
}

void OnnxSkeleton::fixed32(std::uint32_t tag, std::uint32_t value) {
  varint(tag);
  for (int i = 0; i < 4; ++i, value >>= 8) bytes_ += static_cast<char>(value & 0xFF);
}

void OnnxSkeleton::text(std::uint32_t tag, std::string_view text) {
  varint(tag);
  varint(text.size());
  bytes_ += text;
}

void OnnxSkeleton::element_type(std::uint32_t tag, std::int64_t code) {
  varint(tag);
  const bool known = code >= 0 && code <= OnnxStandIns::kMostKnown;
  if (known)
    used_[static_cast<std::size_t>(code)] = true;
  else
    patches_.push_back({bytes_.size(), code});
  bytes_ += static_cast<char>(known ? code : 0);
}

void OnnxSkeleton::cut(std::size_t size) {
  bytes_.resize(size);
  while (!patches_.empty() && patches_.back().position >= size) patches_.pop_back();
}

OnnxSkeleton::Result OnnxSkeleton::finish() && {
  Result result;
  std::map<std::int64_t, std::int64_t> chosen;
  auto next = kStandIns.begin();
  for (const Patch& patch : patches_) {
    const auto [found, fresh] = chosen.try_emplace(patch.code, kStandIns.back());
    if (fresh) {
      next = std::find_if(next, kStandIns.end(),
                          [&](std::int64_t code) { return !used_[static_cast<std::size_t>(code)]; });
      const bool alone = next != kStandIns.end();
      if (alone) found->second = *next++;
      result.stand_ins.original_of[static_cast<std::size_t>(found->second)] = alone ? patch.code : -1;
    }
    bytes_[patch.position] = static_cast<char>(found->second);
  }
  result.bytes = std::move(bytes_);
  return result;
}

}  // namespace loadline
