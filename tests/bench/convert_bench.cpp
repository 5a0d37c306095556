// Conversions of a model with real-valued weights, made durable each time, beside plain copies of the same
// bytes.
//
//   bench_convert [--layers N] [--rounds N] [--only warm|cold|compare|budgets]
//
// Eleven layers are 4 GiB; the largest tensor has 1 GiB. Warm, the source is in the page cache; baseline: cp
// without reflinks. Cold, it is not; baseline: a copy past the page cache on both sides, several pieces at a
// time. Then what `verify` and `diff` do with two equal models, beside plain reads of both; and the peak of a
// fresh process for each memory budget.
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/inspect/compare_models.h"
#include "core/io/atomic_file.h"
#include "core/io/system_memory.h"
#include "exporters/convert.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace loadline;

std::string config(std::uint64_t layers) {
  return fmt::format(
      R"({{"model_type":"llama","hidden_size":4096,"num_hidden_layers":{},"num_attention_heads":32,)"
      R"("num_key_value_heads":8,"intermediate_size":8192,"vocab_size":131072,"tie_word_embeddings":true,)"
      R"("torch_dtype":"bfloat16"}})",
      layers);
}

std::uint64_t source_bytes(const graph::MetaGraph& graph) {
  std::uint64_t total = 0;
  for (const graph::ModelFile& file : graph.files) total += file.bytes;
  return total;
}

// Calls `copy(source, offset in the target)` for each file; the target is durable afterwards.
void copy_files(const graph::MetaGraph& graph, const std::string& out,
                const std::function<void(const io::SourceFile&, io::AtomicFile&, std::uint64_t)>& copy) {
  io::AtomicFile target(out);
  target.preallocate(source_bytes(graph));
  std::uint64_t at = 0;
  for (const graph::ModelFile& file : graph.files) {
    const io::SourceFile source = io::SourceFile::open(file.path);
    copy(source, target, at);
    at += source.size();
  }
  target.commit();
}

constexpr std::size_t kPiece = 4 << 20;

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Buffer = std::unique_ptr<std::byte, Free>;
Buffer page_aligned(std::size_t bytes) {
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
}

void copy_by_pieces(const graph::MetaGraph& graph, const std::string& out) {
  const Buffer buffer = page_aligned(kPiece);
  copy_files(graph, out, [&](const io::SourceFile& source, io::AtomicFile& target, std::uint64_t at) {
    for (std::uint64_t done = 0; done < source.size(); done += kPiece) {
      const auto piece = std::span(buffer.get(), std::min<std::uint64_t>(kPiece, source.size() - done));
      source.read_at(done, piece);
      target.write_at(at + done, piece);
    }
  });
}

void copy_in_kernel(const graph::MetaGraph& graph, const std::string& out) {
  copy_files(graph, out, [&](const io::SourceFile& source, io::AtomicFile& target, std::uint64_t at) {
    auto from = loff_t{0}, to = static_cast<loff_t>(at);
    for (std::uint64_t left = source.size(); left > 0;) {
      const ssize_t copied = ::copy_file_range(source.descriptor(), &from, target.descriptor(), &to, left, 0);
      if (copied <= 0) std::abort();
      left -= static_cast<std::uint64_t>(copied);
    }
  });
}

// A piece of a source file, and where it comes in the target.
struct FilePiece {
  std::size_t file = 0;
  off_t from = 0, to = 0;
};

// The pieces of all files, each file from a whole page on.
std::vector<FilePiece> pieces_of(const graph::MetaGraph& graph) {
  std::vector<FilePiece> pieces;
  off_t at = 0;
  for (std::size_t file = 0; file < graph.files.size(); ++file) {
    const auto bytes = static_cast<off_t>(graph.files[file].bytes);
    for (off_t done = 0; done < bytes; done += static_cast<off_t>(kPiece))
      pieces.push_back({file, done, at + done});
    at += (bytes + 4095) / 4096 * 4096;
  }
  return pieces;
}

