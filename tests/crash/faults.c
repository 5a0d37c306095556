// Preloaded: makes the N-th call of one system call fail with EIO. LOADLINE_FAULT=CALL:N, where CALL is pwrite,
// pread, fsync, rename or fallocate. Only files below LOADLINE_FAULT_FOLDER count.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char* call, int fd) {
  static int calls;
  const char* fault = getenv("LOADLINE_FAULT");
  const char* folder = getenv("LOADLINE_FAULT_FOLDER");
  const size_t length = strlen(call);
  if (!fault || !folder || strncmp(fault, call, length) != 0 || fault[length] != ':') return 0;
  if (fd >= 0) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
  }
  if (__sync_add_and_fetch(&calls, 1) != atoi(fault + length + 1)) return 0;
  errno = EIO;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return fails("pwrite", fd) ? -1 : NEXT(pwrite)(fd, bytes, size, at);
}
ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  return fails("pread", fd) ? -1 : NEXT(pread)(fd, bytes, size, at);
}
int fsync(int fd) { return fails("fsync", fd) ? -1 : NEXT(fsync)(fd); }
int fallocate(int fd, int mode, off_t at, off_t size) {
  return fails("fallocate", fd) ? -1 : NEXT(fallocate)(fd, mode, at, size);
}
int renameat2(int from, const char* a, int to, const char* b, unsigned flags) {
  return fails("rename", -1) ? -1 : NEXT(renameat2)(from, a, to, b, flags);
}
