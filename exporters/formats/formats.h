// Each format's layout function, for the table; zip archives and edits of ONNX files.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/protobuf_wire.h"
#include "core/io/source_file.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- The layouts of each format, for the table of exporters.

bool gguf_supports(graph::DType dtype);
// One file, or with `max_shard_bytes` a split set where one file would be larger: PREFIX-00001-of-00003.gguf
// and so on, each of at most so many bytes or with one tensor. Names stay as they are; a scalar becomes one
// element of rank 1. Ranks above 4, names over 63 bytes and dtypes unknown to ggml give an Error naming the
// tensor.
Layout gguf_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

// A folder, one array for each tensor. Arrays of other models there are an Error, because readers of the
// folder would take them for this model's.
Layout npy_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool npz_supports(graph::DType dtype);
bool npz_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
Layout npz_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool onnx_supports(graph::DType dtype);
bool onnx_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
// OUT with its weights in OUT.data, or with `inline_weights` one file. Only a source that is ONNX has the
// graph that such a file needs. Weights keep their types, which are types of the graph's values.
Layout onnx_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool ptd_supports(graph::DType dtype);
bool ptd_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
// One file. Tied tensors keep all their names, on one segment. A tensor of unknown type becomes a blob.
Layout ptd_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool torch_supports(graph::DType dtype);
bool torch_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
// A state_dict in one archive.
Layout torch_layout(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);

bool safetensors_supports(graph::DType dtype);
// True for entries whose key and value are UTF-8 text. config.json becomes a file of a model folder, the
// others become __metadata__.
bool safetensors_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
// If `out` ends in ".safetensors", the output is one file. Otherwise it is a model folder: config.json if the
// model has one, and one model.safetensors or shards with their index.
Layout safetensors_layout(const graph::MetaGraph& graph, const ExportOptions& options,
                          const std::string& out);

// --- Lays out a zip archive whose members are stored, aligned and streamed (PKWARE APPNOTE 6.3).

// Members follow each other in the order in which they are added. Each has a data descriptor, because its
// checksum is known only after its bytes; large archives use ZIP64. Padding is an extra field of the local
// header, as torch writes it.
class ZipLayout {
 public:
  // `alignment` of the members' data: a power of two up to kMostAlignment.
  explicit ZipLayout(std::uint64_t alignment) : alignment_(alignment) {}
  static constexpr std::uint64_t kMostAlignment = 32 << 10;
  static constexpr std::size_t kMostName = 0xFFFF;  // bytes of a member's

  void add(std::string_view name, std::vector<std::byte> content);
  // A member of `prefix` and the bytes of a slot, which gets its offset. The slot's bytes are aligned.
  void add(std::string_view name, std::vector<std::byte> prefix, Slot slot);

  // The whole archive as the only file of an output; `format` is the importer's id. `names` are all_names()
  // of its slots where the archive holds each under all.
  Layout layout(const graph::MetaGraph& source, std::string format, const std::string& out,
                const std::vector<std::vector<graph::Name>>& names = {});

 private:
  struct Member {
    std::string name;
    std::uint64_t header = 0;  // offset of its local header
    std::uint64_t bytes = 0;
    bool large = false;  // ZIP64
  };

  // Begins a member of so many bytes whose byte `aligned` is aligned; returns the offset of its first byte.
  std::uint64_t begin(std::string_view name, std::uint64_t bytes, std::uint64_t aligned);
  void end();
  void add_directory();
  void append(std::vector<std::byte> bytes);

  std::uint64_t alignment_;
  std::uint64_t at_ = 0;
  LayoutFile file_;
  std::vector<Member> members_;
};

// --- Finds the tensors of an ONNX file that are to be stored otherwise.

// A range of the source file.
using SourceRange = std::pair<std::uint64_t, std::uint64_t>;

// A TensorProto whose values move.
struct OnnxTensorEdit {
  graph::TensorId tensor{};
  bool outside = false;           // to external data; else into raw_data
  std::vector<SourceRange> kept;  // fields that say something else than where the values are, in their order
};

// A message with changes inside. All bytes of the source that no edit covers stay as they are.
struct OnnxEdit {
  io::WireField field;
  std::vector<OnnxEdit> inner;  // in the order of the file
  std::optional<OnnxTensorEdit> tensor;
};

// Tensors that hold values of at least so many bytes become external data, as those of onnx's own helper do.
inline constexpr std::uint64_t kLeastOutside = 1024;

// Initializers of the graph, and of graphs in its operators' attributes, move to external data if they are
// large enough, else into the file. Other tensors move only if they are external data already: operators'
// attributes and training graphs stay as they are. If `inline_weights`, all external data moves into the
// file. `graph` must be what an importer read from `file`. Throws Error{malformed} as WireReader does, and if
// the file has changed.
std::vector<OnnxEdit> find_onnx_edits(const io::SourceFile& file, const graph::MetaGraph& graph,
                                      bool inline_weights);

}  // namespace loadline::exporters
