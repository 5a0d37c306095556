// Forward pass, evidence and advice of an answer, as sentences and as JSON.

#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/chart.h"
#include "app/report/does_it_run.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/load/measure/evidence.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- Sentences and JSON keys for a forward pass.

namespace {

std::string values_text(const forward::ForwardModel& model, const forward::ForwardFigures& figures) {
  constexpr std::size_t kMost = 5;
  const std::vector<graph::ValueId> alive = forward::alive_during(model, figures, figures.peak.op);
  std::string text;
  for (std::size_t i = 0; i < std::min(alive.size(), kMost); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", safe_display(model.graph->value(alive[i]).name, 40),
                        format_bytes(*figures.sizes[static_cast<std::size_t>(alive[i])]));
  if (alive.size() > kMost) text += fmt::format(" and {} more", alive.size() - kMost);
  return text;
}

std::string range_text(std::uint64_t least, std::uint64_t most) {
  return least == most ? format_bytes(most)
                       : fmt::format("{} to {}", format_bytes(least), format_bytes(most));
}

// Once attention windows are full, each token adds fewer bytes to the cache. Recurrent states are beside it.
std::string windows_text(const forward::ForwardModel& model) {
  if (const auto& estimate = model.cache_estimate) {
    std::string windows, text;
    std::uint64_t widest = 0;
    for (const forward::CachePart& part : estimate->most.parts)
      if (part.window > 0) {
        windows += (widest == 0 ? "" : " and ") + format_grouped(part.window);
        widest = part.window;
      }
    if (widest > 0)
      text = fmt::format(" until windows of {} are full, then {}", windows,
                         format_grouped(estimate->most.each(widest)));
    if (estimate->most.state > 0)
      text += fmt::format(", and {} of fixed-size states",
                          range_text(estimate->least.state, estimate->most.state));
    return text;
  }
  // some profiles keep windows in room of their own, which is padded
  constexpr std::uint64_t kFull = load::kMostTokens / 2;
  const std::uint64_t window = forward::widest_window(model);
  if (window > kFull) return "";
  const auto growth = forward::cache_growth(model, 1, kFull);
  if (!growth || growth == model.cache_bytes_per_token) return "";
  return fmt::format(" until windows{} are full, then {}", window > 0 ? " of " + format_grouped(window) : "",
                     format_grouped(*growth));
}

// Why the ends of an estimate differ, and what it takes for granted.
std::string reasons_text(const forward::ForwardModel& model) {
  std::string text;
  if (model.cache_estimate)
    for (const std::string& reason : model.cache_estimate->reasons) text += fmt::format("    {}\n", reason);
  return text;
}

// Lists names: "height, width and 3 more".
std::string list_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const std::size_t shown = std::min(names.size(), kMost);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + safe_display(names[i], 40);
  }
  return names.size() > kMost ? text + fmt::format(" and {} more", names.size() - kMost) : text;
}

Json sizes_json(const load::RequestPass& pass) {
  Json json = Json::object();
  for (const graph::NamedSize& size : pass.model().graph->sizes)
    if (const auto value = size.taken_as.evaluate(pass.symbols())) json[json_text(size.name)] = *value;
  return json;
}

// For a model whose operators are unknown: bounds and estimates, but no peak.
std::string estimates_text(const load::RequestPass& pass) {
  std::string text = fmt::format("Of a forward pass of {} x {}{}, which the load above does not include:\n",
                                 pass.batch(), counted(pass.sequence(), "token"),
                                 pass.past() == 0 ? "" : fmt::format(" after {}", pass.past()));
  if (pass.activation_bound())
    text += fmt::format("  activations at least {}, if every linear layer sees all tokens: a lower bound\n",
                        format_bytes(*pass.activation_bound()));
  if (pass.model().cache_bytes_per_token.value_or(0) > 0)
    text += fmt::format(
        "  cache {} afterwards, estimated from the settings: {} bytes per token of each sequence{}\n",
        range_text(pass.least_cache(), pass.estimated_cache()),
        format_grouped(*pass.model().cache_bytes_per_token), windows_text(pass.model()));
  text += reasons_text(pass.model());
  return text + fmt::format("  {}\n", pass.model().remark);
}

