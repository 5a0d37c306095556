// Words to values and back, limits, and what somebody may have meant.
#include "core/base/option.h"

#include "core/base/error.h"

#include <set>

#include <gtest/gtest.h>

namespace loadline {
namespace {

std::string fault(OptionKind kind, std::string_view text) {
  try {
    (void)parse_option(kind, text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
}

TEST(Options, WordsAndValuesAreTheSame) {
  for (const char* text : {"0", "1", "1023", "64KiB", "64MiB", "3TiB", "40000000000"})
    EXPECT_EQ(print_option(OptionKind::bytes, parse_option(OptionKind::bytes, text)), text);
  EXPECT_EQ(parse_option(OptionKind::bytes, "5GB"), OptionValue(std::uint64_t{5'000'000'000}));
  EXPECT_EQ(parse_option(OptionKind::flag, "on"), OptionValue(true));
  EXPECT_EQ(print_option(OptionKind::flag, false), "off");
  EXPECT_EQ(parse_option(OptionKind::names, "a, b,,c"), OptionValue(std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(parse_option(OptionKind::names, "a,b=host; c", ';'),
            OptionValue(std::vector<std::string>{"a,b=host", "c"}));
  EXPECT_EQ(print_option(OptionKind::names, std::vector<std::string>{"a", "b"}), "a,b");
  EXPECT_EQ(print_option(OptionKind::text, {}), "none");
}

TEST(Options, SayWhatIsWrongWithAWord) {
  EXPECT_EQ(fault(OptionKind::count, "x"), "'x' is not a whole number below 2^64");
  EXPECT_EQ(fault(OptionKind::count, "-1"), "'-1' is not a whole number below 2^64");
  EXPECT_EQ(fault(OptionKind::count, "99999999999999999999"),
            "'99999999999999999999' is not a whole number below 2^64");
  EXPECT_EQ(fault(OptionKind::flag, "yes"), "'yes' is neither on nor off");
  EXPECT_EQ(fault(OptionKind::names, " , "), "a name is needed");
  EXPECT_EQ(fault(OptionKind::text, ""), "a value is needed");
  EXPECT_TRUE(fault(OptionKind::bytes, "64M").starts_with("'64M' is ambiguous"));
}

TEST(Options, FindWhatWasMeant) {
  const std::vector<std::string_view> known = {"sequential", "state_dict", "staged_ring", "direct"};
  EXPECT_EQ(nearest_word("sequental", known), "sequential");
  EXPECT_EQ(nearest_word("staged_rign", known), "staged_ring");
  EXPECT_EQ(nearest_word("dirct", known), "direct");
  EXPECT_EQ(nearest_word("zzz", known), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'a'), known), "");
}

}  // namespace
}  // namespace loadline
