// GGUF files as Hugging Face folders. That transformers loads them is for tests/interop/test_gguf_back.py.
#include "core/base/error.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/known_models.h"
#include "exporters/gguf/hugging_face.h"
#include "exporters/preflight.h"
#include "exporters/synth.h"
#include "tests/exporters/export_support.h"

#include <functional>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using export_tests::convert;
using export_tests::open;
using testing::TemporaryFolder;

class HuggingFaceModels : public ::testing::Test {
 protected:
  void SetUp() override {
    Progress progress;
    synthesize(
        config_graph(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
      "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
      "tie_word_embeddings": false})",
                     "config.json"),
        folder_ / "m", {.seed = 1, .max_shard_bytes = 0, .overwrite = false}, progress);
    model_ = open(folder_ / "m");
    convert(model_, folder_ / "m.gguf", {});
    gguf_ = open(folder_ / "m.gguf");
  }

  std::string refusal(const std::function<void(MetaGraph&)>& change) const {
    MetaGraph graph = *gguf_;
    change(graph);
    try {
      (void)hugging_face_model(graph, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  MetaGraphPtr model_, gguf_;
};

Tensor& named(MetaGraph& graph, std::string_view name) {
  return *std::ranges::find_if(graph.tensors,
                               [&](const Tensor& tensor) { return tensor.name.view() == name; });
}

TEST_F(HuggingFaceModels, AreWhatTheFilesWereMadeOf) {
  convert(gguf_, folder_ / "back", {});
  const MetaGraphPtr back = open(folder_ / "back");
  ASSERT_EQ(back->tensors.size(), model_->tensors.size());
  for (const Tensor& tensor : model_->tensors) {
    const Tensor& restored = export_tests::tensor_named(*back, tensor.name.str());
    EXPECT_EQ(restored.dtype, DType::bf16);
    EXPECT_EQ(export_tests::tensor_content(back, restored), export_tests::tensor_content(model_, tensor))
        << tensor.name.view();
  }
  const ModelConfig config(*find_text(*back, kConfigKey), "config.json");
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.get("num_key_value_heads"), Datum(std::int64_t{2}));
  EXPECT_EQ(config.text("torch_dtype", ""), "bfloat16");
}

TEST_F(HuggingFaceModels, KeepWhatTheFileSaysOfItself) {
  MetaGraph graph = *gguf_;
  graph.metadata.push_back({"general.license", std::string("apache-2.0")});
  graph.metadata.push_back({"llama.of_no_family", std::uint32_t{7}});
  const auto gguf = std::make_shared<const MetaGraph>(std::move(graph));
  const Preflight planned = preflight(*gguf, find_exporter("safetensors"), {}, folder_ / "back");
  ASSERT_EQ(planned.left_out.size(), 1u) << ::testing::PrintToString(planned.left_out);
  EXPECT_EQ(planned.left_out.front(),
            "1 metadata key is not written, safetensors has no place for it: 'llama.of_no_family'");
  convert(gguf, folder_ / "back", {});
  const MetaGraphPtr back = open(folder_ / "back");
  EXPECT_EQ(*find_text(*back, "general.license"), "apache-2.0");
  EXPECT_EQ(find_metadata(*back, "general.architecture"), nullptr);
  convert(back, folder_ / "again.gguf", {});
  EXPECT_EQ(*find_text(*open(folder_ / "again.gguf"), "general.license"), "apache-2.0");
}

TEST_F(HuggingFaceModels, KeepTheFilesNamesIfAsked) {
  ExportOptions options;
  options.keep_names = true;
  EXPECT_FALSE(hugging_face_model(*gguf_, options));
  convert(gguf_, folder_ / "kept", options);
  EXPECT_EQ(export_tests::tensor_named(*open(folder_ / "kept"), "blk.0.attn_q.weight").dtype, DType::bf16);
}

TEST_F(HuggingFaceModels, TheModelsOwnNamesAreKept) {
  MetaGraph graph = *gguf_;
  named(graph, "blk.1.ffn_up.weight").name = Name("model.layers.1.mlp.up_proj.weight");
  EXPECT_FALSE(hugging_face_model(graph, {}));
}

TEST_F(HuggingFaceModels, FilesThatDoNotFitTheirKeysAreErrors) {
  EXPECT_EQ(refusal([](MetaGraph&) {}), "");
  EXPECT_NE(refusal([](MetaGraph& graph) {
              named(graph, "blk.1.ffn_up.weight").name = Name("elsewhere");
            }).find("'model.layers.1.mlp.up_proj.weight': the file does not hold"),
            std::string::npos);
  EXPECT_NE(refusal([](MetaGraph& graph) {
              named(graph, "blk.1.ffn_up.weight").shape = {96, 63};
            }).find("has the shape [96, 63], the file's keys say [96, 64]"),
            std::string::npos);
}

TEST_F(HuggingFaceModels, LayersThatTheKeysDoNotCountAreErrors) {
  const std::string error = refusal([](MetaGraph& graph) {
    std::ranges::find(graph.metadata, "llama.block_count", &MetaEntry::key)->value = std::uint32_t{1};
  });
  EXPECT_NE(error.find("is of layer 1, and the key 'llama.block_count' says that there are 1"),
            std::string::npos)
      << error;
}

TEST_F(HuggingFaceModels, VectorsStayF32InEveryFloatType) {
  ExportOptions half;
  half.outtype = DType::f16;
  convert(gguf_, folder_ / "half.gguf", half);
  const MetaGraphPtr read = open(folder_ / "half.gguf");
  EXPECT_EQ(export_tests::tensor_named(*read, "blk.0.attn_norm.weight").dtype, DType::f32);
  EXPECT_EQ(export_tests::tensor_named(*read, "blk.0.attn_q.weight").dtype, DType::f16);
}

TEST_F(HuggingFaceModels, KeysAreComparedWithoutATokenizerToo) {
  testing::write_file(folder_ / "m/tokenizer.json",
                      R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0},
                          "merges": []}})");
  const auto keys = counterpart_keys(*open(folder_ / "m"), *gguf_);
  ASSERT_TRUE(keys);
  EXPECT_NE(keys->problem.find("SHA-256"), std::string::npos) << keys->problem;
  EXPECT_TRUE(find_metadata(keys->graph, "llama.block_count"));
  EXPECT_FALSE(find_metadata(keys->graph, "tokenizer.ggml.model"));
}

TEST_F(HuggingFaceModels, TensorsWithoutAPlaceAreNamed) {
  MetaGraph graph = *gguf_;
  graph.tensors.push_back(graph.tensors.front());
  graph.tensors.back().name = Name("blk.0.another.weight");
  const std::vector<std::string> lost = hugging_face_model(graph, {}).value().lost;
  EXPECT_TRUE(std::ranges::any_of(lost, [](const std::string& sentence) {
    return sentence.find("blk.0.another.weight") != std::string::npos;
  }));
}

}  // namespace
}  // namespace loadline
