// Models that tests of exporters write, and how they write them.
#pragma once

#include "core/graph/meta_graph.h"
#include "exporters/convert.h"
#include "tests/support/builders.h"

#include <string>

namespace loadline::export_tests {

MetaGraphPtr open(const std::string& path);
// A model with only what GGUF can hold, and a config; in the folder "in".
MetaGraphPtr plain_model(const testing::TemporaryFolder& folder);
// By the output's name if `exporter` is null.
WriteReport convert(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options = {},
                    const WriteOptions& write = {}, const Exporter* exporter = nullptr);

}  // namespace loadline::export_tests
