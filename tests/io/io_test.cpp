// Files in and out, and what is read of them: numbers, arrays, strided tensors.

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/graph/meta_graph.h"
#include "core/io/atomic_file.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "core/io/system_memory.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace loadline::tests {

// --- Files: exact reads, whole outputs.

namespace {

using testing::as_bytes;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(SourceFile, APartIsAFileOfItsOwn) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "whole", "0123456789");
  const io::SourceFile files[] = {io::SourceFile::open(folder / "whole"),
                                  io::SourceFile::from_memory("whole", testing::as_bytes("0123456789"))};
  for (const io::SourceFile& whole : files) {
    const io::SourceFile part = whole.part("part", 2, 6).part("part of it", 1, 4);
    EXPECT_EQ(part.size(), 4u);
    EXPECT_EQ(part.path(), "part of it");
    EXPECT_EQ(part.head(10), "3456");
    std::byte one{};
    EXPECT_THROW(part.read_at(4, std::span(&one, 1)), Error);
    EXPECT_THROW(part.part("", 2, 3), Error);
    EXPECT_THROW(part.part("", ~std::uint64_t{0}, 2), Error);
  }
}

TEST(SourceFile, ReadsExactRangesAndNothingElse) {
  const TemporaryFolder folder;
  write_file(folder / "f", "0123456789");
  for (const io::SourceFile& file :
       {io::SourceFile::open(folder / "f"), io::SourceFile::from_memory("f", as_bytes("0123456789"))}) {
    std::vector<std::byte> out(4);
    file.read_at(6, out);
    EXPECT_EQ(out, as_bytes("6789"));
    EXPECT_THROW(file.read_at(7, out), Error);
    EXPECT_THROW(file.read_at(~std::uint64_t{0}, out), Error);
    EXPECT_EQ(file.head(100), "0123456789");
    EXPECT_NO_THROW(file.read_at(10, {}));
  }
}

TEST(SourceFile, AFileThatShrinksGivesAnError) {
  const TemporaryFolder folder;
  write_file(folder / "f", std::string(10000, 'x'));
  const io::SourceFile file = io::SourceFile::open(folder / "f");
  std::filesystem::resize_file(folder / "f", 100);
  std::vector<std::byte> out(5000);
  EXPECT_THROW(file.read_at(0, out), Error);
}

TEST(SourceFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(io::SourceFile::open(folder.path().string()), Error);
  EXPECT_THROW(io::SourceFile::open(folder / "absent"), Error);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(io::SourceFile::open(folder / "pipe"), Error);  // and does not wait for a writer
  EXPECT_THROW(io::SourceFile::open("/dev/zero"), Error);
}

TEST(AtomicFile, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  {
    io::AtomicFile file(folder / "target");
    file.preallocate(6);
    file.write_at(0, as_bytes("new"));
    EXPECT_EQ(read_file(folder / "target"), "old");
    EXPECT_EQ(entries(folder.path()), 2u);
  }
  EXPECT_EQ(read_file(folder / "target"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);

  io::AtomicFile file(folder / "target");
  file.write_at(0, as_bytes("new"));
  file.commit();
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

// Pieces whose borders and memory are no whole pages, several at a time, must all arrive.
TEST(OutputFile, EveryPolicyWritesTheSameBytes) {
  constexpr std::size_t kBytes = (40 << 20) + 123;  // more than is kept behind a write
  const io::Pages memory(kBytes + 1);
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i + 8 <= kBytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(memory.span().data() + i, &word, sizeof word);
  }
  const TemporaryFolder folder;
  struct Case {
    std::size_t shift = 0, step = 0;
  };
  for (const auto policy : {io::WritePolicy::cached, io::WritePolicy::drop_behind, io::WritePolicy::direct})
    for (const auto [shift, step] :
         {Case{0, 4u << 20}, Case{0, (3u << 20) + 5}, Case{1, (4u << 20) + 4096}}) {
      const auto bytes = memory.span().subspan(shift, kBytes);
      const std::string path = folder / "out";
      {
        io::OutputFile file(io::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
                            path);
        file.preallocate(kBytes);
        file.set_policy(policy);
        const std::size_t pieces = (kBytes + step - 1) / step;
        ParallelLoop(pieces, 3, [&, step = step](std::size_t i) {
          file.write_at(i * step, bytes.subspan(i * step, std::min(step, kBytes - i * step)));
        }).finish();
        file.sync();
      }
      const std::string written = read_file(path);
      ASSERT_EQ(written.size(), kBytes);
      EXPECT_EQ(std::memcmp(written.data(), bytes.data(), kBytes), 0)
          << "policy " << static_cast<int>(policy) << ", shift " << shift << ", step " << step;
    }
}

TEST(AtomicFile, HasOrdinaryPermissions) {
  const TemporaryFolder folder;
  write_file(folder / "plain", "x");
  io::AtomicFile file(folder / "target");
  file.commit();
  struct stat plain = {}, made = {};
  ::stat((folder / "plain").c_str(), &plain);
  ::stat((folder / "target").c_str(), &made);
  EXPECT_EQ(plain.st_mode, made.st_mode);
}

TEST(AtomicFile, AFolderThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(io::AtomicFile(folder / "no/such/file"), Error);
}

TEST(AtomicFile, WhatIsNoFileIsLeftAlone) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(io::AtomicFile(folder / "pipe"), Error);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_THROW(io::AtomicFile("/dev/null"), Error);
}

