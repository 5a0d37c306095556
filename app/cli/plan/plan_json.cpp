// The keys of plan's JSON output.
#include "app/cli/base/rates.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/chart.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"

#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json peaks_json(const load::LoadRow& row, Json& places) {
  Json peaks = Json::object();
  const auto add = [&](std::string_view name, const load::RowPeak& peak) {
    peaks[std::string(name)] = peak.bytes;
    if (peak.bytes > 0) places[std::string(name)] = {{"step", peak.step}, {"tensor", json_text(peak.tensor)}};
  };
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    add(plan::space_name(static_cast<plan::Space>(i)), row.peaks[i]);
  add("unified", row.unified_peak);
  return peaks;
}

Json spaces_json(const plan::PerSpace<std::uint64_t>& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    json[std::string(plan::space_name(static_cast<plan::Space>(i)))] = bytes[i];
  return json;
}

Json fits_json(const load::LoadRow& row, const load::BoundRequest& bound) {
  const load::Budget& budget = bound.memory.budget;
  const load::BudgetVerdict& verdict = row.verdict;
  const bool host_risk = budget.host && verdict.host_high > *budget.host;
  const bool unified_risk = budget.unified && verdict.unified_high > *budget.unified;
  const bool whole = !row.incomplete;
  Json json = {{"host", budget.host ? Json(whole && verdict.host_fits && !host_risk) : Json()},
               {"device", budget.device ? Json(whole && verdict.device_fits) : Json()}};
  if (budget.committed) json["committed"] = whole && verdict.committed_over == 0;
  if (bound.memory.kind == plan::MemoryKind::unified)
    json["unified"] = budget.unified ? Json(whole && verdict.unified_fits && !unified_risk) : Json();
  return json;
}

Json alive_json(const load::LoadRow& row) {
  Json json = Json::object();
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i) {
    if (row.alive[i].count == 0) continue;
    Json& list = json[std::string(plan::space_name(static_cast<plan::Space>(i)))] = Json::array();
    for (const load::AliveBlock& block : row.alive[i].largest)
      list.push_back({{"label", json_text(block.label)}, {"bytes", block.bytes}});
  }
  return json;
}

Json row_json(const load::LoadRow& row, const load::BoundRequest& bound) {
  if (row.refusal)
    return {{"method", row.method->id},
            {"order", json_text(row.order)},
            {"refused", json_text(row.refusal->what())}};
  Json places = Json::object();
  Json peaks = peaks_json(row, places);
  Json json = {
      {"method", row.method->id},     {"order", json_text(row.order)},         {"peak", std::move(peaks)},
      {"peak_at", std::move(places)}, {"final", spaces_json(row.final_bytes)}, {"views", Json::object()},
      {"fits", fits_json(row, bound)}};
  json["alive_at_peak"] = alive_json(row);
  if (const auto cast = bound.cast_of(*row.method); cast != bound.request.cast)
    json["cast"] = {{"to", lower_case(graph::dtype_info(*cast).name)}, {"named_by", "config.json"}};
  json["law"] = load::law_text(*row.method);
  json["evidence"] = evidence_json(row.method->id);
  if (row.pass_reads.all() > 0)
    json["pass_reads"] = {{"mapped", row.pass_reads.mapped},
                          {"disk", row.pass_reads.disk},
                          {"read_again_per_token", row.reread}};
  if (row.order_proven) json["order_proven"] = *row.order_proven;
  json["reads"] = {{"bytes", row.reads.bytes}, {"jumps", row.reads.jumps}, {"distance", row.reads.distance}};
  json["seconds"] = row.seconds;
  for (std::size_t i = 0; i < row.views.size(); ++i)
    json["views"][std::string(plan::memory_views()[i].id)] = row.views[i];
  if (row.cache)
    json["cache"] = {{"limit", row.cache->limit},
                     {"mapped", row.cache->mapped},
                     {"peak", row.cache->peak},
                     {"reread_bytes", row.cache->reread_bytes}};
  if (row.reserved) json["reserved"] = spaces_json(*row.reserved);
  if (row.reserved_final) json["reserved_final"] = spaces_json(*row.reserved_final);
  if (row.allocated) json["allocated"] = {{"device", *row.allocated}};
  const load::BudgetVerdict& verdict = row.verdict;
  if (verdict.step)
    json["first_over_budget"] = {{"step", *verdict.step}, {"tensor", json_text(row.first_over)}};
  if (verdict.device_over + verdict.host_over + verdict.unified_over > 0) {
    json["over"] = Json::object();
    if (!verdict.host_fits) json["over"]["host"] = verdict.host_over;
    if (!verdict.device_fits) json["over"]["device"] = verdict.device_over;
    if (!verdict.unified_fits) json["over"]["unified"] = verdict.unified_over;
  }
  const bool wide =
      bound.memory.kind == plan::MemoryKind::unified && verdict.unified_high > verdict.unified_peak;
  if (wide) json["range"]["unified"] = {verdict.unified_peak, verdict.unified_high};
  if (wide || row.host_range) json["at_risk"] = verdict.at_risk > 0;
  if (row.pages_of_views) json["range"]["page_cache"] = {*row.pages_of_views, *row.pages_of_views};
  if (row.committed) json["committed"] = *row.committed;
  if (verdict.committed_over > 0) json["over"]["committed"] = verdict.committed_over;
  if (row.host_range) json["range"]["host"] = {row.host_range->low, row.host_range->high};
  if (bound.request.max_context) json["context_max"] = or_null(row.context_max);
  if (bound.request.require_peak) json["within_required_peak"] = row.over_required_peak == 0;
  return json;
}

