// Baselines for `bench open`.
#include "tests/bench/open_cases.h"

#include "core/base/checked_arithmetic.h"
#include "core/io/source_file.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/core.h>

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

void read_headers(const graph::MetaGraph& graph) {
  for (const graph::ModelFile& file : graph.files) {
    const io::SourceFile source = io::SourceFile::open(file.path);
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

void read_start(const std::string& path, std::uint64_t bytes) {
  const io::SourceFile file = io::SourceFile::open(path);
  std::vector<std::byte> buffer(128 << 10);
  for (std::uint64_t at = 0; at < std::min(bytes, file.size()); at += buffer.size())
    file.read_at(at, std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.size() - at)));
}

void write_vocabulary(const std::string& path, std::uint64_t tokens) {
  testing::GgufBuilder b;
  std::vector<std::string> texts, merges;
  std::string scores, types;
  for (std::uint64_t i = 0; i < tokens; ++i) {
    texts.push_back(fmt::format("\u2581token{}", i));
    merges.push_back(fmt::format("to ken{}", i));
    scores += b.number(-static_cast<float>(i));
    types += b.number(std::int32_t{1});
  }
  const auto numbers = [&](std::uint32_t type, const std::string& elements) {
    return b.number(type) + b.number(tokens) + elements;
  };
  b.key("general.architecture", "llama").strings("tokenizer.ggml.tokens", texts);
  b.key("tokenizer.ggml.scores", b.array, numbers(b.f32, scores));
  b.key("tokenizer.ggml.token_type", b.array, numbers(b.i32, types));
  b.strings("tokenizer.ggml.merges", merges).tensor("token_embd.weight", {64, 4}, 0, 1024);
  testing::write_file(path, b.bytes());
}

void write_large_onnx(const std::string& path, std::uint64_t bytes) {
  const auto varint = [](std::uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
    return text + static_cast<char>(value);
  };
  const auto field = [&](unsigned number, const std::string& body) {
    return varint(number << 3 | 2) + varint(body.size()) + body;
  };
  const auto value = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    const std::string shape = field(1, "\x08" + varint(rows)) + field(1, "\x08" + varint(columns));
    return field(1, name) + field(2, field(1, "\x08\x01" + field(2, shape)));
  };
  constexpr std::uint64_t kColumns = 1024;
  const std::uint64_t rows = (bytes - 4096) / (4 * kColumns), raw = rows * kColumns * 4;
  const std::string node = field(1, field(1, "x") + field(1, "w") + field(2, "y") + field(4, "MatMul"));
  const std::string around =
      node + field(2, "g") + field(11, value("x", 1, rows)) + field(12, value("y", 1, kColumns));
  const std::string tensor = "\x08" + varint(rows) + "\x08" + varint(kColumns) + "\x10\x01" + field(8, "w") +
                             varint(9 << 3 | 2) + varint(raw);
  const std::string initializer = varint(5 << 3 | 2) + varint(tensor.size() + raw) + tensor;
  const std::string model = "\x08\x08" + field(8, "\x10\x11") + varint(7 << 3 | 2) +
                            varint(around.size() + initializer.size() + raw);
  testing::write_file(path, model + around + initializer);
  std::filesystem::resize_file(path, model.size() + around.size() + initializer.size() + raw);
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
