// Little-endian elements are copied unchanged; big-endian numbers are byte-swapped.
#include "exporters/writer/header_stream.h"

#include "core/io/cursor.h"
#include "exporters/common.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

namespace loadline {

class ElementStream::Impl {
 public:
  Impl(const MetaGraph& source, const MetaArray& array)
      : array_(array),
        file_(SourceFile::open(source.file(array.file).path)),
        in_(file_, array.offset, array.offset + array.bytes) {
    in_.set_big_endian(true);
    if (array_.big_endian && array_.element != MetaType::string && array_.count > 0)
      swapped_ = array_.bytes / array_.count;
    text_left_ = array_.big_endian ? 0 : array_.bytes;
  }

  std::span<const std::byte> next() {
    if (swapped_ > 0) return next_numbers();
    if (text_left_ > 0) return next_bytes();
    if (array_.big_endian && strings_ < array_.count) return next_length();
    if (in_.remaining() > 0) throw in_.malformed(in_.at(), "the array has changed since the file was opened");
    return {};
  }

 private:
  static constexpr std::uint64_t kPiece = 64 << 10;

  std::span<const std::byte> next_bytes() {
    piece_.resize(static_cast<std::size_t>(std::min(text_left_, kPiece)));
    in_.read_bytes(piece_, "metadata");
    text_left_ -= piece_.size();
    return piece_;
  }

  std::span<const std::byte> next_length() {
    text_left_ = in_.read<std::uint64_t>("a string's length");
    if (text_left_ > in_.remaining()) in_.skip(text_left_, "a string");  // an Error with both numbers
    ++strings_;
    piece_.clear();
    append_u64(piece_, text_left_);
    return piece_;
  }

  std::span<const std::byte> next_numbers() {
    piece_.resize(static_cast<std::size_t>(std::min(in_.remaining(), kPiece / swapped_ * swapped_)));
    in_.read_bytes(piece_, "metadata");
    for (auto at = piece_.begin(); at != piece_.end(); at += static_cast<std::ptrdiff_t>(swapped_))
      std::reverse(at, at + static_cast<std::ptrdiff_t>(swapped_));
    return piece_;
  }

  const MetaArray& array_;
  SourceFile file_;
  Cursor in_;
  std::vector<std::byte> piece_;
  std::uint64_t swapped_ = 0;    // bytes of a number whose bytes change places
  std::uint64_t text_left_ = 0;  // bytes that are copied before the next length
  std::uint64_t strings_ = 0;    // whose lengths have been passed
};

ElementStream::ElementStream(const MetaGraph& source, const MetaArray& array)
    : impl_(std::make_unique<Impl>(source, array)) {}
ElementStream::~ElementStream() = default;
std::span<const std::byte> ElementStream::next() { return impl_->next(); }

void HeaderStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (piece_.empty()) piece_ = next_piece();
    assert(!piece_.empty());
    const std::size_t bytes = std::min(piece_.size(), out.size());
    std::memcpy(out.data(), piece_.data(), bytes);
    piece_ = piece_.subspan(bytes);
    out = out.subspan(bytes);
    at_ += bytes;
  }
}

std::span<const std::byte> HeaderStream::next_piece() {
  if (elements_) {
    if (const auto piece = elements_->next(); !piece.empty()) return piece;
    elements_.reset();
    ++copy_;
  }
  while (copy_ < file_.copies.size() && file_.copies[copy_].at == at_) {
    elements_ = std::make_unique<ElementStream>(source_, file_.copies[copy_].array);
    if (const auto piece = elements_->next(); !piece.empty()) return piece;
    elements_.reset();
    ++copy_;
  }
  const auto rest = std::span(file_.header).subspan(header_at_);
  const auto before_copy =
      copy_ < file_.copies.size() ? static_cast<std::size_t>(file_.copies[copy_].at - at_) : rest.size();
  header_at_ += before_copy;
  return rest.first(before_copy);
}

}  // namespace loadline
