// Packing problems as comma-separated values: MiniMalloc's columns and additional ones.
#pragma once

#include "core/packing/problem.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline {

// The first line names the columns, in any order. Required: `lower` and `upper` (or `start` and `end`), and
// `size`. Optional: `id`, `alignment`, `offset` (pinned), `gaps` (`7-9 12-14`), `group` (any name), `arena`
// (a number); `hint` is read and ignored. An empty field of an optional column counts as absent. Fields may
// be quoted as in RFC 4180; lines end in LF or CRLF; empty lines are skipped. Throws Error{malformed} that
// names `file` and line, Error{limit} for more than 2^24 buffers, kMostPackingArenas arenas, 64 columns or
// 2^16 gaps of one buffer. The problem is not checked further.
Problem read_packing_csv(std::string_view text, const std::string& file);

// The problem and its offsets as CSV: only columns in use, `offset` last.
std::string packing_csv(const Problem& problem, std::span<const std::uint64_t> offsets);

}  // namespace loadline
