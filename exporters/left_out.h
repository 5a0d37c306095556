// Lists the information of a model that its conversion loses.
#pragma once

#include "exporters/exporter.h"

#include <string>
#include <vector>

namespace loadline {

// Sentences for a person, without a full stop, names escaped; empty if nothing is lost. They report tied
// tensors written under one name only, metadata that the format cannot hold, integers whose scale lies
// outside the tensor, and tensors that cannot be cast to `options.outtype`. `held_keys`: metadata that the
// output has in another form.
std::vector<std::string> left_out(const MetaGraph& graph, const Exporter& exporter,
                                  const ExportOptions& options,
                                  const std::vector<std::string>& held_keys = {});

}  // namespace loadline
