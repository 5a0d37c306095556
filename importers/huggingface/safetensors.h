// Reads the header of one .safetensors file.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"
#include "core/io/source_file.h"

namespace loadline {

// Tensors, __metadata__ and notes of one file. Opens no siblings. `names`, if not null, receives an index
// from tensor name to position.
MetaGraph read_safetensors_file(const SourceFile& file, NameIndex* names = nullptr);

}  // namespace loadline
