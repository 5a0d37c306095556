// Opening a sparse Llama-3.1-70B: 30 shards, 723 tensors, warm. Baseline and ceiling: reading the same
// headers without parsing them.
#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/forward/families.h"
#include "core/forward/presets.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <array>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

int main() {
  using namespace loadline;
  const testing::TemporaryFolder folder;
  Progress progress;
  const Preset& preset = *find_preset("llama-3.1-70b");
  synthesize(config_graph(preset.config_json, "70b"), folder / "m",
             {.seed = {}, .max_shard_bytes = preset.max_shard_bytes, .overwrite = false}, progress);
  const MetaGraph graph = open_model(folder / "m", {});

  const auto raw = [&] {
    for (const ModelFile& file : graph.files) {
      const SourceFile source = SourceFile::open(file.path);
      std::array<std::byte, 8> length = {};
      source.read_at(0, length);
      std::uint64_t n = 0;
      std::memcpy(&n, length.data(), 8);
      std::vector<std::byte> header(std::min<std::uint64_t>(n, 10 << 20));
      if (range_fits(8, header.size(), source.size())) source.read_at(8, header);
    }
  };
  const auto results = bench::measure(
      {{"raw header read (ceiling)", raw}, {"open_model", [&] { open_model(folder / "m", {}); }}}, 21);
  bench::print(fmt::format("open {} tensors in {} files, {} of weights", graph.tensors.size(),
                           graph.files.size(), format_bytes(storage_bytes(graph))),
               results, 0);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM", 0) == 0) fmt::print("  {}\n", line);
}
