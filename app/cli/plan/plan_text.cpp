// All of plan's text around the table of its rows, and --explain.
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/chart.h"
#include "app/report/manual.h"
#include "app/report/markdown.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/load/measure/evidence.h"
#include "core/load/request/casts.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::cli {
namespace {

// The gain of the best order, if there are several orders.
std::string gain_text(const PlanDisplay& view) {
  std::vector<report::OrderFigures> figures;
  for (const load::LoadRow& row : view.answer().rows)
    if (!row.refusal)
      figures.push_back({row.method->id, row.order, row.order == "file" || row.order == "offset",
                         row.deciding_peak.bytes, row.reads.jumps, row.seconds});
  return report::order_gain_text(figures, view.unified() ? "in unified memory" : "on the device");
}

std::string refused_text(const PlanDisplay& view) {
  std::vector<report::Refusal> refusals;
  for (const load::LoadRow& row : view.answer().rows)
    if (row.refusal) refusals.push_back({row.method->id, row.refusal->what()});
  return report::refusals_text(refusals, "cannot be done");
}

// Names the limits that nothing satisfies: budget, required peak, or both.
std::string no_fit_text(const load::BoundRequest& bound) {
  const bool budget = bound.memory.budget.device || bound.memory.budget.host || bound.memory.budget.unified;
  const auto& required = bound.request.require_peak;
  if (!required) return "Nothing here fits the budget.\n";
  const std::string peak = fmt::format("the required peak of {}", format_bytes(*required));
  return budget ? fmt::format("Nothing here fits the budget and stays within {}.\n", peak)
                : fmt::format("Nothing here stays within {}.\n", peak);
}

// Whether some row uses an order made for its method.
bool has_own_order(const std::vector<load::LoadRow>& rows) {
  return std::ranges::any_of(rows, [](const load::LoadRow& row) { return row.order_proven.has_value(); });
}

// Names the methods whose optimal order is not proven to be the best.
std::string unproven_text(const std::vector<load::LoadRow>& rows) {
  std::vector<std::string_view> ids;
  for (const load::LoadRow& row : rows)
    if (row.order_proven == false) ids.push_back(row.method->id);
  if (ids.empty()) return "";
  return fmt::format("The order \"optimal\" is the best of those tried, not proven, for {}.\n",
                     fmt::join(ids, ", "));
}

std::string heading(const PlanDisplay& view) {
  const std::uint64_t weights = graph::storage_bytes(view.graph);
  const load::BoundRequest& bound = view.bound();
  std::string text = fmt::format("{}: {}, weights = {} ({})", safe_display(graph::model_name(view.graph), 80),
                                 counted(view.graph.tensors.size(), "tensor"), format_bytes(weights),
                                 counted(weights, "byte"));
  const auto same = [&](const load::Method* method) {
    return bound.cast_of(*method) == bound.cast_of(*bound.methods.front());
  };
  const bool alike = std::ranges::all_of(bound.methods, same);
  const auto own = load::as_called(view.graph, *bound.methods.front(), bound);
  if (alike && (bound.cast_of(*bound.methods.front()) || !bound.placement.all_on_device())) {
    load::BoundRequest weights_alone = own ? *own : bound;
    weights_alone.request.activation_bytes = 0;
    text += fmt::format(", device_weights = {}",
                        format_bytes(load::device_lower_bound(view.graph, weights_alone)));
  }
  if (bound.request.prepack)
    text += fmt::format(", {} once packed",
                        format_bytes(load::bytes_once_packed(view.graph, *bound.request.prepack)));
  if (bound.request.activation_bytes > 0)
    text += fmt::format(", pass = {}", format_bytes(bound.request.activation_bytes));
  if (const std::string target = report::budget_text(bound); !target.empty()) text += "\n" + target;
  return text + "\n\n";
}

// Lists blocks: "wte.weight 306.74 MiB, ... and 577 more".
std::string alive_list(const load::AliveBlocks& alive) {
  std::string text;
  for (const load::AliveBlock& block : alive.largest)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", safe_display(block.label, 48),
                        format_bytes(block.bytes));
  if (alive.count > alive.largest.size())
    text += fmt::format(" and {} more", format_grouped(alive.count - alive.largest.size()));
  return text;
}

