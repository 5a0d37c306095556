// Options that would be ignored, what a page says was asked for, and what a measurement is called.
#include "app/cli/plan_options.h"

#include "app/cli/plan_measure.h"
#include "core/base/error.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

std::string refusal(const std::vector<GivenOption>& given, const std::vector<std::string>& methods) {
  try {
    const std::vector<const Method*> asked = methods_of(methods);
    require_taken(given, asked);
    require_company(given);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
}

TEST(OptionUse, EachMethodTakesWhatItsHelpSays) {
  for (const Method& method : methods()) {
    const std::string taken = ", " + taken_options(method) + ",";
    for (const char* option : {"--staging", "--slots", "--memory-limit", "--cast", "--shard-size", "--flush",
                               "--doubled-ties", "--gpu-layers", "--place", "--max-memory"}) {
      const bool listed = taken.find(std::string(", ") + option + ",") != std::string::npos;
      EXPECT_EQ(takes(method, option), listed) << method.id << option;
      const std::string told = refusal({{option, {"1"}, false}}, {std::string(method.id)});
      EXPECT_EQ(told.empty(), listed) << method.id << option;
      if (listed) continue;
      EXPECT_TRUE(
          told.starts_with(std::string(option) + " changes nothing for " + std::string(method.id) + ": "))
          << told;
      EXPECT_EQ(refusal({{option, {"1"}, false}}, {std::string(method.id), "all"}), "");
    }
    EXPECT_TRUE(takes(method, "--activations"));
  }
}

TEST(OptionUse, CountsWhatIsNamedTwiceOnce) {
  EXPECT_EQ(methods_of({"direct", "runai", "direct"}),
            (std::vector<const Method*>{&find_method("direct"), &find_method("runai")}));
  EXPECT_EQ(methods_of({"direct", "all"}).size(), methods().size());
  EXPECT_EQ(order_names_of({"name", "file", "name"}), (std::vector<std::string>{"name", "file"}));
}

TEST(OptionUse, AllLeavesWhatIsNamedBesideIt) {
  const std::vector<std::string> names = order_names_of({"largest", "all", "heads.txt"});
  ASSERT_EQ(names.size(), orders().size() + 1);
  EXPECT_EQ(names.front(), "largest");
  EXPECT_EQ(names.back(), "heads.txt");
  EXPECT_EQ(methods_of({"direct", "all"}).front(), &find_method("direct"));
  EXPECT_THROW(methods_of({"all", "typo"}), Error);
}

TEST(OptionUse, NamesTheCompanyThatIsMissing) {
  EXPECT_EQ(refusal({{"--axis", {"time"}, false}}, {"all"}),
            "--axis changes nothing without --curve or --svg or --html");
  EXPECT_EQ(refusal({{"--axis", {"time"}, false}, {"--svg", {"x.svg"}, false}}, {"all"}), "");
  EXPECT_EQ(refusal({{"--profile", {"fused"}, false}, {"--dim", {"batch=2"}, false}}, {"all"}), "");
}

TEST(AskedFor, HoldsWhatWasGiven) {
  PlanOptions options;
  options.path = "m";
  options.given = {{"--memory-limit", {"1GB"}, false},
                   {"--flush", {"5MB"}, false},
                   {"--doubled-ties", {}, false},
                   {"--allocator", {"torch"}, false},
                   {"--json", {}, false},
                   {"--place", {"a=host", "b=disk"}, false},
                   {"--method", {"runai", "direct"}, true}};
  const report::OptionList list = asked_for(options, {});
  const auto value = [&](std::string_view name) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& row) { return row.first == name; });
    return found == list.end() ? "" : found->second;
  };
  EXPECT_EQ(value("model"), "m");
  EXPECT_EQ(value("runai's buffer"), "1GB");
  EXPECT_EQ(value("staging is sent from"), "5MB");
  EXPECT_EQ(value("ties prepacked twice"), "yes");
  EXPECT_EQ(value("allocator"), "torch");
  EXPECT_EQ(value("placed"), "a=host, b=disk");
  EXPECT_EQ(value("methods"), "runai, direct");
  EXPECT_EQ(value("staging ring"), "64MiB in 4 slots");
  EXPECT_EQ(value("cast"), "");
  EXPECT_EQ(list.size(), 9u);
}

TEST(MeasuredRow, WhatIsSmallIsNotJudged) {
  constexpr std::uint64_t kMiB = 1 << 20;
  MeasuredRow row;
  row.projected = {.rss_anon = 15 * kMiB};
  EXPECT_EQ(row.agrees(), std::nullopt);
  row.measured = {.rss_shmem = 16 * kMiB - 1};
  EXPECT_EQ(row.agrees(), std::nullopt);
  row.measured.rss_shmem = 16 * kMiB;  // as much as may lie between them
  EXPECT_EQ(row.agrees(), true);
  row.measured.rss_shmem = 17 * kMiB;
  EXPECT_EQ(row.agrees(), false);
  row.projected.rss_shmem = 1000 * kMiB;
  row.measured.rss_shmem = 1020 * kMiB;
  EXPECT_EQ(row.agrees(), true);
  row.measured.rss_shmem = 1021 * kMiB;
  EXPECT_EQ(row.agrees(), false);
}

}  // namespace
}  // namespace loadline::cli
