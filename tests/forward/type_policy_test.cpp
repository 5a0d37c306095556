// Type policies: what the files say, how rules are counted, and files that are wrong. That the types are
// those of llama.cpp is for tests/interop/test_type_policies.py to say.
#include "core/forward/gguf/type_policy.h"

#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "tests/support/builders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using Types = std::vector<std::optional<DType>>;

TypePolicyPtr built_in(std::string_view name) { return find_type_policy(built_in_type_policies(), name); }

std::string fault(std::string_view json) {
  try {
    (void)parse_type_policy(json, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

// A policy of one rule, completed as a user's own is.
std::vector<TypePolicy> with_rule(std::string_view let, std::string_view rule) {
  std::vector<TypePolicy> files;
  for (const TypePolicy& file : built_in_type_policies())
    if (!file.type) files.push_back(file);
  files.push_back(parse_type_policy(
      fmt::format(R"({{"policy": "own", "type": "q4_k", "let": {{{}}}, "rules": {{"attn_v": "{}"}}}})", let,
                  rule),
      "own.json"));
  return files;
}

std::string rule_fault(std::string_view let, std::string_view rule) {
  const std::vector<TypePolicy> files = with_rule(let, rule);
  const std::vector<std::uint64_t> shape = {256, 256};
  const std::vector<PolicyTensor> tensors = {{"blk.0.attn_v.weight", shape}};
  try {
    (void)policy_types(*find_type_policy(files, "own"), {}, tensors);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TypePolicy, EveryBuiltInPolicyGivesTypes) {
  const std::vector<std::string> names = type_policy_names(built_in_type_policies());
  EXPECT_GE(names.size(), 19u);
  const std::vector<std::uint64_t> matrix = {512, 256}, experts = {8, 512, 256}, vector = {256};
  std::vector<PolicyTensor> tensors;
  for (const char* const name : {"output.weight", "token_embd.weight", "blk.0.attn_q.weight",
                                 "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                                 "blk.0.ffn_up.weight", "blk.0.ffn_down.weight", "blk.0.ssm_in.weight"})
    tensors.push_back({name, matrix});
  tensors.push_back({"blk.0.ffn_down_exps.weight", experts});
  const std::size_t changing = tensors.size();
  tensors.push_back({"blk.0.attn_norm.weight", vector});
  tensors.push_back({"blk.0.ffn_gate_inp.weight", matrix});
  tensors.push_back({"blk.0.attn_q.bias", matrix});
  for (const std::string& name : names)
    for (const char* const architecture : {"llama", "falcon"})
      for (const std::int64_t layers : {0, 1, 80})
        for (const std::int64_t count : {0, 8})
          for (const bool imatrix : {false, true}) {
            const Types types =
                policy_types(*built_in(name), {architecture, layers, count, 8, imatrix}, tensors);
            for (std::size_t i = 0; i < types.size(); ++i)
              EXPECT_EQ(types[i].has_value(), i < changing) << name << ' ' << tensors[i].name;
          }
}

TEST(TypePolicy, CountsByLayerAndName) {
  const std::vector<std::uint64_t> shape = {256, 256};
  std::vector<std::string> names;
  for (int layer = 15; layer >= 0; --layer) names.push_back(fmt::format("blk.{}.attn_v.weight", layer));
  std::vector<PolicyTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, shape});
  const Types types = policy_types(*built_in("q4_k_m"), {"llama", 16, 0, 4, false}, tensors);
  std::string sixes;
  for (int layer = 0; layer < 16; ++layer)
    if (types[static_cast<std::size_t>(15 - layer)] == DType::q6_k) sixes += fmt::format("{} ", layer);
  EXPECT_EQ(sixes, "0 1 4 7 10 13 14 15 ");
}

TEST(TypePolicy, TiedEmbeddingsAreTheOutput) {
  const std::vector<std::uint64_t> shape = {320, 256}, odd = {320, 96};
  const std::vector<PolicyTensor> tied = {{"token_embd.weight", shape}};
  const std::vector<PolicyTensor> apart = {{"token_embd.weight", shape}, {"output.weight", shape}};
  EXPECT_EQ(policy_types(*built_in("q4_k_m"), {}, tied), (Types{DType::q6_k}));
  EXPECT_EQ(policy_types(*built_in("q4_k_m"), {}, apart), (Types{DType::q4_k, DType::q6_k}));
  const std::vector<PolicyTensor> thin = {{"output.weight", odd}};
  EXPECT_EQ(policy_types(*built_in("q4_k_m"), {}, thin), (Types{DType::q8_0}));
}

TEST(TypePolicy, FallsBackWhereRowsDoNotDivide) {
  const TypePolicyPtr policy = built_in("q4_k_m");
  EXPECT_EQ(fitting_type(*policy, DType::q4_k, 512), DType::q4_k);
  EXPECT_EQ(fitting_type(*policy, DType::q4_k, 96), DType::q5_0);
  EXPECT_EQ(fitting_type(*policy, DType::q6_k, 96), DType::q8_0);
  EXPECT_EQ(fitting_type(*policy, DType::q6_k, 80), DType::f16);
  EXPECT_EQ(fitting_type(*policy, DType::q8_0, 48), DType::f16);
  EXPECT_EQ(fitting_type(*policy, DType::f32, 7), DType::f32);
  const std::vector<std::uint64_t> row = {1, 256}, column = {256, 1}, matrix = {1, 2, 256};
  EXPECT_FALSE(may_change(*policy, {"a.weight", row}));
  EXPECT_TRUE(may_change(*policy, {"a.weight", column}));
  EXPECT_TRUE(may_change(*policy, {"a.weight", matrix}));
}

TEST(TypePolicy, FaultsNameTheirPlace) {
  EXPECT_TRUE(says(fault(R"({"policy": "p"})"), "'type' is missing"));
  EXPECT_TRUE(says(fault(R"({"type": "q4_k"})"), "'policy' is missing"));
  EXPECT_TRUE(says(fault(R"({"policy": "", "type": "q4_k"})"), "'policy' is empty"));
  EXPECT_TRUE(says(fault("{\"policy\": \"p\",\n \"type\": \"q4_z\"}"),
                   "p.json: line 2, column 11: there is no type 'q4_z'"));
  EXPECT_TRUE(says(fault(R"({"policy": "p", "type": "opaque"})"), "there is no type 'opaque'"));
  EXPECT_TRUE(says(fault(R"({"policy": "p", "type": "q4_k", "file_type": -1})"), "no number of 32 bits"));
  EXPECT_TRUE(
      says(fault(R"({"policy": "p", "type": "q4_k", "file_type": 4294967296})"), "no number of 32 bits"));
  EXPECT_TRUE(says(fault(R"({"policy": "p", "type": "q4_k", "rule": {}})"), "'rule'"));
  EXPECT_TRUE(says(fault(R"({"policy": "p", "type": "q4_k", "rules": {"output": "1 +"}})"), "line 1"));
  EXPECT_TRUE(
      says(fault(R"({"policy": "p", "type": "q4_k", "fallback": {"x": "q4_0"}})"), "there is no type 'x'"));
  EXPECT_TRUE(says(fault("[]"), "p.json"));
  EXPECT_TRUE(says(rule_fault("", "'q9'"), "'q9' is no type"));
  EXPECT_TRUE(says(rule_fault("", "7"), "7 is no type"));
  EXPECT_TRUE(says(rule_fault("", "unknown"), "null is no type"));
  EXPECT_TRUE(says(rule_fault(R"("a": "b", "b": "a")", "a"), "needs itself"));
  EXPECT_TRUE(says(rule_fault(R"("a": "layers / 0")", "a"), "divided by 0"));
  std::string doubling = R"("a40": "1")";
  for (int i = 0; i < 40; ++i) doubling += fmt::format(R"(, "a{}": "a{} + a{}")", i, i + 1, i + 1);
  EXPECT_TRUE(says(rule_fault(doubling, "a0"), "too many operations"));
}

TEST(TypePolicy, AUsersOwnReplacesABuiltInOne) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "types");
  testing::write_file(folder / "types/mine.json", R"({"policy": "q4_k_m", "type": "q5_k"})");
  testing::write_file(folder / "types/wrong.json", R"({"policy": "wrong"})");
  const auto assets = load_assets(folder / "");
  EXPECT_EQ(find_type_policy(assets->type_policies, "q4_k_m")->type, DType::q5_k);
  EXPECT_EQ(find_type_policy(assets->type_policies, "q4_k_s")->type, DType::q4_k);
  ASSERT_EQ(assets->faults.size(), 1u);
  EXPECT_TRUE(says(assets->faults[0], "'type' is missing"));
  try {
    (void)find_type_policy(assets->type_policies, "q4_k");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(says(error.what(), "did you mean"));
  }
  EXPECT_THROW((void)find_type_policy(assets->type_policies, "common"), Error);
}

}  // namespace
}  // namespace loadline
