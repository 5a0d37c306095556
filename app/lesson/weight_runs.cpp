// Runs on weights: rehearsed loads, a packing, quantizing, pruning.

#include "app/lesson/runs.h"
#include "app/report/measured_loads.h"
#include "core/base/text.h"
#include "core/convert/numbers/quantize.h"
#include "core/graph/dtype_and_shape.h"
#include "core/load/answer/answer.h"
#include "core/load/answer/projection.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/load_options.h"
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/core.h>
#include <zlib.h>

namespace loadline::lesson {

// --- Loads a small model for real, method by method.

RunResult run_rehearse(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  graph::MetaGraph graph = *model.graph();
  graph.format.clear();  // plans run over any bytes: also those of frameworks that open other files
  load::LoadRequest request;
  request.methods = call.list("method", "sequential");
  request.orders = call.list("order", "file");
  if (const std::string ring = call.text("staging", ""); !ring.empty())
    load::set_load_option(request, "staging", ring);
  const load::BoundRequest bound = load::bind_request(graph, request, call.environment);
  RunResult result;
  result.figures["weights"] = run_bytes(graph::storage_bytes(graph));
  result.lines.push_back(fmt::format("{}: {} of random weights", graph::model_name(graph),
                                     format_bytes(graph::storage_bytes(graph))));
  result.lines.push_back(fmt::format("{:<22}{:<12}{:<10}  {:>11}  {:>11}", "method", "order", "counter",
                                     "projected", "measured"));
  for (const load::Method* const method : bound.methods)
    for (const load::OrderChoice& order : bound.orders) {
      const plan::Plan plan = load::make_plan(
          graph, *method, load::make_order(graph, order, *method, bound, call.progress), bound);
      const load::HostMeasurement measurement =
          load::measure_on_host(model.graph(), plan, false, call.progress);
      const report::MeasuredLoad row = report::rehearsed_load(*method, order.name, plan, measurement);
      const std::string stem = std::string(method->id) + (bound.orders.size() > 1 ? "." + order.name : "");
      const auto add_line = [&](std::string_view counter, std::uint64_t projected, std::uint64_t measured) {
        result.lines.push_back(fmt::format("{:<22}{:<12}{:<10}  {:>11}  {:>11}", method->id,
                                           safe_display(order.name, 11), counter, format_bytes(projected),
                                           format_bytes(measured)));
      };
      for (const report::MeasuredCounter& counter : row.counters) {
        result.figures[fmt::format("{}.{}", stem, counter.id)] = run_bytes(counter.measured);
        if (!report::too_small_to_judge(counter.projected, counter.measured))
          add_line(counter.name, counter.projected, counter.measured);
      }
      // the counters' own peaks may be at different moments
      add_line("at once", measurement.projected_held, measurement.measured_held);
      result.figures[stem + ".projected"] = run_bytes(measurement.projected_held);
      result.figures[stem + ".measured"] = run_bytes(measurement.measured_held);
      result.figures[stem + ".seconds"] = assets::Datum(row.seconds);
    }
  return result;
}

// --- Packs the device blocks of a load and the pass behind it.

RunResult run_pack(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), true, call);
  const graph::MetaGraph& graph = *model.graph();
  load::LoadRequest request;
  request.methods = {call.text("method", "staged_ring")};
  request.sequence = call.number("sequence", 64, 1 << 16);
  const load::BoundRequest bound = load::bind_request(graph, request, call.environment);
  const load::RequestPass pass(graph, request, call.environment.assets);
  const load::Projection projection =
      load::project(graph, *bound.methods.at(0), load::find_order("file"), bound, call.progress, pass.pass());
  const plan::SpaceProblem space =
      plan::space_problem(projection.plan, projection.timeline, plan::Space::device);
  std::uint64_t sum = 0;
  for (const packing::Buffer& buffer : space.problem.buffers) sum += buffer.size;
  packing::PackOptions options;
  options.minimize = true;
  constexpr double kSeconds = 5;
  options.seconds = kSeconds;
  const packing::Packing packing = packing::pack(space.problem, options, call.progress);
  const std::uint64_t greedy = packing::greedy_by_size_height(space.problem).value_or(0);
  RunResult result;
  result.figures = {{"buffers", run_bytes(space.problem.buffers.size())},
                    {"sum", run_bytes(sum)},
                    {"greedy", run_bytes(greedy)},
                    {"packed", run_bytes(packing.height())},
                    {"bound", run_bytes(packing.lower_bound())},
                    {"proven", assets::Datum(std::int64_t{packing.proven_optimal()})},
                    {"seconds", assets::Datum(packing.seconds)}};
  result.lines = {
      run_line("buffers", format_grouped(space.problem.buffers.size())),
      run_line("without sharing memory", format_bytes(sum)),
      run_line("greedy, the largest first", format_bytes(greedy), "as TensorFlow Lite plans"),
      run_line("packed", format_bytes(packing.height()),
               fmt::format("{}, {}", packing.proven_optimal() ? "proven: no packing is lower" : "not proven",
                           format_seconds(packing.seconds))),
      run_line("alive at once, at most", format_bytes(packing.lower_bound()), "no packing is lower")};
  return result;
}

