// What moves the bytes of models: conversions, uploads, and the room that they need.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/model/checks.h"
#include "core/gpu/upload.h"
#include "core/io/file_system.h"
#include "core/load/answer/projection.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace loadline::gui {

class Document;
struct Services;

// A finished upload beside the projection it was meant to match.
struct UploadResult {
  std::shared_ptr<const load::Projection> projection;
  gpu::UploadReport report;
  // No other job ran during the upload, so the system's counters for the process measure the upload alone.
  bool alone = true;
  std::optional<load::MeasuredRates> rates = {};  // of the projected time; absent: assumed ones
};

// A finished conversion.
struct Conversion {
  std::uint64_t document = 0;  // the id of the converted document
  exporters::WriteReport report;
  std::string out = {};  // the path that was asked for
};

// The disk that an output goes to, and whether something is there already.
struct OutputPlace : io::DiskSpace {
  bool exists = false;
};

// More than rounding to F16 or BF16 changes a number of ordinary size.
inline constexpr double kCastTolerance = 1.0 / 128;

// The output of a conversion compared with its source, weight by weight.
struct ConversionCheck {
  std::uint64_t document = 0;  // the id of the converted document
  bool numbers = false;        // types differ: numbers were compared, to within kCastTolerance
  std::uint64_t weights = 0, equal = 0, missing = 0;
  std::string first_difference = {};  // the name of a weight; empty if there is none
};

// One conversion and one upload at a time, whichever model they are of. Every function returns at once. Used
// from one thread.
class Transfers {
 public:
  // `uploaded` is called after each upload, which changes the free memory of devices.
  Transfers(Services& services, std::function<void()> uploaded)
      : services_(services), after_upload_(std::move(uploaded)) {}

  // Both throw Error if the model cannot be used that way. A later failure becomes a notice.
  void convert(const Document& document, const ConvertTask& task);
  void upload(const Document& document);
  // Compares the output of the last conversion, which was of this document, with its source.
  void check_conversion(const Document& document);
  // The last conversion of this document, and the last upload of its present projection; else null.
  std::shared_ptr<const Conversion> converted(const Document& document) const;
  std::shared_ptr<const ConversionCheck> checked(const Document& document) const;
  std::shared_ptr<const UploadResult> uploaded(const Document& document) const;
  // Whether something is being written.
  bool busy() const { return conversion.busy() || uploading.busy(); }
  // Measures the free space for a file at `path`.
  void measure_disk(const std::string& path);

  Latest<Conversion> conversion;
  Latest<ConversionCheck> checking;
  Latest<UploadResult> uploading;
  // Of the upload that runs, or ran last; null before the first.
  std::shared_ptr<const LiveUpload> live_upload;
  bool verify = true;        // the next upload is read back
  Latest<OutputPlace> disk;  // as last measured; null while it is unknown

 private:
  Services& services_;
  std::function<void()> after_upload_;
  std::string disk_path_;  // the path measured last
};

}  // namespace loadline::gui
