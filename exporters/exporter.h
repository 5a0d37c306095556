// Exporters: pure functions from a MetaGraph to a Layout. write_layout (one file) moves all bytes.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Where one tensor's bytes go. `bytes` is what the destination holds; when `to` differs from the
// source tensor's dtype the writer casts (core/convert/cast.h).
struct TensorSlot {
  TensorId tensor{};
  DType to = DType::opaque;
  std::uint64_t offset = 0;  // absolute, in the file
  std::uint64_t bytes = 0;
  bool operator==(const TensorSlot&) const = default;
};

// The elements of an array of the source's metadata, which can be too large to hold.
struct HeaderCopy {
  std::uint64_t at = 0;  // absolute, in the output
  MetaArray array;       // written little-endian
};

// One output file: at byte 0 `header`, in which `copies` stand in increasing order, then the slots in
// increasing offset; every byte in between and up to `bytes` is zero.
struct LayoutFile {
  std::string path;
  std::vector<std::byte> header;  // without the copies
  std::vector<HeaderCopy> copies;
  std::vector<TensorSlot> slots;
  std::uint64_t bytes = 0;
};

// Files in the order in which they must appear (an index last). `result` is what importing the
// primary output gives: import(write(layout)) == layout.result.
struct Layout {
  std::vector<LayoutFile> files;
  // For an output that is a model folder: that folder. Weight files and indexes of another model there
  // would be taken for parts of this one, so writing replaces them all or none.
  std::string folder;
  MetaGraph result;
};

// Of the header with its copies.
std::uint64_t header_bytes(const LayoutFile& file);

struct ExportOptions {
  std::optional<DType> outtype;       // cast floating tensors; nothing = as stored
  std::uint64_t alignment = 0;        // 0 = the format's own default
  std::uint64_t max_shard_bytes = 0;  // 0 = one file
};

struct Exporter {
  std::string_view id;         // "safetensors"
  std::string_view name;       // "safetensors (Hugging Face)"
  std::string_view extension;  // ".safetensors"
  std::string_view options;    // ids of the convert_options() of its layout, separated by commas
  bool (*supports)(DType dtype);
  // Whether the output holds this entry of the source's metadata.
  bool (*carries)(const MetaGraph& graph, const MetaEntry& entry);
  // `out` is the file, or the folder of a sharded or directory output. Throws Error{unsupported}
  // naming the tensor that the format cannot hold, Error{usage} for options it does not take.
  Layout (*layout)(const MetaGraph& graph, const ExportOptions& options, const std::string& out);
};

std::span<const Exporter> exporters();
// Throws Error{usage} that lists the ids.
const Exporter& find_exporter(std::string_view id);
// The exporter whose extension `path` has, or nothing.
const Exporter* exporter_for(std::string_view path);

}  // namespace loadline
