// The rates of a CostModel as they were measured on a machine, and the file that keeps them.
//
//   {"measured": "2025-03-01T12:00Z", "device": "...",    the device may be left out, and so may any rate:
//    "disk_read": 3.1e9, "memory_copy": 8.2e9, "link": 2.4e10, "pageable_link": 6.1e9,
//    "device_copy": 2.0e11, "seek_seconds": 8e-05,         bytes per second; seconds
//    "how": {"disk_read": "..."}}                          for people
#pragma once

#include "core/plan/dry_machine.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline {

struct RateRow {
  std::string_view key;
  std::string_view title;
  double CostModel::*member;
  bool of_device = false;  // nothing measures it without one
  double least = 0;        // what a file may say
  double most = 0;
};
std::span<const RateRow> rate_rows();

struct MeasuredRates {
  std::string measured = {};                                 // when; empty: all are assumed
  std::string device = {};                                   // on which the device's were; empty: on none
  std::map<std::string, double, std::less<>> values = {};    // by RateRow::key
  std::map<std::string, std::string, std::less<>> how = {};  // by the same

  // `costs` with what was measured.
  CostModel costs(CostModel costs = {}) const;
};

// "Times by rates measured on ...", or by assumed ones.
std::string rates_line(const std::optional<MeasuredRates>& rates);

// Throws Error{malformed | limit} naming `path`, line, column and key: a rate is a positive number within
// what any machine could do.
MeasuredRates parse_rates(std::string_view json, const std::string& path);
// The same from a file of at most 1 MiB. Throws Error{io}, too.
MeasuredRates read_rates(const std::string& path);
// What parse_rates() reads.
std::string rates_text(const MeasuredRates& rates);

}  // namespace loadline
