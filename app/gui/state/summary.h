// Whether the load fits, what is wrong or not understood, and which options are set, in a few words. No
// ImGui.
#pragma once

#include "app/report/does_it_run.h"
#include "core/graph/meta_graph.h"
#include "core/load/request/load_options.h"

#include <string>
#include <vector>

namespace loadline::forward {
struct ModelClaims;  // core/forward/model/expected_tensors.h
}

namespace loadline::gui {

class Document;

// --- What makes a figure of the model less sure than it looks. It stands where the model is first seen.

struct Caveat {
  graph::Severity severity = graph::Severity::warning;  // error: the model is not whole
  std::string text = {};                                // escaped
  bool is_note = false;                                 // or stands for several notes of the graph
};
// Notes of errors, what is missing, settings that are not understood, and warnings: the gravest first, of
// many some and how many more. `claims` are null until they are known.
std::vector<Caveat> caveats_of(const graph::MetaGraph& graph, const forward::ModelClaims* claims);

// --- The verdict on the load, and the options that it is about.

using Verdict = report::RunVerdict;

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

// The options that differ from those of a new window and have no place of their own in the toolbar.
std::vector<const load::LoadOption*> changed_options(const Document& document);

}  // namespace loadline::gui
