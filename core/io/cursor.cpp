// Reads ahead a little at first, then more: a header of a kilobyte costs one small read, a vocabulary
// of megabytes few large ones.
#include "core/io/cursor.h"

#include <algorithm>

namespace loadline {

Cursor::Cursor(const SourceFile& file, std::uint64_t begin, std::uint64_t end)
    : file_(file), at_(std::min(begin, file.size())), end_(std::max(at_, std::min(end, file.size()))) {}

void Cursor::fail_past_end(std::uint64_t bytes, std::string_view what) const {
  throw malformed(at_, "{} takes {} bytes, {} follow", what, bytes, remaining());
}

void Cursor::fetch(std::size_t bytes, std::string_view what) {
  if (bytes > remaining()) fail_past_end(bytes, what);
  if (in_buffer(bytes)) return;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, ahead_), remaining()));
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  file_.read_at(at_, std::span(buffer_).first(wanted));
  buffer_at_ = at_;
  buffered_ = wanted;
  ahead_ = std::min(ahead_ * 4, kBufferBytes);
}

std::string Cursor::read_text(std::uint64_t bytes, std::uint64_t most, std::string_view what) {
  if (bytes > remaining()) fail_past_end(bytes, what);
  if (bytes > most)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = at_}, "{} has {} bytes, the limit is {}",
                what, bytes, most);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_bytes(std::as_writable_bytes(std::span(text)), what);
  return text;
}

void Cursor::read_bytes(std::span<std::byte> out, std::string_view what) {
  if (out.size() > remaining()) fail_past_end(out.size(), what);
  if (out.size() > kBufferBytes) {
    file_.read_at(at_, out);
  } else if (!out.empty()) {
    fetch(out.size(), what);
    std::memcpy(out.data(), buffer_.data() + (at_ - buffer_at_), out.size());
  }
  at_ += out.size();
}

}  // namespace loadline
