// loadline upload: loads a model onto a GPU and lays what was measured beside what was projected.
#include "app/cli/commands.h"
#include "app/cli/method_options.h"
#include "app/cli/option_use.h"
#include "app/cli/table.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/load/order_file.h"
#include "core/load/projection.h"

#ifdef LOADLINE_HAS_GPU
#include "core/gpu/upload.h"
#endif

#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Options {
  std::string path;
  std::string device;
  std::string method = "staged_ring";
  std::string order = "file";
  MethodArguments arguments;
  bool verify = false;
  bool validation = false;
  std::vector<GivenOption> given = {};  // what the command line says
};

#ifdef LOADLINE_HAS_GPU

constexpr std::array kSpaces = {Space::device, Space::host, Space::page_cache, Space::staging};

Json peaks_json(const Timeline& timeline) {
  Json json;
  for (const Space space : kSpaces) json[std::string(space_name(space))] = timeline.peaks[index(space)].bytes;
  json["unified"] = timeline.unified.bytes;
  return json;
}

// Of the measured peak against the projected one; 0 where both are.
double error_percent(std::uint64_t projected, std::uint64_t measured) {
  if (projected == measured) return 0;
  if (projected == 0) return 100;
  return 100 * (static_cast<double>(measured) / static_cast<double>(projected) - 1);
}

Json report_json(const gpu::UploadReport& report, const Options& options) {
  Json json = {
      {"device", json_text(report.device)},
      {"method", options.method},
      {"order", json_text(options.order)},
      {"tensors", report.tensors},
      {"bytes", report.bytes},
      {"seconds", report.seconds},
      {"bytes_per_second", report.bytes_per_second},
      {"staging_bytes", report.staging_bytes},
      {"projected", {{"peak", peaks_json(report.projected)}, {"rss_anon", report.projected_rss_anon}}},
      {"measured", {{"peak", peaks_json(report.measured)}}}};
  Json& measured = json["measured"];
  measured["rss_anon_peak"] = report.rss_anon_peak;
  measured["device_ledger_peak"] = report.device_ledger_peak;
  if (report.device_budget_peak) measured["device_budget_peak"] = *report.device_budget_peak;
  if (report.measured.reserved_peak)
    for (const Space space : kSpaces)
      measured["reserved"][std::string(space_name(space))] = (*report.measured.reserved_peak)[index(space)];
  for (const Space space : kSpaces)
    json["error_percent"][std::string(space_name(space))] =
        error_percent(report.projected.peaks[index(space)].bytes, report.measured.peaks[index(space)].bytes);
  json["error_percent"]["unified"] =
      error_percent(report.projected.unified.bytes, report.measured.unified.bytes);
  json["error_percent"]["rss_anon"] = error_percent(report.projected_rss_anon, report.rss_anon_peak);
  json["verified"] = report.verified ? Json(*report.verified) : Json();
  if (!report.mismatch.empty()) json["mismatch"] = report.mismatch;
  json["validation_messages"] = Json::array();
  for (const std::string& message : report.validation_messages)
    json["validation_messages"].push_back(json_text(message));
  return json;
}

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

// What the process really grew by, and why that can differ from the plan.
void print_system_count(const gpu::UploadReport& report) {
  fmt::print("At the peak the system counts {} more private memory of this process; by the plan it is {}",
             format_bytes(report.rss_anon_peak), format_bytes(report.projected_rss_anon));
  constexpr std::uint64_t kWorthComparing = 8 << 20;
  if (report.projected_rss_anon >= kWorthComparing)
    fmt::print(" ({:+.1f} %)", error_percent(report.projected_rss_anon, report.rss_anon_peak));
  fmt::print(".\n");
  if (report.software_device)
    fmt::print("A software device's memory is the process's own and counts when it is first touched.\n");
  const auto& taken = report.measured.reserved_peak;
  const std::uint64_t planned = report.measured.peaks[index(Space::staging)].bytes;
  if (taken && planned == 0 && (*taken)[index(Space::staging)] > 0)
    fmt::print(
        "{} of staging are the uploader's own buffer for copies from ordinary memory, outside the plan.\n",
        format_bytes((*taken)[index(Space::staging)]));
}

