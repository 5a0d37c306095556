// Statistics of values in memory, beside merely reading the same bytes and beside numpy, if `./dev interop`
// has installed it.
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/statistics.h"
#include "tests/bench/harness.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <fmt/core.h>

namespace loadline::tests {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;

// Bell-shaped about 0 as weights are, for any type: random bits that stay plausible for its scales.
std::vector<std::byte> weights(graph::DType dtype) {
  std::vector<std::byte> bytes(kBytes / graph::dtype_info(dtype).block_bytes *
                               graph::dtype_info(dtype).block_bytes);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<std::byte> some(graph::dtype_info(dtype).block_bytes * std::size_t{1 << 16});
  const auto put = [&](std::size_t at, std::uint16_t value) { std::memcpy(some.data() + at, &value, 2); };
  if (dtype == graph::DType::f32 || dtype == graph::DType::bf16 || dtype == graph::DType::f16) {
    std::vector<float> values(some.size() / graph::dtype_info(dtype).block_bytes);
    for (float& value : values) value = normal(random);
    convert::cast(graph::DType::f32, std::as_bytes(std::span(values)), dtype, some);
  } else if (dtype == graph::DType::i8) {
    for (std::byte& byte : some)
      byte = static_cast<std::byte>(static_cast<std::int8_t>(std::lround(1500 * normal(random)) % 128));
  } else {
    for (std::byte& byte : some) byte = static_cast<std::byte>(random());
    for (std::size_t i = 0; i < some.size(); i += graph::dtype_info(dtype).block_bytes) {
      put(i, 0x1C00);  // the scale, and the minimum's where there is one
      if (dtype == graph::DType::q4_k) put(i + 2, 0x1C00);
    }
  }
  for (std::size_t at = 0; at < bytes.size(); at += some.size())
    std::memcpy(bytes.data() + at, some.data(), std::min(some.size(), bytes.size() - at));
  return bytes;
}

std::uint64_t sink = 0;

void read_words(std::span<const std::byte> bytes) {
  std::uint64_t sums[4] = {};
  for (std::size_t at = 0; at + 32 <= bytes.size(); at += 32)
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + 8 * i, 8);
      sums[i] += word;
    }
  sink += sums[0] + sums[1] + sums[2] + sums[3];
}

// As a person would ask numpy: what it cannot hold (bf16, blocks) has no line.
void print_numpy(graph::DType dtype) {
  const std::string python = "build/interop-env/bin/python";
  const char* const type = dtype == graph::DType::f32   ? "float32"
                           : dtype == graph::DType::f16 ? "float16"
                           : dtype == graph::DType::i8  ? "int8"
                                                        : nullptr;
  if (type == nullptr) return;
  fmt::print("  numpy min, max, mean, std ({}): ", type);
  std::fflush(stdout);
  if (!std::filesystem::exists(python)) {
    fmt::print("not installed (./dev interop installs it)\n");
    return;
  }
  const std::string script = fmt::format(R"py(
import numpy, statistics, time
numpy.seterr(all="ignore")
values = (numpy.random.default_rng(1).standard_normal({} // numpy.dtype("{}").itemsize, dtype=numpy.float32) * 20).astype("{}")
times = []
for _ in range(3):
    start = time.perf_counter()
    values.min(), values.max(), values.mean(), values.std()
    times.append(time.perf_counter() - start)
middle = statistics.median(times)
print(f"{{middle * 1000:.0f}} ms, {{values.nbytes / middle / 1e9:.2f}} GB/s")
)py",
                                         kBytes, type, type);
  if (std::system(fmt::format("{} -c '{}'", python, script).c_str()) != 0) fmt::print("failed\n");
}

void run(graph::DType dtype) {
  const auto bytes = weights(dtype);
  const auto measure = [&] {
    convert::StatsAccumulator stats(dtype);
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const std::size_t unit = graph::dtype_info(dtype).block_bytes, piece = kPiece / unit * unit;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      stats.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    sink += stats.result().zeros;
  };
  const auto results =
      bench::measure({{"ceiling: sum of the words", [&] { read_words(bytes); }}, {"statistics", measure}}, 7);
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  const double elements = static_cast<double>(bytes.size() / info.block_bytes) * info.block_elements;
  bench::print(fmt::format("{}: 256 MiB, {:.0f} M elements, {:.2f} G elements/s", info.name, elements / 1e6,
                           elements / 1e9 / results[1].median),
               results, bytes.size());
  print_numpy(dtype);
}

}  // namespace
}  // namespace loadline::tests

int main() {
  using loadline::graph::DType;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::q8_0, DType::q4_k})
    loadline::tests::run(dtype);
  return loadline::tests::sink == 1 ? 1 : 0;  // so that nothing measured can be left out
}
