// loadline upload: loads a model onto a GPU and compares the measured peaks with the projected ones.
#include "app/cli/commands.h"
#include "app/cli/load_flags.h"
#include "app/cli/rates.h"
#include "app/cli/table.h"
#include "app/report/error_percent.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/order_file.h"
#include "core/load/projection.h"

#ifdef LOADLINE_HAS_GPU
#include "app/report/upload_time.h"
#include "app/report/wrap.h"
#include "core/gpu/measure_link.h"
#include "core/gpu/upload.h"
#endif

#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct UploadFlags {
  std::string device;
  bool verify = false;
  bool validation = false;
};

// The resolved request of the upload.
struct AskedUpload {
  const LoadRequest& request;
  std::string_view method;
  std::string order;
  CostModel costs = {};  // of the projected time
  std::optional<MeasuredRates> rates = {};
};

#ifdef LOADLINE_HAS_GPU

constexpr std::string_view kRing = "staged_ring";
constexpr std::array kSpaces = {Space::device, Space::host, Space::page_cache, Space::staging};

Json peaks_json(const Timeline& timeline) {
  Json json;
  for (const Space space : kSpaces) json[std::string(space_name(space))] = timeline.peaks[index(space)].bytes;
  json["unified"] = timeline.unified.bytes;
  return json;
}

Json report_json(const gpu::UploadReport& report, const AskedUpload& asked) {
  Json json = {
      {"device", json_text(report.device)},
      {"method", asked.method},
      {"order", json_text(asked.order)},
      {"prepack", asked.request.prepack ? Json(prepacking_id(*asked.request.prepack)) : Json()},
      {"options", options_json(asked.request, LoadUser::upload)},
      {"tensors", report.tensors},
      {"bytes", report.bytes},
      {"seconds", report.seconds},
      {"bytes_per_second", report.bytes_per_second},
      {"staging_bytes", report.staging_bytes},
      {"projected",
       {{"peak", peaks_json(report.projected)},
        {"rss_anon", report.projected_rss_anon},
        {"seconds", report.projected_seconds},
        {"seconds_as_cached", report.expected_seconds}}},
      {"page_cache",
       {{"files", report.file_bytes}, {"before", report.cached_bytes ? Json(*report.cached_bytes) : Json()}}},
      {"queue", {{"family", report.queue.index}, {"kind", gpu::queue_family_words(report.queue)}}},
      {"measured", {{"peak", peaks_json(report.measured)}}}};
  Json& measured = json["measured"];
  measured["rss_anon_peak"] = report.rss_anon_peak;
  measured["rss_file_peak"] = report.rss_file_peak;
  measured["device_ledger_peak"] = report.device_ledger_peak;
  measured["imported_bytes"] = report.imported_bytes;
  if (report.device_budget_peak) measured["device_budget_peak"] = *report.device_budget_peak;
  if (report.measured.reserved_peak)
    for (const Space space : kSpaces)
      measured["reserved"][std::string(space_name(space))] = (*report.measured.reserved_peak)[index(space)];
  for (const Space space : kSpaces)
    json["error_percent"][std::string(space_name(space))] = report::error_percent(
        report.projected.peaks[index(space)].bytes, report.measured.peaks[index(space)].bytes);
  json["error_percent"]["unified"] =
      report::error_percent(report.projected.unified.bytes, report.measured.unified.bytes);
  json["error_percent"]["rss_anon"] = report::error_percent(report.projected_rss_anon, report.rss_anon_peak);
  if (report.device_budget_peak) json["projected"]["device_budget"] = report.projected_device_budget;
  if (report.device_budget_peak)
    json["error_percent"]["device_budget"] =
        report::error_percent(report.projected_device_budget, *report.device_budget_peak);
  json["error_percent"]["seconds"] = report::error_percent(report.expected_seconds, report.seconds);
  json["rates"] = rates_json(asked.costs, asked.rates);
  json["verified"] = report.verified ? Json(*report.verified) : Json();
  if (!report.mismatch.empty()) json["mismatch"] = report.mismatch;
  json["notes"] = json_texts(report.notes);
  json["validation_messages"] = json_texts(report.validation_messages);
  return json;
}

// Shows the process's real memory growth, and why it can differ from the plan.
void print_system_count(const gpu::UploadReport& report) {
  fmt::print("At the peak the system counts {} more private memory of this process; by the plan it is {}",
             format_bytes(report.rss_anon_peak), format_bytes(report.projected_rss_anon));
  constexpr std::uint64_t kWorthComparing = 8 << 20;
  if (report.projected_rss_anon >= kWorthComparing)
    fmt::print(" ({:+.1f} %)", report::error_percent(report.projected_rss_anon, report.rss_anon_peak));
  fmt::print(".\n");
  if (report.software_device)
    fmt::print(
        "A software device's memory is the process's own. It is taken when it is allocated, as on a GPU.\n");
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
  if (report.queue_families > 1)
    fmt::print("Copies went through family {} of the device's queues, which {}.\n", report.queue.index,
               gpu::queue_family_words(report.queue));
  if (report.imported_bytes > 0)
    fmt::print("The device read {} of file pages in place.\n", format_bytes(report.imported_bytes));
  const auto& taken = report.measured.reserved_peak;
  const std::uint64_t planned = report.measured.peaks[index(Space::staging)].bytes;
  if (taken && planned == 0 && (*taken)[index(Space::staging)] > 0)
    fmt::print(
        "{} of staging are the uploader's own buffer for copies from ordinary memory, outside the plan.\n",
        format_bytes((*taken)[index(Space::staging)]));
}