TEST(AtomicFile, MoreThanTheDiskHoldsFailsBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  io::AtomicFile file(folder / "huge");
  EXPECT_THROW(file.preallocate(std::uint64_t{1} << 60), Error);
}

TEST(StorageReader, RefusesAFileThatWasReplaced) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {100, 200});
  {
    const io::StorageReader reader(graph);
    std::vector<std::byte> out(200);
    reader.read(graph::StorageId{1}, 0, out);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), out.size()),
              read_file(graph->files[0].path).substr(graph->storages[1].offset, 200));
  }
  write_file(graph->files[0].path, "something else");
  const io::StorageReader reader(graph);
  std::vector<std::byte> out(1);
  EXPECT_THROW(reader.read(graph::StorageId{0}, 0, out), Error);
}

TEST(StorageReader, AModelWithoutFilesHasNoBytes) {
  auto graph = std::make_shared<graph::MetaGraph>();
  graph->storages = {graph::shapes_only_storage(8)};
  const io::StorageReader reader(graph);
  std::vector<std::byte> out(1);
  EXPECT_THROW(reader.read(graph::StorageId{0}, 0, out), Error);
}

TEST(ProcessMemory, SeesTouchedPages) {
  const io::ProcessMemoryCounters before = io::read_process_memory();
  EXPECT_GT(before.rss_anon, 0u);
  // from the system: an allocator may have pages that an earlier test has touched
  constexpr std::size_t kBytes = 32 << 20;
  void* const touched = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(touched, MAP_FAILED);
  std::memset(touched, 'x', kBytes);
  asm volatile("" : : "r"(touched) : "memory");
  const std::uint64_t after = io::read_process_memory().rss_anon;
  ::munmap(touched, kBytes);
  EXPECT_GE(after - before.rss_anon, 30u << 20);
}

void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(ControlGroups, TheLeastRoomOfAGroupAndThoseAboveIt) {
  const testing::TemporaryFolder folder;
  const std::string root = folder / "cgroup";
  EXPECT_EQ(io::control_group_room("0::/\n", root), UINT64_MAX);
  write_text(root + "/jobs/memory.max", "1000\n");
  write_text(root + "/jobs/memory.current", "700\n");
  write_text(root + "/jobs/memory.stat", "anon 400\ninactive_file 200\nactive_file 100\n");
  write_text(root + "/jobs/one/memory.max", "max\n");
  write_text(root + "/jobs/two/memory.max", "500\n");
  write_text(root + "/jobs/two/memory.current", "450\n");
  write_text(root + "/jobs/two/memory.stat", "anon 450\ninactive_file 0\nactive_file 0\n");
  EXPECT_EQ(io::control_group_room("0::/\n", root), UINT64_MAX);
  EXPECT_EQ(io::control_group_room("0::/jobs/one\n", root), 600u);
  EXPECT_EQ(io::control_group_room("0::/jobs/two\n", root), 50u);
  EXPECT_EQ(io::control_group_room("0::/jobs/three\n", root), 600u);
}

