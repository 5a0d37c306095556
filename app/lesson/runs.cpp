// The table of runs, their models, and the runs that only open or plan a model.
#include "app/lesson/runs.h"

#include "app/lesson/lesson.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/statistics.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/answer.h"
#include "core/load/request/load_options.h"
#include "exporters/synth.h"
#include "importers/resolve.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>

#include <fmt/core.h>

namespace loadline::lesson {

// --- The table of runs, and what they share.

namespace {

struct RunKind {
  std::string_view id;
  std::string_view summary;
  std::span<const std::string_view> settings;
  RunResult (*run)(const RunCall& call);
};

using Keys = std::array<std::string_view, 4>;
constexpr Keys kRehearse = {"model", "method", "order", "staging"};
constexpr std::array<std::string_view, 1> kModel = {"model"};
constexpr std::array<std::string_view, 2> kMapped = {"model", "limit_percent"};
constexpr std::array<std::string_view, 3> kPack = {"model", "method", "sequence"};
constexpr std::array<std::string_view, 2> kQuantize = {"model", "types"};
constexpr std::array<std::string_view, 3> kContext = {"model", "method", "types"};
constexpr std::array<std::string_view, 2> kExperts = {"model", "layer"};

constexpr std::array kKinds = {
    RunKind{"rehearse", "loads a small random model by each method and counts its memory", kRehearse,
            run_rehearse},
    RunKind{"open", "opens a model's headers and counts the cost", kModel, run_open},
    RunKind{"mapped", "maps a file, reads it, drops it, shares it, and sets it a memory limit", kMapped,
            run_mapped},
    RunKind{"commit", "asks for memory under a limit, anonymous and of a file", kModel, run_commit},
    RunKind{"pack", "packs a load and its pass into one arena", kPack, run_pack},
    RunKind{"quantize", "quantizes weights and measures the error", kQuantize, run_quantize},
    RunKind{"sparsity", "prunes weights to 2:4 and compresses them", kModel, run_sparsity},
    RunKind{"context", "finds the largest context for the memory that is free now", kContext, run_context},
    RunKind{"experts", "maps a model with experts and reads only those that a token needs", kExperts,
            run_experts},
};

}  // namespace

void check_run(const Run& run) {
  const RunKind* kind = nullptr;
  try {
    kind = &find_row<RunKind>(kKinds, run.kind, "run");
  } catch (const Error& error) {
    run.place.fail("{}", error.what());
  }
  for (const auto& [key, value] : run.settings)
    if (std::ranges::find(kind->settings, key) == kind->settings.end())
      run.place.fail("the run '{}' has no setting '{}'", run.kind, safe_display(key, 40));
}

RunResult do_run(const Run& run, const load::LoadEnvironment& environment, Progress& progress) {
  check_run(run);
  return find_row<RunKind>(kKinds, run.kind, "run").run({run, environment, progress});
}

std::string RunCall::text(std::string_view key, std::string_view otherwise) const {
  const auto found =
      std::ranges::find(run.settings, key, [](const auto& one) { return std::string_view(one.first); });
  return found == run.settings.end() ? std::string(otherwise) : found->second;
}

std::vector<std::string> RunCall::list(std::string_view key, std::string_view otherwise) const {
  const std::string words = text(key, otherwise);
  std::vector<std::string> items;
  for (const std::string_view word : split(words, ',')) items.emplace_back(word);
  return items;
}

std::uint64_t RunCall::number(std::string_view key, std::uint64_t otherwise, std::uint64_t most) const {
  const std::string word = text(key, "");
  if (word.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc() || end != word.data() + word.size() || value > most)
    run.place.fail("'{}' is not a whole number up to {}", key, most);
  return value;
}

assets::Datum run_bytes(std::uint64_t bytes) { return assets::Datum(static_cast<std::int64_t>(bytes)); }

std::string run_line(std::string_view label, std::string_view value, std::string_view remark) {
  return fmt::format("{:<34}  {:>12}{}{}", label, value, remark.empty() ? "" : "  ", remark);
}

// --- Writes the models of runs, and opens them.

namespace {

constexpr std::uint64_t kSeed = 1;

std::string write_model(const forward::Preset& preset, const std::string& folder, bool sparse,
                        const RunCall& call) {
  exporters::SynthOptions options;
  if (!sparse) options.seed = kSeed;
  options.max_shard_bytes = preset.max_shard_bytes;
  const std::string path = folder + "/" + std::string(preset.id);
  exporters::synthesize(*model_shapes({std::string(preset.id)}, *call.environment.assets), path, options,
                        call.progress);
  return path;
}

const forward::Preset& preset_of(const RunCall& call, const std::string& id) {
  try {
    return find_row(forward::presets(), id, "model");
  } catch (const Error& error) {
    call.run.place.fail("{}", error.what());
  }
}

}  // namespace

WrittenModel::WrittenModel(const std::string& preset, bool sparse, const RunCall& call) {
  const std::string path = write_model(preset_of(call, preset), folder_.path(), sparse, call);
  graph_ = std::make_shared<const graph::MetaGraph>(importers::open_model(path, {}));
}

OpenFile largest_file(const graph::MetaGraph& graph) {
  const graph::ModelFile* largest = nullptr;
  for (const graph::ModelFile& file : graph.files)
    if (largest == nullptr || file.bytes > largest->bytes) largest = &file;
  io::SourceFile file = io::SourceFile::open(largest->path);
  const std::uint64_t bytes = file.size();
  return {std::move(file), bytes};
}

std::vector<float> largest_matrix(const graph::MetaGraphPtr& graph) {
  constexpr std::uint64_t kMost = 1 << 24;
  const graph::Tensor* largest = nullptr;
  for (const graph::Tensor& tensor : graph->tensors)
    if (tensor.shape.size() == 2 && convert::can_measure(tensor.dtype) &&
        (largest == nullptr || graph::elements(tensor) > graph::elements(*largest)))
      largest = &tensor;
  if (largest == nullptr) throw Error(ErrorCode::unsupported, "the model has no matrix");
  const std::uint64_t count = std::min(graph::elements(*largest), kMost);
  std::vector<std::byte> bytes(count * graph::dtype_info(largest->dtype).block_bytes);
  const io::StorageReader storages(graph);
  io::TensorReader(storages).read(*largest, 0, bytes);
  std::vector<double> numbers(count);
  convert::Numbers(largest->dtype).read(bytes, numbers);
  return {numbers.begin(), numbers.end()};
}

RunResult run_open(const RunCall& call) {
  const io::TemporaryFolder folder;
  const std::string path =
      write_model(preset_of(call, call.text("model", "deepseek-v3")), folder.path(), true, call);
  io::release_free_memory();
  const std::uint64_t before = io::read_process_memory().rss_anon, read_before = io::read_bytes_counter();
  const auto start = std::chrono::steady_clock::now();
  const graph::MetaGraph graph = importers::open_model(path, {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::uint64_t read = io::read_bytes_counter() - read_before;
  const std::uint64_t after = io::read_process_memory().rss_anon;
  const std::uint64_t grown = after > before ? after - before : 0;
  RunResult result;
  result.figures = {{"weights", run_bytes(graph::storage_bytes(graph))},
                    {"tensors", run_bytes(graph.tensors.size())},
                    {"read", run_bytes(read)},
                    {"memory", run_bytes(grown)},
                    {"seconds", assets::Datum(seconds.count())}};
  result.lines = {
      run_line("weights in the files", format_bytes(graph::storage_bytes(graph))),
      run_line("tensors", format_grouped(graph.tensors.size())),
      run_line("bytes read to open it", format_bytes(read)),
      run_line("memory for the structure of the model", format_bytes(grown), "RssAnon, after less before"),
      run_line("time", format_seconds(seconds.count()))};
  return result;
}

RunResult run_context(const RunCall& call) {
  const forward::Preset& preset = preset_of(call, call.text("model", "llama-3.2-1b"));
  const std::uint64_t memory = io::available_system_memory().value_or(0);
  if (memory == 0) throw Error(ErrorCode::unsupported, "the system does not tell how much memory is free");
  const graph::MetaGraphPtr graph = model_shapes({std::string(preset.id)}, *call.environment.assets);
  RunResult result;
  result.figures["memory"] = run_bytes(memory);
  result.lines = {run_line("memory that is free now", format_bytes(memory))};
  for (const std::string& type : call.list("types", "model,i8")) {
    load::LoadRequest request;
    request.methods = {call.text("method", "staged_ring")};
    request.memory = plan::MemoryKind::unified;
    request.device_budget = memory;
    request.max_context = true;
    if (type != "model") load::set_load_option(request, "cache_dtype", type);
    const load::LoadAnswer answered =
        load::answer(*graph, request, call.environment, {.advise = false}, call.progress);
    const std::uint64_t tokens = answered.rows.at(0).context_max.value_or(0);
    result.figures["tokens_" + type] = run_bytes(tokens);
    result.lines.push_back(run_line(fmt::format("context, cache {}", type == "model" ? "as the model" : type),
                                    format_grouped(tokens), "tokens"));
  }
  return result;
}

}  // namespace loadline::lesson
