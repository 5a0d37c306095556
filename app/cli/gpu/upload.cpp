// loadline upload: loads a model onto a GPU and compares the measured peaks with the projected ones.
#include "app/cli/base/command.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/rehearsal.h"
#include "core/base/error.h"

#ifdef LOADLINE_HAS_GPU
#include "app/cli/gpu/upload_view.h"
#include "core/base/text.h"
#include "core/gpu/measure_link.h"
#include "core/load/answer/projection.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"
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
  PictureFlags picture;
};

#ifdef LOADLINE_HAS_GPU

// The method of an upload that names none: where the device's memory is the system's, files are read to their
// place in it, unless an option needs a ring.
std::string_view method_for(const std::string& device, const LoadRequest& request, const LoadFlags& flags) {
  constexpr std::string_view kRing = "staged_ring";
  const Method& direct = find_method("direct");
  const std::array methods = {&direct};
  if (request.prepack || !unused_options(request, methods, flags.given()).empty()) return kRing;
  const std::vector<gpu::DeviceInfo> devices = gpu::list_devices();
  const auto chosen = gpu::choose_device(devices, device).chosen;
  return chosen && devices[*chosen].unified && devices[*chosen].mappable ? direct.id : kRing;
}

bool several(const BoundRequest& bound) { return bound.methods.size() * bound.orders.size() > 1; }

struct Uploads {
  report::MeasuredLoads loads;
  std::vector<FinishedUpload> finished;  // parallel to loads.rows
};

FinishedUpload upload_one(const Context& context, const UploadFlags& options, const MetaGraphPtr& graph,
                          const BoundRequest& bound, const Method& method, const OrderChoice& order,
                          report::MeasuredLoads& loads) {
  Progress progress(context.stop);
  require_importable(*graph, method);
  const Plan plan =
      make_plan(*graph, method, make_order(*graph, order, method, bound.inputs, progress), bound.inputs);
  FinishedUpload done = {.asked = {bound.request(), method, order.name, bound.machine_costs(), bound.rates},
                         .report = {}};
  const ProgressLine line(context, fmt::format("uploading by {}", method.id), progress);
  done.report = gpu::upload(graph, plan,
                            {.device = options.device,
                             .reads = bound.request().reads,
                             .verify = options.verify && !(several(bound) && method.traits.streams),
                             .validation = options.validation,
                             .placement = bound.inputs.placement,
                             .costs = bound.machine_costs(),
                             .queues = gpu::queue_rates(bound.rates)},
                            progress);
  if (options.verify && !done.report.verified)
    done.report.notes.push_back(
        fmt::format("{} leaves nothing on the device that could be verified.", method.id));
  if (const auto& prepack = bound.request().prepack)
    done.report.notes.push_back(prepacking_text(*graph, *prepack));
  loads.rows.push_back(measured_upload(done.asked, done.report, plan.steps.size()));
  return done;
}

// One after another: at once they would count each other's memory. Of several, one that cannot be done does
// not stop the others; throws the first refusal if all are refused.
Uploads upload_all(const Context& context, const UploadFlags& options, const MetaGraphPtr& graph,
                   const BoundRequest& bound) {
  Uploads uploads{{*graph, {}, {}, {}}, {}};
  std::optional<Error> refusal;
  for (const Method* const method : bound.methods)
    for (const OrderChoice& order : bound.orders) try {
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
  LoadRequest request = flags.request(context.quiet);
  const bool named = !request.methods.empty();
  if (!named) request.methods = {std::string(method_for(options.device, request, flags))};
  const std::vector<const Method*> methods = find_methods(request.methods);
  for (const std::string& name : order_names(request.orders)) check_order_choice(name);
  try {
    flags.require_used(request, methods);
  } catch (const Error& error) {
    if (named) throw;
    throw Error(error.code(), "{}; --method names one", error.what());
  }
  const MetaGraphPtr graph = open_for(context, flags.path());
  require_sound(*graph, "upload");
  const BoundRequest bound = bind_request(*graph, request, CliEnvironment(context, request).load);
  const Uploads uploads = upload_all(context, options, graph, bound);

  Context plain = context;
  plain.colour = false;
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
    fmt::print("{}", measured_plots(uploads.loads, {context.columns, context.colour, context.unicode}));
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
  auto flags = std::make_shared<LoadFlags>(app, LoadUser::upload);
  app.get_option("--method")->default_str("by the device");
  options->picture.add(app);
  app.option_defaults()->group("GPU");
  app.add_option("--device", options->device, "index or part of a name of a GPU; `devices` lists them")
      ->type_name("N|NAME")
      ->default_str("the best");
  app.add_flag("--verify", options->verify, "read the device back, compare every byte");
  app.add_flag("--validation", options->validation, "run under the Vulkan validation layer");
  return [options, flags](Context& context) { return upload(context, *options, *flags); };
}

}  // namespace loadline::cli