// What of a training step does not depend on its tokens, and what the forward pass keeps.
Json training_json(const load::RequestPass& pass) {
  const graph::TrainingParts& parts = *pass.model().graph->training;
  return {{"parameters", parts.parameters},
          {"adapter_bytes", parts.adapter_bytes},
          {"gradient_bytes", parts.gradient_bytes},
          {"optimizer_bytes", parts.state_bytes},
          {"kept_bytes", forward::kept_for_backward(pass.model(), *pass.figures())}};
}

std::string training_text(const load::RequestPass& pass) {
  const graph::TrainingParts& parts = *pass.model().graph->training;
  std::string text = fmt::format("  trains {} parameters", format_count(parts.parameters));
  if (parts.adapter_bytes > 0)
    text += fmt::format(" of adapters, {} beside the weights", format_bytes(parts.adapter_bytes));
  return text + fmt::format("\n  gradients {}, states of the optimizer {}, kept for the backward pass {}\n",
                            format_bytes(parts.gradient_bytes), format_bytes(parts.state_bytes),
                            format_bytes(forward::kept_for_backward(pass.model(), *pass.figures())));
}

// For a model whose operators are known.
std::string figures_text(const load::RequestPass& pass) {
  const bool file = pass.model().source == forward::ForwardSource::file;
  const forward::ForwardPeak& peak = pass.figures()->peak;
  const std::string of = file && !forward::depends_on_request(*pass.model().graph)
                             ? "with the file's own sizes"
                         : file && !forward::depends_on_tokens(*pass.model().graph)
                             ? fmt::format("of batch {}", pass.batch())
                             : fmt::format("of {} x {}{}", pass.batch(), counted(pass.sequence(), "token"),
                                           pass.past() == 0 ? "" : fmt::format(" after {}", pass.past()));
  const bool trains = pass.model().graph->training.has_value();
  std::string text = fmt::format("{} {}{}:\n", trains ? "Training step" : "Forward pass", of,
                                 pass.model().profile.empty()
                                     ? ""
                                     : fmt::format(", profile {}", safe_display(pass.model().profile, 40)));
  for (const std::string& note : size_notes(pass)) text += fmt::format("  {}\n", note);
  if (trains) text += training_text(pass);
  const std::string unknown = fmt::format("the size{} of {} {} not known", peak.unknown == 1 ? "" : "s",
                                          counted(peak.unknown, "value"), peak.unknown == 1 ? "is" : "are");
  if (peak.bytes == 0 && peak.unknown > 0) {
    text += fmt::format("  activations not known: {}\n", unknown);
  } else {
    const bool estimate = forward::is_estimate(pass.model(), *pass.figures());
    text += fmt::format("  {} {}{}, at {}\n", trains ? "all of it" : "activations", estimate ? "about " : "",
                        format_bytes(peak.bytes) + (estimate ? "" : " at most"),
                        safe_display(forward::op_text(pass.model().graph->ops[peak.op]), 80));
    if (pass.figures()->reserved != peak.bytes)
      text += fmt::format("    the allocator of this profile reserves {} for them\n",
                          format_bytes(pass.figures()->reserved));
    if (peak.bytes > 0)
      text += fmt::format("    live values: {}\n", values_text(pass.model(), *pass.figures()));
    if (file && !pass.model().profile.empty())
      text += fmt::format("    {} of {} values reuse the memory of another\n",
                          forward::sharing_values(*pass.model().graph), pass.model().graph->values.size());
    if (peak.unknown > 0) text += fmt::format("    an estimate: {}\n", unknown);
  }
  if (peak.cache_bytes > 0) text += fmt::format("  cache {} afterwards\n", format_bytes(peak.cache_bytes));
  return text;
}

}  // namespace

std::vector<std::string> size_notes(const load::RequestPass& pass) {
  const forward::ForwardModel& model = pass.model();
  if (!pass.figures() || model.source != forward::ForwardSource::file) return {};
  std::vector<std::string> notes;
  if (!forward::depends_on_request(*model.graph))
    notes.emplace_back("the sizes in the file do not depend on --batch, --seq or --past");
  if (!pass.guessed_sizes().empty())
    notes.push_back(fmt::format("assumed: {}; --dim sets them", list_text(pass.guessed_sizes())));
  if (!pass.picture_sides().empty())
    notes.push_back(
        fmt::format("assumed: {}; --picture-side or --dim sets them", list_text(pass.picture_sides())));
  if (const auto& unset = pass.unset_sizes(); !unset.empty())
    notes.push_back(fmt::format("{} assumed to be 1; --dim sets {}", list_text(unset),
                                unset.size() == 1 ? "it" : "them"));
  return notes;
}

