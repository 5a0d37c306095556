// Anonymous and file-backed memory under a limit: what the kernel says to each.
#include "app/lesson/child.h"
#include "app/lesson/runs.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace loadline::lesson {
namespace {

// What a child finds.
struct Found {
  bool limit_set = false;
  int refused = 0;               // errno of an anonymous mapping over the limit; 0: it was granted
  bool smaller_granted = false;  // an anonymous mapping under the limit
  bool file_mapped = false;
  std::uint64_t limit = 0;
  OwnCounters start, promised, half, mapped, read;
};

Found try_limits(int file, std::uint64_t bytes) {
  Found found;
  found.start = own_counters();
  const std::size_t size = static_cast<std::size_t>(bytes);
  // first without a limit: a promise costs nothing until it is used
  void* const promise = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  found.promised = own_counters();
  if (promise != MAP_FAILED) {
    for (std::size_t at = 0; at < size / 2; at += kPageBytes) static_cast<volatile char*>(promise)[at] = 1;
    found.half = own_counters();
    ::munmap(promise, size);
  }
  // then with one that leaves room for half the file
  rlimit limit{};
  found.limit = own_counters().data + bytes / 2;
  limit.rlim_cur = limit.rlim_max = found.limit;
  found.limit_set = ::setrlimit(RLIMIT_DATA, &limit) == 0;
  void* const over = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  found.refused = over == MAP_FAILED ? errno : 0;
  if (over != MAP_FAILED) ::munmap(over, size);
  void* const under = ::mmap(nullptr, size / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  found.smaller_granted = under != MAP_FAILED;
  if (under != MAP_FAILED) ::munmap(under, size / 4);
  void* const pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  found.file_mapped = pages != MAP_FAILED;
  found.mapped = own_counters();
  if (pages != MAP_FAILED) {
    touch_pages(pages, size);
    found.read = own_counters();
    ::munmap(pages, size);
  }
  return found;
}

int overcommit_mode() {
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = -1;
  file >> mode;
  return mode;
}

}  // namespace

RunResult run_commit(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const OpenFile largest = largest_file(*model.graph());
  const auto end = in_child([&] { return try_limits(largest.file.descriptor(), largest.bytes); });
  if (!end.result)
    throw Error(ErrorCode::io, "the child process that tries the limits was killed by signal {}", end.signal);
  const Found& found = *end.result;
  const bool limits = found.limit_set && found.refused != 0 && found.smaller_granted;
  RunResult result;
  const std::uint64_t promised = growth(found.start.committed, found.promised.committed);
  result.figures = {
      {"file", run_bytes(largest.bytes)},
      {"limit", run_bytes(largest.bytes / 2)},
      {"promised", run_bytes(promised)},
      {"promised_rss", run_bytes(growth(found.start.rss_anon, found.promised.rss_anon))},
      {"half_rss", run_bytes(growth(found.start.rss_anon, found.half.rss_anon))},
      {"limit_works", Datum(std::int64_t{limits})},
      {"answer", Datum(std::string(found.refused == 0 ? "granted" : ::strerror(found.refused)))},
      {"file_mapped", Datum(std::int64_t{found.file_mapped})},
      {"file_rss", run_bytes(growth(found.mapped.rss_file, found.read.rss_file))},
      {"file_anon", run_bytes(growth(found.mapped.rss_anon, found.read.rss_anon))}};
  const int mode = overcommit_mode();
  auto& lines = result.lines;
  lines.push_back(run_line("anonymous memory asked for", format_bytes(largest.bytes)));
  lines.push_back(
      run_line("  commit charge grew by", format_bytes(promised), "Committed_AS, of the whole system"));
  lines.push_back(run_line("  resident after asking",
                           format_bytes(growth(found.start.rss_anon, found.promised.rss_anon)), "RssAnon"));
  lines.push_back(run_line("  resident after half was used",
                           format_bytes(growth(found.start.rss_anon, found.half.rss_anon)), "RssAnon"));
  lines.push_back(
      run_line("limit on private memory, on top", format_bytes(largest.bytes / 2), "RLIMIT_DATA"));
  if (!found.limit_set)
    lines.push_back("  The system refused the limit: what follows ran without one.");
  else if (!limits)
    lines.push_back("  The limit limits nothing here: memory beyond it was granted. Do not trust it.");
  lines.push_back(run_line("  the same anonymous memory", found.refused == 0 ? "granted" : "refused",
                           found.refused == 0 ? "" : ::strerror(found.refused)));
  lines.push_back(run_line("  a quarter of it", found.smaller_granted ? "granted" : "refused"));
  lines.push_back(run_line("  the file, mapped", found.file_mapped ? "granted" : "refused"));
  lines.push_back(run_line("  resident after reading all",
                           format_bytes(growth(found.mapped.rss_file, found.read.rss_file)), "RssFile"));
  lines.push_back(run_line("overcommit",
                           mode == 2   ? "never"
                           : mode == 1 ? "always"
                           : mode == 0 ? "guessed"
                                       : "unknown",
                           "/proc/sys/vm/overcommit_memory"));
  return result;
}

}  // namespace loadline::lesson
