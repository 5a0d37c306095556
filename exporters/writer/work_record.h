// What a conversion writes, and from which files, so that another run can tell whether it may go on.
#pragma once

#include "exporters/exporter.h"
#include "exporters/writer/source_state.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct WorkFile {
  std::string target;  // relative to the output folder
  std::uint64_t bytes = 0;
  bool operator==(const WorkFile&) const = default;
};

struct WorkRecord {
  std::uint64_t identity = 0;   // runs with the same number write the same bytes
  std::vector<WorkFile> files;  // in the order in which they must appear
  std::vector<std::string>
      superseded;  // files of another model, relative: they go once the new ones are there
  std::vector<SourceState> sources;
  bool replaces = false;             // existing targets
  std::vector<std::string> removes;  // sources that go once the output is in place; empty if they stay
};

// The folder of a layout's targets: its output folder, or that of its one file.
std::string output_folder(const Layout& layout);

// The files that a layout's bytes come from, as they are now. Throws Error{io}.
std::vector<SourceState> layout_sources(const Layout& layout, const MetaGraph& source);
// Identifies the bytes that a layout writes.
WorkRecord work_record(const Layout& layout, std::vector<SourceState> sources);

std::string record_text(const WorkRecord& record);
// Throws Error{malformed}. `path` is used in messages.
WorkRecord parse_record(std::string_view text, const std::string& path);

}  // namespace loadline