// Calls `take(piece, buffer)` for all pieces on some threads.
void by_pieces(const graph::MetaGraph& graph, std::size_t threads,
               const std::function<void(const FilePiece&, std::byte*)>& take) {
  const std::vector<FilePiece> pieces = pieces_of(graph);
  std::atomic<std::size_t> next = 0;
  ParallelLoop(threads, threads, [&](std::size_t) {
    const Buffer buffer = page_aligned(kPiece);
    for (std::size_t i = next++; i < pieces.size(); i = next++) take(pieces[i], buffer.get());
  }).finish();
}

// Past the page cache on both sides; sizes are rounded up to whole pages, which changes nothing of the time.
void copy_direct(const graph::MetaGraph& graph, const std::string& out, std::size_t threads) {
  const io::UniqueFd to(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0666));
  if (!to || ::posix_fallocate(to.get(), 0, static_cast<off_t>(source_bytes(graph))) != 0) std::abort();
  std::vector<io::UniqueFd> from;
  for (const graph::ModelFile& file : graph.files)
    from.emplace_back(::open(file.path.c_str(), O_RDONLY | O_DIRECT));
  by_pieces(graph, threads, [&](const FilePiece& piece, std::byte* buffer) {
    const ssize_t got = ::pread(from[piece.file].get(), buffer, kPiece, piece.from);
    const ssize_t whole = (got + 4095) / 4096 * 4096;
    if (got <= 0 || ::pwrite(to.get(), buffer, static_cast<std::size_t>(whole), piece.to) != whole)
      std::abort();
  });
  ::fsync(to.get());
}

// Every byte of both models once, and nothing else.
void read_both(const graph::MetaGraph& a, const graph::MetaGraph& b, std::size_t threads) {
  for (const graph::MetaGraph* graph : {&a, &b}) {
    std::vector<io::SourceFile> files;
    for (const graph::ModelFile& file : graph->files) files.push_back(io::SourceFile::open(file.path));
    by_pieces(*graph, threads, [&](const FilePiece& piece, std::byte* buffer) {
      const io::SourceFile& file = files[piece.file];
      const auto offset = static_cast<std::uint64_t>(piece.from);
      file.read_at(offset, {buffer, std::min<std::uint64_t>(kPiece, file.size() - offset)});
    });
  }
}

struct Settings {
  std::uint64_t layers = 11, rounds = 7;
  std::string only = {};
  bool wants(std::string_view what) const { return only.empty() || only == what; }
};

// In a process of its own, so that its peak is its own. The peak and the anonymous peak, in bytes, and the
// seconds.
struct Peak {
  std::uint64_t resident = 0, anonymous = 0;
  double seconds = 0;
};
Peak peak_of(const std::string& model, const std::string& out, std::optional<graph::DType> outtype,
             std::uint64_t budget) {
  int ends[2] = {};
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string words = fmt::format("{}", budget);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "bench_convert", "--one", model.c_str(), out.c_str(), words.c_str(),
            outtype ? "f16" : "", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  Peak peak;
  FILE* const answer = ::fdopen(ends[0], "r");
  if (std::fscanf(answer, "%lu %lu %lf", &peak.resident, &peak.anonymous, &peak.seconds) != 3) std::abort();
  std::fclose(answer);
  ::waitpid(child, nullptr, 0);
  return peak;
}

