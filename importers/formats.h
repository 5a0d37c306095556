// Every format's way in: the functions that the table of importers names, and what formats use of each other.
#pragma once

#include "importers/importer.h"

#include <string_view>

namespace loadline {

// ExecuTorch tensor files (.ptd).
Match sniff_ptd(std::string_view head, std::string_view path);
MetaGraph read_ptd(const Source& source);
MetaGraph read_ptd_file(const SourceFile& file);

// ExecuTorch programs (.pte): constants, initial values of mutable tensors, named data and delegates' blobs;
// external tensors from the .ptd of the same name beside it, or noted as missing.
Match sniff_pte(std::string_view head, std::string_view path);
MetaGraph read_pte(const Source& source);

// GGUF: from any part of a split set the whole set. A missing part is a Note of severity error.
Match sniff_gguf(std::string_view head, std::string_view path);
MetaGraph read_gguf(const Source& source);

// config.json alone: a model's shapes without its weights.
Match sniff_hf_config(std::string_view head, std::string_view path);
MetaGraph read_hf_config(const Source& source);
// The config.json beside the primary file becomes a metadata entry; one that is too large or not
// text becomes a Note.
void add_config(const Source& source, MetaGraph& graph);

// A sharded model through its index: all shards, opened in parallel. A missing shard, a tensor outside the
// index or a total that disagrees is a Note of severity error; contradictions and unsafe names are Errors.
Match sniff_hf_index(std::string_view head, std::string_view path);
MetaGraph read_hf_index(const Source& source);

// A single .safetensors file, with the config.json beside it as metadata.
Match sniff_safetensors(std::string_view head, std::string_view path);
MetaGraph read_safetensors(const Source& source);

// LiteRT (TensorFlow Lite): tensors with stored data, and the first subgraph's operators.
Match sniff_tflite(std::string_view head, std::string_view path);
MetaGraph read_tflite(const Source& source);

// numpy: one array, named as its file; an archive's, named as its members without ".npy".
Match sniff_npy(std::string_view head, std::string_view path);
MetaGraph read_npy(const Source& source);
Match sniff_npz(std::string_view head, std::string_view path);
MetaGraph read_npz(const Source& source);

// ONNX with its external data: tensors wherever the file has them (importers/onnx/names.h names them), the
// operators, and metadata.
Match sniff_onnx(std::string_view head, std::string_view path);
MetaGraph read_onnx(const Source& source);

// torch.save before 1.6: a stream of pickles, then raw storages. With the config.json beside it as metadata;
// of a file alone no siblings are looked at.
Match sniff_torch_legacy(std::string_view head, std::string_view path);
MetaGraph read_torch_legacy(const Source& source);
MetaGraph read_torch_legacy_file(const SourceFile& file);

// Zip archives of torch.save: .pt, .pth, .ckpt and pytorch_model.bin. Likewise.
Match sniff_torch_zip(std::string_view head, std::string_view path);
MetaGraph read_torch_zip(const Source& source);
MetaGraph read_torch_zip_file(const SourceFile& file);

// Archives of torch.export.save: weights and constants, never code.
Match sniff_pt2(std::string_view head, std::string_view path);
MetaGraph read_pt2(const Source& source);

}  // namespace loadline
