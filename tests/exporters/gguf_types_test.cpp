// Quantised GGUF output: policies on mapped models and on GGUF sources, rules of the user, importance
// matrices, the keys that say so, and what is refused.
#include "core/base/error.h"
#include "core/convert/numbers/quantize.h"
#include "core/forward/model/known_models.h"
#include "exporters/convert.h"
#include "exporters/gguf/gguf.h"
#include "exporters/preflight.h"
#include "exporters/synth.h"
#include "tests/exporters/export_support.h"
#include "tests/support/gguf_builder.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using export_tests::convert;
using export_tests::open;
using export_tests::tensor_named;
using testing::TemporaryFolder;

ConvertRequest request(const std::vector<std::pair<std::string, std::string>>& options) {
  ConvertRequest request;
  for (const auto& [id, word] : options) set_option(*find_option(convert_options(), id), request, word);
  return request;
}
ExportOptions options(const std::vector<std::pair<std::string, std::string>>& words) {
  return request(words).layout;
}

std::string refusal(const MetaGraph& graph, const ExportOptions& options, const std::string& out = "o.gguf") {
  try {
    (void)preflight(graph, exporter_for_output(out), options, out);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

std::shared_ptr<const ImportanceFile> importance(std::vector<TensorImportance> entries) {
  return std::make_shared<const ImportanceFile>(
      ImportanceFile{"m.imatrix", {std::move(entries), {"wiki.txt"}, 7}});
}

class GgufTypes : public ::testing::Test {
 protected:
  void SetUp() override {
    Progress progress;
    synthesize(
        config_graph(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
      "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": 64, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"})",
                     "config.json"),
        folder_ / "m", {.seed = 1, .max_shard_bytes = 0, .overwrite = false}, progress);
    model_ = open(folder_ / "m");
  }
  MetaGraphPtr written(ExportOptions options) {
    convert(model_, folder_ / "o.gguf", options, {.overwrite = true});
    return open(folder_ / "o.gguf");
  }
  ExportOptions mapped(std::vector<std::pair<std::string, std::string>> words) {
    words.emplace_back("names", "auto");
    return options(words);
  }
  static std::map<DType, int> count(const MetaGraph& graph) {
    std::map<DType, int> types;
    for (const Tensor& tensor : graph.tensors) ++types[tensor.dtype];
    return types;
  }

  TemporaryFolder folder_;
  MetaGraphPtr model_;
};

TEST_F(GgufTypes, EveryPolicyObeysTheRoundTripLaw) {
  for (const std::string& name : type_policy_names(built_in_type_policies())) {
    const ExportOptions as = mapped({{"outtype", name}});
    const Layout layout = find_exporter("gguf").layout(*model_, as, folder_ / "o.gguf");
    const MetaGraphPtr read = written(as);
    EXPECT_EQ(*read, layout.result) << name;
    EXPECT_EQ(tensor_named(*read, "blk.1.attn_norm.weight").dtype, DType::f32) << name;
    const MetaValue* const type = find_metadata(*read, "general.file_type");
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(*type, MetaValue(*as.policy->file_type)) << name;
    EXPECT_EQ(*find_metadata(*read, "general.quantization_version"), MetaValue(2u));
  }
}

TEST_F(GgufTypes, APolicyChoosesTypesOnAMappedModel) {
  const MetaGraphPtr read = written(mapped({{"outtype", "q4_k_m"}}));
  EXPECT_EQ(tensor_named(*read, "output.weight").dtype, DType::q6_k);
  EXPECT_EQ(tensor_named(*read, "token_embd.weight").dtype, DType::q4_k);
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_q.weight").dtype, DType::q4_k);
  EXPECT_EQ(tensor_named(*read, "blk.3.attn_v.weight").dtype, DType::q6_k);
  // rows of 96 have no blocks of 256
  EXPECT_EQ(tensor_named(*read, "blk.0.ffn_down.weight").dtype, DType::q5_0);
  EXPECT_EQ(tensor_named(*read, "blk.3.ffn_down.weight").dtype, DType::q8_0);
}

TEST_F(GgufTypes, AGgufFileIsQuantisedAgain) {
  convert(model_, folder_ / "8.gguf", mapped({{"outtype", "q8_0"}}));
  const MetaGraphPtr eight = open(folder_ / "8.gguf");
  const Preflight planned =
      preflight(*eight, find_exporter("gguf"), options({{"outtype", "q4_k_m"}}), folder_ / "4.gguf");
  ASSERT_EQ(planned.layout.notes.size(), 2u);
  EXPECT_TRUE(says(planned.layout.notes[1].text, "(Q8_0) are quantised again"));
  const auto& files = planned.layout.result;
  EXPECT_EQ(tensor_named(files, "blk.0.attn_q.weight").dtype, DType::q4_k);
  EXPECT_EQ(*find_metadata(files, "general.file_type"), MetaValue(15u));
  // the same type: the blocks are copied
  const Layout same =
      find_exporter("gguf").layout(*eight, options({{"outtype", "q8_0"}}), folder_ / "s.gguf");
  for (const Slot& slot : same.files[0].slots) EXPECT_TRUE(copied_tensor(slot.recipe)) << slot.name.view();
  convert(eight, folder_ / "4.gguf", options({{"outtype", "q4_k_m"}}));
  EXPECT_EQ(
      *open(folder_ / "4.gguf"),
      find_exporter("gguf").layout(*eight, options({{"outtype", "q4_k_m"}}), folder_ / "4.gguf").result);
}

TEST_F(GgufTypes, PlainTypesAreForNamesThatAreKept) {
  const MetaGraphPtr read = written(options({{"outtype", "q8_0"}, {"names", "keep"}}));
  EXPECT_EQ(tensor_named(*read, "model.embed_tokens.weight").dtype, DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "model.layers.0.mlp.down_proj.weight").dtype, DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "model.layers.0.input_layernorm.weight").dtype, DType::bf16);
  const std::string refused = refusal(*model_, options({{"outtype", "q4_k_m"}, {"names", "keep"}}));
  EXPECT_TRUE(says(refused, "q4_k_m go by llama.cpp's names")) << refused;
}

