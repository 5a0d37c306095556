// What an exporter is: from a MetaGraph to a Layout; slots and other steps that formats share.
#pragma once

#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loadline::forward {
struct TypePolicy;
}

namespace loadline::exporters {

// --- Exporters: pure functions from a MetaGraph to a Layout. write_layout (one file) moves all bytes.

// One tensor of the output, and how its bytes come to be.
struct Slot {
  graph::Name name;
  graph::DType dtype = graph::DType::opaque;
  graph::Shape shape;
  convert::Recipe recipe;
  std::uint64_t offset = 0;  // absolute, in the file
  std::uint64_t bytes = 0;
  bool operator==(const Slot&) const = default;
};

// A metadata array of the source, copied element by element because it can be too large for memory.
struct HeaderCopy {
  std::uint64_t at = 0;    // absolute, in the output
  graph::MetaArray array;  // written little-endian
};

// Bytes that a format puts before, between or behind tensors.
struct Piece {
  std::uint64_t offset = 0;  // absolute, in the output
  std::vector<std::byte> bytes;
};

// A CRC-32 (zlib's) of the output's bytes [begin, end), written little-endian over bytes of later pieces.
struct Checksum {
  std::uint64_t begin = 0, end = 0;
  std::vector<std::uint64_t> at;  // absolute, increasing, not below `end`
};

// One output file: `header` at byte 0, with `copies` inserted in increasing order, then slots and pieces,
// both in increasing offset. All other bytes up to `bytes` are zero.
struct LayoutFile {
  std::string path;
  std::vector<std::byte> header;  // without the copies
  std::vector<HeaderCopy> copies;
  std::vector<Slot> slots;
  std::vector<Piece> pieces;
  std::vector<Checksum> checksums;  // of ranges that do not overlap, in increasing order
  std::uint64_t bytes = 0;
  std::string copy_of = {};  // if set, the whole file is a copy of this one, which has `bytes` bytes
  bool link = false;         // another name of that file instead of a copy
};

// Files in the order in which they must appear on disk (an index last). `result` is the graph that importing
// the primary output gives: import(write(layout)) == layout.result.
struct Layout {
  std::vector<LayoutFile> files;
  // The output folder, if the output is a model folder. Weight files and indexes of another model there would
  // be taken for parts of this model, so write_layout() replaces all of them or none.
  std::string folder;
  graph::MetaGraph result;
  std::vector<std::string> left_out = {};    // sentences: what of the source the output lacks
  std::vector<std::string> held_files = {};  // files of the model's folder whose content is in the output
  std::vector<std::string> held_keys =
      {};                               // of the model's metadata, whose content is elsewhere in the output
  std::vector<graph::Note> notes = {};  // what a person should know of the conversion
};

// The size of the header, copies included.
std::uint64_t header_bytes(const LayoutFile& file);

// Tensors of a graph that are written as something else, and tensors that only their recipes read.
struct TensorRecipes {
  std::size_t written = SIZE_MAX;  // tensors from this position on are not written
  std::unordered_map<std::size_t, convert::Recipe>
      instead;  // by position; of a packed weight, that of its codes
};

// Tensors of the output that a filter selects get a type.
struct TypeRule {
  std::string filter;  // a text for TensorFilter
  graph::DType type = graph::DType::opaque;
  bool operator==(const TypeRule&) const = default;
};

struct ExportOptions {
  std::optional<graph::DType> outtype;  // of floating, quantized and packed weights; nothing = as stored
  std::uint64_t alignment = 0;          // 0 = the format's own default
  std::uint64_t max_shard_bytes = 0;    // 0 = one file
  bool link_files = false;              // of files that are copied from the model's folder
  bool strict = false;                  // refuse to leave anything out
  // The storages that tensors use, in the order in which the output holds their tensors; empty = the
  // source's.
  std::vector<graph::StorageId> order = {};
  // The model's own names and forms, where the format's programs have others.
  std::optional<bool> keep_names = {};
  // How texts are cut, as llama.cpp names it (tokenizer.ggml.pre); empty = found by the tokenizer's files.
  std::string pre_tokenizer = {};
  // Globs over settings that may go unheeded, where the format's programs would not compute what they say.
  std::vector<std::string> ignored_settings = {};
  bool tokenizer = true;      // whether GGUF files get the tokenizer's keys; only comparisons leave them out
  bool follow_links = false;  // out of the model's folder, to files that lie beside the weights
  // Its tokenizer's files and chat template stand for those of the model's folder: an adapter's. Empty: none.
  std::string tokenizer_folder = {};
  bool inline_weights = false;  // one file, where weights else lie in a second one
  // Room for later edits of the metadata; nothing = the format's own.
  std::optional<std::uint64_t> metadata_slack = {};
  std::shared_ptr<const TensorRecipes> recipes = {};
  std::shared_ptr<const forward::TypePolicy> policy = {};  // chooses types instead of `outtype`
  std::vector<TypeRule> types = {};                        // after the policy; the last that matches wins
  std::shared_ptr<const graph::ImportanceFile> importance = {};  // for types that use one

