// Files: exact reads, whole outputs.
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline {
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
  const SourceFile files[] = {SourceFile::open(folder / "whole"),
                              SourceFile::from_memory("whole", testing::as_bytes("0123456789"))};
  for (const SourceFile& whole : files) {
    const SourceFile part = whole.part("part", 2, 6).part("part of it", 1, 4);
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
  for (const SourceFile& file :
       {SourceFile::open(folder / "f"), SourceFile::from_memory("f", as_bytes("0123456789"))}) {
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
  const SourceFile file = SourceFile::open(folder / "f");
  std::filesystem::resize_file(folder / "f", 100);
  std::vector<std::byte> out(5000);
  EXPECT_THROW(file.read_at(0, out), Error);
}

TEST(SourceFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(SourceFile::open(folder.path().string()), Error);
  EXPECT_THROW(SourceFile::open(folder / "absent"), Error);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(SourceFile::open(folder / "pipe"), Error);  // and does not wait for a writer
  EXPECT_THROW(SourceFile::open("/dev/zero"), Error);
}

TEST(AtomicFile, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  {
    AtomicFile file(folder / "target");
    file.preallocate(6);
    file.write_at(0, as_bytes("new"));
    EXPECT_EQ(read_file(folder / "target"), "old");
    EXPECT_EQ(entries(folder.path()), 2u);
  }
  EXPECT_EQ(read_file(folder / "target"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);

  AtomicFile file(folder / "target");
  file.write_at(0, as_bytes("new"));
  file.commit();
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, HasOrdinaryPermissions) {
  const TemporaryFolder folder;
  write_file(folder / "plain", "x");
  AtomicFile file(folder / "target");
  file.commit();
  struct stat plain = {}, made = {};
  ::stat((folder / "plain").c_str(), &plain);
  ::stat((folder / "target").c_str(), &made);
  EXPECT_EQ(plain.st_mode, made.st_mode);
}

TEST(AtomicFile, AFolderThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(AtomicFile(folder / "no/such/file"), Error);
}

TEST(AtomicFile, WhatIsNoFileIsLeftAlone) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(AtomicFile(folder / "pipe"), Error);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_THROW(AtomicFile("/dev/null"), Error);
}

TEST(AtomicFile, MoreThanTheDiskHoldsFailsBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "huge");
  EXPECT_THROW(file.preallocate(std::uint64_t{1} << 60), Error);
}

TEST(StorageReader, RefusesAFileThatWasReplaced) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100, 200});
  {
    const StorageReader reader(graph);
    std::vector<std::byte> out(200);
    reader.read(StorageId{1}, 0, out);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), out.size()),
              read_file(graph->files[0].path).substr(graph->storages[1].offset, 200));
  }
  write_file(graph->files[0].path, "something else");
  const StorageReader reader(graph);
  std::vector<std::byte> out(1);
  EXPECT_THROW(reader.read(StorageId{0}, 0, out), Error);
}

TEST(StorageReader, AModelWithoutFilesHasNoBytes) {
  auto graph = std::make_shared<MetaGraph>();
  graph->storages = {shapes_only_storage(8)};
  const StorageReader reader(graph);
  std::vector<std::byte> out(1);
  EXPECT_THROW(reader.read(StorageId{0}, 0, out), Error);
}

TEST(ProcessMemory, SeesTouchedPages) {
  const ProcessMemoryCounters before = read_process_memory();
  EXPECT_GT(before.rss_anon, 0u);
  const std::vector<char> touched(32 << 20, 'x');
  asm volatile("" : : "r"(touched.data()) : "memory");  // an unused vector would be optimised away
  const std::uint64_t after = read_process_memory().rss_anon;
  EXPECT_GE(after - before.rss_anon, 30u << 20);
}

void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(ControlGroups, TheLeastRoomOfAGroupAndThoseAboveIt) {
  const testing::TemporaryFolder folder;
  const std::string root = folder / "cgroup";
  EXPECT_EQ(control_group_room("0::/\n", root), UINT64_MAX);
  write_text(root + "/jobs/memory.max", "1000\n");
  write_text(root + "/jobs/memory.current", "700\n");
  write_text(root + "/jobs/memory.stat", "anon 400\ninactive_file 200\nactive_file 100\n");
  write_text(root + "/jobs/one/memory.max", "max\n");
  write_text(root + "/jobs/two/memory.max", "500\n");
  write_text(root + "/jobs/two/memory.current", "450\n");
  write_text(root + "/jobs/two/memory.stat", "anon 450\ninactive_file 0\nactive_file 0\n");
  EXPECT_EQ(control_group_room("0::/\n", root), UINT64_MAX);
  EXPECT_EQ(control_group_room("0::/jobs/one\n", root), 600u);
  EXPECT_EQ(control_group_room("0::/jobs/two\n", root), 50u);
  EXPECT_EQ(control_group_room("0::/jobs/three\n", root), 600u);
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
  EXPECT_EQ(control_group_room("4:memory:/pod/one\n3:cpu:/\n0::/\n", root), UINT64_MAX);
  // the limit of the group above is shared with others
  group("/pod", "8000", "7250");
  EXPECT_EQ(control_group_room("4:memory:/pod/one\n3:cpu:/\n0::/\n", root), 1000u);
  EXPECT_EQ(control_group_room("4:cpu,memory:/pod/one\n0::/\n", root), 1000u);
  // in a container the group is the root, whatever its name is outside
  group("", "1000", "1200");
  EXPECT_EQ(control_group_room("4:memory:/docker/abc\n", root), 50u);
}

}  // namespace
}  // namespace loadline
