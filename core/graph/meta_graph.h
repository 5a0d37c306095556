// The checkpoint as a plain value: metadata, packed weights, files, storages, tensors; the rules it obeys;
// what each tensor contributes to a sum.
#pragma once

#include "core/graph/dtype_and_shape.h"
#include "core/graph/forward_graph.h"
#include "core/graph/name.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

namespace loadline::graph {

// --- Values of a model's metadata, in the types that the file declares.

// The position of a file in MetaGraph::files.
enum class FileId : std::uint32_t {};
// No file: the model is known from its configuration alone.
inline constexpr FileId kNoFile{std::numeric_limits<std::uint32_t>::max()};

// In the order of MetaValue's alternatives. An array has elements of one of the other types.
enum class MetaType : std::uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, string, array };
std::string_view meta_type_name(MetaType type);
// Bytes of one value of a type with a fixed size; 0 for strings and arrays.
std::uint64_t meta_type_bytes(MetaType type);

// An array that stays in its file: opening a model only skips a vocabulary of 250,000 strings.
// core/io/graph_reader.h reads elements.
struct MetaArray {
  MetaType element = MetaType::u8;  // never array
  bool big_endian = false;
  FileId file = kNoFile;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // of the first element, absolute, in the file
  std::uint64_t bytes = 0;   // of all elements together, in the file
  bool operator==(const MetaArray&) const = default;
};

using MetaValue =
    std::variant<bool, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                 std::uint64_t, std::int64_t, float, double, std::string, MetaArray>;

inline MetaType meta_type(const MetaValue& value) { return static_cast<MetaType>(value.index()); }

// The value for a person: "true", "42", "1e-05", the text itself (not escaped), "250,112 strings", "3 f32
// values".
std::string meta_text(const MetaValue& value);

// --- What several stored tensors mean together: codes, scales and their other companions are one weight.

// How a weight is stored as several tensors. core/graph/packed/packed_layouts.cpp has the layouts.
enum class WeightPacking : std::uint8_t {
  gptq,
  gptq_v2,
  awq,
  bitsandbytes_4bit,
  bitsandbytes_8bit,
  scaled,  // numbers of 8 bits with scales of a tensor, a row or a block
  compressed_integers,
  compressed_nvfp4,
  compressed_mxfp4,
  nvfp4,
  mxfp4,
  mlx_affine,
  mlx_mxfp4,
  mlx_nvfp4,
  mlx_mxfp8,
};
// For a person, beside the bits of a code: "GPTQ".
std::string_view packing_name(WeightPacking packing);

// What a tensor beside the codes holds.
enum class Companion : std::uint8_t {
  scales,
  zeros,             // the codes that stand for 0
  biases,            // numbers that are added to the scaled codes
  groups,            // by input, the group whose scale it uses
  global_scale,      // of all scales
  codebook,          // by code, the number that it stands for
  state,             // bitsandbytes' description, JSON text
  nested_scales,     // of the scales
  nested_codebook,   // of the scales
  shape,             // of the weight
  activation_scale,  // of the inputs, no part of the weight
  format,            // of bitsandbytes' 8-bit rows
};
inline constexpr std::size_t kCompanions = 12;
std::string_view companion_name(Companion companion);

struct CompanionTensor {
  Companion kind{};
  TensorId tensor{};
  bool operator==(const CompanionTensor&) const = default;
};

// A weight as the model uses it. Its members stand so that none wastes room: there may be one for every
// second tensor.
struct LogicalTensor {
  Name name;                          // of the weight where it is not packed
  [[no_unique_address]] Shape shape;  // outermost first, as in torch
  WeightPacking packing{};
  DType dtype = DType::f32;  // that its numbers had before they were packed
  std::uint32_t bits = 0;    // of a code
  // Numbers along each dimension that share a scale; the last block may be cut.
  [[no_unique_address]] Shape block;
  TensorId codes{};
  // In the order of Companion, each at most once.
  [[no_unique_address]] ShortList<CompanionTensor, 1> companions;
  ShortList<char, 0> state;  // the text in Companion::state
  bool operator==(const LogicalTensor&) const = default;

  // The tensor of that kind, if there is one.
  std::optional<TensorId> companion(Companion kind) const;
  std::string_view state_text() const { return {state.data(), state.size()}; }
  void set_state(std::string_view text) { state = ShortList<char, 0>(std::span<const char>(text)); }
};

// --- The checkpoint as a plain value: names, shapes and byte ranges in files. It holds no handles and no
// data.

// Positions in MetaGraph's vectors. Distinct types so that one cannot stand for another.
enum class StorageId : std::uint32_t {};