int convert_once(char** words) {
  Progress progress;
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(words[0], {}));
  exporters::WriteOptions write;
  write.memory_budget = *text_as<std::uint64_t>(words[2]);
  exporters::ExportOptions layout;
  if (std::string_view(words[3]) == "f16") layout.outtype = graph::DType::f16;
  const exporters::WriteReport report = exporters::convert_model(
      {graph, &exporters::exporter_for_output(words[1]), words[1], layout, write}, progress);
  fmt::print("{} {} {}\n", report.peak_rss_bytes, report.peak_host_bytes, report.seconds);
  return 0;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print_budgets(const std::string& model, const std::string& folder, std::uint64_t tensors) {
  fmt::print("\nmemory of a fresh process, and median seconds of 7, for each budget\n");
  for (const bool casts : {false, true}) {
    std::map<std::uint64_t, std::vector<double>> seconds;
    std::map<std::uint64_t, Peak> peaks;
    for (int round = 0; round < 7; ++round)
      for (const std::uint64_t budget : {32ull << 20, 64ull << 20, 256ull << 20, 1024ull << 20}) {
        const std::string out = folder + "/peak.gguf";
        const Peak peak =
            peak_of(model, out, casts ? std::optional(graph::DType::f16) : std::nullopt, budget);
        seconds[budget].push_back(peak.seconds);
        peaks[budget].resident = std::max(peaks[budget].resident, peak.resident);
        peaks[budget].anonymous = std::max(peaks[budget].anonymous, peak.anonymous);
        std::filesystem::remove(out);
      }
    for (const auto& [budget, peak] : peaks)
      fmt::print("  {:<10} {:>9} budget: VmHWM {:>9} (at most {}), anonymous growth {:>9}, {:>8}\n",
                 casts ? "bf16->f16" : "relayout", format_bytes(budget), format_bytes(peak.resident),
                 format_bytes(budget + (32ull << 20) + 512 * tensors), format_bytes(peak.anonymous),
                 format_seconds(median(seconds[budget])));
  }
}

void drop(const graph::MetaGraph& graph) {
  for (const graph::ModelFile& file : graph.files) io::drop_pages(io::SourceFile::open(file.path));
}

void print_conversions(const graph::MetaGraphPtr& graph, const std::string& model, const std::string& out,
                       const Settings& settings, bool cold) {
  Progress progress;
  // what the case before left for the disk to do must not be timed with the next
  const auto clean = [&] {
    std::filesystem::remove_all(out);
    std::filesystem::create_directories(out);
    ::sync();
    if (cold) drop(*graph);
  };
  const std::string cp =
      fmt::format("cp --reflink=never {}/*.safetensors {}/ && sync -f {}", model, out, out);
  const auto convert = [&](std::string name, std::optional<graph::DType> outtype, io::WritePolicy policy) {
    return [&, name = std::move(name), outtype, policy] {
      exporters::WriteOptions write;
      write.policy = policy;
      exporters::ExportOptions layout;
      layout.outtype = outtype;
      exporters::convert_model(
          {graph, &exporters::exporter_for_output(name), out + "/" + name, layout, write}, progress);
    };
  };
  const auto usual = exporters::WriteOptions().policy;
  const auto copy_past_cache = [&](std::size_t threads) {
    return bench::Case{fmt::format("copy: O_DIRECT on both sides, {} at a time", threads),
                       [&, threads] { copy_direct(*graph, out + "/copy", threads); }, clean};
  };
  const bench::Case cp_case{"cp --reflink=never + sync",
                            [&] {
                              if (std::system(cp.c_str()) != 0) std::abort();
                            },
                            clean};
  const std::vector<bench::Case> conversions = {
      {"convert to safetensors", convert("m.safetensors", {}, usual), clean},
      {"convert to gguf", convert("m.gguf", {}, usual), clean},
      {"convert to f16 gguf", convert("h.gguf", graph::DType::f16, usual), clean},
      {"convert to f32 gguf (writes twice the bytes)", convert("w.gguf", graph::DType::f32, usual), clean},
      {"convert to gguf, pages written and dropped", convert("m.gguf", {}, io::WritePolicy::drop_behind),
       clean}};
  std::vector<bench::Case> cases;
  if (cold)
    cases = {copy_past_cache(4), copy_past_cache(2), copy_past_cache(1), cp_case};
  else
    cases = {cp_case,
             {"copy: fallocate, 4 MiB read and write, fsync", [&] { copy_by_pieces(*graph, out + "/copy"); },
              clean},
             {"copy: copy_file_range, fsync", [&] { copy_in_kernel(*graph, out + "/copy"); }, clean},
             {"convert to gguf, page cache kept", convert("m.gguf", {}, io::WritePolicy::cached), clean}};
  const std::size_t copies = cold ? cases.size() : 3;
  cases.insert(cases.end(), conversions.begin(), conversions.end());
  const auto results = bench::measure(cases, static_cast<int>(settings.rounds));
  const std::uint64_t bytes = graph::storage_bytes(*graph);
  bench::print(fmt::format("convert {}, {}", format_bytes(bytes), cold ? "cold" : "warm"), results, bytes);
  double best = results[0].median;
  for (std::size_t i = 0; i < copies; ++i) best = std::min(best, results[i].median);
  const std::span<const bench::Result> of = std::span(results).last(conversions.size());
  fmt::print("\n  best copy {}; of it: safetensors {:.2f}, gguf {:.2f}, f16 {:.2f}\n", format_seconds(best),
             best / of[0].median, best / of[1].median, best / of[2].median);
  fmt::print("  of the relayout of as many bytes: f16 {:.2f}, f32 {:.2f}\n\n", of[1].median / of[2].median,
             2 * of[1].median / of[3].median);
  std::fflush(stdout);  // the rest takes minutes
  std::filesystem::remove_all(out);
  std::filesystem::create_directories(out);
}

