// The peaks of a row by space and by sums of spaces, and the space that tells rows apart.
#pragma once

#include "core/load/answer/rows.h"

#include <span>
#include <string>
#include <string_view>

namespace loadline::report {

struct RowSpace {
  std::string_view id;     // device, host, held, page_cache, staging, resident, unified
  std::string_view words;  // "on the device", "in device, host and staging together"
  RowPeak (*peak)(const LoadRow& row);
};
std::span<const RowSpace> row_spaces();
// Throws Error{usage} that lists the ids.
const RowSpace& find_row_space(std::string_view id);

// Of device, host and both together with staging (held), the one in which the peaks of these rows are
// furthest apart, by bytes; of equals the first. The device if nothing differs.
const RowSpace& widest_space(std::span<const LoadRow* const> rows);

// "They differ most on the host: 0 B (mmap_assign) to 12.58 GiB (to_device)." Empty if that is where the peak
// is that decides whether a load fits, or if nothing differs.
std::string difference_text(std::span<const LoadRow* const> rows, MemoryKind memory);

// The part of a peak law that is about one space, without its cases: of "device W + w* (cast: c*), host W"
// and "device" it is "W + w*". Empty if the law does not name the space.
std::string_view law_part(std::string_view law, std::string_view space);

}  // namespace loadline::report