std::string alive_line(const load::LoadRow& row, plan::Space space) {
  return fmt::format("{} at its peak {}, at {}: {}", plan::space_title(space),
                     format_bytes(row.peaks[plan::index(space)].bytes),
                     safe_display(row.peaks[plan::index(space)].tensor, 48),
                     alive_list(row.alive[plan::index(space)]));
}

// The blocks alive at the peaks: for the first row's deciding space or, on request, for every row and space.
std::string alive_text(const PlanDisplay& view) {
  const std::vector<load::LoadRow>& rows = view.answer().rows;
  std::string text;
  for (const load::LoadRow& row : rows) {
    if (row.refusal) continue;
    const std::string name =
        fmt::format("{}{}", row.method->id,
                    view.answer().several_orders() ? fmt::format(" ({})", safe_display(row.order, 40)) : "");
    if (view.alive == 0) {
      // the device, unless it holds nothing
      const auto largest = std::ranges::max_element(
          row.peaks, [](const load::RowPeak& a, const load::RowPeak& b) { return a.bytes < b.bytes; });
      const plan::Space space = row.peaks[plan::index(plan::Space::device)].bytes > 0
                                    ? plan::Space::device
                                    : static_cast<plan::Space>(largest - row.peaks.begin());
      if (row.alive[plan::index(space)].count == 0) return "";
      return fmt::format("{}: {}\n", name, alive_line(row, space));
    }
    for (const plan::Space space : plan::kSpaceOrder)
      if (row.alive[plan::index(space)].count > 0)
        text += fmt::format("  {}: {}\n", name, alive_line(row, space));
  }
  return text.empty() ? "" : "Alive at each peak:\n" + text;
}

std::string left_out_text(const PlanDisplay& view) {
  std::string text;
  if (view.hidden_rows > 0)
    text += fmt::format("{} that {} not fit {} left out.\n", counted(view.hidden_rows, "row"),
                        view.hidden_rows == 1 ? "does" : "do", view.hidden_rows == 1 ? "is" : "are");
  const std::vector<std::string>& named = view.request().methods;
  const std::uint64_t others = load::methods_for(view.graph).size();
  if (const std::uint64_t shown = view.bound().methods.size(); named.empty() && others > shown)
    text += fmt::format("{}: --method all shows them.\n", counted(others - shown, "more method"));
  const bool all = named.empty() || std::ranges::find(named, "all") != named.end();
  if (const std::string unopened = load::unopened_text(view.graph); all && !unopened.empty())
    text += unopened + ".\n";
  return text;
}

std::string also_fits_text(const load::LoadAnswer& answer) {
  if (answer.also_fits.empty()) return "";
  std::vector<std::string_view> ids;
  for (const load::Method* method : answer.also_fits) ids.push_back(method->id);
  return fmt::format("Of the methods that are not shown, these fit: {}.\n", fmt::join(ids, ", "));
}

std::string cache_text(const PlanDisplay& view) {
  const std::vector<load::LoadRow>& rows = view.answer().rows;
  const auto& limit = view.request().page_cache_budget;
  const auto any = [&](const auto& holds) { return std::ranges::any_of(rows, holds); };
  if (!limit || !any([](const load::LoadRow& row) { return row.cache && row.cache->mapped > 0; })) return "";
  std::string then = "no dropped page is read again";
  std::uint64_t reread = 0;
  for (const load::LoadRow& row : rows) reread = std::max(reread, row.reread);
  if (reread > 0)
    then = fmt::format("each token rereads up to {} of dropped weights", format_bytes(reread));
  else if (any([](const load::LoadRow& row) { return row.cache && row.cache->reread_bytes > 0; }))
    then = "dropped pages are read again";
  return fmt::format("The page cache holds at most {}: {}.\n", format_bytes(*limit), then);
}

