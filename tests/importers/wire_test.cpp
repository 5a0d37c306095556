// Containers: zip archives, numpy arrays in them, protobuf.

#include "core/base/error.h"
#include "core/io/graph_reader.h"
#include "core/io/protobuf_wire.h"
#include "core/io/system_memory.h"
#include "importers/importer.h"
#include "importers/wire/zip.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/samples.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Zip archives: what the directory gives, and every way in which it could lie.

namespace {

using testing::little_endian;
using testing::zip_bytes;
using testing::ZipEnd;
using testing::ZipSpec;

io::SourceFile file_of(const std::string& bytes) {
  return io::SourceFile::from_memory("z", testing::as_bytes(bytes));
}

void read_zip(const std::string& bytes, importers::ZipNames names = importers::ZipNames::paths) {
  const io::SourceFile file = file_of(bytes);
  const importers::ZipArchive zip(file, names);
  zip.root();
  for (const importers::ZipMember& member : zip.members()) zip.read(member, 1 << 20);
}

std::string error_of(const std::string& bytes, importers::ZipNames names = importers::ZipNames::paths) {
  return testing::facts_of([&] { read_zip(bytes, names); });
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
    const io::SourceFile file = file_of(bytes);
    const importers::ZipArchive zip(file, importers::ZipNames::paths);
    ASSERT_EQ(zip.members().size(), 4u);
    EXPECT_EQ(zip.root(), "r");
    for (std::size_t i = 0; i < 4; ++i) {
      const importers::ZipMember& member = *zip.find(members[i].name);
      EXPECT_EQ(zip.read(member, 10'000), members[i].content);
      EXPECT_EQ(member.bytes, members[i].content.size());
      if (!member.deflated) EXPECT_EQ(bytes.substr(member.payload, member.bytes), members[i].content);
    }
    EXPECT_EQ(zip.find("r/d")->payload % 64, 0u);
    EXPECT_TRUE(zip.find("r/b")->deflated);
    EXPECT_EQ(zip.find("r/x"), nullptr);
    EXPECT_EQ(zip.storage(*zip.find("r/b"), graph::FileId{0}).encoding, graph::Encoding::deflate);
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
  EXPECT_EQ(error_of(bytes, importers::ZipNames::labels), "");
  EXPECT_EQ(error_of(bytes, importers::ZipNames::paths), "malformed z 34 'A'");
}

TEST(Zip, LabelsAreAnyTextWithoutNul) {
  for (const char* name : {"/layers.0/w.npy", "../x.npy", "C:\\x", "a//b", "a/../b", "\\\\x", " "})
    EXPECT_EQ(testing::error_of([&] {
                const io::SourceFile file = file_of(zip_bytes({spec(name, "1"), spec("b", "2")}));
                EXPECT_EQ(importers::read_zip_directory(file, importers::ZipNames::labels).members[0].name,
                          name);
              }),
              "");
  const io::SourceFile file = file_of(zip_bytes({spec(std::string("a\0b", 3), "1")}));
  EXPECT_EQ(testing::facts_of([&] { importers::read_zip_directory(file, importers::ZipNames::labels); }),
            "malformed z 0 'a\\x00b'");
}

TEST(Zip, AChecksumOfZeroIsOneLeftOut) {
  ZipSpec member = spec("r/a", "content");
  member.crc = 0;
  EXPECT_EQ(error_of(zip_bytes({member})), "");
}

std::string notes_of(const std::string& bytes) {
  const io::SourceFile file = file_of(bytes);
  std::string text;
  const importers::ZipArchive zip(file, importers::ZipNames::paths);
  for (const graph::Note& note : zip.notes())
    text += std::string(graph::severity_name(note.severity)) + " " + testing::facts(note.text) + "\n";
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
  EXPECT_EQ(notes_of(with_gaps("hidden", "")), "warning 6 38\n");
  EXPECT_EQ(notes_of(with_gaps("", "%PDF-1.7")), "warning 8 77\n");
  EXPECT_EQ(notes_of(with_gaps(std::string(100, 'x'), "y")), "warning 101 2 38\n");
  // no descriptor without flag 3
  EXPECT_EQ(notes_of(with_gaps("PK\7\10" + std::string(12, 'x'), "")), "warning 16 38\n");
  const std::string extended = zip_bytes({spec("r/a", "first")}, {.zip64 = true, .extension = "hidden"});
  EXPECT_EQ(notes_of(extended), "warning 6 143\n");
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
    EXPECT_TRUE(notes_of(zip_bytes({member, spec("r/b", "x")})).starts_with("warning 3 "));
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
  EXPECT_EQ(error_of(zip_bytes({bomb})), "limit z 0 'a' 10485760 1048576");
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
      {"local name differs", lie([](ZipSpec& m) { m.local_name = "r/c"; }), "malformed z 38 'b'"},
      {"local name longer", lie([](ZipSpec& m) { m.local_name = "r/bb"; }), "malformed z 38 'b'"},
      {"encrypted", lie([](ZipSpec& m) { m.flags = 1; }), "unsupported z 38 'b'"},
      {"flag 5, patches", lie([](ZipSpec& m) { m.flags = 1 << 5; }), "malformed z 38 'b' 0x0020"},
      {"flag 6, strong encryption", lie([](ZipSpec& m) { m.flags = 1 << 6; }), "malformed z 38 'b' 0x0040"},
      {"flag 13, masked", lie([](ZipSpec& m) { m.flags = 1 << 13; }), "malformed z 38 'b' 0x2000"},
      {"bzip2", lie([](ZipSpec& m) { m.method = 12; }), "unsupported z 38 'b' 12"},
      {"method 99", lie([](ZipSpec& m) { m.method = 99; }), "unsupported z 38 'b' 99"},
      {"local method differs", lie([](ZipSpec& m) { m.local_method = 8; }), "malformed z 38 'b'"},
      {"local size differs", lie([](ZipSpec& m) { m.local_bytes = 5; }), "malformed z 38 'b' 5 6 6 6"},
      {"stored size differs from plain", lie([](ZipSpec& m) { m.bytes = 7; }), "malformed z 38 'b' 6 7"},
      {"bad checksum", lie([](ZipSpec& m) { m.crc = 5; }), "malformed z 38 'b' b61f1169 00000005"},
      {"local checksum differs", lie([](ZipSpec& m) { m.local_crc = 5; }), "malformed z 38 'b'"},
      {"descriptor with another size", lie([](ZipSpec& m) {
         m.sizes_follow = true;
         m.descriptor = "PK\7\10" + little_endian(0, 4) + little_endian(6, 4) + little_endian(7, 4);
       }),
       "malformed z 38 'b'"},
      {"descriptor cut short", lie([](ZipSpec& m) {
         m.sizes_follow = true;
         m.descriptor = "PK\7\10";
       }),
       "malformed z 38 'b'"},
      {"another disk", lie([](ZipSpec& m) { m.disk = 1; }), "malformed z 38 'b'"},
      {"no local header there", lie([](ZipSpec& m) { m.header = 1; }), "malformed z 1 'b'"},
      {"two members at one place", lie([](ZipSpec& m) { m.header = 0; }), "malformed z 0 'b'"},
      {"header past the directory", lie([](ZipSpec& m) { m.header = 4000; }), "malformed z 4000 'b' 4000 77"},
      {"header at 2^32-1", lie([](ZipSpec& m) { m.header = 0xFFFFFFFF; }),
       "malformed z 4294967295 'b' 4294967295 77"},
      {"content past the directory", lie([](ZipSpec& m) { m.bytes = m.stored_bytes = 600; }),
       "malformed z 38 'b' 600 71 77"},
      {"content over the next member",
       [] {
         std::vector<ZipSpec> members = {spec("r/a", "first"), spec("r/b", "second")};
         members[0].bytes = members[0].stored_bytes = 20;
         return zip_bytes(members);
       }(),
       "malformed z 38 'b'"},
      {"deflate that ends early", lie([](ZipSpec& m) {
         m.deflate = true;
         m.bytes = 60;
       }),
       "malformed z 79 6"},
      {"deflate that gives too much", lie([](ZipSpec& m) {
         m.deflate = true;
         m.bytes = 1 << 30;
       }),
       "malformed z 38 'b' 1073741824 8"},
      {"deflate of garbage", lie([](ZipSpec& m) {
         m.method = 8;
         m.content = "\xFF\xFF\xFF\xFF";
       }),
       "malformed z 72 0"},
      {"zip64 says another size",
       lie([&](ZipSpec& m) { m.extra = extra_field(1, little_endian(7, 8) + wide); }),
       "malformed z 187 zip64 7 6"},
      {"zip64 cut short", lie([&](ZipSpec& m) {
         m.bytes = m.stored_bytes = 0xFFFFFFFF;
         m.extra = extra_field(1, wide);
       }),
       "malformed z 187 zip64"},
      {"zip64 twice",
       lie([&](ZipSpec& m) { m.extra = extra_field(1, wide + wide) + extra_field(1, wide + wide); }),
       "malformed z 199 zip64"},
      {"zip64 of 2^64-1", lie([&](ZipSpec& m) {
         m.bytes = m.stored_bytes = 0xFFFFFFFF;
         m.extra = extra_field(1, std::string(16, '\xFF'));
       }),
       "malformed z 38 'b' 18446744073709551615 71 77"},
      {"extra field past its end", lie([](ZipSpec& m) {
         m.extra =
             "ab\xFF\xFF"
             "x";
       }),
       "malformed z 179 65535 1"},
  };
}

std::vector<testing::Hostile> name_table() {
  return {
      {"absolute", name_lie("/etc/passwd"), "malformed z 38 'passwd'"},
      {"parent", name_lie("r/../../x"), "malformed z 38 'x'"},
      {"backslash", name_lie("r\\b"), "malformed z 38 'r\\b'"},
      {"drive", name_lie("C:/x"), "malformed z 38 'x'"},
      {"empty", name_lie(""), "malformed z 38 ''"},
      {"NUL", name_lie(std::string("r/b\0c", 5)), "malformed z 38 'b\\x00c'"},
      {"dot", name_lie("r/./b"), "malformed z 38 'b'"},
      {"double slash", name_lie("r//b"), "malformed z 38 'b'"},
      {"twice", name_lie("r/a"), "malformed z 38 'a'"},
      {"twice but for case", name_lie("R/A"), "malformed z 38 'A'"},
      {"another root", name_lie("s/b"), "malformed z 38 'b' ''"},
      {"no root", zip_bytes({spec("a", "x")}), "malformed z 0 'a'"},
      {"a folder with content", name_lie("r/b/"), "malformed z 38 ''"},
  };
}

std::vector<testing::Hostile> end_table() {
  return {
      {"empty file", "", "malformed z 0 22 0"},
      {"no members", zip_bytes({}), "malformed z 0"},
      {"comment announced", end_lie({.comment_bytes = 5}), "malformed z 175 5 0"},
      {"comment", end_lie({.after_end = "hello", .comment_bytes = 5}), "malformed z 180 22"},
      {"a second end in the comment",
       end_lie({.after_end = zip_bytes({spec("r/x", "")}).substr(30 + 3 + 49), .comment_bytes = 22}),
       "malformed z 197 49 33 197"},
      {"trailing bytes", end_lie({.after_end = "x"}), "malformed z 176 22"},
      {"prefix bytes", end_lie({.prefix = "MZ"}), "malformed z 0 2"},
      {"a gap before the end", end_lie({.before_end = "gap"}), "malformed z 178 98 77 178"},
      {"another disk", end_lie({.disk = 1}), "malformed z 175"},
      {"fewer members", end_lie({.members = 1}), "malformed z 126 49 1"},
      {"more members", end_lie({.members = 3}), "malformed z 77 98 3"},
      {"65535 members", end_lie({.members = 65535}), "malformed z 77 98 65535"},
      {"directory elsewhere", end_lie({.directory = 3}), "malformed z 175 98 3 175"},
      {"directory past the end", end_lie({.directory = 0xFFFFFFF0}), "malformed z 175 98 4294967280 175"},
      {"directory too long", end_lie({.directory_bytes = 0xFFFFFFF0}), "malformed z 175 4294967280 77 175"},
      {"zip64 with other members", end_lie({.zip64 = true, .members64 = 3}), "malformed z 251 2 zip64 3"},
      {"zip64 with 2^64-1 members",
       end_lie({.zip64 = true, .members = 0xFFFF, .members64 = ~std::uint64_t{0}}),
       "limit z 77 18446744073709551615 2000000"},
      {"zip64 with another place", end_lie({.zip64 = true, .directory64 = 1}), "malformed z 251 77 zip64 1"},
      {"zip64 at 2^64-8", end_lie({.zip64 = true, .directory = 0xFFFFFFFF, .directory64 = ~std::uint64_t{7}}),
       "malformed z 251 98 18446744073709551608 175"},
      {"locator past the end", end_lie({.zip64 = true, .end64 = ~std::uint64_t{0}}),
       "malformed z 231 zip64 18446744073709551615 251"},
      {"locator into content", end_lie({.zip64 = true, .end64 = 0}), "malformed z 0 zip64 zip64"},
  };
}

TEST(Zip, LiesAreRefused) {
  for (const auto& table : {header_table(), name_table(), end_table()})
    testing::expect_errors(table, [](std::string_view bytes) { read_zip(std::string(bytes)); });
}

TEST(Zip, ManyMembersStayLinear) {
  std::vector<ZipSpec> members;
  for (int i = 0; i < 60'000; ++i) members.push_back(spec("r/data/" + std::to_string(i), "x"));
  const io::SourceFile file = file_of(zip_bytes(members));
  EXPECT_EQ(importers::ZipArchive(file, importers::ZipNames::paths).members().size(), 60'000u);
}

}  // namespace

// --- npy and npz: goldens, prefixes, types, and the hostile tables.

namespace {

using testing::import_bytes;
using testing::npy_bytes;
using testing::npy_header;

TEST(Npy, SamplesEqualTheirGoldens) {
  testing::expect_golden("npy_sample.json", graph_json(import_bytes("w.npy", testing::sample_npy())));
  testing::expect_golden("npz_sample.json", graph_json(import_bytes("m.npz", testing::sample_npz())));
}

TEST(Npy, EveryPrefixIsAClearError) {
  testing::expect_prefixes_refused("w.npy", testing::sample_npy());
  testing::expect_prefixes_refused("m.npz", testing::sample_npz());
}

TEST(Npy, EveryFlippedByteIsSurvived) {
  testing::expect_flips_survived("w.npy", testing::sample_npy(), testing::sample_npy().size());
  testing::expect_flips_survived("m.npz", testing::sample_npz(), testing::sample_npz().size());
}

graph::Tensor typed(std::string_view descr, std::size_t bytes) {
  return import_bytes("w.npy", npy_bytes(npy_header(descr, "(2,)"), bytes)).tensors.at(0);
}

TEST(Npy, EveryType) {
  for (const graph::DTypeInfo& info : graph::dtype_table())
    if (!info.npy.empty()) EXPECT_EQ(typed(info.npy, 2 * info.block_bytes).dtype, info.id) << info.npy;
  EXPECT_EQ(typed("?", 2).dtype, graph::DType::boolean);
  EXPECT_EQ(typed("=f4", 8).dtype, graph::DType::f32);
  EXPECT_EQ(typed("<u1", 2).dtype, graph::DType::u8);
  for (const auto& [descr, bytes] : {std::pair("|O", 20),
                                     {"<U3", 24},
                                     {"|S3", 6},
                                     {"|V2", 4},
                                     {"<M8[ns]", 16},
                                     {"<m8[D]", 16},
                                     {"<f16", 32},
                                     {"<c32", 64}})
    EXPECT_EQ(typed(descr, static_cast<std::size_t>(bytes)).dtype, graph::DType::opaque) << descr;
}

TEST(Npy, RecordsAreBytes) {
  const graph::MetaGraph graph = import_bytes(
      "w.npy",
      npy_bytes(
          "{'descr': [('a', '<f4'), ('b', [('c', '<i4', (2,))])], 'fortran_order': False, 'shape': (2,)}",
          24));
  EXPECT_EQ(graph.tensors[0].dtype, graph::DType::opaque);
  EXPECT_EQ(graph.storages[0].bytes, 24u);
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "'a record'"));
}

TEST(Npy, HeadersOfOldWriters) {
  EXPECT_EQ(import_bytes("w.npy",
                         npy_bytes("{\"shape\": (3L, 2L), \"fortran_order\": False, \"descr\": \"<f4\"}", 24))
                .tensors[0]
                .shape,
            (std::vector<std::uint64_t>{3, 2}));
  std::string version2 = "\x93NUMPY" + std::string("\2\0", 2);
  const std::string header = npy_header("<f4", "()") + "\n";
  version2 += testing::little_endian(header.size(), 4) + header + "abcd";
  EXPECT_EQ(graph::elements(import_bytes("w.npy", version2).tensors[0]), 1u);
}

TEST(Npy, FortranOrderIsStrides) {
  const auto strides = [](std::string_view shape, std::size_t bytes) {
    return import_bytes("w.npy", npy_bytes(npy_header("<f4", shape, "True"), bytes)).tensors[0].strides;
  };
  EXPECT_EQ(strides("(2, 3, 4)", 96), (std::vector<std::uint64_t>{1, 2, 6}));
  EXPECT_TRUE(strides("(6,)", 24).empty());
  EXPECT_TRUE(strides("(1, 6, 1)", 24).empty());
  EXPECT_TRUE(strides("(0, 6)", 0).empty());
}

TEST(Npy, TrailingBytesAreNoted) {
  const graph::MetaGraph graph = import_bytes("w.npy", npy_bytes(npy_header("<f4", "(2,)"), 9));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "1 8"));
  EXPECT_EQ(graph.storages[0].bytes, 8u);
}

