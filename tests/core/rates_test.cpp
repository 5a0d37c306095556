// Rates: their file, whoever wrote it, and how they are measured.
#include "core/load/request/rates.h"

#include "core/base/error.h"
#include "core/load/measure/measure_rates.h"

#include <cmath>
#include <filesystem>
#include <stop_token>
#include <string>

#include <gtest/gtest.h>

namespace loadline {
namespace {

MeasuredRates sample() {
  MeasuredRates rates;
  rates.measured = "2025-03-01T12:00Z";
  rates.device = "A \"card\"";
  for (const RateRow& row : rate_rows())
    rates.values[std::string(row.key)] = row.of_device ? 1.0 / 3.0 * 1e10 : 0.0125 * row.most;
  rates.how["disk_read"] = "O_DIRECT";
  rates.queues = {{"0 draws and computes", 1.9e10}, {"2 only copies", 2.4e10 / 7}};
  return rates;
}

TEST(Rates, TheFileGivesBackEveryBit) {
  const MeasuredRates rates = sample();
  const MeasuredRates back = parse_rates(rates_text(rates), "rates.json");
  EXPECT_EQ(back.measured, rates.measured);
  EXPECT_EQ(back.values, rates.values);
  EXPECT_EQ(back.how, rates.how);
  EXPECT_EQ(back.queues, rates.queues);
  EXPECT_NE(back.device.find("card"), std::string::npos);
}

TEST(Rates, WhatWasNotMeasuredStaysAssumed) {
  const MeasuredRates rates = parse_rates(R"({"measured": "today", "disk_read": 5e8})", "rates.json");
  const CostModel assumed, costs = rates.costs();
  EXPECT_EQ(costs.disk_read, 5e8);
  EXPECT_EQ(costs.link, assumed.link);
  EXPECT_EQ(costs.seek_seconds, assumed.seek_seconds);
  for (const RateRow& row : rate_rows())
    EXPECT_EQ(sample().costs().*row.member, sample().values.at(std::string(row.key)));
}

TEST(Rates, HostileFilesAreErrorsThatNameThePlace) {
  const auto message = [](const std::string& json) -> std::string {
    try {
      parse_rates(json, "rates.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [&](const std::string& json, const std::string& part) {
    const std::string text = message(json);
    EXPECT_TRUE(text.starts_with("rates.json")) << json << ": " << text;
    EXPECT_NE(text.find(part), std::string::npos) << json << ": " << text;
  };
  expect("", "JSON");
  expect("[]", "");
  expect(R"({"disk_read": 1e9})", "'measured' is missing");
  expect(R"({"measured": "", "disk_read": 1e9})", "'measured' is empty");
  expect(R"({"measured": "x"})", "no rate");
  expect(R"({"measured": "x", "disk_read": 0})", "'disk_read' is 0, not within");
  expect(R"({"measured": "x", "disk_read": -1e9})", "not within");
  expect(R"({"measured": "x", "disk_read": 1e999})", "no number");
  expect(R"({"measured": "x", "disk_read": "nan"})", "no number");
  expect(R"({"measured": "x", "disk_read": "1e9 "})", "no number");
  expect(R"({"measured": "x", "link": 1e17})", "'link' is 1e+17, not within");
  expect(R"({"measured": "x", "seek_seconds": 1e9})", "'seek_seconds'");
  expect(R"({"measured": "x", "disk_read": {}})", "'disk_read'");
  expect(R"({"measured": "x", "disk_read": 1e9, "disc": 1})", "'disc'");
  expect(R"({"measured": "x", "disk_read": 1e9, "queues": 3})", "'queues'");
  expect(R"({"measured": "x", "disk_read": 1e9, "queues": {"0": 1}})", "'0' is 1, not within");
  expect(R"({"measured": ")" + std::string(1000, 'x') + R"(", "disk_read": 1e9})", "'measured'");
  expect(R"({"measured": "x", "disk_read": 1e9, "how": {"a": ")" + std::string(1000, 'x') + "\"}}", "");
  expect(std::string(2 << 20, ' '), "");
  EXPECT_THROW(read_rates("/nonexistent/rates.json"), Error);
}

TEST(Rates, TheMedianIsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 9, 2}), 3);
}

TEST(Rates, MeasuringGivesWhatTheFileTakesAndLeavesNothing) {
  const std::filesystem::path folder = testing::TempDir() + "loadline_rates_test";
  std::filesystem::create_directories(folder);
  MeasuredRates rates;
  rates.measured = "now";
  Progress progress;
  measure_disk(folder.string(), 8 << 20, rates, progress);
  measure_memory(1 << 20, rates, progress);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  EXPECT_EQ(parse_rates(rates_text(rates), "rates.json").values, rates.values);
  for (const RateRow& row : rate_rows())
    EXPECT_EQ(rates.values.contains(std::string(row.key)), !row.of_device) << row.key;
  for (const auto& [key, value] : rates.values) EXPECT_TRUE(std::isfinite(value) && value > 0) << key;
  EXPECT_NE(rates.how.at("disk_read").find("8.00 MiB"), std::string::npos);
}

TEST(Rates, MeasuringEndsWhenAskedAndNamesAFolderThatIsNotThere) {
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token()), progress;
  MeasuredRates rates;
  const auto code = [&](const std::string& folder, Progress& with) {
    try {
      measure_disk(folder, 8 << 20, rates, with);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::cancelled ||
                  std::string(error.what()).find(folder) != std::string::npos);
      return error.code();
    }
    return ErrorCode::no_fit;
  };
  EXPECT_EQ(code(testing::TempDir(), stopped), ErrorCode::cancelled);
  EXPECT_EQ(code("/nonexistent/folder", progress), ErrorCode::io);
  EXPECT_TRUE(rates.values.empty());
}

}  // namespace
}  // namespace loadline