TEST_F(GgufTypes, OtherFormatsRefuse) {
  for (const char* const out : {"o.safetensors", "o.pt", "o.npz", "o.ptd"}) {
    const std::string refused = refusal(*model_, options({{"outtype", "q4_0"}}), out);
    EXPECT_TRUE(says(refused, "holds no quantised weights, q4_0 is for gguf")) << refused;
    EXPECT_TRUE(
        says(refusal(*model_, options({{"type", "a=q4_0"}}), out), "Types by name: not an option of"));
  }
  ExportOptions given;
  given.importance = importance({});
  EXPECT_TRUE(says(refusal(*model_, given, "o.pt"), "Importance matrix: not an option of torch"));
}

TEST_F(GgufTypes, TheLastRuleThatMatchesWins) {
  const MetaGraphPtr read = written(mapped(
      {{"outtype", "q4_k_m"}, {"type", "attn_q=q8_0; layer:1-2 attn_q=q5_k; name:output.weight=f16"}}));
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_q.weight").dtype, DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "blk.1.attn_q.weight").dtype, DType::q5_k);
  EXPECT_EQ(tensor_named(*read, "blk.3.attn_q.weight").dtype, DType::q8_0);
  EXPECT_EQ(tensor_named(*read, "output.weight").dtype, DType::f16);
  EXPECT_EQ(tensor_named(*read, "blk.0.attn_k.weight").dtype, DType::q4_k);
  // vectors stay whatever matches; without an outtype all else stays, too
  const MetaGraphPtr some = written(mapped({{"type", "blk=q4_k;size:>=1=q8_0;blk=q4_0"}}));
  EXPECT_EQ(tensor_named(*some, "blk.0.attn_norm.weight").dtype, DType::f32);
  EXPECT_EQ(tensor_named(*some, "output.weight").dtype, DType::q8_0);
  EXPECT_EQ(count(*some)[DType::q4_0], 4 * 7);
  const Layout none = find_exporter("gguf").layout(*model_, mapped({{"type", "nothing=q8_0"}}), "o.gguf");
  ASSERT_EQ(none.notes.size(), 2u);  // the other says that there is no tokenizer
  EXPECT_TRUE(says(none.notes[0].text, "no tensor whose type can change matches 'nothing'"));
}

