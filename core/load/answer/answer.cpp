// Projects the rows of a bound request and searches for advice and contexts.
#include "core/load/answer/answer.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/architecture.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/settings.h"
#include "core/load/answer/rows.h"
#include "core/plan/dry_machine.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

// --- Binds a request, projects its rows and searches for advice.

namespace {

// Projects every method in every order of the bound request, method by method. A load that cannot be done
// becomes a row with its refusal; so does a load that maps files which cannot be mapped.
std::vector<LoadRow> project_rows(const graph::MetaGraph& graph, const BoundRequest& bound,
                                  std::span<const Method* const> methods, const plan::ForwardPass* pass,
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
  compare(graph, methods, bound, pass, {take, refuse}, progress,
          options.projected ? Keep::all : Keep::figures);
  return rows;
}

AdvisedLoad as_asked(const LoadRow& row, const BoundRequest& bound, std::uint64_t stored) {
  const LoadRequest& request = bound.request;
  AdvisedLoad load;
  load.settings = {{"method", std::string(row.method->id)}, {"order", row.order}};
  load.request = request;
  load.request.methods = {std::string(row.method->id)};
  load.request.orders = {row.order};
  load.method = row.method;
  load.order = row.order;
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i) load.peaks[i] = row.peaks[i].bytes;
  // the search reports page cache peaks without a page cache budget, so this does too
  if (row.cache) load.peaks[plan::index(plan::Space::page_cache)] = row.cache->mapped;
  load.held = row.held_peak;
  set_time(load, row.seconds, row.reads.bytes, stored, bound.costs);
  load.verdict = row.verdict;
  return load;
}

// The requested rows that fit, fastest first.
Advice among_rows(std::span<const LoadRow> rows, const BoundRequest& bound, std::uint64_t stored) {
  Advice advice;
  for (const LoadRow& row : rows)
    if (row.is_within() && !row.method->traits.streams) advice.loads.push_back(as_asked(row, bound, stored));
  std::ranges::stable_sort(advice.loads, [](const AdvisedLoad& a, const AdvisedLoad& b) {
    return std::tie(a.seconds_of_all, a.held) < std::tie(b.seconds_of_all, b.held);
  });
  if (advice.loads.size() > kMostAdvice) advice.loads.resize(kMostAdvice);
  return advice;
}

// For each method its row that is least over its budgets; nearest to a fit first.
std::vector<std::size_t> nearest_rows(std::span<const LoadRow> rows) {
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
  return chosen;
}

bool has_no_room(const AdvisedLoad& load) { return load.context_max && *load.context_max == 0; }

// Streaming methods count as a fit only if nothing else was requested: they nearly always fit.
std::optional<LoadAdvice> find_advice(const graph::MetaGraph& graph, const LoadAnswer& answer, bool contexts,
                                      Progress& progress) {
  const std::vector<LoadRow>& rows = answer.rows;
  const BoundRequest& bound = *answer.bound;
  const auto fails = [](const LoadRow& row) { return !row.refusal && !row.is_within(); };
  if (!bound.judged() || std::ranges::none_of(rows, fails)) return std::nullopt;
  const bool all_stream =
      std::ranges::all_of(rows, [](const LoadRow& row) { return row.refusal || row.method->traits.streams; });
  const bool some_fit = std::ranges::any_of(rows, [&](const LoadRow& row) {
    return row.is_within() && (all_stream || !row.method->traits.streams);
  });
  if (some_fit)
    return all_stream
               ? std::nullopt
               : std::optional<LoadAdvice>({among_rows(rows, bound, graph::storage_bytes(graph)), false});
  const AdviceRequest request{bound, nearest_rows(rows), answer.forward->pass()};
  LoadAdvice found{advise(graph, request, progress), true};
  if (!contexts) return found;
  for (AdvisedLoad& load : found.advice.loads) {
    std::vector<LoadRow> row(1);
    row.front().method = load.method;
    const ContextAnswer context = find_contexts(graph, *load.bound, *answer.forward, row, progress);
    load.context_max = row.front().context_max;
    if (load.context_max && context.positions)
      load.context_max = std::min(*load.context_max, *context.positions);
  }
  // what leaves no room for a token makes nothing run
  std::vector<AdvisedLoad>& loads = found.advice.loads;
  if (!loads.empty() && std::ranges::all_of(loads, has_no_room)) found.advice.nearest.reset();
  std::erase_if(loads, has_no_room);
  return found;
}

