// The wire reader: every type, limits, laziness, and where its errors say they are.
#include "core/io/protobuf_wire.h"

#include "core/io/system_memory.h"
#include "tests/support/builders.h"
#include "tests/support/hostile.h"
#include "tests/support/protobuf_builder.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::Proto;

SourceFile memory(std::string_view bytes) {
  return SourceFile::from_memory("m.pb", testing::as_bytes(bytes));
}

// Steps over all fields of the message.
std::string error_of(std::string_view bytes) {
  const SourceFile file = memory(bytes);
  return testing::error_of([&] {
    WireReader reader(file, 0, file.size());
    while (reader.next()) {
    }
  });
}

TEST(ProtobufWire, EveryTypeIsRead) {
  const Proto proto =
      Proto().number(1, ~std::uint64_t{0}).fixed64(2, 1ULL << 63).text(3, "text").fixed32(4, 7);
  const SourceFile file = memory(proto);
  WireReader reader(file, 0, file.size());
  EXPECT_EQ(reader.next()->value, ~std::uint64_t{0});
  EXPECT_EQ(reader.next()->value, 1ULL << 63);
  const WireField text = reader.next().value();
  EXPECT_EQ(text.tag, wire_tag(3, WireType::length));
  EXPECT_EQ(text.at, 20u);
  EXPECT_EQ(text.offset, 22u);
  EXPECT_EQ(text.bytes, 4u);
  EXPECT_EQ(reader.text(text, 4, "text"), "text");
  EXPECT_EQ(reader.next()->value, 7u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, MessagesAreEnteredAndLeftHalfRead) {
  const Proto inner = Proto().number(1, 5).text(2, "skipped").number(3, 6);
  const SourceFile file = memory(Proto().text(1, inner).number(2, 9));
  WireReader reader(file, 0, file.size());
  reader.enter(reader.next().value());
  EXPECT_EQ(reader.next()->value, 5u);
  EXPECT_EQ(reader.next()->number(), 2u);
  reader.leave();
  EXPECT_EQ(reader.next()->value, 9u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, ARangeGivesAbsoluteBytes) {
  const std::string message = Proto().number(1, 5).text(2, "abc");
  const SourceFile file = memory("xxxx" + message + "yy");
  WireReader reader(file, 4, 4 + message.size());
  EXPECT_EQ(reader.next()->at, 4u);
  EXPECT_EQ(reader.next()->offset, 8u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, WhatIsSkippedIsNotRead) {
  testing::TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 10; ++i) bytes += Proto().text(1, std::string(1 << 20, 'w')).bytes();
  testing::write_file(folder / "m.pb", bytes);
  const SourceFile file = SourceFile::open(folder / "m.pb");
  const std::uint64_t before = read_bytes_counter();
  WireReader reader(file, 0, file.size());
  int fields = 0;
  while (reader.next()) ++fields;
  const std::uint64_t read = read_bytes_counter() - before;
  EXPECT_EQ(fields, 10);
  EXPECT_LT(read, 20'000u);
}

TEST(ProtobufWire, NestingEndsAtProtobufsLimit) {
  const auto levels = [](std::size_t depth) {
    std::string bytes;
    for (std::size_t i = 0; i < depth; ++i) bytes = Proto().text(1, bytes).bytes();
    const SourceFile file = memory(bytes);
    return testing::error_of([&] {
      WireReader reader(file, 0, file.size());
      while (const auto field = reader.next()) reader.enter(*field);
    });
  };
  EXPECT_EQ(levels(100), "");
  EXPECT_NE(levels(101).find("nested more than 100 deep"), std::string::npos);
}

TEST(ProtobufWire, HostileBytesGiveTheirError) {
  const std::string eleven(10, '\xFF');
  testing::expect_errors(
      {
          {"tag cut off", "\x80", "byte 0: a varint does not end in the 1 bytes"},
          {"varint cut off", "\x08\xFF", "byte 1: a varint does not end"},
          {"varint of 11 bytes", "\x08" + eleven + "\x01", "byte 1: a varint of more than 10 bytes"},
          {"tag over 32 bits", "\xFF\xFF\xFF\xFF\x7F\x01", "byte 0: field number"},
          {"field number 0", std::string("\0\0", 2), "byte 0: field number 0"},
          {"group start", "\x0B\x0C", "wire type 3"},
          {"group end", "\x0C", "wire type 4"},
          {"wire type 6", "\x0E", "wire type 6"},
          {"wire type 7", "\x0F", "wire type 7"},
          {"fixed32 cut off", "\x0D\1\2\3", "takes 4 bytes, its message has 3 left"},
          {"fixed64 cut off", "\x09\1\2\3\4\5\6\7", "takes 8 bytes, its message has 7 left"},
          {"length past the end", "\x0A\x05onl", "byte 0: field 1 takes 5 bytes, its message has 3 left"},
          {"length 2^31", "\x0A\x80\x80\x80\x80\x08", "takes 2147483648 bytes"},
          {"length 2^64-1", "\x0A" + std::string(9, '\xFF') + "\x01", "takes 18446744073709551615 bytes"},
      },
      [](std::string_view bytes) {
        const SourceFile file = memory(bytes);
        WireReader reader(file, 0, file.size());
        while (reader.next()) {
        }
      });
  EXPECT_EQ(error_of("\x08\x01").find("m.pb"), std::string::npos);
  EXPECT_EQ(error_of("\x0A\x05onl").rfind("m.pb: byte 0: ", 0), 0u);
}

TEST(ProtobufWire, AnInnerLengthMayNotLeaveItsMessage) {
  // 4 bytes inside a message of 3, with enough of the file behind it
  const SourceFile file = memory("\x0A\x03\x12\x04zzzzzzz");
  WireReader reader(file, 0, file.size());
  reader.enter(reader.next().value());
  EXPECT_THROW(reader.next(), Error);
}

TEST(ProtobufWire, TextOverItsLimitIsRefused) {
  const SourceFile file = memory(Proto().text(1, "abcdef"));
  WireReader reader(file, 0, file.size());
  const WireField field = reader.next().value();
  EXPECT_NE(
      testing::error_of([&] { reader.text(field, 5, "a name"); }).find("a name has 6 bytes, the limit is 5"),
      std::string::npos);
}

TEST(ProtobufWire, AFileThatShrinksIsAnError) {
  testing::TemporaryFolder folder;
  testing::write_file(folder / "m.pb", Proto().text(1, std::string(100'000, 'x')).number(2, 1).bytes());
  const SourceFile file = SourceFile::open(folder / "m.pb");
  WireReader reader(file, 0, file.size());
  ASSERT_TRUE(reader.next());
  std::filesystem::resize_file(folder / "m.pb", 50'000);
  EXPECT_NE(testing::error_of([&] { reader.next(); }).find("became shorter"), std::string::npos);
}

}  // namespace
}  // namespace loadline
