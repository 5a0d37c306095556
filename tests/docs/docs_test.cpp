// Runs every example of the README and the manual in one folder and compares what it prints.
//
//   test_docs PROGRAM REPOSITORY FOLDER [--update]
//
// With --update the examples in the repository are rewritten to what the program prints.
#include "app/report/manual.h"
#include "app/report/markdown.h"
#include "tests/docs/examples.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace loadline::testing {
namespace {

namespace fs = std::filesystem;

struct Setting {
  fs::path program, repository, folder;
  bool update = false;
};
Setting& setting() {
  static Setting setting;
  return setting;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Ran {
  std::string output;
  int exit = 0;
};

// In the folder, as a person's shell would; stderr is shown as it comes.
Ran run(const std::string& command) {
  const std::string line = fmt::format(
      "cd '{}' && export PATH='{}':\"$PATH\" XDG_CONFIG_HOME='{}/config' HF_HUB_CACHE='{}/hub' "
      "LC_ALL=C.UTF-8 && {} 2>&1",
      setting().folder.string(), setting().program.parent_path().string(), setting().folder.string(),
      setting().folder.string(), command);
  Ran ran;
  FILE* const pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return {"cannot run a shell\n", 127};
  char buffer[4096];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    ran.output.append(buffer, got);
  const int status = ::pclose(pipe);
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> paths = {setting().repository / "README.md"};
  for (const auto& entry : fs::directory_iterator(setting().repository / "assets/manual"))
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  std::sort(paths.begin() + 1, paths.end());
  return paths;
}

// The file that packing.md shows.
constexpr const char* kBuffers =
    "id,lower,upper,size\n"
    "weights,0,6,400\n"
    "embedding,0,2,300\n"
    "keys,1,4,200\n"
    "values,1,4,200\n"
    "scores,2,4,300\n"
    "mixed,3,6,100\n"
    "logits,5,6,500\n";

// What the examples assume: models made from configurations, and a file of buffers.
void make_models() {
  fs::remove_all(setting().folder);
  fs::create_directories(setting().folder);
  for (const char* command : {"loadline synth demo demo --random 1", "loadline synth gpt2-xl gpt2-xl",
                              "loadline synth llama-3-8b llama-3-8b --sparse",
                              "loadline synth mixtral-8x7b mixtral-8x7b --sparse"}) {
    const Ran ran = run(command);
    ASSERT_EQ(ran.exit, 0) << command << "\n" << ran.output;
  }
  std::ofstream(setting().folder / "example.csv") << kBuffers;
}

bool needs_vulkan(const Example& example) {
  return example.command.starts_with("loadline upload") || example.command.starts_with("loadline devices");
}

bool has_vulkan() { return run("loadline devices").output.find("built without Vulkan") == std::string::npos; }

TEST(Docs, ExamplesPrintWhatTheyShow) {
  make_models();
  const bool vulkan = has_vulkan();
  std::size_t count = 0;
  for (const fs::path& path : documents()) {
    std::string text = read(path);
    std::vector<Example> examples = examples_of(path.filename().string(), text);
    std::string renewed = text;
    std::ptrdiff_t moved = 0;
    for (const Example& example : examples) {
      if (needs_vulkan(example) && !vulkan) continue;
      ++count;
      const Ran ran = run(example.command);
      if (setting().update) {
        std::string now = updated(example.expected, ran.output);
        // what stands behind a wildcard is not renewed
        EXPECT_TRUE(matches(now, ran.output))
            << example.file << ":" << example.line << ": change it by hand; printed was\n"
            << ran.output;
        if (ran.exit != 0) now += fmt::format("[exit {}]\n", ran.exit);
        const auto at = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(example.first) + moved);
        renewed.replace(at, example.last - example.first, now);
        moved += static_cast<std::ptrdiff_t>(now.size()) -
                 static_cast<std::ptrdiff_t>(example.last - example.first);
        continue;
      }
      EXPECT_EQ(ran.exit, example.exit)
          << example.file << ":" << example.line << ": " << example.command << "\n"
          << ran.output;
      EXPECT_TRUE(matches(example.expected, ran.output))
          << example.file << ":" << example.line << ": " << example.command << "\n--- shown\n"
          << example.expected << "--- printed\n"
          << ran.output;
    }
    if (setting().update && renewed != text) std::ofstream(path, std::ios::binary) << renewed;
  }
  EXPECT_GE(count, 30u);
}

// Six runs of real frameworks on the first page are those that the program was built with.
TEST(Docs, TheReadmeShowsWhatWasMeasured) {
  const fs::path path = setting().repository / "README.md";
  const std::string readme = read(path);
  const std::size_t from = readme.find("| load | framework |");
  ASSERT_NE(from, std::string::npos);
  const std::size_t to = readme.find("\n\n", from) + 1;
  const std::string table = report::truth_summary(load::built_in_truth());
  if (setting().update) {
    std::ofstream(path, std::ios::binary) << readme.substr(0, from) << table << readme.substr(to);
    return;
  }
  EXPECT_EQ(readme.substr(from, to - from), table);
  EXPECT_EQ(std::ranges::count(table, '\n'), 2 + 12);
}

// A first page stays one, and a page of the manual begins with its title.
TEST(Docs, PagesKeepTheirForm) {
  const std::string readme = read(setting().repository / "README.md");
  EXPECT_LE(std::count(readme.begin(), readme.end(), '\n'), 140);
  EXPECT_EQ(report::manual_pages().size() + 1, documents().size());
  EXPECT_EQ(report::manual_pages().front().id, "getting-started");
  for (const report::ManualPage& page : report::manual_pages()) {
    EXPECT_TRUE(page.text.starts_with("# ")) << page.id;
    EXPECT_FALSE(page.title.empty()) << page.id;
    EXPECT_EQ(report::markdown_text(page.text, 100).find("```"), std::string::npos) << page.id;
  }
}

// Links between pages, and to pictures, lead somewhere.
TEST(Docs, LinksLeadSomewhere) {
  std::size_t links = 0;
  for (const fs::path& path : documents()) {
    const std::string text = read(path);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      target = target.substr(0, target.find('#'));
      if (target.empty() || target.find("://") != std::string::npos) continue;
      ++links;
      EXPECT_TRUE(fs::exists(path.parent_path() / target)) << path.filename() << ": " << target;
    }
  }
  EXPECT_GT(links, 10u);
}