TEST_F(GgufTypes, WordsThatAreNoTypesAreRefused) {
  const auto fault = [](const std::string& id, const std::string& word) {
    try {
      (void)request({{id, word}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(says(fault("outtype", "q4_k"), "did you mean"));
  EXPECT_TRUE(says(fault("outtype", "common"), "'common' is none of"));
  EXPECT_TRUE(says(fault("type", "attn_q"), "write FILTER=TYPE"));
  EXPECT_TRUE(says(fault("type", "=q8_0"), "write FILTER=TYPE"));
  EXPECT_TRUE(says(fault("type", "a="), "is none of"));
  EXPECT_TRUE(says(fault("type", "a=iq2_xs"), "is none of"));
  EXPECT_TRUE(says(fault("type", "colour:red=q8_0"), "there is no 'colour'"));
  const auto* const row = find_option(convert_options(), "type");
  ConvertRequest blank;
  EXPECT_THROW(set_option_value(*row, blank, std::vector<std::string>{"  =q8_0"}), Error);
  EXPECT_EQ(print_option(row->kind, row->get(request({{"type", "a=q8_0;b c=f16"}})), row->separator),
            "a=q8_0; b c=f16");
  const auto* const outtype = find_option(convert_options(), "outtype");
  for (const char* const word : {"f16", "q4_k_m", "none"})
    EXPECT_EQ(print_option(outtype->kind, outtype->get(request({{"outtype", word}}))), word);
  ConvertRequest twice = request({{"outtype", "q8_0"}});
  set_option(*outtype, twice, "bf16");
  EXPECT_EQ(twice.layout.policy, nullptr);
  EXPECT_EQ(twice.layout.outtype, DType::bf16);
  set_option(*outtype, twice, "none");
  EXPECT_FALSE(twice.layout.outtype);
}

TEST_F(GgufTypes, ImportanceGoesByTheNamesOfTheOutput) {
  ExportOptions as = mapped({{"outtype", "q4_k_s"}});
  const std::vector<float> weights(256, 1.5F);
  as.importance = importance({{"blk.0.attn_q.weight", weights}, {"token_embd.weight", {1, 2, 3}}});
  const Layout layout = find_exporter("gguf").layout(*model_, as, "o.gguf");
  for (const Slot& slot : layout.files[0].slots)
    EXPECT_EQ(slot.recipe.steps.back().importance != nullptr, slot.name.view() == "blk.0.attn_q.weight");
  ASSERT_EQ(layout.notes.size(), 3u);
  EXPECT_TRUE(says(layout.notes[1].text, "'m.imatrix' has no weights for"));
  const MetaGraph& result = layout.result;
  EXPECT_EQ(*find_metadata(result, "quantize.imatrix.file"), MetaValue(std::string("m.imatrix")));
  EXPECT_EQ(*find_metadata(result, "quantize.imatrix.dataset"), MetaValue(std::string("wiki.txt")));
  EXPECT_EQ(*find_metadata(result, "quantize.imatrix.entries_count"), MetaValue(2u));
  EXPECT_EQ(*find_metadata(result, "quantize.imatrix.chunks_count"), MetaValue(7u));
  // the wrong number of weights
  for (const std::size_t wrong : {0u, 1u, 255u, 257u, 512u}) {
    as.importance = importance({{"blk.0.attn_q.weight", std::vector<float>(wrong, 1.0F)}});
    const std::string refused = refusal(*model_, as);
    EXPECT_TRUE(says(
        refused,
        fmt::format("m.imatrix: tensor 'blk.0.attn_q.weight': has {} weights, the tensor needs 256", wrong)))
        << refused;
  }
  as.importance = importance({{"model.layers.0.self_attn.q_proj.weight", weights}});
  EXPECT_TRUE(says(refusal(*model_, as), "has no entry for any of the 39 tensors of the output"));
  // types that do not use it
  as = mapped({{"outtype", "q8_0"}});
  as.importance = importance({{"blk.0.attn_q.weight", weights}});
  const Layout unused = find_exporter("gguf").layout(*model_, as, "o.gguf");
  ASSERT_EQ(unused.notes.size(), 2u);
  EXPECT_TRUE(says(unused.notes[0].text, "changes nothing"));
}

TEST_F(GgufTypes, SumsUpByTypeAndKind) {
  const Layout layout = find_exporter("gguf").layout(*model_, mapped({{"outtype", "q4_k_m"}}), "o.gguf");
  std::uint64_t bytes = 0, tensors = 0;
  for (const TypeShare& share : type_shares(layout)) {
    bytes += share.bytes;
    tensors += share.tensors;
    if (share.type == DType::q4_k) EXPECT_DOUBLE_EQ(bits_per_weight(share.bytes, share.weights), 4.5);
  }
  std::uint64_t expected = 0;
  for (const Slot& slot : layout.files[0].slots) expected += slot.bytes;
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(tensors, layout.files[0].slots.size());
  std::string values;
  for (const TensorGroup& group : tensor_groups(*model_, layout))
    if (group.pattern == "blk.*.attn_v.weight")
      for (const std::uint64_t layer : group.layers)
        values += fmt::format("{}:{} ", layer, dtype_info(group.share.type).name);
  EXPECT_EQ(values, "0:Q4_K 1:Q4_K 2:Q6_K 3:Q6_K ");
  EXPECT_DOUBLE_EQ(bits_per_weight(7, 0), 0);
}

TEST(DeclaredTransform, OnlyACopyKeepsRotatedWeights) {
  const TemporaryFolder folder;
  testing::GgufBuilder builder;
  builder.key("general.architecture", "llama").key("prism.hadamard.version", 1U);
  builder.tensor("blk.0.attn_q.weight", {32, 2}, 8, 68);
  testing::write_file(folder / "in/r.gguf", builder.bytes());
  const MetaGraphPtr rotated = open(folder / "in/r.gguf");
  ASSERT_EQ(rotated->notes.size(), 1u);
  EXPECT_EQ(rotated->notes[0].severity, Severity::warning);
  EXPECT_TRUE(says(rotated->notes[0].text, "'prism.hadamard.version' says that weights are stored rotated"));
  EXPECT_EQ(refusal(*rotated, {}, folder / "o.gguf"), "");
  for (const ExportOptions& as :
       {options({{"outtype", "f16"}}), options({{"outtype", "q4_0"}}), options({{"type", "attn_q=q4_0"}})})
    EXPECT_TRUE(says(refusal(*rotated, as, folder / "o.gguf"), "are stored rotated"));
  EXPECT_TRUE(says(refusal(*rotated, {}, folder / "o.safetensors"), "are stored rotated"));
}

}  // namespace
}  // namespace loadline
