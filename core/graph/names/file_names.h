// What the names of files tell: the endings of weight files, Hugging Face shards and indexes, the parts of a
// GGUF set, tensors as .npy files.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::graph {

// --- One table of the names of weight files (file_names.cpp), for all who open, list or copy a folder.

// The rank of a file among those of a folder that can be its model, 0 is opened first; files of one rank are
// equal. Nothing for a name that no importer reads.
std::optional<std::size_t> model_file_rank(std::string_view name);

// Whether a file of this name holds weights, training state or an index of them, as files of formats that
// nothing here reads do. No configuration does.
bool is_weight_file(std::string_view name);

// The endings of an importer's files, separated by spaces: ".pt .pth"; whole names without one:
// "config.json".
std::string file_endings(std::string_view importer);
bool has_ending_of(std::string_view path, std::string_view importer);

// --- The names that Hugging Face libraries give to weight files.

inline constexpr std::string_view kHfIndexSuffix = ".safetensors.index.json";
inline constexpr std::string_view kHfTorchIndexSuffix = ".bin.index.json";

// "model" of "model-00001-of-00003.safetensors", "pytorch_model" of "pytorch_model-00001-of-00003.bin";
// nothing for any other name.
std::optional<std::string_view> hf_shard_stem(std::string_view name);

// Whether `name` is the weight file, a shard or the index of the main model in a model folder.
bool is_hf_weight_file(std::string_view name);

// --- The names of GGUF files that go with a model: projectors, draft models.

// "mmproj" (projector of another modality), "mtp" (layers that predict further tokens) or "draft" (a small
// model that guesses ahead), as the name of a file says: "mmproj-model-f16.gguf", "model-mmproj.gguf". Empty
// for any other file: a model, or a part of one.
std::string_view gguf_role(std::string_view file_name);

// The same for a file of a set that was opened together: empty for the files of the model itself. The tensors
// of any other file begin with its role and a dot.
std::string_view set_role(const MetaGraph& graph, FileId file);

// --- Names of tensors as names of .npy files, and back.

inline constexpr std::string_view kNpyExtension = ".npy";

// The file name of an array. Bytes that file names cannot hold or that would lead out of a folder or hide the
// file become % and two hexadecimal digits: '/', '\\', ':', '%', control characters, a '.' at the beginning,
// and all bytes from 0x80 on unless the name is UTF-8. Nothing for names that no file can have: empty ones,
// and those that would take more than 255 bytes.
std::optional<std::string> npy_file_name(std::string_view tensor);

// The tensor's name: what npy_file_name() was given, or the file name without its extension if that function
// does not give this file name.
std::string npy_tensor_name(std::string_view file);

}  // namespace loadline::graph
