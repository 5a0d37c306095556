// Binds the question, reads the verdict off its one row, tries quantizations as converters would write them.
#include "app/report/does_it_run.h"

#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/expected_tensors.h"
#include "core/graph/dtype_and_shape.h"
#include "exporters/exporter.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/core.h>

namespace loadline::report {

// --- The verdict.

namespace {

using State = RunVerdict::State;

// The least room that is left below any budget.
std::optional<std::uint64_t> slack(const load::LoadRow& row, const load::Budget& budget) {
  std::optional<std::uint64_t> least;
  const auto hold = [&](std::optional<std::uint64_t> most, std::uint64_t peak) {
    if (most && peak <= *most) least = std::min(least.value_or(UINT64_MAX), *most - peak);
  };
  hold(budget.device, row.verdict.device_peak);
  hold(budget.host, row.verdict.host_peak);
  hold(budget.unified, row.verdict.unified_peak);
  return least;
}

// Two digits, rounded down: "512", "1.2k", "70k", "1.2M".
std::string rounded_tokens(std::uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  const bool millions = count >= 1'000'000;
  const std::uint64_t tenths = count / (millions ? 100'000 : 100);
  const char* const unit = millions ? "M" : "k";
  if (tenths < 100) return fmt::format("{}.{}{}", tenths / 10, tenths % 10, unit);
  const std::uint64_t whole = tenths / 10;
  return fmt::format("{}{}", whole < 100 ? whole : whole / 10 * 10, unit);
}

// "about 70k tokens", never more than the model has positions for; empty if it is not known.
std::string context_text(const load::LoadAnswer& judged) {
  const std::optional<std::uint64_t>& most = judged.rows.front().context_max;
  if (!judged.context || !most) return {};
  const std::optional<std::uint64_t>& positions = judged.context->positions;
  if (*most >= load::kMostTokens && !positions) return "any number of tokens";
  if (positions && *most >= *positions) return fmt::format("all {} tokens", format_grouped(*positions));
  return fmt::format("{}{} tokens",
                     judged.context->cache_only ? "at most "
                     : *most < 1000             ? ""
                                                : "about ",
                     rounded_tokens(*most));
}

}  // namespace

std::string_view run_state_id(State state) {
  constexpr std::array<std::string_view, 6> kIds = {"unknown", "unjudged",   "fits",
                                                    "tight",   "incomplete", "over"};
  return kIds[static_cast<std::size_t>(state)];
}

std::string fault_text(std::string_view message, std::string_view path) {
  const std::size_t end = message.starts_with(path) ? message.find(": ") : std::string_view::npos;
  return safe_display(end == std::string_view::npos ? message : message.substr(end + 2), 160);
}

RunVerdict run_verdict(const load::LoadAnswer& judged) {
  const load::LoadRow& row = judged.rows.front();
  const load::BoundRequest& bound = *judged.bound;
  if (row.refusal)
    return {.state = State::over, .words = "not possible", .first = safe_display(row.refusal->what(), 200)};
  if (!bound.judged()) return {.state = State::unjudged, .words = "no budget"};
  RunVerdict verdict{.context = judged.context ? row.context_max : std::nullopt};
  if (row.incomplete) {
    verdict.state = row.is_within() ? State::incomplete : State::over;
    verdict.words =
        row.is_within() ? "incomplete" : fmt::format("incomplete, {} over", format_bytes(row.most_over()));
    verdict.first = safe_display(bound.incomplete, 200);
    return verdict;
  }
  const std::string context = context_text(judged);
  const std::uint64_t tokens = bound.request.sequence + bound.request.past;
  if (row.fits() && judged.context && judged.context->positions.value_or(UINT64_MAX) < tokens) {
    verdict.state = State::tight;
    verdict.words =
        fmt::format("weights fit, the model has only {}", counted(*judged.context->positions, "position"));
    return verdict;
  }
  if (row.fits()) {
    verdict.state = State::fits;
    verdict.left = slack(row, bound.memory.budget);
    verdict.words =
        fmt::format("fits{}{}", verdict.left ? fmt::format(", {} left", format_bytes(*verdict.left)) : "",
                    context.empty() ? "" : ", " + context);
    return verdict;
  }
  verdict.over = row.most_over();
  verdict.first = safe_display(row.first_over, 200);
  if (verdict.context.value_or(0) > 0) {
    verdict.state = State::tight;
    verdict.words = fmt::format("weights fit, {} do not: {}", counted(tokens, "token"), context);
    return verdict;
  }
  verdict.state = State::over;
  verdict.words = *verdict.over > 0 ? format_bytes(*verdict.over) + " over" : over_text(row.verdict);
  return verdict;
}

// --- The question.

load::LoadRequest usual_request(std::string_view target, std::uint64_t prompt) {
  load::LoadRequest request;
  request.methods = {std::string(kUsualMethod)};
  request.target = target;
  request.sequence = prompt;
  return request;
}

load::LoadAnswer ask_whether_it_runs(const graph::MetaGraph& graph, load::LoadRequest request,
                                     const load::LoadEnvironment& environment, Progress& progress) {
  request.max_context = true;
  auto forward = std::make_shared<const load::RequestPass>(graph, request, environment.assets,
                                                           load::UnknownPass::leave_out);
  auto bound = std::make_shared<const load::BoundRequest>(load::bind_request(graph, request, environment));
  return load::answer(graph, std::move(bound), {.advise = false}, std::move(forward), progress);
}

std::vector<QuantizedModel> quantizations(const graph::MetaGraph& graph, const load::LoadRequest& request,
                                          std::span<const forward::TypePolicy> policies,
                                          const load::LoadEnvironment& environment, bool until_one_runs,
                                          Progress& progress) {
  std::vector<QuantizedModel> found;
  if (std::ranges::find(graph.notes, graph::Severity::error, &graph::Note::severity) != graph.notes.end())
    return found;  // what is missing may not fit
  for (const std::string_view policy : kQuantizations) {
    progress.check_canceled();
    try {
      exporters::ExportOptions options;
      options.policy = forward::find_type_policy(policies, policy);
      options.tokenizer = false;
      const exporters::Layout layout =
          exporters::find_exporter("gguf").layout(graph, options, "quantized.gguf");
      const std::uint64_t bytes = graph::storage_bytes(layout.result);
      if (bytes >= graph::storage_bytes(graph)) continue;
      found.push_back({std::string(policy), bytes,
                       run_verdict(ask_whether_it_runs(layout.result, request, environment, progress))});
      if (until_one_runs && found.back().verdict.state == State::fits) break;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::canceled) throw;
      return {};  // what cannot be written is no advice
    }
  }
  return found;
}

std::optional<QuantizedModel> best_quantization(const graph::MetaGraph& graph,
                                                const load::LoadRequest& request,
                                                std::span<const forward::TypePolicy> policies,
                                                const load::LoadEnvironment& environment,
                                                Progress& progress) {
  std::vector<QuantizedModel> tried = quantizations(graph, request, policies, environment, true, progress);
  if (tried.empty() || tried.back().verdict.state != State::fits) return std::nullopt;
  return std::move(tried.back());
}

// --- The row.

namespace {

// The type that holds the most bytes of weights.
std::string main_type(const graph::MetaGraph& graph) {
  std::map<graph::DType, std::uint64_t> bytes;
  for (const graph::Tensor& tensor : graph.tensors)
    bytes[tensor.dtype] += graph.storage(tensor.storage).bytes;
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return most == bytes.end() ? "" : std::string(graph::dtype_info(most->first).name);
}

}  // namespace

ModelRow model_row(const graph::MetaGraph& graph, const load::LoadRequest& request,
                   const load::LoadEnvironment& environment, Progress& progress) {
  const auto assets = environment.assets ? environment.assets : forward::built_in_assets();
  return {.format = graph.format,
          .type = main_type(graph),
          .tensors = graph.tensors.size(),
          .parameters = forward::model_claims(graph, *assets).parameters,
          .bytes = graph::storage_bytes(graph),
          .verdict = run_verdict(ask_whether_it_runs(graph, request, environment, progress))};
}

}  // namespace loadline::report
