// Packing problems as comma-separated values: MiniMalloc's columns, and ours.
#pragma once

#include "core/packing/problem.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline {

// The first line names the columns, in any order: `lower` and `upper` (or `start` and `end`) and `size` must
// be there; `id`, `alignment`, `offset` (pinned), `gaps` (`7-9 12-14`), `group` (any name), `arena` (a
// number) may be; `hint` is read and left out. Empty fields of those that may be absent are as if absent.
// Fields may be quoted as in RFC 4180; lines end in LF or CRLF; empty lines are left out. Throws
// Error{malformed} that names `file` and line, Error{limit} for more than 2^24 buffers, kMostPackingArenas
// arenas, 64 columns or 2^16 gaps of one buffer. The problem is not checked further.
Problem read_packing_csv(std::string_view text, const std::string& file);

// The problem with its offsets: the columns that it uses, `offset` last.
std::string packing_csv(const Problem& problem, std::span<const std::uint64_t> offsets);

}  // namespace loadline
