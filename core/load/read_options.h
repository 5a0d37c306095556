// The options of reading files during an upload as a table that every front end reads.
#pragma once

#include "core/base/option.h"
#include "core/io/striped_reader.h"

#include <span>
#include <string_view>

namespace loadline {

std::span<const Option<FileReads>> read_options();
// Sets one option from a word. `id` must be in the table. Throws Error{usage} for a word that the option does
// not take.
void set_read_option(FileReads& reads, std::string_view id, std::string_view word);

}  // namespace loadline
