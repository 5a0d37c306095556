// Does something in a process of its own: a limit that is set there, or a kill, does not reach this one.
#pragma once

#include "core/base/error.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

namespace loadline::lesson {

// How a child ended.
template <typename Result>
struct ChildEnd {
  std::optional<Result> result = {};  // what it returned; absent if it was killed
  int signal = 0;                     // that killed it
};

// Counters of the calling process by system calls alone, as a child of a program with threads may use them:
// no allocation, no locks. Bytes; 0 where the system does not tell.
struct OwnCounters {
  std::uint64_t rss_anon = 0, rss_file = 0;
  std::uint64_t data = 0;       // VmData: private writable mappings
  std::uint64_t committed = 0;  // Committed_AS of the whole system
  std::uint64_t major_faults = 0;
};
OwnCounters own_counters();
// Reads a byte of every page.
void touch_pages(const void* pages, std::size_t bytes);
inline constexpr std::size_t kPageBytes = 4096;
inline std::uint64_t growth(std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; }

// Forks; the child calls `work()`, whose result comes back. `work` may make system calls only. Throws
// Error{io} if there can be no child.
template <typename Work, typename Result = std::invoke_result_t<Work>>
ChildEnd<Result> in_child(Work work) {
  static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= 4096);  // one write to a pipe
  int ends[2];
  if (::pipe(ends) != 0) throw Error(ErrorCode::io, "no pipe to a child process: error {}", errno);
  const pid_t child = ::fork();
  if (child < 0) {
    const int failed = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw Error(ErrorCode::io, "no child process: error {}", failed);
  }
  if (child == 0) {
    ::close(ends[0]);
    const Result result = work();
    const bool whole = ::write(ends[1], &result, sizeof(result)) == static_cast<ssize_t>(sizeof(result));
    ::_exit(whole ? 0 : 1);
  }
  ::close(ends[1]);
  ChildEnd<Result> end;
  Result result{};
  ssize_t got = 0;
  do got = ::read(ends[0], &result, sizeof(result));
  while (got < 0 && errno == EINTR);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof(result))) end.result = result;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace loadline::lesson
