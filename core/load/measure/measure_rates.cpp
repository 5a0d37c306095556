// Times reads of a temporary file that bypass the page cache, and copies in memory.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "core/load/measure/rehearse.h"
#include "core/plan/host_machine.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <span>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace loadline::load {
namespace {

constexpr std::size_t kRuns = 7;
constexpr std::size_t kChunk = 4 << 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const std::string& folder, const char* what) {
  throw Error(ErrorCode::io, "{}: {}: {}", safe_display(folder), what, std::strerror(errno));
}

// Random numbers, so that no file system can compress them.
void fill(std::span<std::byte> out) {
  std::mt19937_64 random(1);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = random();
    std::memcpy(out.data() + at, &value, sizeof(value));
  }
}

class DiskFile {
 public:
  DiskFile(const std::string& folder, std::uint64_t bytes, Progress& progress)
      : folder_(folder), bytes_(bytes), buffer_(kChunk) {
    create();
    fill(buffer_.span());
    const double start = now();
    // as conversions do; file systems that cannot reserve space are slower at both
    (void)::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes_));
    for (std::uint64_t at = 0; at < bytes_; at += kChunk) {
      progress.check_canceled();
      std::memcpy(buffer_.span().data(), &at, sizeof(at));  // makes every chunk different
      write_chunk(at);
      progress.add(kChunk);
    }
    if (::fsync(fd_.get()) != 0) fail(folder_, "cannot write out the file to measure with");
    write_seconds_ = now() - start;
    // opens the same file again; it has no name other than this one
    const std::string same = fmt::format("/proc/self/fd/{}", fd_.get());
    direct_ = io::UniqueFd(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  }

  std::string how() const {
    const io::FileSystem system = io::file_system_of(folder_);
    return fmt::format("{} on {}, {}", format_bytes(bytes_),
                       system.name.empty() ? "a file system" : system.name,
                       direct_ ? "O_DIRECT" : "page cache dropped");
  }

  // Seconds to write the file and make it durable.
  double write_seconds() const { return write_seconds_; }

  // Seconds to read `count` bytes at offset `at`.
  double read(std::uint64_t at, std::size_t count) {
    const double start = now();
    const int fd = direct_ ? direct_.get() : fd_.get();
    for (std::size_t done = 0; done < count;) {
      const ssize_t got = io::uninterrupted([&] {
        return ::pread(fd, buffer_.span().data() + done, count - done, static_cast<off_t>(at + done));
      });
      if (got < 0) fail(folder_, "cannot read the file to measure with");
      if (got == 0)
        throw Error(ErrorCode::io, "{}: the file to measure with became shorter", safe_display(folder_));
      done += static_cast<std::size_t>(got);
    }
    return now() - start;
  }

  void drop_cache(bool random) {
    if (direct_) return;
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
    (void)::posix_fadvise(fd_.get(), 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
  }

 private:
  void create() {
    constexpr mode_t kMode = 0600;
    fd_ = io::UniqueFd(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
    if (fd_) return;
    // not every file system supports unnamed files
    std::string name = folder_ + "/loadline-measure-XXXXXX";
    fd_ = io::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd_) fail(folder_, "cannot make a file to measure with");
    ::unlink(name.c_str());
  }

  void write_chunk(std::uint64_t at) {
    for (std::size_t done = 0; done < kChunk;) {
      const ssize_t put = io::uninterrupted([&] {
        return ::pwrite(fd_.get(), buffer_.span().data() + done, kChunk - done,
                        static_cast<off_t>(at + done));
      });
      if (put <= 0) fail(folder_, "cannot write the file to measure with");
      done += static_cast<std::size_t>(put);
    }
  }

  const std::string folder_;
  const std::uint64_t bytes_;
  io::Pages buffer_;
  io::UniqueFd fd_, direct_;
  double write_seconds_ = 0;
};

// Seconds in which the system gives a block of host memory with all its pages, and takes it back.
double seconds_of_pages(const io::StorageReader& nothing, const plan::Block& block) {
  plan::HostMachine machine(nothing);
  const double start = now();
  machine.alloc(plan::BlockId{0}, block);
  machine.free(plan::BlockId{0}, block);
  return now() - start;
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void measure_disk(const std::string& folder, std::uint64_t bytes, MeasuredRates& rates, Progress& progress) {
  constexpr double kPatience = 20;
  constexpr int kSeeks = 200;
  if (bytes == 0 || bytes % kChunk != 0)
    throw Error(ErrorCode::usage, "{} are not a multiple of {}", bytes, kChunk);
  progress.add_total(bytes * (1 + kRuns));
  DiskFile file(folder, bytes, progress);
  std::vector<double> wholes;
  for (const double start = now(); wholes.size() < kRuns && (wholes.empty() || now() - start < kPatience);) {
    file.drop_cache(false);
    double seconds = 0;
    for (std::uint64_t at = 0; at < bytes; at += kChunk) {
      progress.check_canceled();
      seconds += file.read(at, kChunk);
      progress.add(kChunk);
    }
    wholes.push_back(seconds);
  }
  file.drop_cache(true);
  std::mt19937_64 random(2);
  std::vector<double> seeks;
  for (int i = 0; i < kSeeks; ++i) {
    progress.check_canceled();
    seeks.push_back(file.read(random() % (bytes / io::kDirectUnit) * io::kDirectUnit, io::kDirectUnit));
  }
  rates.values["disk_read"] = static_cast<double>(bytes) / median(wholes);
  rates.how["disk_read"] = fmt::format("{}, median of {}", file.how(), wholes.size());
  rates.values["disk_write"] = static_cast<double>(bytes) / file.write_seconds();
  rates.how["disk_write"] = fmt::format("{}, written once and made durable", format_bytes(bytes));
  rates.values["seek_seconds"] = median(seeks);
  rates.how["seek_seconds"] = fmt::format("{} reads of 4 KiB in the same", kSeeks);
}

void measure_memory(std::uint64_t bytes, MeasuredRates& rates, Progress& progress) {
  const std::size_t count = bytes / io::kDirectUnit * io::kDirectUnit;
  const io::Pages source(count), target(count);
  const std::span<std::byte> from = source.span(), to = target.span();
  fill(from);
  std::memcpy(to.data(), from.data(), count);  // first touch: page faults must not count
  std::vector<double> seconds;
  for (std::size_t run = 0; run < kRuns; ++run) {
    progress.check_canceled();
    from.front() = std::byte(run);
    const double start = now();
    std::memcpy(to.data(), from.data(), count);
    seconds.push_back(now() - start);
    if (to.front() != from.front()) throw Error(ErrorCode::io, "a copy in memory differs");
  }
  rates.values["memory_copy"] = static_cast<double>(count) / median(seconds);
  rates.how["memory_copy"] = fmt::format("{}, one thread, median of {}", format_bytes(count), kRuns);

  const io::StorageReader nothing(std::make_shared<const graph::MetaGraph>());
  const plan::Block block = {.bytes = bytes,
                             .space = plan::Space::host,
                             .use = plan::BlockUse::temporary,
                             .storage = {},
                             .extra = "rates"};
  seconds.clear();
  for (std::size_t run = 0; run < kRuns; ++run) {
    progress.check_canceled();
    seconds.push_back(seconds_of_pages(nothing, block));
  }
  rates.values["host_pages"] = static_cast<double>(bytes) / median(seconds);
  rates.how["host_pages"] = fmt::format("{} given and taken back, median of {}", format_bytes(bytes), kRuns);
}

}  // namespace loadline::load
