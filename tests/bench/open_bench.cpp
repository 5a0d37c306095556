// Opening models warm, beside merely reading the same header bytes and beside the formats' Python
// readers, if `./dev interop` has installed them.
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/io/system_memory.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/bench/open_cases.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

namespace loadline::tests {
namespace {

std::string program;  // this one, to start again

// What a process of its own holds after opening: this one has opened much already.
void print_memory(const std::string& path) {
  std::fflush(stdout);
  if (std::system(fmt::format("'{}' --memory '{}'", program, path).c_str()) != 0)
    fmt::print("  memory: failed\n");
}

int show_memory(const std::string& path) {
  const std::uint64_t before = io::read_process_memory().rss_anon;
  const std::uint64_t read_before = io::read_bytes_counter();
  const graph::MetaGraph graph = importers::open_model(path, {});
  const std::uint64_t read = io::read_bytes_counter() - read_before;
  const auto memory = io::read_process_memory();
  fmt::print("  after opening: {} resident, {} of it anonymous, {} more than before; {} at most; {} read\n",
             format_bytes(memory.rss_anon + memory.rss_file + memory.rss_shmem),
             format_bytes(memory.rss_anon), format_bytes(memory.rss_anon - std::min(before, memory.rss_anon)),
             format_bytes(bench::peak_rss()), format_bytes(read));
  return 0;
}

// `python` reads the same model and prints milliseconds; it stays out where it is not installed.
void run(const std::string& title, const std::string& path, const std::function<void()>& raw,
         const std::string& python) {
  // from the path to the graph: taking the one before apart is no part of it
  std::optional<graph::MetaGraph> graph;
  const auto results = bench::measure(
      {{"raw read of the same bytes", raw},
       {"open_model", [&] { graph = importers::open_model(path, {}); }, [&] { graph.reset(); }}},
      21);
  bench::print(title, results, 0);
  print_memory(path);
  bench::print_python(python, path);
}

void shards(const std::string& preset_id, const testing::TemporaryFolder& folder) {
  Progress progress;
  const forward::Preset& preset = *forward::find_preset(preset_id);
  const std::string path = folder / preset_id;
  exporters::synthesize(forward::config_graph(preset.config_json, preset_id), path,
                        {.seed = {}, .max_shard_bytes = preset.max_shard_bytes, .overwrite = false},
                        progress);
  const graph::MetaGraph graph = importers::open_model(path, {});
  const std::uint64_t headers = graph::file_bytes(graph) - graph::storage_bytes(graph);
  run(
      fmt::format("{}: {} tensors in {} files, {} of weights, {} of headers and index", preset_id,
                  graph.tensors.size(), graph.files.size(), format_bytes(graph::storage_bytes(graph)),
                  format_bytes(headers)),
      path, [&graph] { bench::read_headers(graph); }, "safetensors");
}

void vocabulary(const testing::TemporaryFolder& folder) {
  constexpr std::uint64_t kTokens = 250'000;
  const std::string path = folder / "vocabulary.gguf";
  bench::write_vocabulary(path, kTokens);
  const std::uint64_t bytes = io::SourceFile::open(path).size();
  run(
      fmt::format("gguf with {} tokens and as many merges: {}", kTokens, format_bytes(bytes)), path,
      [&] { bench::read_start(path, bytes); }, "gguf");
}

void large_onnx(const testing::TemporaryFolder& folder) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, (std::uint64_t{1} << 31) - 1}) {
    const std::string path = folder / fmt::format("{}.onnx", bytes);
    bench::write_large_onnx(path, bytes);
    run(
        fmt::format("onnx with inline weights: {}", format_bytes(io::SourceFile::open(path).size())), path,
        [&] { bench::read_start(path, 1); }, "onnx");
  }
}

}  // namespace
}  // namespace loadline::tests

int main(int count, char** arguments) {
  using namespace loadline;
  using namespace loadline::tests;
  if (count == 3 && std::string_view(arguments[1]) == "--memory") return show_memory(arguments[2]);
  program = arguments[0];
  const testing::TemporaryFolder folder;
  shards("deepseek-v3", folder);
  shards("llama-3.1-70b", folder);
  vocabulary(folder);
  large_onnx(folder);
}
