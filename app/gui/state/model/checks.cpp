// Problems of the files, a conversion that is laid out but not written, the room on devices.
#include "app/gui/state/model/checks.h"

#include "app/gui/state/base/services.h"
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "core/load/order/optimal_order.h"
#include "exporters/writer/forecast.h"
#include "importers/gguf/gguf.h"

#include <cstdint>
#include <optional>

namespace loadline::gui {

namespace {

exporters::ConvertEnvironment convert_environment(const Model& model, const forward::ForwardAssets& assets,
                                                  const Progress& progress) {
  return {
      .policies = assets.type_policies,
      .order = [&progress](const graph::MetaGraph& graph,
                           const std::string& name) { return load::written_order(graph, name, progress); },
      .importance = importers::read_importance_file,
      .share = {},
      .follow_links = model.follow_links};
}

}  // namespace

exporters::Conversion bound_conversion(const Model& model, const ConvertTask& task,
                                       const forward::ForwardAssets& assets, const Progress& progress) {
  return exporters::bind_conversion(model.graph, task.request, task.out,
                                    convert_environment(model, assets, progress));
}

void Checks::diagnose() {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  if (findings.busy()) return;
  findings.reset();
  findings.ask(
      services_.jobs, "Checking files", [model = model_, assets = services_.assets](Progress& progress) {
        const io::StorageReader reader(model->graph);
        const exporters::ConvertEnvironment environment = convert_environment(*model, *assets, progress);
        const auto can_convert = [&](const std::vector<Remedy>& settings) {
          return exporters::can_convert(model->graph, settings, environment);
        };
        return loadline::inspect::diagnose(reader, can_convert, progress);
      });
}

std::string Checks::diagnosis_error() const {
  return findings.was_canceled() ? "Stopped before it was done." : findings.error_text();
}

void Checks::weigh_convert(const ConvertTask& task) {
  convert_fit.reset();
  if (!model_ || !use_misfit(*model_).empty() || task.out.empty()) return;
  convert_fit.ask(services_.jobs, "Laying out the new file",
                  [model = model_, task, assets = services_.assets](Progress& progress) {
                    return exporters::preflight(bound_conversion(*model, task, *assets, progress));
                  });
}

void Checks::weigh_types(const ConvertTask& task, const std::vector<std::string>& words) {
  type_offers.reset();
  if (!model_ || !use_misfit(*model_).empty() || task.out.empty()) return;
  type_offers.ask(services_.jobs, "Sizes of the types",
                  [model = model_, task, words, assets = services_.assets](Progress& progress) {
                    std::vector<TypeOffer> offers;
                    for (const std::string& word : words) {
                      progress.check_canceled();
                      ConvertTask of = task;
                      of.request.outtype = word;
                      TypeOffer offer{word};
                      try {
                        const exporters::Conversion bound = bound_conversion(*model, of, *assets, progress);
                        offer.bytes = exporters::total_bytes(exporters::preflight(bound).layout);
                      } catch (const Error& refusal) {
                        if (refusal.code() == ErrorCode::canceled) throw;
                      }
                      offers.push_back(std::move(offer));
                    }
                    return offers;
                  });
}

void Checks::weigh_upload(const load::Projection* projection) {
  upload_misfit_.clear();
  device_misfits_.clear();
  if (projection == nullptr) return;
  upload_misfit_ = mapping_misfit(*model_, *projection);
  if (!upload_misfit_.empty() || !services_.devices.value()) return;
  const std::vector<gpu::DeviceInfo>& devices = *services_.devices.value();
  const std::optional<std::uint64_t> system = io::available_system_memory();
  for (const gpu::DeviceInfo& device : devices)
    device_misfits_.push_back(gui::upload_misfit(*projection, *model_->graph, device, system));
  const gpu::DeviceChoice choice = gpu::choose_device(devices, services_.device);
  if (choice.chosen) upload_misfit_ = device_misfits_[*choice.chosen];
}

}  // namespace loadline::gui
