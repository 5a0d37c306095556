// The structure of a flatbuffer file in memory without its weights.
#pragma once

#include "core/base/error.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace loadline::importers {

// --- Holds the structure of a flatbuffer file in memory, without the weights inside it.

// A range of the file that holds weights.
struct FlatBytes {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// The byte vectors `tables[i].field`, where `tables` is the number of the root table's field that holds a
// vector of tables. Fields are counted from 0. Reads only the references on the way. Absent vectors are left
// out. `size` is the end of the flatbuffer. Throws Error{malformed} for offsets that lead out of it.
std::vector<FlatBytes> flat_byte_vectors(const io::SourceFile& file, std::uint64_t size, unsigned tables,
                                         unsigned field);

// The ranges of the file that the same tables give by two u64 fields: an offset (above 1 if used) and a size.
std::vector<FlatBytes> flat_far_ranges(const io::SourceFile& file, std::uint64_t size, unsigned tables,
                                       unsigned offset_field, unsigned size_field);

// A copy of bytes [0, size) of the file at the same offsets, with zeros in place of the weights. It cannot
// change while it is verified and read, and uses memory only outside the weights. Throws Error{limit} if that
// is more than kMostImage bytes.
class FlatImage {
 public:
  static constexpr std::uint64_t kMostSize = (std::uint64_t{1} << 31) - 2;  // a flatbuffer's own limit
  static constexpr std::uint64_t kMostImage = 40 << 20;

  FlatImage(const io::SourceFile& file, std::uint64_t size, std::vector<FlatBytes> weights);

  const std::uint8_t* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  // The file offset of a byte vector in the image.
  std::uint64_t offset_of(const std::uint8_t* inside) const {
    return static_cast<std::uint64_t>(inside - data_.get());
  }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::uint8_t* data) const;
  };
  std::unique_ptr<std::uint8_t[], Unmap> data_;
  std::size_t size_ = 0;
};

// --- Access to parts of a flatbuffer that may be absent: an absent part counts as empty.

template <typename Vector>
std::size_t flat_count(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

template <typename Vector>
auto flat_span(const Vector* vector) {
  return vector == nullptr ? decltype(std::span(vector->data(), 0))()
                           : std::span(vector->data(), vector->size());
}

template <typename String>
std::string flat_text(const String* string) {
  return string == nullptr ? std::string() : string->str();
}

// Verifies the flatbuffer and its identifier and returns its root table. Throws Error{malformed} naming
// `file`. The caller passes the library's verifier type, so that only .cpp files include the library's
// header.
template <typename Verifier, typename Root>
const Root& flat_root(const FlatImage& image, const Root* (*root)(const void*), const char* identifier,
                      const std::string& file) {
  constexpr unsigned kDepth = 64, kTables = 10'000'000;
  Verifier verifier(image.data(), image.size(), kDepth, kTables);
  if (!verifier.template VerifyBuffer<Root>(identifier))
    throw Error(ErrorCode::malformed, {.file = file}, "is not a valid flatbuffer of this format");
  return *root(image.data());
}

}  // namespace loadline::importers
