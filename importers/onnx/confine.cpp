// seccomp(2), filter mode: a list of allowed calls as a classic BPF program.
#include "importers/onnx/forward.h"

#include <cerrno>
#include <cstddef>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

}  // namespace loadline::importers
