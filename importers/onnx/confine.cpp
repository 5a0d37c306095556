// A child with limits (fork(2), setrlimit(2), prctl(2)); seccomp(2), filter mode: a list of allowed calls as
// a classic BPF program.
#include "core/base/checked_arithmetic.h"
#include "core/io/file_system.h"
#include "importers/onnx/forward.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::importers {

void confine_to_memory() {
#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
  constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#else
  constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  // The calls that malloc, exceptions, abort() and exit use, and those of sanitizers, which probe memory by
  // pipes.
  std::vector<unsigned> allowed = {
      SYS_pipe2,      SYS_read,           SYS_write,        SYS_close,         SYS_brk,
      SYS_mmap,       SYS_munmap,         SYS_mremap,       SYS_mprotect,      SYS_madvise,
      SYS_futex,      SYS_getpid,         SYS_gettid,       SYS_clock_gettime, SYS_getrandom,
      SYS_exit,       SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sigaltstack,   SYS_rt_sigreturn,
      SYS_exit_group, SYS_sched_yield};
#if defined(SYS_pipe)
  allowed.push_back(SYS_pipe);
#endif
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const unsigned call : allowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
#endif
}

// --- Runs something in a child and receives its answer.

namespace {

using Clock = std::chrono::steady_clock;

// The child sends one byte, then the answer or the reason of its failure, then closes the pipe.
constexpr char kAnswered = 'A';
constexpr char kRefused = 'R';
constexpr std::size_t kMostReason = 300;

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = io::uninterrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (wrote <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void limit(decltype(RLIMIT_AS) what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(what, &both);
}

// Runs in the child and never returns. This program's handlers must not run there, and nothing may be
// printed.
[[noreturn]] void child(const std::function<std::string()>& work, int out, std::uint64_t address_space,
                        const InferenceLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // No other file stays open: a second child's pipe, inherited here, would keep its reader waiting.
  constexpr int kOut = STDERR_FILENO + 1;
  ::dup2(out, kOut);
  ::close_range(kOut + 1, ~0U, 0);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE, SIGXCPU})
    ::signal(signal, SIG_DFL);
  if (const int nowhere = ::open("/dev/null", O_RDWR); nowhere >= 0)
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, address_space);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.time.count() / 1000 + 1));
  confine_to_memory();
  std::string answer;
  try {
    answer = kAnswered + work();
  } catch (const std::exception& error) {
    // not a string: there may be no memory for one, and what is thrown here must not leave the child
    write_all(kOut, std::string_view(&kRefused, 1));
    write_all(kOut, std::string_view(error.what()).substr(0, kMostReason));
  } catch (...) {
    write_all(kOut, "Rthe library threw something unknown");
  }
  write_all(kOut, answer);
  ::_exit(0);
}

// This process's virtual memory in bytes; 0 if unknown. It differs by terabytes with and without
// sanitizers.
std::uint64_t own_address_space() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Reads until the end of the pipe. Gives the reason if the end does not come in time or the answer is too
// large.
struct Received {
  std::string bytes;
  std::string failure;
};
Received receive(int in, const InferenceLimits& limits, Clock::time_point deadline) {
  Received received;
  std::array<char, 64 << 10> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      received.failure = fmt::format("it took more than {} ms", limits.time.count());
      return received;
    }
    pollfd waiting{in, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) <= 0) continue;
    const ssize_t got = io::uninterrupted([&] { return ::read(in, buffer.data(), buffer.size()); });
    if (got <= 0) return received;
    received.bytes.append(buffer.data(), static_cast<std::size_t>(got));
    if (received.bytes.size() > limits.most_answer) {
      received.failure = fmt::format("its answer has more than {} bytes", limits.most_answer);
      return received;
    }
  }
}

Inference failed(std::string why) { return {{}, std::move(why)}; }

}  // namespace

Inference run_confined(const std::function<std::string()>& work, const InferenceLimits& limits) {
  const std::uint64_t space = own_address_space();
  const auto most = checked_add(space, limits.memory);
  int ends[2] = {-1, -1};
  if (space == 0 || !most || ::pipe2(ends, O_CLOEXEC) != 0)
    return failed("no process for it could be prepared");
  const io::UniqueFd in(ends[0]);
  io::UniqueFd out(ends[1]);
  const Clock::time_point deadline = Clock::now() + limits.time;
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("no process for it: {}", std::strerror(errno)));
  if (pid == 0) child(work, out.get(), *most, limits);
  out = io::UniqueFd();

  Received received = receive(in.get(), limits, deadline);
  ::kill(pid, SIGKILL);  // has ended already, unless it was too slow or sent too much
  int status = 0;
  (void)io::uninterrupted([&] { return ::waitpid(pid, &status, 0); });
  if (!received.failure.empty()) return failed(std::move(received.failure));
  if (received.bytes.starts_with(kAnswered) && WIFEXITED(status)) return {received.bytes.substr(1), {}};
  if (received.bytes.starts_with(kRefused)) return failed(received.bytes.substr(1, kMostReason));
  if (WIFSIGNALED(status)) return failed(fmt::format("it was stopped by signal {}", WTERMSIG(status)));
  return failed("it gave no answer");
}

}  // namespace loadline::importers
