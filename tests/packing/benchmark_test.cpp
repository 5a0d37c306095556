// The published hard instances, of tests/packing/data.
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "tests/support/packing.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace loadline {
namespace {

const std::filesystem::path kFolder = LOADLINE_PACKING_DATA;

Problem problem_in(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << "cannot open " << path;
  return read_packing_csv(std::string(std::istreambuf_iterator<char>(in), {}), path.string());
}

TEST(PublishedPackings, AllElevenOfMiniMallocAreSolved) {
  constexpr std::uint64_t kCapacity = 1048576;
  for (const char name : std::string("ABCDEFGHIJK")) {
    const Problem problem = problem_in(kFolder / "minimalloc" / (std::string(1, name) + ".1048576.csv"));
    PackOptions options;
    options.capacity = {kCapacity};
    const Packing packing = pack(problem, options);
    EXPECT_EQ(packing.verdict, Verdict::feasible) << name;
    EXPECT_FALSE(find_fault(problem, packing.offsets, options.capacity)) << name;
  }
}

TEST(PublishedPackings, LowerBoundsAreAttained) {
  struct Row {
    const char* file;
    std::uint64_t bytes;
  };
  constexpr Row kRows[] = {{"minimalloc/input.12.csv", 12},
                           {"minimalloc/C.1048576.csv", 1039360},
                           {"idealloc/G_1.csv", 3030937746},
                           {"idealloc/resnet50.csv", 1515472556}};
  for (const Row& row : kRows) {
    const Problem problem = problem_in(kFolder / row.file);
    PackOptions options;
    options.minimize = true;
    const Packing packing = pack(problem, options);
    EXPECT_TRUE(packing.proven_optimal()) << row.file;
    EXPECT_EQ(packing.height(), row.bytes) << row.file;
    EXPECT_FALSE(find_fault(problem, packing.offsets)) << row.file;
  }
}

}  // namespace
}  // namespace loadline