TEST(Npy, CompressedMembersAreReadThroughTheirStream) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "m.npz", testing::sample_npz());
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::import_source(
      {std::make_shared<const io::SourceFile>(io::SourceFile::open(folder / "m.npz")),
       [](const std::string&) { return nullptr; },
       {}}));
  const io::StorageReader storages(graph);
  const std::string data = testing::pattern(160);
  for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
    if (graph->tensors[i].name != "packed") continue;
    std::string read(160, '\0');
    io::TensorReader(storages).read(graph::TensorId{static_cast<std::uint32_t>(i)}, 0,
                                    std::as_writable_bytes(std::span(read)));
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t column = 0; column < 5; ++column)
        EXPECT_EQ(read.substr((row * 5 + column) * 8, 8), data.substr((column * 4 + row) * 8, 8));
  }
}

TEST(Npy, CompressedBigEndianNumbersCannotBeUsed) {
  testing::ZipSpec member;
  member.name = "x.npy";
  member.content = npy_bytes(npy_header(">i4", "(2,)"), 8);
  member.deflate = true;
  const graph::MetaGraph graph = import_bytes("m.npz", testing::zip_bytes({member}));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::error, ""));
  EXPECT_EQ(graph.tensors[0].dtype, graph::DType::opaque);
}

TEST(Npy, HostileFilesGiveTheirError) {
  const auto header = [](std::string_view text) { return npy_bytes(text, 8); };
  const auto shape = [](std::string_view text) { return npy_bytes(npy_header("<f4", text), 8); };
  const auto descr = [](std::string_view text) { return npy_bytes(npy_header(text, "(2,)"), 8); };
  std::string far_header = testing::sample_npy();
  far_header[8] = far_header[9] = '\xFF';
  std::string huge_header = "\x93NUMPY" + std::string("\2\0", 2) + "\xFF\xFF\xFF\xFF";
  std::string version4 = testing::sample_npy();
  version4[6] = 4;
  std::string minor = testing::sample_npy();
  minor[7] = 1;
  testing::expect_hostile(
      "w.npy",
      {{"header length past the end", far_header, "malformed w.npy 0 'w' 65535 10 152"},
       {"header of 4 GiB", huge_header, "limit w.npy 0 'w' 4294967295 1048576"},
       {"version 4", version4, "unsupported w.npy 0 'w' 4.0 3.0"},
       {"version 1.1", minor, "unsupported w.npy 0 'w' 1.1 3.0"},
       {"not a dict", header("[]"), "malformed w.npy 0 'w' '{' 0"},
       {"an empty header", header(""), "malformed w.npy 0 'w' '{' 54"},
       {"unterminated dict", header("{'descr': '<f4'"), "malformed w.npy 0 'w' '}' 54"},
       {"unterminated string", header("{'descr': '<f4"), "malformed w.npy 0 'w'"},
       {"text after the dict", header(npy_header("<f4", "(2,)") + " x"), "malformed w.npy 0 'w'"},
       {"an expression", header("__import__('os').system('id')"), "malformed w.npy 0 'w' '{' 0"},
       {"an expression as shape", shape("(1+1,)"), "malformed w.npy 0 'w' ')' 52"},
       {"a call as shape", shape("(int(2),)"), "malformed w.npy 0 'w' 0"},
       {"no descr", header("{'fortran_order': False, 'shape': (2,)}"), "malformed w.npy 0 'w' 'descr'"},
       {"no shape", header("{'descr': '<f4', 'fortran_order': False}"), "malformed w.npy 0 'w' 'shape'"},
       {"no order", header("{'descr': '<f4', 'shape': (2,)}"), "malformed w.npy 0 'w' 'fortran_order'"},
       {"a key twice", header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
        "malformed w.npy 0 'w' 'descr'"},
       {"an unknown key", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"),
        "malformed w.npy 0 'w' 'x'"},
       {"order is a number", header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}"),
        "malformed w.npy 0 'w' fortran_order"},
       {"negative dimension", shape("(-2,)"), "malformed w.npy 0 'w' 0"},
       {"fractional dimension", shape("(2.0,)"), "malformed w.npy 0 'w' ')' 52"},
       {"dimension 2^64", shape("(18446744073709551616,)"), "malformed w.npy 0 'w' 0"},
       {"product 2^64", shape("(4294967296, 4294967296)"), "malformed w.npy 0 'w' 64"},
       {"product wraps behind a zero", shape("(4294967296, 0, 4294967296, 4294967296)"),
        "malformed w.npy 0 'w' 64"},
       {"bytes 2^64", shape("(4611686018427387904,)"),
        "malformed w.npy 0 'w' 2^64 4611686018427387904 '<f4' 8"},
       {"data shorter than needed", shape("(3,)"), "malformed w.npy 0 'w' 12 3 '<f4' 8"},
       {"65 dimensions", shape("(" + testing::repeat("1,", 65) + ")"), "malformed w.npy 0 'w' 64"},
       {"unclosed list", header("{'descr': [('a', '<f4'"), "malformed w.npy 0 'w'"},
       {"nested lists", header("{'descr': " + testing::repeat("[", 5000)), "malformed w.npy 0 'w'"},
       {"empty descr", descr(""), "malformed w.npy 0 'w'"},
       {"unknown kind", descr("<q4"), "malformed w.npy 0 'w' '<q4'"},
       {"no width", descr("<f"), "malformed w.npy 0 'w' '<f'"},
       {"width 2^64", descr("<f99999999999999999999"), "malformed w.npy 0 'w' '<f99999999999999999999'"},
       {"width 2^32", descr("|S4294967296"), "malformed w.npy 0 'w' '|S4294967296'"},
       {"two types", descr("<f4<f4"), "malformed w.npy 0 'w' '<f4<f4'"},
       {"escape", descr("<f\\x34"), "malformed w.npy 0 'w'"}});
}

