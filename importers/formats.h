// The sniff and read functions of every format, for the table of importers, and a few readers that formats
// share.
#pragma once

#include "core/graph/name.h"
#include "importers/importer.h"

#include <string_view>

namespace loadline::importers {

// ExecuTorch tensor files (.ptd).
Match sniff_ptd(std::string_view head, std::string_view path);
graph::MetaGraph read_ptd(const Source& source);
graph::MetaGraph read_ptd_file(const io::SourceFile& file);

// ExecuTorch programs (.pte): constants, initial values of mutable tensors, named data and delegates' blobs.
// External tensors come from the .ptd of the same name beside the program; without it a Note names them as
// missing.
Match sniff_pte(std::string_view head, std::string_view path);
graph::MetaGraph read_pte(const Source& source);

// GGUF. Any part of a split set opens the whole set. A missing part is a Note of severity error.
Match sniff_gguf(std::string_view head, std::string_view path);
graph::MetaGraph read_gguf(const Source& source);

// config.json alone: a model's shapes without its weights.
Match sniff_hf_config(std::string_view head, std::string_view path);
graph::MetaGraph read_hf_config(const Source& source);
// Adds the config.json beside the primary file as a metadata entry. If it is too large or not text, adds a
// Note instead.
void add_config(const Source& source, graph::MetaGraph& graph);

// A sharded model through its index: all shards, opened in parallel. A missing shard, a tensor outside the
// index or a total that disagrees is a Note of severity error; contradictions and unsafe names are Errors.
Match sniff_hf_index(std::string_view head, std::string_view path);
graph::MetaGraph read_hf_index(const Source& source);

// A single .safetensors file, with the config.json beside it as metadata.
Match sniff_safetensors(std::string_view head, std::string_view path);
graph::MetaGraph read_safetensors(const Source& source);
// Tensors, __metadata__ and notes of one file. Opens no siblings.
graph::MetaGraph read_safetensors_file(const io::SourceFile& file);
// Gives back the memory that it keeps for the next file.
void forget_safetensors_memory();

// LiteRT (TensorFlow Lite): the tensors with stored data, and the operators of the first subgraph.
Match sniff_tflite(std::string_view head, std::string_view path);
graph::MetaGraph read_tflite(const Source& source);

// numpy: .npy holds one array, named after the file (core/graph/names/file_names.h), and a folder of them is
// a model; .npz holds arrays named after its members without ".npy".
Match sniff_npy(std::string_view head, std::string_view path);
graph::MetaGraph read_npy(const Source& source);
Match sniff_npz(std::string_view head, std::string_view path);
graph::MetaGraph read_npz(const Source& source);

// ONNX with its external data: tensors from every place in the file (named by importers/onnx/onnx.h),
// operators and metadata.
Match sniff_onnx(std::string_view head, std::string_view path);
graph::MetaGraph read_onnx(const Source& source);

// torch.save before torch 1.6: a stream of pickles, then raw storages. read_torch_legacy() also adds the
// config.json beside the file as metadata; read_torch_legacy_file() opens no siblings.
Match sniff_torch_legacy(std::string_view head, std::string_view path);
graph::MetaGraph read_torch_legacy(const Source& source);
graph::MetaGraph read_torch_legacy_file(const io::SourceFile& file);

// Zip archives of torch.save: .pt, .pth, .ckpt and pytorch_model.bin. Siblings as for legacy files.
Match sniff_torch_zip(std::string_view head, std::string_view path);
graph::MetaGraph read_torch_zip(const Source& source);
graph::MetaGraph read_torch_zip_file(const io::SourceFile& file);

// Archives of torch.export.save: weights and constants are read, code never is.
Match sniff_pt2(std::string_view head, std::string_view path);
graph::MetaGraph read_pt2(const Source& source);

}  // namespace loadline::importers
