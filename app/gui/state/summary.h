// Whether the load fits, in a few words, and which options are set. No ImGui.
#pragma once

#include "app/report/does_it_run.h"
#include "core/load/request/load_options.h"

#include <vector>

namespace loadline::gui {

class Document;

using Verdict = report::RunVerdict;

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

// The options that differ from those of a new window and have no place of their own in the toolbar.
std::vector<const load::LoadOption*> changed_options(const Document& document);

}  // namespace loadline::gui
