// A Hugging Face model beside its GGUF file: the keys that say how it runs.
#include "app/report/match_models.h"

#include "core/forward/model/known_models.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace loadline::report {
namespace {

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "torch_dtype": "float32"})";

class ModelAndFile : public ::testing::Test {
 protected:
  ModelAndFile() {
    Progress progress;
    synthesize(config_graph(kConfig, "config.json"), folder_ / "m", {.seed = 1}, progress);
    synthesize(config_graph(kConfig, "config.json"), folder_ / "m.gguf", {.seed = 1, .to = "gguf"}, progress);
  }

  // "key: a | b", with "-" for what a model has not
  std::vector<std::string> differences(bool file_first = false) {
    const MetaGraph model = open_model(folder_ / "m", {}), file = open_model(folder_ / "m.gguf", {});
    Progress progress;
    std::vector<std::string> lines;
    for (const MetadataDifference& found : file_first
                                               ? diff_model_metadata(file, model, true, progress, problem_)
                                               : diff_model_metadata(model, file, true, progress, problem_))
      lines.push_back(found.key + ": " + found.a.value_or("-") + " | " + found.b.value_or("-"));
    return lines;
  }

  // Replaces one text in the model's config.json.
  void set(const std::string& from, const std::string& to) {
    const std::string path = folder_ / "m" + "/config.json";
    std::ifstream in(path);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    std::ofstream(path) << text.replace(at, from.size(), to);
  }

  testing::TemporaryFolder folder_;
  std::string problem_;
};

using Lines = std::vector<std::string>;

TEST_F(ModelAndFile, HaveTheSameKeys) {
  EXPECT_EQ(differences(), Lines());
  EXPECT_EQ(differences(true), Lines());
  EXPECT_EQ(problem_, "");
}

TEST_F(ModelAndFile, AnotherSettingIsAnotherKey) {
  set("10000", "5000");
  EXPECT_EQ(differences(), Lines{"llama.rope.freq_base: 5000 | 10000"});
  EXPECT_EQ(differences(true), Lines{"llama.rope.freq_base: 10000 | 5000"});
}

TEST_F(ModelAndFile, AModelThatCannotBeMappedSaysWhy) {
  set("num_attention_heads", "number_of_heads");
  EXPECT_EQ(differences(), Lines());
  EXPECT_NE(problem_.find("not set: 'head_dim', 'num_attention_heads'"), std::string::npos) << problem_;
}

}  // namespace
}  // namespace loadline::report