// Weights that a token reads from files: what a budget must leave room for, and what it costs if it does not.
std::string pass_reads_text(const PlanDisplay& view) {
  std::string text;
  for (const load::LoadRow& row : view.answer().rows) {
    if (row.pass_reads.all() == 0) continue;
    std::string parts;
    if (row.pass_reads.mapped > 0)
      parts = fmt::format("weights of {} from mapped files", format_bytes(row.pass_reads.mapped));
    if (row.pass_reads.disk > 0)
      parts += fmt::format("{} of {} from disk", parts.empty() ? "weights" : " and those",
                           format_bytes(row.pass_reads.disk));
    std::string line = fmt::format("{}: each token reads {}", row.method->id, parts);
    if (row.reread > 0)
      line += fmt::format("; they do not fit, so each token reads them again, in about {}",
                          format_seconds(static_cast<double>(row.reread) / view.bound().costs.disk_read));
    line += ".\n";
    if (text.find(line) == std::string::npos) text += line;  // in every order alike
  }
  return text;
}

// Whether a run had no other options than the request has.
bool asked_alike(const load::TruthRow& row, const load::LoadRequest& request) {
  const auto changed = load::changed_options(request);
  return std::ranges::all_of(row.options, [&](const std::string& word) {
    return !word.starts_with("--") ||
           std::ranges::any_of(changed, [&](const auto& option) { return flag_of(option.first) == word; });
  });
}

// Methods of which a load with such options was measured beyond the tolerance.
std::string deviation_line(const PlanDisplay& view) {
  std::vector<std::string_view> named;
  for (const load::LoadRow& row : view.answer().rows) {
    const std::optional<load::Evidence> evidence = load::evidence_of(row.method->id);
    if (row.refusal || !evidence || std::ranges::find(named, row.method->id) != named.end()) continue;
    if (std::ranges::any_of(evidence->beyond,
                            [&](const load::TruthRow* run) { return asked_alike(*run, view.request()); }))
      named.push_back(row.method->id);
  }
  if (named.empty()) return "";
  return fmt::format(
      "Of {} a framework's own load was measured beyond the tolerance: `loadline methods {}` says how far.\n",
      fmt::join(named, ", "), fmt::join(named, " "));
}

// How the largest context was counted, or why there is none.
std::string context_text(const PlanDisplay& view) {
  const auto& context = view.answer().context;
  if (!context) return "";
  if (!context->missing.empty())
    return fmt::format("Largest context: {}.{}\n", safe_display(context->missing, 300),
                       view.bound().judged() ? "" : " --target, --device-budget or --host-budget sets one.");
  if (context->cache_only)
    return "The largest context is an upper bound: it counts an estimate of the cache, and no activations.\n";
  std::string text =
      context->micro_batch
          ? fmt::format(
                "The largest context is processed in chunks of {}: its cache, and the activations of one "
                "chunk.",
                counted(*context->micro_batch, "token"))
          : "The largest context is processed in one pass: its cache, and the activations of all its tokens.";
  if (context->positions)
    text += fmt::format(" The model itself has {}.", counted(*context->positions, "position"));
  return text + "\n";
}

std::string risk_text(const PlanDisplay& view) {
  std::string text;
  for (const load::LoadRow& row : view.answer().rows) {
    const load::BudgetVerdict& verdict = row.verdict;
    if (row.refusal || verdict.at_risk == 0) continue;
    if (verdict.risk_high == verdict.unified_high && view.bound().memory.budget.pages_may_stay)
      text += fmt::format(
          "{} needs {} to {}: on this machine, mapped pages that are copied from may become memory that "
          "cannot be dropped.\n",
          row.method->id, format_bytes(verdict.risk_low), format_bytes(verdict.risk_high));
    else if (view.request().allocator == allocators::AllocatorModel::heap)
      text += report::heap_text(row) + "\n";
    else
      text += fmt::format("{} needs {} to {} on the host: glibc may keep freed memory.\n", row.method->id,
                          format_bytes(verdict.risk_low), format_bytes(verdict.risk_high));
  }
  const bool ranges = std::ranges::any_of(view.answer().rows, [](const load::LoadRow& row) {
    return row.host_range && row.host_range->low < row.host_range->high;
  });
  if (text.empty() && ranges && view.request().allocator == allocators::AllocatorModel::heap)
    text = "A host peak with two ends: glibc keeps much of what a load frees (loadline help planning).\n";
  return text;
}

constexpr std::size_t kTitle = 25;
constexpr std::size_t kBytes = 11;

// A line with `title` on the left and `text` beside it.
std::string beside(std::string_view title, std::string_view text, std::size_t columns) {
  const std::string head = fmt::format("  {:<{}}", title, kTitle);
  const std::string indent(head.size(), ' ');
  return head + report::wrapped(text, indent, columns).substr(indent.size());
}

