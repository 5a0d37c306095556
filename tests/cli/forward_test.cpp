// What plan says of a forward pass whose operators nobody knows.
#include "app/cli/forward_options.h"
#include "core/base/error.h"
#include "core/forward/claims.h"
#include "core/forward/config_graph.h"
#include "core/forward/presets.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

MetaGraph foreign(std::string_view config) {
  MetaGraph graph;
  graph.format = "safetensors";
  graph.files = {{"m.safetensors", 1 << 20}};
  graph.storages = {plain_storage(FileId{0}, 0, 96 * 64 * 2)};
  graph.tensors = {{"layers.0.up.weight", DType::bf16, {96, 64}, {}, StorageId{0}, 0}};
  if (!config.empty()) graph.metadata = {{std::string(kConfigKey), std::string(config)}};
  return graph;
}

Context context() {
  Context context;
  context.assets = built_in_assets;
  return context;
}

TEST(ForwardAnswer, AnUnknownFamilyGetsBoundsAndNoPass) {
  const MetaGraph graph =
      foreign(R"({"architectures":["NewForCausalLM"],"num_hidden_layers":2,"hidden_size":64,
                                      "num_attention_heads":4,"torch_dtype":"bfloat16"})");
  const ForwardAnswer answer(context(), graph, {.batch = 2, .sequence = 16, .past = 4});
  EXPECT_EQ(answer.pass(), nullptr);
  const Json json = answer.json();
  EXPECT_EQ(json["source"], "estimate");
  EXPECT_EQ(json["activation_lower_bound"], 2 * 16 * 96 * 2);
  EXPECT_EQ(json["kv_bytes"], 2 * 20 * 2 * 2 * 64 * 2);
  EXPECT_FALSE(json.contains("activation_peak"));
  const std::string text = answer.text();
  EXPECT_NE(text.find("which the load above does not include"), std::string::npos) << text;
  EXPECT_NE(text.find("activations at least 6.00 KiB, if every linear layer sees all tokens"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("README tells how to add one"), std::string::npos) << text;
}

TEST(ForwardAnswer, AConfigurationThatIsNoneLeavesTheLoad) {
  const MetaGraph graph = foreign("{\"hidden_size\": 64,}");
  const ForwardAnswer answer(context(), graph, {.batch = 1, .sequence = 16});
  EXPECT_EQ(answer.pass(), nullptr);
  const std::string text = answer.text();
  EXPECT_NE(
      text.find("config.json: line 1, column 20: not valid JSON: unexpected '}'; expected string literal"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("json.exception"), std::string::npos);
}

struct Preset {
  explicit Preset(std::string_view id) : graph(config_graph(find_preset(id)->config_json, "config.json")) {}
  Json json(const ForwardArguments& arguments) const {
    return ForwardAnswer(context(), graph, arguments).json();
  }
  std::string text(const ForwardArguments& arguments) const {
    return ForwardAnswer(context(), graph, arguments).text();
  }
  MetaGraph graph;
};

TEST(ForwardAnswer, NotesWhatASequenceDoesNotSuit) {
  EXPECT_EQ(Preset("gpt2").json({.batch = 1, .sequence = 1024})["notes"], Json::array());
  EXPECT_EQ(Preset("gpt2").json({.batch = 1, .sequence = 3000, .past = 48})["notes"],
            Json::array({"3,048 positions, the model has 1,024 (wpe.weight)"}));
  EXPECT_EQ(Preset("opt-125m").json({.batch = 1, .sequence = 2048})["notes"], Json::array());
  EXPECT_NE(
      Preset("opt-125m").text({.batch = 1, .sequence = 2049}).find("2,049 positions, the model has 2,048"),
      std::string::npos);
  EXPECT_NE(Preset("vit-base").text({.batch = 1, .sequence = 16}).find("--seq changes nothing"),
            std::string::npos);
}

TEST(ForwardAnswer, AnEncoderRunsOnce) {
  const Preset whisper("whisper-tiny");
  const Json first = whisper.json({.batch = 1, .sequence = 448});
  const Json later = whisper.json({.batch = 1, .sequence = 1, .past = 447});
  EXPECT_TRUE(first["activation_peak_op"].get<std::string>().find("encoder.") != std::string::npos);
  EXPECT_TRUE(later["activation_peak_op"].get<std::string>().find("encoder.layers") == std::string::npos);
  EXPECT_EQ(later["kv_bytes"], first["kv_bytes"]);
  EXPECT_EQ(later["notes"][0], "the encoder has run before: only what it left in the cache is counted");
  // T5: six layers, keys and values of 512 source tokens and of 513 target tokens, 512 wide
  const Json t5 = Preset("t5-small").json({.batch = 1, .sequence = 1, .past = 512});
  EXPECT_EQ(t5["kv_bytes"], 6 * 2 * (512 + 513) * 512 * 4);
  EXPECT_TRUE(t5["activation_peak_op"].get<std::string>().find("encoder.block") == std::string::npos);
}

TEST(ForwardAnswer, TellsWhatATokenAddsOnceWindowsAreFull) {
  const std::string text = Preset("gemma-3-1b").text({.batch = 1, .sequence = 4096});
  EXPECT_NE(text.find("26,624 bytes per token of each sequence until windows of 512 are full, then 4,096"),
            std::string::npos)
      << text;
  const Json json = Preset("gemma-3-1b").json({.batch = 1, .sequence = 4096});
  EXPECT_EQ(json["kv_bytes_per_token"], 26'624);
  EXPECT_EQ(json["kv_bytes_per_next_token"], 4'096);
  EXPECT_EQ(Preset("llama-3-8b").text({.batch = 1, .sequence = 16}).find("until"), std::string::npos);
  // a window that no pass fills
  const MetaGraph wide = config_graph(
      R"({"model_type":"mistral","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
          "intermediate_size":96,"vocab_size":100,"sliding_window":4000000000000000000})",
      "config.json");
  for (const char* profile : {"fused", "ggml", "hf_eager", "hf_sdpa"}) {
    ForwardArguments arguments = {.batch = 1, .sequence = 16, .past = 3};
    arguments.options.profile = profile;
    EXPECT_EQ(ForwardAnswer(context(), wide, arguments).text().find("until"), std::string::npos) << profile;
  }
}

TEST(ForwardAnswer, SaysThatAPassIsOfTheTextModel) {
  const MetaGraph graph = config_graph(
      R"({"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],"vision_config":{},
          "text_config":{"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
                         "head_dim":16,"intermediate_size":96,"vocab_size":100}})",
      "config.json");
  const ForwardAnswer answer(context(), graph, {.batch = 1, .sequence = 16});
  EXPECT_NE(answer.text().find("vision_config is not described: text model only"), std::string::npos)
      << answer.text();
  const std::vector<Note> notes = model_claims(graph, *built_in_assets()).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].text, "vision_config is not described: text model only");
}

TEST(ForwardAnswer, WithoutAConfigurationThereIsNothingToSay) {
  const MetaGraph graph = foreign("");
  EXPECT_THROW(ForwardAnswer(context(), graph, {.batch = 1, .sequence = 16}), Error);
  const ForwardAnswer unasked(context(), graph, {});
  EXPECT_EQ(unasked.pass(), nullptr);
}

}  // namespace
}  // namespace loadline::cli
