// Reading on several threads: the bytes of each piece, the order in which pieces count as read, failures.
#include "core/io/striped_reader.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "tests/support/builders.h"
#include "tests/support/sanitizers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace loadline {
namespace {

std::vector<std::byte> read_whole(const StorageReader& reader, StorageId id) {
  std::vector<std::byte> bytes(reader.graph().storage(id).bytes);
  reader.read(id, 0, bytes);
  return bytes;
}

TEST(StripedReader, FillsEveryPieceOnAnyNumberOfThreads) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {13'000'001, 5, 1 << 20, 4 << 20, 0, 4'194'305});
  const StorageReader reader(graph);
  for (const auto& [threads, reading] : {std::pair{1u, FileReading::cached},
                                         {2u, FileReading::cached},
                                         {5u, FileReading::cached},
                                         {1u, FileReading::direct},
                                         {3u, FileReading::direct},
                                         {2u, FileReading::cold}}) {
    for (const ModelFile& file : graph->files)
      if (reading == FileReading::cold) drop_pages(SourceFile::open(file.path));
    StripedReader reads(reader, threads, reading);
    std::vector<std::vector<std::byte>> out;
    for (std::size_t i = 0; i < graph->storages.size(); ++i) out.emplace_back(graph->storages[i].bytes);
    std::mt19937_64 random(threads);
    std::vector<StripedReader::Ticket> tickets;
    for (std::size_t i = 0; i < out.size(); ++i) {
      // in two parts, so that parts of one storage are read at once
      const std::size_t cut = out[i].empty() ? 0 : random() % out[i].size();
      const StorageId id{static_cast<std::uint32_t>(i)};
      tickets.push_back(reads.start(id, 0, std::span(out[i]).first(cut)));
      tickets.push_back(reads.start(id, cut, std::span(out[i]).subspan(cut)));
    }
    EXPECT_TRUE(std::ranges::is_sorted(tickets));
    EXPECT_EQ(tickets.back(), reads.newest());
    for (std::size_t i = 0; i < out.size(); ++i) {
      reads.wait(tickets[2 * i + 1]);
      EXPECT_TRUE(reads.done(tickets[2 * i + 1]));
      EXPECT_GE(reads.complete(), tickets[2 * i + 1]);
      EXPECT_EQ(out[i], read_whole(reader, StorageId{static_cast<std::uint32_t>(i)})) << i;
    }
    EXPECT_TRUE(reads.done(0));
    EXPECT_EQ(reads.complete(), reads.newest());
  }
}

TEST(StripedReader, ThrowsWhatAReadHasThrown) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {9 << 20, 1 << 20});
  const StorageReader reader(graph);
  std::vector<std::byte> out(9 << 20);
  reader.read(StorageId{0}, 0, std::span(out).first(1));  // the file is open, and has the right size
  std::filesystem::resize_file(graph->files.front().path, 6 << 20);
  for (const FileReading reading : {FileReading::cached, FileReading::direct}) {
    StripedReader reads(reader, 3, reading);
    const StripedReader::Ticket ticket = reads.start(StorageId{0}, 0, out);
    EXPECT_THROW(reads.wait(ticket), Error);
    EXPECT_FALSE(reads.done(ticket));
    // also for a piece that could be read
    EXPECT_THROW(reads.wait(reads.start(StorageId{0}, 0, std::span(out).first(16))), Error);
  }
}

// Of many threads some start: they do the work. None: an Error, and nothing waits for ever.
TEST(StripedReader, GoesOnWithTheThreadsThatTheSystemGives) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses than a limit leaves";
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {9 << 20});
  const StorageReader reader(graph);
  std::vector<std::byte> out(9 << 20);
  // in a process of its own: the limit stays
  const auto read_within = [&](rlim_t stacks) {
    // larger than any stack that is left from threads of other tests
    constexpr rlim_t kStack = 256 << 20;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    pthread_setattr_default_np(&attributes);
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    struct rlimit limit = {};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + stacks * kStack + kStack / 2;
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      StripedReader reads(reader, 64);
      reads.wait(reads.start(StorageId{0}, 0, out));
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::limit ? 7 : 8);
    }
  };
  EXPECT_EXIT(read_within(3), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_within(0), ::testing::ExitedWithCode(7), "");
}

TEST(DirectFile, ReadsAnyRangeThroughASmallBuffer) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100'003});
  const SourceFile file = SourceFile::open(graph->files.front().path);
  const auto direct = DirectFile::open(file);
  if (!direct) GTEST_SKIP() << "this file system cannot read past the page cache";
  const Pages buffer(2 * kDirectUnit);
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t begin = random() % file.size(), most = file.size() - begin;
    std::vector<std::byte> got(round == 0 ? most : random() % (most + 1)), expected(got.size());
    direct->read_at(begin, got, buffer.span());
    file.read_at(begin, expected);
    ASSERT_EQ(got, expected) << begin;
  }
  std::vector<std::byte> past(10);
  EXPECT_THROW(direct->read_at(file.size() - 9, past, buffer.span()), Error);
  EXPECT_THROW(direct->read_at(file.size() + 9000, past, buffer.span()), Error);
}

TEST(StripedReader, EndsWhileItReads) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {64 << 20});
  const StorageReader reader(graph);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> out(64 << 20);
    StripedReader reads(reader, 4);
    reads.start(StorageId{0}, 0, out);
  }
}

}  // namespace
}  // namespace loadline
