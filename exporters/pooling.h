// How a sentence-transformers folder turns the vectors of tokens into one of the text.
#pragma once

#include "exporters/model_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// llama.cpp's number for it: 1 the mean, 2 the first token, 3 the last one. `modules.json` names a module
// whose folder holds a config.json; the names of the files that were read are added to `files_read`. Nothing
// without such a module. Throws Error{unsupported} for a way that llama.cpp does not have, and
// Error{malformed} for files that are no JSON.
std::optional<std::uint32_t> pooling_type(const std::vector<FolderFile>& files,
                                          std::vector<std::string>& files_read);

}  // namespace loadline
