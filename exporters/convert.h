// Converts a model: layout, readers and writer put together. What `convert` and the window call.
#pragma once

#include "core/base/progress.h"
#include "exporters/exporter.h"
#include "exporters/write_layout.h"

#include <string>
#include <string_view>

namespace loadline {

// Refuses models with notes of severity error and models without weights. Throws as the exporter
// and write_layout do.
WriteReport convert_model(const MetaGraphPtr& graph, const Exporter& exporter, const ExportOptions& options,
                          const std::string& out, const WriteOptions& write, Progress& progress);

enum class OutputKind { file, folder };
// A name for the converted model: its name with "-loadline" and, for a file, the exporter's extension.
// Of an "org/name" the name; of a name that ends like a file some exporter writes, what comes before.
std::string output_name(std::string_view model_name, const Exporter& exporter, OutputKind kind);

// Throws Error{usage} if `out` is the folder that the model's files lie in.
void refuse_own_folder(const MetaGraph& graph, const std::string& out);

// The exporter that `out` asks for by its extension; a path without one is a safetensors folder.
// Throws Error{usage} for an extension no exporter has.
const Exporter& exporter_for_output(const std::string& out);

}  // namespace loadline
