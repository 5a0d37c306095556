// Binds a request, projects its rows and searches for advice.
#include "core/base/error.h"
#include "core/load/answer/answer.h"
#include "core/load/answer/compare.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace loadline {
namespace {

// Projects every method in every order of the bound request, method by method. A load that cannot be done
// becomes a row with its refusal; so does a load that maps files which cannot be mapped.
std::vector<LoadRow> project_rows(const MetaGraph& graph, const BoundRequest& bound,
                                  std::span<const Method* const> methods, const ForwardPass* pass,
                                  const AnswerOptions& options, Progress& progress) {
  const Labels labels(graph);
  const std::string unmapped = mapping_refusal(graph);
  const std::vector<OrderChoice>& orders = bound.orders;
  std::vector<LoadRow> rows(methods.size() * orders.size());
  const auto refuse = [&](std::size_t at, const Error& error) {
    rows[at] = refused_row(*methods[at / orders.size()], orders[at % orders.size()].name, error);
  };
  const auto take = [&](std::size_t at, const Projection& projection) {
    if (!unmapped.empty() && projection.maps_files)
      return refuse(at, Error(ErrorCode::unsupported, unmapped));
    rows[at] = make_row(projection, bound, labels, options.alive);
    if (options.projected) options.projected(at, rows[at], projection);
  };
  compare(graph, methods, orders, bound.inputs, pass, {take, refuse}, progress);
  return rows;
}

// A required peak limits the same figure as a budget of that memory.
Budget advice_budget(const BoundRequest& bound) {
  Budget budget = bound.budget;
  const auto& required = bound.request().require_peak;
  if (!required) return budget;
  auto& limit = bound.memory == MemoryKind::unified ? budget.unified : budget.device;
  limit = std::min(limit.value_or(UINT64_MAX), *required);
  return budget;
}

AdvisedLoad as_asked(const LoadRow& row, const LoadRequest& request) {
  AdvisedLoad load;
  load.settings = {{"method", std::string(row.method->id)}, {"order", row.order}};
  load.request = request;
  load.request.methods = {std::string(row.method->id)};
  load.request.orders = {row.order};
  load.method = row.method;
  load.order = row.order;
  for (std::size_t i = 0; i < kSpaceCount; ++i) load.peaks[i] = row.peaks[i].bytes;
  // the search reports page cache peaks without a page cache budget, so this does too
  if (row.cache) load.peaks[index(Space::page_cache)] = row.cache->mapped;
  load.held = row.held;
  load.seconds = row.seconds;
  load.verdict = row.verdict;
  return load;
}

// The requested rows that fit, fastest first.
Advice among_rows(std::span<const LoadRow> rows, const LoadRequest& request) {
  Advice advice;
  for (const LoadRow& row : rows)
    if (row.fits() && !row.method->traits.streams) advice.loads.push_back(as_asked(row, request));
  std::ranges::stable_sort(advice.loads, [](const AdvisedLoad& a, const AdvisedLoad& b) {
    return std::tie(a.seconds, a.held) < std::tie(b.seconds, b.held);
  });
  if (advice.loads.size() > kMostAdvice) advice.loads.resize(kMostAdvice);
  return advice;
}

// For each method its row that is least over its budgets; nearest to a fit first.
std::vector<AskedLoad> asked_loads(std::span<const LoadRow> rows, std::span<const OrderChoice> orders) {
  std::map<const Method*, std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].refusal) continue;
    const auto [found, fresh] = best.try_emplace(rows[i].method, i);
    if (!fresh && rows[i].most_over() < rows[found->second].most_over()) found->second = i;
  }
  std::vector<std::size_t> chosen;
  for (const auto& entry : best) chosen.push_back(entry.second);
  std::ranges::sort(chosen, [&](std::size_t a, std::size_t b) {
    return std::tuple(rows[a].most_over(), a) < std::tuple(rows[b].most_over(), b);
  });
  std::vector<AskedLoad> loads;
  for (const std::size_t row : chosen) loads.push_back({rows[row].method, orders[row % orders.size()]});
  return loads;
}

// Streaming methods count as a fit only if nothing else was requested: they nearly always fit.
std::optional<LoadAdvice> find_advice(const MetaGraph& graph, const LoadAnswer& answer, Progress& progress) {
  const std::vector<LoadRow>& rows = answer.rows;
  const BoundRequest& bound = *answer.bound;
  const auto fails = [](const LoadRow& row) { return !row.refusal && !row.fits(); };
  if (!bound.judged() || std::ranges::none_of(rows, fails)) return std::nullopt;
  const bool all_stream =
      std::ranges::all_of(rows, [](const LoadRow& row) { return row.refusal || row.method->traits.streams; });
  const bool some_fit = std::ranges::any_of(
      rows, [&](const LoadRow& row) { return row.fits() && (all_stream || !row.method->traits.streams); });
  if (some_fit)
    return all_stream ? std::nullopt : std::optional<LoadAdvice>({among_rows(rows, bound.request()), false});
  const AdviceRequest request{asked_loads(rows, bound.orders), bound.inputs, advice_budget(bound),
                              answer.forward->pass()};
  return LoadAdvice{advise(graph, request, progress), true};
}

// The methods outside the default set with a row that fits, in table order.
std::vector<const Method*> find_others(const MetaGraph& graph, const LoadAnswer& answer, Progress& progress) {
  std::vector<const Method*> others;
  for (const Method& method : methods())
    if (!method.common) others.push_back(&method);
  const std::vector<LoadRow> rows =
      project_rows(graph, *answer.bound, others, answer.forward->pass(), {}, progress);
  std::vector<const Method*> fitting;
  for (const LoadRow& row : rows)
    if (row.fits() && (fitting.empty() || fitting.back() != row.method)) fitting.push_back(row.method);
  return fitting;
}

}  // namespace

bool LoadAnswer::any_fits() const {
  return std::ranges::any_of(rows, [](const LoadRow& row) { return row.fits(); });
}

LoadAnswer answer(const MetaGraph& graph, const LoadRequest& request, const LoadEnvironment& environment,
                  const AnswerOptions& options, Progress& progress) {
  return answer(graph, request, environment, options,
                std::make_shared<const RequestPass>(graph, request, environment.assets), progress);
}

LoadAnswer answer(const MetaGraph& graph, const LoadRequest& request, const LoadEnvironment& environment,
                  const AnswerOptions& options, std::shared_ptr<const RequestPass> forward,
                  Progress& progress) {
  LoadAnswer result;
  result.bound = std::make_shared<const BoundRequest>(bind_request(graph, request, environment));
  result.forward = std::move(forward);
  result.rows =
      project_rows(graph, *result.bound, result.bound->methods, result.forward->pass(), options, progress);
  if (std::ranges::all_of(result.rows, [](const LoadRow& row) { return row.refusal.has_value(); }))
    throw *result.rows.front().refusal;
  if (request.max_context)
    result.context = find_contexts(graph, *result.bound, *result.forward, result.rows, progress);
  if (!options.advise) return result;
  result.advice = find_advice(graph, result, progress);
  if (request.methods.empty() && result.bound->judged() && !result.any_fits())
    result.also_fits = find_others(graph, result, progress);
  return result;
}

}  // namespace loadline