void print_report(const Context& context, const gpu::UploadReport& report, const Options& options) {
  const std::string rate =
      report.bytes == 0 ? "" : fmt::format(" ({})", format_rate(report.bytes_per_second));
  fmt::print("{}, {} onto {} in {}{}, {} in {} order\n\n", counted(report.tensors, "tensor"),
             format_bytes(report.bytes), safe_display(report.device, 60), format_seconds(report.seconds),
             rate, options.method, safe_display(options.order, 60));
  Table table({"peak", "projected", "allocated", "error", "taken in all"},
              {Align::left, Align::right, Align::right, Align::right, Align::right});
  const auto row = [&](std::string name, std::uint64_t projected, std::uint64_t measured, std::string taken) {
    table.row({std::move(name), bytes_cell(projected), bytes_cell(measured),
               fmt::format("{:.1f} %", error_percent(projected, measured)), std::move(taken)});
  };
  for (const Space space : kSpaces) {
    const std::size_t at = index(space);
    const auto& taken = report.measured.reserved_peak;
    row(space == Space::page_cache ? "page cache" : std::string(space_name(space)),
        report.projected.peaks[at].bytes, report.measured.peaks[at].bytes,
        taken ? bytes_cell((*taken)[at]) : "");
  }
  row("unified", report.projected.unified.bytes, report.measured.unified.bytes, "");
  fmt::print("{}\n", table.text(context.colour));

  print_system_count(report);
  if (report.device_budget_peak)
    fmt::print("The driver counts {} more on the device.\n", format_bytes(*report.device_budget_peak));
  if (report.verified)
    fmt::print("{}\n", *report.verified
                           ? fmt::format("Verified: every byte on the device equals the file{}.",
                                         options.arguments.cast.empty() ? "" : ", cast where --cast says so")
                           : "DIFFERENT: " + report.mismatch);
  if (options.validation)
    fmt::print("The validation layer has {}.\n", counted(report.validation_messages.size(), "message"));
  for (const std::string& message : report.validation_messages) fmt::print("  {}\n", safe_display(message));
}

int upload(const Context& context, const Options& options) {
  const Method& method = find_method(options.method);
  check_order_choice(options.order);
  const Method* const asked = &method;
  require_taken(options.given, {&asked, 1});
  MethodOptions arguments = parse_method_arguments(options.arguments);
  const MetaGraphPtr graph = open_for(context, options.path);
  require_sound(*graph, "upload");
  require_importable(*graph, method);
  arguments.placement = parse_placement(options.arguments, *graph);
  const OrderChoice order = choose_order(*graph, options.order);
  const Plan plan = make_plan(
      *graph, method, make_order(*graph, order, method, arguments, Progress(context.stop)), arguments);

  Progress progress(context.stop);
  gpu::UploadReport report;
  {
    const ProgressLine line(context, "uploading", progress);
    report = gpu::upload(graph, plan,
                         {.device = options.device,
                          .verify = options.verify,
                          .validation = options.validation,
                          .placement = arguments.placement},
                         progress);
  }
  if (context.json)
    print_json(report_json(report, options));
  else
    print_report(context, report, options);
  if (!report.validation_messages.empty()) return kFailed;
  return report.verified == false ? kDifferent : kDone;
}

#else

int upload(const Context&, const Options&) {
  throw Error(ErrorCode::unsupported, "built without Vulkan: nothing can be uploaded");
}

#endif

}  // namespace

Action setup_upload(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_path_option(app, options->path);
  app.add_option("--device", options->device, "Index or part of a name; by default the best (see `devices`)");
  app.add_option("--method", options->method, "How to load: " + id_list(methods()))->capture_default_str();
  app.add_option("--order", options->order,
                 "In which order: " + id_list(orders()) + ", or a file that lists tensors")
      ->capture_default_str();
  add_method_options(app, options->arguments);
  app.add_flag("--verify", options->verify, "Read the device back and compare every byte with the file");
  app.add_flag("--validation", options->validation, "Run under the Vulkan validation layer");
  return [options, &app](Context& context) {
    options->given = given_options(app);
    return upload(context, *options);
  };
}

}  // namespace loadline::cli
