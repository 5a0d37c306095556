// Zip archives: what the directory gives, and every way in which it could lie.
#include "importers/wire/zip.h"

#include "tests/support/builders.h"
#include "tests/support/hostile.h"
#include "tests/support/zips.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::little_endian;
using testing::zip_bytes;
using testing::ZipEnd;
using testing::ZipSpec;

SourceFile file_of(const std::string& bytes) {
  return SourceFile::from_memory("z", testing::as_bytes(bytes));
}

std::string error_of(const std::string& bytes, ZipCase name_case = ZipCase::folded) {
  const SourceFile file = file_of(bytes);
  return testing::error_of([&] {
    const ZipArchive zip(file, name_case);
    zip.root();
    for (const ZipMember& member : zip.members()) zip.read(member, 1 << 20);
  });
}

ZipSpec spec(std::string name, std::string content) {
  ZipSpec member;
  member.name = std::move(name);
  member.content = std::move(content);
  return member;
}

TEST(Zip, GivesPlaceAndContentOfEveryMember) {
  std::vector<ZipSpec> members = {spec("r/a", "stored"), spec("r/b", std::string(5000, 'x')), spec("r/c", ""),
                                  spec("r/d", "as torch writes"), spec("r/folder/", "")};
  members[1].deflate = true;
  members[3].sizes_follow = true;
  members[3].alignment = 64;
  for (const bool zip64 : {false, true}) {
    const std::string bytes = zip_bytes(members, {.zip64 = zip64});
    const SourceFile file = file_of(bytes);
    const ZipArchive zip(file, ZipCase::folded);
    ASSERT_EQ(zip.members().size(), 4u);
    EXPECT_EQ(zip.root(), "r");
    for (std::size_t i = 0; i < 4; ++i) {
      const ZipMember& member = *zip.find(members[i].name);
      EXPECT_EQ(zip.read(member, 10'000), members[i].content);
      EXPECT_EQ(member.bytes, members[i].content.size());
      if (!member.deflated) EXPECT_EQ(bytes.substr(member.payload, member.bytes), members[i].content);
    }
    EXPECT_EQ(zip.find("r/d")->payload % 64, 0u);
    EXPECT_TRUE(zip.find("r/b")->deflated);
    EXPECT_EQ(zip.find("r/x"), nullptr);
    EXPECT_EQ(zip.storage(*zip.find("r/b"), FileId{0}).encoding, Encoding::deflate);
  }
}

TEST(Zip, SizesMayStandInTheZip64Field) {
  ZipSpec member = spec("r/a", "content");
  member.bytes = member.stored_bytes = 0xFFFFFFFF;
  member.local_extra = little_endian(1, 2) + little_endian(16, 2) + little_endian(7, 8) + little_endian(7, 8);
  member.header = 0xFFFFFFFF;
  member.extra = little_endian(1, 2) + little_endian(24, 2) + little_endian(7, 8) + little_endian(7, 8) +
                 little_endian(0, 8);
  EXPECT_EQ(error_of(zip_bytes({member}, {.zip64 = true})), "");
}

TEST(Zip, NamesThatDifferInCaseAreNumpysAffair) {
  const std::string bytes = zip_bytes({spec("r/a", "1"), spec("r/A", "2")});
  EXPECT_EQ(error_of(bytes, ZipCase::distinct), "");
  EXPECT_NE(error_of(bytes, ZipCase::folded).find("occurs twice"), std::string::npos);
}

TEST(Zip, AChecksumOfZeroIsOneLeftOut) {
  ZipSpec member = spec("r/a", "content");
  member.crc = 0;
  EXPECT_EQ(error_of(zip_bytes({member})), "");
}

std::string notes_of(const std::string& bytes) {
  const SourceFile file = file_of(bytes);
  std::string text;
  const ZipArchive zip(file, ZipCase::folded);
  for (const Note& note : zip.notes())
    text += std::string(severity_name(note.severity)) + ": " + note.text + "\n";
  return text;
}

// [0] begins with a local header of 33 bytes and "first".
std::string with_gaps(const std::string& first, const std::string& second) {
  std::vector<ZipSpec> members = {spec("r/a", "first"), spec("r/b", "second")};
  members[0].after = first;
  members[1].after = second;
  return zip_bytes(members);
}

TEST(Zip, BytesThatBelongToNoMemberAreNoted) {
  EXPECT_EQ(notes_of(with_gaps("", "")), "");
  EXPECT_EQ(notes_of(with_gaps("hidden", "")),
            "warning: z: 6 bytes at byte 38 belong to no member of the zip archive\n");
  EXPECT_EQ(notes_of(with_gaps("", "%PDF-1.7")),
            "warning: z: 8 bytes at byte 77 belong to no member of the zip archive\n");
  EXPECT_EQ(notes_of(with_gaps(std::string(100, 'x'), "y")),
            "warning: z: 101 bytes at 2 places, the first byte 38 belong to no member of the zip archive\n");
  // no descriptor without flag 3
  EXPECT_NE(notes_of(with_gaps("PK\7\10" + std::string(12, 'x'), "")).find("16 bytes at byte 38"),
            std::string::npos);
  const std::string extended = zip_bytes({spec("r/a", "first")}, {.zip64 = true, .extension = "hidden"});
  EXPECT_NE(notes_of(extended).find("6 bytes at byte"), std::string::npos);
  EXPECT_EQ(error_of(extended), "");
}

TEST(Zip, ADescriptorBelongsToItsMember) {
  ZipSpec member = spec("r/a", "content");
  member.sizes_follow = true;
  const std::string crc = little_endian(0xFEC530A9, 4), signature = "PK\7\10";
  const std::string narrow = crc + little_endian(7, 4) + little_endian(7, 4);
  const std::string wide = crc + little_endian(7, 8) + little_endian(7, 8);
  for (const std::string& descriptor : {narrow, wide, signature + narrow, signature + wide, std::string()}) {
    member.descriptor = descriptor;
    member.after.clear();
    EXPECT_EQ(notes_of(zip_bytes({member, spec("r/b", "x")})), "") << descriptor.size();
    EXPECT_EQ(notes_of(zip_bytes({member})), "") << descriptor.size();
    member.after = "gap";
    EXPECT_NE(notes_of(zip_bytes({member, spec("r/b", "x")})).find(" 3 bytes at byte"), std::string::npos);
  }
}

TEST(Zip, ADescriptorMayKnowAChecksumThatTheDirectoryLeavesOut) {
  ZipSpec member = spec("r/a", "content");
  member.sizes_follow = true;
  member.crc = 0;
  member.descriptor = "PK\7\10" + little_endian(0xFEC530A9, 4) + little_endian(7, 4) + little_endian(7, 4);
  EXPECT_EQ(notes_of(zip_bytes({member})), "");
}

TEST(Zip, ContentIsCapped) {
  ZipSpec bomb = spec("r/a", std::string(10 << 20, '\0'));
  bomb.deflate = true;
  EXPECT_NE(error_of(zip_bytes({bomb})).find("has 10485760 bytes, the limit is 1048576"), std::string::npos);
}

TEST(Zip, EveryPrefixIsRefused) {
  const std::string sample = zip_bytes({spec("r/a", "stored"), spec("r/b", "x")}, {.zip64 = true});
  for (std::size_t length = 0; length < sample.size(); ++length)
    ASSERT_NE(error_of(sample.substr(0, length)), "") << length;
}

// One member with one lie.
template <typename Change>
std::string lie(Change change) {
  std::vector<ZipSpec> members = {spec("r/a", "first"), spec("r/b", "second")};
  change(members[1]);
  return zip_bytes(members);
}

std::string end_lie(const ZipEnd& end) {
  return zip_bytes({spec("r/a", "first"), spec("r/b", "second")}, end);
}

std::string name_lie(const std::string& name) {
  return lie([&](ZipSpec& m) { m.name = name; });
}

std::string extra_field(int id, const std::string& content) {
  return little_endian(static_cast<std::uint64_t>(id), 2) + little_endian(content.size(), 2) + content;
}

std::vector<testing::Hostile> header_table() {
  const std::string wide = little_endian(6, 8);
  return {
      {"local name differs", lie([](ZipSpec& m) { m.local_name = "r/c"; }),
       "another name in its local header"},
      {"local name longer", lie([](ZipSpec& m) { m.local_name = "r/bb"; }),
       "another name in its local header"},
      {"encrypted", lie([](ZipSpec& m) { m.flags = 1; }), "encrypted"},
      {"flag 5, patches", lie([](ZipSpec& m) { m.flags = 1 << 5; }), "flags 0x0020"},
      {"flag 6, strong encryption", lie([](ZipSpec& m) { m.flags = 1 << 6; }), "flags 0x0040"},
      {"flag 13, masked", lie([](ZipSpec& m) { m.flags = 1 << 13; }), "flags 0x2000"},
      {"bzip2", lie([](ZipSpec& m) { m.method = 12; }), "method 12"},
      {"method 99", lie([](ZipSpec& m) { m.method = 99; }), "method 99"},
      {"local method differs", lie([](ZipSpec& m) { m.local_method = 8; }), "another compression method"},
      {"local size differs", lie([](ZipSpec& m) { m.local_bytes = 5; }),
       "has 5 bytes (6 stored) in its local"},
      {"stored size differs from plain", lie([](ZipSpec& m) { m.bytes = 7; }), "stored as 6 bytes and has 7"},
      {"bad checksum", lie([](ZipSpec& m) { m.crc = 5; }), "has checksum"},
      {"local checksum differs", lie([](ZipSpec& m) { m.local_crc = 5; }),
       "another checksum in its local header"},
      {"descriptor with another size", lie([](ZipSpec& m) {
         m.sizes_follow = true;
         m.descriptor = "PK\7\10" + little_endian(0, 4) + little_endian(6, 4) + little_endian(7, 4);
       }),
       "another size or checksum in the descriptor"},
      {"descriptor cut short", lie([](ZipSpec& m) {
         m.sizes_follow = true;
         m.descriptor = "PK\7\10";
       }),
       "another size or checksum in the descriptor"},
      {"another disk", lie([](ZipSpec& m) { m.disk = 1; }), "another disk"},
      {"no local header there", lie([](ZipSpec& m) { m.header = 1; }), "overlaps the one before it"},
      {"two members at one place", lie([](ZipSpec& m) { m.header = 0; }), "overlaps the one before it"},
      {"header past the directory", lie([](ZipSpec& m) { m.header = 4000; }), "the directory begins at"},
      {"header at 2^32-1", lie([](ZipSpec& m) { m.header = 0xFFFFFFFF; }), "the directory begins at"},
      {"content past the directory", lie([](ZipSpec& m) { m.bytes = m.stored_bytes = 600; }),
       "has 600 bytes at"},
      {"content over the next member",
       [] {
         std::vector<ZipSpec> members = {spec("r/a", "first"), spec("r/b", "second")};
         members[0].bytes = members[0].stored_bytes = 20;
         return zip_bytes(members);
       }(),
       "overlaps the one before it"},
      {"deflate that ends early", lie([](ZipSpec& m) {
         m.deflate = true;
         m.bytes = 60;
       }),
       "ends after"},
      {"deflate that gives too much", lie([](ZipSpec& m) {
         m.deflate = true;
         m.bytes = 1 << 30;
       }),
       "no deflate stream holds that many"},
      {"deflate of garbage", lie([](ZipSpec& m) {
         m.method = 8;
         m.content = "\xFF\xFF\xFF\xFF";
       }),
       "damaged"},
      {"zip64 says another size",
       lie([&](ZipSpec& m) { m.extra = extra_field(1, little_endian(7, 8) + wide); }),
       "the zip64 extra field says 7, the header 6"},
      {"zip64 cut short", lie([&](ZipSpec& m) {
         m.bytes = m.stored_bytes = 0xFFFFFFFF;
         m.extra = extra_field(1, wide);
       }),
       "cut short"},
      {"zip64 twice",
       lie([&](ZipSpec& m) { m.extra = extra_field(1, wide + wide) + extra_field(1, wide + wide); }),
       "two zip64"},
      {"zip64 of 2^64-1", lie([&](ZipSpec& m) {
         m.bytes = m.stored_bytes = 0xFFFFFFFF;
         m.extra = extra_field(1, std::string(16, '\xFF'));
       }),
       "the directory begins at"},
      {"extra field past its end", lie([](ZipSpec& m) {
         m.extra =
             "ab\xFF\xFF"
             "x";
       }),
       "an extra field of 65535"},
  };
}

std::vector<testing::Hostile> name_table() {
  return {
      {"absolute", name_lie("/etc/passwd"), "no clean relative path"},
      {"parent", name_lie("r/../../x"), "no clean relative path"},
      {"backslash", name_lie("r\\b"), "no clean relative path"},
      {"drive", name_lie("C:/x"), "no clean relative path"},
      {"empty", name_lie(""), "no clean relative path"},
      {"NUL", name_lie(std::string("r/b\0c", 5)), "no clean relative path"},
      {"dot", name_lie("r/./b"), "no clean relative path"},
      {"double slash", name_lie("r//b"), "no clean relative path"},
      {"twice", name_lie("r/a"), "occurs twice"},
      {"twice but for case", name_lie("R/A"), "occurs twice"},
      {"another root", name_lie("s/b"), "lies outside 'r/'"},
      {"no root", zip_bytes({spec("a", "x")}), "lies in no folder"},
      {"a folder with content", name_lie("r/b/"), "a folder with content"},
  };
}

std::vector<testing::Hostile> end_table() {
  return {
      {"empty file", "", "at least 22 bytes"},
      {"no members", zip_bytes({}), "the zip archive is empty"},
      {"comment announced", end_lie({.comment_bytes = 5}), "announces a comment of 5 bytes"},
      {"comment", end_lie({.after_end = "hello", .comment_bytes = 5}), "no end record in its last 22 bytes"},
      {"a second end in the comment",
       end_lie({.after_end = zip_bytes({spec("r/x", "")}).substr(30 + 3 + 49), .comment_bytes = 22}), "byte"},
      {"trailing bytes", end_lie({.after_end = "x"}), "no end record"},
      {"prefix bytes", end_lie({.prefix = "MZ"}), "2 bytes stand before the first member"},
      {"a gap before the end", end_lie({.before_end = "gap"}), "does not end where its end record begins"},
      {"another disk", end_lie({.disk = 1}), "several disks"},
      {"fewer members", end_lie({.members = 1}), "follow the 1 members"},
      {"more members", end_lie({.members = 3}), "cannot hold 3"},
      {"65535 members", end_lie({.members = 65535}), "cannot hold 65535 members"},
      {"directory elsewhere", end_lie({.directory = 3}), "does not end where"},
      {"directory past the end", end_lie({.directory = 0xFFFFFFF0}), "does not end where"},
      {"directory too long", end_lie({.directory_bytes = 0xFFFFFFF0}), "does not end where"},
      {"zip64 with other members", end_lie({.zip64 = true, .members64 = 3}),
       "the end record says 2, the zip64"},
      {"zip64 with 2^64-1 members",
       end_lie({.zip64 = true, .members = 0xFFFF, .members64 = ~std::uint64_t{0}}), "the limit is 2000000"},
      {"zip64 with another place", end_lie({.zip64 = true, .directory64 = 1}), "the zip64 end record 1"},
      {"zip64 at 2^64-8", end_lie({.zip64 = true, .directory = 0xFFFFFFFF, .directory64 = ~std::uint64_t{7}}),
       "does not end where"},
      {"locator past the end", end_lie({.zip64 = true, .end64 = ~std::uint64_t{0}}),
       "the zip64 locator gives"},
      {"locator into content", end_lie({.zip64 = true, .end64 = 0}), "where no zip64 end record is"},
  };
}

TEST(Zip, LiesAreRefused) {
  for (const auto& table : {header_table(), name_table(), end_table()})
    for (const testing::Hostile& row : table) {
      const std::string error = error_of(row.bytes);
      EXPECT_NE(error.find(row.expected), std::string::npos) << row.name << ": '" << error << "'";
    }
}

TEST(Zip, ManyMembersStayLinear) {
  std::vector<ZipSpec> members;
  for (int i = 0; i < 60'000; ++i) members.push_back(spec("r/data/" + std::to_string(i), "x"));
  const SourceFile file = file_of(zip_bytes(members));
  EXPECT_EQ(ZipArchive(file, ZipCase::folded).members().size(), 60'000u);
}

}  // namespace
}  // namespace loadline