// Both commands compare the values of two models so.
void print_comparisons(const graph::MetaGraphPtr& graph, const std::string& model, const std::string& other,
                       const Settings& settings, bool cold) {
  Progress progress;
  if (!std::filesystem::exists(other)) std::filesystem::copy(model, other);
  ::sync();
  const auto copy = std::make_shared<const graph::MetaGraph>(importers::open_model(other, {}));
  const auto clean = [&] {
    if (!cold) return;
    drop(*graph);
    drop(*copy);
  };
  const auto compare = [&] {
    const inspect::Comparison found = inspect::compare_models(graph, copy, {}, progress);
    if (found.count(inspect::PairState::equal) != found.results.size()) std::abort();
  };
  const auto results =
      bench::measure({{"read both, two threads", [&] { read_both(*graph, *copy, 2); }, clean},
                      {"read both, one thread", [&] { read_both(*graph, *copy, 1); }, clean},
                      {"compare", compare, clean}},
                     static_cast<int>(settings.rounds));
  const std::uint64_t bytes = 2 * source_bytes(*graph);
  bench::print(
      fmt::format("compare two equal models of {}, {}", format_bytes(bytes / 2), cold ? "cold" : "warm"),
      results, bytes);
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--one") return convert_once(argv + 2);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&] { return *text_as<std::uint64_t>(++i < argc ? argv[i] : ""); };
    if (word == "--layers") settings.layers = number();
    if (word == "--rounds") settings.rounds = number();
    if (word == "--only") settings.only = ++i < argc ? argv[i] : "";
  }
  const testing::TemporaryFolder folder;
  Progress progress;
  const std::string model = folder / "m", out = folder / "out";
  std::filesystem::create_directories(out);
  exporters::synthesize(forward::config_graph(config(settings.layers), "bench"), model,
                        {.seed = 1, .max_shard_bytes = 1'200'000'000, .overwrite = false}, progress);
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(model, {}));
  for (const bool cold : {false, true})
    if (settings.wants(cold ? "cold" : "warm")) print_conversions(graph, model, out, settings, cold);
  for (const bool cold : {false, true})
    if (settings.wants("compare")) print_comparisons(graph, model, folder / "copy", settings, cold);
  if (settings.wants("budgets")) print_budgets(model, out, graph->tensors.size());
  return 0;
}