std::string view_lines(const PlanDisplay& view, const load::LoadRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.views.size(); ++i)
    text += fmt::format("  {:<{}}{:>{}}{}\n", plan::memory_views()[i].title, kTitle, bytes_cell(row.views[i]),
                        kBytes, i == plan::deciding_view(view.bound().memory.kind) ? "  decides" : "");
  return text;
}

// The bounds of the law: "  by the law at most: device 5.80 GiB, host 306.74 MiB".
std::string law_line(const load::LawPeaks& peaks) {
  std::string text;
  const auto add = [&](std::string_view name, std::uint64_t bytes) {
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_bytes(bytes));
  };
  if (peaks.unified) add("unified", *peaks.unified);
  for (const plan::Space space : plan::kSpaceOrder)
    add(plan::space_title(space), peaks.spaces[plan::index(space)]);
  return text.empty() ? "" : fmt::format("  by the law at most: {}\n", text);
}

// Where rows differ, if the peaks that decide are all the same and hide it.
std::string hidden_difference(const std::vector<load::LoadRow>& rows, plan::MemoryKind memory) {
  std::vector<const load::LoadRow*> possible;
  for (const load::LoadRow& row : rows)
    if (!row.refusal) possible.push_back(&row);
  const bool same = possible.size() > 1 && std::ranges::all_of(possible, [&](const load::LoadRow* row) {
                      return row->deciding_peak.bytes == possible.front()->deciding_peak.bytes;
                    });
  return same ? report::difference_text(possible, memory) : "";
}

}  // namespace

std::string PlanDisplay::held_name(const load::Method& method) const {
  std::string held = bound().cast_of(method) ? "the weights after the cast"
                     : request().prepack     ? "the packed weights"
                                             : "the weights";
  if (!bound().placement.all_on_device()) held = "the weights placed there";
  const plan::ForwardPass* const pass = answer().forward->pass();
  if (pass != nullptr)
    return held + (pass->graph->training ? " and the training step" : " and the forward pass");
  return request().activation_bytes > 0 ? held + " and the activations" : held;
}

namespace {

// Whether the memory of the host decides: nothing is placed on the device, or all that fails fails there
// alone.
bool is_about_host(const PlanDisplay& view) {
  if (view.bound().judges_host()) return true;
  const auto fails = [](const load::LoadRow& row) { return !row.refusal && !row.is_within(); };
  const auto fails_elsewhere = [&](const load::LoadRow& row) {
    return fails(row) && (row.verdict.host_fits || !row.verdict.device_fits || !row.verdict.unified_fits ||
                          row.over_required_peak > 0);
  };
  const std::vector<load::LoadRow>& rows = view.answer().rows;
  return std::ranges::none_of(rows, &load::LoadRow::is_within) && std::ranges::any_of(rows, fails) &&
         std::ranges::none_of(rows, fails_elsewhere);
}

// What a verdict counts, so that "fits" says no more than it means.
std::string covers_text(const PlanDisplay& view) {
  if (!view.bound().judged()) return "";
  std::string text = fmt::format("The verdicts cover {}.\n", view.covered());
  if (const std::string& left = view.answer().unaccounted; !left.empty())
    text += fmt::format("They are estimates, which do not account for {}.\n", safe_display(left, 300));
  return text;
}

// The types that methods take unless the request has one.
std::string own_types_text(const PlanDisplay& view) {
  std::string text;
  for (const load::OwnType own : {load::OwnType::configured, load::OwnType::f32}) {
    std::vector<std::string_view> ids;
    std::optional<graph::DType> type;
    for (const load::LoadRow& row : view.answer().rows) {
      const auto cast = view.bound().cast_of(*row.method);
      if (row.refusal || row.method->traits.own_type != own || cast == view.request().cast ||
          std::ranges::find(ids, row.method->id) != ids.end())
        continue;
      type = cast;
      ids.push_back(row.method->id);
    }
    if (!type) continue;
    text += fmt::format(
        "Loads by {} {}. {}\n", fmt::join(ids, ", "),
        own == load::OwnType::configured
            ? "take the type of weights from config.json, as from_pretrained() does"
            : "make weights F32, as from_pretrained() of transformers 4 does without torch_dtype; --cast "
              "names another type",
        load::cast_text(load::cast_summary(view.graph, *type), *type));
  }
  return text;
}

}  // namespace

