// What frameworks measured: the runs are read, belong to today's methods, and are summed up by method.
#include "core/load/measure/evidence.h"

#include "core/base/error.h"
#include "core/load/request/method.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

constexpr std::string_view kRuns = R"({"schema_version": 1, "date": "2026-11-23",
  "tolerance": {"bytes": 16777216, "percent": 2}, "versions": {}, "rows": [
  {"recipe": "plain", "about": "", "framework": "torch", "version": "2.13.0", "model": "a.bin", "model_bytes": 9,
   "method": "to_device", "options": ["--cast", "f32"], "law": "device V", "counters":
   {"anonymous": {"projected": 10, "measured": 12, "runs": [12]}}, "error_percent": 1.5, "range": false, "ok": true,
   "reason": ""},
  {"recipe": "plain", "about": "", "framework": "torch", "version": "2.13.0", "model": "b.bin", "model_bytes": 9,
   "method": "to_device", "options": [], "law": "device V", "counters":
   {"anonymous": {"projected": 10, "low": 10, "high": 18, "measured": 16, "runs": [16]}}, "error_percent": 0.0,
   "range": true, "ok": true, "reason": ""},
  {"recipe": "bytes", "about": "", "framework": "safetensors", "version": "0.8.0", "model": "a", "model_bytes": 9,
   "method": "to_device", "options": [], "law": "device V", "counters": {"file": {"measured": 16, "runs": [16]}},
   "error_percent": null, "range": false, "ok": false, "reason": "of the allocator"}]})";

TEST(Evidence, IsSummedUpByMethod) {
  const Truth truth = parse_truth(kRuns);
  ASSERT_EQ(truth.rows.size(), 3u);
  EXPECT_EQ(truth.rows[0].options, (std::vector<std::string>{"--cast", "f32"}));
  EXPECT_EQ(truth.rows[1].counters[0].high, 18u);
  EXPECT_EQ(truth.rows[2].counters[0].projected, std::nullopt);
  const auto evidence = evidence_of("to_device", truth);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->frameworks, (std::vector<std::string>{"torch 2.13.0", "safetensors 0.8.0"}));
  EXPECT_EQ(evidence->pairs, 3u);
  EXPECT_EQ(evidence->ranged, 1u);
  EXPECT_EQ(evidence->error_percent, 1.5);
  ASSERT_EQ(evidence->beyond.size(), 1u);
  EXPECT_EQ(evidence->beyond[0]->reason, "of the allocator");
  EXPECT_EQ(evidence_of("direct", truth), std::nullopt);
}

TEST(Evidence, OfADamagedFileIsAnError) {
  for (const char* text : {"", "{}", "[]", R"({"date": 3})", R"({"date": "", "tolerance": {}, "rows": []})"})
    EXPECT_THROW(parse_truth(text), Error) << text;
}

// A method that changes has to be held against its frameworks again: ./dev truth --write.
TEST(Evidence, IsOfTheMethodsAsTheyAreToday) {
  const Truth& truth = built_in_truth();
  ASSERT_GE(truth.rows.size(), 45u);
  std::size_t good = 0;
  for (const TruthRow& row : truth.rows) {
    SCOPED_TRACE(row.recipe + " " + row.model);
    good += row.ok ? 1 : 0;
    if (!row.method.empty()) EXPECT_EQ(row.law, find_method(row.method).peak_law);
  }
  EXPECT_GE(good * 100, truth.rows.size() * 95);
  for (const char* id :
       {"to_device", "mmap_assign", "transformers_v5", "accelerate", "llama_cpp_mmap", "runai"})
    EXPECT_TRUE(evidence_of(id)) << id;
  EXPECT_EQ(evidence_text("executorch_after"), "By construction, not measured.");
  EXPECT_EQ(evidence_brief("executorch_after"), "by construction");
}

}  // namespace
}  // namespace loadline
