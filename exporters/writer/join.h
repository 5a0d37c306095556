// Ends an output whose parts are written.
#pragma once

#include "core/base/tasks.h"
#include "exporters/writer/write_layout.h"

#include <string>

namespace loadline {

// Verifies every part that was written in shares, or by a run whose last step was interrupted, and puts all
// in place, an index last. `out` is the output, or the folder of a single output file. The source is not
// needed. Throws Error{usage} if there is nothing to end, if a process still writes, or if a part is missing
// or incomplete, naming the first.
WriteReport join_parts(const std::string& out, bool overwrite, Progress& progress);

// Whether all parts of an output are written, and an interrupted run had begun to put them in place.
bool waits_for_last_step(const std::string& out);

}  // namespace loadline
