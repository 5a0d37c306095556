// Binds the question, reads the verdict off its one row, tries quantizations as converters would write them.
#include "app/report/does_it_run.h"

#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
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

}  // namespace

std::string rounded_tokens(std::uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  const bool millions = count >= 1'000'000;
  const std::uint64_t tenths = count / (millions ? 100'000 : 100);
  const char* const unit = millions ? "M" : "k";
  if (tenths < 100) return fmt::format("{}.{}{}", tenths / 10, tenths % 10, unit);
  const std::uint64_t whole = tenths / 10;
  return fmt::format("{}{}", whole < 100 ? whole : whole / 10 * 10, unit);
}

std::string tokens_text(std::uint64_t count) {
  return fmt::format("{}{} tokens", count < 1000 ? "" : "about ", rounded_tokens(count));
}

std::optional<std::uint64_t> tokens_of(std::string text) {
  std::erase_if(text, [](char c) { return c == ',' || c == ' '; });
  std::uint64_t unit = 1;
  if (text.ends_with('k') || text.ends_with('K')) unit = 1024;
  if (text.ends_with('M')) unit = 1024 * 1024;
  if (unit > 1) text.pop_back();
  const auto number = text_as<std::uint64_t>(text);
  if (!number || *number > UINT64_MAX / unit) return std::nullopt;
  return *number * unit;
}

namespace {

// "about 70k tokens"; empty if the number is not known or nothing limits it.
std::string context_text(const load::LoadAnswer& judged, const RunVerdict& verdict) {
  if (!judged.context || !verdict.context || *verdict.context >= load::kMostTokens) return {};
  if (verdict.positions == verdict.context) return "all " + counted(*verdict.positions, "token");
  if (judged.context->cache_only) return fmt::format("at most {} tokens", rounded_tokens(*verdict.context));
  return tokens_text(*verdict.context);
}

// Whether a pass was asked for that nobody can describe.
bool lacks_pass(const load::LoadAnswer& judged) {
  return judged.bound->request.sequence > 0 && judged.forward && judged.forward->pass() == nullptr;
}

}  // namespace

std::string_view run_state_id(State state) {
  constexpr std::array<std::string_view, 7> kIds = {"unknown", "unjudged",   "fits", "estimated",
                                                    "tight",   "incomplete", "over"};
  return kIds[static_cast<std::size_t>(state)];
}

std::string fault_text(std::string_view message, std::string_view path) {
  if (message.starts_with(path))
    if (const std::size_t end = message.find(": ", path.size()); end != std::string_view::npos)
      message.remove_prefix(end + 2);
  return safe_display(message, 160);
}

RunVerdict run_verdict(const load::LoadAnswer& judged) {
  const load::LoadRow& row = judged.rows.front();
  const load::BoundRequest& bound = *judged.bound;
  RunVerdict verdict;
  const auto say = [&](State state, std::string words, std::string_view first = {},
                       std::string_view about = {}) {
    verdict.state = state;
    verdict.words = std::move(words);
    verdict.first = safe_display(first, 200);
    if (!first.empty()) verdict.about = std::string(about) + verdict.first;
    return verdict;
  };
  if (row.refusal) return say(State::over, "not possible", row.refusal->what());
  if (!bound.judged()) return say(State::unjudged, "no budget");
  constexpr std::string_view kNotWhole = "This model is not whole: ";
  const std::uint64_t over = row.most_over();
  if (!row.is_within()) verdict.over = over;
  verdict.whole = !row.incomplete;
  if (row.incomplete)
    return row.is_within() ? say(State::incomplete, "incomplete", bound.incomplete, kNotWhole)
                           : say(State::over, fmt::format("incomplete, {} over", format_bytes(over)),
                                 bound.incomplete, kNotWhole);
  if (judged.context) {
    verdict.context = row.context_max;
    verdict.positions = judged.context->positions;
    if (verdict.context && verdict.positions)
      verdict.context = std::min(*verdict.context, *verdict.positions);
  }
  const std::string context = context_text(judged, verdict);
  const std::uint64_t tokens = bound.request.sequence + bound.request.past;
  if (row.fits()) {
    verdict.left = slack(row, bound.memory.budget);
    verdict.too_long = bound.request.sequence > 0 && verdict.positions.value_or(UINT64_MAX) < tokens;
    if (verdict.too_long)
      return say(State::tight,
                 fmt::format("weights fit, the model has only {}", counted(*verdict.positions, "position")));
    if (lacks_pass(judged)) return say(State::tight, "weights fit, what a prompt needs is not known");
    // a target that does not say how much memory its host has is not asked whether that is enough
    const std::uint64_t host = row.peaks[plan::index(plan::Space::host)].bytes;
    const bool on_host = bound.memory.kind == plan::MemoryKind::discrete && !bound.memory.budget.host &&
                         host > row.peaks[plan::index(plan::Space::device)].bytes;
    const std::string room =
        fmt::format("{}{}{}", verdict.left ? fmt::format(", {} left", format_bytes(*verdict.left)) : "",
                    on_host ? fmt::format(", {} on the host", format_bytes(host)) : "",
                    context.empty() ? "" : ", " + context);
    if (row.estimated)
      return say(State::estimated, "fits by estimate" + room, judged.unaccounted, "Not accounted for: ");
    return say(State::fits, "fits" + room);
  }
  constexpr std::string_view kFirstOver = "First over the budget: ";
  if (verdict.context.value_or(0) > 0)
    return say(State::tight, fmt::format("weights fit, room for {}, not {}", context, format_grouped(tokens)),
               row.first_over, kFirstOver);
  return say(State::over, over > 0 ? format_bytes(over) + " over" : over_text(row.verdict), row.first_over,
             kFirstOver);
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

TriedQuantizations quantizations(const graph::MetaGraph& graph, const load::LoadRequest& request,
                                 std::span<const forward::TypePolicy> policies,
                                 const load::LoadEnvironment& environment, bool until_one_runs,
                                 Progress& progress) {
  TriedQuantizations tried;
  if (std::ranges::find(graph.notes, graph::Severity::error, &graph::Note::severity) != graph.notes.end()) {
    tried.missing = "the model is not whole";
    return tried;
  }
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
      tried.models.push_back(
          {std::string(policy), bytes,
           run_verdict(ask_whether_it_runs(layout.result, request, environment, progress))});
      if (until_one_runs && tried.models.back().verdict.fits()) return tried;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::canceled) throw;
      return {.missing = "it cannot be written as a GGUF file"};  // no advice that cannot be followed
    }
  }
  if (tried.models.empty()) tried.missing = "no quantization is smaller";
  return tried;
}

