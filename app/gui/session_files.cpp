// The verbs that look into the files of the model shown: its metadata, what loading it costs.
#include "app/gui/session.h"
#include "exporters/left_out.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace loadline::gui {

void Session::forget_files() {
  for (const std::string_view tag : {"doctor", "elements", "array search", "weigh convert"})
    jobs_.cancel_tagged(tag);
  look_at(std::nullopt);
  findings_.reset();
  diagnosis_error_.clear();
  diagnosing_ = 0;
  convert_misfit_.clear();
  convert_losses_.clear();
  ++weighing_;
  metadata_search.clear();
  operator_search.clear();
  operator_shown.reset();
  wants_convert.reset();
}

void Session::look_at(std::optional<std::size_t> entry) {
  if (array_) array_->stop_search();
  array_.reset();
  entry_.reset();
  wants_element.reset();
  ++looks_;
  if (!model_ || !entry || *entry >= model_->graph->metadata.size()) return;
  entry_ = entry;
  if (std::holds_alternative<MetaArray>(model_->graph->metadata[*entry].value))
    array_ = std::make_shared<ArrayView>(jobs_, model_->graph, *entry);
}

void Session::diagnose() {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  if (diagnosing()) return;
  const std::uint64_t number = ++diagnosis_count_;
  diagnosing_ = number;
  upload_alone_ = false;
  findings_.reset();
  diagnosis_error_.clear();
  diagnosis_job_ = jobs_.post(
      "Looking into the files", "doctor",
      [graph = model_->graph](Progress& progress) {
        const StorageReader reader(graph);
        return loadline::diagnose(reader, progress);
      },
      [this, number](Outcome<std::vector<Finding>> outcome) {
        if (diagnosing_ != number) return;  // of a model that is gone
        diagnosing_ = 0;
        if (outcome.ok())
          findings_ = std::move(outcome.value());
        else if (outcome.error().code() == ErrorCode::cancelled)
          diagnosis_error_ = "Stopped before it was done.";
        else
          diagnosis_error_ = outcome.error().what();
      });
}

std::optional<JobView> Session::diagnosis() const {
  if (!diagnosing()) return std::nullopt;
  const std::vector<JobView> jobs = jobs_.view();
  const auto job =
      std::find_if(jobs.begin(), jobs.end(), [&](const JobView& view) { return view.id == diagnosis_job_; });
  return job == jobs.end() ? std::nullopt : std::optional(*job);
}

void Session::weigh_convert(const ConvertRequest& request) {
  const std::uint64_t number = ++weighing_;
  convert_misfit_.clear();
  convert_losses_.clear();
  if (!model_ || !use_misfit(*model_).empty() || request.out.empty()) return;
  const Exporter& exporter = find_exporter(request.exporter);
  upload_alone_ = false;
  jobs_.post(
      "Laying out the new file", "weigh convert",
      [graph = model_->graph, &exporter, request](Progress&) {
        try {
          exporter.layout(*graph, request.options, request.out);
        } catch (const Error& error) {
          return std::pair(std::string(error.what()), std::vector<std::string>());
        }
        return std::pair(std::string(), left_out(*graph, exporter, request.options));
      },
      [this, number](Outcome<std::pair<std::string, std::vector<std::string>>> outcome) {
        if (weighing_ != number) return;
        if (outcome.ok())
          std::tie(convert_misfit_, convert_losses_) = std::move(outcome.value());
        else
          convert_misfit_ = outcome.error().what();
      });
}

}  // namespace loadline::gui
