// Conversions of a model with real-valued weights, made durable each time, beside plain copies of the same
// bytes.
//
//   bench_convert [--layers N] [--rounds N] [--cold] [--folder DIR]
//
// Eleven layers are 4 GiB; the largest tensor has 1 GiB. Baseline: cp without reflinks. Ceiling: the best of
// three copies. Then the peak of a fresh process for each memory budget, and what three ways to write cost.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/io/atomic_file.h"
#include "core/io/system_memory.h"
#include "exporters/convert.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

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

// Past the page cache on both sides; sizes are rounded up to whole pages, which changes nothing of the time.
void copy_direct(const graph::MetaGraph& graph, const std::string& out) {
  const Buffer buffer = page_aligned(kPiece);
  const io::UniqueFd to(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0666));
  if (!to || ::posix_fallocate(to.get(), 0, static_cast<off_t>(source_bytes(graph))) != 0) std::abort();
  off_t at = 0;
  for (const graph::ModelFile& file : graph.files) {
    const io::UniqueFd from(::open(file.path.c_str(), O_RDONLY | O_DIRECT));
    for (off_t done = 0; done < static_cast<off_t>(file.bytes); done += static_cast<off_t>(kPiece)) {
      const ssize_t got = ::pread(from.get(), buffer.get(), kPiece, done);
      const ssize_t whole = (got + 4095) / 4096 * 4096;
      if (got <= 0 || ::pwrite(to.get(), buffer.get(), static_cast<std::size_t>(whole), at) != whole)
        std::abort();
      at += whole;
    }
  }
  ::fsync(to.get());
}

struct Settings {
  std::uint64_t layers = 11, rounds = 7;
  bool cold = false;
  std::string folder = "/tmp";
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

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--one") return convert_once(argv + 2);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&] { return *text_as<std::uint64_t>(++i < argc ? argv[i] : ""); };
    if (word == "--layers") settings.layers = number();
    if (word == "--rounds") settings.rounds = number();
    if (word == "--cold") settings.cold = true;
    if (word == "--folder") settings.folder = ++i < argc ? argv[i] : ".";
  }
  const testing::TemporaryFolder folder;
  Progress progress;
  const std::string model = folder / "m";
  exporters::synthesize(forward::config_graph(config(settings.layers), "bench"), model,
                        {.seed = 1, .max_shard_bytes = 1'200'000'000, .overwrite = false}, progress);
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(model, {}));
  const std::string out = folder / "out";
  // what the case before left for the disk to do must not be timed with the next
  const auto clean = [&] {
    std::filesystem::remove_all(out);
    std::filesystem::create_directories(out);
    ::sync();
    if (settings.cold)
      for (const graph::ModelFile& file : graph->files) io::drop_pages(io::SourceFile::open(file.path));
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
  const auto drop = io::WritePolicy::drop_behind;
  const auto results = bench::measure(
      {{"cp --reflink=never + sync",
        [&] {
          if (std::system(cp.c_str()) != 0) std::abort();
        },
        clean},
       {"copy: fallocate, 4 MiB read and write, fsync", [&] { copy_by_pieces(*graph, out + "/copy"); },
        clean},
       {"copy: copy_file_range, fsync", [&] { copy_in_kernel(*graph, out + "/copy"); }, clean},
       {"copy: O_DIRECT on both sides", [&] { copy_direct(*graph, out + "/copy"); }, clean},
       {"convert to safetensors", convert("m.safetensors", {}, drop), clean},
       {"convert to gguf", convert("m.gguf", {}, drop), clean},
       {"convert to gguf, O_DIRECT", convert("m.gguf", {}, io::WritePolicy::direct), clean},
       {"convert to gguf, page cache kept", convert("m.gguf", {}, io::WritePolicy::cached), clean},
       {"convert to f16 gguf", convert("h.gguf", graph::DType::f16, drop), clean},
       {"convert to f16 gguf, O_DIRECT", convert("h.gguf", graph::DType::f16, io::WritePolicy::direct),
        clean},
       {"convert to f32 gguf (writes twice the bytes)", convert("w.gguf", graph::DType::f32, drop), clean}},
      static_cast<int>(settings.rounds));
  const std::uint64_t bytes = graph::storage_bytes(*graph);
  bench::print(fmt::format("convert {}, {}", format_bytes(bytes), settings.cold ? "cold" : "warm"), results,
               bytes);
  const double best = std::min({results[1].median, results[2].median, results[3].median});
  fmt::print("\n  best copy {}; of it: safetensors {:.2f}, gguf {:.2f}; of cp: {:.2f}\n",
             format_seconds(best), best / results[4].median, best / results[5].median,
             results[0].median / results[5].median);
  fmt::print("  of the relayout of as many bytes: f16 {:.2f}, f32 {:.2f}\n",
             results[5].median / results[8].median, 2 * results[5].median / results[10].median);
  std::fflush(stdout);  // the rest takes minutes
  if (!settings.cold) print_budgets(model, out, graph->tensors.size());
  return 0;
}
