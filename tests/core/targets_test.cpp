// Data sheets of devices: those built in, a folder over them, and what is wrong in a file.
#include "core/base/error.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

namespace loadline {
namespace {

TEST(Targets, HaveIdsAndFiguresOfTheirKind) {
  std::set<std::string> ids;
  for (const Target& preset : built_in_targets()) {
    SCOPED_TRACE(preset.id);
    EXPECT_TRUE(ids.insert(preset.id).second);
    EXPECT_EQ(preset.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
    const bool unified = preset.memory == MemoryKind::unified;
    if (preset.device_class == "phone" || preset.device_class == "board") EXPECT_TRUE(unified);
    EXPECT_TRUE(unified ? preset.host_bytes.has_value() : preset.device_bytes.has_value());
    EXPECT_EQ(preset.link_bandwidth.has_value(), !unified);  // one memory has no bus in between
    if (preset.device_bandwidth && preset.link_bandwidth)
      EXPECT_GT(*preset.device_bandwidth, *preset.link_bandwidth);
    const Budget budget = target_budget(preset, preset.memory);
    EXPECT_EQ(budget.unified.has_value(), unified);
    EXPECT_FALSE(budget.host.has_value());
  }
  EXPECT_GE(ids.size(), 20u);
  EXPECT_EQ(find_target(load_targets("").rows, "rtx-4060-8gb").device_bytes, 8ull << 30);
}

TEST(Targets, TakeMemoryAsAsked) {
  const Targets presets = load_targets("");
  const Target& laptop = find_target(presets.rows, "windows-laptop-16gb");
  EXPECT_EQ(target_budget(laptop, MemoryKind::unified).unified, 16ull << 30);
  EXPECT_EQ(target_budget(laptop, MemoryKind::unified).device, 8ull << 30);
  EXPECT_EQ(target_budget(laptop, MemoryKind::discrete).device, 8ull << 30);
  EXPECT_EQ(target_budget(find_target(presets.rows, "t4-16gb"), MemoryKind::unified).unified, 16ull << 30);
  EXPECT_EQ(target_budget(find_target(presets.rows, "pixel-8-pro"), MemoryKind::discrete).device,
            12ull << 30);
  CostModel measured;
  measured.host_pages = measured.staging_pages = measured.device_pages = 3e9;
  const CostModel pages = target_costs(find_target(presets.rows, "t4-16gb"), measured);
  EXPECT_EQ(pages.host_pages, 3e9);
  EXPECT_EQ(pages.staging_pages, CostModel::kUncounted);
  EXPECT_EQ(pages.device_pages, CostModel::kUncounted);
  const CostModel costs = target_costs(find_target(presets.rows, "t4-16gb"), {});
  EXPECT_EQ(costs.link, 15.75e9);
  EXPECT_EQ(costs.device_copy, 150e9);
}

TEST(Targets, OfAFolderGoBeforeThoseBuiltIn) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "targets");
  testing::write_file((folder.path() / "targets/a.json").string(),
                      R"({"id": "t4-16gb", "name": "Mine", "class": "server", "memory": "discrete",
                          "device_bytes": "15GB", "source": "measured"})");
  testing::write_file((folder.path() / "targets/b.json").string(), "{");
  const Targets presets = load_targets(folder.path().string());
  EXPECT_EQ(presets.rows.size(), built_in_targets().size());
  EXPECT_EQ(find_target(presets.rows, "t4-16gb").device_bytes, 15'000'000'000u);
  ASSERT_EQ(presets.faults.size(), 1u);
  EXPECT_NE(presets.faults[0].find("b.json"), std::string::npos);
  try {
    find_target(presets.rows, "x\x1b[2J");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("t4-16gb"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Targets, TellFileLineAndKeyOfAFault) {
  const std::string whole = R"({"id": "x", "name": "X", "class": "phone", "memory": "unified",
 "host_bytes": "8GiB", "source": "s"})";
  EXPECT_EQ(parse_target(whole, "x.json").host_bytes, 8ull << 30);
  struct Case {
    const char* from;
    const char* to;
    const char* expected;
  };
  for (const Case& row : {
           Case{"\"8GiB\"", "\"8G\"", "x.json: line 2, column 17: 'host_bytes'"},
           Case{"\"8GiB\"", "-8", "x.json: line 2, column 16: 'host_bytes'"},
           Case{"\"8GiB\"", "0", "x.json: line 2, column 16: 'host_bytes' is 0"},
           Case{"\"8GiB\"", "18446744073709551615", "'host_bytes' is 18,446,744,073,709,551,615"},
           Case{"\"8GiB\"", "[8]", "x.json: line 2, column 16: 'host_bytes' is a list, a text expected"},
           Case{"phone", "watch", "'class' is 'watch'; there are: phone, laptop, desktop, server, board"},
           Case{"unified", "shared", "'memory' is 'shared'; there are: discrete, unified"},
           Case{"unified", "discrete", "'device_bytes' is missing"},
           Case{"\"source\"", "\"sauce\"", "'sauce' is not known here"},
           Case{"\"X\"", "\"\"", "'name' is empty"},
           Case{", \"source\": \"s\"", "", "'source' is missing"},
           Case{", \"source\"", ", \"device_bytes\": \"9GiB\", \"source\"",
                "'device_bytes' 9,663,676,416 is more"},
       }) {
    std::string text = whole;
    text.replace(text.find(row.from), std::string(row.from).size(), row.to);
    try {
      parse_target(text, "x.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::malformed);
      EXPECT_NE(std::string(error.what()).find(row.expected), std::string::npos) << error.what();
    }
  }
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse_target(whole.substr(0, length), "x.json"), Error) << length;
}

TEST(Targets, TakeWhatTheSystemNeedsOff) {
  constexpr std::uint64_t kMiB = 1 << 20;
  LoadRequest request = {.target = "rtx-4060-8gb"};
  const auto bound = [&] { return bind_memory(request, built_in_targets()); };
  EXPECT_EQ(bound().budget.device, 8192 * kMiB - 400 * kMiB);
  ASSERT_EQ(bound().notes.size(), 1u);
  EXPECT_EQ(bound().notes[0], "400.00 MiB reserved for the system, 7.61 GiB left");
  // asked for otherwise
  set_load_option(request, "reserve", "1GiB");
  EXPECT_EQ(bound().budget.device, 7168 * kMiB);
  set_load_option(request, "reserve", "0");
  EXPECT_EQ(bound().budget.device, 8192 * kMiB);
  // a budget that was given is somebody's own figure
  set_load_option(request, "reserve", "none");
  request.device_budget = 1000 * kMiB;
  EXPECT_EQ(bound().budget.device, 1000 * kMiB);
  set_load_option(request, "reserve", "10%");
  EXPECT_EQ(bound().budget.device, 900 * kMiB);
  set_load_option(request, "reserve", "2GiB");
  EXPECT_THROW(bound(), Error);
  for (const char* wrong : {"0%", "100%", "x%", "%", "1.5%", "-1"})
    EXPECT_THROW(set_load_option(request, "reserve", wrong), Error) << wrong;
}

// In unified memory it comes off the one memory, and the device cannot have more than is left.
TEST(Targets, TakeTheReserveOffUnifiedMemory) {
  constexpr std::uint64_t kGiB = 1 << 30;
  const std::vector<Target> targets = {{.id = "x",
                                        .name = "X",
                                        .memory = MemoryKind::unified,
                                        .device_bytes = 15 * kGiB,
                                        .host_bytes = 16 * kGiB,
                                        .options = {{"reserve", "4GiB"}}}};
  const BoundMemory bound = bind_memory({.target = "x"}, targets);
  EXPECT_EQ(bound.budget.unified, 12 * kGiB);
  EXPECT_EQ(bound.budget.device, 12 * kGiB);
  EXPECT_EQ(bound.request.reserve, Reserve{.bytes = 4 * kGiB});
}

}  // namespace
}  // namespace loadline
