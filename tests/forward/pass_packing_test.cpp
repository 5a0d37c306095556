// The values of every family's forward pass in one arena.
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "tests/support/packing.h"
#include "tests/support/pass_models.h"

#include <set>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Falcon's score matrices are where bounded effort ends above its lower bound.
bool may_be_above_the_bound(const std::string& name, std::uint64_t sequence) {
  return name == "falcon-7b hf_eager" && sequence == 2048;
}

// Every family packs, keeps the rules and is at the least height that there is.
void expect_packs(std::uint64_t sequence) {
  const auto assets = built_in_assets();
  std::set<std::string> families;
  for (const testing::DescribedModel& described : testing::described_models())
    for (const char* profile : {"fused", "hf_eager"}) {
      SCOPED_TRACE(described.name + " " + profile);
      const ForwardModel model = forward_model(described.graph, *assets, assets->profile(profile));
      ASSERT_TRUE(model.graph) << model.remark;
      families.insert(model.family);
      const Problem problem = testing::pass_problem(model, 1, sequence);
      const Packing packing = pack(problem, {.effort = Effort::bounded});
      EXPECT_EQ(packing.verdict, Verdict::feasible);
      const auto fault = find_fault(problem, packing.offsets);
      EXPECT_FALSE(fault) << *fault;
      EXPECT_GT(packing.lower_bound(), 0u);
      if (!may_be_above_the_bound(described.name + " " + profile, sequence)) {
        EXPECT_EQ(packing.height(), packing.lower_bound());
        EXPECT_TRUE(packing.proven_optimal());
      }
      EXPECT_LE(packing.height(), greedy_by_size_height(problem).value());
    }
  EXPECT_EQ(families.size(), assets->architectures.size());
}

TEST(PassPacking, EveryFamilyPacksAFewTokens) { expect_packs(7); }
TEST(PassPacking, EveryFamilyPacksManyTokens) { expect_packs(2048); }

}  // namespace
}  // namespace loadline