TEST(Examples, AreCutAndCompared) {
  const std::string text = "a\n```console\n$ loadline x\none\n...\nfour\n[exit 3]\n$ loadline y\n```\n$ no\n";
  const std::vector<Example> examples = examples_of("f", text);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].command, "loadline x");
  EXPECT_EQ(examples[0].exit, 3);
  EXPECT_EQ(examples[0].expected, "one\n...\nfour\n");
  EXPECT_TRUE(matches(examples[0].expected, "one\ntwo\nthree\nfour\n"));
  EXPECT_TRUE(matches(examples[0].expected, "one\nfour\n"));
  EXPECT_FALSE(matches(examples[0].expected, "one\ntwo\n"));
  EXPECT_FALSE(matches("one\n", "one\ntwo\n"));
  EXPECT_EQ(updated("one\n...\nfour\n", "uno\ndue\n"), "uno\n...\nfour\n");
  EXPECT_EQ(updated("one\n", "uno\ndue\n"), "uno\ndue\n");
}

}  // namespace
}  // namespace loadline::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 4) {
    fmt::print(stderr, "usage: test_docs PROGRAM REPOSITORY FOLDER [--update]\n");
    return 2;
  }
  auto& setting = loadline::testing::setting();
  setting = {std::filesystem::absolute(argv[1]), std::filesystem::absolute(argv[2]),
             std::filesystem::absolute(argv[3]), argc > 4 && std::string(argv[4]) == "--update"};
  return RUN_ALL_TESTS();
}
