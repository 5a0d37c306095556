// Reads the header of one .safetensors file.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"
#include "core/io/source_file.h"

namespace loadline {

// One file's tensors, its __metadata__ and its notes; no siblings are looked at. `names`, where asked for,
// gets the tensors' positions.
MetaGraph read_safetensors_file(const SourceFile& file, NameIndex* names = nullptr);

}  // namespace loadline