TEST(ControlGroups, OfTheOldKind) {
  const testing::TemporaryFolder folder;
  const std::string root = folder / "cgroup";
  const auto group = [&](const std::string& path, const std::string& limit, const std::string& used) {
    write_text(root + "/memory" + path + "/memory.limit_in_bytes", limit + "\n");
    write_text(root + "/memory" + path + "/memory.usage_in_bytes", used + "\n");
    write_text(root + "/memory" + path + "/memory.stat",
               "cache 300\ntotal_cache 300\ntotal_inactive_file 200\ntotal_active_file 50\n");
  };
  group("/pod/one", "9223372036854771712", "900");
  EXPECT_EQ(io::control_group_room("4:memory:/pod/one\n3:cpu:/\n0::/\n", root), UINT64_MAX);
  // the limit of the group above is shared with others
  group("/pod", "8000", "7250");
  EXPECT_EQ(io::control_group_room("4:memory:/pod/one\n3:cpu:/\n0::/\n", root), 1000u);
  EXPECT_EQ(io::control_group_room("4:cpu,memory:/pod/one\n0::/\n", root), 1000u);
  // in a container the group is the root, whatever its name is outside
  group("", "1000", "1200");
  EXPECT_EQ(io::control_group_room("4:memory:/docker/abc\n", root), 50u);
}

}  // namespace

// --- Cursor, decoders, lazy metadata arrays.

