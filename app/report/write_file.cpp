// Writes through a temporary file.
#include "app/report/write_file.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"

#include <span>

namespace loadline::report {

void check_picture_path(const std::string& path, std::string_view extension) {
  if (path.empty() || path.ends_with(extension)) return;
  throw Error(ErrorCode::usage, "'{}' does not end in {}: other files are not written over",
              safe_display(path, 120), extension);
}

void write_file(const std::string& path, std::string_view text, bool replace) {
  AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.sync();
  file.rename_into_place(replace);
}

}  // namespace loadline::report
