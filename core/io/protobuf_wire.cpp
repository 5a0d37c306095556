// Protocol Buffers encoding (protobuf.dev, "Encoding"), on protobuf's own CodedInputStream:
//
//   field    varint key = number << 3 | type, then by type
//   0        a varint: 7 bits per byte, lowest first, at most 10 bytes
//   1, 5     8 or 4 bytes, little-endian
//   2        varint length, then so many bytes: text, a message or a packed run of numbers
//   3, 4     a group (obsolete; refused)
#include "core/io/protobuf_wire.h"

#include <algorithm>
#include <array>
#include <climits>
#include <exception>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

namespace loadline::io {
namespace {

using google::protobuf::io::CodedInputStream;

// Hands out a range of a file; skipped bytes are never read. Reads ahead little after a skip and more while
// reading goes on: between two weights lie a hundred bytes, between two operators none.
class FileStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  FileStream(const SourceFile& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), begin_(begin), end_(end), at_(begin) {}

  // Exceptions must not pass through protobuf's frames: they are kept, and rethrow() throws them.
  bool Next(const void** data, int* size) override {
    if (at_ == end_ || failure_) return false;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(ahead_, end_ - at_));
    try {
      file_.read_at(at_, std::span(buffer_).first(wanted));
    } catch (const Error&) {
      failure_ = std::current_exception();
      return false;
    }
    *data = buffer_.data();
    *size = static_cast<int>(wanted);
    at_ += wanted;
    ahead_ = std::min(ahead_ * 4, buffer_.size());
    return true;
  }
  void BackUp(int count) override { at_ -= static_cast<std::uint64_t>(count); }
  bool Skip(int count) override {
    const bool inside = static_cast<std::uint64_t>(count) <= end_ - at_;
    at_ = inside ? at_ + static_cast<std::uint64_t>(count) : end_;
    ahead_ = kLeastAhead;
    return inside;
  }
  std::int64_t ByteCount() const override { return static_cast<std::int64_t>(at_ - begin_); }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr std::size_t kLeastAhead = 256;

  const SourceFile& file_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t at_;
  std::size_t ahead_ = kLeastAhead;
  std::array<std::byte, 64 << 10> buffer_;
  std::exception_ptr failure_;
};

}  // namespace

struct WireReader::State {
  State(const SourceFile& source, std::uint64_t first, std::uint64_t end)
      : begin(first), stream(source, first, end), coded(&stream) {
    coded.SetTotalBytesLimit(INT_MAX);
    coded.PushLimit(static_cast<int>(end - first));
  }

  std::uint64_t at() const { return begin + static_cast<std::uint64_t>(coded.CurrentPosition()); }
  std::uint64_t remaining() { return static_cast<std::uint64_t>(coded.BytesUntilLimit()); }

  std::uint64_t begin;
  FileStream stream;
  CodedInputStream coded;
  std::vector<CodedInputStream::Limit> limits;  // of the enclosing messages
  std::uint64_t pending = 0;                    // bytes of the last field not taken yet
};

WireReader::WireReader(const SourceFile& file, std::uint64_t begin, std::uint64_t end) : file_(file) {
  end = std::min(end, file.size());
  begin = std::min(begin, end);
  if (end - begin >= INT_MAX)  // which CodedInputStream takes for no limit
    throw Error(ErrorCode::limit, {.file = file.path(), .byte = begin},
                "has {} bytes, protobuf's limit is {}", end - begin, INT_MAX);
  state_ = std::make_unique<State>(file, begin, end);
}

WireReader::~WireReader() = default;

bool WireReader::at_end() const { return state_->remaining() == 0; }

std::uint64_t WireReader::varint() {
  constexpr std::uint64_t kLongest = 10;
  const std::uint64_t at = state_->at();
  const std::uint64_t remaining = state_->remaining();
  if (std::uint64_t value = 0; state_->coded.ReadVarint64(&value)) return value;
  state_->stream.rethrow();
  if (remaining >= kLongest) throw malformed(at, "a varint of more than 10 bytes");
  throw malformed(at, "a varint does not end in the {} bytes left to its message", remaining);
}

std::optional<WireField> WireReader::next() {
  State& state = *state_;
  if (state.pending > 0) {
    state.coded.Skip(static_cast<int>(state.pending));
    state.stream.rethrow();
    state.pending = 0;
  }
  if (at_end()) return std::nullopt;
  WireField field;
  field.at = state.at();
  const std::uint64_t tag = varint();
  if (tag > UINT32_MAX || tag >> 3 == 0) throw malformed(field.at, "field number {}", tag >> 3);
  field.tag = static_cast<std::uint32_t>(tag);
  const auto cut_off = [&](std::uint64_t bytes) {
    return malformed(field.at, "field {} takes {} bytes, its message has {} left", field.number(), bytes,
                     state.remaining());
  };
  switch (field.type()) {
    case WireType::varint:
      field.value = varint();
      return field;
    case WireType::fixed64:
      if (state.remaining() < 8) throw cut_off(8);
      state.coded.ReadLittleEndian64(&field.value);
      break;
    case WireType::fixed32: {
      if (state.remaining() < 4) throw cut_off(4);
      std::uint32_t value = 0;
      state.coded.ReadLittleEndian32(&value);
      field.value = value;
      break;
    }
    case WireType::length:
      field.bytes = varint();
      if (field.bytes > state.remaining()) throw cut_off(field.bytes);
      field.offset = state.at();
      state.pending = field.bytes;
      break;
    default:
      throw malformed(field.at, "field {} has wire type {}, which is not in use", field.number(), tag & 7);
  }
  state.stream.rethrow();
  return field;
}

void WireReader::enter(const WireField& field) {
  if (state_->limits.size() >= kMostDepth)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field.at},
                "messages nested more than {} deep, protobuf's limit", kMostDepth);
  state_->limits.push_back(state_->coded.PushLimit(static_cast<int>(field.bytes)));
  state_->pending = 0;
}

void WireReader::leave() {
  state_->pending = 0;
  if (const std::uint64_t rest = state_->remaining(); rest > 0) state_->coded.Skip(static_cast<int>(rest));
  state_->stream.rethrow();
  state_->coded.PopLimit(state_->limits.back());
  state_->limits.pop_back();
}

std::string WireReader::text(const WireField& field, std::uint64_t most, std::string_view what) {
  if (field.bytes > most)
    throw Error(ErrorCode::limit, {.file = file_.path(), .byte = field.at},
                "{} has {} bytes, the limit is {}", what, field.bytes, most);
  std::string text(static_cast<std::size_t>(field.bytes), '\0');
  state_->coded.ReadRaw(text.data(), static_cast<int>(field.bytes));
  state_->stream.rethrow();
  state_->pending = 0;
  return text;
}

}  // namespace loadline::io
