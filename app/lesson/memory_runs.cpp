// A mapped file: read, dropped, shared, and under a memory limit.
#include "app/lesson/child.h"
#include "app/lesson/runs.h"
#include "core/base/text.h"
#include "core/io/page_residency.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

namespace loadline::lesson {
namespace {

// Resident memory of a child that maps the file, in the order in which things happen to it.
struct Life {
  bool mapped = false;
  std::uint64_t before = 0, after_map = 0, after_read = 0, after_advice = 0, after_reread = 0, anon = 0;
};

// Once over a single page first: the code that runs here is pages of a file too, and must be there already.
Life live_through(int file, std::size_t bytes, bool warm = false) {
  if (!warm) (void)live_through(file, kPageBytes, true);
  Life life;
  const OwnCounters start = own_counters();
  void* const pages = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return life;
  life.mapped = true;
  const auto resident = [&] { return growth(start.rss_file, own_counters().rss_file); };
  life.after_map = resident();
  touch_pages(pages, bytes);
  life.after_read = resident();
  life.anon = growth(start.rss_anon, own_counters().rss_anon);
  ::madvise(pages, bytes, MADV_DONTNEED);
  life.after_advice = resident();
  touch_pages(pages, bytes);
  life.after_reread = resident();
  ::munmap(pages, bytes);
  return life;
}

// Where a version of control groups keeps the limit on memory.
struct GroupKind {
  long magic;             // of its file system: a folder of another one limits nothing
  std::string_view line;  // of /proc/self/cgroup, before the path
  std::string_view root;
  std::string_view limit, swap;
};
constexpr std::array kGroupKinds = {
    GroupKind{0x63677270, "0::", "/sys/fs/cgroup", "memory.max", "memory.swap.max"},
    GroupKind{0x63677270, "0::", "/sys/fs/cgroup/unified", "memory.max", "memory.swap.max"},
    GroupKind{0x27e0eb, ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
              "memory.memsw.limit_in_bytes"},
};

// A control group with a memory limit, below this process's own or at the top.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::uint64_t limit) {
    for (const GroupKind& kind : kGroupKinds)
      for (const std::string& parent : {std::string(kind.root) + own_path(kind), std::string(kind.root)})
        if (make(kind, parent, limit)) return;
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;
  ~LimitedGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }

  bool there() const { return !path_.empty(); }
  // The file that a process writes 0 to, to enter.
  std::string door() const { return path_ + "/cgroup.procs"; }

 private:
  static std::string own_path(const GroupKind& kind) {
    std::ifstream own("/proc/self/cgroup");
    std::string line;
    while (std::getline(own, line))
      if (const std::size_t at = line.find(kind.line);
          at != std::string::npos && (at == 0 || kind.line[0] == ':'))
        return line.substr(at + kind.line.size());
    return "";
  }
  bool make(const GroupKind& kind, const std::string& parent, std::uint64_t limit) {
    struct statfs file_system {};
    if (::statfs(parent.c_str(), &file_system) != 0 || file_system.f_type != kind.magic) return false;
    const std::string path = fmt::format("{}/loadline-{}", parent, ::getpid());
    if (::mkdir(path.c_str(), 0755) != 0) return false;
    path_ = path;
    if (write(kind.limit, limit)) {
      (void)write(kind.swap, kind.swap == "memory.swap.max" ? 0 : limit);
      return true;
    }
    ::rmdir(path.c_str());
    path_.clear();
    return false;
  }
  bool write(std::string_view name, std::uint64_t value) const {
    std::ofstream file(fmt::format("{}/{}", path_, name));
    return static_cast<bool>(file << value << std::flush);
  }
  std::string path_;
};

