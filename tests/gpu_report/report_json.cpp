// The report for programs. Bytes, seconds and bytes per second as numbers; absent figures are null.
#include "core/base/text.h"
#include "tests/gpu_report/report.h"

#include <nlohmann/json.hpp>

namespace loadline::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view raw) { return is_valid_utf8(raw) ? std::string(raw) : safe_display(raw); }

Json device_json(const gpu::DeviceInfo& device) {
  const gpu::DeviceHeap* const heap = gpu::device_heap(device);
  return {{"index", device.index},
          {"name", text(device.name)},
          {"type", gpu::device_type_name(device.type)},
          {"vendor", device.vendor},
          {"driver", text(device.driver)},
          {"api_version", gpu::version_text(device.api_version)},
          {"memory_bytes", heap == nullptr ? Json() : Json(heap->bytes)},
          {"software", device.type == gpu::DeviceType::cpu}};
}

Json notes_json(const std::vector<TestNote>& notes, const char* what) {
  Json list = Json::array();
  for (const TestNote& note : notes) list.push_back({{"name", text(note.name)}, {what, text(note.text)}});
  return list;
}

Json times_json(const Result& times, std::uint64_t bytes) {
  return {{"seconds", {{"median", times.median}, {"least", times.least}, {"most", times.most}}},
          {"rounds", times.rounds},
          {"bytes_per_second", static_cast<double>(bytes) / times.median}};
}

Json table_json(const RateTable& table) {
  constexpr std::string_view kUses[] = {"upload", "reference", "baseline", "ceiling"};
  const RateFigure* const baseline = table.best(RowUse::baseline);
  const RateFigure* const ceiling = table.best(RowUse::ceiling);
  const auto over = [&](const RateFigure& row, const RateFigure* other) {
    return other == nullptr ? Json() : Json(table.rate(row) / table.rate(*other));
  };
  Json rows = Json::array();
  for (const RateFigure& row : table.rows) {
    Json json = {{"name", row.times.name}, {"use", kUses[static_cast<std::size_t>(row.use)]}};
    json.update(times_json(row.times, table.bytes));
    json["over_baseline"] = over(row, baseline);
    json["over_ceiling"] = over(row, ceiling);
    rows.push_back(json);
  }
  return {{"id", table.id},
          {"title", table.title},
          {"bytes", table.bytes},
          {"baseline", baseline == nullptr ? Json() : Json(baseline->times.name)},
          {"ceiling", ceiling == nullptr ? Json() : Json(ceiling->times.name)},
          {"rows", rows}};
}

Json method_json(const MethodFigure& method) {
  if (!method.refusal.empty()) return {{"method", method.method}, {"refused", text(method.refusal)}};
  const auto peak = [](std::uint64_t projected, std::uint64_t measured) {
    return Json{{"projected", projected}, {"measured", measured}};
  };
  return {{"method", method.method},
          {"device", peak(method.device, method.device_measured)},
          {"staging", peak(method.staging, method.staging_measured)},
          {"rss_anon", peak(method.anon, method.anon_measured)},
          {"agrees", method.agrees()},
          {"verified", method.verified ? Json(*method.verified) : Json()}};
}

Json uploads_json(const UploadFigures& uploads) {
  Json json = {{"device", device_json(uploads.device)},
               {"queue", {{"family", uploads.queue.index}, {"kind", gpu::queue_family_words(uploads.queue)}}},
               {"bytes", uploads.bytes},
               {"tables", Json::array()},
               {"method_bytes", uploads.method_bytes},
               {"methods", Json::array()},
               {"held_by", uploads.held_by},
               {"rings", Json::array()}};
  for (const auto& [family, rate] : uploads.queues.rates) json["queue"]["links"][family] = rate;
  for (const RateTable& table : uploads.tables) json["tables"].push_back(table_json(table));
  for (const MethodFigure& method : uploads.methods) json["methods"].push_back(method_json(method));
  for (const RingFigure& ring : uploads.rings)
    json["rings"].push_back({{"slots", ring.slots},
                             {"ring_bytes", ring.ring},
                             {"held_bytes", ring.held},
                             {"over_weights", ring.over(uploads.bytes)}});
  return json;
}

Json torch_json(const TorchFigures& torch) {
  if (!torch.absent.empty()) return {{"absent", text(torch.absent)}};
  const auto times = [&](const std::optional<Result>& result) {
    return result ? times_json(*result, torch.bytes) : Json();
  };
  Json json = {{"versions", text(torch.versions)},
               {"device", text(torch.device)},
               {"bytes", torch.bytes},
               {"warm", times(torch.warm)},
               {"cold", times(torch.cold)},
               {"device_peak", torch.peak},
               {"pinned_bytes_per_second", torch.pinned_rate}};
  if (!torch.cold_absent.empty()) json["cold_absent"] = text(torch.cold_absent);
  return json;
}

}  // namespace

std::string report_json(const GpuReport& report) {
  Json json = {{"schema_version", 1}, {"date", report.date}, {"loadline", report.version}};
  for (const auto& [name, value] : report.machine) json["machine"][lower_case(name)] = text(value);
  json["devices"] = Json::array();
  for (const gpu::DeviceInfo& device : report.devices) json["devices"].push_back(device_json(device));
  json["tests"] = Json::array();
  for (const TestRun& run : report.tests)
    json["tests"].push_back({{"device", text(run.device)},
                             {"passed", run.passed},
                             {"failed", notes_json(run.failed, "message")},
                             {"skipped", notes_json(run.skipped, "reason")},
                             {"seconds", run.seconds}});
  json["uploads"] = report.uploads ? uploads_json(*report.uploads) : Json();
  json["torch"] = report.torch ? torch_json(*report.torch) : Json();
  json["goals"] = Json::array();
  for (const Judged& one : judged(report))
    json["goals"].push_back({{"id", one.id},
                             {"value", *one.value},
                             {"goal", one.goal},
                             {"met", one.met ? Json(*one.met) : Json()},
                             {"not_judged", one.not_judged},
                             {"about", text(one.about)}});
  json["not_measured"] = Json::array();
  for (const std::string& sentence : report.missing) json["not_measured"].push_back(text(sentence));
  return json.dump(2) + "\n";
}

}  // namespace loadline::bench
