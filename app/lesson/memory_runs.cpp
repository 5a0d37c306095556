// Runs in a process of their own: commit limits, mapped files, experts.

#include "app/lesson/runs.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/file_system.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::lesson {

// --- Does something in a process of its own: a limit that is set there, or a kill, does not reach this one.

namespace {

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
    try {  // what is thrown must not reach this program's own handlers, in a second process
      const Result result = work();
      const bool whole = ::write(ends[1], &result, sizeof(result)) == static_cast<ssize_t>(sizeof(result));
      ::_exit(whole ? 0 : 1);
    } catch (...) {
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  ChildEnd<Result> end;
  Result result{};
  const ssize_t got = io::uninterrupted([&] { return ::read(ends[0], &result, sizeof(result)); });
  ::close(ends[0]);
  int status = 0;
  (void)io::uninterrupted([&] { return ::waitpid(child, &status, 0); });
  if (got == static_cast<ssize_t>(sizeof(result))) end.result = result;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

// The number of KiB behind `key` in a file of /proc, in bytes.
class ProcFile {
 public:
  explicit ProcFile(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t got = 0;
    while (size_ < sizeof(text_) && (got = ::read(file, text_ + size_, sizeof(text_) - size_)) > 0)
      size_ += static_cast<std::size_t>(got);
    ::close(file);
  }
  std::uint64_t bytes(std::string_view key) const {
    const std::string_view all(text_, size_);
    const std::size_t at = all.find(key);
    if (at == std::string_view::npos) return 0;
    std::uint64_t kib = 0;
    for (const char letter : all.substr(at + key.size())) {
      if (letter >= '0' && letter <= '9')
        kib = kib * 10 + static_cast<std::uint64_t>(letter - '0');
      else if (letter != ' ' && letter != '\t')
        break;
    }
    return kib * 1024;
  }

 private:
  char text_[8192];
  std::size_t size_ = 0;
};

OwnCounters own_counters() {
  OwnCounters counters;
  const ProcFile status("/proc/self/status");
  counters.rss_anon = status.bytes("RssAnon:");
  counters.rss_file = status.bytes("RssFile:");
  counters.data = status.bytes("VmData:");
  counters.committed = ProcFile("/proc/meminfo").bytes("Committed_AS:");
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    counters.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  return counters;
}

// Reads a byte of every page.
void touch_pages(const void* pages, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPageBytes) (void)static_cast<const volatile char*>(pages)[at];
}

}  // namespace

// --- Anonymous and file-backed memory under a limit: what the kernel says to each.

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
      {"limit_works", assets::Datum(std::int64_t{limits})},
      {"answer", assets::Datum(std::string(found.refused == 0 ? "granted" : ::strerror(found.refused)))},
      {"file_mapped", assets::Datum(std::int64_t{found.file_mapped})},
      {"file_rss", run_bytes(growth(found.mapped.rss_file, found.read.rss_file))},
      {"file_anon", run_bytes(growth(found.mapped.rss_anon, found.read.rss_anon))}};
  const int mode = overcommit_mode();
  auto& lines = result.lines;
  lines.push_back(run_line("anonymous memory requested", format_bytes(largest.bytes)));
  lines.push_back(
      run_line("  commit charge grew by", format_bytes(promised), "Committed_AS, of the whole system"));
  lines.push_back(run_line("  resident after the request",
                           format_bytes(growth(found.start.rss_anon, found.promised.rss_anon)), "RssAnon"));
  lines.push_back(run_line("  resident after half was used",
                           format_bytes(growth(found.start.rss_anon, found.half.rss_anon)), "RssAnon"));
  lines.push_back(
      run_line("limit on private memory, on top", format_bytes(largest.bytes / 2), "RLIMIT_DATA"));
  if (!found.limit_set)
    lines.push_back("  The system refused the limit: what follows ran without one.");
  else if (!limits)
    lines.push_back("  The limit has no effect here: memory beyond it was granted.");
  lines.push_back(run_line("  the same amount of anonymous memory",
                           found.refused == 0 ? "granted" : "refused",
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

// --- A mapped file: read, dropped, shared, and under a memory limit.

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
    io::drop_pages(file.file);  // else its pages count for whoever read them first
    const auto killed = in_child([&] { return fill_anonymous(door.c_str(), file.bytes); });
    const auto read = in_child([&] {
      return read_limited(door.c_str(), file.file.descriptor(), static_cast<std::size_t>(file.bytes));
    });
    const bool works = killed.signal == SIGKILL;
    if (!read.result || !read.result->entered) {
      why_not = "no process may enter a control group here";
    } else {
      result.figures["limit_works"] = assets::Datum(std::int64_t{works});
      result.figures["limited_resident"] = run_bytes(read.result->resident);
      lines.push_back(run_line("  the bytes as anonymous memory", works ? "killed" : "granted",
                               works ? "by the kernel, out of memory" : "THE LIMIT HAS NO EFFECT HERE"));
      lines.push_back(run_line(
          "  the file, mapped and read whole", format_bytes(read.result->resident),
          fmt::format("RssFile at the end, {} major faults", format_grouped(read.result->major_faults))));
      return;
    }
  }
  result.figures["limit_works"] = assets::Datum(std::int64_t{0});
  result.figures["limited_resident"] = run_bytes(0);
  lines.push_back(fmt::format("  Not tried: {}.", why_not));
}

}  // namespace

