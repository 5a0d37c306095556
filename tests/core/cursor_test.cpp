// Cursor, decoders, lazy metadata arrays.
#include "core/base/error.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "tests/support/builders.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace loadline {
namespace {

using testing::as_bytes;
using testing::TemporaryFolder;
using testing::write_file;

SourceFile memory(std::string_view bytes) { return SourceFile::from_memory("f", as_bytes(bytes)); }

template <typename Body>
std::string error_of(Body body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Cursor, ReadsNumbersInBothOrders) {
  const SourceFile file = memory(std::string("\x01\x02\x03\x04\0\0\x80\x3f\xff\xfe", 10));
  Cursor cursor(file);
  EXPECT_EQ(cursor.read<std::uint16_t>("n"), 0x0201);
  cursor.set_big_endian(true);
  EXPECT_EQ(cursor.read<std::uint16_t>("n"), 0x0304);
  cursor.set_big_endian(false);
  EXPECT_EQ(cursor.read<float>("n"), 1.0F);
  cursor.set_big_endian(true);
  EXPECT_EQ(cursor.read<std::int16_t>("n"), -2);
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(Cursor, NothingPastTheRange) {
  const SourceFile file = memory("0123456789");
  Cursor cursor(file, 2, 6);
  cursor.skip(1, "x");
  EXPECT_EQ(error_of([&] { cursor.read<std::uint32_t>("a count"); }),
            "f: byte 3: a count takes 4 bytes, 3 follow");
  EXPECT_EQ(error_of([&] { cursor.skip(~std::uint64_t{0}, "a string"); }),
            "f: byte 3: a string takes 18446744073709551615 bytes, 3 follow");
  EXPECT_EQ(error_of([&] { cursor.read_text(3, 2, "a name"); }),
            "f: byte 3: a name has 3 bytes, the limit is 2");
  EXPECT_EQ(cursor.read_text(3, 3, "a name"), "345");
  EXPECT_EQ(Cursor(file, 20, 30).remaining(), 0u);
}

TEST(Cursor, LongFilesAreReadInPieces) {
  std::string bytes;
  for (int i = 0; i < 400'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  const SourceFile file = memory(bytes);
  Cursor cursor(file);
  for (std::size_t i = 0; i < bytes.size();) {
    if (i % 3 == 0 && i + 1000 < bytes.size()) {
      ASSERT_EQ(cursor.read_text(1000, 1000, "t"), bytes.substr(i, 1000));
      i += 1000;
    } else {
      ASSERT_EQ(cursor.read<std::uint8_t>("n"), static_cast<std::uint8_t>(bytes[i]));
      ++i;
    }
  }
}

// Reads the one storage of a graph in every way: whole, in pieces, backwards.
std::string read_all(const std::string& path, Storage storage) {
  auto graph = std::make_shared<MetaGraph>();
  graph->files = {{path, SourceFile::open(path).size()}};
  storage.file = FileId{0};
  graph->storages = {storage};
  const StorageReader reader(graph);
  const auto n = static_cast<std::size_t>(storage.bytes);
  std::string whole(n, '\0');
  reader.read(StorageId{0}, 0, std::as_writable_bytes(std::span(whole)));
  std::string pieces(n, '\0');
  const auto out = std::as_writable_bytes(std::span(pieces));
  for (std::size_t at = 0; at < n; at += 3)
    reader.read(StorageId{0}, at, out.subspan(at, std::min<std::size_t>(3, n - at)));
  EXPECT_EQ(pieces, whole);
  std::string backwards(n, '\0');
  const auto back = std::as_writable_bytes(std::span(backwards));
  for (std::size_t at = n; at > 0; at = at > 5000 ? at - 5000 : 0) {
    const std::size_t begin = at > 5000 ? at - 5000 : 0;
    reader.read(StorageId{0}, begin, back.subspan(begin, at - begin));
  }
  EXPECT_EQ(backwards, whole);
  return whole;
}

TEST(Encodings, DeflateIsUndone) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i * i);
  z_stream stream = {};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  write_file(folder / "f", "##" + packed + "tail");
  Storage storage = {
      .encoding = Encoding::deflate, .offset = 2, .bytes = text.size(), .stored_bytes = packed.size()};
  EXPECT_EQ(read_all(folder / "f", storage), text);

  storage.bytes += 1;
  EXPECT_NE(error_of([&] { read_all(folder / "f", storage); }).find("the compressed data ends after"),
            std::string::npos);
  storage.stored_bytes /= 2;
  EXPECT_NE(error_of([&] { read_all(folder / "f", storage); }).find("the compressed data ends after"),
            std::string::npos);
  storage.offset = 0;
  EXPECT_NE(error_of([&] { read_all(folder / "f", storage); }).find("is damaged after"), std::string::npos);
}

TEST(Encodings, BigEndianNumbersAreSwapped) {
  const TemporaryFolder folder;
  write_file(folder / "f", "xabcdefgh");
  const auto swapped = [&](std::uint8_t unit) {
    return read_all(
        folder / "f",
        {.encoding = Encoding::byte_swapped, .unit = unit, .offset = 1, .bytes = 8, .stored_bytes = 8});
  };
  EXPECT_EQ(swapped(1), "abcdefgh");
  EXPECT_EQ(swapped(2), "badcfehg");
  EXPECT_EQ(swapped(4), "dcbahgfe");
  EXPECT_EQ(swapped(8), "hgfedcba");
}

TEST(Encodings, ProtobufNumbersPackedAndNot) {
  const TemporaryFolder folder;
  // field 5: 1, then packed {2, 300}, an unrelated field 4 (fixed32) and 8 (bytes), then 65535 alone
  const std::string message = std::string("\x28\x01\x2a\x03\x02\xac\x02\x25\0\0\0\0", 12) +
                              std::string("\x42\x02hi\x28\xff\xff\x03", 8);
  write_file(folder / "f", message);
  const Storage storage = {.encoding = Encoding::protobuf_varints,
                           .unit = 2,
                           .field = 5,
                           .bytes = 8,
                           .stored_bytes = message.size()};
  EXPECT_EQ(read_all(folder / "f", storage), std::string("\x01\0\x02\0\x2c\x01\xff\xff", 8));
  Storage more = storage;
  more.bytes = 10;
  EXPECT_NE(error_of([&] { read_all(folder / "f", more); }).find("field 5 ends after 8 bytes"),
            std::string::npos);

  // a run that ends within a number
  write_file(folder / "h", std::string("\x22\x02", 2) + "ab" + std::string("\x22\x06", 2) + "cdefgh");
  const Storage cut = {
      .encoding = Encoding::protobuf_fixed, .unit = 4, .field = 4, .bytes = 8, .stored_bytes = 12};
  EXPECT_NE(error_of([&] { read_all(folder / "h", cut); }).find("crosses the end of its run"),
            std::string::npos);

  // field 4 as floats: one alone, two packed
  const std::string floats = std::string("\x25", 1) + "abcd" + std::string("\x22\x08", 2) + "efghijkl";
  write_file(folder / "g", floats);
  EXPECT_EQ(read_all(folder / "g", {.encoding = Encoding::protobuf_fixed,
                                    .unit = 4,
                                    .field = 4,
                                    .bytes = 12,
                                    .stored_bytes = floats.size()}),
            "abcdefghijkl");
}

TEST(MetaArrays, ElementsAreReadWhereTheyLie) {
  const TemporaryFolder folder;
  std::string bytes = "??";
  for (const std::string text : {"zero", "", "two"})
    bytes += std::string(1, static_cast<char>(text.size())) + std::string(7, '\0') + text;
  write_file(folder / "f", bytes);
  MetaGraph graph;
  graph.files = {{folder / "f", bytes.size()}};
  const MetaArray strings = {MetaType::string, false, FileId{0}, 3, 2, bytes.size() - 2};
  EXPECT_EQ(read_meta_array(graph, strings, 1, 10),
            (std::vector<MetaValue>{std::string(), std::string("two")}));
  EXPECT_TRUE(read_meta_array(graph, strings, 3, 10).empty());
  const MetaArray numbers = {MetaType::u16, true, FileId{0}, 2, 0, 4};
  EXPECT_EQ(read_meta_array(graph, numbers, 0, ~std::uint64_t{0}),
            (std::vector<MetaValue>{std::uint16_t{0x3f3f}, std::uint16_t{0x0400}}));
  EXPECT_EQ(meta_text(strings), "3 strings");
}

}  // namespace
}  // namespace loadline
