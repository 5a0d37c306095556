// Whether the load fits, in a few words. No ImGui.
#pragma once

#include "app/report/does_it_run.h"

namespace loadline::gui {

class Document;

using Verdict = report::RunVerdict;

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

}  // namespace loadline::gui
