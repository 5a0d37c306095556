// Values of a model's metadata, in the types that the file declares.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

namespace loadline {

// The position of a file in MetaGraph::files.
enum class FileId : std::uint32_t {};
// No file: the model is known from its configuration alone.
inline constexpr FileId kNoFile{std::numeric_limits<std::uint32_t>::max()};

// In the order of MetaValue's alternatives. An array has elements of one of the other types.
enum class MetaType : std::uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, string, array };
std::string_view meta_type_name(MetaType type);
// Bytes of one value of a type with a fixed size; 0 for strings and arrays.
std::uint64_t meta_type_bytes(MetaType type);

// An array that stays in its file: opening a model only skips a vocabulary of 250,000 strings.
// core/io/meta_array.h reads elements.
struct MetaArray {
  MetaType element = MetaType::u8;  // never array
  bool big_endian = false;
  FileId file = kNoFile;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // of the first element, absolute, in the file
  std::uint64_t bytes = 0;   // of all elements together, in the file
  bool operator==(const MetaArray&) const = default;
};

using MetaValue =
    std::variant<bool, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                 std::uint64_t, std::int64_t, float, double, std::string, MetaArray>;

inline MetaType meta_type(const MetaValue& value) { return static_cast<MetaType>(value.index()); }

// The value for a person: "true", "42", "1e-05", the text itself (not escaped), "250,112 strings", "3 f32
// values".
std::string meta_text(const MetaValue& value);

}  // namespace loadline
