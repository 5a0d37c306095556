// How fast this machine reads its disk and copies its memory.
#pragma once

#include "core/base/progress.h"
#include "core/load/rates.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// The middle one, or the mean of the two in the middle. At least one.
double median(std::vector<double> values);

// Measures disk_read and seek_seconds with a file of `bytes` that has no name and goes away by itself, in
// `folder`: read with O_DIRECT, or, where the file system knows no such thing, after its pages were written
// out and dropped. Medians of seven readings of the whole, fewer where those take longer than twenty seconds,
// and of 200 reads of 4 KiB. Progress counts bytes. Throws Error{io | usage | cancelled}.
void measure_disk(const std::string& folder, std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

// Measures memory_copy: the median of seven copies of `bytes` that no cache holds. Throws Error{limit} where
// there is no memory.
void measure_memory(std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

}  // namespace loadline
