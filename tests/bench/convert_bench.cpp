// Converting 1 GiB of BF16 in four shards to one file, made durable each time. Baseline: cp without
// reflink and sync. Ceiling: preallocated 4 MiB reads and writes of the same bytes, also synced.
#include "core/base/text.h"
#include "core/forward/config_graph.h"
#include "core/io/atomic_file.h"
#include "exporters/convert.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/support/builders.h"

#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace {

using namespace loadline;

constexpr const char* kConfig =
    R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":8,"num_attention_heads":16,"num_key_value_heads":4,)"
    R"("intermediate_size":8192,"vocab_size":18000,"torch_dtype":"bfloat16"})";

void best_copy(const MetaGraph& graph, const std::string& out) {
  std::uint64_t total = 0, at = 0;
  for (const ModelFile& file : graph.files) total += file.bytes;
  AtomicFile target(out);
  target.preallocate(total);
  std::vector<std::byte> buffer(4 << 20);
  for (const ModelFile& file : graph.files) {
    const SourceFile source = SourceFile::open(file.path);
    for (std::uint64_t done = 0; done < source.size();) {
      const auto piece = std::span(buffer).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), source.size() - done)));
      source.read_at(done, piece);
      target.write_at(at, piece);
      done += piece.size(), at += piece.size();
    }
  }
  target.commit();
}

}  // namespace

int main() {
  const testing::TemporaryFolder folder;
  Progress progress;
  synthesize(config_graph(kConfig, "bench"), folder / "m",
             {.seed = 1, .max_shard_bytes = 300'000'000, .overwrite = false}, progress);
  const auto graph = std::make_shared<const MetaGraph>(open_model(folder / "m", {}));
  const std::string out = folder / "out";
  // what the case before left for the disk to do must not be timed with the next
  const auto clean = [&] {
    std::filesystem::remove_all(out);
    std::filesystem::create_directories(out);
    ::sync();
  };
  const std::string cp =
      fmt::format("cp --reflink=never {0}/m/*.safetensors {1}/ && sync -f {1}", folder.path().string(), out);
  const auto convert = [&](const char* name, std::optional<DType> outtype) {
    return [&, name, outtype] {
      convert_model(graph, exporter_for_output(name),
                    {.outtype = outtype, .alignment = 0, .max_shard_bytes = 0}, out + "/" + name, {},
                    progress);
    };
  };
  const auto results = bench::measure(
      {{"cp --reflink=never + sync",
        [&] {
          if (std::system(cp.c_str()) != 0) std::abort();
        },
        clean},
       {"preallocated 4 MiB copy + fsync (ceiling)", [&] { best_copy(*graph, out + "/copy"); }, clean},
       {"convert to safetensors", convert("m.safetensors", {}), clean},
       {"convert to gguf", convert("m.gguf", {}), clean},
       {"convert to f16 gguf (writes as much)", convert("h.gguf", DType::f16), clean}},
      7);
  bench::print(fmt::format("convert {}", format_bytes(storage_bytes(*graph))), results,
               storage_bytes(*graph));
}
