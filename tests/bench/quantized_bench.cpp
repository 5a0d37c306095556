// Quantized conversions end to end, each in a process of its own, beside what the quantizers alone would
// take.
//
//   bench_quantized [--layers N] [--rounds N] [--threads N] [--budget SIZE] [--folder DIR] [POLICY...]
//
// 27 layers are 5 GB in BF16. Ceiling: the floats of each type, quantized in memory by as many threads.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/quantize.h"
#include "core/forward/model/known_models.h"
#include "exporters/convert.h"
#include "exporters/preflight.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace loadline;

struct Settings {
  std::uint64_t layers = 27, rounds = 3, threads = 2, budget = 64 << 20;
  std::string folder = "/tmp";
  std::vector<std::string> policies = {};
};

std::string config(std::uint64_t layers) {
  return fmt::format(
      R"({{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":2048,"num_hidden_layers":{},)"
      R"("num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":11264,"vocab_size":32000,)"
      R"("max_position_embeddings":4096,"rms_norm_eps":1e-5,"torch_dtype":"bfloat16"}})",
      layers);
}

exporters::ExportOptions options_of(std::string_view policy) {
  exporters::ExportOptions options;
  options.policy = forward::find_type_policy(forward::built_in_type_policies(), policy);
  return options;
}

struct Run {
  double seconds = 0;
  std::uint64_t resident = 0, read = 0, written = 0;
};

Run run_once(const std::string& model, const std::string& policy, const Settings& settings) {
  int ends[2] = {};
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "bench_quantized", "--one", model.c_str(), policy.c_str(),
            fmt::format("{}", settings.budget).c_str(), fmt::format("{}", settings.threads).c_str(), nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  Run run;
  FILE* const answer = ::fdopen(ends[0], "r");
  if (std::fscanf(answer, "%lf %lu %lu %lu", &run.seconds, &run.resident, &run.read, &run.written) != 4)
    std::abort();
  std::fclose(answer);
  ::waitpid(child, nullptr, 0);
  return run;
}

int convert_once(char** words) {
  Progress progress;
  const std::string model = words[0], out = model + ".gguf";
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(model, {}));
  exporters::WriteOptions write{.overwrite = true};
  write.memory_budget = *text_as<std::uint64_t>(words[2]);
  write.threads = *text_as<std::uint32_t>(words[3]);
  const exporters::WriteReport report = exporters::convert_model(
      {graph, &exporters::find_exporter("gguf"), out, options_of(words[1]), write}, progress);
  fmt::print("{} {} {} {}\n", report.seconds, report.peak_rss_bytes, report.bytes_read, report.bytes_written);
  return 0;
}

// Floats a second by all threads together.
double quantizer_rate(graph::DType type, std::size_t threads) {
  constexpr std::size_t kColumns = 2048, kRows = 64;
  const auto work = [&](double seconds, std::uint64_t& done) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.02F);
    std::vector<float> floats(kColumns * kRows);
    for (float& number : floats) number = normal(random);
    std::vector<std::byte> blocks(static_cast<std::size_t>(*graph::byte_size(type, floats.size())));
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (; std::chrono::steady_clock::now() < end; done += floats.size())
      convert::quantize(type, floats, blocks);
  };
  constexpr double kSeconds = 2;
  std::vector<std::uint64_t> done(threads, 0);
  {
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < threads; ++i) all.emplace_back([&, i] { work(kSeconds, done[i]); });
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : done) sum += part;
  return static_cast<double>(sum) / kSeconds;
}

double ceiling(const graph::MetaGraph& graph, const std::string& policy, const Settings& settings) {
  double seconds = 0;
  for (const exporters::TypeShare& share :
       exporters::type_shares(exporters::find_exporter("gguf").layout(graph, options_of(policy), "o.gguf")))
    if (convert::can_quantize(share.type))
      seconds += static_cast<double>(share.weights) /
                 quantizer_rate(share.type, static_cast<std::size_t>(settings.threads));
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--one") return convert_once(argv + 2);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto next = [&] { return ++i < argc ? argv[i] : ""; };
    if (word == "--layers")
      settings.layers = *text_as<std::uint64_t>(next());
    else if (word == "--rounds")
      settings.rounds = *text_as<std::uint64_t>(next());
    else if (word == "--threads")
      settings.threads = *text_as<std::uint64_t>(next());
    else if (word == "--budget")
      settings.budget = parse_size(next(), "--budget");
    else if (word == "--folder")
      settings.folder = next();
    else
      settings.policies.emplace_back(word);
  }
  if (settings.policies.empty()) settings.policies = {"q8_0", "q4_k_m"};
  const std::string model = settings.folder + "/loadline-bench-model";
  Progress progress;
  if (!std::filesystem::exists(model))
    exporters::synthesize(forward::config_graph(config(settings.layers), "bench"), model,
                          {.seed = 1, .max_shard_bytes = 1'200'000'000, .overwrite = false}, progress);
  const graph::MetaGraph graph = importers::open_model(model, {});
  fmt::print("a model of {} in BF16, {} threads, a budget of {}; medians of {}\n",
             format_bytes(graph::storage_bytes(graph)), settings.threads, format_bytes(settings.budget),
             settings.rounds);
  for (const std::string& policy : settings.policies) {
    std::vector<Run> runs;
    for (std::uint64_t i = 0; i < settings.rounds; ++i) runs.push_back(run_once(model, policy, settings));
    std::ranges::sort(runs, {}, &Run::seconds);
    const Run& run = runs[runs.size() / 2];
    const double alone = ceiling(graph, policy, settings);
    fmt::print("  {:<8} {:>8} ({} to {}), {}; quantizers alone {} ({:.2f} of the time); VmHWM {}\n", policy,
               format_seconds(run.seconds), format_seconds(runs.front().seconds),
               format_seconds(runs.back().seconds), format_rate(static_cast<double>(run.read) / run.seconds),
               format_seconds(alone), alone / run.seconds, format_bytes(run.resident));
    bench::record("quantized against the quantizers alone", policy, alone / run.seconds, run.seconds);
  }
  std::filesystem::remove_all(model);
  std::filesystem::remove(model + ".gguf");
  return 0;
}
