// The report: figures and their goals, as a page and as JSON.
#include "tests/gpu_report/report.h"

#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::bench {

// --- The report as a page: what it ran on, goals, what is missing, tables.

namespace {

std::string device_line(const gpu::DeviceInfo& device) {
  return fmt::format("{}, driver {}, Vulkan {}", device.name, device.driver,
                     gpu::version_text(device.api_version));
}

// Nothing for a device with one family of queues.
std::string queues_text(const UploadFigures& figures) {
  if (figures.queues.rates.empty()) return {};
  std::string links;
  for (const auto& [family, rate] : figures.queues.rates)
    links += fmt::format("{}{}: {}", links.empty() ? "" : ", ", family, format_rate(rate));
  return fmt::format(" Copies go through family {} of its queues, which {}; the link on them: {}.",
                     figures.queue.index, gpu::queue_family_words(figures.queue), links);
}

std::string opening(const GpuReport& report) {
  const UploadFigures* const uploads = report.uploads ? &*report.uploads : nullptr;
  const std::string title =
      fmt::format("GPU report: {}", uploads == nullptr ? "no uploads" : uploads->device.name);
  std::string html = report::page_head(title, {"page", "gpu_report"});
  html += fmt::format(
      "<body>\n<main>\n<h1>{}</h1>\n<p class=\"lead\">{}, Loadline {}{}</p>\n", report::markup_text(title),
      report::markup_text(report.date), report::markup_text(report.version),
      uploads == nullptr
          ? ""
          : report::markup_text(fmt::format(". {}. Model of {}.{}", device_line(uploads->device),
                                            format_bytes(uploads->bytes), queues_text(*uploads))));
  if (uploads == nullptr)
    html += fmt::format("<p class=\"call\">{}No upload was measured.</p>\n",
                        report.devices.empty() ? "No Vulkan device was found. " : "");
  else if (uploads->software())
    html += fmt::format(
        "<p class=\"call\"><b>This is a software GPU.</b> {} runs on the CPU, and its memory is this "
        "program's. There "
        "is no link to a GPU here: throughput is compared with memcpy and reads on the same machine, and "
        "says nothing "
        "of how fast a GPU is loaded.</p>\n",
        report::markup_text(uploads->device.name));
  return html;
}

std::string verdict(const Judged& one) {
  if (one.goal.empty()) return "no goal";
  if (!one.met) return fmt::format("not judged (goal: {})", one.goal);
  return fmt::format("goal {}: {}", *one.met ? "met" : "missed", one.goal);
}

std::string goals_html(const GpuReport& report) {
  const std::vector<Judged> list = judged(report);
  if (list.empty()) return {};
  std::string html = "<section class=\"goals\">\n";
  for (const Judged& one : list)
    html += fmt::format(
        "<div class=\"goal {}\"><b>{}</b> <span>{}</span><strong>{}</strong><p>{} {}</p></div>\n",
        !one.met   ? ""
        : *one.met ? "met"
                   : "missed",
        report::markup_text(one.figure), report::markup_text(one.what), report::markup_text(verdict(one)),
        report::markup_text(one.about), report::markup_text(one.not_judged));
  return html + "</section>\n";
}

std::string missing_html(const GpuReport& report) {
  if (report.missing.empty()) return {};
  std::string html = "<h2>Not measured</h2>\n<ul>\n";
  for (const std::string& sentence : report.missing)
    html += fmt::format("<li>{}</li>\n", report::markup_text(sentence));
  return html + "</ul>\n";
}

constexpr std::string_view use_class(RowUse use) {
  constexpr std::string_view kClasses[] = {"upload", "reference", "reference", "ceiling"};
  return kClasses[static_cast<std::size_t>(use)];
}

std::string table_html(const RateTable& table, bool judged_on_gpu) {
  const RateFigure* const baseline = table.best(RowUse::baseline);
  const RateFigure* const ceiling = table.best(RowUse::ceiling);
  double most = 0;
  for (const RateFigure& row : table.rows) most = std::max(most, table.rate(row));
  std::string html = fmt::format("<h2>{}</h2>\n<p>{} {} in each row.</p>\n", report::markup_text(table.title),
                                 report::markup_text(table.about), format_bytes(table.bytes));
  html +=
      "<div class=\"legend\"><span><i class=\"upload\">&nbsp;</i>uploads</span>"
      "<span><i class=\"reference\">&nbsp;</i>for comparison</span>";
  if (ceiling != nullptr) html += "<span><i class=\"ceiling\">&nbsp;</i>ceiling</span>";
  if (ceiling != nullptr && judged_on_gpu)
    html += fmt::format("<span><i class=\"mark\">&nbsp;</i>goal: {:.1f} of the ceiling</span>", kRateGoal);
  html +=
      "</div>\n<div class=\"scroll\"><table class=\"rates\">\n<tr><th class=\"left\">row</th><th "
      "class=\"left wide\"></th><th>rate</th>";
  if (baseline != nullptr) html += "<th>of memcpy</th>";
  if (ceiling != nullptr) html += "<th>of the ceiling</th>";
  html += "<th>median</th><th>least to most</th></tr>\n";
  const auto over = [&](const RateFigure& row, const RateFigure* other) {
    return other == nullptr ? "" : fmt::format("<td>{:.2f}</td>", table.rate(row) / table.rate(*other));
  };
  for (const RateFigure& row : table.rows) {
    const std::string mark = ceiling != nullptr && judged_on_gpu
                                 ? fmt::format("<u style=\"left:{:.1f}%\">&nbsp;</u>",
                                               100 * kRateGoal * table.rate(*ceiling) / most)
                                 : "";
    html += fmt::format(
        "<tr{}><td class=\"left\">{}</td><td class=\"left\"><div class=\"track\"><i class=\"{}\" "
        "style=\"width:{:.1f}%\">&nbsp;</i>{}</div></td><td>{}</td>{}{}<td>{}</td><td>{} to {}</td></tr>\n",
        &row == table.best(RowUse::upload) ? " class=\"best\"" : "", report::markup_text(row.times.name),
        use_class(row.use), 100 * table.rate(row) / most, mark, format_rate(table.rate(row)),
        over(row, baseline), over(row, ceiling), format_seconds(row.times.median),
        format_seconds(row.times.least), format_seconds(row.times.most));
  }
  int rounds = table.rows.empty() ? 0 : table.rows.front().times.rounds;
  return html + fmt::format(
                    "</table></div>\n<p class=\"lead\">Medians of {}, each in another order. The "
                    "fastest upload is in bold.</p>\n",
                    counted(static_cast<std::uint64_t>(rounds), "round"));
}

std::string torch_html(const TorchFigures& torch, const UploadFigures& uploads) {
  std::string html = "<h2>Beside torch</h2>\n";
  if (!torch.absent.empty())
    return html + fmt::format("<p>Not compared: {}.</p>\n", report::markup_text(torch.absent));
  html += fmt::format("<p>safetensors' load_file(device=\"cuda\") on the same file, on {}, with {}.</p>\n",
                      report::markup_text(torch.device), report::markup_text(torch.versions));
  html +=
      "<div class=\"scroll\"><table>\n<tr><th class=\"left\">load</th><th>rate</th><th>median</th><th>least "
      "to "
      "most</th><th>rounds</th></tr>\n";
  const auto row = [&](std::string_view name, const Result& times, std::uint64_t bytes) {
    html += fmt::format(
        "<tr><td class=\"left\">{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td></tr>\n",
        report::markup_text(name), format_rate(static_cast<double>(bytes) / times.median),
        format_seconds(times.median), format_seconds(times.least), format_seconds(times.most), times.rounds);
  };
  for (const std::string_view id : {"warm", "cold"}) {
    const RateTable* const table = uploads.table(id);
    const RateFigure* const ours = table == nullptr ? nullptr : table->best(RowUse::upload);
    if (ours != nullptr)
      row(fmt::format("{}: Loadline, {}", id, ours->times.name), ours->times, table->bytes);
    if (const std::optional<Result>& theirs = id == "warm" ? torch.warm : torch.cold)
      row(fmt::format("{}: load_file", id), *theirs, torch.bytes);
  }
  html += "</table></div>\n";
  html += fmt::format(
      "<p class=\"lead\">torch's own copies of a pinned tensor of 256 MiB reach {}. Its allocator took "
      "{} of device memory.{}</p>\n",
      format_rate(torch.pinned_rate), format_bytes(torch.peak),
      torch.cold_absent.empty() ? "" : report::markup_text(" No cold figure: " + torch.cold_absent + "."));
  return html;
}

// "1.00 GiB / 1.00 GiB  +0.2 %"
std::string peak_cells(std::uint64_t projected, std::uint64_t measured) {
  return fmt::format(
      "<td class=\"group\">{}</td><td>{}</td><td class=\"{}\">{}</td>", format_bytes(projected),
      format_bytes(measured), report::near_enough(projected, measured) ? "" : "bad",
      projected == 0 ? "+" + format_bytes(measured)
                     : fmt::format("{:+.1f}&nbsp;%", report::error_percent(projected, measured)));
}

std::string methods_html(const UploadFigures& uploads) {
  std::string html = fmt::format(
      "<h2>Peaks by method</h2>\n<p>Each method loads {} and is read back and compared with the file. A peak "
      "is as "
      "projected if it is within 2 % or 16 MiB. {} Staging counts the uploader's own ring. {}</p>\n",
      format_bytes(uploads.method_bytes),
      uploads.software() ? "The device's memory is what the uploader took from the driver."
      : uploads.device.memory_budget
          ? "The device's memory is by the driver's own count."
          : "The driver does not count the device's memory: it is what the uploader took.",
      uploads.software()
          ? "RssAnon is the system's count of this process's private memory, here with the device's."
          : "RssAnon is the system's count of this process's private memory, without the device's.");
  html +=
      "<div class=\"scroll\"><table>\n<tr class=\"groups\"><th class=\"left\"></th><th colspan=\"3\" "
      "class=\"group\">device</th><th "
      "colspan=\"3\" class=\"group\">staging</th><th colspan=\"3\" "
      "class=\"group\">RssAnon</th><th></th><th></th></tr>\n<tr><th "
      "class=\"left\">method</th>";
  for (int i = 0; i < 3; ++i) html += "<th class=\"group\">projected</th><th>measured</th><th>off</th>";
  html += "<th class=\"left group\">verdict</th><th class=\"left\">bytes</th></tr>\n";
  for (const MethodFigure& one : uploads.methods) {
    html += fmt::format("<tr><td class=\"left\">{}</td>", report::markup_text(one.method));
    if (!one.refusal.empty()) {
      html += fmt::format("<td colspan=\"11\" class=\"left verdict\">not run: {}</td></tr>\n",
                          report::markup_text(one.refusal));
      continue;
    }
    html += peak_cells(one.device, one.device_measured) + peak_cells(one.staging, one.staging_measured) +
            peak_cells(one.anon, one.anon_measured);
    html += fmt::format("<td class=\"left group {}\">{}</td><td class=\"left {}\">{}</td></tr>\n",
                        one.agrees() ? "good" : "bad", one.agrees() ? "as projected" : "not as projected",
                        one.verified == false ? "bad" : "",
                        !one.verified   ? "&ndash;"
                        : *one.verified ? "equal"
                                        : "DIFFERENT");
  }
  return html + "</table></div>\n";
}

std::string rings_html(const UploadFigures& uploads) {
  std::string html = fmt::format(
      "<h2>Memory held</h2>\n<p>staged_ring with rings of several sizes, {} of weights. Counted by {}.</p>\n"
      "<div class=\"scroll\"><table>\n<tr><th>ring</th><th>held at most</th><th>without the ring, over the "
      "weights</th></tr>\n",
      format_bytes(uploads.bytes), report::markup_text(uploads.held_by));
  for (const RingFigure& ring : uploads.rings)
    html += fmt::format("<tr><td>{} x {}</td><td>{}</td><td class=\"{}\">{:.3f}</td></tr>\n", ring.slots,
                        format_bytes(ring.ring / ring.slots), format_bytes(ring.held),
                        ring.over(uploads.bytes) <= kHeldGoal ? "good" : "bad", ring.over(uploads.bytes));
  return html + "</table></div>\n";
}

std::string tests_html(const std::vector<TestRun>& runs) {
  if (runs.empty()) return {};
  std::string html =
      "<h2>GPU tests</h2>\n<div class=\"scroll\"><table>\n<tr><th "
      "class=\"left\">on</th><th>passed</th><th>failed</th>"
      "<th>skipped</th><th>in</th></tr>\n";
  for (const TestRun& run : runs)
    html += fmt::format(
        "<tr><td class=\"left\">{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td></tr>\n",
        report::markup_text(run.device), run.passed, run.failed.empty() ? "" : "bad", run.failed.size(),
        run.skipped.size(), format_seconds(run.seconds));
  html += "</table></div>\n";
  for (const TestRun& run : runs) {
    for (const TestNote& note : run.failed) {
      std::string lines;
      for (const std::string_view line : lines_of(note.text)) lines += report::markup_text(line) + "\n";
      html += fmt::format("<h3 class=\"bad\">{} failed on {}</h3>\n<pre>{}</pre>\n",
                          report::markup_text(note.name), report::markup_text(run.device), lines);
    }
    if (run.skipped.empty()) continue;
    html += fmt::format("<details><summary>{} skipped on {}</summary>\n<dl>\n",
                        counted(run.skipped.size(), "test"), report::markup_text(run.device));
    for (const TestNote& note : run.skipped)
      html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", report::markup_text(note.name),
                          report::markup_text(note.text));
    html += "</dl>\n</details>\n";
  }
  return html;
}