RunResult run_mapped(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const OpenFile file = largest_file(*model.graph());
  io::drop_pages(file.file);
  RunResult result;
  auto& lines = result.lines;
  const std::uint64_t dropped = io::resident_bytes(file.file);
  const auto end =
      in_child([&] { return live_through(file.file.descriptor(), static_cast<std::size_t>(file.bytes)); });
  if (!end.result || !end.result->mapped)
    throw Error(ErrorCode::io, {.file = file.file.path()}, "cannot be mapped here");
  const Life& life = *end.result;
  const std::uint64_t cached = io::resident_bytes(file.file);
  io::drop_pages(file.file);
  const std::uint64_t evicted = io::resident_bytes(file.file);
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

// --- Maps a layer's experts, and reads only those that a token is sent to.

namespace {

constexpr std::size_t kMostRanges = 512;

// A tensor of the layer in its file.
struct Range {
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
struct Ranges {
  std::array<Range, kMostRanges> items = {};
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

Ranges ranges_of(const graph::MetaGraph& graph, const io::StorageReader& reader, const std::string& filter) {
  Ranges ranges;
  for (const graph::TensorId id : graph::TensorFilter(filter).select(graph)) {
    const graph::Storage& storage = graph.storage(graph.tensor(id).storage);
    if (ranges.count == kMostRanges) break;
    ranges.items[ranges.count++] = {reader.file_of(graph.tensor(id).storage).descriptor(), storage.offset,
                                    storage.bytes};
    ranges.bytes += storage.bytes;
  }
  return ranges;
}

// Maps every range and reads the pages of those before `active`; returns what is resident of them.
std::uint64_t read_ranges(const Ranges& ranges, std::size_t active) {
  (void)own_counters();  // its code is pages of a file too, and must be there already
  touch_pages(&ranges, sizeof(ranges));
  const std::uint64_t before = own_counters().rss_file;
  for (std::size_t i = 0; i < ranges.count; ++i) {
    const Range& range = ranges.items[i];
    const std::uint64_t from = range.offset / kPageBytes * kPageBytes;
    const auto length = static_cast<std::size_t>(range.offset + range.bytes - from);
    void* const pages = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, range.file, static_cast<off_t>(from));
    if (pages == MAP_FAILED || i >= active) continue;
    ::madvise(pages, length, MADV_RANDOM);  // no pages of experts that are not needed
    touch_pages(pages, length);
  }
  const std::uint64_t after = own_counters().rss_file;
  return after > before ? after - before : 0;
}

}  // namespace

RunResult run_experts(const RunCall& call) {
  const std::string preset = call.text("model", "qwen3-30b-a3b");
  const WrittenModel model(preset, true, call);
  const graph::MetaGraph& graph = *model.graph();
  const std::uint64_t layer = call.number("layer", 0, 1000);
  const io::StorageReader reader(model.graph());
  const Ranges all = ranges_of(graph, reader, fmt::format("layer:{} name:*experts*", layer));
  const std::string* const config = graph::find_text(graph, graph::kConfigKey);
  if (all.count == 0 || config == nullptr) throw Error(ErrorCode::usage, "'{}' has no experts", preset);
  const forward::ModelConfig keys(*config, preset);
  const auto number = [&](std::initializer_list<std::string_view> names) -> std::uint64_t {
    for (const std::string_view name : names)
      if (const assets::Datum value = keys.get(name); value.number() != nullptr)
        return static_cast<std::uint64_t>(*value.number());
    throw Error(ErrorCode::usage, "'{}' does not say how many experts it has", preset);
  };
  const std::uint64_t experts = number({"num_experts", "num_local_experts", "n_routed_experts"});
  const std::uint64_t active = number({"num_experts_per_tok", "experts_per_token"});
  const std::size_t read = static_cast<std::size_t>(all.count * active / std::max<std::uint64_t>(experts, 1));
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < read; ++i) expected += all.items[i].bytes;
  const auto end = in_child([&] { return read_ranges(all, read); });
  if (!end.result) throw Error(ErrorCode::io, "the child process was killed by signal {}", end.signal);
  RunResult result;
  result.figures = {{"experts", run_bytes(experts)},
                    {"active", run_bytes(active)},
                    {"layer", run_bytes(all.bytes)},
                    {"expected", run_bytes(expected)},
                    {"resident", run_bytes(*end.result)}};
  result.lines = {run_line("experts of the layer", format_bytes(all.bytes),
                           fmt::format("{} experts, all mapped", experts)),
                  run_line("a token's experts", format_bytes(expected), fmt::format("{} of them", active)),
                  run_line("resident after reading those", format_bytes(*end.result), "RssFile")};
  return result;
}

}  // namespace loadline::lesson
