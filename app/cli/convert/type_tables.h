// Shows which tensors of a new file get which type.
#pragma once

#include "app/cli/base/command.h"
#include "exporters/exporter.h"

namespace loadline::cli {

// Two tables: by type, with the bits of a weight, and by kind of tensor.
void print_type_tables(const Context& context, const MetaGraph& graph, const Layout& layout);
// The same as JSON, with a row for each tensor: the keys types, groups, tensor_types and bits_per_weight.
Json type_tables_json(const MetaGraph& graph, const Layout& layout);

}  // namespace loadline::cli
