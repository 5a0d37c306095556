// Conversions and uploads as jobs, and what they leave behind.
#include "app/gui/state/transfers.h"

#include "app/gui/state/document.h"
#include "app/report/match_models.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/measure_link.h"
#include "core/inspect/compare_models.h"
#include "exporters/convert.h"
#include "importers/resolve.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

namespace {

// Byte for byte where the types are the same, else as numbers.
ConversionCheck compare_with_source(const graph::MetaGraphPtr& source, const graph::MetaGraphPtr& result,
                                    std::uint64_t id, Progress& progress) {
  ConversionCheck check{.document = id};
  inspect::Matching matching = report::match_models(*source, *result).match;
  check.numbers = std::ranges::any_of(matching.pairs, [&](const inspect::WeightPair& pair) {
    return inspect::weight_type(*source, matching.a[pair.a]) !=
           inspect::weight_type(*result, matching.b[pair.b]);
  });
  inspect::CompareOptions options;
  if (check.numbers) options.tolerance = inspect::Tolerance{kCastTolerance, kCastTolerance};
  const inspect::Comparison compared =
      inspect::compare_models(source, result, std::move(matching), options, progress);
  check.weights = compared.match.a.size();
  check.equal = compared.count(inspect::PairState::equal);
  check.missing = compared.match.only_a.size();
  for (std::size_t i = 0; i < compared.results.size() && check.first_difference.empty(); ++i)
    if (compared.results[i].state != inspect::PairState::equal)
      check.first_difference = compared.match.a[compared.match.pairs[i].a].name;
  return check;
}

}  // namespace

void Transfers::convert(const Document& document, const ConvertTask& task) {
  const ModelPtr& model = document.model;
  if (!model) throw Error(ErrorCode::usage, "no model is open");
  if (conversion.busy()) throw Error(ErrorCode::usage, "a conversion is under way");
  graph::require_sound(*model->graph, "convert");
  if (const std::string misfit = reading_misfit(*model); !misfit.empty())
    throw Error(ErrorCode::unsupported, "cannot convert this model: " + misfit);
  const exporters::Exporter& exporter = exporters::checked_exporter(task.request, task.out);
  conversion.reset();
  checking.reset();
  conversion.ask(
      services_.jobs, "Converting to " + std::string(exporter.id),
      [model = model, task, id = document.id, assets = services_.assets](Progress& progress) {
        return Conversion{
            id, exporters::convert_model(bound_conversion(*model, task, *assets, progress), progress),
            task.out};
      },
      [this, out = task.out, id = document.id] {
        if (!disk_path_.empty()) measure_disk(disk_path_);
        if (conversion.error() != nullptr) {
          services_.done = "Not converted";
          services_.notices.fail("convert", *conversion.error(), id);
          return;
        }
        const exporters::WriteReport& report = conversion.value()->report;
        services_.done = fmt::format("Wrote {}: {} in {}", safe_display(out),
                                     format_bytes(report.bytes_written), format_seconds(report.seconds));
        if (const std::string faults = exporters::faults_text(report); !faults.empty())
          services_.notices.add(graph::Severity::warning, faults, id);
        services_.requests.add(CallAttention{});
      });
}

std::shared_ptr<const Conversion> Transfers::converted(const Document& document) const {
  const auto& last = conversion.value();
  return last && last->document == document.id ? last : nullptr;
}

void Transfers::check_conversion(const Document& document) {
  const auto last = converted(document);
  if (!last || last->report.files.empty()) throw Error(ErrorCode::usage, "no file has been converted");
  checking.ask(
      services_.jobs, "Comparing",
      [source = document.model->graph, out = last->out, id = last->document](Progress& progress) {
        const auto result = std::make_shared<const graph::MetaGraph>(importers::open_model(out, {}));
        return compare_with_source(source, result, id, progress);
      },
      [this] {
        if (checking.error() != nullptr) services_.notices.fail("compare", *checking.error());
      });
}

std::shared_ptr<const ConversionCheck> Transfers::checked(const Document& document) const {
  const auto& last = checking.value();
  return last && last->document == document.id ? last : nullptr;
}

void Transfers::upload(const Document& shown) {
  if (!shown.model) throw Error(ErrorCode::usage, "no model is open");
  if (uploading.busy()) throw Error(ErrorCode::usage, "an upload is under way");
  // an older projection may still be shown, but the upload must use the options chosen last
  if (!shown.load.projection.value() || shown.load.projection.busy())
    throw Error(ErrorCode::usage, "the load is still being projected");
  graph::require_sound(*shown.model->graph, "upload");
  std::string misfit = mapping_misfit(*shown.model, *shown.load.projection.value());
  if (misfit.empty()) misfit = reading_misfit(*shown.model);
  if (!misfit.empty()) throw Error(ErrorCode::unsupported, "cannot upload this model: " + misfit);
  const load::BoundRequest bound = shown.load.bound();
  gpu::UploadOptions options = {.device = services_.device,
                                .reads = bound.request.reads,
                                .verify = verify,
                                .placement = bound.placement,
                                .costs = bound.machine_costs(),
                                .queues = gpu::queue_rates(bound.rates)};
  const auto live = std::make_shared<LiveUpload>(shown.load.projection.value());
  live_upload = live;
  const bool idle = services_.jobs.view().empty();
  uploading.ask(
      services_.jobs, "Uploading",
      [graph = shown.model->graph, live, options, rates = bound.rates, idle,
       &jobs = std::as_const(services_.jobs),
       mine = services_.jobs.posted() + 1](Progress& progress) mutable {
        options.sampled = [&](const plan::MemorySample& sample, std::size_t step) {
          live->add(sample, step);
        };
        UploadResult result{live->projection(),
                            gpu::upload(graph, live->projection()->plan, options, progress)};
        result.alone = idle && jobs.posted() == mine;
        result.rates = std::move(rates);
        return result;
      },
      [this] {
        after_upload_();
        if (uploading.error() != nullptr) {
          services_.notices.fail("upload", *uploading.error());
          return;
        }
        const gpu::UploadReport& report = uploading.value()->report;
        services_.done =
            fmt::format("Uploaded {} in {}", format_bytes(report.bytes), format_seconds(report.seconds));
        services_.requests.add(CallAttention{});
        if (report.verified == false)
          services_.notices.add(graph::Severity::error,
                                "The upload differs from the file: " + report.mismatch);
      });
}

std::shared_ptr<const UploadResult> Transfers::uploaded(const Document& document) const {
  const auto& last = uploading.value();
  return last && last->projection == document.load.projection.value() ? last : nullptr;
}

void Transfers::measure_disk(const std::string& path) {
  disk_path_ = path;
  disk.ask(
      services_.jobs, "Checking free disk space",
      [path](Progress&) {
        const std::optional<io::DiskSpace> space = io::disk_space(path);
        std::error_code ignored;
        const bool exists = !path.empty() && std::filesystem::exists(path, ignored);
        return space ? std::make_shared<const OutputPlace>(OutputPlace{*space, exists}) : nullptr;
      },
      [this] {
        if (disk.error() != nullptr) disk.drop();  // the folder says so when it is written to
      });
}

}  // namespace loadline::gui
