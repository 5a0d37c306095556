// Options that would be ignored, what a page says was asked for, and requests as words.
#include "app/cli/plan/load_flags.h"

#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"

#include <algorithm>
#include <string>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

// A command line of `plan`, without PATH.
struct Line {
  explicit Line(std::vector<std::string> words) : flags(app, LoadUser::plan) {
    words.insert(words.begin(), "m");
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    request = flags.request();
  }
  CLI::App app;
  LoadFlags flags;
  LoadRequest request;
};

std::string refusal(std::vector<std::string> words) {
  try {
    Line line(std::move(words));
    line.flags.require_used(line.request, find_methods(line.request.methods));
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
}

TEST(LoadFlags, EachMethodSupportsWhatTheTableSays) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> options = {
      {"staging", {"--staging", "1MiB"}},          {"slots", {"--slots", "4"}},
      {"runai_buffer", {"--runai-buffer", "1GB"}}, {"cast", {"--cast", "f32"}},
      {"shard_size", {"--shard-size", "1GB"}},     {"flush", {"--flush", "1MB"}},
      {"doubled_ties", {"--doubled-ties"}},        {"gpu_layers", {"--gpu-layers", "1"}},
      {"place", {"--place", "name:x=host"}},       {"auto_map", {"--auto-map", "1GB"}}};
  for (const Method& method : methods()) {
    const std::vector<const LoadOption*> supported = supported_options(method);
    for (const auto& [id, words] : options) {
      const LoadOption* const option = find_load_option(id);
      const bool listed = std::find(supported.begin(), supported.end(), option) != supported.end();
      EXPECT_EQ(supports(method, *option), listed) << method.id << id;
      std::vector<std::string> line = words;
      line.insert(line.end(), {"--method", std::string(method.id)});
      const std::string told = refusal(line);
      EXPECT_EQ(told.empty(), listed) << method.id << id << told;
      if (listed) continue;
      EXPECT_TRUE(told.starts_with(words[0] + " changes nothing for " + std::string(method.id) + ": "))
          << told;
      line.back() += ",all";
      EXPECT_EQ(refusal(line), "");
    }
    EXPECT_TRUE(supports(method, *find_load_option("activations")));
  }
}

TEST(LoadFlags, CountsWhatIsNamedTwiceOnce) {
  EXPECT_EQ(find_methods({"direct", "runai", "direct"}),
            (std::vector<const Method*>{&find_method("direct"), &find_method("runai")}));
  EXPECT_EQ(find_methods({"direct", "all"}).size(), methods().size());
  EXPECT_EQ(order_names({"name", "file", "name"}), (std::vector<std::string>{"name", "file"}));
}

TEST(LoadFlags, AllLeavesWhatIsNamedBesideIt) {
  const std::vector<std::string> names = order_names({"largest", "all", "heads.txt"});
  ASSERT_EQ(names.size(), orders().size() + 1);
  EXPECT_EQ(names.front(), "largest");
  EXPECT_EQ(names.back(), "heads.txt");
  EXPECT_EQ(find_methods({"direct", "all"}).front(), &find_method("direct"));
  EXPECT_THROW(find_methods({"all", "typo"}), Error);
}

TEST(LoadFlags, EightMethodsAreShownByDefault) {
  const std::vector<const Method*> shown = find_methods({});
  EXPECT_EQ(shown.size(), 8u);
  for (const char* id : {"to_device", "sequential", "mmap_assign", "transformers_v5", "accelerate",
                         "llama_cpp_mmap", "executorch_after", "staged_ring"})
    EXPECT_NE(std::find(shown.begin(), shown.end(), &find_method(id)), shown.end()) << id;
}

TEST(LoadFlags, NamesTheCompanyThatIsMissing) {
  EXPECT_EQ(refusal({"--profile", "fused"}), "--profile changes nothing without --seq or --dim or --context");
  EXPECT_EQ(refusal({"--batch", "2"}), "--batch changes nothing without --seq or --context");
  EXPECT_EQ(refusal({"--profile", "fused", "--dim", "batch=2"}), "");
}

