// Converts a model, for every front end: makes the layout, reads the source and writes the output.
#pragma once

#include "core/base/tasks.h"
#include "exporters/exporter.h"
#include "exporters/writer/write_layout.h"

#include <string>
#include <string_view>

namespace loadline {

// preflight() and write_model(). Throws an Error for a model without weights or with a note of severity
// error, and as the exporter's layout and write_layout do.
WriteReport convert_model(const MetaGraphPtr& graph, const Exporter& exporter, const ExportOptions& options,
                          const std::string& out, const WriteOptions& write, Progress& progress);

// Writes what preflight() laid out.
WriteReport write_model(const MetaGraphPtr& graph, const Layout& layout, const WriteOptions& write,
                        Progress& progress);

// A name for the converted model: the model's name, "-loadline" and, for a file, the exporter's extension.
// "org/name" counts as "name". A file extension that some exporter writes is removed first.
std::string output_name(std::string_view model_name, const Exporter& exporter, OutputKind kind);

// Throws Error{usage} if `out` is the folder that the model's files lie in.
void refuse_own_folder(const MetaGraph& graph, const std::string& out);

// The exporter for the extension of `out`; a path without an extension is a safetensors folder. Throws
// Error{usage} for an extension that no exporter has.
const Exporter& exporter_for_output(const std::string& out);

}  // namespace loadline