  bool chooses_types() const { return policy != nullptr || !types.empty(); }
  bool keeps_types() const { return !outtype && !chooses_types(); }
};

// What an output path names.
enum class OutputKind : std::uint8_t { file, folder };

struct Exporter {
  std::string_view id;         // "safetensors"
  std::string_view name;       // "safetensors (Hugging Face)"
  std::string_view extension;  // ".safetensors"; empty: only its id chooses it
  std::string_view options;    // ids of the convert_options() that its layout takes, separated by commas
  OutputKind (*kind)(const ExportOptions& options);
  bool (*supports)(graph::DType dtype);
  // Whether the output keeps this entry of the source's metadata.
  bool (*carries)(const graph::MetaGraph& graph, const graph::MetaEntry& entry);
  // `out` is the output file, or the folder of a sharded or folder output. Throws Error{unsupported} naming a
  // tensor that the format cannot hold, and Error{usage} for options that it does not take.
  Layout (*layout)(const graph::MetaGraph& graph, const ExportOptions& options, const std::string& out);
  bool keeps_ties = false;  // tensors on the same bytes stay so, under all their names
};

std::span<const Exporter> exporters();
// Throws Error{usage} listing the ids if there is no such exporter.
const Exporter& find_exporter(std::string_view id);
// The exporter for the extension of `path`, or null.
const Exporter* exporter_for(std::string_view path);

// --- Steps that all exporters share: choosing dtypes and copying tensors into the result graph.

// A tensor of the output before its type is chosen.
struct SlotDraft {
  Slot floats;                              // floating-point numbers as they come; other data as stored
  graph::DType own = graph::DType::opaque;  // where no type is chosen; of packed weights, that before packing
  std::optional<Slot> blocks = {};          // as the blocks that the source stores, which are kept until then
  bool stays_f32 = false;                   // where an outtype is asked for
};

// What is written of a model, in the order asked for: of tied tensors the first; packed weights as one tensor
// each where any type is chosen; options.recipes instead of what they replace. `ggml`: packed weights of
// 4-bit floats have blocks of ggml.
std::vector<SlotDraft> slot_drafts(const graph::MetaGraph& graph, const ExportOptions& options, bool ggml);
// In these types, without offsets; without an outtype in their own, or as blocks. Throws Error{limit} if
// their total size is too large.
std::vector<Slot> plain_slots(std::vector<SlotDraft> drafts, std::optional<graph::DType> outtype);
Slot plain_slot(SlotDraft draft, std::optional<graph::DType> outtype);
// plain_slots() of slot_drafts(), for formats without blocks of ggml.
std::vector<Slot> output_slots(const graph::MetaGraph& graph, const ExportOptions& options);
// Where these slots unpack weights, every setting of how they were packed must be accounted for: throws
// Error{unsupported} that names the others, unless `options` ignores them. Notes on those that are ignored.
std::vector<graph::Note> packing_notes(const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                                       const ExportOptions& options);
// The result of a recipe, without an offset. Throws as recipe_forms() does.
Slot slot_of(const graph::MetaGraph& graph, const graph::Name& name, convert::Recipe recipe);
// With one more step, which gives this type.
Slot slot_then(Slot slot, convert::RecipeStep step, graph::DType dtype);
// With a cast, where it is of another type that can be cast.
Slot cast_slot(Slot slot, graph::DType dtype);
// Throws Error{unsupported}: the format has no such type. Advises the outtype `instead` where the slot's
// numbers can be given in it.
[[noreturn]] void refuse_dtype(const Slot& slot, std::string_view format, graph::DType instead);
// Throws Error{unsupported} for a shape of more dimensions than `most`, which readers of the format refuse.
void check_rank(const Slot& slot, std::size_t most, std::string_view format);
// Throws Error{unsupported} unless the name is UTF-8 text without NUL, at which many readers end it.
void check_name(const graph::Name& name);
// Throws Error{limit} if the tensors together are too large for the offsets of a file.
void check_total(const std::vector<Slot>& slots);
// Puts drafts in the order asked for. Tensors of one storage stay together, as they follow in the source.
void arrange(const graph::MetaGraph& graph, const ExportOptions& options, std::vector<SlotDraft>& drafts);
// The type in which a slot's tensor is stored in the source, or the first of several.
graph::DType stored_dtype(const graph::MetaGraph& graph, const Slot& slot);
// Whether a tensor of this type can be written as `options.outtype`.
bool can_become(graph::DType dtype, graph::DType outtype);

// Adds the slot's tensor to `result`, as importing file number `file` of the output would.
// With `names` from all_names() as the same tensor under each.
void add_result(graph::MetaGraph& result, graph::FileId file, const Slot& slot,
                std::span<const graph::Name> names = {});
// By slot: its own name, then those of all tensors that are tied to the one that it takes.
std::vector<std::vector<graph::Name>> all_names(const graph::MetaGraph& graph,
                                                const std::vector<Slot>& slots);
// Finds the packed weights of a complete `result`, as importing it would.
void add_logical(const graph::MetaGraph& source, graph::MetaGraph& result);

void append_bytes(std::vector<std::byte>& out, std::string_view text);
// Little-endian.
void append_u32(std::vector<std::byte>& out, std::uint32_t value);
void append_u64(std::vector<std::byte>& out, std::uint64_t value);
// Appends the length as a u64, then the text.
void append_string(std::vector<std::byte>& out, std::string_view text);

// The alignment of data in a zip archive. Throws Error{usage} for one that is too large, and for shards.
std::uint64_t zip_alignment(const ExportOptions& options, std::uint64_t otherwise);

// Throws Error{usage} unless `alignment` is 0 or a power of two up to 2 MiB, a huge page.
void check_alignment(std::uint64_t alignment);

}  // namespace loadline::exporters
