// Reads a sharded model through its index.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_hf_index(std::span<const std::byte> head, std::string_view path);
// All shards, opened in parallel. A missing shard, a tensor outside the index or a total that
// disagrees is a Note of severity error; contradictions and unsafe names are Errors.
MetaGraph read_hf_index(const Source& source);

}  // namespace loadline
