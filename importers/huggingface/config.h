// config.json: a model's shapes without its weights, and metadata of a model that has them.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_hf_config(std::span<const std::byte> head, std::string_view path);
MetaGraph read_hf_config(const Source& source);

// The config.json beside the primary file becomes a metadata entry; one that is too large or not
// text becomes a Note.
void add_config(const Source& source, MetaGraph& graph);

}  // namespace loadline