template <typename Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

struct ModelFile {
  std::string path;  // as opened: the user's path, or that path's folder joined with a sibling's name
  std::uint64_t bytes = 0;
  bool operator==(const ModelFile&) const = default;
};

// How a file stores the bytes of a storage. Readers always deliver little-endian numbers in C order.
enum class Encoding : std::uint8_t {
  plain,         // unchanged: the only encoding that can be mapped
  deflate,       // a raw deflate stream: a compressed zip member
  byte_swapped,  // big-endian numbers of `unit` bytes each
  // The range is a protobuf message; the numbers are in its field `field`, packed or not. They are varints,
  // each giving its lowest `unit` bytes,
  protobuf_varints,
  protobuf_fixed,  // or values of `unit` bytes, 4 or 8
  unreadable,      // the range is known but cannot be decoded: quantized blocks in big-endian order
};
std::string_view encoding_name(Encoding encoding);

// A range of a file. Bytes belong to storages: tied weights are two tensors on one storage.
struct Storage {
  FileId file = kNoFile;
  Encoding encoding = Encoding::plain;
  std::uint8_t unit = 1;
  std::uint8_t field = 0;
  std::uint64_t offset = 0;        // absolute, in the file
  std::uint64_t bytes = 0;         // after decoding
  std::uint64_t stored_bytes = 0;  // in the file; equal to `bytes` when plain
  bool operator==(const Storage&) const = default;
};
Storage plain_storage(FileId file, std::uint64_t offset, std::uint64_t bytes);
// A storage of `bytes` that no file holds.
Storage shapes_only_storage(std::uint64_t bytes);

// Its members stand so that none wastes room: a model may have a hundred thousand tensors.
struct Tensor {
  Tensor() = default;
  Tensor(Name text, DType type, Shape sizes = {}, Strides steps = {}, StorageId in = {}, std::uint64_t at = 0)
      : name(std::move(text)),
        shape(std::move(sizes)),
        dtype(type),
        storage(in),
        strides(std::move(steps)),
        offset(at) {}

  Name name;
  [[no_unique_address]] Shape shape;  // outermost first, as in torch and numpy
  DType dtype = DType::opaque;
  StorageId storage{};
  Strides strides;           // in elements; empty = contiguous, C order
  std::uint64_t offset = 0;  // bytes from the start of the storage
  bool operator==(const Tensor&) const = default;
};

enum class Severity : std::uint8_t { info, warning, error };
std::string_view severity_name(Severity severity);

// A finding that did not stop the open. With a note of severity error the model can be inspected, but
// convert, upload and verify refuse it with the text of the note.
struct Note {
  Severity severity = Severity::info;
  std::optional<std::string> tensor;
  std::string text;
  bool operator==(const Note&) const = default;
};
// `text` is a format string for `values`.
template <typename... Values>
Note make_note(Severity severity, std::optional<std::string> tensor, fmt::format_string<Values...> text,
               const Values&... values) {
  return {severity, std::move(tensor), fmt::vformat(text, fmt::make_format_args(values...))};
}

struct MetaEntry {
  std::string key;
  MetaValue value;
  bool operator==(const MetaEntry&) const = default;
};

// The metadata key that holds the whole text of a model folder's config.json.
inline constexpr std::string_view kConfigKey = "config.json";

// A regular value, shared as shared_ptr<const MetaGraph>. Obeys validate() (below).
struct MetaGraph {
  std::string format;  // the importer's id: "safetensors", ...
  std::vector<ModelFile> files;
  std::vector<Storage> storages;
  std::vector<Tensor> tensors;       // file by file, in the order of their bytes
  std::vector<std::string> missing;  // tensors that an index lists but no present file holds
  std::vector<MetaEntry> metadata;
  std::vector<Note> notes;
  std::optional<ForwardGraph> forward;  // if the file holds operators
  std::vector<LogicalTensor> logical;   // weights that several tensors make up
  bool operator==(const MetaGraph&) const = default;

  const Storage& storage(StorageId id) const { return storages[index(id)]; }
  const Tensor& tensor(TensorId id) const { return tensors[index(id)]; }
  const ModelFile& file(FileId id) const { return files[index(id)]; }

  StorageId add_storage(const Storage& storage) {
    storages.push_back(storage);
    return StorageId{static_cast<std::uint32_t>(storages.size() - 1)};
  }
  template <typename... Values>
  void note(Severity severity, std::optional<std::string> tensor, fmt::format_string<Values...> text,
            const Values&... values) {
    notes.push_back(make_note(severity, std::move(tensor), text, values...));
  }
};
using MetaGraphPtr = std::shared_ptr<const MetaGraph>;

