// What plan says of a forward pass whose operators nobody knows.
#include "app/cli/plan/plan_view.h"
#include "core/base/error.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "tests/forward/graph_builder.h"

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

TEST(ForwardText, AnUnknownFamilyGetsBoundsAndNoPass) {
  const MetaGraph graph =
      foreign(R"({"architectures":["NewForCausalLM"],"num_hidden_layers":2,"hidden_size":64,
                                      "num_attention_heads":4,"torch_dtype":"bfloat16"})");
  const RequestPass answer(graph, {.batch = 2, .sequence = 16, .past = 4}, nullptr);
  EXPECT_EQ(answer.pass(), nullptr);
  const Json json = forward_json(answer);
  EXPECT_EQ(json["source"], "estimate");
  EXPECT_EQ(json["activation_lower_bound"], 2 * 16 * 96 * 2);
  EXPECT_EQ(json["kv_bytes"], 2 * 20 * 2 * 2 * 64 * 2);
  EXPECT_FALSE(json.contains("activation_peak"));
  const std::string text = forward_text(answer);
  EXPECT_NE(text.find("which the load above does not include"), std::string::npos) << text;
  EXPECT_NE(text.find("activations at least 6.00 KiB, if every linear layer sees all tokens"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the manual tells how to add one"), std::string::npos) << text;
}

TEST(ForwardText, AConfigurationThatIsNoneLeavesTheLoad) {
  const MetaGraph graph = foreign("{\"hidden_size\": 64,}");
  const RequestPass answer(graph, {.batch = 1, .sequence = 16}, nullptr);
  EXPECT_EQ(answer.pass(), nullptr);
  const std::string text = forward_text(answer);
  EXPECT_NE(
      text.find("config.json: line 1, column 20: not valid JSON: unexpected '}'; expected string literal"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("json.exception"), std::string::npos);
}

struct Preset {
  explicit Preset(std::string_view id) : graph(config_graph(find_preset(id)->config_json, "config.json")) {}
  Json json(const LoadRequest& arguments) const {
    return forward_json(RequestPass(graph, arguments, nullptr));
  }
  std::string text(const LoadRequest& arguments) const {
    return forward_text(RequestPass(graph, arguments, nullptr));
  }
  MetaGraph graph;
};

TEST(ForwardText, NotesWhatASequenceDoesNotSuit) {
  EXPECT_EQ(Preset("gpt2").json({.batch = 1, .sequence = 1024})["notes"], Json::array());
  EXPECT_EQ(Preset("gpt2").json({.batch = 1, .sequence = 3000, .past = 48})["notes"],
            Json::array({"3,048 positions, the model has 1,024 (wpe.weight)"}));
  EXPECT_EQ(Preset("opt-125m").json({.batch = 1, .sequence = 2048})["notes"], Json::array());
  EXPECT_NE(
      Preset("opt-125m").text({.batch = 1, .sequence = 2049}).find("2,049 positions, the model has 2,048"),
      std::string::npos);
  EXPECT_NE(
      Preset("vit-base").text({.batch = 1, .sequence = 16}).find("the number of tokens changes nothing"),
      std::string::npos);
}

TEST(ForwardText, AnEncoderRunsOnce) {
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

TEST(ForwardText, TellsWhatATokenAddsOnceWindowsAreFull) {
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
    LoadRequest arguments = {.batch = 1, .sequence = 16, .past = 3};
    arguments.forward.profile = profile;
    EXPECT_EQ(forward_text(RequestPass(wide, arguments, nullptr)).find("until"), std::string::npos)
        << profile;
  }
}

TEST(ForwardText, SaysThatAPassIsOfTheTextModel) {
  const MetaGraph graph = config_graph(
      R"({"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],"vision_config":{},
          "text_config":{"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
                         "head_dim":16,"intermediate_size":96,"vocab_size":100}})",
      "config.json");
  const RequestPass answer(graph, {.batch = 1, .sequence = 16}, nullptr);
  EXPECT_NE(forward_text(answer).find("vision_config is not described: text model only"), std::string::npos)
      << forward_text(answer);
  const std::vector<Note> notes = model_claims(graph, *built_in_assets()).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].text, "vision_config is not described: text model only");
}

// y = x + x with these sizes, all of them the file's own names unless they are B or S.
MetaGraph file_graph(const std::vector<NamedSize>& sizes) {
  MetaGraph graph;
  graph.format = "onnx";
  graph.files = {{"m.onnx", 100}};
  testing::Builder::Sizes shape;
  for (const NamedSize& size : sizes) shape.push_back(size.taken_as);
  ForwardGraph forward = testing::Builder().op("Add", {"x"}, "y", shape).returns({"y"}).graph();
  for (const NamedSize& size : sizes)
    if (const auto symbol = size.taken_as.as_symbol(); symbol && *symbol > kPast)
      forward.symbols.push_back(size.name);
  forward.values[0].shape = shape;
  forward.sizes = sizes;
  graph.forward = forward;
  return graph;
}