std::uint64_t PlanDisplay::lower_bound(const load::Method& method) const {
  const auto own = load::as_called(graph, method, bound());
  return load::device_lower_bound(graph, own ? *own : bound(), answer().forward->pass());
}

std::string PlanDisplay::covered() const {
  const load::RequestPass& forward = *answer().forward;
  if (!bound().incomplete.empty()) return "the weights that are here, and nothing else";
  const std::string text = "the weights";
  if (forward.pass() != nullptr && forward.model().graph->training)
    return text + fmt::format(" and a training step of {}: gradients, states of the optimizer, activations",
                              counted(forward.batch() * forward.sequence(), "token"));
  if (forward.pass() != nullptr)
    return text + fmt::format(" and a forward pass: {}, and the cache of {}",
                              counted(forward.batch() * forward.sequence(), "new token"),
                              counted(forward.batch() * (forward.sequence() + forward.past()), "token"));
  if (request().activation_bytes > 0) return text + " and the activations given";
  if (load::asks_for_pass(request()))
    return text + " alone: not the forward pass, whose operators are not known";
  return text + " alone: no prompt (--seq), no cache";
}

std::string least_text(const PlanDisplay& view) {
  const std::vector<load::LoadRow>& rows = view.answer().rows;
  // methods that stream, and those of frameworks on the processor, count only if there are no others
  const auto is_whole = [](const load::LoadRow& row) {
    return !row.refusal && !row.method->traits.streams && !row.method->traits.host_only;
  };
  const bool none_whole = std::ranges::none_of(rows, is_whole);
  const bool only_streams = std::ranges::all_of(
      rows, [](const load::LoadRow& row) { return row.refusal || row.method->traits.streams; });
  const auto counts = [&](const load::LoadRow& row) { return is_whole(row) || (none_whole && !row.refusal); };
  const bool host = is_about_host(view);
  const auto peak = [&](const load::LoadRow& row) {
    return host ? row.verdict.host_peak : row.deciding_peak.bytes;
  };
  std::uint64_t least = UINT64_MAX;
  for (const load::LoadRow& row : rows)
    if (counts(row)) least = std::min(least, peak(row));
  std::vector<std::string_view> ids;
  const load::Method* first = nullptr;
  for (const load::LoadRow& row : rows) {
    if (!counts(row) || peak(row) != least || std::ranges::find(ids, row.method->id) != ids.end()) continue;
    if (first == nullptr) first = row.method;
    ids.push_back(row.method->id);
  }
  if (ids.empty()) return "No row is shown.";
  constexpr std::size_t kMostNamed = 4;
  const std::size_t named = std::min(ids.size(), kMostNamed);
  std::string by =
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (ids.size() > named) by += fmt::format(" and {} more", ids.size() - named);
  if (host) return fmt::format("Least on the host: {}, by {}.", format_bytes(least), by);
  const std::uint64_t bound = view.lower_bound(*first);
  const bool some_stream = !only_streams && std::ranges::any_of(rows, [](const load::LoadRow& row) {
    return !row.refusal && row.method->traits.streams;
  });
  const std::string where = fmt::format("{}{}", view.unified() ? "in unified memory" : "on the device",
                                        some_stream ? ", streaming aside" : "");
  if (least == 0) return fmt::format("Least {}: nothing, by {}.", where, by);
  if (only_streams)
    return fmt::format("Least {}: {}, by {}; no weights stay there.", where, format_bytes(least), by);
  if (least == bound)
    return fmt::format("Least {}: {}, as much as {}, by {}.", where, format_bytes(least),
                       view.held_name(*first), by);
  return fmt::format("Least {}: {}, by {}; what stays there is {}, {}.", where, format_bytes(least), by,
                     view.held_name(*first), format_bytes(bound));
}

