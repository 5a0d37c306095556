// Reads importance matrices of llama.cpp.
#pragma once

#include "core/graph/packed/importance_file.h"
#include "core/io/source_file.h"

#include <memory>
#include <string>

namespace loadline {

// A GGUF file whose general.type is "imatrix", or the binary form that came before it. Throws Error naming
// the file and the byte or the entry; a weight that is negative or not finite is one.
ImportanceMatrix read_importance_matrix(const SourceFile& file);
// Throws as above, and Error{io}.
std::shared_ptr<const ImportanceFile> read_importance_file(const std::string& path);

}  // namespace loadline
