// Little-endian elements are copied unchanged; big-endian numbers are byte-swapped.
#include "exporters/header_copy.h"

#include "core/io/cursor.h"
#include "exporters/common.h"

#include <algorithm>
#include <vector>

namespace loadline {
namespace {

constexpr std::uint64_t kPiece = 64 << 10;

class Copier {
 public:
  Copier(const MetaGraph& source, const MetaArray& array,
         const std::function<void(std::span<const std::byte>)>& append)
      : array_(array),
        append_(append),
        file_(SourceFile::open(source.file(array.file).path)),
        in_(file_, array.offset, array.offset + array.bytes) {
    in_.set_big_endian(true);
  }

  void copy() {
    if (!array_.big_endian) return copy_bytes(array_.bytes);
    if (array_.element == MetaType::string) return copy_strings();
    if (array_.count > 0) copy_numbers(array_.bytes / array_.count);
  }

 private:
  void copy_bytes(std::uint64_t bytes) {
    while (bytes > 0) {
      piece_.resize(static_cast<std::size_t>(std::min(bytes, kPiece)));
      in_.read_bytes(piece_, "metadata");
      append_(piece_);
      bytes -= piece_.size();
    }
  }

  void copy_strings() {
    for (std::uint64_t i = 0; i < array_.count; ++i) {
      const auto bytes = in_.read<std::uint64_t>("a string's length");
      piece_.clear();
      append_u64(piece_, bytes);
      append_(piece_);
      if (bytes > in_.remaining()) in_.skip(bytes, "a string");
      copy_bytes(bytes);
    }
    if (in_.remaining() > 0) throw in_.malformed(in_.at(), "the array has changed since the file was opened");
  }

  void copy_numbers(std::uint64_t size) {
    for (std::uint64_t left = array_.bytes; left > 0;) {
      piece_.resize(static_cast<std::size_t>(std::min(left, kPiece / size * size)));
      in_.read_bytes(piece_, "metadata");
      for (auto at = piece_.begin(); at != piece_.end(); at += static_cast<std::ptrdiff_t>(size))
        std::reverse(at, at + static_cast<std::ptrdiff_t>(size));
      append_(piece_);
      left -= piece_.size();
    }
  }

  const MetaArray& array_;
  const std::function<void(std::span<const std::byte>)>& append_;
  SourceFile file_;
  Cursor in_;
  std::vector<std::byte> piece_;
};

}  // namespace

void copy_elements(const MetaGraph& source, const MetaArray& array,
                   const std::function<void(std::span<const std::byte>)>& append) {
  Copier(source, array, append).copy();
}

}  // namespace loadline