void find_better(ModelRow& row, const graph::MetaGraph& graph, const load::LoadRequest& request,
                 std::span<const forward::TypePolicy> policies, const load::LoadEnvironment& environment,
                 Progress& progress) {
  if (row.verdict.fits() || row.verdict.too_long) return;
  TriedQuantizations tried = quantizations(graph, request, policies, environment, true, progress);
  row.no_better = std::move(tried.missing);
  if (tried.models.empty()) return;
  if (tried.models.back().verdict.fits())
    row.better = std::move(tried.models.back());
  else
    row.no_better =
        fmt::format("no quantization runs, the smallest has {}", format_bytes(tried.models.back().bytes));
}

std::string type_title(std::string_view word) {
  std::string title(word);
  for (char& c : title)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return title;
}

// --- The row.

namespace {

// The quantization of the file, or the type that holds the most bytes of weights.
std::string main_type(const graph::MetaGraph& graph, std::span<const forward::TypePolicy> policies) {
  if (std::string name = forward::quantization_name(graph, policies); !name.empty()) return name;
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
          .type = main_type(graph, assets->type_policies),
          .tensors = graph.tensors.size(),
          .parameters = forward::model_claims(graph, *assets).parameters,
          .bytes = graph::storage_bytes(graph),
          .verdict = run_verdict(ask_whether_it_runs(graph, request, environment, progress))};
}

std::string missing_part(const std::string& incomplete, bool unfinished, const std::optional<ModelRow>& row) {
  if (!incomplete.empty()) return incomplete;
  const bool lacks = row && (row->format == "config" || !row->verdict.whole);
  if (unfinished && (lacks || !row)) return "its download did not finish";
  return lacks && row->format != "config" ? row->verdict.first : "";
}

}  // namespace loadline::report
