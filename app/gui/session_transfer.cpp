// The verbs that move bytes or ask the system: convert, upload, devices, browse.
#include "app/gui/session.h"
#include "core/base/text.h"
#include "core/io/process_memory.h"
#include "exporters/convert.h"

#include <fmt/format.h>

namespace loadline::gui {

void Session::convert(const ConvertRequest& request) {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  if (converting_) throw Error(ErrorCode::usage, "a conversion is under way");
  if (request.out.empty()) throw Error(ErrorCode::usage, "where should the new file go?");
  require_sound(*model_->graph, "convert");
  if (const std::string misfit = reading_misfit(*model_); !misfit.empty())
    throw Error(ErrorCode::unsupported, "cannot convert this model: " + misfit);
  const Exporter& exporter = find_exporter(request.exporter);
  converting_ = true;
  upload_alone_ = false;
  convert_report_.reset();
  const WriteOptions write = {.overwrite = request.overwrite, .verify = request.verify};
  jobs_.post(
      "Converting to " + std::string(exporter.id), "convert",
      [graph = model_->graph, &exporter, request, write](Progress& progress) {
        return convert_model(graph, exporter, request.options, request.out, write, progress);
      },
      [this, out = request.out, generation = generation_](Outcome<WriteReport> outcome) {
        converting_ = false;
        if (!disk_path_.empty()) measure_disk(disk_path_);
        if (!outcome.ok()) return fail("convert", outcome.error(), About::work);
        const WriteReport& report = outcome.value();
        notify(Severity::info,
               fmt::format("Wrote {}: {} in {}", safe_display(out), format_bytes(report.bytes_written),
                           format_seconds(report.seconds)));
        if (generation_ == generation) convert_report_ = report;  // else another model is shown now
      });
}

void Session::upload() {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  if (uploading_) throw Error(ErrorCode::usage, "an upload is under way");
  // an older projection may still be shown: what goes to the device is what was chosen last
  if (!projection_ || planning()) throw Error(ErrorCode::usage, "the load is still being projected");
  require_sound(*model_->graph, "upload");
  std::string misfit = mapping_misfit(*model_, *projection_);
  if (misfit.empty()) misfit = reading_misfit(*model_);
  if (!misfit.empty()) throw Error(ErrorCode::unsupported, "cannot upload this model: " + misfit);
  const gpu::UploadOptions options = {
      .device = device_, .verify = verify_upload_, .placement = choice_placement(*model_->graph, choice_)};
  uploading_ = true;
  upload_alone_ = jobs_.view().empty();
  jobs_.post(
      "Uploading", "upload",
      [graph = model_->graph, projection = projection_, options](Progress& progress) {
        return UploadResult{projection, gpu::upload(graph, projection->plan, options, progress), true};
      },
      [this](Outcome<UploadResult> outcome) {
        uploading_ = false;
        find_devices();
        if (!outcome.ok()) return fail("upload", outcome.error(), About::work);
        outcome.value().alone = upload_alone_;
        upload_result_ = std::make_shared<const UploadResult>(std::move(outcome.value()));
        const gpu::UploadReport& report = upload_result_->report;
        if (report.verified == false)
          notify(Severity::error, "The upload differs from the file: " + report.mismatch);
      });
}

void Session::find_devices() {
  if (finding_devices_) return;
  finding_devices_ = true;
  jobs_.post(
      "Looking for GPUs", "devices", [](Progress&) { return gpu::list_devices(); },
      [this](Outcome<std::vector<gpu::DeviceInfo>> outcome) {
        finding_devices_ = false;
        if (outcome.ok())
          devices_ = std::move(outcome.value());
        else
          fail("list the GPUs", outcome.error(), About::work);
        weigh_upload();
      });
}

void Session::set_device(std::string device) {
  device_ = std::move(device);
  weigh_upload();
}

void Session::weigh_upload() {
  misfit_.clear();
  if (!projection_) return;
  misfit_ = mapping_misfit(*model_, *projection_);
  if (!misfit_.empty()) return;
  const gpu::DeviceChoice choice = gpu::choose_device(devices_, device_);
  if (choice.chosen)
    misfit_ = gui::upload_misfit(projection_->timeline, devices_[*choice.chosen], available_system_memory());
}

void Session::measure_disk(const std::string& path) {
  const std::uint64_t number = ++measuring_;
  disk_path_ = path;
  jobs_.post(
      "Looking for room on the disk", "disk", [path](Progress&) { return disk_space(path); },
      [this, number](Outcome<std::optional<DiskSpace>> outcome) {
        if (measuring_ != number) return;
        disk_.reset();  // a folder that cannot be measured says so when it is written to
        if (outcome.ok()) disk_ = std::move(outcome.value());
      });
}

void Session::browse(const std::string& folder) {
  const std::uint64_t number = ++browse_count_;
  browsing_ = number;
  browse_error_.clear();
  jobs_.post(
      "Listing a folder", "browse", [folder](Progress&) { return list_folder(folder); },
      [this, number](Outcome<FolderListing> outcome) {
        if (browsing_ != number) return;
        browsing_ = 0;
        if (outcome.ok())
          folder_ = std::move(outcome.value());
        else
          browse_error_ = outcome.error().what();
      });
}

}  // namespace loadline::gui
