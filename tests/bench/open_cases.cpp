// Baselines for `bench open`.
#include "tests/bench/open_cases.h"

#include "core/base/checked.h"
#include "core/io/source_file.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

namespace loadline::bench {
namespace {

// Each prints the median of nine rounds in milliseconds.
const std::map<std::string, std::string> kReaders = {{"safetensors", R"py(
import glob
from safetensors import safe_open
def read(path):
    held = []
    for file in sorted(glob.glob(path + "/*.safetensors")):
        opened = safe_open(file, "np")
        held.append([(name, opened.get_slice(name).get_shape()) for name in opened.keys()])
)py"},
                                                     {"gguf", R"py(
from gguf import GGUFReader
def read(path):
    GGUFReader(path)
)py"},
                                                     {"onnx", R"py(
import onnx
def read(path):
    onnx.load(path)
)py"}};

constexpr const char* kTiming = R"py(
import statistics, sys, time
times = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    read(sys.argv[1])
    times.append((time.perf_counter() - start) * 1000)
print(f"{statistics.median(times):.1f} ms (median of {len(times)})")
)py";

}  // namespace

void read_headers(const MetaGraph& graph) {
  for (const ModelFile& file : graph.files) {
    const SourceFile source = SourceFile::open(file.path);
    std::uint64_t begin = 0, n = source.size();
    if (file.path.ends_with(".safetensors")) {
      std::array<std::byte, 8> length = {};
      source.read_at(0, length);
      std::memcpy(&n, length.data(), 8);
      begin = 8;
    }
    if (!range_fits(begin, n, source.size())) continue;
    const std::unique_ptr<std::byte[]> bytes(new std::byte[n]);  // not set to zero first
    source.read_at(begin, std::span(bytes.get(), n));
  }
}

std::uint64_t peak_rss() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) << 10;
  return 0;
}

void print_python(const std::string& reader, const std::string& path) {
  const std::string python = "build/interop-env/bin/python";
  fmt::print("  Python's {:<35} ", reader + ":");
  std::fflush(stdout);
  if (!std::filesystem::exists(python)) {
    fmt::print("not installed (./dev interop installs it)\n");
    return;
  }
  const std::string script = kReaders.at(reader) + kTiming;
  const std::string rounds = reader == "safetensors" ? "7" : "3";
  if (std::system(fmt::format("{} -c '{}' '{}' {}", python, script, path, rounds).c_str()) != 0)
    fmt::print("failed\n");
}

}  // namespace loadline::bench
