// Measures how fast this machine reads its disk and copies its memory.
#pragma once

#include "core/base/progress.h"
#include "core/load/request/rates.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::load {

// Needs at least one value. Of an even number of values, the mean of the middle two.
double median(std::vector<double> values);

// Measures disk_read, disk_write and seek_seconds with an unnamed temporary file of `bytes` in `folder`; the
// system removes it on close. Reads with O_DIRECT; if the file system does not support that, drops the file's
// pages from the page cache first. disk_read: median of seven reads of the whole file, fewer if they exceed
// twenty seconds. seek_seconds: median of 200 reads of 4 KiB. Progress counts bytes. Throws Error{io | usage
// | canceled}.
void measure_disk(const std::string& folder, std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

// Measures memory_copy and host_pages: medians of seven copies of `bytes`, which should exceed every cache,
// and of seven times that the system gives as much and takes it back. Throws Error{limit | no_fit} if the
// memory cannot be allocated.
void measure_memory(std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

}  // namespace loadline::load
