// Files beside the weights: which are copied, and what config.json says after a conversion.
#pragma once

#include "core/forward/family/model_config.h"
#include "core/graph/dtype_and_shape.h"
#include "exporters/exporter.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline::exporters {

// --- The files of a model folder beside its weights: tokenizer, templates, code, descriptions.

struct FolderFile {
  std::string name;  // relative to the folder, with '/'
  std::string path;
  std::uint64_t bytes = 0;
};

struct FolderFiles {
  std::vector<FolderFile> files;      // by name
  std::vector<std::string> left_out;  // names: other weights, training state, links out of the folder
  std::vector<std::string> replaced;  // names: those of the tokenizer's folder
};

// Lists the folder that a model's files lie in, and its sub-folders. config.json, the model's own weights and
// indexes, hidden files and Python's caches count as neither. Nothing for a model without a config.json: its
// folder is any folder. Links out of the folder are left out, unless they are to be followed. The tokenizer's
// files of another folder stand for those of the same names. Throws Error{limit} for more than 10,000
// entries.
FolderFiles folder_files(const graph::MetaGraph& graph, bool follow_links,
                         const std::string& tokenizer_folder = {});

// Takes those files out that describe packed weights, for an output without any. Their names.
std::vector<std::string> remove_packing_files(std::vector<FolderFile>& files);

// Adds copies of the files, or other names for them, to a layout that writes a folder, before all others.
void add_folder_files(Layout& layout, const std::vector<FolderFile>& files, bool link);

// --- Makes a config.json say what the weights beside it have become.

// What says in a config.json how weights are packed.
inline constexpr std::array<const char*, 3> kPackings = {"quantization_config", "quantization",
                                                         "compression_config"};

// `text` with every "dtype" and "torch_dtype" of the model and of its parts (text_config, ...) set to
// `outtype`; one is added if there is none. With `unpacked`, what kPackings names is removed. The order of
// keys stays. A text that is no JSON object is returned as it is.
std::string cast_config(const std::string& text, graph::DType outtype, bool unpacked);

// --- How a sentence-transformers folder turns the vectors of tokens into one of the text.

// llama.cpp's number for it: 1 the mean, 2 the first token, 3 the last one. `modules.json` names a module
// whose folder holds a config.json; the names of the files that were read are added to `files_read`. Nothing
// without such a module. Throws Error{unsupported} for a way that llama.cpp does not have, and
// Error{malformed} for files that are no JSON.
std::optional<std::uint32_t> pooling_type(const std::vector<FolderFile>& files,
                                          std::vector<std::string>& files_read);
// The modules behind the pooling that llama.cpp does not have, by their folders: "2_Dense" is "...Dense". Of
// the pooling, that it leaves prompts out.
std::vector<forward::Setting> further_modules(const std::vector<FolderFile>& files);

}  // namespace loadline::exporters
