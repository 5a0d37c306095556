// Preloaded: makes calls that change files fail, or ends the process at them. Only files below the folders of
// LOADLINE_FAULT_FOLDER count, which are separated by colons. LOADLINE_FAULT is one of
//
//   CALL:N    the N-th call of one kind fails with EIO: pwrite, pread, fsync, rename, fallocate, or wait: a
//             sync_file_range that waits for the disk
//   error@N   the N-th changing call of any kind fails with EIO
//   kill@N    the process is killed before it
//   torn@N    the process is killed behind it; of a write only half is done
//
// LOADLINE_FAULT_LOG is a file that gets a line for each changing call. LOADLINE_FAULT_DISK is what the file system
// does: `no open` refuses O_DIRECT when a file is opened, `no write` when it is written, `short` writes less than it is
// asked to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum Fate { GOES_ON, FAILS, DIES_BEHIND };

static int is_watched(const char* path) {
  const char* folders = getenv("LOADLINE_FAULT_FOLDER");
  while (folders && *folders) {
    const size_t length = strcspn(folders, ":");
    if (length && strncmp(path, folders, length) == 0 && (path[length] == '/' || !path[length])) return 1;
    folders += length + (folders[length] == ':');
  }
  return 0;
}

static int path_of(int fd, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return 1;
}

// The fate of a call for a file, which is given by a descriptor, or by a path below a descriptor.
static enum Fate fate(const char* call, int changes, int fd, const char* name) {
  static int calls, changing;
  char path[8192] = "";
  if (!name) {
    if (!path_of(fd, path, sizeof path)) return GOES_ON;
  } else if (name[0] == '/') {
    snprintf(path, sizeof path, "%s", name);
  } else {
    if (fd == AT_FDCWD ? !getcwd(path, sizeof path - 1) : !path_of(fd, path, sizeof path)) return GOES_ON;
    const size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
  }
  if (!is_watched(path)) return GOES_ON;
  const char* wanted = getenv("LOADLINE_FAULT");
  const char* log = getenv("LOADLINE_FAULT_LOG");
  if (log && changes) {
    char line[8400];
    const int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    const int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    (void)!syscall(SYS_write, file, line, length);
    syscall(SYS_close, file);
  }
  if (!wanted) return GOES_ON;
  const size_t length = strlen(call);
  if (strncmp(wanted, call, length) == 0 && wanted[length] == ':')
    return __sync_add_and_fetch(&calls, 1) == atoi(wanted + length + 1) ? FAILS : GOES_ON;
  const char* at = strchr(wanted, '@');
  if (!at || !changes || __sync_add_and_fetch(&changing, 1) != atoi(at + 1)) return GOES_ON;
  if (wanted[0] == 'e') return FAILS;
  if (wanted[0] == 'k') kill(getpid(), SIGKILL);
  return DIES_BEHIND;
}

static int failed(void) {
  errno = EIO;
  return -1;
}

#define CHANGE(call, fd, name, result, next)           \
  do {                                                 \
    const enum Fate fate_ = fate(call, 1, fd, name);   \
    if (fate_ == FAILS) return failed();               \
    const result done_ = next;                         \
    if (fate_ == DIES_BEHIND) kill(getpid(), SIGKILL); \
    return done_;                                      \
  } while (0)

static int disk_is(const char* what) {
  const char* disk = getenv("LOADLINE_FAULT_DISK");
  return disk && strcmp(disk, what) == 0;
}

static int refused(void) {
  errno = EINVAL;
  return -1;
}

static size_t torn(enum Fate fate, size_t size) { return fate == DIES_BEHIND ? size / 2 : size; }

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  if (disk_is("no write") && fcntl(fd, F_GETFL) & O_DIRECT) return refused();
  const enum Fate now = fate("pwrite", 1, fd, NULL);
  if (now == FAILS) return failed();
  if (disk_is("short") && size >= 4096) size = size * 2 / 3 / 512 * 512;
  const ssize_t done = NEXT(pwrite)(fd, bytes, torn(now, size), at);
  if (now == DIES_BEHIND) kill(getpid(), SIGKILL);
  return done;
}
ssize_t write(int fd, const void* bytes, size_t size) {
  const enum Fate now = fate("write", 1, fd, NULL);
  if (now == FAILS) return failed();
  const ssize_t done = NEXT(write)(fd, bytes, torn(now, size));
  if (now == DIES_BEHIND) kill(getpid(), SIGKILL);
  return done;
}
ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  return fate("pread", 0, fd, NULL) == FAILS ? failed() : NEXT(pread)(fd, bytes, size, at);
}
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (flags & O_DIRECT && disk_is("no open")) return refused();
  if (!(flags & O_CREAT)) return NEXT(open)(path, flags, mode);
  CHANGE("create", AT_FDCWD, path, int, NEXT(open)(path, flags, mode));
}
int fsync(int fd) { CHANGE("fsync", fd, NULL, int, NEXT(fsync)(fd)); }
int fdatasync(int fd) { CHANGE("fdatasync", fd, NULL, int, NEXT(fdatasync)(fd)); }
int sync_file_range(int fd, off_t at, off_t size, unsigned flags) {
  const int waits = (flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0;
  return waits && fate("wait", 0, fd, NULL) == FAILS ? failed() : NEXT(sync_file_range)(fd, at, size, flags);
}
int ftruncate(int fd, off_t size) { CHANGE("ftruncate", fd, NULL, int, NEXT(ftruncate)(fd, size)); }
int fallocate(int fd, int mode, off_t at, off_t size) {
  CHANGE("fallocate", fd, NULL, int, NEXT(fallocate)(fd, mode, at, size));
}
int renameat2(int from, const char* a, int to, const char* b, unsigned flags) {
  CHANGE("rename", to, b, int, NEXT(renameat2)(from, a, to, b, flags));
}
int rename(const char* a, const char* b) { CHANGE("rename", AT_FDCWD, b, int, NEXT(rename)(a, b)); }
int link(const char* a, const char* b) { CHANGE("link", AT_FDCWD, b, int, NEXT(link)(a, b)); }
int linkat(int from, const char* a, int to, const char* b, int flags) {
  CHANGE("link", to, b, int, NEXT(linkat)(from, a, to, b, flags));
}
int unlink(const char* path) { CHANGE("unlink", AT_FDCWD, path, int, NEXT(unlink)(path)); }
int unlinkat(int fd, const char* path, int flags) {
  CHANGE("unlink", fd, path, int, NEXT(unlinkat)(fd, path, flags));
}
int remove(const char* path) { CHANGE("unlink", AT_FDCWD, path, int, NEXT(remove)(path)); }
int rmdir(const char* path) { CHANGE("rmdir", AT_FDCWD, path, int, NEXT(rmdir)(path)); }
int mkdir(const char* path, mode_t mode) { CHANGE("mkdir", AT_FDCWD, path, int, NEXT(mkdir)(path, mode)); }
