// What config.json says about how weights are quantised.
#pragma once

#include "core/graph/dtype_and_shape.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace loadline {

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

}  // namespace loadline