std::string machine_html(const GpuReport& report) {
  std::string html = "<h2>Machine</h2>\n<dl>\n";
  for (const auto& [name, value] : report.machine)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", report::markup_text(name), report::markup_text(value));
  for (const gpu::DeviceInfo& device : report.devices)
    html += fmt::format("<dt>Device {}</dt><dd>{}</dd>\n", device.index,
                        report::markup_text(device_line(device)));
  return html + "</dl>\n";
}

}  // namespace

std::string report_html(const GpuReport& report) {
  std::string html = opening(report) + goals_html(report) + missing_html(report);
  if (report.uploads) {
    for (const RateTable& table : report.uploads->tables)
      html += table_html(table, !report.uploads->software());
    if (report.torch) html += torch_html(*report.torch, *report.uploads);
    html += methods_html(*report.uploads) + rings_html(*report.uploads);
  }
  html += tests_html(report.tests) + machine_html(report);
  return html +
         "<footer>Written by gpu-report of Loadline. Figures are of this machine and this run.</footer>\n"
         "</main>\n</body>\n</html>\n";
}

// --- Figures and their goals.

namespace {

// Goals are for models of `least` bytes and more.
void judge(Judged& one, std::uint64_t bytes, std::uint64_t least, bool met) {
  if (bytes < least)
    one.not_judged = fmt::format("The goal is for models of {} and more.", format_bytes(least));
  else
    one.met = met;
}

// The best upload of a table over its ceiling or its baseline.
Judged rate_judged(const UploadFigures& uploads, const RateTable& table, RowUse against, std::string id,
                   std::string what) {
  Judged one{.id = std::move(id), .what = std::move(what)};
  const RateFigure* const ours = table.best(RowUse::upload);
  const RateFigure* const most = table.best(against);
  if (ours == nullptr || most == nullptr) return one;
  one.value = table.rate(*ours) / table.rate(*most);
  one.figure = fmt::format("{:.2f}", *one.value);
  one.about = fmt::format("{}: {}. {}: {}.", ours->times.name, format_rate(table.rate(*ours)),
                          most->times.name, format_rate(table.rate(*most)));
  if (against != RowUse::ceiling) return one;
  one.goal = fmt::format("{:.1f}", kRateGoal);
  if (uploads.software())
    one.not_judged = "A software GPU's memory must come from the system page by page.";
  else
    judge(one, uploads.bytes, kSizeGoal, *one.value >= kRateGoal);
  return one;
}

Judged methods_judged(const UploadFigures& uploads) {
  const auto run = [](const MethodFigure& method) { return method.refusal.empty(); };
  const auto all = std::ranges::count_if(uploads.methods, run);
  const auto good = std::ranges::count_if(uploads.methods, &MethodFigure::agrees);
  Judged one{.id = "methods",
             .what = "methods as projected",
             .figure = fmt::format("{} of {}", good, all),
             .about =
                 "Each measured peak is within 2 % or 16 MiB of its projection: on the device, in staging "
                 "memory, in RssAnon.",
             .goal = fmt::format("all, and at least {}", kMethodsGoal),
             .value = static_cast<double>(good)};
  judge(one, uploads.method_bytes, kMemorySizeGoal,
        good == all && static_cast<std::size_t>(all) >= kMethodsGoal);
  return one;
}

Judged held_judged(const UploadFigures& uploads) {
  double most = 0;
  for (const RingFigure& ring : uploads.rings) most = std::max(most, ring.over(uploads.bytes));
  Judged one{.id = "held_over_weights",
             .what = "memory held, over the weights",
             .figure = fmt::format("{:.3f}", most),
             .about = fmt::format("The most of {}, the ring taken off. Counted by {}.",
                                  counted(uploads.rings.size(), "ring"), uploads.held_by),
             .goal = fmt::format("at most {:.2f}", kHeldGoal),
             .value = most};
  judge(one, uploads.bytes, kMemorySizeGoal, most <= kHeldGoal);
  return one;
}

Judged tests_judged(const std::vector<TestRun>& runs) {
  std::uint64_t passed = 0, failed = 0, skipped = 0;
  for (const TestRun& run : runs) {
    passed += run.passed;
    failed += run.failed.size();
    skipped += run.skipped.size();
  }
  return {.id = "tests",
          .what = "GPU tests passed",
          .figure = fmt::format("{} of {}", passed, passed + failed),
          .about = fmt::format("On {}. {} skipped.", counted(runs.size(), "device"),
                               skipped == 0 ? "None" : counted(skipped, "test")),
          .goal = "all",
          .value = static_cast<double>(passed),
          .met = failed == 0 && passed > 0};
}

Judged torch_judged(const TorchFigures& torch, const RateTable& warm) {
  Judged one{.id = "torch", .what = "times as fast as torch"};
  const RateFigure* const ours = warm.best(RowUse::upload);
  if (ours == nullptr || !torch.warm) return one;
  one.value = torch.warm->median / ours->times.median;
  one.figure = fmt::format("{:.2f}", *one.value);
  one.about = fmt::format("{}: {}. load_file: {}. Both with the file in the page cache.", ours->times.name,
                          format_rate(warm.rate(*ours)),
                          format_rate(static_cast<double>(torch.bytes) / torch.warm->median));
  return one;
}

}  // namespace

