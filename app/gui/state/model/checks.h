// What is checked of a model's files, and of a conversion or an upload before it begins.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/model/model.h"
#include "core/forward/model/assets_loader.h"
#include "core/inspect/doctor.h"
#include "core/load/answer/projection.h"
#include "exporters/convert.h"
#include "exporters/preflight.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

struct Services;

// A conversion and its target path.
struct ConvertTask {
  exporters::ConvertRequest request = {};
  std::string out = {};
};

// What the new file would be if its weights had a type: a word of the option outtype, empty for as stored.
struct TypeOffer {
  std::string word = {};
  std::optional<std::uint64_t> bytes = {};  // of the output; nothing: the file cannot be written so
};

// For a job: files are read, and the order may take long to find.
exporters::Conversion bound_conversion(const Model& model, const ConvertTask& task,
                                       const forward::ForwardAssets& assets, const Progress& progress);

// Used from one thread. A null model has nothing to check.
class Checks {
 public:
  Checks(Services& services, ModelPtr model) : services_(services), model_(std::move(model)) {}

  // Searches the files for problems that slow down loading; the result is in `findings`. Throws Error{usage}
  // without a model.
  void diagnose();
  // Why the last diagnose() failed.
  std::string diagnosis_error() const;
  // Lays out a conversion without writing it, to see if the exporter can; the result is in `convert_fit`.
  void weigh_convert(const ConvertTask& task);
  // Lays a conversion out once for each of these types; the result is in `type_offers`.
  void weigh_types(const ConvertTask& task, const std::vector<std::string>& words);
  // Holds a load, or none, against the devices that are listed.
  void weigh_upload(const load::Projection* projection);
  // Why the chosen device would refuse the upload; empty if the upload fits, or while this is unknown.
  const std::string& upload_misfit() const { return upload_misfit_; }
  // The same for every device that is listed; empty while this is unknown.
  const std::vector<std::string>& device_misfits() const { return device_misfits_; }

  Latest<std::vector<inspect::Finding>> findings;
  // For the conversion last weighed: the parts of the model that the file would lose, in sentences. The error
  // says why the file cannot be written.
  Latest<exporters::Preflight> convert_fit;
  Latest<std::vector<TypeOffer>> type_offers;
  std::vector<Remedy> suggested;  // options that the convert panel takes over when next drawn

 private:
  Services& services_;
  ModelPtr model_;
  std::string upload_misfit_;
  std::vector<std::string> device_misfits_;
};

}  // namespace loadline::gui