std::string plan_text(const PlanDisplay& view, bool color, std::size_t columns) {
  const load::LoadAnswer& answer = view.answer();
  const load::BoundRequest& bound = view.bound();
  const load::LoadRequest& request = view.request();
  std::string table;
  if (!answer.rows.empty()) table = rows_table(view, color, columns) + "\n";
  std::string text = refused_text(view);
  if (!answer.rows.empty()) text += least_text(view) + "\n";
  if (const std::string difference = hidden_difference(answer.rows, bound.memory.kind); !difference.empty())
    text += difference + "\n";
  if (view.unified())
    text +=
        "\"unified peak\" is device, host and staging memory together. File pages do not count, as the "
        "system can drop them; the verdict counts those that each token needs.\n";
  text += alive_text(view);
  if (answer.several_orders())
    if (const std::string gain = gain_text(view); !gain.empty()) text += gain + "\n";
  if (request.prepack) text += load::prepacking_text(view.graph, *request.prepack) + "\n";
  if (request.cast)
    text += load::cast_text(load::cast_summary(view.graph, *request.cast), *request.cast) + "\n";
  if (request.cast && std::ranges::any_of(answer.rows, [](const load::LoadRow& row) {
        return row.method->id == "transformers_gguf";
      }))
    text += fmt::format("transformers_gguf makes quantized tensors {} too.\n",
                        graph::dtype_info(*request.cast).name);
  if (bound.judged() && allocators::reserves(request.allocator))
    text += fmt::format(
        "Verdicts are by what the allocator '{}' reserves{}.\n", allocators::allocator_id(request.allocator),
        has_own_order(answer.rows) ? "; the order \"optimal\" is by the requested bytes" : "");
  text += own_types_text(view) + context_text(view);
  text += unproven_text(answer.rows) + cache_text(view) + pass_reads_text(view) + risk_text(view) +
          deviation_line(view) + left_out_text(view) + covers_text(view);
  if (const std::string pass = forward_text(*answer.forward); !pass.empty()) text += "\n" + pass;
  const bool curves =
      std::ranges::any_of(view.answered.curves, [](const auto& curve) { return curve.has_value(); });
  if (answer.several_orders() || view.show_times || answer.advice || curves)
    text += load::rates_line(bound.rates) + (request.prepack ? " They do not include packing." : "") +
            (bound.rates ? "\n" : " `loadline devices --measure` measures this machine's.\n");
  if (bound.judged() && !answer.any_within()) text += no_fit_text(bound);
  if (answer.advice) text += advice_text(*answer.advice, view.path);
  if (answer.advice && answer.advice->searched && load::places_weights(request))
    text += "The placement of weights stays the same, unless a line says otherwise.\n";
  text += also_fits_text(answer);
  if (!bound.incomplete.empty())
    text += fmt::format("\nThis model is not whole: {}. The figures are of what is here.\n",
                        safe_display(bound.incomplete, 300));
  return report::reflowed(heading(view), view.prose_columns) + table +
         report::reflowed(text, view.prose_columns);
}

std::string plan_explanation(const PlanDisplay& view, bool color) {
  std::string text;
  const plan::ForwardPass* const pass = view.answer().forward->pass();
  std::vector<const load::Method*> explained;
  for (const load::LoadRow& row : view.answer().rows) {
    if (row.refusal || std::ranges::find(explained, row.method) != explained.end()) continue;
    explained.push_back(row.method);
    text += fmt::format("\n{}{}{} ({}): {}\n", color ? "\033[1m" : "", row.method->id, color ? "\033[0m" : "",
                        safe_display(row.order, 40), load::law_text(*row.method));
    const auto own = load::as_called(view.graph, *row.method, view.bound());
    const load::LawSizes sizes = load::law_sizes(view.graph, own ? *own : view.bound(),
                                                 pass == nullptr ? 0 : load::forward_peak(*pass));
    // laws know nothing of packed sizes
    if (!view.request().prepack) text += law_line(load::law_peaks(*row.method, sizes));
    text += fmt::format("  {}\n  {}\n{}", report::method_explanation(row.method->id),
                        load::evidence_text(row.method->id), view_lines(view, row));
  }
  text +=
      fmt::format("\nMemory counters, with {} memory:\n", plan::memory_kind_name(view.bound().memory.kind));
  for (const plan::MemoryView& counter : plan::memory_views())
    text += beside(counter.title, counter.counted_by, view.prose_columns);
  if (!explained.empty()) text += "\nWords of the laws:\n  " + report::law_legend(explained);
  return report::reflowed(text, view.prose_columns);
}

}  // namespace loadline::cli
