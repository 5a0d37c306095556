// Prunes weights to 2:4, measures the error, and how well their bytes compress.
#include "app/lesson/runs.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <zlib.h>

namespace loadline::lesson {
namespace {

// Bits per byte that no code over single bytes goes below (Shannon's entropy of order 0).
double entropy(std::span<const std::uint8_t> bytes) {
  std::array<std::uint64_t, 256> counts{};
  for (const std::uint8_t byte : bytes) ++counts[byte];
  double bits = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(bytes.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

std::uint64_t deflated(const std::vector<std::uint8_t>& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::vector<std::uint8_t> out(size);
  if (compress2(out.data(), &size, bytes.data(), static_cast<uLong>(bytes.size()), 6) != Z_OK)
    return bytes.size();
  return size;
}

// Keeps the two largest of each four; returns the squares that are lost.
double prune(std::span<float> numbers) {
  double lost = 0;
  for (std::size_t at = 0; at + 4 <= numbers.size(); at += 4) {
    const std::span<float> four = numbers.subspan(at, 4);
    std::array<std::size_t, 4> order = {0, 1, 2, 3};
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return std::abs(four[a]) < std::abs(four[b]); });
    for (const std::size_t i : {order[0], order[1]}) {
      lost += static_cast<double>(four[i]) * static_cast<double>(four[i]);
      four[i] = 0;
    }
  }
  return lost;
}

std::uint64_t sparse_groups(std::span<const float> numbers) {
  std::uint64_t groups = 0;
  for (std::size_t at = 0; at + 4 <= numbers.size(); at += 4)
    groups += std::ranges::count(numbers.subspan(at, 4), 0.0F) >= 2;
  return groups;
}

}  // namespace

RunResult run_sparsity(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  std::vector<float> numbers = largest_matrix(model.graph());
  const double square = std::accumulate(numbers.begin(), numbers.end(), 0.0, [](double sum, float number) {
    return sum + static_cast<double>(number) * static_cast<double>(number);
  });
  // as bf16: the high byte has the sign and seven bits of the exponent, the low byte the rest
  std::vector<std::uint8_t> high, low, both;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(number) >> 16;
    high.push_back(static_cast<std::uint8_t>(bits >> 8));
    low.push_back(static_cast<std::uint8_t>(bits));
    both.push_back(low.back());
    both.push_back(high.back());
  }
  const double high_bits = entropy(high), low_bits = entropy(low);
  const std::uint64_t zipped = deflated(both);
  call.progress.check_cancelled();
  const auto groups = static_cast<double>(std::max<std::size_t>(numbers.size() / 4, 1));
  const double before = static_cast<double>(sparse_groups(numbers)) / groups * 100;
  const double lost = prune(numbers);
  const double after = static_cast<double>(sparse_groups(numbers)) / groups * 100;
  const double error = square == 0 ? 0 : std::sqrt(lost / square) * 100;
  const double coded = (high_bits + low_bits) / 16 * 100;
  RunResult result;
  result.figures = {{"elements", run_bytes(numbers.size())},
                    {"sparse_before", Datum(before)},
                    {"sparse_after", Datum(after)},
                    {"error", Datum(error)},
                    {"high_bits", Datum(high_bits)},
                    {"low_bits", Datum(low_bits)},
                    {"coded", Datum(coded)},
                    {"zipped", Datum(static_cast<double>(zipped) / static_cast<double>(both.size()) * 100)}};
  const auto percent = [](double value) { return fmt::format("{:.1f} %", value); };
  result.lines = {
      run_line("weights", format_grouped(numbers.size()), "the model's largest matrix"),
      run_line("groups of four with two zeros", percent(before)),
      run_line("  after pruning to 2:4", percent(after)),
      run_line("  error of that (RMS)", percent(error), "of the weights' own size"),
      run_line("entropy, high byte of bf16", fmt::format("{:.2f} bit", high_bits),
               "sign and exponent: of 8 bits"),
      run_line("entropy, low byte of bf16", fmt::format("{:.2f} bit", low_bits), "mantissa: of 8 bits"),
      run_line("coded byte by byte, at best", percent(coded), "of the bytes"),
      run_line("zlib, measured",
               percent(static_cast<double>(zipped) / static_cast<double>(both.size()) * 100),
               "of the bytes")};
  return result;
}

}  // namespace loadline::lesson
