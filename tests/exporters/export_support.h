// Models that tests of exporters write, and how they write them.
#pragma once

#include "core/graph/meta_graph.h"
#include "exporters/convert.h"
#include "tests/support/builders.h"

#include <string>
#include <string_view>

namespace loadline::export_tests {

graph::MetaGraphPtr open(const std::string& path);
// A model with only what GGUF can hold, and a config; in the folder "in".
graph::MetaGraphPtr plain_model(const testing::TemporaryFolder& folder);
// By the output's name if `exporter` is null.
exporters::WriteReport convert(const graph::MetaGraphPtr& graph, const std::string& out,
                               const exporters::ExportOptions& options = {},
                               const exporters::WriteOptions& write = {},
                               const exporters::Exporter* exporter = nullptr);

// A model with every type of safetensors, in the folder "in".
graph::MetaGraphPtr sample_model(const testing::TemporaryFolder& folder);

// The tensor's bytes as they are stored.
std::string tensor_content(const graph::MetaGraphPtr& graph, const graph::Tensor& tensor);
const graph::Tensor& tensor_named(const graph::MetaGraph& graph, const std::string& name);

// import(write(layout)) == layout.result, every tensor's bytes are what they were, and a second run writes
// the same files. Names are kept. `to`: an exporter's id; empty: by the output's name.
void expect_law(const graph::MetaGraphPtr& graph, const std::string& out,
                const exporters::ExportOptions& asked = {}, std::string_view to = "");

}  // namespace loadline::export_tests
