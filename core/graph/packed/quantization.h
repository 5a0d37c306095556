// How weights are quantized: what config.json and metadata declare, which stored tensors make up one weight,
// how much its columns matter.
#pragma once

#include "core/graph/dtype_and_shape.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::graph {

// --- Looks up single values in the config.json that a MetaGraph carries.

// The top-level string under `key`. Nothing without a config, without the key, or if its value is no string.
std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key);

// The same for a boolean.
std::optional<bool> config_flag(const MetaGraph& graph, std::string_view key);

// The model's family: config.json's model_type, else GGUF's general.architecture.
std::optional<std::string> model_family(const MetaGraph& graph);

// --- What config.json says about how weights are quantized.

// Codes of `bits` bits; `group` numbers of a row share a scale.
struct CodeGroups {
  std::uint32_t bits = 0;
  std::uint64_t group = 0;
};

// Absent members were not in the file, or not as expected.
struct QuantizationConfig {
  std::string checkpoint_format = {};                           // of quantization_config: "gptq_v2"
  std::optional<DType> dtype = {};                              // dtype or torch_dtype, if floating
  std::optional<std::uint64_t> block_rows = {};                 // of quantization_config.weight_block_size
  std::optional<std::uint64_t> block_columns = {};              //
  std::optional<CodeGroups> groups = {};                        // MLX: of all modules but those listed
  std::map<std::string, CodeGroups, std::less<>> modules = {};  // MLX: by module

  const CodeGroups* groups_of(std::string_view module) const;
};

// Reads graph's config.json; everything is absent without one.
QuantizationConfig read_quantization_config(const MetaGraph& graph);

// --- Finds metadata that says that weights are not stored as the model uses them.

// The first key that declares rotated weights, such as prism.hadamard.version: a runtime must apply the same
// rotation to what it multiplies with them. A part of the key, between dots or underscores, says it. Null if
// there is none.
const MetaEntry* declared_transform(const MetaGraph& graph);

// --- Finds the weights that a checkpoint stores as codes and companions.

// The bytes of a small stored tensor; nothing if they cannot be read.
using ReadSmallTensor = std::function<std::optional<std::string>(TensorId tensor)>;
inline constexpr std::uint64_t kMostSmallTensor = 4 << 10;

struct LogicalTensors {
  std::vector<LogicalTensor> tensors;  // in the order of their codes
  std::vector<Note> notes;             // weights that look packed, but whose parts do not fit together
};

// Goes by the names, types and shapes of a graph's tensors and by its config.json. `read` is called for
// companions that hold a shape: at most kMostSmallTensor bytes each.
LogicalTensors find_logical_tensors(const MetaGraph& graph, const ReadSmallTensor& read);

// --- How much the columns of a model's weights matter, as measured on text: an importance matrix of
// llama.cpp.

// The mean square of what each column of a weight was multiplied with. Finite and not negative.
struct TensorImportance {
  std::string name;            // of the weight, in GGUF's names: "blk.0.attn_q.weight"
  std::vector<float> weights;  // one for each column, expert after expert where there are several
  bool operator==(const TensorImportance&) const = default;
};

struct ImportanceMatrix {
  std::vector<TensorImportance> tensors;  // sorted by name, each name once
  std::vector<std::string> datasets;      // the texts that were measured
  std::uint64_t chunks = 0;               // parts of them; 0 where the file does not say
  bool operator==(const ImportanceMatrix&) const = default;
};

// The weights of the columns of one expert of a tensor; expert 0 of 1 where it has none. Empty if the matrix
// does not list the tensor. Throws Error{malformed} naming the tensor if it lists another number of columns.
std::span<const float> column_importance(const ImportanceMatrix& matrix, std::string_view tensor,
                                         std::uint64_t columns, std::uint64_t expert, std::uint64_t experts);

// --- An importance matrix together with where it comes from.

struct ImportanceFile {
  std::string path;
  ImportanceMatrix matrix;
};

}  // namespace loadline::graph
