// A MetaGraph as JSON: what golden tests compare and tools can diff.
#pragma once

#include "core/graph/meta_graph.h"

#include <string>

namespace loadline::tests {

// Every field, in a fixed order, pretty-printed; file paths as their last component, so that the
// text does not depend on where the model lies. Names that are not UTF-8 are escaped.
std::string graph_json(const graph::MetaGraph& graph);

}  // namespace loadline::tests
