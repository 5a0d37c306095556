// What the best order gains over file order and what it costs, in a sentence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loadline::report {

// The figures of one method in one order.
struct OrderFigures {
  std::string_view method;
  std::string_view order;   // as it was asked for; not escaped
  bool is_file = false;     // file order, by whatever name
  std::uint64_t peak = 0;   // that the comparison is about
  std::uint64_t jumps = 0;  // of its reads
  double seconds = 0;       // modelled, jumps included
};

// The row whose peak is furthest below its method's in file order, and among those the one with the fewest
// jumps: "Best order: ...". `where` is what peaks are of: "on the device". Empty without file order or other
// orders.
std::string order_gain_text(std::span<const OrderFigures> rows, std::string_view where);

}  // namespace loadline::report