// Bytes of all storages: the size of the model's weights, tied weights counted once.
std::uint64_t storage_bytes(const MetaGraph& graph);
// Whether some weights are in no file: a model from its configuration alone.
bool shapes_only(const MetaGraph& graph);
// Bytes of all files on disk, headers and indexes included.
std::uint64_t file_bytes(const MetaGraph& graph);
// The bytes that `tensor` itself spans when contiguous; for an opaque dtype, its storage's.
std::uint64_t tensor_bytes(const MetaGraph& graph, const Tensor& tensor);
std::uint64_t elements(const Tensor& tensor);

// By tensor: the position in graph.logical of the weight that it is a part of.
std::vector<std::optional<std::uint32_t>> logical_positions(const MetaGraph& graph);

std::uint64_t elements(const LogicalTensor& weight);
// Bytes of the codes and all companions.
std::uint64_t packed_bytes(const MetaGraph& graph, const LogicalTensor& weight);
// Bits of those bytes for each element; 0 for an empty weight.
double bits_per_weight(const MetaGraph& graph, const LogicalTensor& weight);

// Storages whose encoding is not plain.
struct EncodingShare {
  Encoding encoding = Encoding::plain;
  std::uint64_t storages = 0;
  std::uint64_t bytes = 0;
};
// One row for each encoding_name() except "plain", in order of first occurrence.
std::vector<EncodingShare> encoding_shares(const MetaGraph& graph);

// Every tensor, in graph order.
std::vector<TensorId> all_tensors(const MetaGraph& graph);
// The first tensor on each storage (in tensor order); nothing for a storage no tensor uses.
std::vector<std::optional<TensorId>> first_owner(const MetaGraph& graph);
// Names that share one storage range, dtype and shape: groups of two or more, in tensor order.
std::vector<std::vector<TensorId>> tied_groups(const MetaGraph& graph);
// Elements of all weights. Tied tensors count once; so do tensors that view bytes within another tensor's
// range of the same storage (Share).
std::uint64_t parameter_count(const MetaGraph& graph);

const MetaValue* find_metadata(const MetaGraph& graph, std::string_view key);
// Null if the key is absent or its value is no text.
const std::string* find_text(const MetaGraph& graph, std::string_view key);
// Throws Error{malformed} with the first note of severity error: such a graph may be shown, but not used.
// Throws Error{usage} for a model that has shapes but no files.
void require_sound(const MetaGraph& graph, std::string_view verb);
// The model's name for a person: the name of its folder or file; for a split GGUF set, the name in its
// metadata without the part number.
std::string model_name(const MetaGraph& graph);

// --- The structural rules that every MetaGraph obeys, whichever importer made it.

// Throws Error{malformed} naming file, tensor and both numbers unless: ids are in range; storages
// lie inside their files; tensors (with their strides) lie inside their storages; tensor names are
// unique; sums of sizes fit in 63 bits. Importers call it as their last step; tests call it on every graph.
void validate(const MetaGraph& graph);

// Elements from a tensor's first to its last, gaps between them included; 0 for an empty tensor, nothing on
// overflow.
std::optional<std::uint64_t> spanned_elements(const Tensor& tensor);
// Bytes from a tensor's first element to the end of its last, gaps between them included. Nothing for a type
// without a fixed size, and on overflow.
std::optional<std::uint64_t> spanned_bytes(const Tensor& tensor);

// Whether a tensor is stored in C order without gaps.
bool is_contiguous(const Tensor& tensor);

// --- Sums over tensors that may view the same bytes: how much each tensor contributes to the sum.

// The contribution of one tensor. `elements` is 0 for every tied tensor but the first, and for a tensor whose
// bytes lie wholly within another tensor's range of the same storage (a slice, a transposed view). `bytes`
// counts the bytes that no earlier tensor covers; tensors are ordered by offset, longer ranges first. Codes
// of a packed weight (MetaGraph::logical) have the elements of that weight, its other parts have none.
struct Share {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
};

// Parallel to `tensors`, which must be distinct. Bytes of a storage that no tensor of the graph covers belong
// to the storage's first tensor, so the bytes of all tensors add up to the storages they use. O(n log n).
std::vector<Share> shares(const MetaGraph& graph, std::span<const TensorId> tensors);
// The shares of all tensors, in graph order.
std::vector<Share> shares(const MetaGraph& graph);
Share sum(std::span<const Share> parts);

}  // namespace loadline::graph