// The methods outside the default set with a row that fits, in table order.
std::vector<const Method*> find_others(const graph::MetaGraph& graph, const LoadAnswer& answer,
                                       Progress& progress) {
  std::vector<const Method*> others;
  for (const Method& method : methods())
    if (!method.common && can_open(method, graph)) others.push_back(&method);
  leave_out_unasked(others, answer.bound->request);
  const std::vector<LoadRow> rows =
      project_rows(graph, *answer.bound, others, answer.forward->pass(), {}, progress);
  std::vector<const Method*> fitting;
  for (const LoadRow& row : rows)
    if (row.fits() && (fitting.empty() || fitting.back() != row.method)) fitting.push_back(row.method);
  return fitting;
}

std::string unaccounted_text(const BoundRequest& bound, const RequestPass* forward) {
  if (!bound.judged()) return "";
  if (forward == nullptr || forward->pass() == nullptr) return bound.unaccounted;
  const forward::ForwardModel& model = forward->model();
  if (model.bound && !model.bound->unaccounted.empty())
    return forward::settings_text(model.bound->unaccounted);
  if (!model.graph->unaccounted.empty()) return join_names(model.graph->unaccounted, 5);
  return forward->unknown_values() > 0
             ? fmt::format("the size of {}", counted(forward->unknown_values(), "value"))
             : bound.unaccounted;
}

// The laws of runtimes were measured with these kernels and F32 weights, matrices and filters of pictures in
// the place of the second input, and with tables that are looked up.
bool was_measured(const graph::Op& op, graph::TensorId id, const graph::Tensor& weight) {
  constexpr std::array<std::string_view, 5> kElements = {"Add", "Div", "FULLY_CONNECTED", "Mul", "Sub"};
  if (op.kind == "Gather") return true;
  if (weight.dtype != graph::DType::f32) return false;
  if (std::ranges::find(kElements, op.kind) != kElements.end()) return true;
  const std::size_t rank = op.kind == "Conv" ? 4 : op.kind == "MatMul" || op.kind == "Gemm" ? 2 : 0;
  return weight.shape.size() == rank && op.arguments.size() > 1 && op.arguments[1].weight == id;
}

// What onnxruntime and LiteRT make of weights that other kernels use is not known: those of more than 64 KiB.
std::string unmeasured_kernels(const graph::MetaGraph& graph) {
  constexpr std::uint64_t kSmall = 64 << 10;
  if (!graph.forward) return "how the runtime packs weights: the operators of the file are not known";
  std::vector<std::string> kinds;
  const auto add = [&](const std::vector<graph::Op>& ops) {
    for (const graph::Op& op : ops)
      for (const graph::TensorId id : op.weights) {
        const graph::Tensor& weight = graph.tensor(id);
        if (graph.storage(weight.storage).bytes <= kSmall || was_measured(op, id, weight)) continue;
        kinds.push_back(fmt::format("{} with {}", op.kind, graph::dtype_info(weight.dtype).name));
      }
  };
  add(graph.forward->ops);
  for (const graph::Body& body : graph.forward->bodies) add(body.ops);
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds.empty() ? "" : fmt::format("how the runtime packs weights of {}", join_names(kinds, 5));
}

// Rows of runtimes whose law was not measured with the kernels of this model are estimates.
void mark_unmeasured(LoadAnswer& answer, const graph::MetaGraph& graph) {
  const auto packs = [](const LoadRow& row) {
    return row.method->traits.opens == opened::kOnnx || row.method->traits.opens == opened::kLiteRt;
  };
  if (std::ranges::none_of(answer.rows, packs)) return;
  const std::string kernels = unmeasured_kernels(graph);
  if (kernels.empty()) return;
  for (LoadRow& row : answer.rows) row.estimated = row.estimated || packs(row);
  if (answer.unaccounted.empty()) answer.unaccounted = kernels;
}

bool has_part(const graph::MetaGraph& graph, std::string_view part) {
  return std::ranges::any_of(graph.tensors, [&](const graph::Tensor& tensor) {
    return tensor.name.view().find(part) != std::string_view::npos;
  });
}

// What such a method does not know: how the processor computes, or for whom a program was lowered.
std::string unknown_of_runtime(const Method& method, const graph::MetaGraph& graph) {
  if (method.id == "openvino")
    return "how OpenVINO packs matrices where the processor does not compute in BF16";
  if (method.id == "transformers_gguf") return "what Python makes of the vocabulary of a GGUF file";
  if (method.traits.opens != opened::kExecuTorch) return "";
  const bool xnnpack = method.id == "executorch_xnnpack", for_xnnpack = has_part(graph, ".XnnpackBackend");
  if (xnnpack != for_xnnpack)
    return fmt::format("the program {} lowered for XNNPACK", for_xnnpack ? "is" : "is not");
  return !xnnpack && has_part(graph, ".delegate.") ? "what the program's delegates hold" : "";
}

