// loadline upload: loads a model onto a GPU and compares the measured peaks with the projected ones.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/rehearsal.h"
#include "core/base/error.h"

#ifdef LOADLINE_HAS_GPU
#include "app/cli/base/rates.h"
#include "app/cli/base/terminal.h"
#include "app/report/markdown.h"
#include "app/report/measured_loads.h"
#include "core/base/text.h"
#include "core/gpu/measure_link.h"
#include "core/gpu/upload.h"
#include "core/load/answer/projection.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/rates.h"
#include "core/plan/plan.h"
#endif

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- What the command says of its loads: text, JSON, counters.

#ifdef LOADLINE_HAS_GPU

namespace {

using report::MeasuredLoad;
using report::MeasuredLoads;

// One load of a resolved request.
struct AskedUpload {
  const load::LoadRequest& request;
  const load::Method& method;
  std::string order;
  plan::CostModel costs = {};  // of the projected time
  std::optional<load::MeasuredRates> rates = {};
};

struct FinishedUpload {
  AskedUpload asked;
  gpu::UploadReport report;
};

Json peaks_json(const plan::Timeline& timeline) {
  Json json;
  for (const plan::Space space : plan::kSpaceOrder)
    json[std::string(plan::space_name(space))] = timeline.peaks[plan::index(space)].bytes;
  json["unified"] = timeline.unified.bytes;
  return json;
}

Json upload_json(const FinishedUpload& upload) {
  const AskedUpload& asked = upload.asked;
  const gpu::UploadReport& report = upload.report;
  Json json = {
      {"device", json_text(report.device)},
      {"method", asked.method.id},
      {"order", json_text(asked.order)},
      {"prepack", asked.request.prepack ? Json(load::prepacking_id(*asked.request.prepack)) : Json()},
      {"options", options_json(asked.request, load::LoadUser::upload)},
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
    for (const plan::Space space : plan::kSpaceOrder)
      measured["reserved"][std::string(plan::space_name(space))] =
          (*report.measured.reserved_peak)[plan::index(space)];
  for (const plan::Space space : plan::kSpaceOrder)
    json["error_percent"][std::string(plan::space_name(space))] = report::error_percent(
        report.projected.peaks[plan::index(space)].bytes, report.measured.peaks[plan::index(space)].bytes);
  json["error_percent"]["unified"] =
      report::error_percent(report.projected.unified.bytes, report.measured.unified.bytes);
  json["error_percent"]["rss_anon"] = report::error_percent(report.projected_rss_anon, report.rss_anon_peak);
  if (report.device_budget_peak) json["projected"]["device_budget"] = report.projected_device_budget;
  if (report.device_budget_peak)
    json["error_percent"]["device_budget"] =
        report::error_percent(report.projected_device_budget, *report.device_budget_peak);
  // packing takes a time that is not projected
  json["error_percent"]["seconds"] =
      report.packs ? Json() : Json(report::error_percent(report.expected_seconds, report.seconds));
  json["rates"] = rates_json(asked.costs, asked.rates);
  json["verified"] = report.verified ? Json(*report.verified) : Json();
  if (!report.mismatch.empty()) json["mismatch"] = report.mismatch;
  json["notes"] = json_texts(report.notes);
  json["validation_messages"] = json_texts(report.validation_messages);
  return json;
}

// Sentences on what the figures mean for this device and load.
std::string remarks_text(const gpu::UploadReport& report) {
  std::string text = "RssAnon is the private memory of the process, as the system counts it.";
  if (report.software_device)
    text += " A software device's memory is part of it, and is reserved when it is allocated, as on a GPU.";
  text += "\n";
  if (report.device_budget_peak)
    text += "\"device, driver\" is the driver's count; its projection counts whole blocks.\n";
  for (const std::string& note : report.notes) text += note + "\n";
  if (report.queue_families > 1)
    text += fmt::format("Copies went through family {} of the device's queues, which {}.\n",
                        report.queue.index, gpu::queue_family_words(report.queue));
  if (report.imported_bytes > 0)
    text += fmt::format("The device read {} of file pages in place.\n", format_bytes(report.imported_bytes));
  if (report.ring_bytes > 0)
    text += fmt::format(
        "{} of staging are the uploader's own buffer for copies from ordinary memory, outside the plan.\n",
        format_bytes(report.ring_bytes));
  return text;
}

// Says how long the load should have taken beside how long it took.
std::string time_text(const gpu::UploadReport& report, const AskedUpload& asked) {
  const report::UploadTime time = report::upload_time(report, asked.rates);
  return fmt::format("Time: {} {}\n", report::upload_time_text(time),
                     report::upload_rates_text(time, asked.rates, report.device));
}

std::string verified_text(const gpu::UploadReport& report, const load::LoadRequest& request) {
  if (!report.verified) return "";
  if (!*report.verified) return "DIFFERENT: " + report.mismatch + "\n";
  return fmt::format("Verified: every byte on the device equals the file{}.\n",
                     request.cast      ? ", after the cast of --cast"
                     : request.prepack ? ", packed on the host by --prepack"
                                       : "");
}

std::string messages_text(const gpu::UploadReport& report) {
  std::string text =
      fmt::format("The validation layer has {}.\n", counted(report.validation_messages.size(), "message"));
  for (const std::string& message : report.validation_messages)
    text += fmt::format("  {}\n", safe_display(message));
  return text;
}

std::string rate_text(const gpu::UploadReport& report) {
  return report.bytes == 0 ? "" : fmt::format(" ({})", format_rate(report.bytes_per_second));
}

// All that is known of one load. `validation`: it ran under the validation layer.
std::string upload_text(const Context& context, const FinishedUpload& upload, bool validation) {
  const AskedUpload& asked = upload.asked;
  const gpu::UploadReport& report = upload.report;
  Table table({"peak", "projected", "measured", "error"}, {kLeft, kRight, kRight, kRight});
  const auto row = [&](std::string name, std::uint64_t projected, std::uint64_t measured) {
    if (projected == 0 && measured == 0) return;
    table.row({std::move(name), bytes_cell(projected), bytes_cell(measured),
               projected == 0 ? "+" + format_bytes(measured)
                              : fmt::format("{:.1f} %", report::error_percent(projected, measured))});
  };
  // what the uploader took for the blocks, with rounding
  const plan::PerSpace<std::uint64_t> taken =
      report.measured.reserved_peak.value_or(plan::PerSpace<std::uint64_t>{});
  for (const plan::Space space : plan::kSpaceOrder) {
    const std::size_t at = plan::index(space);
    row(std::string(plan::space_title(space)),
        report.projected.peaks[at].bytes + (space == plan::Space::staging ? report.ring_bytes : 0),
        taken[at]);
  }
  if (report.device_budget_peak)
    row("device, driver", report.projected_device_budget, *report.device_budget_peak);
  row("RssAnon", report.projected_rss_anon, report.rss_anon_peak);

  std::string prose = remarks_text(report);
  prose += time_text(report, asked) + verified_text(report, asked.request);
  const std::string head =
      fmt::format("{}, {} onto {} in {}{}, {} in {} order\n\n", counted(report.tensors, "tensor"),
                  format_bytes(report.bytes), safe_display(report.device, 60), format_seconds(report.seconds),
                  rate_text(report), asked.method.id, safe_display(asked.order, 60));
  return head + table.text(context.color) + "\n" + report::reflowed(prose, context.prose_columns) +
         (validation ? messages_text(report) : "");
}

// The counters of a load: the system's, and the driver's or the uploader's own of the device. `steps`: of its
// plan.
MeasuredLoad measured_upload(const AskedUpload& asked, const gpu::UploadReport& report, std::size_t steps) {
  MeasuredLoad load;
  load.method = &asked.method;
  load.order = asked.order;
  load.seconds = report.seconds;
  load.samples = report.measured.measured.size();
  load.steps = steps;
  const auto add = [&](std::string_view name, std::string_view id, std::uint64_t projected, unsigned spaces,
                       const std::vector<report::StepCount>& counts) {
    load.counters.push_back(
        report::measured_counter(projected, report.projected_usage, spaces, counts, steps));
    load.counters.back().name = name;
    load.counters.back().id = id;
  };
  const auto sampled = [&](const auto& count_of) {
    std::vector<report::StepCount> counts;
    for (std::size_t i = 0; i < load.samples; ++i)
      counts.push_back({report.sample_steps[i], count_of(report.measured.measured[i])});
    return counts;
  };
  if (report.device_budget_peak) {
    add("device", "device_budget", report.projected_device_budget, report.device_heap_spaces,
        sampled([](const plan::MemorySample& sample) { return sample.device_counted; }));
  } else if (!report.software_device) {
    std::vector<report::StepCount> counts;
    for (const plan::UsagePoint& point : report.measured.usage)
      counts.push_back({point.step, point.bytes[plan::index(plan::Space::device)]});
    add("device", "device", report.projected.peaks[plan::index(plan::Space::device)].bytes,
        plan::space_bit(plan::Space::device), counts);
    load.counters.back().own_count = true;
  }
  add("RssAnon", "rss_anon", report.projected_rss_anon, report.anonymous_spaces,
      sampled([](const plan::MemorySample& sample) { return sample.memory.rss_anon; }));
  std::uint64_t most = 0;
  for (const plan::UsagePoint& point : report.projected_usage)
    most = std::max(most, plan::sum_over(point.bytes, report.mapped_spaces));
  add("RssFile", "rss_file", most, report.mapped_spaces,
      sampled([](const plan::MemorySample& sample) { return sample.memory.rss_file; }));
  return load;
}

// Several loads side by side. `uploads` are those of `loads.rows`.
std::string uploads_text(const Context& context, const MeasuredLoads& loads,
                         const std::vector<FinishedUpload>& uploads) {
  const std::uint64_t weights = graph::storage_bytes(loads.graph);
  std::string head =
      fmt::format("{}: {}, weights = {} ({}), {}\n\n", safe_display(graph::model_name(loads.graph), 80),
                  counted(loads.graph.tensors.size(), "tensor"), format_bytes(weights),
                  counted(weights, "byte"), safe_display(loads.how, 80));
  std::string text, messages;
  std::vector<std::string> notes;
  for (const FinishedUpload& upload : uploads) {
    const gpu::UploadReport& report = upload.report;
    const std::string verified = verified_text(report, upload.asked.request);
    text += fmt::format("{} ({}): {}{}.{}", upload.asked.method.id, safe_display(upload.asked.order, 40),
                        format_seconds(report.seconds), rate_text(report),
                        verified.empty() ? "\n" : " " + verified);
    for (const std::string& note : report.notes)
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    if (!report.validation_messages.empty()) messages += messages_text(report);
  }
  text += too_high_text(loads);
  text += refused_text(loads, "cannot be uploaded");
  for (const std::string& note : notes) text += note + "\n";
  const bool software = !uploads.empty() && uploads.front().report.software_device;
  text += fmt::format(
      "\nPeaks are measured from the state just before each load. RssAnon counts the private memory of the "
      "process.{} RssFile counts mapped pages.\n",
      software ? " A software device's memory is part of it." : "");
  text += measured_summary(loads.rows);
  return head + measured_table(loads, context.color) + "\n" + report::reflowed(text, context.prose_columns) +
         messages;
}

Json uploads_json(const MeasuredLoads& loads, const std::vector<FinishedUpload>& uploads) {
  Json json = {{"model", json_text(graph::model_name(loads.graph))},
               {"bytes", graph::storage_bytes(loads.graph)},
               {"uploads", Json::array()}};
  for (std::size_t i = 0; i < uploads.size(); ++i) {
    Json one = upload_json(uploads[i]);
    const std::optional<bool> agrees = loads.rows[i].agrees();
    one["agrees"] = agrees ? Json(*agrees) : Json();
    json["uploads"].push_back(std::move(one));
  }
  add_refused(json["uploads"], loads);
  return json;
}

}  // namespace

#endif

// --- loadline upload: which loads, one after another.

namespace {

struct UploadFlags {
  std::string device;
  bool verify = false;
  bool validation = false;
  PictureFlags picture;
};

#ifdef LOADLINE_HAS_GPU

// The method of an upload that names none: where the device's memory is the system's, files are read to their
// place in it, unless an option needs a ring.
std::string_view method_for(const std::string& device, const load::LoadRequest& request,
                            const LoadFlags& flags) {
  constexpr std::string_view kRing = "staged_ring";
  const load::Method& direct = load::find_method("direct");
  const std::array methods = {&direct};
  if (request.prepack || !load::unused_options(request, methods, flags.given()).empty()) return kRing;
  const std::vector<gpu::DeviceInfo> devices = gpu::list_devices();
  const auto chosen = gpu::choose_device(devices, device).chosen;
  return chosen && devices[*chosen].unified && devices[*chosen].mappable ? direct.id : kRing;
}

bool several(const load::BoundRequest& bound) { return bound.methods.size() * bound.orders.size() > 1; }

struct Uploads {
  report::MeasuredLoads loads;
  std::vector<FinishedUpload> finished;  // parallel to loads.rows
};

FinishedUpload upload_one(const Context& context, const UploadFlags& options,
                          const graph::MetaGraphPtr& graph, const load::BoundRequest& bound,
                          const load::Method& method, const load::OrderChoice& order,
                          report::MeasuredLoads& loads) {
  Progress progress(context.stop);
  if (method.traits.host_only)
    throw Error(ErrorCode::unsupported, "{} leaves all weights on the host: nothing is uploaded", method.id);
  require_importable(*graph, method);
  const plan::Plan plan =
      load::make_plan(*graph, method, load::make_order(*graph, order, method, bound, progress), bound);
  FinishedUpload done = {.asked = {bound.request, method, order.name, bound.machine_costs(), bound.rates},
                         .report = {}};
  const ProgressLine line(context, fmt::format("uploading by {}", method.id), progress);
  done.report = gpu::upload(graph, plan,
                            {.device = options.device,
                             .reads = bound.request.reads,
                             .verify = options.verify && !(several(bound) && method.traits.streams),
                             .validation = options.validation,
                             .placement = bound.placement,
                             .costs = bound.machine_costs(),
                             .queues = gpu::queue_rates(bound.rates)},
                            progress);
  if (options.verify && !done.report.verified)
    done.report.notes.push_back(
        fmt::format("{} leaves no weights on the device: there is nothing to verify.", method.id));
  if (const auto& prepack = bound.request.prepack)
    done.report.notes.push_back(load::prepacking_text(*graph, *prepack));
  loads.rows.push_back(measured_upload(done.asked, done.report, plan.steps.size()));
  return done;
}

// One after another: at once they would count each other's memory. Of several, one that cannot be done does
// not stop the others; throws the first refusal if all are refused.
Uploads upload_all(const Context& context, const UploadFlags& options, const graph::MetaGraphPtr& graph,
                   const load::BoundRequest& bound) {
  Uploads uploads{{*graph, {}, {}, {}}, {}};
  std::optional<Error> refusal;
  for (const load::Method* const method : bound.methods)
    for (const load::OrderChoice& order : bound.orders) try {
        uploads.finished.push_back(upload_one(context, options, graph, bound, *method, order, uploads.loads));
      } catch (const Error& error) {
        const bool of_this_load = error.code() == ErrorCode::unsupported ||
                                  error.code() == ErrorCode::limit || error.code() == ErrorCode::no_fit ||
                                  error.code() == ErrorCode::gpu;
        if (!several(bound) || !of_this_load) throw;
        if (!refusal) refusal = error;
        uploads.loads.refused.push_back({method, order.name, error.what()});
      }
  if (uploads.finished.empty()) throw *refusal;
  uploads.loads.how = "loaded onto " + uploads.finished.front().report.device;
  return uploads;
}

int upload(const Context& context, const UploadFlags& options, LoadFlags& flags) {
  options.picture.check();
  load::LoadRequest request = flags.request(context.quiet);
  const bool named = !request.methods.empty();
  if (!named) request.methods = {std::string(method_for(options.device, request, flags))};
  const std::vector<const load::Method*> methods = load::find_methods(request.methods);
  for (const std::string& name : load::order_names(request.orders)) load::check_order_choice(name);
  try {
    flags.require_used(request, methods);
  } catch (const Error& error) {
    if (named) throw;
    throw Error(error.code(), "{}; --method names one", error.what());
  }
  const graph::MetaGraphPtr graph = open_for(context, flags.path(), request);
  graph::require_sound(*graph, "upload");
  const load::BoundRequest bound = load::bind_request(*graph, request, CliEnvironment(context, request).load);
  const Uploads uploads = upload_all(context, options, graph, bound);

  Context plain = context;
  plain.color = false;
  const auto text_for = [&](const Context& how) {
    return several(bound) ? uploads_text(how, uploads.loads, uploads.finished)
                          : upload_text(how, uploads.finished.front(), options.validation);
  };
  options.picture.write(uploads.loads, text_for(plain));
  if (context.json)
    print_json(several(bound) ? uploads_json(uploads.loads, uploads.finished)
                              : upload_json(uploads.finished.front()));
  else
    fmt::print("{}", text_for(context));
  if (options.picture.curve)
    fmt::print("{}", measured_plots(uploads.loads, {context.columns, context.color, context.unicode}));
  int code = kDone;
  for (const FinishedUpload& one : uploads.finished) {
    if (one.report.verified == false) return kDifferent;
    if (!one.report.validation_messages.empty()) code = kFailed;
  }
  return code;
}

#else

int upload(const Context&, const UploadFlags&, LoadFlags&) {
  throw Error(ErrorCode::unsupported, "built without Vulkan: nothing can be uploaded");
}

#endif

}  // namespace

Action setup_upload(CLI::App& app) {
  auto options = std::make_shared<UploadFlags>();
  auto flags = std::make_shared<LoadFlags>(app, load::LoadUser::upload);
  set_default_text(app, "--method", "by the device");
  options->picture.add(app);
  begin_group(app, "GPU");
  add_text(app, "--device", options->device, "index or part of a name of a GPU; `devices` lists them",
           {.value_name = "N|NAME", .default_text = "the best"});
  add_flag(app, "--verify", options->verify, "read the device back, compare every byte");
  add_flag(app, "--validation", options->validation, "run under the Vulkan validation layer");
  return [options, flags](Context& context) { return upload(context, *options, *flags); };
}

}  // namespace loadline::cli