NamedSize named(const std::string& name, SymbolId symbol, bool guessed = false) {
  return {name, SizePoly::symbol(symbol), guessed};
}

std::string refusal(const MetaGraph& graph, const LoadRequest& arguments) {
  try {
    const RequestPass answer(graph, arguments, nullptr);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
}

TEST(ForwardText, SizesByTheFilesOwnNames) {
  const SymbolId own{3}, other{4};
  const MetaGraph graph =
      file_graph({named("s77", kBatch, true), named("height", own), named("width", other)});
  const RequestPass plain(graph, {.batch = 2, .sequence = 1}, nullptr);
  EXPECT_EQ(forward_json(plain)["dims"].dump(), R"({"s77":2,"height":1,"width":1})");
  const std::string text = forward_text(plain);
  EXPECT_NE(text.find("  guessed: s77 as the batch; --dim sets them\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  height and width taken as 1: --dim sets them\n"), std::string::npos) << text;

  const RequestPass chosen(graph, {.sizes = {{"height", 30}, {"s77", 5}}}, nullptr);
  EXPECT_EQ(forward_json(chosen)["dims"].dump(), R"({"s77":5,"height":30,"width":1})");
  EXPECT_EQ(forward_json(chosen)["batch"], 5);
  EXPECT_EQ(forward_json(chosen)["activation_peak"], 2 * 5 * 30 * 4);
  EXPECT_NE(forward_text(chosen).find("  width taken as 1: --dim sets it\n"), std::string::npos)
      << forward_text(chosen);
  ASSERT_NE(chosen.pass(), nullptr);
  EXPECT_EQ(chosen.pass()->symbols, (std::vector<std::uint64_t>{5, 1, 0, 30, 1}));
}

TEST(ForwardText, SizesThatCannotBeChosen) {
  const MetaGraph graph = file_graph({named("batch", kBatch), named("n", kBatch)});
  EXPECT_EQ(refusal(graph, {.sizes = {{"depth", 3}}}),
            "the file has no size that is called 'depth'; it has batch, n");
  EXPECT_EQ(refusal(graph, {.sizes = {{"batch", 3}, {"n", 4}}}),
            "'batch' and 'n' are the same size, B: it cannot be 3 and 4");
  EXPECT_EQ(refusal(graph, {.batch = 2, .sizes = {{"batch", 3}}}),
            "2 sequences contradict the named sizes, which say 3");
  EXPECT_EQ(refusal(graph, {.sizes = {{"batch", 3}, {"n", 3}}}), "none");
  MetaGraph total = graph;
  total.forward->sizes = {
      {"total", *SizePoly::sum(SizePoly::symbol(kSequence), SizePoly::symbol(kPast)), false}};
  EXPECT_EQ(refusal(total, {.sizes = {{"total", 3}}}), "'total' is S + P: choose those");
  EXPECT_EQ(refusal(foreign(""), {.sizes = {{"batch", 3}}}),
            "named sizes are for files that list their operators: this model's sizes have no names");
}

TEST(ForwardText, AFileOfFixedSizesSaysSo) {
  MetaGraph graph = file_graph({});
  for (Value& value : graph.forward->values) value.shape = testing::Builder::Sizes{SizePoly(4), SizePoly(16)};
  const std::string text = forward_text(RequestPass(graph, {.batch = 2, .sequence = 8}, nullptr));
  EXPECT_TRUE(text.starts_with("Forward pass with the file's own sizes, profile onnxruntime:\n")) << text;
  EXPECT_NE(text.find("no size in the file depends on --batch, --seq or --past"), std::string::npos) << text;
  graph.forward->values[1].shape.reset();
  EXPECT_NE(forward_text(RequestPass(graph, {.sequence = 8}, nullptr))
                .find("at least: the size of 1 value is not known"),
            std::string::npos);
  graph.forward->values[0].shape.reset();
  const std::string nothing = forward_text(RequestPass(graph, {.sequence = 8}, nullptr));
  EXPECT_NE(nothing.find("activations not known: the sizes of 2 values are not known"), std::string::npos)
      << nothing;
  EXPECT_EQ(nothing.find("alive there"), std::string::npos) << nothing;
}

TEST(ForwardText, WithoutAConfigurationThereIsNothingToSay) {
  const MetaGraph graph = foreign("");
  EXPECT_THROW(RequestPass(graph, {.batch = 1, .sequence = 16}, nullptr), Error);
  const RequestPass unasked(graph, {}, nullptr);
  EXPECT_EQ(unasked.pass(), nullptr);
}

}  // namespace
}  // namespace loadline::cli