Json forward_json(const load::RequestPass& pass) {
  if (pass.model().source == forward::ForwardSource::nothing && pass.model().remark.empty()) return {};
  Json json = {{"source", forward::forward_source_name(pass.model().source)}};
  if (!pass.model().family.empty()) json["family"] = json_text(pass.model().family);
  if (!pass.model().profile.empty()) json["profile"] = json_text(pass.model().profile);
  if (!pass.model().remark.empty()) json["remark"] = json_text(pass.model().remark);
  if (pass.model().cache_bytes_per_token) json["kv_bytes_per_token"] = *pass.model().cache_bytes_per_token;
  if (pass.sequence() == 0 && pass.symbols().empty()) return json;
  json["batch"] = pass.batch();
  json["seq"] = pass.sequence();
  json["past"] = pass.past();
  if (!pass.figures()) {
    if (const auto& estimate = pass.model().cache_estimate) {
      json["kv_bytes"] = pass.estimated_cache();
      json["kv_bytes_least"] = pass.least_cache();
      json["kv_notes"] = json_texts(estimate->reasons);
    }
    if (pass.activation_bound()) json["activation_lower_bound"] = *pass.activation_bound();
    return json;
  }
  if (pass.model().graph->training) json["training"] = training_json(pass);
  json["kv_bytes"] = pass.figures()->peak.cache_bytes;
  if (const auto growth = forward::cache_growth(pass.model(), pass.sequence(), pass.past()))
    json["kv_bytes_per_next_token"] = *growth;
  json["notes"] = json_texts(pass.notes());
  json["activation_peak"] = pass.figures()->peak.bytes;
  json["activation_reserved"] = pass.figures()->reserved;
  json["activation_peak_op"] = json_text(forward::op_text(pass.model().graph->ops[pass.figures()->peak.op]));
  json["unknown_values"] = pass.figures()->peak.unknown;
  if (pass.model().source == forward::ForwardSource::file) {
    json["unaccounted"] = json_texts(pass.model().graph->unaccounted);
    json["sharing_values"] = forward::sharing_values(*pass.model().graph);
    json["dims"] = sizes_json(pass);
  }
  json["alive"] = Json::array();
  for (const graph::ValueId id :
       forward::alive_during(pass.model(), *pass.figures(), pass.figures()->peak.op)) {
    const graph::Value& value = pass.model().graph->value(id);
    json["alive"].push_back({{"name", json_text(value.name)},
                             {"bytes", *pass.figures()->sizes[static_cast<std::size_t>(id)]},
                             {"lane", graph::lane_name(value.lane)}});
  }
  return json;
}

std::string forward_text(const load::RequestPass& pass) {
  if (pass.sequence() > 0 && !pass.figures()) return estimates_text(pass);
  std::string text;
  if (pass.figures()) text += figures_text(pass);
  const bool trains = pass.figures() && pass.model().graph->training;
  if (!trains && pass.model().cache_bytes_per_token.value_or(0) > 0)
    text += fmt::format(
        "{}: {} bytes per token of each sequence{}{}\n", pass.figures() ? "  cache" : "Cache",
        format_grouped(*pass.model().cache_bytes_per_token), windows_text(pass.model()),
        pass.model().source == forward::ForwardSource::estimate ? " (estimated from the settings)" : "");
  text += reasons_text(pass.model());
  for (const std::string& note : pass.notes()) text += fmt::format("  note: {}\n", note);
  if (!pass.model().remark.empty()) text += fmt::format("Forward pass: {}\n", pass.model().remark);
  return text;
}

// --- Builds the object from a method's evidence.

