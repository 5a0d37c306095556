// Tells in one sentence how much the best order gains over file order, and at which cost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loadline::report {

// The figures of one method in one order.
struct OrderFigures {
  std::string_view method;
  std::string_view order;   // as in the request; not escaped
  bool is_file = false;     // the order equals file order, whatever its name
  std::uint64_t peak = 0;   // the peak to compare
  std::uint64_t jumps = 0;  // jumps between its reads
  double seconds = 0;       // modelled time, jumps included
};

// The row with the greatest gain over its method's peak in file order, and among equals the fewest jumps, as
// a sentence. `where` names the memory of the peaks: "on the device". Empty if there is no row in file order
// or none in another order.
std::string order_gain_text(std::span<const OrderFigures> rows, std::string_view where);

}  // namespace loadline::report
