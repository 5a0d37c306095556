// The runs of real frameworks as a Markdown table.
#pragma once

#include "core/load/measure/evidence.h"

#include <string>

namespace loadline::report {

// A section per framework and version, a line per run: recipe, checkpoint, method, then projected and
// measured MiB of host, mapped pages and device, and the verdict.
std::string truth_table(const Truth& truth);
// The six runs that the README shows, as a Markdown table of its own.
std::string truth_summary(const Truth& truth);

}  // namespace loadline::report
