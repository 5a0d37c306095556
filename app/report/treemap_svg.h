// What is in a model, as a treemap for a page.
#pragma once

#include "core/graph/meta_graph.h"

#include <string>

namespace loadline::report {

// An SVG element of its own: area is bytes, colour is the role of a tensor, titles have what they take. A
// page defines the colours of the classes role0 to role5 (assets/report/treemap.css). Parts too small to see
// are drawn together, so the size is bounded for any model.
std::string treemap_svg(const MetaGraph& graph);
// The roles that the model has, with their bytes, as a legend.
std::string treemap_legend(const MetaGraph& graph);

}  // namespace loadline::report
