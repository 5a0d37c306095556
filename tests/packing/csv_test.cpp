// Files of buffers that would take more memory than they may.
#include "core/base/error.h"
#include "core/packing/problem.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

std::string refusal(const std::string& text) {
  try {
    read_packing_csv(text, "bad.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A quote that is not closed stands behind the first field too many: whoever reads on complains of that.
TEST(PackingCsv, NothingIsReadBehindTheFirstFieldTooMany) {
  EXPECT_EQ(refusal("lower,upper,size\n1,2,3\n1,2,3,,,,\"\n"),
            "bad.csv: line 3: more than 3 fields, 3 columns");
  std::string header = "lower,upper,size";
  for (int i = 0; i < 61; ++i) header += ",hint";
  EXPECT_EQ(refusal(header + "\n"), "");
  EXPECT_EQ(refusal(header + ",hint,\"\n"), "bad.csv: line 1: more than 64 columns");
}

TEST(PackingCsv, TheLastArenaIsTheLimits) {
  const auto row = [](std::uint32_t arena) {
    return "lower,upper,size,arena\n0,1,1," + std::to_string(arena) + "\n";
  };
  EXPECT_EQ(refusal(row(kMostPackingArenas - 1)), "");
  EXPECT_EQ(refusal(row(kMostPackingArenas)), "bad.csv: line 2: arena 64 is over the limit of 63");
}

}  // namespace
}  // namespace loadline
