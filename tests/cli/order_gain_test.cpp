// The sentence about what an order gains.
#include "app/report/row_text.h"

#include <vector>

#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

TEST(OrderGain, NamesTheFurthestBelowFileOrder) {
  std::vector<report::OrderFigures> rows = {
      {"m", "file", true, 5000, 1, 1.0},  {"m", "name", false, 4000, 7, 1.5},
      {"m", "\x1b", false, 4000, 3, 0.5}, {"n", "file", true, 9000, 1, 1.0},
      {"n", "name", false, 8500, 7, 1.5}, {"o", "name", false, 1, 7, 1.5}};
  EXPECT_EQ(
      report::order_gain_text(rows, "on the device"),
      "The order that gains most on the device: \\x1b for m, 3.91 KiB instead of 4.88 KiB in file order "
      "(1000 B less), with 3 jumps between reads instead of 1 and an estimated 500.0 ms less.");
  rows[2].jumps = 1;
  EXPECT_NE(report::order_gain_text(rows, "on the device").find("with 1 jump between reads instead of 1 and"),
            std::string::npos);
  rows.resize(2);
  rows[1].peak = 6000;
  EXPECT_EQ(report::order_gain_text(rows, "on the device"),
            "No order gains anything on the device over file order; reads jump up to 7 times in them.");
  rows[1].jumps = 1;
  EXPECT_EQ(report::order_gain_text(rows, "on the device"),
            "No order gains anything on the device over file order; reads jump up to 1 time in them.");
  rows[1].jumps = 0;
  EXPECT_EQ(report::order_gain_text(rows, "on the device"),
            "No order gains anything on the device over file order.");
}

TEST(OrderGain, SaysNothingWithoutSomethingToCompare) {
  EXPECT_EQ(report::order_gain_text({}, "on the device"), "");
  EXPECT_EQ(report::order_gain_text(std::vector<report::OrderFigures>{{"m", "file", true, 5, 1, 1}},
                                    "on the device"),
            "");
  EXPECT_EQ(report::order_gain_text(std::vector<report::OrderFigures>{{"m", "name", false, 5, 1, 1}},
                                    "on the device"),
            "");
}

}  // namespace
}  // namespace loadline::cli
