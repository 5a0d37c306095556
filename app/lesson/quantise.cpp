// Quantises the weights of a small model, and measures what that changes.
#include "app/lesson/runs.h"
#include "core/base/text.h"
#include "core/convert/numbers/dequantize.h"
#include "core/convert/numbers/quantize.h"
#include "core/graph/dtype_and_shape.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loadline::lesson {

RunResult run_quantise(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const std::vector<float> numbers = largest_matrix(model.graph());
  double square = 0;
  for (const float number : numbers) square += static_cast<double>(number) * static_cast<double>(number);
  RunResult result;
  result.figures["elements"] = run_bytes(numbers.size());
  result.lines.push_back(
      fmt::format("{:<10}{:>18}{:>14}{:>18}", "type", "bits per weight", "bytes", "error (RMS)"));
  for (const std::string& name : call.list("types", "q8_0,q6_k,q4_k,q4_0,q2_k")) {
    const auto type = dtype_named(name);
    if (!type || !can_quantize(*type))
      call.run.place.fail("'{}' is no type that weights can be quantised to", name);
    const DTypeInfo& info = dtype_info(*type);
    const std::size_t whole = numbers.size() / info.block_elements * info.block_elements;
    std::vector<std::byte> blocks(whole / info.block_elements * info.block_bytes);
    quantize(*type, std::span(numbers).first(whole), blocks);
    std::vector<float> back(whole);
    dequantize(*type, blocks, back);
    double error = 0;
    for (std::size_t i = 0; i < whole; ++i) {
      const double off = static_cast<double>(back[i]) - static_cast<double>(numbers[i]);
      error += off * off;
    }
    const double percent = square == 0 ? 0 : std::sqrt(error / square) * 100;
    const double bits = static_cast<double>(info.block_bytes) * 8 / static_cast<double>(info.block_elements);
    result.figures[name + ".bits"] = Datum(bits);
    result.figures[name + ".bytes"] = run_bytes(blocks.size());
    result.figures[name + ".error"] = Datum(percent);
    result.lines.push_back(
        fmt::format("{:<10}{:>18.2f}{:>14}{:>16.2f} %", name, bits, format_bytes(blocks.size()), percent));
    call.progress.check_cancelled();
  }
  return result;
}

}  // namespace loadline::lesson
