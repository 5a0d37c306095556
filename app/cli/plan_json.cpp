// The contract's keys for plan.
#include "app/cli/plan_json.h"

#include "app/cli/method_options.h"
#include "app/cli/rates.h"
#include "core/load/cast_summary.h"

#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json peaks_json(const Row& row, Json& places) {
  Json peaks = Json::object();
  const auto add = [&](std::string_view name, const RowPeak& peak) {
    peaks[std::string(name)] = peak.bytes;
    if (peak.bytes > 0) places[std::string(name)] = {{"step", peak.step}, {"tensor", json_text(peak.tensor)}};
  };
  for (std::size_t i = 0; i < kSpaceCount; ++i) add(space_name(static_cast<Space>(i)), row.peaks[i]);
  add("unified", row.unified);
  return peaks;
}

Json spaces_json(const PerSpace<std::uint64_t>& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    json[std::string(space_name(static_cast<Space>(i)))] = bytes[i];
  return json;
}

Json fits_json(const Row& row, const RowFrame& frame) {
  const Budget& budget = frame.budget;
  Json json = {{"host", budget.host ? Json(row.verdict.host_fits) : Json()},
               {"device", budget.device ? Json(row.verdict.device_fits) : Json()}};
  if (frame.memory == MemoryKind::unified)
    json["unified"] = budget.unified ? Json(row.verdict.unified_fits) : Json();
  return json;
}

Json row_json(const Row& row, const RowFrame& frame) {
  if (row.refusal)
    return {{"method", row.method->id},
            {"order", json_text(row.order)},
            {"refused", json_text(row.refusal->what())}};
  Json places = Json::object();
  Json peaks = peaks_json(row, places);
  Json json = {
      {"method", row.method->id},     {"order", json_text(row.order)},         {"peak", std::move(peaks)},
      {"peak_at", std::move(places)}, {"final", spaces_json(row.final_bytes)}, {"views", Json::object()},
      {"fits", fits_json(row, frame)}};
  json["law"] = row.method->peak_law;
  if (row.order_proven) json["order_proven"] = *row.order_proven;
  json["reads"] = {{"bytes", row.reads.bytes}, {"jumps", row.reads.jumps}, {"distance", row.reads.distance}};
  json["seconds"] = row.seconds;
  for (std::size_t i = 0; i < row.views.size(); ++i)
    json["views"][std::string(memory_views()[i].id)] = row.views[i];
  if (row.cache)
    json["cache"] = {{"limit", row.cache->limit},
                     {"mapped", row.cache->mapped},
                     {"peak", row.cache->peak},
                     {"reread_bytes", row.cache->reread_bytes}};
  if (row.reserved) json["reserved"] = spaces_json(*row.reserved);
  if (row.reserved_final) json["reserved_final"] = spaces_json(*row.reserved_final);
  if (row.allocated) json["allocated"] = {{"device", *row.allocated}};
  const BudgetVerdict& verdict = row.verdict;
  if (verdict.step)
    json["first_over_budget"] = {{"step", *verdict.step}, {"tensor", json_text(row.first_over)}};
  if (!verdict.fits()) {
    json["over"] = Json::object();
    if (!verdict.host_fits) json["over"]["host"] = verdict.host_over;
    if (!verdict.device_fits) json["over"]["device"] = verdict.device_over;
    if (!verdict.unified_fits) json["over"]["unified"] = verdict.unified_over;
  }
  if (frame.max_peak) json["within_max_peak"] = row.over_max_peak == 0;
  return json;
}

Json options_json(const PlanAnswer& answer) {
  const RowFrame& frame = answer.frame;
  Json json = method_options_json(answer.options, answer.graph);
  json["device"] = answer.device ? Json(json_text(answer.device->id)) : Json();
  json["device_budget"] = or_null(frame.budget.device);
  json["host_budget"] = or_null(frame.budget.host);
  json["unified_budget"] = or_null(frame.budget.unified);
  json["max_peak"] = or_null(frame.max_peak);
  json["cache_limit"] = or_null(frame.cache_limit);
  const ForwardArguments& forward = answer.forward.arguments();
  const bool pass = forward.sequence > 0 || answer.forward.pass() != nullptr;
  json["seq"] = pass ? Json(forward.sequence) : Json();
  json["batch"] = pass ? Json(forward.batch) : Json();
  json["past"] = pass ? Json(forward.past) : Json();
  json["profile"] =
      pass && !answer.forward.profile().empty() ? Json(json_text(answer.forward.profile())) : Json();
  json["axis"] = frame.curve ? Json(frame.curve->axis == view::CurveAxis::steps ? "steps" : "time") : Json();
  return json;
}

}  // namespace

Json plan_json(const PlanAnswer& answer) {
  const std::uint64_t least = device_lower_bound(answer.graph, answer.options, answer.forward.pass());
  Json json = {{"model", json_text(model_name(answer.graph))},
               {"bytes", storage_bytes(answer.graph)},
               {"options", options_json(answer)},
               {"rates", rates_json(answer.options.costs, answer.rates)},
               {"rows", Json::array()},
               {"lower_bound",
                {{"host", 0}, {"page_cache", 0}, {"staging", 0}, {"device", least}, {"unified", least}}}};
  if (answer.options.cast) {
    const CastSummary cast = cast_summary(answer.graph, *answer.options.cast);
    json["cast"] = {{"tensors", cast.tensors},
                    {"bytes_before", cast.bytes_before},
                    {"bytes_after", cast.bytes_after},
                    {"kept", cast.kept}};
  }
  if (Json pass = answer.forward.json(); !pass.is_null()) json["forward"] = std::move(pass);
  for (const Row& row : answer.rows) json["rows"].push_back(row_json(row, answer.frame));
  if (answer.advice) {
    json["advice"] = advice_json(*answer.advice);
    json["advice_tried"] = answer.advice->advice.tried;
  }
  return json;
}

}  // namespace loadline::cli
