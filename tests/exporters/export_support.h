// Models that tests of exporters write, and how they write them.
#pragma once

#include "core/graph/meta_graph.h"
#include "exporters/convert.h"
#include "tests/support/builders.h"

#include <string>
#include <string_view>

namespace loadline::export_tests {

MetaGraphPtr open(const std::string& path);
// A model with only what GGUF can hold, and a config; in the folder "in".
MetaGraphPtr plain_model(const testing::TemporaryFolder& folder);
// By the output's name if `exporter` is null.
WriteReport convert(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options = {},
                    const WriteOptions& write = {}, const Exporter* exporter = nullptr);

// A model with every type of safetensors, in the folder "in".
MetaGraphPtr sample_model(const testing::TemporaryFolder& folder);

// The tensor's bytes as they are stored.
std::string tensor_content(const MetaGraphPtr& graph, const Tensor& tensor);
const Tensor& tensor_named(const MetaGraph& graph, const std::string& name);

// import(write(layout)) == layout.result, every tensor's bytes are what they were, and a second run writes
// the same files. Names are kept. `to`: an exporter's id; empty: by the output's name.
void expect_law(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& asked = {},
                std::string_view to = "");

}  // namespace loadline::export_tests