// Bytes by home of the weights; null if all go to the device.
Json placement_json(const graph::MetaGraph& graph, const load::Placement& placement) {
  Json json;
  if (placement.all_on_device()) return json;
  for (const load::Home home : {load::Home::device, load::Home::host, load::Home::disk}) {
    std::uint64_t bytes = 0;
    for (const graph::StorageId id : load::used_storages(graph)) {
      const bool twin = home == load::Home::host && placement.has_twin(id);
      if (twin || placement.of(id) == home) bytes += graph.storage(id).bytes;
    }
    json[std::string(load::home_id(home))] = bytes;
  }
  return json;
}

Json context_json(const load::ContextAnswer& context) {
  Json json = {{"positions", or_null(context.positions)}, {"micro_batch", or_null(context.micro_batch)}};
  if (context.cache_only) json["cache_only"] = true;
  if (!context.missing.empty()) json["missing"] = json_text(context.missing);
  return json;
}

// The options in force: the kind of memory, the profile and the sizes of the pass are resolved by now.
Json options_in_force(const PlanDisplay& view) {
  load::LoadRequest request = view.request();
  request.memory = view.bound().memory.kind;
  const load::RequestPass& forward = *view.answer().forward;
  const bool pass = load::asks_for_pass(request) || forward.pass() != nullptr;
  request.forward.profile = pass ? forward.model().profile : std::string();
  request.batch = forward.batch();
  request.sequence = forward.sequence();
  request.past = forward.past();
  if (request.methods.empty())
    for (const load::Method* method : view.bound().methods) request.methods.emplace_back(method->id);
  return options_json(request, load::LoadUser::plan);
}

}  // namespace

Json plan_json(const PlanDisplay& view) {
  const load::LoadAnswer& answer = view.answer();
  const load::BoundRequest& bound = view.bound();
  std::uint64_t least = load::device_lower_bound(view.graph, bound, answer.forward->pass());
  for (const load::Method* const method : bound.methods)
    if (bound.cast_of(*method) != bound.request.cast) least = std::min(least, view.lower_bound(*method));
  Json json = {{"model", json_text(graph::model_name(view.graph))},
               {"bytes", graph::storage_bytes(view.graph)},
               {"options", options_in_force(view)},
               {"budget",
                {{"device", or_null(bound.memory.budget.device)},
                 {"host", or_null(bound.memory.budget.host)},
                 {"unified", or_null(bound.memory.budget.unified)}}},
               {"placement", placement_json(view.graph, bound.placement)},
               {"rates", rates_json(bound.costs, bound.rates)},
               {"rows", Json::array()},
               {"lower_bound",
                {{"host", 0}, {"page_cache", 0}, {"staging", 0}, {"device", least}, {"unified", least}}}};
  if (!bound.incomplete.empty()) json["incomplete"] = json_text(bound.incomplete);
  if (bound.judged()) json["verdicts_cover"] = json_text(view.covered());
  if (!view.answer().unaccounted.empty()) json["unaccounted"] = json_text(view.answer().unaccounted);
  if (bound.request.cast) {
    const load::CastSummary cast = load::cast_summary(view.graph, *bound.request.cast);
    json["cast"] = {{"tensors", cast.tensors},
                    {"bytes_before", cast.bytes_before},
                    {"bytes_after", cast.bytes_after},
                    {"kept", cast.kept}};
  }
  if (Json pass = forward_json(*answer.forward); !pass.is_null()) json["forward"] = std::move(pass);
  if (answer.context) json["context"] = context_json(*answer.context);
  for (const load::LoadRow& row : answer.rows) json["rows"].push_back(row_json(row, bound));
  if (answer.advice) {
    json["advice"] = advice_json(*answer.advice, view.path);
    json["advice_tried"] = answer.advice->advice.tried;
  }
  for (const load::Method& method : load::methods())
    if (!load::can_open(method, view.graph)) json["cannot_open"].push_back(method.id);
  if (!answer.also_fits.empty()) {
    json["also_fits"] = Json::array();
    for (const load::Method* method : answer.also_fits) json["also_fits"].push_back(method->id);
  }
  return json;
}

}  // namespace loadline::cli