bool GpuReport::sound() const {
  const bool passed = std::ranges::all_of(tests, [](const TestRun& run) { return run.failed.empty(); });
  return passed && (!uploads || std::ranges::none_of(uploads->methods, [](const MethodFigure& method) {
           return method.verified == false;
         }));
}

std::vector<Judged> judged(const GpuReport& report) {
  std::vector<Judged> list;
  if (!report.tests.empty()) list.push_back(tests_judged(report.tests));
  if (!report.uploads) return list;
  const UploadFigures& uploads = *report.uploads;
  if (const RateTable* const warm = uploads.table("warm")) {
    if (uploads.software())
      list.push_back(rate_judged(uploads, *warm, RowUse::baseline, "warm_over_memcpy", "of memcpy, warm"));
    else
      list.push_back(rate_judged(uploads, *warm, RowUse::ceiling, "warm_over_link", "of the link, warm"));
  }
  if (const RateTable* const cold = uploads.table("cold"))
    list.push_back(rate_judged(uploads, *cold, RowUse::ceiling, "cold_over_read", "of a raw read, cold"));
  if (!uploads.methods.empty()) list.push_back(methods_judged(uploads));
  if (!uploads.rings.empty()) list.push_back(held_judged(uploads));
  if (const RateTable* const warm = uploads.table("warm");
      warm != nullptr && report.torch && report.torch->warm)
    list.push_back(torch_judged(*report.torch, *warm));
  std::erase_if(list, [](const Judged& one) { return !one.value; });
  return list;
}

// --- The report for programs. Bytes, seconds and bytes per second as numbers; absent figures are null.

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