TEST(LoadFlags, SayWhichOneIsWrong) {
  EXPECT_EQ(refusal({"--slots", "0"}), "--slots: 0 is less than 1, the least possible");
  EXPECT_EQ(refusal({"--slots", "x"}), "--slots: 'x' is not a whole number below 2^64");
  EXPECT_TRUE(refusal({"--staging", "64"}).starts_with("a ring of 64 bytes is too small for 4 slots"))
      << refusal({"--staging", "64"});
  EXPECT_TRUE(refusal({"--staging", "64M"}).starts_with("--staging: '64M' is ambiguous"));
  EXPECT_TRUE(refusal({"--method", "stagd_ring"}).ends_with("did you mean staged_ring?"));
  EXPECT_TRUE(refusal({"--memory", "unifed"}).ends_with("did you mean unified?"));
  EXPECT_TRUE(refusal({"--gpu-layers", "2", "--auto-map", "1GB"}).starts_with("weights can be placed by"));
}

// What a person asked for comes back from its own words: the command of an advice is one.
TEST(LoadFlags, RequestsAndWordsAreTheSame) {
  const Line line({"--method", "accelerate", "--order", "largest", "--place", "name:a, b=host", "--place",
                   "layer:0-3=disk", "--cast", "bf16", "--device-budget", "6GiB", "--seq", "16"});
  const Line again(request_arguments(line.request, find_method("accelerate")));
  EXPECT_EQ(again.request, line.request);
  EXPECT_EQ(line.request.place.size(), 2u);
  EXPECT_EQ(
      request_words(LoadRequest{.methods = {"direct"}, .staging_bytes = 1 << 20}, find_method("direct")),
      " --method direct --order file");
}

TEST(AskedFor, HoldsWhatIsNotTheDefault) {
  const Line line({"--runai-buffer", "1GB", "--flush", "5MB", "--doubled-ties", "--allocator", "torch",
                   "--place", "a=host", "--place", "b=disk", "--method", "runai,direct"});
  const report::OptionList list = report::asked_for(line.request, MemoryKind::discrete);
  const auto value = [&](std::string_view name) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& row) { return row.first == name; });
    return found == list.end() ? "" : found->second;
  };
  EXPECT_EQ(value("Run:ai buffer"), "953.67 MiB");
  EXPECT_EQ(value("Flush threshold"), "4.77 MiB");
  EXPECT_EQ(value("Doubled ties"), "yes");
  EXPECT_EQ(value("Allocator"), "torch");
  EXPECT_EQ(value("Placement rules"), "a=host; b=disk");
  EXPECT_EQ(value("Methods"), "runai, direct");
  EXPECT_EQ(value("Staging ring"), "64.00 MiB");
  EXPECT_EQ(value("Ring slots"), "4");
  EXPECT_EQ(value("Memory"), "discrete");
  EXPECT_EQ(value("Cast"), "");
  EXPECT_EQ(list.size(), 9u);
}

TEST(MeasuredLoad, WhatIsSmallIsNotJudged) {
  constexpr std::uint64_t kMiB = 1 << 20;
  report::MeasuredLoad row;
  row.counters.resize(2);
  std::uint64_t &projected = row.counters[1].projected, &measured = row.counters[1].measured;
  row.counters[0].projected = 15 * kMiB;
  EXPECT_EQ(row.agrees(), std::nullopt);
  measured = 16 * kMiB - 1;
  EXPECT_EQ(row.agrees(), std::nullopt);
  measured = 16 * kMiB;  // as much as may lie between them
  EXPECT_EQ(row.agrees(), true);
  measured = 17 * kMiB;
  EXPECT_EQ(row.agrees(), false);
  projected = 1000 * kMiB;
  measured = 1020 * kMiB;
  EXPECT_EQ(row.agrees(), true);
  measured = 1021 * kMiB;
  EXPECT_EQ(row.agrees(), false);
}

}  // namespace
}  // namespace loadline::cli