// Says how long the load should have taken beside how long it took.
void print_time(const Context& context, const gpu::UploadReport& report, const AskedUpload& asked) {
  const report::UploadTime time = report::upload_time(report);
  const std::string text = fmt::format("Time: {} {}\n", report::upload_time_text(time),
                                       report::upload_rates_text(time, asked.rates, report.device));
  fmt::print("{}", report::reflowed(text, context.prose_columns));
}

void print_report(const Context& context, const gpu::UploadReport& report, const UploadFlags& options,
                  const AskedUpload& asked) {
  const std::string rate =
      report.bytes == 0 ? "" : fmt::format(" ({})", format_rate(report.bytes_per_second));
  fmt::print("{}, {} onto {} in {}{}, {} in {} order\n\n", counted(report.tensors, "tensor"),
             format_bytes(report.bytes), safe_display(report.device, 60), format_seconds(report.seconds),
             rate, asked.method, safe_display(asked.order, 60));
  Table table({"peak", "projected", "allocated", "error", "taken in all"},
              {kLeft, kRight, kRight, kRight, kRight});
  const auto row = [&](std::string name, std::uint64_t projected, std::uint64_t measured, std::string taken) {
    table.row({std::move(name), bytes_cell(projected), bytes_cell(measured),
               fmt::format("{:.1f} %", report::error_percent(projected, measured)), std::move(taken)});
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
    fmt::print("The driver counts {} more on the device; projected are {}, in whole blocks ({:+.1f} %).\n",
               format_bytes(*report.device_budget_peak), format_bytes(report.projected_device_budget),
               report::error_percent(report.projected_device_budget, *report.device_budget_peak));
  print_time(context, report, asked);
  if (report.verified)
    fmt::print("{}\n", *report.verified
                           ? fmt::format("Verified: every byte on the device equals the file{}.",
                                         asked.request.cast      ? ", cast where --cast says so"
                                         : asked.request.prepack ? ", packed by the host as --prepack says"
                                                                 : "")
                           : "DIFFERENT: " + report.mismatch);
  if (options.validation)
    fmt::print("The validation layer has {}.\n", counted(report.validation_messages.size(), "message"));
  for (const std::string& message : report.validation_messages) fmt::print("  {}\n", safe_display(message));
}

// The method of an upload that names none: where the device's memory is the system's, files are read to their
// place in it, unless an option needs a ring.
std::string_view method_for(const std::string& device, const LoadRequest& request, const LoadFlags& flags) {
  const Method& direct = find_method("direct");
  const std::array methods = {&direct};
  if (request.prepack || !unused_options(request, methods, flags.given()).empty()) return kRing;
  const std::vector<gpu::DeviceInfo> devices = gpu::list_devices();
  const auto chosen = gpu::choose_device(devices, device).chosen;
  return chosen && devices[*chosen].unified && devices[*chosen].mappable ? direct.id : kRing;
}

int upload(const Context& context, const UploadFlags& options, LoadFlags& flags) {
  LoadRequest request = flags.request();
  if (request.methods.empty()) request.methods = {std::string(method_for(options.device, request, flags))};
  const std::vector<const Method*> methods = find_methods(request.methods);
  const std::vector<std::string> orders = order_names(request.orders);
  if (methods.size() > 1 || orders.size() > 1)
    throw Error(ErrorCode::usage, "an upload takes one --method and one --order");
  check_order_choice(orders.front());
  flags.require_used(request, methods);
  const Method& method = *methods.front();
  const MetaGraphPtr graph = open_for(context, flags.path());
  require_sound(*graph, "upload");
  require_importable(*graph, method);
  const BoundRequest bound = bind_request(*graph, request, CliEnvironment(context, request).load);
  const Plan plan = make_plan(
      *graph, method, make_order(*graph, bound.orders.front(), method, bound.inputs, Progress(context.stop)),
      bound.inputs);

  Progress progress(context.stop);
  gpu::UploadReport report;
  {
    const ProgressLine line(context, "uploading", progress);
    report = gpu::upload(graph, plan,
                         {.device = options.device,
                          .reads = request.reads,
                          .verify = options.verify,
                          .validation = options.validation,
                          .placement = bound.inputs.placement,
                          .costs = bound.machine_costs(),
                          .queues = gpu::queue_rates(bound.rates)},
                         progress);
  }
  if (request.prepack) report.notes.push_back(prepacking_text(*graph, *request.prepack));
  const AskedUpload asked = {request, method.id, orders.front(), bound.machine_costs(), bound.rates};
  if (context.json)
    print_json(report_json(report, asked));
  else
    print_report(context, report, options, asked);
  if (!report.validation_messages.empty()) return kFailed;
  return report.verified == false ? kDifferent : kDone;
}

#else

int upload(const Context&, const UploadFlags&, LoadFlags&) {
  throw Error(ErrorCode::unsupported, "built without Vulkan: nothing can be uploaded");
}

#endif

}  // namespace

Action setup_upload(CLI::App& app) {
  auto options = std::make_shared<UploadFlags>();
  auto flags = std::make_shared<LoadFlags>(app, LoadUser::upload);
  app.get_option("--method")->default_str("by the device");
  app.option_defaults()->group("GPU");
  app.add_option("--device", options->device, "index or part of a name of a GPU; `devices` lists them")
      ->type_name("N|NAME")
      ->default_str("the best");
  app.add_flag("--verify", options->verify, "read the device back, compare every byte");
  app.add_flag("--validation", options->validation, "run under the Vulkan validation layer");
  return [options, flags](Context& context) { return upload(context, *options, *flags); };
}

}  // namespace loadline::cli