void mark_unknown_runtimes(LoadAnswer& answer, const graph::MetaGraph& graph) {
  for (LoadRow& row : answer.rows) {
    const std::string unknown = unknown_of_runtime(*row.method, graph);
    if (unknown.empty()) continue;
    row.estimated = true;
    if (answer.unaccounted.empty()) answer.unaccounted = unknown;
  }
}

// A row whose method has weights of another type than a training step counts with is an estimate.
void mark_other_types(LoadAnswer& answer, const graph::MetaGraph& graph) {
  const plan::ForwardPass* const pass = answer.forward ? answer.forward->pass() : nullptr;
  for (LoadRow& row : answer.rows) {
    const std::string other = untrained_types(graph, *row.method, *answer.bound, pass);
    if (other.empty()) continue;
    row.estimated = true;
    if (answer.unaccounted.empty()) answer.unaccounted = other;
  }
}

}  // namespace

void mark_estimates(LoadAnswer& answer, const graph::MetaGraph& graph) {
  answer.unaccounted = unaccounted_text(*answer.bound, answer.forward.get());
  for (LoadRow& row : answer.rows) row.estimated = !answer.unaccounted.empty();
  mark_unmeasured(answer, graph);
  mark_unknown_runtimes(answer, graph);
  mark_other_types(answer, graph);
}

bool LoadAnswer::any_within() const { return std::ranges::any_of(rows, &LoadRow::is_within); }

LoadAnswer answer(const graph::MetaGraph& graph, const LoadRequest& request,
                  const LoadEnvironment& environment, const AnswerOptions& options, Progress& progress) {
  auto forward = std::make_shared<const RequestPass>(graph, request, environment.assets);
  auto bound = std::make_shared<const BoundRequest>(bind_request(graph, request, environment));
  return answer(graph, std::move(bound), options, std::move(forward), progress);
}

LoadAnswer answer(const graph::MetaGraph& graph, std::shared_ptr<const BoundRequest> bound,
                  const AnswerOptions& options, std::shared_ptr<const RequestPass> forward,
                  Progress& progress) {
  LoadAnswer result;
  result.bound = std::move(bound);
  result.forward = std::move(forward);
  result.rows =
      project_rows(graph, *result.bound, result.bound->methods, result.forward->pass(), options, progress);
  if (std::ranges::all_of(result.rows, [](const LoadRow& row) { return row.refusal.has_value(); }))
    throw *result.rows.front().refusal;
  mark_estimates(result, graph);
  const LoadRequest& request = result.bound->request;
  if (request.max_context)
    result.context = find_contexts(graph, *result.bound, *result.forward, result.rows, progress);
  // of a model that is not whole no change is known to fit
  if (!options.advise || !result.bound->incomplete.empty()) return result;
  result.advice = find_advice(graph, result, options.advised_contexts || request.max_context, progress);
  if (request.methods.empty() && result.bound->judged() && !result.any_within())
    result.also_fits = find_others(graph, result, progress);
  return result;
}

// --- Finds the bytes that a load leaves free, then the longest pass that fits into them by bisection.

namespace {

// What a pass over a context needs, by its number of tokens. The peak never falls as tokens are added.
class PassBytes {
 public:
  PassBytes(const BoundRequest& bound, const RequestPass& pass, std::optional<std::uint64_t> micro_batch)
      : bound_(bound), pass_(pass), micro_batch_(micro_batch) {}

  // The most tokens whose pass takes at most `room` bytes. May be called from several threads.
  std::uint64_t most_tokens(std::uint64_t room) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t fits = 0, beyond = kMostTokens + 1;
    while (beyond - fits > 1) {
      const std::uint64_t middle = fits + (beyond - fits) / 2;
      (bytes(middle) <= room ? fits : beyond) = middle;
    }
    return fits;
  }

 private:
  std::uint64_t bytes(std::uint64_t tokens) {
    const auto [known, fresh] = known_.try_emplace(tokens, UINT64_MAX);
    if (!fresh) return known->second;
    if (!pass_.model().graph) {
      const auto each = pass_.model().cache_estimate->most.bytes(tokens);
      return known->second = each ? checked_mul(*each, pass_.batch()).value_or(UINT64_MAX) : UINT64_MAX;
    }
    const std::uint64_t last = std::min(tokens, micro_batch_.value_or(tokens));
    try {
      const graph::ForwardGraph& graph = *pass_.model().graph;
      plan::Plan plan;
      plan::append_forward_pass(plan, {&graph, forward::symbol_values(graph, pass_.batch(), last,
                                                                      tokens - last, bound_.request.sizes)});
      plan::DryMachine machine(bound_.costs, bound_.request.allocator);
      const plan::Timeline timeline = plan::run(plan, machine);
      known->second =
          std::max(timeline.peaks[plan::index(plan::Space::device)].bytes,
                   timeline.reserved_peak ? (*timeline.reserved_peak)[plan::index(plan::Space::device)] : 0);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::limit) throw;  // more bytes than can be counted do not fit
    }
    return known->second;
  }

  const BoundRequest& bound_;
  const RequestPass& pass_;
  std::optional<std::uint64_t> micro_batch_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> known_;
};