Json evidence_json(std::string_view method) {
  const std::optional<load::Evidence> evidence = load::evidence_of(method);
  if (!evidence) return {{"kind", "construction"}};
  const std::string& first = evidence->frameworks.front();
  const std::size_t space = first.rfind(' ');
  Json json = {{"kind", "measured"},
               {"framework", first.substr(0, space)},
               {"version", first.substr(space + 1)},
               {"frameworks", evidence->frameworks},
               {"loads", evidence->pairs},
               {"in_range", evidence->ranged},
               {"beyond", Json::array()},
               {"error_percent", evidence->error_percent}};
  for (const load::TruthRow* row : evidence->beyond)
    json["beyond"].push_back({{"recipe", row->recipe},
                              {"model", row->model},
                              {"error_percent", row->error_percent ? Json(*row->error_percent) : Json()},
                              {"reason", row->reason}});
  return json;
}

// --- Turns advised loads into sentences and command lines.

namespace {

std::string figures(const load::AdvisedLoad& load) {
  std::string text;
  for (const plan::Space space : plan::kSpaceOrder) {
    const std::uint64_t bytes = load.peaks[plan::index(space)];
    if (bytes == 0 && space != plan::Space::device) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", plan::space_title(space), format_bytes(bytes));
  }
  text += ", " + report::time_text(load);
  if (load.context_max && *load.context_max < load::kMostTokens)
    text += ", room for " + report::tokens_text(*load.context_max);
  return text;
}

std::string what(const load::AdvisedLoad& load) {
  const std::string in_order = fmt::format("{} in {} order", load.method->id, safe_display(load.order, 40));
  if (load.changes.empty()) return in_order;
  const std::string changes = fmt::format("{}", fmt::join(load.changes, " and "));
  const bool names_it = changes.find(fmt::format("method {}", load.method->id)) != std::string::npos;
  return names_it ? changes : fmt::format("{} ({})", changes, in_order);
}

std::string command(const load::AdvisedLoad& load, const std::string& path) {
  return "loadline plan " + shell_word(path) + request_words(load.request, *load.method);
}

Json load_json(const load::AdvisedLoad& load, const std::string& path) {
  Json json = {{"changes", load.changes},    {"options", Json::object()},
               {"arguments", Json::array()}, {"command", json_text(command(load, path))},
               {"method", load.method->id},  {"order", json_text(load.order)},
               {"peak", Json::object()},     {"seconds", load.seconds},
               {"unread", load.unread},      {"seconds_of_all", load.seconds_of_all},
               {"fits", load.verdict.fits()}};
  for (const auto& [id, value] : load.settings) {
    json["options"][std::string(id)] = json_text(value);
    json["arguments"].push_back(flag_of(id));
    json["arguments"].push_back(json_text(value));
  }
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    json["peak"][std::string(plan::space_name(static_cast<plan::Space>(i)))] = load.peaks[i];
  json["peak"]["held"] = load.held;
  if (load.context_max) json["context_max"] = *load.context_max;
  if (!load.verdict.fits())
    json["over"] = {{"device", load.verdict.device_over},
                    {"host", load.verdict.host_over},
                    {"unified", load.verdict.unified_over}};
  return json;
}

}  // namespace

std::string advice_text(const load::LoadAdvice& found, const std::string& path) {
  const load::Advice& advice = found.advice;
  const auto line = [&](std::string_view lead, const load::AdvisedLoad& load) {
    return fmt::format("{}: {}: {}.\n  ({})\n", lead, what(load), figures(load), command(load, path));
  };
  if (!found.searched) return line("Fastest that fits", advice.loads.front());
  const std::string search = fmt::format("{} projected{}", counted(advice.tried, "other load"),
                                         advice.complete ? "" : ", search limit reached");
  if (advice.loads.empty()) {
    if (!advice.nearest) return fmt::format("No known change helps ({}).\n", search);
    return fmt::format("No known change makes it fit ({}). Closest: {}: {}; {}.\n  ({})\n", search,
                       what(*advice.nearest), figures(*advice.nearest),
                       report::over_text(advice.nearest->verdict), command(*advice.nearest, path));
  }
  std::string text;
  for (const load::AdvisedLoad& load : advice.loads)
    text += line(text.empty() ? "Smallest change that fits" : "Or", load);
  return text;
}

Json advice_json(const load::LoadAdvice& found, const std::string& path) {
  Json list = Json::array();
  for (const load::AdvisedLoad& load : found.advice.loads) list.push_back(load_json(load, path));
  if (found.advice.nearest) list.push_back(load_json(*found.advice.nearest, path));
  return list;
}

}  // namespace loadline::cli