namespace {

io::SourceFile memory(std::string_view bytes) { return io::SourceFile::from_memory("f", as_bytes(bytes)); }

template <typename Body>
std::string error_of(Body body) {
  return testing::facts_of(body);
}

TEST(Cursor, ReadsNumbersInBothOrders) {
  const io::SourceFile file = memory(std::string("\x01\x02\x03\x04\0\0\x80\x3f\xff\xfe", 10));
  io::Cursor cursor(file);
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
  const io::SourceFile file = memory("0123456789");
  io::Cursor cursor(file, 2, 6);
  cursor.skip(1, "x");
  EXPECT_EQ(error_of([&] { cursor.read<std::uint32_t>("a count"); }), "malformed f 3 4 3");
  EXPECT_EQ(error_of([&] { cursor.skip(~std::uint64_t{0}, "a string"); }),
            "malformed f 3 18446744073709551615 3");
  EXPECT_EQ(error_of([&] { cursor.read_text(3, 2, "a name"); }), "limit f 3 3 2");
  EXPECT_EQ(cursor.read_text(3, 3, "a name"), "345");
  EXPECT_EQ(io::Cursor(file, 20, 30).remaining(), 0u);
}

TEST(Cursor, LongFilesAreReadInPieces) {
  std::string bytes;
  for (int i = 0; i < 400'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  const io::SourceFile file = memory(bytes);
  io::Cursor cursor(file);
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
std::string read_all(const std::string& path, graph::Storage storage) {
  auto graph = std::make_shared<graph::MetaGraph>();
  graph->files = {{path, io::SourceFile::open(path).size()}};
  storage.file = graph::FileId{0};
  graph->storages = {storage};
  const io::StorageReader reader(graph);
  const auto n = static_cast<std::size_t>(storage.bytes);
  std::string whole(n, '\0');
  reader.read(graph::StorageId{0}, 0, std::as_writable_bytes(std::span(whole)));
  std::string pieces(n, '\0');
  const auto out = std::as_writable_bytes(std::span(pieces));
  for (std::size_t at = 0; at < n; at += 3)
    reader.read(graph::StorageId{0}, at, out.subspan(at, std::min<std::size_t>(3, n - at)));
  EXPECT_EQ(pieces, whole);
  std::string backwards(n, '\0');
  const auto back = std::as_writable_bytes(std::span(backwards));
  for (std::size_t at = n; at > 0; at = at > 5000 ? at - 5000 : 0) {
    const std::size_t begin = at > 5000 ? at - 5000 : 0;
    reader.read(graph::StorageId{0}, begin, back.subspan(begin, at - begin));
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
  graph::Storage storage = {
      .encoding = graph::Encoding::deflate, .offset = 2, .bytes = text.size(), .stored_bytes = packed.size()};
  EXPECT_EQ(read_all(folder / "f", storage), text);

  storage.bytes += 1;
  EXPECT_TRUE(error_of([&] { read_all(folder / "f", storage); }).starts_with("malformed f "));
  storage.stored_bytes /= 2;
  EXPECT_TRUE(error_of([&] { read_all(folder / "f", storage); }).starts_with("malformed f "));
  storage.offset = 0;
  EXPECT_EQ(error_of([&] { read_all(folder / "f", storage); }), "malformed f 4 0");
}

TEST(Encodings, BigEndianNumbersAreSwapped) {
  const TemporaryFolder folder;
  write_file(folder / "f", "xabcdefgh");
  const auto swapped = [&](std::uint8_t unit) {
    return read_all(folder / "f", {.encoding = graph::Encoding::byte_swapped,
                                   .unit = unit,
                                   .offset = 1,
                                   .bytes = 8,
                                   .stored_bytes = 8});
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
  const graph::Storage storage = {.encoding = graph::Encoding::protobuf_varints,
                                  .unit = 2,
                                  .field = 5,
                                  .bytes = 8,
                                  .stored_bytes = message.size()};
  EXPECT_EQ(read_all(folder / "f", storage), std::string("\x01\0\x02\0\x2c\x01\xff\xff", 8));
  graph::Storage more = storage;
  more.bytes = 10;
  EXPECT_EQ(error_of([&] { read_all(folder / "f", more); }), "malformed f 20 5 8");

  // a run that ends within a number
  write_file(folder / "h", std::string("\x22\x02", 2) + "ab" + std::string("\x22\x06", 2) + "cdefgh");
  const graph::Storage cut = {
      .encoding = graph::Encoding::protobuf_fixed, .unit = 4, .field = 4, .bytes = 8, .stored_bytes = 12};
  EXPECT_EQ(error_of([&] { read_all(folder / "h", cut); }), "malformed h 6 4 4");

  // field 4 as floats: one alone, two packed
  const std::string floats = std::string("\x25", 1) + "abcd" + std::string("\x22\x08", 2) + "efghijkl";
  write_file(folder / "g", floats);
  EXPECT_EQ(read_all(folder / "g", {.encoding = graph::Encoding::protobuf_fixed,
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
  graph::MetaGraph graph;
  graph.files = {{folder / "f", bytes.size()}};
  const graph::MetaArray strings = {graph::MetaType::string, false, graph::FileId{0}, 3, 2, bytes.size() - 2};
  EXPECT_EQ(io::read_meta_array(graph, strings, 1, 10),
            (std::vector<graph::MetaValue>{std::string(), std::string("two")}));
  EXPECT_TRUE(io::read_meta_array(graph, strings, 3, 10).empty());
  const graph::MetaArray numbers = {graph::MetaType::u16, true, graph::FileId{0}, 2, 0, 4};
  EXPECT_EQ(io::read_meta_array(graph, numbers, 0, ~std::uint64_t{0}),
            (std::vector<graph::MetaValue>{std::uint16_t{0x3f3f}, std::uint16_t{0x0400}}));
  EXPECT_EQ(graph::meta_text(strings), "3 strings");
}

}  // namespace

// --- Exchanges in place: whole, refused, interrupted at every byte.

namespace {

class InPlace : public ::testing::Test {
 protected:
  void replace(
      std::string_view before, std::string_view after, const std::function<void()>& check = [] {}) {
    io::replace_in_place(path, as_bytes(before), as_bytes(after), check);
  }
  std::size_t entries() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
  }
  std::string backup_name() const {
    return std::filesystem::path(io::edit_backup_path(path)).filename().string();
  }

  TemporaryFolder folder;
  std::string path = folder / "model";
};

TEST_F(InPlace, ReplacesTheBeginningAndLeavesNothing) {
  write_file(path, "old header, data");
  replace("old header", "new header");
  EXPECT_EQ(read_file(path), "new header, data");
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(io::recover_in_place(path), io::Recovery::none);
}

TEST_F(InPlace, TheBackupIsThereWhileTheCheckRuns) {
  write_file(path, "old");
  replace("old", "new", [&] {
    EXPECT_TRUE(io::edit_was_interrupted(path));
    EXPECT_EQ(read_file(path), "new");
  });
}

TEST_F(InPlace, AFailedCheckPutsTheOldBytesBack) {
  write_file(path, "old header, data");
  EXPECT_EQ(testing::facts_of(
                [&] { replace("old header", "new header", [] { throw Error(ErrorCode::io, "not so"); }); }),
            "io");
  EXPECT_EQ(read_file(path), "old header, data");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(InPlace, AnInterruptionAfterAnyByteIsUndone) {
  const std::string before = "old header", after = "new HEADER";
  for (std::size_t written = 0; written <= before.size(); ++written) {
    write_file(path, before + ", data");
    io::save_edit_backup(path, as_bytes(before), as_bytes(after));
    write_file(path, after.substr(0, written) + before.substr(written) + ", data");
    EXPECT_TRUE(io::edit_was_interrupted(path));
    const bool complete = written == before.size();
    EXPECT_EQ(io::recover_in_place(path), complete ? io::Recovery::done : io::Recovery::undone);
    EXPECT_EQ(read_file(path), (complete ? after : before) + ", data");
    EXPECT_EQ(entries(), 1u);
  }
}

TEST_F(InPlace, PagesMayReachTheDiskInAnyOrder) {
  write_file(path, "abcdef");
  io::save_edit_backup(path, as_bytes("abcdef"), as_bytes("ABCDEF"));
  write_file(path, "abCDeF");
  EXPECT_EQ(io::recover_in_place(path), io::Recovery::undone);
  EXPECT_EQ(read_file(path), "abcdef");
}

TEST_F(InPlace, AnotherFileIsNotTouched) {
  write_file(path, "abcdef");
  io::save_edit_backup(path, as_bytes("abc"), as_bytes("xyz"));
  write_file(path, "abQdef");
  EXPECT_EQ(testing::facts_of([&] { io::recover_in_place(path); }), "malformed model 2 " + backup_name());
  write_file(path, "abcdefg");
  EXPECT_EQ(testing::facts_of([&] { io::recover_in_place(path); }), "malformed model 7 6 " + backup_name());
  EXPECT_EQ(read_file(path), "abcdefg");
  EXPECT_EQ(testing::facts_of([&] { replace("abc", "xyz"); }), "usage model");
}

TEST_F(InPlace, DamagedBackupsAreRefused) {
  write_file(path, "abcdef");
  io::save_edit_backup(path, as_bytes("abc"), as_bytes("xyz"));
  const std::string backup = io::edit_backup_path(path), whole = read_file(backup);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    write_file(backup, whole.substr(0, cut));
    EXPECT_EQ(testing::facts_of([&] { io::recover_in_place(path); }), "malformed " + backup_name());
  }
  for (std::size_t at = 24; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_file(backup, changed);
    EXPECT_NE(testing::facts_of([&] { io::recover_in_place(path); }), "") << at;
  }
  std::filesystem::resize_file(backup, std::uint64_t{1} << 40);  // sparse
  EXPECT_EQ(testing::facts_of([&] { io::recover_in_place(path); }), "malformed " + backup_name());
  EXPECT_EQ(read_file(path), "abcdef");
}

TEST_F(InPlace, RefusesOtherContentSizesLinksAndLockedFiles) {
  write_file(path, "abcdef");
  EXPECT_EQ(testing::facts_of([&] { replace("abX", "xyz"); }), "io model");
  EXPECT_EQ(testing::facts_of([&] { replace("abc", "wxyz"); }), "usage model 4 3");
  EXPECT_EQ(testing::facts_of([&] { replace("abcdefg", "xxxxxxx"); }), "io model 6");
  const int other = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(testing::facts_of([&] { replace("abc", "xyz"); }), "usage model");
  ::close(other);
  std::filesystem::create_hard_link(path, folder / "second");
  EXPECT_EQ(testing::facts_of([&] { replace("abc", "xyz"); }), "usage model 2");
  EXPECT_EQ(read_file(path), "abcdef");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(InPlace, LinksToTheFileHaveTheSameBackup) {
  write_file(path, "abc");
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_EQ(io::edit_backup_path(folder / "link"), io::edit_backup_path(path));
}

}  // namespace

// --- Strided tensors against a brute-force gather.

namespace {

constexpr std::size_t kBytes = 1 << 20;

std::string random_bytes() {
  std::mt19937 random(7);
  std::string bytes(kBytes, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string deflated(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One file: the bytes as they are, then deflated.
class TensorReading : public ::testing::Test {
 protected:
  TensorReading() {
    const std::string packed = deflated(bytes_);
    testing::write_file(folder_ / "raw", bytes_ + packed);
    graph_.files = {{folder_ / "raw", kBytes + packed.size()}};
    graph::Storage encoded = graph::plain_storage(graph::FileId{0}, kBytes, kBytes);
    encoded.stored_bytes = packed.size();
    encoded.encoding = graph::Encoding::deflate;
    graph_.storages = {graph::plain_storage(graph::FileId{0}, 0, kBytes), encoded};
  }

  std::string expected(const graph::Tensor& tensor) const {
    const std::size_t item = graph::dtype_info(tensor.dtype).block_bytes;
    std::string result;
    std::vector<std::uint64_t> at(tensor.shape.size(), 0);
    for (std::uint64_t n = graph::elements(tensor); n-- > 0;) {
      std::uint64_t element = 0;
      for (std::size_t i = 0; i < at.size(); ++i) element += at[i] * tensor.strides[i];
      result += bytes_.substr(tensor.offset + element * item, item);
      for (std::size_t i = at.size(); i-- > 0 && ++at[i] == tensor.shape[i];) at[i] = 0;
    }
    return result;
  }

  std::string read(const graph::Tensor& tensor, std::uint64_t offset, std::size_t count) {
    graph_.tensors = {tensor};
    graph::validate(graph_);
    const io::StorageReader storages(std::make_shared<const graph::MetaGraph>(graph_));
    std::string result(count, '\0');
    io::TensorReader(storages).read(graph::TensorId{0}, offset, std::as_writable_bytes(std::span(result)));
    return result;
  }

  void expect_whole(const graph::Tensor& tensor) {
    const std::string wanted = expected(tensor);
    EXPECT_EQ(read(tensor, 0, wanted.size()), wanted)
        << fmt::format("[{}] by [{}]", fmt::join(tensor.shape, ","), fmt::join(tensor.strides, ","));
  }

  const std::string bytes_ = random_bytes();
  testing::TemporaryFolder folder_;
  graph::MetaGraph graph_;
};

TEST_F(TensorReading, TypicalViews) {
  for (const std::uint32_t storage : {0U, 1U})
    for (const graph::Tensor& tensor : {
             graph::Tensor{
                 "transposed", graph::DType::f32, {300, 200}, {1, 300}, graph::StorageId{storage}, 64},
             graph::Tensor{"columns", graph::DType::f16, {100, 7}, {500, 1}, graph::StorageId{storage}, 6},
             graph::Tensor{"one column", graph::DType::f32, {100}, {2000}, graph::StorageId{storage}, 0},
             graph::Tensor{
                 "every other", graph::DType::f64, {50, 40}, {400, 2}, graph::StorageId{storage}, 8},
             graph::Tensor{
                 "expanded rows", graph::DType::i16, {30, 50}, {0, 1}, graph::StorageId{storage}, 2},
             graph::Tensor{
                 "expanded columns", graph::DType::i16, {50, 30}, {1, 0}, graph::StorageId{storage}, 2},
             graph::Tensor{"one element", graph::DType::u8, {1000}, {0}, graph::StorageId{storage}, 9},
             graph::Tensor{"permuted",
                           graph::DType::u8,
                           {5, 13, 11, 7},
                           {1, 5 * 7 * 11, 5, 5 * 11},
                           graph::StorageId{storage},
                           3},
             graph::Tensor{"overlapping", graph::DType::u8, {10, 10}, {1, 1}, graph::StorageId{storage}, 0},
             graph::Tensor{
                 "ones", graph::DType::c128, {1, 9, 1, 4, 1}, {3, 1, 5, 9, 7}, graph::StorageId{storage}, 16},
         })
      expect_whole(tensor);
}

TEST_F(TensorReading, AnyRangeOfRandomViews) {
  std::mt19937 random(3);
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  const graph::DType types[] = {graph::DType::u8, graph::DType::f16, graph::DType::f32, graph::DType::f64,
                                graph::DType::c128};
  for (int round = 0; round < 300; ++round) {
    graph::Tensor tensor{"t", types[up_to(4)], {}, {}, graph::StorageId{0}, 0};
    for (std::uint64_t rank = 1 + up_to(4); rank-- > 0;) {
      tensor.shape.push_back(1 + up_to(8));
      tensor.strides.push_back(up_to(round % 2 == 0 ? 40 : 2000));
    }
    const std::string wanted = expected(tensor);
    expect_whole(tensor);
    const std::uint64_t from = up_to(wanted.size()), count = up_to(wanted.size() - from);
    EXPECT_EQ(read(tensor, from, count), wanted.substr(from, count)) << round;
  }
}

TEST_F(TensorReading, RefusesRangesOutsideAndPackedTypes) {
  const graph::Tensor tensor{"t", graph::DType::f32, {3, 2}, {1, 3}, graph::StorageId{0}, 0};
  EXPECT_THROW(read(tensor, 20, 8), Error);
  EXPECT_THROW(read(tensor, 25, 0), Error);
  EXPECT_EQ(read(tensor, 24, 0), "");
  EXPECT_THROW(read(graph::Tensor{"q", graph::DType::i4, {4, 2}, {1, 4}, graph::StorageId{0}, 0}, 0, 4),
               Error);
}

}  // namespace

}  // namespace loadline::tests
