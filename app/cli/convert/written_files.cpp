// Names, sizes and hashes.
#include "app/cli/convert/written_files.h"

#include "core/base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

Json files_json(const WriteReport& report) {
  Json files = Json::array();
  for (const WrittenFile& file : report.files)
    files.push_back(
        {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"xxh3", fmt::format("{:016x}", file.xxh3)}});
  return files;
}

void print_files(const WriteReport& report) {
  for (const WrittenFile& file : report.files)
    fmt::print("{}  {}  xxh3 {:016x}\n", safe_display(file.path), format_bytes(file.bytes), file.xxh3);
}

}  // namespace loadline::cli
