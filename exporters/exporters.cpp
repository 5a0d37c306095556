// The table of exporters.
#include "core/base/lookup.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats_2.h"
#include "exporters/gguf/gguf.h"

#include <algorithm>
#include <array>

namespace loadline {
namespace {

OutputKind one_file(const ExportOptions&) { return OutputKind::file; }
OutputKind always_folder(const ExportOptions&) { return OutputKind::folder; }
OutputKind shards_in_folder(const ExportOptions& options) {
  return options.max_shard_bytes > 0 ? OutputKind::folder : OutputKind::file;
}

constexpr std::array<Exporter, 7> kExporters = {{
    {"safetensors", "safetensors, one file or a model folder with shards", ".safetensors",
     "outtype,align,max_shard_size,link,names", shards_in_folder, safetensors_supports, safetensors_carries,
     safetensors_layout},
    {"gguf", "GGUF version 3, one file or a split set", ".gguf",
     "outtype,type,imatrix,align,max_shard_size,order,metadata_slack,names,pre_tokenizer", one_file,
     gguf_supports, gguf_carries, gguf_layout},
    {"torch", "PyTorch state_dict, one file that torch.load can map", ".pt", "outtype,align,order", one_file,
     torch_supports, torch_carries, torch_layout},
    {"npz", "numpy archive, one file", ".npz", "outtype,align,order", one_file, npz_supports, npz_carries,
     npz_layout},
    {"npy", "numpy arrays, a folder with one file a tensor", "", "outtype,align", always_folder, npz_supports,
     npz_carries, npy_layout},
    {"ptd", "ExecuTorch tensors, one file", ".ptd", "outtype,align,order", one_file, ptd_supports,
     ptd_carries, ptd_layout, true},
    {"onnx", "ONNX from ONNX, with external data or without", ".onnx", "align,order,inline_weights", one_file,
     onnx_supports, onnx_carries, onnx_layout, true},
}};

}  // namespace

std::span<const Exporter> exporters() { return kExporters; }

const Exporter& find_exporter(std::string_view id) { return find_row(exporters(), id, "output format"); }

const Exporter* exporter_for(std::string_view path) {
  const auto row = std::ranges::find_if(kExporters, [&](const Exporter& exporter) {
    return !exporter.extension.empty() && path.ends_with(exporter.extension);
  });
  return row == kExporters.end() ? nullptr : &*row;
}

}  // namespace loadline
