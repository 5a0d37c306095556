// What `loadline pack` prints and writes is checked by the validator, from the outside.
#include "app/cli/base/command.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "tests/support/builders.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

struct Printed {
  int code = 0;
  nlohmann::json json = {};
};

Printed pack_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"loadline", "pack"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--json");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  ::testing::internal::CaptureStdout();
  const int code = run(static_cast<int>(pointers.size()), pointers.data(), nullptr);
  return {code, nlohmann::json::parse(::testing::internal::GetCapturedStdout())};
}

std::uint64_t highest_end(const Problem& problem) {
  std::uint64_t highest = 0;
  for (const Buffer& buffer : problem.buffers)
    if (alive_together(buffer, buffer)) highest = std::max(highest, *buffer.offset + buffer.size);
  return highest;
}

// The offsets of the CSV keep every rule of the problem that was asked about, and the heights that are
// printed as JSON are those of the CSV.
void expect_sound(const Problem& asked, const std::string& csv, const nlohmann::json& json) {
  const Problem written = read_packing_csv(read_file(csv), csv);
  ASSERT_EQ(written.buffers.size(), asked.buffers.size());
  std::vector<std::uint64_t> offsets;
  for (const Buffer& buffer : written.buffers) offsets.push_back(buffer.offset.value());
  std::vector<std::optional<std::uint64_t>> heights;
  for (const nlohmann::json& arena : json.at("arenas")) heights.emplace_back(arena.at("height"));
  EXPECT_EQ(find_fault(asked, offsets, heights), std::nullopt);
  EXPECT_EQ(json.at("height"), highest_end(written));
}

void expect_file_packed(const std::string& path, std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string out = folder / "packed.csv";
  arguments.insert(arguments.begin(), {path, "-o", out});
  const Printed printed = pack_command(arguments);
  ASSERT_EQ(printed.code, 0) << path;
  expect_sound(read_packing_csv(read_file(path), path), out, printed.json);
}

TEST(PackOutput, PublishedProblemsKeepEveryRule) {
  const std::string folder = LOADLINE_PACKING_DATA;
  expect_file_packed(folder + "/minimalloc/input.12.csv", {"--capacity", "12"});
  for (const char* name : {"A", "E", "K"})
    expect_file_packed(folder + "/minimalloc/" + name + ".1048576.csv", {"--capacity", "1048576"});
  expect_file_packed(folder + "/idealloc/resnet50.csv", {"--minimize", "--threads", "2"});
}

TEST(PackOutput, EveryColumnIsKept) {
  const TemporaryFolder folder;
  write_file(folder / "all.csv",
             "id,lower,upper,size,alignment,offset,gaps,group,arena\n"
             "pinned,0,9,8,4,16,,,0\n"
             "gaps,0,9,16,1,,2-4 5-7,,0\n"
             "inside,2,4,16,8,,,,0\n"
             "first,1,8,5,2,,,shared,0\n"
             "second,3,6,12,4,,,shared,0\n"
             "other,0,9,100,64,,,,1\n"
             "another,0,9,1,64,,,,1\n");
  expect_file_packed(folder / "all.csv", {});
  expect_file_packed(folder / "all.csv", {"--minimize", "--seed", "7"});
}

// The buffers of a model come from the run itself: the CSV says when each is alive.
void expect_model_packed(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string model = folder / "config.json", out = folder / "packed.csv";
  write_file(model, R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
                        "num_attention_heads": 4, "intermediate_size": 128})");
  arguments.insert(arguments.begin(), {model, "-o", out});
  const Printed printed = pack_command(arguments);
  ASSERT_EQ(printed.code, 0);
  Problem asked = read_packing_csv(read_file(out), out);
  EXPECT_GT(asked.buffers.size(), 10u);
  for (Buffer& buffer : asked.buffers) {
    buffer.offset.reset();
    EXPECT_EQ(buffer.alignment, printed.json.at("alignment"));
  }
  expect_sound(asked, out, printed.json);
}

TEST(PackOutput, RunsOfAModelKeepEveryRule) {
  expect_model_packed({});
  expect_model_packed({"--seq", "16", "--profile", "hf_eager", "--align", "64"});
  expect_model_packed({"--method", "per_tensor", "--seq", "8"});
}

}  // namespace
}  // namespace loadline::cli
