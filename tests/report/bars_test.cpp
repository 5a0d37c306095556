// Peaks as bars, and the part of a law that is about a space.
#include "app/report/pictures.h"
#include "app/report/row_text.h"

#include <gtest/gtest.h>

namespace loadline::report {
namespace {

TEST(Bars, name_the_part_of_a_law) {
  EXPECT_EQ(law_part("device W + max(w*, Q), host W + h", "device"), "W + max(w*, Q)");
  EXPECT_EQ(law_part("device W + max(w*, Q), host W + h", "host"), "W + h");
  EXPECT_EQ(law_part("unified 2W", "host"), "");
  EXPECT_EQ(law_part("", "host"), "");
  EXPECT_EQ(law_part("host w* (cast: c*; disk: 0)", "host"), "w*");
  EXPECT_EQ(law_part("device V, host N (repack: + P)", "host"), "N");
}

TEST(Bars, have_one_scale_and_lines_at_the_weights) {
  const Bars bars{"Most", {{"a", "W", 100}, {"long_name", "2W", 200}}, 100};
  EXPECT_EQ(bars_text(bars, 50, false),
            "Most\n"
            "                      W          2W\n"
            "a          ########### 100 B  W\n"
            "long_name  ###################### 200 B  2W\n");
  const std::string svg = bars_svg(bars);
  EXPECT_NE(svg.find(">2W</text>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(bars_text({"Most", {}, 0}, 10, true), "Most\n");
}

TEST(Bars, escape_what_names_hold) {
  EXPECT_EQ(bars_svg({"<&>", {{"<b>", "\"", 1}}, 0}).find("<b>"), std::string::npos);
}

}  // namespace
}  // namespace loadline::report
