// Preloaded: makes allocations or fstat fail, once the program has reached its main().
//   LOADLINE_FAULT=alloc:N    the N-th allocation has no memory
//   LOADLINE_FAULT=alloc:N+   neither has any later one
//   LOADLINE_FAULT=fstat:N    the N-th fstat fails with ESTALE; with + every later one too
// LOADLINE_FAULT_COUNT=FILE: writes there how many of these calls there were.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;
static atomic_int begun;
static char kind;  // of the calls that count: 'a' or 'f'
static long at;
static int lasts;
static pid_t owner;

static int fails(char call) {
  if (!begun || call != kind || getpid() != owner) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  return number == at || (lasts && number > at);
}

static void report(void) {
  const char* path = getenv("LOADLINE_FAULT_COUNT");
  if (!path || getpid() != owner) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", calls);
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file >= 0) (void)!write(file, text, (size_t)size);
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  const char* fault = getenv("LOADLINE_FAULT");
  if (fault && strchr(fault, ':')) {
    kind = fault[0];
    at = atol(strchr(fault, ':') + 1);
    lasts = strchr(fault, '+') != NULL;
    owner = getpid();
    begun = 1;
  }
  const int code = real_main(argc, argv, environment);
  begun = 0;
  if (fault) report();
  return code;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  real_main = main;
  __typeof__(&__libc_start_main) next = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
  return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static void* no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

void* malloc(size_t bytes) { return fails('a') ? no_memory() : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails('a') ? no_memory() : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return fails('a') ? no_memory() : __libc_realloc(old, bytes); }
void* aligned_alloc(size_t unit, size_t bytes) {
  return fails('a') ? no_memory() : __libc_memalign(unit, bytes);
}
void* memalign(size_t unit, size_t bytes) { return fails('a') ? no_memory() : __libc_memalign(unit, bytes); }
int posix_memalign(void** out, size_t unit, size_t bytes) {
  if (fails('a')) return ENOMEM;
  *out = __libc_memalign(unit, bytes);
  return *out ? 0 : ENOMEM;
}
void* mmap(void* where, size_t bytes, int access, int flags, int fd, off_t from) {
  if (fails('a')) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mmap, where, bytes, access, flags, fd, from);
}

int fstat(int fd, struct stat* status) {
  if (fails('f')) {
    errno = ESTALE;
    return -1;
  }
  return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}
