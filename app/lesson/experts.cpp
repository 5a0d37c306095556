// Maps a layer's experts, and reads only those that a token is sent to.
#include "app/lesson/child.h"
#include "app/lesson/runs.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/graph/names/filter.h"
#include "core/io/storage_reader.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <sys/mman.h>

namespace loadline::lesson {
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

Ranges ranges_of(const MetaGraph& graph, const StorageReader& reader, const std::string& filter) {
  Ranges ranges;
  for (const TensorId id : TensorFilter(filter).select(graph)) {
    const Storage& storage = graph.storage(graph.tensor(id).storage);
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
  const MetaGraph& graph = *model.graph();
  const std::uint64_t layer = call.number("layer", 0, 1000);
  const StorageReader reader(model.graph());
  const Ranges all = ranges_of(graph, reader, fmt::format("layer:{} name:*experts*", layer));
  const std::string* const config = find_text(graph, kConfigKey);
  if (all.count == 0 || config == nullptr) throw Error(ErrorCode::usage, "'{}' has no experts", preset);
  const ModelConfig keys(*config, preset);
  const auto number = [&](std::initializer_list<std::string_view> names) -> std::uint64_t {
    for (const std::string_view name : names)
      if (const Datum value = keys.get(name); value.number() != nullptr)
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
