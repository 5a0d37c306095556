// How written files are shown, for the commands that write models.
#pragma once

#include "app/cli/base/command.h"
#include "exporters/writer/write_layout.h"

namespace loadline::cli {

// A list of {path, bytes, xxh3}.
Json files_json(const WriteReport& report);
// A line each: name, size, hash.
void print_files(const WriteReport& report);

}  // namespace loadline::cli
