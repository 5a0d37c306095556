// bench_quantize [--ggml LIBRARY] [--importance] [TYPE...]: quantizers of rows in memory, one thread and two,
// beside copying the same floats and beside ggml_quantize_chunk of a shared library that has it
// (libggml-base.so, or the module inside a Python wheel of llama.cpp). Rates count the floats that are read.
#include "core/convert/numbers/quantize.h"
#include "tests/bench/harness.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>

namespace loadline::tests {
namespace {

constexpr std::size_t kColumns = 4096;
constexpr int kRounds = 7;

using GgmlQuantize = std::size_t (*)(int type, const float* from, void* to, std::int64_t start,
                                     std::int64_t rows, std::int64_t columns, const float* importance);

struct Settings {
  GgmlQuantize ggml = nullptr;
  bool importance = false;
  std::vector<graph::DType> types;
};

GgmlQuantize ggml_of(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, "ggml_quantize_chunk");
  if (found == nullptr) fmt::print(stderr, "{}: {}\n", path, dlerror());
  return reinterpret_cast<GgmlQuantize>(found);
}

// Quantizers that search are slow in ggml: fewer rows for those.
std::size_t row_count(graph::DType dtype, bool importance) {
  const bool fast = !convert::heeds_importance(dtype) || (convert::needs_row_square(dtype) && !importance);
  return fast ? 4096 : 256;
}

// Bell-shaped about 0 as weights are.
std::vector<float> weights(std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> floats(count);
  for (float& number : floats) number = normal(random);
  return floats;
}

void run(graph::DType dtype, const Settings& settings) {
  const std::size_t rows = row_count(dtype, settings.importance);
  const std::vector<float> numbers = weights(rows * kColumns);
  std::vector<float> importance = settings.importance ? weights(kColumns) : std::vector<float>();
  for (float& weight : importance) weight *= weight;
  const std::size_t row_bytes = static_cast<std::size_t>(graph::byte_size(dtype, kColumns).value());
  std::vector<std::byte> blocks(rows * row_bytes), expected(blocks.size());
  std::vector<float> copy(numbers.size());
  const auto part = [&](std::size_t first, std::size_t count) {
    convert::quantize_rows(dtype, std::span(numbers).subspan(first * kColumns, count * kColumns), importance,
                           std::span(blocks).subspan(first * row_bytes, count * row_bytes));
  };
  std::vector<bench::Case> cases;
  if (settings.ggml != nullptr)
    cases.push_back({"ggml_quantize_chunk, one thread", [&] {
                       settings.ggml(graph::dtype_info(dtype).ggml, numbers.data(), expected.data(), 0,
                                     static_cast<std::int64_t>(rows), kColumns,
                                     importance.empty() ? nullptr : importance.data());
                     }});
  cases.push_back({"loadline, one thread", [&] { part(0, rows); }});
  cases.push_back({"loadline, two threads", [&] {
                     const std::jthread other([&] { part(0, rows / 2); });
                     part(rows / 2, rows - rows / 2);
                   }});
  cases.push_back({"ceiling: memcpy of the floats",
                   [&] { std::memcpy(copy.data(), numbers.data(), numbers.size() * sizeof(float)); }});
  const auto results = bench::measure(cases, kRounds);
  const bool compared = settings.ggml != nullptr;
  bench::print(
      fmt::format("{}: {} MiB of F32{}{}", graph::dtype_info(dtype).name,
                  numbers.size() * sizeof(float) >> 20, importance.empty() ? "" : ", with importance",
                  !compared            ? ""
                  : blocks == expected ? ", the same bytes"
                                       : ", OTHER BYTES"),
      results, numbers.size() * sizeof(float),
      fmt::format("{}{}", graph::dtype_info(dtype).name, importance.empty() ? "" : " with importance"));
}

}  // namespace
}  // namespace loadline::tests

int main(int argc, char** argv) {
  using namespace loadline;
  using namespace loadline::tests;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--ggml" && i + 1 < argc) {
      settings.ggml = ggml_of(argv[++i]);
      if (settings.ggml == nullptr) return 1;
    } else if (word == "--importance") {
      settings.importance = true;
    } else if (const auto dtype = graph::dtype_named(word); dtype && convert::can_quantize(*dtype)) {
      settings.types.push_back(*dtype);
    } else {
      fmt::print(stderr, "usage: bench_quantize [--ggml LIBRARY] [--importance] [TYPE...]\n");
      return 2;
    }
  }
  if (settings.types.empty())
    for (const graph::DTypeInfo& info : graph::dtype_table())
      if (convert::can_quantize(info.id)) settings.types.push_back(info.id);
  for (const graph::DType dtype : settings.types)
    if (!settings.importance || convert::heeds_importance(dtype)) run(dtype, settings);
  return 0;
}