bool enter(const char* door) {
  const int file = ::open(door, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool entered = ::write(file, "0", 1) == 1;
  ::close(file);
  return entered;
}

struct Limited {
  bool entered = false;
  std::uint64_t resident = 0, major_faults = 0;
};

Limited read_limited(const char* door, int file, std::size_t bytes) {
  Limited found;
  found.entered = enter(door);
  if (!found.entered) return found;
  const OwnCounters start = own_counters();
  void* const pages = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return found;
  touch_pages(pages, bytes);
  const OwnCounters end = own_counters();
  found.resident = growth(start.rss_file, end.rss_file);
  found.major_faults = growth(start.major_faults, end.major_faults);
  return found;
}

// The same bytes as anonymous memory: over the limit, the kernel kills the child.
bool fill_anonymous(const char* door, std::size_t bytes) {
  if (!enter(door)) return false;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  for (std::size_t at = 0; at < bytes; at += kPageBytes) static_cast<volatile char*>(memory)[at] = 1;
  return true;
}

void try_limit(const OpenFile& file, std::uint64_t limit, RunResult& result) {
  auto& lines = result.lines;
  lines.push_back(run_line("with a memory limit of", format_bytes(limit), "a control group"));
  const LimitedGroup group(limit);
  std::string why_not = group.there() ? "" : "no control group that limits memory can be made here";
  if (why_not.empty()) {
    const std::string door = group.door();
    drop_pages(file.file);  // else its pages count for whoever read them first
    const auto killed = in_child([&] { return fill_anonymous(door.c_str(), file.bytes); });
    const auto read = in_child([&] {
      return read_limited(door.c_str(), file.file.descriptor(), static_cast<std::size_t>(file.bytes));
    });
    const bool works = killed.signal == SIGKILL;
    if (!read.result || !read.result->entered) {
      why_not = "no process may enter a control group here";
    } else {
      result.figures["limit_works"] = Datum(std::int64_t{works});
      result.figures["limited_resident"] = run_bytes(read.result->resident);
      lines.push_back(run_line("  the bytes as anonymous memory", works ? "killed" : "granted",
                               works ? "by the kernel, out of memory" : "THE LIMIT LIMITS NOTHING HERE"));
      lines.push_back(run_line(
          "  the file, mapped and read whole", format_bytes(read.result->resident),
          fmt::format("RssFile at the end, {} major faults", format_grouped(read.result->major_faults))));
      return;
    }
  }
  result.figures["limit_works"] = Datum(std::int64_t{0});
  result.figures["limited_resident"] = run_bytes(0);
  lines.push_back(fmt::format("  Not tried: {}.", why_not));
}

}  // namespace

RunResult run_mapped(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const OpenFile file = largest_file(*model.graph());
  drop_pages(file.file);
  RunResult result;
  auto& lines = result.lines;
  const std::uint64_t dropped = resident_bytes(file.file);
  const auto end =
      in_child([&] { return live_through(file.file.descriptor(), static_cast<std::size_t>(file.bytes)); });
  if (!end.result || !end.result->mapped)
    throw Error(ErrorCode::io, {.file = file.file.path()}, "cannot be mapped here");
  const Life& life = *end.result;
  const std::uint64_t cached = resident_bytes(file.file);
  drop_pages(file.file);
  const std::uint64_t evicted = resident_bytes(file.file);
  result.figures = {{"file", run_bytes(file.bytes)},
                    {"mapped", run_bytes(life.after_map)},
                    {"resident", run_bytes(life.after_read)},
                    {"anon", run_bytes(life.anon)},
                    {"advised", run_bytes(life.after_advice)},
                    {"reread", run_bytes(life.after_reread)},
                    {"cached", run_bytes(cached)},
                    {"evicted", run_bytes(evicted)}};
  lines.push_back(run_line("file", format_bytes(file.bytes)));
  lines.push_back(
      run_line("in the page cache before", format_bytes(dropped), "mincore, after it was dropped"));
  lines.push_back(run_line("resident after mmap", format_bytes(life.after_map), "RssFile"));
  lines.push_back(run_line("resident after reading it all", format_bytes(life.after_read), "RssFile"));
  lines.push_back(run_line("  of it anonymous", format_bytes(life.anon), "RssAnon"));
  lines.push_back(run_line("resident after MADV_DONTNEED", format_bytes(life.after_advice), "RssFile"));
  lines.push_back(run_line("resident after reading again", format_bytes(life.after_reread), "RssFile"));
  lines.push_back(run_line("in the page cache after the process", format_bytes(cached), "mincore"));
  lines.push_back(
      run_line("in the page cache after eviction", format_bytes(evicted), "posix_fadvise, mincore"));
  const std::uint64_t percent = call.number("limit_percent", 50, 100);
  try_limit(file, file.bytes / 100 * percent, result);
  return result;
}

}  // namespace loadline::lesson
