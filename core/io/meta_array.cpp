// Reads GGUF arrays, the only kind so far: consecutive numbers, or strings that each follow a u64 length.
#include "core/io/graph_reader.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

template <typename T>
MetaValue number(Cursor& cursor) {
  return cursor.read<T>("a number");
}

}  // namespace

MetaValue read_meta_number(Cursor& cursor, MetaType type) {
  using Read = MetaValue (*)(Cursor&);
  // in the order of MetaType
  constexpr Read kReaders[] = {[](Cursor& in) -> MetaValue { return in.read<std::uint8_t>("a bool") != 0; },
                               number<std::uint8_t>,
                               number<std::int8_t>,
                               number<std::uint16_t>,
                               number<std::int16_t>,
                               number<std::uint32_t>,
                               number<std::int32_t>,
                               number<std::uint64_t>,
                               number<std::int64_t>,
                               number<float>,
                               number<double>};
  const auto at = static_cast<std::size_t>(type);
  if (at < std::size(kReaders)) return kReaders[at](cursor);
  throw cursor.malformed(cursor.at(), "no number, but {}", meta_type_name(type));
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
    : MetaArrayReader(SourceFile::open(graph.file(array.file).path), array) {}
MetaArrayReader::MetaArrayReader(const SourceFile& file, const MetaArray& array)
    : MetaArrayReader(file.part(file.path(), 0, file.size()), array) {}
MetaArrayReader::MetaArrayReader(SourceFile&& file, const MetaArray& array)
    : array_(array), file_(std::move(file)), cursor_(file_, array.offset, array.offset + array.bytes) {
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
