// What a converted model does not hold of its source.
#pragma once

#include "exporters/exporter.h"

#include <string>
#include <vector>

namespace loadline {

// Sentences for a person, without a full stop, names escaped; none where nothing is lost: ties written under
// one name, metadata that the format has no place for, integers whose scale lies outside the tensor, and
// tensors that `options.outtype` cannot change.
std::vector<std::string> left_out(const MetaGraph& graph, const Exporter& exporter,
                                  const ExportOptions& options);

}  // namespace loadline
