// Writes the models of runs, and opens them.
#include "app/lesson/runs.h"

#include "app/lesson/scene_model.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/statistics.h"
#include "core/forward/model/presets.h"
#include "core/io/system_memory.h"
#include "core/io/tensor_reader.h"
#include "core/load/answer/answer.h"
#include "core/load/request/load_options.h"
#include "exporters/synth.h"
#include "importers/resolve.h"

#include <chrono>

#include <fmt/format.h>

namespace loadline::lesson {
namespace {

constexpr std::uint64_t kSeed = 1;

std::string write_model(const Preset& preset, const std::string& folder, bool sparse, const RunCall& call) {
  SynthOptions options;
  if (!sparse) options.seed = kSeed;
  options.max_shard_bytes = preset.max_shard_bytes;
  const std::string path = folder + "/" + std::string(preset.id);
  synthesize(*model_shapes({std::string(preset.id)}, *call.environment.assets), path, options, call.progress);
  return path;
}

const Preset& preset_of(const RunCall& call, const std::string& id) {
  try {
    return find_row(presets(), id, "model");
  } catch (const Error& error) {
    call.run.place.fail("{}", error.what());
  }
}

}  // namespace

WrittenModel::WrittenModel(const std::string& preset, bool sparse, const RunCall& call) {
  const std::string path = write_model(preset_of(call, preset), folder_.path(), sparse, call);
  graph_ = std::make_shared<const MetaGraph>(open_model(path, {}));
}

OpenFile largest_file(const MetaGraph& graph) {
  const ModelFile* largest = nullptr;
  for (const ModelFile& file : graph.files)
    if (largest == nullptr || file.bytes > largest->bytes) largest = &file;
  SourceFile file = SourceFile::open(largest->path);
  const std::uint64_t bytes = file.size();
  return {std::move(file), bytes};
}

std::vector<float> largest_matrix(const MetaGraphPtr& graph) {
  constexpr std::uint64_t kMost = 1 << 24;
  const Tensor* largest = nullptr;
  for (const Tensor& tensor : graph->tensors)
    if (tensor.shape.size() == 2 && can_measure(tensor.dtype) &&
        (largest == nullptr || elements(tensor) > elements(*largest)))
      largest = &tensor;
  if (largest == nullptr) throw Error(ErrorCode::unsupported, "the model has no matrix");
  const std::uint64_t count = std::min(elements(*largest), kMost);
  std::vector<std::byte> bytes(count * dtype_info(largest->dtype).block_bytes);
  const StorageReader storages(graph);
  TensorReader(storages).read(*largest, 0, bytes);
  std::vector<double> numbers(count);
  Numbers(largest->dtype).read(bytes, numbers);
  return {numbers.begin(), numbers.end()};
}

RunResult run_open(const RunCall& call) {
  const TemporaryFolder folder;
  const std::string path =
      write_model(preset_of(call, call.text("model", "deepseek-v3")), folder.path(), true, call);
  release_free_memory();
  const std::uint64_t before = read_process_memory().rss_anon, read_before = read_bytes_counter();
  const auto start = std::chrono::steady_clock::now();
  const MetaGraph graph = open_model(path, {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::uint64_t read = read_bytes_counter() - read_before;
  const std::uint64_t after = read_process_memory().rss_anon;
  const std::uint64_t grown = after > before ? after - before : 0;
  RunResult result;
  result.figures = {{"weights", run_bytes(storage_bytes(graph))},
                    {"tensors", run_bytes(graph.tensors.size())},
                    {"read", run_bytes(read)},
                    {"memory", run_bytes(grown)},
                    {"seconds", Datum(seconds.count())}};
  result.lines = {run_line("weights in the files", format_bytes(storage_bytes(graph))),
                  run_line("tensors", format_grouped(graph.tensors.size())),
                  run_line("bytes read to open it", format_bytes(read)),
                  run_line("memory of the meta graph", format_bytes(grown), "RssAnon, after less before"),
                  run_line("time", format_seconds(seconds.count()))};
  return result;
}

RunResult run_context(const RunCall& call) {
  const Preset& preset = preset_of(call, call.text("model", "llama-3.2-1b"));
  const std::uint64_t memory = available_system_memory().value_or(0);
  if (memory == 0) throw Error(ErrorCode::unsupported, "the system does not tell how much memory is free");
  const MetaGraphPtr graph = model_shapes({std::string(preset.id)}, *call.environment.assets);
  RunResult result;
  result.figures["memory"] = run_bytes(memory);
  result.lines = {run_line("memory that is free now", format_bytes(memory))};
  for (const std::string& type : call.list("types", "model,i8")) {
    LoadRequest request;
    request.methods = {call.text("method", "staged_ring")};
    request.memory = MemoryKind::unified;
    request.device_budget = memory;
    request.max_context = true;
    if (type != "model") set_load_option(request, "cache_dtype", type);
    const LoadAnswer answered = answer(*graph, request, call.environment, {.advise = false}, call.progress);
    const std::uint64_t tokens = answered.rows.at(0).context_max.value_or(0);
    result.figures["tokens_" + type] = run_bytes(tokens);
    result.lines.push_back(run_line(fmt::format("context, cache {}", type == "model" ? "as the model" : type),
                                    format_grouped(tokens), "tokens"));
  }
  return result;
}

}  // namespace loadline::lesson
