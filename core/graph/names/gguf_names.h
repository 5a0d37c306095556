// The names of GGUF files that go with a model: projectors, draft models.
#pragma once

#include "core/graph/meta_graph.h"

#include <string_view>

namespace loadline {

// "mmproj" (projector of another modality), "mtp" (layers that predict further tokens) or "draft" (a small
// model that guesses ahead), as the name of a file says: "mmproj-model-f16.gguf", "model-mmproj.gguf". Empty
// for any other file: a model, or a part of one.
std::string_view gguf_role(std::string_view file_name);

// The same for a file of a set that was opened together: empty for the files of the model itself. The tensors
// of any other file begin with its role and a dot.
std::string_view set_role(const MetaGraph& graph, FileId file);

}  // namespace loadline
