// A model known from its config.json alone: shapes without files.
#pragma once

#include "importers/importer.h"

namespace loadline {

Match sniff_hf_config(std::span<const std::byte> head, std::string_view path);
MetaGraph read_hf_config(const Source& source);

}  // namespace loadline
