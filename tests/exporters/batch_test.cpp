// Lists of jobs, right and wrong, and the state beside them.
#include "core/base/error.h"
#include "exporters/convert.h"
#include "tests/support/builders.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

std::string fault(const std::string& json) {
  try {
    (void)parse_batch(json, "jobs.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }
std::string job(const std::string& more) { return R"({"jobs": [{"in": "a", "out": "b")" + more + "}]}"; }

TEST(BatchFile, OptionsOfTheFileThenOfTheJob) {
  const auto jobs = parse_batch(R"({
    "options": {"outtype": "bf16", "force": true},
    "jobs": [{"in": "/models/a", "out": "b.gguf"},
             {"in": "org/name", "out": "/c", "options": {"outtype": "f16", "align": 4096, "max_shard_size": "5GB"}}]})",
                                "/lists/jobs.json");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].in, "/models/a");
  EXPECT_EQ(jobs[0].out, "/lists/b.gguf");
  EXPECT_EQ(jobs[0].request.layout.outtype, DType::bf16);
  EXPECT_TRUE(jobs[0].request.write.overwrite);
  EXPECT_EQ(jobs[1].in, "org/name");
  EXPECT_EQ(jobs[1].out, "/c");
  EXPECT_EQ(jobs[1].request.layout.outtype, DType::f16);
  EXPECT_EQ(jobs[1].request.layout.alignment, 4096u);
  EXPECT_EQ(jobs[1].request.layout.max_shard_bytes, 5'000'000'000u);
}

TEST(BatchFile, ExistingInputsCountFromTheFile) {
  const TemporaryFolder folder;
  write_file(folder / "a.safetensors", "");
  const auto jobs = parse_batch(R"({"jobs": [{"in": "a.safetensors", "out": "x/y"}]})", folder / "jobs.json");
  EXPECT_EQ(jobs[0].in, folder / "a.safetensors");
  EXPECT_EQ(jobs[0].out, folder / "x/y");
}

TEST(BatchFile, FaultsNameTheLine) {
  EXPECT_TRUE(says(fault(""), "jobs.json"));
  EXPECT_TRUE(says(fault("{}"), "jobs"));
  EXPECT_TRUE(says(fault(R"({"jobs": {}})"), "'jobs'"));
  EXPECT_TRUE(says(fault(R"({"jobs": [3]})"), "a job"));
  EXPECT_TRUE(says(fault(R"({"jobs": [{"in": "a"}]})"), "out"));
  EXPECT_TRUE(says(fault(R"({"jobs": [{"in": "", "out": "b"}]})"), "'in' is empty"));
  EXPECT_TRUE(says(fault(R"({"jobs": [], "job": 1})"), "job"));
  EXPECT_TRUE(says(fault(job(R"(,
  "options": {"outype": "f16"})")),
                   "line 2"));
  EXPECT_TRUE(says(fault(job(R"(, "options": {"outype": "f16"})")), "did you mean outtype?"));
  EXPECT_TRUE(says(fault(job(R"(, "options": {"outtype": "q4_k"})")), "'outtype': "));
  EXPECT_TRUE(says(fault(job(R"(, "options": {"outtype": ["f16"]})")), "'outtype'"));
  EXPECT_TRUE(says(fault(job(R"(, "options": {"force": "perhaps"})")), "'force': "));
  EXPECT_TRUE(says(fault(job(R"(, "options": {"memory_budget": "1GiB"})")), "is shared by all jobs"));
  EXPECT_TRUE(says(fault(R"({"jobs": [{"in": "a", "out": "b"}, {"in": "c", "out": "./d/../b"}]})"),
                   "two jobs write './d/../b'"));
  EXPECT_NE(fault("{\"jobs\": " + std::string(100'000, '[') + "}"), "");
}

class State : public ::testing::Test {
 protected:
  State() {
    write_file(folder / "in", "source");
    write_file(folder / "out", "result");
    done.in = folder / "in";
    done.out = folder / "out";
    done.options = {{"outtype", "f16"}};
    const std::string read[] = {done.in}, written[] = {done.out};
    BatchState(list).set_done(done, read, written);
  }
  bool is_done(const BatchJob& of) { return BatchState(list).is_done(of); }

  TemporaryFolder folder;
  std::string list = folder / "jobs.json";
  BatchJob done;
};

TEST_F(State, WhatIsDoneStaysDone) {
  EXPECT_TRUE(is_done(done));
  BatchState again(list);
  again.set_done(done, {}, {});
  EXPECT_TRUE(is_done(done));
}

TEST_F(State, AnotherRequestIsNotDone) {
  BatchJob other = done;
  other.options = {{"outtype", "bf16"}};
  EXPECT_FALSE(is_done(other));
  other = done;
  other.in += "2";
  EXPECT_FALSE(is_done(other));
  other = done;
  other.out += "2";
  EXPECT_FALSE(is_done(other));
}

TEST_F(State, ChangedFilesAreNotDone) {
  write_file(folder / "out", "result, longer");
  EXPECT_FALSE(is_done(done));
  std::filesystem::remove(folder / "out");
  EXPECT_FALSE(is_done(done));
}

TEST_F(State, ATouchedSourceIsNotDone) {
  std::filesystem::last_write_time(folder / "in",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_FALSE(is_done(done));
}

TEST_F(State, DamagedStatesAreRefused) {
  const std::string path = BatchState::path_of(list), whole = testing::read_file(path);
  for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
    write_file(path, whole.substr(0, cut));
    EXPECT_THROW(BatchState state(list), Error) << cut;
  }
  for (const char* text :
       {"[]", "{\"done\": 3}", "{\"done\": [{}]}", R"({"done": [{"out": 1, "request": "", "files": []}]})",
        R"({"done": [{"out": "", "request": "", "files": [{"path": "x", "bytes": "y"}]}]})"}) {
    write_file(path, text);
    EXPECT_THROW(BatchState state(list), Error) << text;
  }
}

}  // namespace
}  // namespace loadline
