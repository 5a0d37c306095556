// The report as a page: what it ran on, goals, what is missing, tables.
#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/base/text.h"
#include "tests/gpu_report/report.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::bench {
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
  html += fmt::format("<body>\n<main>\n<h1>{}</h1>\n<p class=\"lead\">{}, Loadline {}{}</p>\n",
                      markup_text(title), markup_text(report.date), markup_text(report.version),
                      uploads == nullptr
                          ? ""
                          : markup_text(fmt::format(". {}. Model of {}.{}", device_line(uploads->device),
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
        markup_text(uploads->device.name));
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
    html +=
        fmt::format("<div class=\"goal {}\"><b>{}</b> <span>{}</span><strong>{}</strong><p>{} {}</p></div>\n",
                    !one.met   ? ""
                    : *one.met ? "met"
                               : "missed",
                    markup_text(one.figure), markup_text(one.what), markup_text(verdict(one)),
                    markup_text(one.about), markup_text(one.not_judged));
  return html + "</section>\n";
}

std::string missing_html(const GpuReport& report) {
  if (report.missing.empty()) return {};
  std::string html = "<h2>Not measured</h2>\n<ul>\n";
  for (const std::string& sentence : report.missing)
    html += fmt::format("<li>{}</li>\n", markup_text(sentence));
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
  std::string html = fmt::format("<h2>{}</h2>\n<p>{} {} in each row.</p>\n", markup_text(table.title),
                                 markup_text(table.about), format_bytes(table.bytes));
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
        &row == table.best(RowUse::upload) ? " class=\"best\"" : "", markup_text(row.times.name),
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
    return html + fmt::format("<p>Not compared: {}.</p>\n", markup_text(torch.absent));
  html += fmt::format("<p>safetensors' load_file(device=\"cuda\") on the same file, on {}, with {}.</p>\n",
                      markup_text(torch.device), markup_text(torch.versions));
  html +=
      "<div class=\"scroll\"><table>\n<tr><th class=\"left\">load</th><th>rate</th><th>median</th><th>least "
      "to "
      "most</th><th>rounds</th></tr>\n";
  const auto row = [&](std::string_view name, const Result& times, std::uint64_t bytes) {
    html += fmt::format(
        "<tr><td class=\"left\">{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td></tr>\n",
        markup_text(name), format_rate(static_cast<double>(bytes) / times.median),
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
      torch.cold_absent.empty() ? "" : markup_text(" No cold figure: " + torch.cold_absent + "."));
  return html;
}

// "1.00 GiB / 1.00 GiB  +0.2 %"
std::string peak_cells(std::uint64_t projected, std::uint64_t measured) {
  return fmt::format("<td class=\"group\">{}</td><td>{}</td><td class=\"{}\">{:+.1f}&nbsp;%</td>",
                     format_bytes(projected), format_bytes(measured),
                     report::near_enough(projected, measured) ? "" : "bad",
                     report::error_percent(projected, measured));
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
    html += fmt::format("<tr><td class=\"left\">{}</td>", markup_text(one.method));
    if (!one.refusal.empty()) {
      html += fmt::format("<td colspan=\"11\" class=\"left verdict\">not run: {}</td></tr>\n",
                          markup_text(one.refusal));
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
      format_bytes(uploads.bytes), markup_text(uploads.held_by));
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
        markup_text(run.device), run.passed, run.failed.empty() ? "" : "bad", run.failed.size(),
        run.skipped.size(), format_seconds(run.seconds));
  html += "</table></div>\n";
  for (const TestRun& run : runs) {
    for (const TestNote& note : run.failed) {
      std::string lines;
      for (const std::string_view line : lines_of(note.text)) lines += markup_text(line) + "\n";
      html += fmt::format("<h3 class=\"bad\">{} failed on {}</h3>\n<pre>{}</pre>\n", markup_text(note.name),
                          markup_text(run.device), lines);
    }
    if (run.skipped.empty()) continue;
    html += fmt::format("<details><summary>{} skipped on {}</summary>\n<dl>\n",
                        counted(run.skipped.size(), "test"), markup_text(run.device));
    for (const TestNote& note : run.skipped)
      html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(note.name), markup_text(note.text));
    html += "</dl>\n</details>\n";
  }
  return html;
}

std::string machine_html(const GpuReport& report) {
  std::string html = "<h2>Machine</h2>\n<dl>\n";
  for (const auto& [name, value] : report.machine)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(name), markup_text(value));
  for (const gpu::DeviceInfo& device : report.devices)
    html += fmt::format("<dt>Device {}</dt><dd>{}</dd>\n", device.index, markup_text(device_line(device)));
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

}  // namespace loadline::bench