// The bytes that a load leaves for a pass; nothing if it does not fit itself; UINT64_MAX without a limit.
std::optional<std::uint64_t> room_of(const Projection& projection, const Budget& budget, bool on_host) {
  const BudgetVerdict verdict = check_budget(projection, budget);
  if (!verdict.fits()) return std::nullopt;
  const plan::Timeline& timeline = projection.timeline;
  std::uint64_t device = 0, host = 0, pages = 0;
  if (!timeline.lifetimes.empty()) {
    const plan::PerSpace<std::uint64_t>& last =
        timeline.reserved_usage.empty() ? timeline.final_bytes : timeline.reserved_usage.back();
    device = last[plan::index(plan::Space::device)];
    host = last[plan::index(plan::Space::host)] + last[plan::index(plan::Space::staging)] +
           projection.pass_reads.mapped;
    if (budget.pages_may_stay)
      pages = last[plan::index(plan::Space::page_cache)] -
              std::min(last[plan::index(plan::Space::page_cache)], projection.pass_reads.mapped);
  }
  std::uint64_t held = device + host + pages;
  if (projection.method->traits.activations_first) {  // they are there while the weights come
    device = std::max(device, verdict.device_peak);
    held = std::max(held, std::max(verdict.unified_peak, verdict.unified_high));
  }
  std::uint64_t room = UINT64_MAX;
  const auto leave = [&](const std::optional<std::uint64_t>& limit, std::uint64_t taken) {
    if (limit) room = std::min(room, *limit - std::min(*limit, taken));
  };
  // what the heap keeps of blocks that the load has freed
  const std::uint64_t kept = verdict.host_high - std::min(verdict.host_high, verdict.host_peak);
  if (on_host)
    leave(budget.host, capped_add(host, kept));
  else
    leave(budget.device, device);
  leave(budget.unified, capped_add(held, on_host ? kept : 0));
  if (on_host) leave(budget.committed, verdict.committed);
  return room;
}

// The positions of the model, under the names that configurations have for them.
std::optional<std::uint64_t> positions_of(const forward::ForwardModel& model) {
  if (!model.bound) return std::nullopt;
  return model.bound->config.first_count({"max_position_embeddings", "max_target_positions", "n_positions",
                                          "n_ctx", "max_sequence_length", "seq_length"});
}

std::string missing(const BoundRequest& bound, const RequestPass& pass) {
  if (!bound.judged()) return "it needs a budget";
  const forward::ForwardModel& model = pass.model();
  if (!model.graph && model.cache_estimate)
    return model.cache_bytes_per_token == 0u ? "the cache of the model does not grow with the tokens" : "";
  if (!model.graph || model.graph->ops.empty())
    return model.remark.empty() ? "the model's operators are not known" : model.remark;
  if (!forward::depends_on_tokens(*model.graph)) return "no size of the model depends on the tokens";
  return "";
}

}  // namespace

ContextAnswer find_contexts(const graph::MetaGraph& graph, const BoundRequest& bound, const RequestPass& pass,
                            std::span<LoadRow> rows, Progress& progress) {
  assert(rows.size() == bound.methods.size() * bound.orders.size());
  ContextAnswer answer{.missing = missing(bound, pass), .positions = positions_of(pass.model())};
  if (!answer.missing.empty()) return answer;
  answer.cache_only = !pass.model().graph;
  const std::uint64_t chosen = bound.request.sequence > 0 ? bound.request.sequence : pass.model().micro_batch;
  if (chosen > 0 && !answer.cache_only) answer.micro_batch = chosen;

  BoundRequest load = bound;
  load.request.sequence = kMostTokens;  // a pass follows, but is not part of these projections
  PassBytes bytes(bound, pass, answer.micro_batch);
  const auto take = [&](std::size_t at, const Projection& projection) {
    if (rows[at].refusal) return;
    const std::optional<std::uint64_t> room =
        room_of(projection, bound.limits(projection.on_host),
                projection.on_host && !projection.method->traits.activations_first);
    if (!room)
      rows[at].context_max = 0;
    else if (*room != UINT64_MAX)
      rows[at].context_max = bytes.most_tokens(*room);
  };
  compare(graph, load.methods, load, nullptr, {take, [](std::size_t, const Error&) {}}, progress);
  if (std::ranges::none_of(rows, [](const LoadRow& row) { return row.context_max.has_value(); }))
    answer.missing = "no budget limits the memory that the pass is in";
  return answer;
}

}  // namespace loadline::load
