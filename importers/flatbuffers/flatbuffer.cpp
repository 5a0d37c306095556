// Flatbuffers (flatbuffers.dev, "Internals"): a table begins with the signed distance back to its vtable
// { u16 bytes of the vtable; u16 bytes of the table; u16 offset of each field, 0 if absent }; a vector is a
// u32 length and its elements; references are u32 distances forward from where they stand.
#include "importers/flatbuffers/flatbuffer.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/core.h>
#include <sys/mman.h>

namespace loadline::importers {
namespace {

constexpr std::uint64_t kMostTables = 1'000'000;
// Smaller vectors are as cheap to copy as to leave out.
constexpr std::uint64_t kLeastHole = 4096;

// Follows references with every step checked, reading a few kilobytes at a time.
class Walk {
 public:
  Walk(const io::SourceFile& file, std::uint64_t size) : file_(file), size_(size) {}

  std::uint64_t size() const { return size_; }
  std::uint64_t root() { return follow(0); }

  // The position of field `number` of the table, or nothing if it is absent.
  std::optional<std::uint64_t> field(std::uint64_t table, unsigned number) {
    const auto back = static_cast<std::int32_t>(u32(table));
    const std::int64_t vtable = static_cast<std::int64_t>(table) - back;
    if (vtable < 0) throw outside(table);
    const auto at = static_cast<std::uint64_t>(vtable);
    const std::uint64_t entry = 4 + 2 * std::uint64_t{number};
    if (entry + 2 > u16(at)) return std::nullopt;
    const std::uint16_t offset = u16(at + entry);
    return offset == 0 ? std::nullopt : std::optional(table + offset);
  }

  std::uint64_t follow(std::uint64_t at) { return at + u32(at); }

  std::uint32_t u32(std::uint64_t at) { return number<std::uint32_t>(at); }
  std::uint16_t u16(std::uint64_t at) { return number<std::uint16_t>(at); }
  std::uint64_t u64(std::uint64_t at) { return number<std::uint64_t>(at); }

  Error outside(std::uint64_t at) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = at},
                 "a flatbuffer reference leads out of its {} bytes", size_);
  }

 private:
  template <typename T>
  T number(std::uint64_t at) {
    if (!range_fits(at, sizeof(T), size_)) throw outside(at);
    if (at < held_at_ || at + sizeof(T) > held_at_ + held_) {
      held_at_ = at - at % 512;  // references often lead back a little
      held_ = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), size_ - held_at_));
      file_.read_at(held_at_, std::span(buffer_).first(held_));
    }
    T value = 0;
    std::memcpy(&value, buffer_.data() + (at - held_at_), sizeof(T));
    return value;
  }

  const io::SourceFile& file_;
  std::uint64_t size_;
  std::uint64_t held_at_ = 0;
  std::size_t held_ = 0;
  std::array<std::byte, 4096> buffer_ = {};
};

template <typename Body>
void for_each_table(Walk& walk, unsigned tables, Body body) {
  const auto list = walk.field(walk.root(), tables);
  if (!list) return;
  const std::uint64_t vector = walk.follow(*list);
  const std::uint32_t count = walk.u32(vector);
  if (count > kMostTables || !range_fits(vector + 4, std::uint64_t{4} * count, walk.size()))
    throw walk.outside(vector);
  for (std::uint32_t i = 0; i < count; ++i) body(walk.follow(vector + 4 + std::uint64_t{4} * i));
}

// Sorted, without overlap, clipped to `size`; small ones left out.
std::vector<FlatBytes> holes(std::vector<FlatBytes> weights, std::uint64_t size) {
  std::ranges::sort(weights, [](const FlatBytes& a, const FlatBytes& b) { return a.offset < b.offset; });
  std::vector<FlatBytes> result;
  std::uint64_t end = 0;
  for (FlatBytes hole : weights) {
    const std::uint64_t begin = std::max(hole.offset, end);
    const std::uint64_t stop = std::min(checked_add(hole.offset, hole.bytes).value_or(size), size);
    if (begin >= stop || stop - begin < kLeastHole) continue;
    result.push_back({begin, stop - begin});
    end = stop;
  }
  return result;
}

}  // namespace

std::vector<FlatBytes> flat_byte_vectors(const io::SourceFile& file, std::uint64_t size, unsigned tables,
                                         unsigned field) {
  Walk walk(file, size);
  std::vector<FlatBytes> found;
  for_each_table(walk, tables, [&](std::uint64_t table) {
    const auto at = walk.field(table, field);
    if (!at) return;
    const std::uint64_t bytes = walk.follow(*at);
    const std::uint32_t length = walk.u32(bytes);
    if (!range_fits(bytes + 4, length, size)) throw walk.outside(bytes);
    found.push_back({bytes + 4, length});
  });
  return found;
}

std::vector<FlatBytes> flat_far_ranges(const io::SourceFile& file, std::uint64_t size, unsigned tables,
                                       unsigned offset_field, unsigned size_field) {
  Walk walk(file, size);
  std::vector<FlatBytes> found;
  for_each_table(walk, tables, [&](std::uint64_t table) {
    const auto offset = walk.field(table, offset_field), bytes = walk.field(table, size_field);
    if (offset && bytes && walk.u64(*offset) > 1) found.push_back({walk.u64(*offset), walk.u64(*bytes)});
  });
  return found;
}

FlatImage::FlatImage(const io::SourceFile& file, std::uint64_t size, std::vector<FlatBytes> weights) {
  if (size > kMostSize || size > file.size())
    throw Error(ErrorCode::malformed, {.file = file.path()}, "a flatbuffer of {} bytes in a file of {}", size,
                file.size());
  const std::vector<FlatBytes> left_out = holes(std::move(weights), size);
  std::uint64_t held = size;
  for (const FlatBytes& hole : left_out) held -= hole.bytes;
  if (held > kMostImage)
    throw Error(ErrorCode::limit, {.file = file.path()},
                "{} bytes of structure besides the weights, the limit is {}", held, kMostImage);
  size_ = static_cast<std::size_t>(size);
  if (size_ == 0) return;
  void* const memory =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw system_error(file.path(), fmt::format("reserve {} bytes", size_), errno);
  data_ = {static_cast<std::uint8_t*>(memory), Unmap{size_}};
  std::uint64_t at = 0;
  const auto copy_to = [&](std::uint64_t end) {
    const std::span whole(data_.get(), size_);
    file.read_at(at, std::as_writable_bytes(
                         whole.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at))));
  };
  for (const FlatBytes& hole : left_out) {
    copy_to(hole.offset);
    at = hole.offset + hole.bytes;
  }
  copy_to(size);
}

void FlatImage::Unmap::operator()(std::uint8_t* data) const { ::munmap(data, bytes); }

}  // namespace loadline::importers