TEST(Npz, HostileArchivesGiveTheirError) {
  const auto member = [](std::string content, bool deflate) {
    testing::ZipSpec spec;
    spec.name = "a.npy";
    spec.content = std::move(content);
    spec.deflate = deflate;
    return spec;
  };
  testing::ZipSpec lying = member(npy_bytes(npy_header("<f4", "(2,)"), 8), true);
  lying.bytes = static_cast<std::uint32_t>(lying.content.size()) + 100;
  testing::ZipSpec encrypted = member(testing::sample_npy(), false);
  encrypted.flags = 1;
  const testing::ZipSpec plain = member(testing::sample_npy(), false);
  std::string bomb = "\x93NUMPY" + std::string("\2\0", 2) + testing::little_endian(100 << 20, 4);
  testing::expect_hostile(
      "m.npz",
      {{"not an array", testing::zip_bytes({member("hello, world", false)}), "malformed m.npz 35 'a'"},
       {"shorter than its magic", testing::zip_bytes({member("\x93NUM", true)}),
        "malformed m.npz 35 'a' 8 0 4"},
       {"shape beyond the member",
        testing::zip_bytes({member(npy_bytes(npy_header("<f4", "(9,)"), 8), true)}),
        "malformed m.npz 35 'a' 36 9 '<f4' 8"},
       {"a header that inflates to 100 MB",
        testing::zip_bytes({member(bomb + std::string(101 << 20, ' '), true)}),
        "limit m.npz 35 'a' 104857600 1048576"},
       {"encrypted", testing::zip_bytes({encrypted}), "unsupported m.npz 0 'a.npy'"},
       {"one name twice", testing::zip_bytes({plain, plain}), "malformed m.npz 187 'a.npy'"}});
  // the size of a compressed member is only a claim: reading past its end says so
  const graph::MetaGraph graph = import_bytes("m.npz", testing::zip_bytes({lying}));
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "100 8"));
}

}  // namespace

