// Rows of an answer in words: verdicts, peaks by space, refusals, the gain of orders.
#pragma once

#include "core/load/answer/advice.h"
#include "core/load/answer/rows.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- What a load takes on the host, and whether a row fits, in words.

// The host's peak: "561-841 MiB" where the heap of a process takes more than is requested.
std::string host_text(const load::LoadRow& row);
// What that range is, in sentences; for a row that has one.
std::string heap_text(const load::LoadRow& row);

// The excess over each budget: "device 1.20 GiB over, host 3.00 MiB over". Empty if there is none.
std::string over_text(const load::BudgetVerdict& verdict);

// "fits", or which budget is exceeded, by how much, and the first block over it; escaped. Without a budget
// "possible" or "cannot be done".
std::string verdict_text(const load::LoadRow& row, const load::BoundRequest& bound);

// The memory limits from the target's data sheet, and which of them apply: "On NVIDIA ...: 8.00 GiB of the
// device's own". Empty if there are none.
std::string budget_text(const load::BoundRequest& bound);

// "about 4.2 s", and where that does not cover all weights: "; 9.1 s with the 12.00 GiB that are read when
// they are first used".
std::string time_text(const load::AdvisedLoad& load);

// --- The peaks of a row by space and by sums of spaces, and the space that tells rows apart.

struct RowSpace {
  std::string_view id;     // device, host, held, page_cache, staging, resident, unified
  std::string_view words;  // "on the device", "in device, host and staging together"
  load::RowPeak (*peak)(const load::LoadRow& row);
};
std::span<const RowSpace> row_spaces();
// Throws Error{usage} that lists the ids.
const RowSpace& find_row_space(std::string_view id);

// Of device, host and both together with staging (held), the one in which the peaks of these rows are
// furthest apart, by bytes; of equals the first. The device if nothing differs.
const RowSpace& widest_space(std::span<const load::LoadRow* const> rows);

// "They differ most on the host: 0 B (mmap_assign) to 12.58 GiB (to_device)." Empty if that is where the peak
// is that decides whether a load fits, or if nothing differs.
std::string difference_text(std::span<const load::LoadRow* const> rows, plan::MemoryKind memory);

// --- Groups refused methods by reason.

struct Refusal {
  std::string_view method;
  std::string why = {};  // safe to show
};
// Lists each reason once, after the methods that share it: "a, b cannot be done: WHY.\n". Each method is
// named once.
std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot);

// --- Tells in one sentence how much the best order gains over file order, and at which cost.

// The figures of one method in one order.
struct OrderFigures {
  std::string_view method;
  std::string_view order;   // as in the request; not escaped
  bool is_file = false;     // the order equals file order, whatever its name
  std::uint64_t peak = 0;   // the peak to compare
  std::uint64_t jumps = 0;  // jumps between its reads
  double seconds = 0;       // modeled time, jumps included
};

// The row with the greatest gain over its method's peak in file order, and among equals the fewest jumps, as
// a sentence. `where` names the memory of the peaks: "on the device". Empty if there is no row in file order
// or none in another order.
std::string order_gain_text(std::span<const OrderFigures> rows, std::string_view where);

}  // namespace loadline::report