// --- Quantizes the weights of a small model, and measures what that changes.

RunResult run_quantize(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const std::vector<float> numbers = largest_matrix(model.graph());
  double square = 0;
  for (const float number : numbers) square += static_cast<double>(number) * static_cast<double>(number);
  RunResult result;
  result.figures["elements"] = run_bytes(numbers.size());
  result.lines.push_back(
      fmt::format("{:<10}{:>18}{:>14}{:>18}", "type", "bits per weight", "bytes", "error (RMS)"));
  for (const std::string& name : call.list("types", "q8_0,q6_k,q4_k,q4_0,q2_k")) {
    const auto type = graph::dtype_named(name);
    if (!type || !convert::can_quantize(*type))
      call.run.place.fail("'{}' is not a type that weights can be quantized to", name);
    const graph::DTypeInfo& info = graph::dtype_info(*type);
    const std::size_t whole = numbers.size() / info.block_elements * info.block_elements;
    std::vector<std::byte> blocks(whole / info.block_elements * info.block_bytes);
    convert::quantize(*type, std::span(numbers).first(whole), blocks);
    std::vector<float> back(whole);
    convert::dequantize(*type, blocks, back);
    double error = 0;
    for (std::size_t i = 0; i < whole; ++i) {
      const double off = static_cast<double>(back[i]) - static_cast<double>(numbers[i]);
      error += off * off;
    }
    const double percent = square == 0 ? 0 : std::sqrt(error / square) * 100;
    const double bits = static_cast<double>(info.block_bytes) * 8 / static_cast<double>(info.block_elements);
    result.figures[name + ".bits"] = assets::Datum(bits);
    result.figures[name + ".bytes"] = run_bytes(blocks.size());
    result.figures[name + ".error"] = assets::Datum(percent);
    result.lines.push_back(
        fmt::format("{:<10}{:>18.2f}{:>14}{:>16.2f} %", name, bits, format_bytes(blocks.size()), percent));
    call.progress.check_canceled();
  }
  return result;
}

// --- Prunes weights to 2:4, measures the error, and how well their bytes compress.

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
  call.progress.check_canceled();
  const auto groups = static_cast<double>(std::max<std::size_t>(numbers.size() / 4, 1));
  const double before = static_cast<double>(sparse_groups(numbers)) / groups * 100;
  const double lost = prune(numbers);
  const double after = static_cast<double>(sparse_groups(numbers)) / groups * 100;
  const double error = square == 0 ? 0 : std::sqrt(lost / square) * 100;
  const double coded = (high_bits + low_bits) / 16 * 100;
  RunResult result;
  result.figures = {
      {"elements", run_bytes(numbers.size())},
      {"sparse_before", assets::Datum(before)},
      {"sparse_after", assets::Datum(after)},
      {"error", assets::Datum(error)},
      {"high_bits", assets::Datum(high_bits)},
      {"low_bits", assets::Datum(low_bits)},
      {"coded", assets::Datum(coded)},
      {"zipped", assets::Datum(static_cast<double>(zipped) / static_cast<double>(both.size()) * 100)}};
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