// --- The wire reader: every type, limits, laziness, and where its errors say they are.

namespace {

using testing::Proto;

io::SourceFile memory(std::string_view bytes) {
  return io::SourceFile::from_memory("m.pb", testing::as_bytes(bytes));
}

// Steps over all fields of the message.
std::string wire_error(std::string_view bytes) {
  const io::SourceFile file = memory(bytes);
  return testing::facts_of([&] {
    io::WireReader reader(file, 0, file.size());
    while (reader.next()) {
    }
  });
}

TEST(ProtobufWire, EveryTypeIsRead) {
  const Proto proto =
      Proto().number(1, ~std::uint64_t{0}).fixed64(2, 1ULL << 63).text(3, "text").fixed32(4, 7);
  const io::SourceFile file = memory(proto);
  io::WireReader reader(file, 0, file.size());
  EXPECT_EQ(reader.next()->value, ~std::uint64_t{0});
  EXPECT_EQ(reader.next()->value, 1ULL << 63);
  const io::WireField text = reader.next().value();
  EXPECT_EQ(text.tag, io::wire_tag(3, io::WireType::length));
  EXPECT_EQ(text.at, 20u);
  EXPECT_EQ(text.offset, 22u);
  EXPECT_EQ(text.bytes, 4u);
  EXPECT_EQ(reader.text(text, 4, "text"), "text");
  EXPECT_EQ(reader.next()->value, 7u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, MessagesAreEnteredAndLeftHalfRead) {
  const Proto inner = Proto().number(1, 5).text(2, "skipped").number(3, 6);
  const io::SourceFile file = memory(Proto().text(1, inner).number(2, 9));
  io::WireReader reader(file, 0, file.size());
  reader.enter(reader.next().value());
  EXPECT_EQ(reader.next()->value, 5u);
  EXPECT_EQ(reader.next()->number(), 2u);
  reader.leave();
  EXPECT_EQ(reader.next()->value, 9u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, ARangeGivesAbsoluteBytes) {
  const std::string message = Proto().number(1, 5).text(2, "abc");
  const io::SourceFile file = memory("xxxx" + message + "yy");
  io::WireReader reader(file, 4, 4 + message.size());
  EXPECT_EQ(reader.next()->at, 4u);
  EXPECT_EQ(reader.next()->offset, 8u);
  EXPECT_FALSE(reader.next());
}

TEST(ProtobufWire, WhatIsSkippedIsNotRead) {
  testing::TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 10; ++i) bytes += Proto().text(1, std::string(1 << 20, 'w')).bytes();
  testing::write_file(folder / "m.pb", bytes);
  const io::SourceFile file = io::SourceFile::open(folder / "m.pb");
  const std::uint64_t before = io::read_bytes_counter();
  io::WireReader reader(file, 0, file.size());
  int fields = 0;
  while (reader.next()) ++fields;
  const std::uint64_t read = io::read_bytes_counter() - before;
  EXPECT_EQ(fields, 10);
  EXPECT_LT(read, 20'000u);
}

TEST(ProtobufWire, NestingEndsAtProtobufsLimit) {
  const auto levels = [](std::size_t depth) {
    std::string bytes;
    for (std::size_t i = 0; i < depth; ++i) bytes = Proto().text(1, bytes).bytes();
    const io::SourceFile file = memory(bytes);
    return testing::facts_of([&] {
      io::WireReader reader(file, 0, file.size());
      while (const auto field = reader.next()) reader.enter(*field);
    });
  };
  EXPECT_EQ(levels(100), "");
  EXPECT_EQ(levels(101), "limit m.pb 237 100");
}

TEST(ProtobufWire, HostileBytesGiveTheirError) {
  const std::string eleven(10, '\xFF');
  testing::expect_errors(
      {
          {"tag cut off", "\x80", "malformed m.pb 0 1"},
          {"varint cut off", "\x08\xFF", "malformed m.pb 1 1"},
          {"varint of 11 bytes", "\x08" + eleven + "\x01", "malformed m.pb 1 10"},
          {"tag over 32 bits", "\xFF\xFF\xFF\xFF\x7F\x01", "malformed m.pb 0 4294967295"},
          {"field number 0", std::string("\0\0", 2), "malformed m.pb 0 0"},
          {"group start", "\x0B\x0C", "malformed m.pb 0 1 3"},
          {"group end", "\x0C", "malformed m.pb 0 1 4"},
          {"wire type 6", "\x0E", "malformed m.pb 0 1 6"},
          {"wire type 7", "\x0F", "malformed m.pb 0 1 7"},
          {"fixed32 cut off", "\x0D\1\2\3", "malformed m.pb 0 1 4 3"},
          {"fixed64 cut off", "\x09\1\2\3\4\5\6\7", "malformed m.pb 0 1 8 7"},
          {"length past the end", "\x0A\x05onl", "malformed m.pb 0 1 5 3"},
          {"length 2^31", "\x0A\x80\x80\x80\x80\x08", "malformed m.pb 0 1 2147483648 0"},
          {"length 2^64-1", "\x0A" + std::string(9, '\xFF') + "\x01",
           "malformed m.pb 0 1 18446744073709551615 0"},
      },
      [](std::string_view bytes) {
        const io::SourceFile file = memory(bytes);
        io::WireReader reader(file, 0, file.size());
        while (reader.next()) {
        }
      });
  EXPECT_EQ(wire_error("\x08\x01"), "");
  EXPECT_EQ(wire_error("\x0A\x05onl"), "malformed m.pb 0 1 5 3");
}

TEST(ProtobufWire, AnInnerLengthMayNotLeaveItsMessage) {
  // 4 bytes inside a message of 3, with enough of the file behind it
  const io::SourceFile file = memory("\x0A\x03\x12\x04zzzzzzz");
  io::WireReader reader(file, 0, file.size());
  reader.enter(reader.next().value());
  EXPECT_THROW(reader.next(), Error);
}

TEST(ProtobufWire, TextOverItsLimitIsRefused) {
  const io::SourceFile file = memory(Proto().text(1, "abcdef"));
  io::WireReader reader(file, 0, file.size());
  const io::WireField field = reader.next().value();
  EXPECT_EQ(testing::facts_of([&] { reader.text(field, 5, "a name"); }), "limit m.pb 0 6 5");
}

TEST(ProtobufWire, AFileThatShrinksIsAnError) {
  testing::TemporaryFolder folder;
  testing::write_file(folder / "m.pb", Proto().text(1, std::string(100'000, 'x')).number(2, 1).bytes());
  const io::SourceFile file = io::SourceFile::open(folder / "m.pb");
  io::WireReader reader(file, 0, file.size());
  ASSERT_TRUE(reader.next());
  std::filesystem::resize_file(folder / "m.pb", 50'000);
  EXPECT_EQ(testing::facts_of([&] { reader.next(); }), "io m.pb 100004 100006");
}

}  // namespace

}  // namespace loadline::tests
