// Reads importance matrices of llama.cpp.
#pragma once

#include "core/graph/importance.h"
#include "core/io/source_file.h"

namespace loadline {

// A GGUF file whose general.type is "imatrix", or the binary form that came before it. Throws Error naming
// the file and the byte or the entry; a weight that is negative or not finite is one.
ImportanceMatrix read_importance_matrix(const SourceFile& file);

}  // namespace loadline
