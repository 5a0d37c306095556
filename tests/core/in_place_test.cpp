// Exchanges in place: whole, refused, interrupted at every byte.
#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "tests/support/builders.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

namespace loadline {
namespace {

using testing::as_bytes;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

class InPlace : public ::testing::Test {
 protected:
  void replace(
      std::string_view before, std::string_view after, const std::function<void()>& check = [] {}) {
    replace_in_place(path, as_bytes(before), as_bytes(after), check);
  }
  // The words of the Error, or "".
  std::string fault(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }
  std::size_t entries() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
  }

  TemporaryFolder folder;
  std::string path = folder / "model";
};

TEST_F(InPlace, ReplacesTheBeginningAndLeavesNothing) {
  write_file(path, "old header, data");
  replace("old header", "new header");
  EXPECT_EQ(read_file(path), "new header, data");
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(recover_in_place(path), Recovery::none);
}

TEST_F(InPlace, TheBackupIsThereWhileTheCheckRuns) {
  write_file(path, "old");
  replace("old", "new", [&] {
    EXPECT_TRUE(edit_was_interrupted(path));
    EXPECT_EQ(read_file(path), "new");
  });
}

TEST_F(InPlace, AFailedCheckPutsTheOldBytesBack) {
  write_file(path, "old header, data");
  EXPECT_TRUE(
      says(fault([&] { replace("old header", "new header", [] { throw Error(ErrorCode::io, "not so"); }); }),
           "not so"));
  EXPECT_EQ(read_file(path), "old header, data");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(InPlace, AnInterruptionAfterAnyByteIsUndone) {
  const std::string before = "old header", after = "new HEADER";
  for (std::size_t written = 0; written <= before.size(); ++written) {
    write_file(path, before + ", data");
    save_edit_backup(path, as_bytes(before), as_bytes(after));
    write_file(path, after.substr(0, written) + before.substr(written) + ", data");
    EXPECT_TRUE(edit_was_interrupted(path));
    const bool complete = written == before.size();
    EXPECT_EQ(recover_in_place(path), complete ? Recovery::done : Recovery::undone);
    EXPECT_EQ(read_file(path), (complete ? after : before) + ", data");
    EXPECT_EQ(entries(), 1u);
  }
}

TEST_F(InPlace, PagesMayReachTheDiskInAnyOrder) {
  write_file(path, "abcdef");
  save_edit_backup(path, as_bytes("abcdef"), as_bytes("ABCDEF"));
  write_file(path, "abCDeF");
  EXPECT_EQ(recover_in_place(path), Recovery::undone);
  EXPECT_EQ(read_file(path), "abcdef");
}

TEST_F(InPlace, AnotherFileIsNotTouched) {
  write_file(path, "abcdef");
  save_edit_backup(path, as_bytes("abc"), as_bytes("xyz"));
  write_file(path, "abQdef");
  EXPECT_TRUE(says(fault([&] { recover_in_place(path); }), "its byte 2 is neither the old nor the new one"));
  write_file(path, "abcdefg");
  EXPECT_TRUE(says(fault([&] { recover_in_place(path); }), "it has 7 bytes now and had 6"));
  EXPECT_EQ(read_file(path), "abcdefg");
  EXPECT_TRUE(says(fault([&] { replace("abc", "xyz"); }), "an edit of this file was interrupted"));
}

TEST_F(InPlace, DamagedBackupsAreRefused) {
  write_file(path, "abcdef");
  save_edit_backup(path, as_bytes("abc"), as_bytes("xyz"));
  const std::string backup = edit_backup_path(path), whole = read_file(backup);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    write_file(backup, whole.substr(0, cut));
    EXPECT_TRUE(says(fault([&] { recover_in_place(path); }), "damaged backup")) << cut;
  }
  for (std::size_t at = 24; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write_file(backup, changed);
    EXPECT_NE(fault([&] { recover_in_place(path); }), "") << at;
  }
  std::filesystem::resize_file(backup, std::uint64_t{1} << 40);  // sparse
  EXPECT_TRUE(says(fault([&] { recover_in_place(path); }), "damaged backup"));
  EXPECT_EQ(read_file(path), "abcdef");
}

TEST_F(InPlace, RefusesOtherContentSizesLinksAndLockedFiles) {
  write_file(path, "abcdef");
  EXPECT_TRUE(says(fault([&] { replace("abX", "xyz"); }), "was changed by another program"));
  EXPECT_TRUE(says(fault([&] { replace("abc", "wxyz"); }), "4 bytes cannot replace 3"));
  EXPECT_TRUE(says(fault([&] { replace("abcdefg", "xxxxxxx"); }), "ends early"));
  const int other = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_TRUE(says(fault([&] { replace("abc", "xyz"); }), "is being edited by another process"));
  ::close(other);
  std::filesystem::create_hard_link(path, folder / "second");
  EXPECT_TRUE(says(fault([&] { replace("abc", "xyz"); }), "has 2 names"));
  EXPECT_EQ(read_file(path), "abcdef");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(InPlace, LinksToTheFileHaveTheSameBackup) {
  write_file(path, "abc");
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_EQ(edit_backup_path(folder / "link"), edit_backup_path(path));
}

}  // namespace
}  // namespace loadline
