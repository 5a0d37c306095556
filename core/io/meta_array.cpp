// GGUF's arrays are the only ones so far: numbers one after the other, strings each behind a u64 length.
#include "core/io/meta_array.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {

MetaValue read_meta_number(Cursor& cursor, MetaType type) {
  switch (type) {
    case MetaType::boolean:
      return cursor.read<std::uint8_t>("a bool") != 0;
    case MetaType::u8:
      return cursor.read<std::uint8_t>("a number");
    case MetaType::i8:
      return cursor.read<std::int8_t>("a number");
    case MetaType::u16:
      return cursor.read<std::uint16_t>("a number");
    case MetaType::i16:
      return cursor.read<std::int16_t>("a number");
    case MetaType::u32:
      return cursor.read<std::uint32_t>("a number");
    case MetaType::i32:
      return cursor.read<std::int32_t>("a number");
    case MetaType::u64:
      return cursor.read<std::uint64_t>("a number");
    case MetaType::i64:
      return cursor.read<std::int64_t>("a number");
    case MetaType::f32:
      return cursor.read<float>("a number");
    case MetaType::f64:
      return cursor.read<double>("a number");
    case MetaType::string:
    case MetaType::array:
      break;
  }
  throw cursor.malformed(cursor.at(), fmt::format("no number, but {}", meta_type_name(type)));
}

namespace {

MetaValue read_element(Cursor& cursor, MetaType type) {
  if (type != MetaType::string) return read_meta_number(cursor, type);
  const auto bytes = cursor.read<std::uint64_t>("a string's length");
  const std::uint64_t kept = std::min(bytes, kMostElementText);
  std::string text = cursor.read_text(kept, kMostElementText, "a string");
  cursor.skip(bytes - kept, "a string");
  return text;
}

}  // namespace

MetaArrayReader::MetaArrayReader(const MetaGraph& graph, const MetaArray& array)
    : array_(array),
      file_(SourceFile::open(graph.file(array.file).path)),
      cursor_(file_, array.offset, array.offset + array.bytes) {
  cursor_.set_big_endian(array.big_endian);
}

void MetaArrayReader::skip(std::uint64_t count) {
  const std::uint64_t stepped = std::min(count, remaining());
  if (array_.element == MetaType::string)
    for (std::uint64_t i = 0; i < stepped; ++i)
      cursor_.skip(cursor_.read<std::uint64_t>("a string's length"), "a string");
  else if (stepped > 0)
    cursor_.skip(stepped * (array_.bytes / array_.count), "elements");
  at_ += stepped;
}

MetaValue MetaArrayReader::next() {
  ++at_;
  return read_element(cursor_, array_.element);
}

std::vector<MetaValue> read_meta_array(const MetaGraph& graph, const MetaArray& array, std::uint64_t first,
                                       std::uint64_t count) {
  MetaArrayReader reader(graph, array);
  reader.skip(first);
  std::vector<MetaValue> elements;
  for (std::uint64_t left = std::min(count, reader.remaining()); left > 0; --left)
    elements.push_back(reader.next());
  return elements;
}

}  // namespace loadline
