// One line a checkpoint: `at xxh3 check` in hexadecimal, where check is the XXH3-64 of the text before it. A
// line that was cut off, or that the disk lost, does not match and ends the log.
#include "exporters/writer/checkpoints.h"

#include "core/base/error.h"
#include "core/io/file_lock.h"
#include "core/io/xxh3.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline {
namespace {

constexpr std::size_t kLine = 16 + 1 + 16 + 1 + 16 + 1;
constexpr std::size_t kMostLines = 1 << 20;

std::string line_of(const Checkpoint& checkpoint) {
  const std::string text = fmt::format("{:016x} {:016x} ", checkpoint.at, checkpoint.xxh3);
  Xxh3 check;
  check.update(std::as_bytes(std::span(text)));
  return fmt::format("{}{:016x}\n", text, check.digest());
}

std::uint64_t hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::vector<Checkpoint> read_lines(int fd) {
  std::vector<Checkpoint> checkpoints;
  std::array<char, kLine> line = {};
  for (std::size_t i = 0; i < kMostLines; ++i) {
    const ssize_t got = ::pread(fd, line.data(), kLine, static_cast<off_t>(i * kLine));
    if (got != static_cast<ssize_t>(kLine)) break;
    const std::string_view text(line.data(), kLine);
    const Checkpoint checkpoint{hexadecimal(text.substr(0, 16)), hexadecimal(text.substr(17, 16))};
    if (line_of(checkpoint) != text) break;
    if (!checkpoints.empty() && checkpoint.at <= checkpoints.back().at) break;
    checkpoints.push_back(checkpoint);
  }
  return checkpoints;
}

}  // namespace

PartLog::PartLog(UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), lines_(read_lines(fd_.get()).size()) {}

std::optional<PartLog> PartLog::claim(const std::string& path) {
  UniqueFd fd = lock_file(path, LockKind::exclusive);
  if (!fd) return std::nullopt;
  return PartLog(std::move(fd), path);
}

std::vector<Checkpoint> PartLog::read() const { return read_lines(fd_.get()); }

void PartLog::append(const Checkpoint& checkpoint) {
  // behind the last whole line: a line that a crash has cut is written over
  const auto at = static_cast<off_t>(lines_ * kLine);
  const std::string line = line_of(checkpoint);
  if (::pwrite(fd_.get(), line.data(), line.size(), at) != static_cast<ssize_t>(line.size()) ||
      ::fdatasync(fd_.get()) != 0)
    throw system_error(path_, "note what is written", errno);
  ++lines_;
}

void PartLog::clear() {
  if (::ftruncate(fd_.get(), 0) != 0) throw system_error(path_, "empty", errno);
  lines_ = 0;
}

std::vector<Checkpoint> read_part_log(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? read_lines(fd.get()) : std::vector<Checkpoint>();
}

}  // namespace loadline
