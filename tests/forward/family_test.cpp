// Assets, and what they make of models whose figures are published.

#include "core/assets/asset_file.h"
#include "core/assets/expression.h"
#include "core/forward/family/architecture.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/graph/packed/quantization.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::tests {

// --- Assets and what they make of a configuration and of a file.

namespace {

constexpr std::string_view kAsset = R"json({
  "family": "tiny",
  "model_types": ["tiny"],
  "let": {"d": "hidden_size", "L": "layers", "E": "experts ?? 0"},
  "prefix": ["model."],
  "spellings": {".weight": ".gamma"},
  "tie": "tie ?? true",
  "tied": {"head.weight": "model.embed.weight"},
  "absent": ["have @model.inv_freq[d / 2]!:F32"],
  "extra": ["each i in L: mask @model.layers.{i}"],
  "mask": ["have @mask[4, 4]!:F32"],
  "ignore": ["vision.*"],
  "main": [
    "x = embed ids @model.embed[10, d]",
    "each i in L: layer @model.layers.{i}",
    "y = linear x @head[10, d]"
  ],
  "layer": [
    "h = norm x @norm[d]",
    "h = linear h @proj[d, d]+b(bias ?? false)",
    "h = experts h @up.{e}[d, d] count=E if E > 0",
    "x = add x h"
  ]
})json";

forward::Architecture tiny() { return forward::parse_architecture(kAsset, "tiny.json"); }

std::string error_with(std::string_view from, std::string_view to) {
  std::string text(kAsset);
  text.replace(text.find(from), from.size(), to);
  return testing::facts_of([&] { forward::parse_architecture(text, "tiny.json"); });
}

TEST(Architecture, FaultsAreToldWithLineAndColumn) {
  struct Row {
    const char *from, *to, *facts;
  };
  const Row rows[] = {
      {R"("family": "tiny",)", "", "malformed tiny.json 1 1 'family'"},
      {"h = norm x @norm[d]", "h norm x @norm[d]", "malformed tiny.json 19 15 '='"},
      {"h = norm x @norm[d]", "h = norm x @norm(d)", "malformed tiny.json 19 22 '['"},
      {"h = norm x @norm[d]", "h = norm x @norm[d]+c", "malformed tiny.json 19 26 '+b'"},
      {"h = norm x @norm[d]", "h = norm x @norm[d]:Q9", "malformed tiny.json 19 28 'Q9'"},
      {"h = norm x @norm[d]", "h = norm x @norm[d", "malformed tiny.json 19 24 ']'"},
      {"h = norm x @norm[d]", "h = norm x @norm[d] inner=1 more", "malformed tiny.json 19 38 '=' 'more'"},
      {"x = add x h", "x = add x h rows=1", "malformed tiny.json 22 18 'add' 'rows'"},
      {"each i in L: layer", "each i of L: layer", "malformed tiny.json 15 13 'in'"},
      {"each i in L: layer", "each i in L: no_such", "malformed tiny.json 15 6 'no_such'"},
      {"x = add x h", "each j in 2: layer", "malformed tiny.json 22 6 6"},
      {R"("main": [)", R"("other": [)", "malformed tiny.json 1 1 'main'"},
      {R"("tie ?? true")", R"("tie ??")", "malformed tiny.json 7 17"},
      {R"(["vision.*"])", R"({"a": "b"})", "malformed tiny.json 12 13 'ignore'"},
      {R"("ignore": )", R"("family": "x", "ignore": )", "malformed tiny.json 12 14 'family'"},
      {R"("ignore": )", R"("ignore" )", "malformed tiny.json 12 12 '[' ':'"},
  };
  for (const Row& row : rows) EXPECT_EQ(error_with(row.from, row.to), row.facts) << row.to;
}

forward::ModelConfig config(std::string_view more = "") {
  return forward::ModelConfig(fmt::format(R"({{"model_type":"tiny","hidden_size":8,"layers":2{}}})", more),
                              "config.json");
}

std::vector<std::string> names_of(const std::vector<forward::BoundWeight>& weights) {
  std::vector<std::string> names;
  for (const forward::BoundWeight& weight : weights) names.push_back(weight.name);
  return names;
}

TEST(Bind, AConfigurationAloneSaysWhichTensorsThereAre) {
  const forward::Architecture architecture = tiny();
  const forward::BoundModel model =
      forward::bind_architecture(architecture, config(R"(,"bias":true,"experts":2)"), nullptr);
  EXPECT_EQ(names_of(model.asked),
            (std::vector<std::string>{
                "model.embed.weight", "model.layers.0.norm.weight", "model.layers.0.proj.weight",
                "model.layers.0.proj.bias", "model.layers.0.up.0.weight", "model.layers.0.up.1.weight",
                "model.layers.1.norm.weight", "model.layers.1.proj.weight", "model.layers.1.proj.bias",
                "model.layers.1.up.0.weight", "model.layers.1.up.1.weight"}));
  EXPECT_EQ(names_of(model.absent), std::vector<std::string>{"model.inv_freq"});
  ASSERT_EQ(model.tied.size(), 1u);
  EXPECT_EQ(model.tied[0].first, "head.weight");
  EXPECT_EQ(model.ops.size(), 10u);
  EXPECT_EQ(model.ops.back().weights[0].name, "model.embed.weight");
  EXPECT_EQ(model.ops[2].name, "model.layers.0.proj");
  // each value has a name of its own, and each input stands before it is used
  EXPECT_EQ(model.values[model.ops[1].outputs[0]], "h");
  EXPECT_EQ(model.values[model.ops[5].outputs[0]], "h.3");
  const forward::BoundModel untied =
      forward::bind_architecture(architecture, config(R"(,"tie":false)"), nullptr);
  EXPECT_EQ(names_of(untied.asked).back(), "head.weight");
  EXPECT_EQ(
      names_of(forward::bind_architecture(architecture, config(R"(,"loadline_stored_buffers":true)"), nullptr)
                   .asked)
          .back(),
      "model.layers.1.mask");
}

struct Stored {
  std::string name;
  graph::Shape shape;
  graph::DType dtype = graph::DType::f32;
};
graph::MetaGraph file_with(const std::vector<Stored>& tensors) {
  graph::MetaGraph graph;
  graph.files.push_back({"m.safetensors", 1 << 20});
  for (const auto& [name, shape, dtype] : tensors) {
    const graph::StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(
        graph::plain_storage(graph::FileId{0}, 0, *graph::byte_size(dtype, *graph::element_count(shape))));
    graph.tensors.push_back({graph::Name(name), dtype, shape, {}, id, 0});
  }
  graph.logical = graph::find_logical_tensors(graph, {}).tensors;
  return graph;
}

TEST(Bind, AFileDecidesWhatThereIs) {
  const forward::Architecture architecture = tiny();
  const graph::MetaGraph graph = file_with({{"embed.weight", {10, 8}},
                                            {"layers.0.norm.gamma", {8}},
                                            {"layers.0.proj.weight", {8, 4}},
                                            {"layers.0.proj.bias", {8}},
                                            {"layers.1.norm.weight", {8}},
                                            {"layers.1.mask", {4, 4}},
                                            {"vision.tower", {2}},
                                            {"lora.a", {3}}});
  const forward::BoundModel model = forward::bind_architecture(architecture, config(), &graph);
  EXPECT_EQ(model.claims.missing, std::vector<std::string>{"model.layers.1.proj.weight"});
  ASSERT_EQ(model.claims.disagreements.size(), 1u);
  EXPECT_EQ(testing::facts(model.claims.disagreements[0].text), "config.json 8,8 8,4");
  EXPECT_EQ(model.claims.unclaimed, std::vector<graph::TensorId>{graph::TensorId{7}});
  EXPECT_EQ(model.claims.unclaimed_bytes, 12u);
  EXPECT_EQ(model.claims.ignored, std::vector<graph::TensorId>{graph::TensorId{6}});
  EXPECT_EQ(model.claims.extra, std::vector<graph::TensorId>{graph::TensorId{5}});
  EXPECT_EQ(model.ops.back().weights[0].tensor, graph::TensorId{0});  // the head is the embedding
  EXPECT_EQ(model.ops[2].weights.size(), 2u);                         // its bias is in the file
  EXPECT_EQ(model.ops[2].weights[0].shape, (graph::Shape{8, 8}));
}

TEST(Bind, QuantizedFilesAreClaimedWhole) {
  const forward::Architecture architecture = tiny();
  const graph::MetaGraph graph = file_with({{"model.embed.weight", {10, 8}},
                                            {"model.layers.0.norm.weight", {8}},
                                            {"model.layers.0.proj.qweight", {1, 8}, graph::DType::i32},
                                            {"model.layers.0.proj.qzeros", {1, 1}, graph::DType::i32},
                                            {"model.layers.0.proj.scales", {1, 8}, graph::DType::f16},
                                            {"model.layers.1.norm.weight", {8}},
                                            {"model.layers.1.proj.weight", {8, 8}, graph::DType::f8_e4m3},
                                            {"model.layers.1.proj.weight_scale_inv", {1, 1}}});
  const forward::BoundModel model = forward::bind_architecture(architecture, config(), &graph);
  EXPECT_TRUE(model.claims.missing.empty());
  EXPECT_TRUE(model.claims.unclaimed.empty());
  EXPECT_TRUE(model.claims.disagreements.empty());
  const forward::BoundWeight& packed = model.ops[2].weights[0];
  EXPECT_EQ(packed.name, "model.layers.0.proj.weight");
  EXPECT_EQ(packed.shape, (graph::Shape{8, 8}));
  EXPECT_EQ(packed.dtype, graph::DType::f16);
  EXPECT_EQ(packed.companions.size(), 2u);
}

TEST(Bind, WhatDoesNotFitNamesTheConfiguration) {
  const auto error_of = [](std::string_view more) {
    return testing::facts_of([&] { forward::bind_architecture(tiny(), config(more), nullptr); });
  };
  EXPECT_EQ(error_of(R"(,"experts":"x")"), "malformed config.json 'x' tiny.json 21 47 'experts'");
  EXPECT_EQ(error_of(R"(,"experts":1000000)"),
            "malformed config.json 'E ' 1000000 0 10000 tiny.json 21 40 'experts'");
  EXPECT_EQ(error_of(R"(,"torch_dtype":"float7")"), "malformed config.json 'float7'");
}

// What an asset with this main block, over a configuration, asks for.
std::vector<std::string> asked_by(std::string_view asset, std::string_view json,
                                  const graph::MetaGraph* graph = nullptr) {
  const forward::Architecture architecture = forward::parse_architecture(asset, "a.json");
  const forward::BoundModel model =
      forward::bind_architecture(architecture, forward::ModelConfig(json, "config.json"), graph);
  std::vector<std::string> names = names_of(model.asked);
  for (const forward::BoundOp& op : model.ops)
    for (const forward::BoundWeight& weight : op.weights)
      if (weight.tensor) names.push_back(weight.name);
  return names;
}

std::string error_from(std::string_view asset, std::string_view json,
                       const graph::MetaGraph* graph = nullptr) {
  return testing::facts_of([&] { asked_by(asset, json, graph); });
}

using Names = std::vector<std::string>;

TEST(Bind, CountsTheFieldsOfAnObject) {
  const std::string_view asset =
      R"json({"family":"f","let":{"n":"len(id2label)"},"main":["x = linear ids @head[n, 2]"]})json";
  const forward::Architecture architecture = forward::parse_architecture(asset, "a.json");
  const forward::BoundModel model = forward::bind_architecture(
      architecture, forward::ModelConfig(R"({"id2label":{"0":"a","1":"b","2":"c"}})", "config.json"),
      nullptr);
  EXPECT_EQ(model.asked[0].shape, (graph::Shape{3, 2}));
}

TEST(Bind, SeesKeysThatTheTextsPartHides) {
  const std::string_view asset =
      R"json({"family":"f","let":{"a":"size","b":"root.size"},"main":["x = embed ids @w[a, b]"]})json";
  const forward::Architecture architecture = forward::parse_architecture(asset, "a.json");
  const forward::ModelConfig nested(R"({"size":7,"text_config":{"size":3}})", "config.json");
  EXPECT_EQ(forward::bind_architecture(architecture, nested, nullptr).asked[0].shape, (graph::Shape{3, 7}));
}

std::string shown(const std::vector<forward::Setting>& settings) {
  std::string text;
  for (const forward::Setting& setting : settings) text += setting.name + "=" + setting.shown + ";";
  return text;
}

TEST(ModelConfig, ListsItsSettings) {
  const forward::ModelConfig flat(R"({"a":1,"b":null,"c":{"d":[1,2],"e":{}},"f":"x"})", "config.json");
  EXPECT_EQ(shown(flat.settings()), R"(a=1;c.d=[1,2];f="x";)");
  EXPECT_TRUE(flat.given("b") && flat.given("c.d"));
  EXPECT_FALSE(flat.given("g") || flat.given("a.b"));
  const forward::ModelConfig nested(
      R"({"size":7,"same":1,"text_config":{"size":3,"same":1,"c":{"d":2}},"v":0})", "config.json");
  EXPECT_EQ(shown(nested.settings()), "c.d=2;same=1;size=3;root.size=7;root.v=0;");
  std::string many = "{";
  for (int i = 0; i < 20'000; ++i) many += fmt::format(R"("k{}":1,)", i);
  EXPECT_EQ(forward::ModelConfig(many + R"("last":1})", "config.json").settings().back().name, "...");
}

// As transformers reads them: rope_scaling, an older name, hides rope_parameters.
TEST(ModelConfig, FindsRotarySettingsUnderEachName) {
  const auto get = [](const std::string& json, std::string_view key) {
    return forward::ModelConfig(json, "config.json").get(key).shown();
  };
  EXPECT_EQ(get(R"({"rope_parameters":{"rope_type":"yarn"}})", "rope.rope_type"), "'yarn'");
  EXPECT_EQ(
      get(R"({"rope_scaling":{"type":"linear"},"rope_parameters":{"rope_type":"yarn"}})", "rope.rope_type"),
      "'linear'");
  EXPECT_EQ(get(R"({"rope_scaling":{},"rope_parameters":{"rope_type":"yarn"}})", "rope.rope_type"), "'yarn'");
  EXPECT_EQ(get(R"({"rope_parameters":{"rope_theta":7},"rope_theta":9})", "rope.rope_theta"), "7");
  EXPECT_EQ(get(R"({"rope_scaling":{"factor":2},"rope_theta":9})", "rope.rope_theta"), "9");
  const std::string context = "original_max_position_embeddings";
  EXPECT_EQ(get(fmt::format(R"({{"rope_parameters":{{"{0}":7}},"{0}":9}})", context), "rope." + context),
            "9");
  EXPECT_EQ(get(R"({"factor":9})", "rope.factor"), "null");
  EXPECT_EQ(get(R"({"rope_parameters":{"full_attention":{"type":"yarn"}}})", "rope.full_attention.rope_type"),
            "'yarn'");
}

TEST(Bind, SettingsThatNobodyReadsAreLeft) {
  const auto left = [](std::string_view config) {
    const forward::Architecture architecture = forward::parse_architecture(
        R"json({"family":"f","settings":{"known.*":"true","heads":"value == size"},
                "let":{"wide":"size > 100 ? big : size ?? older"},
                "main":["x = embed ids @w[size, 2]"]})json",
        "a.json");
    const forward::ModelConfig model(config, "config.json");
    return forward::settings_text(forward::bind_architecture(architecture, model, nullptr).unaccounted);
  };
  EXPECT_EQ(left(R"({"size":7,"rms_norm_eps":1e-5,"rope_scaling":{"factor":2},"known":{"a":1}})"), "");
  EXPECT_EQ(left(R"({"size":7,"heads":7})"), "");
  EXPECT_EQ(left(R"({"size":7,"heads":8,"off":false,"on":true})"), "'heads' is 8, 'on' is true");
  // what a pass keeps grows by it
  EXPECT_EQ(left(R"({"size":7,"output_hidden_states":true,"output_attentions":false})"),
            "'output_hidden_states' is true");
  // what an expression names stands behind what it has looked at
  EXPECT_EQ(left(R"({"size":7,"big":1,"older":2,"bigger":3})"), "'bigger' is 3");
}

// Another model's own prefix may stand before the names of its language model.
TEST(Bind, PrefixesOfPartsAreFoundInTheFile) {
  const forward::Architecture architecture = forward::parse_architecture(
      R"json({"family":"f","prefix":["model."],"main":["x = embed ids @model.w[size, 2]"]})json", "a.json");
  const auto missing = [&](const char* name, const char* config) {
    graph::MetaGraph graph;
    graph.storages = {graph::shapes_only_storage(7 * 2 * 4)};
    graph.tensors = {{name, graph::DType::f32, {7, 2}, {}, graph::StorageId{0}, 0}};
    const forward::ModelConfig model(config, "config.json");
    return forward::bind_architecture(architecture, model, &graph).claims.missing.size();
  };
  const char* const nested = R"({"text_config":{"size":7}})";
  EXPECT_EQ(missing("model.text_model.w.weight", nested), 0u);
  EXPECT_EQ(missing("thinker.language_model.model.w.weight", nested), 0u);
  EXPECT_EQ(missing("thinker.vision_model.w.weight", nested), 1u);
  EXPECT_EQ(missing("model.text_model.w.weight", R"({"size":7})"), 1u);
}

// A row of the asset goes before the rule that nothing grows by what is turned off.
TEST(Bind, SettingsThatAnAssetLimitsAreLeftWhenTheyAreOff) {
  const auto left = [](std::string_view config) {
    const forward::Architecture architecture = forward::parse_architecture(
        R"json({"family":"f","settings":{"affine":"value"},"let":{"shown":"given('older') ? older ?? 1 : 2"},
                "main":["x = embed ids @w[shown, 2]"]})json",
        "a.json");
    const forward::ModelConfig model(config, "config.json");
    const forward::BoundModel bound = forward::bind_architecture(architecture, model, nullptr);
    return fmt::format("{} {}", bound.asked.front().shape[0], forward::settings_text(bound.unaccounted));
  };
  EXPECT_EQ(left(R"({"affine":true,"older":3})"), "3 ");
  EXPECT_EQ(left(R"({"affine":false,"older":null})"), "1 'affine' is false");
  EXPECT_EQ(left(R"({"of_nobody":false})"), "2 ");
}

std::string packing_left(std::string_view quantization, forward::PackedUse use) {
  const forward::ModelConfig config(
      fmt::format(R"({{"hidden_size":8,"quantization_config":{}}})", quantization), "config.json");
  return forward::settings_text(forward::unaccounted_packing(config.settings(), use));
}

TEST(PackedSettings, AreAccountedForByWhatIsMadeOfThem) {
  using Use = forward::PackedUse;
  const std::string gptq = R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,"sym":true,
      "damp_percent":0.1,"dataset":"c4","checkpoint_format":"gptq","meta":{"quantizer":["x"]}})";
  EXPECT_EQ(packing_left(gptq, Use::unpack), "");
  EXPECT_EQ(packing_left(gptq, Use::stored), "");
  const std::string alone = packing_left(gptq, Use::foretell);  // no size follows from these settings
  EXPECT_NE(alone.find(R"('quantization_config.quant_method' is "gptq")"), std::string::npos) << alone;
  const std::string fp8 = R"({"quant_method":"fp8","weight_block_size":[128,128],"fmt":"e4m3",
      "activation_scheme":"dynamic","scale_fmt":"ue8m0","modules_to_not_convert":["lm_head"]})";
  for (const Use use : {Use::unpack, Use::stored, Use::foretell}) EXPECT_EQ(packing_left(fp8, use), "");
  // experts in another type than all else
  EXPECT_EQ(packing_left(R"({"quant_method":"fp8","moe_quant_algo":"NVFP4"})", Use::foretell),
            R"('quantization_config.moe_quant_algo' is "NVFP4")");
  for (const Use use : {Use::unpack, Use::stored, Use::foretell}) {
    EXPECT_EQ(packing_left(R"({"quant_method":"fp8","of_nobody":[1,2]})", use),
              "'quantization_config.of_nobody' is [1,2]");
    EXPECT_EQ(packing_left(R"({"transform_config":{"u":{"type":"hadamard"}}})", use),
              R"('quantization_config.transform_config.u.type' is "hadamard")");
  }
  // values that no reader knows
  EXPECT_EQ(packing_left(R"({"quant_method":"higgs"})", Use::unpack),
            R"('quantization_config.quant_method' is "higgs")");
  EXPECT_EQ(packing_left(R"({"quant_method":"awq","version":"gemv_fast"})", Use::unpack),
            R"('quantization_config.version' is "gemv_fast")");
  EXPECT_EQ(packing_left(R"({"sparsity_config":{"format":"sparse-24-bitmask","ignore":[]}})", Use::stored),
            R"('quantization_config.sparsity_config.format' is "sparse-24-bitmask")");
  // of the cache, which the numbers of weights do not depend on
  const std::string cache = R"({"quant_method":"modelopt","kv_cache_quant_algo":"FP8"})";
  EXPECT_EQ(packing_left(cache, Use::unpack), "");
  EXPECT_EQ(packing_left(cache, Use::stored), R"('quantization_config.kv_cache_quant_algo' is "FP8")");
  const forward::ModelConfig mlx(R"({"quantization":{"group_size":64,"bits":4,"mode":"affine",
      "model.layers.0.mlp":{"group_size":32,"bits":8},"of_nobody":1}})",
                                 "config.json");
  EXPECT_EQ(forward::settings_text(forward::unaccounted_packing(mlx.settings(), Use::unpack)),
            "'quantization.of_nobody' is 1");
}

TEST(GenerationSettings, AreThoseThatAPassDoesNotCount) {
  const auto left = [](std::string_view text) {
    return forward::settings_text(forward::unaccounted_generation(forward::generation_settings(text)));
  };
  EXPECT_EQ(
      left(R"({"use_cache":true,"max_length":2048,"do_sample":true,"temperature":0.6,"eos_token_id":[1,2],
      "num_beams":1,"transformers_version":"5.0","cache_implementation":null})"),
      "");
  EXPECT_EQ(left(R"({"use_cache":false})"), "'generation_config.use_cache' is false");
  EXPECT_EQ(left(R"({"cache_implementation":"static","num_beams":4})"),
            R"('generation_config.cache_implementation' is "static", 'generation_config.num_beams' is 4)");
  EXPECT_EQ(left(R"({"of_nobody":{"a":1}})"), "'generation_config.of_nobody.a' is 1");
  EXPECT_THROW(left("[1]"), Error);
  // config.json of older models has some, and much else
  const forward::ModelConfig config(R"({"hidden_size":8,"num_beams":6,"max_length":20,"of_nobody":1})", "c");
  EXPECT_EQ(forward::settings_text(forward::unaccounted_generation(config.settings())), "'num_beams' is 6");
  const forward::Setting setting{"generation_config.use_cache", "false"};
  const auto read = forward::setting_of_note(forward::generation_note(setting));
  ASSERT_TRUE(read);
  EXPECT_EQ(forward::settings_text({*read}), forward::settings_text({setting}));
  EXPECT_FALSE(forward::setting_of_note("generation_config.json is not a JSON object and was not read"));
}

// What stands at the top is another part's, but for what holds for all parts.
TEST(ModelConfig, TheTopLeaksNothingIntoTheLanguageModel) {
  const auto of = [](std::string_view json) { return forward::ModelConfig(json, "config.json"); };
  const forward::ModelConfig nested = of(R"({"model_type":"whole","head_dim":1280,"dtype":"bfloat16",
      "tie_word_embeddings":true,"vision_config":{"hidden_size":9,"depth":2},"projector_config":{"x":1},
      "text_config":{"model_type":"qwen2","hidden_size":64,"tie_word_embeddings":false}})");
  EXPECT_TRUE(nested.get("head_dim").null());
  EXPECT_EQ(nested.get("root.head_dim"), assets::Datum(std::int64_t{1280}));
  EXPECT_EQ(nested.get("dtype"), assets::Datum(std::string("bfloat16")));
  EXPECT_EQ(nested.get("vision_config.hidden_size"), assets::Datum(std::int64_t{9}));
  EXPECT_EQ(nested.get("tie_word_embeddings"), assets::Datum(std::int64_t{1}));  // says it for all parts
  EXPECT_EQ(nested.model_type(), "qwen2");
  EXPECT_EQ(nested.other_parts(), Names{"vision_config"});
  EXPECT_EQ(of(R"({"llm_config":{"hidden_size":5}})").get("hidden_size"), assets::Datum(std::int64_t{5}));
  const forward::ModelConfig decoder =
      of(R"({"model_type":"pair","decoder":{"model_type":"gpt2","n_embd":8}})");
  EXPECT_EQ(decoder.model_type(), "pair");
  EXPECT_EQ(decoder.get("n_embd"), assets::Datum(std::int64_t{8}));
  EXPECT_EQ(of(R"({"blocks":[{"heads":3},{"heads":4}]})").get("blocks.1.heads"),
            assets::Datum(std::int64_t{4}));
  EXPECT_TRUE(of(R"({"blocks":[{"heads":3}]})").get("blocks.1.heads").null());
  EXPECT_TRUE(of(R"({"blocks":[{"heads":3}]})").get("blocks.x.heads").null());
}

// Python's json writes and reads these words.
TEST(ModelConfig, ReadsNumbersThatAreNone) {
  const forward::ModelConfig config(
      R"({"limit":[0.0,Infinity],"low":-Infinity,"none":NaN,"text":"a \"NaN\" Infinity \\","size":3})", "c");
  EXPECT_EQ(config.get("size"), assets::Datum(std::int64_t{3}));
  EXPECT_EQ(config.get("none"), assets::Datum(std::string("NaN")));  // no number: whoever needs one says so
  ASSERT_NE(config.get("low").real(), nullptr);
  EXPECT_LT(*config.get("low").real(), -1e300);
  EXPECT_EQ(config.text("text", ""), "a \"NaN\" Infinity \\");
  EXPECT_THROW(forward::ModelConfig(R"({"a":infinity})", "c"), Error);
  EXPECT_THROW(forward::ModelConfig(R"({"a":NaN,)", "c"), Error);
}

TEST(Bind, ATensorAskedForTwiceIsOne) {
  const std::string_view asset =
      R"json({"family":"f","main":["x = embed ids @w[4, 2]","each i in 3: layer @shared"],
              "layer":["x = linear x @w[2, 2]"]})json";
  EXPECT_EQ(asked_by(asset, "{}"), (Names{"w.weight", "shared.w.weight"}));
  EXPECT_EQ(
      error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2]","x = linear x @w[2, 2]"]})json", "{}"),
      "malformed config.json 'w.weight' F32 4,2 F32 2,2 a.json 1 63");
}

TEST(Bind, BiasesCanBeTied) {
  const std::string_view asset =
      R"json({"family":"f","tie":"true","tied":{"b.bias":"a.bias"},
              "main":["x = embed ids @w[4, 2]","x = linear x @a[2, 2]+b","x = linear x @b[2, 2]+b"]})json";
  EXPECT_EQ(asked_by(asset, "{}"), (Names{"w.weight", "a.weight", "a.bias", "b.weight"}));
  const graph::MetaGraph graph =
      file_with({{"w.weight", {4, 2}}, {"a.weight", {2, 2}}, {"a.bias", {2}}, {"b.weight", {2, 2}}});
  const forward::Architecture architecture = forward::parse_architecture(asset, "a.json");
  const forward::BoundModel model =
      forward::bind_architecture(architecture, forward::ModelConfig("{}", "config.json"), &graph);
  EXPECT_TRUE(model.claims.missing.empty());
  EXPECT_EQ(model.ops.back().weights.at(1).tensor, graph::TensorId{2});
}

TEST(Bind, AsksForNamesWithNumbersInThem) {
  const std::string_view asset =
      R"json({"family":"f","let":{"L":"2"},"main":["x = embed ids @w[4, 2] if has('h.{L - 1}.w.weight')",
              "x = embed ids @v[4, 2] if not has('h.{L - 1}.w.weight')"]})json";
  const graph::MetaGraph with =
      file_with({{"h.1.w.weight", {1}}, {"w.weight", {4, 2}}, {"v.weight", {4, 2}}});
  EXPECT_EQ(asked_by(asset, "{}", &with), Names{"w.weight"});
  const graph::MetaGraph without =
      file_with({{"h.0.w.weight", {1}}, {"w.weight", {4, 2}}, {"v.weight", {4, 2}}});
  EXPECT_EQ(asked_by(asset, "{}", &without), Names{"v.weight"});
  // a configuration cannot make it ask without end
  EXPECT_EQ(error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2] if has(key)"]})json",
                       R"({"key":"{has(key)}"})", &with),
            "malformed config.json a.json 1 1 'key' 'has(key)'");
}

TEST(Bind, ExpressionsThatTakeTooLongAreRefused) {
  std::string list = "7";
  for (int i = 0; i < 50'000; ++i) list += ",7";
  EXPECT_EQ(error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2]","each i in 9000: layer"],
                               "layer":["x = act x if i in list"]})json",
                       fmt::format(R"({{"list":[{}]}})", list)),
            "malformed config.json a.json 2 57 'list'");
}

TEST(Bind, ListsOfAConfigurationAreBounded) {
  std::string list = "1";
  for (int i = 0; i < 100'000; ++i) list += ",1";
  EXPECT_EQ(error_from(kAsset, fmt::format(R"({{"hidden_size":[{}]}})", list)),
            "limit config.json 'hidden_size' 100002 100000");
}

// transformers 5.23 counts these parameters.
TEST(Heads, FollowTheClass) {
  const auto count = [](std::string_view preset, std::string_view name, std::string_view more = "{}") {
    auto config = nlohmann::json::parse(forward::find_preset(preset)->config_json);
    config["architectures"] = {name};
    config.update(nlohmann::json::parse(more));
    const auto assets = forward::built_in_assets();
    const graph::MetaGraph graph = forward::config_graph(config.dump(), "config.json", *assets);
    return forward::model_claims(graph, *assets);
  };
  const auto heads = [&](std::string_view preset, std::string_view base, std::string_view name) {
    return static_cast<std::int64_t>(count(preset, name).parameters) -
           static_cast<std::int64_t>(count(preset, base).parameters);
  };
  EXPECT_EQ(heads("llama-3-8b", "LlamaModel", "LlamaForCausalLM"), 128'256 * 4096);
  EXPECT_EQ(heads("llama-3-8b", "LlamaModel", "LlamaForSequenceClassification"), 2 * 4096);
  EXPECT_EQ(heads("llama-3-8b", "LlamaModel", "LlamaForTokenClassification"), 2 * 4096 + 2);
  EXPECT_EQ(heads("llama-3-8b", "LlamaModel", "LlamaForQuestionAnswering"), 2 * 4096 + 2);
  EXPECT_EQ(heads("gpt2", "GPT2Model", "GPT2ForTokenClassification"), 2 * 768 + 2);
  EXPECT_EQ(heads("mixtral-8x7b", "MixtralModel", "MixtralForCausalLM"), 32'000 * 4096);
  EXPECT_EQ(count("bert-base-uncased", "BertLMHeadModel").parameters, 109'514'298u);
  EXPECT_EQ(count("bert-base-uncased", "BertForMultipleChoice").parameters, 109'482'240u + 769);
  EXPECT_EQ(count("clip-vit-base-patch32", "CLIPForImageClassification").parameters, 87'457'538u);
  EXPECT_EQ(count("siglip-base", "SiglipForImageClassification").parameters, 92'885'762u);
  // a class that the family does not have is not counted in silence
  EXPECT_EQ(count("llama-3-8b", "LlamaForCausalLM").without, Names());
  EXPECT_EQ(count("llama-3-8b", "NewForCausalLM").without, Names{"what is special to NewForCausalLM"});
  EXPECT_EQ(count("llama-3-8b", "NewForCausalLM", R"({"audio_config":{"depth":2}})").without,
            Names{"audio_config"});
}

TEST(ConfigGraph, AnyQuantizationOpens) {
  std::string json(forward::find_preset("demo")->config_json);
  json.insert(json.find('{') + 1, R"("quantization_config":{"quant_method":"new","bits":3},)");
  const graph::MetaGraph graph = forward::config_graph(json, "config.json");
  const graph::MetaGraph plain =
      forward::config_graph(forward::find_preset("demo")->config_json, "config.json");
  EXPECT_EQ(graph::parameter_count(graph), graph::parameter_count(plain));
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
  EXPECT_NE(graph.notes[0].text.find("(new) is not understood"), std::string::npos) << graph.notes[0].text;
}

TEST(Bind, ModulesThatStayAsTheyAreAreFoundByTheEndOfTheirNames) {
  const forward::Architecture architecture = tiny();
  const forward::BoundModel model = forward::bind_architecture(
      architecture,
      config(R"(,"experts":2,"quantization_config":{"quant_method":"fp8","weight_block_size":[4,4],
               "modules_to_not_convert":["proj","layers.1.up.0","ayers.1.up.1"]})"),
      nullptr);
  Names kept;
  for (const forward::BoundWeight& weight : model.asked)
    if (weight.dtype == graph::DType::f8_e4m3) kept.push_back(weight.name);
  EXPECT_EQ(kept, (Names{"model.layers.0.up.0.weight", "model.layers.0.up.1.weight",
                         "model.layers.1.up.1.weight"}));
}

TEST(Bind, ClassesThatAreNoListAreToldSo) {
  EXPECT_EQ(error_from(kAsset, R"({"architectures":"TinyModel"})"),
            "malformed config.json 'architectures' 'TinyModel'");
}

TEST(Architecture, WhatAnAssetMayNameIsBounded) {
  const std::string long_name(500, 'x');
  std::string many = R"("a")";
  for (int i = 0; i < 1000; ++i) many += R"(,"a")";
  const std::pair<std::string, const char*> rows[] = {
      {fmt::format(R"("prefix":["{}"],)", long_name), "malformed a.json 1 26 'prefix' 500 300"},
      {fmt::format(R"("prefix":[{}],)", many), "malformed a.json 1 58 'prefix' 1001 8"},
      {fmt::format(R"("ignore":[{}],)", many), "malformed a.json 1 826 'ignore' 1001 200"},
      {fmt::format(R"("spellings":{{"{}":"b"}},)", long_name), "malformed a.json 1 532 'spellings' 500 300"},
      {fmt::format(R"("classes":[{}],)", many), "malformed a.json 1 827 'classes' 1001 200"},
      {R"("let":{"S":"1"},)", "malformed a.json 1 27 'S'"},
      {fmt::format(R"("more":["x = act {}"],)", std::string(5000, 'x')), "malformed a.json 1 24 5008 4000"},
      {R"("more":["x = add a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"],)",
       "malformed a.json 1 96 32"},
  };
  for (const auto& [text, message] : rows) {
    const std::string asset = fmt::format(R"({{"family":"f",{}"main":["x = embed ids @w[4, 2]"]}})", text);
    EXPECT_EQ(error_from(asset, "{}"), message);
  }
}

// Each place is found from the last: tens of thousands take no longer than they are.
TEST(Architecture, PlacesInLongAssetsAreExact) {
  std::string text = "{\"many\": {\n";
  constexpr int kKeys = 40'000;
  for (int i = 0; i < kKeys; ++i) text += fmt::format("  \"k{}\": [\"v\"],\n", i);
  text += "  \"last\": \"here\"}}";
  const assets::AssetNode root = assets::parse_asset(text, "long.json");
  const assets::AssetNode& last = root.items[0].items.back();
  EXPECT_EQ(last.place.line, kKeys + 2u);
  EXPECT_EQ(last.place.column, 12u);
  EXPECT_EQ(root.items[0].items[7].place.line, 9u);
  EXPECT_EQ(root.items[0].items[7].items[0].place.column, 11u);
}

struct PublishedSizes {
  const char* preset;
  std::uint64_t parameters;  // of the state dict
  std::uint64_t bytes;
  std::size_t tensors;
  std::size_t ops;
};

// Facts: the models' indexes and cards on the Hub, as collected in the notes on architectures.
TEST(Families, HaveTheirPublishedSizes) {
  const PublishedSizes rows[] = {
      {"llama-3-8b", 8'030'261'248, 16'060'522'496, 291, 548},
      {"llama-3.1-70b", 70'553'706'496, 141'107'412'992, 723, 1364},
      {"llama-3.2-1b", 1'235'814'400, 2'471'628'800, 146, 276},
      {"gpt2-xl", 1'557'611'200, 6'230'444'800, 580, 581},
      {"deepseek-v3", 684'489'845'504, 688'574'839'360, 91'991, 1639},  // and 41,540,496 scales
  };
  for (const PublishedSizes& row : rows) {
    const forward::Preset& preset = *forward::find_preset(row.preset);
    const graph::MetaGraph graph = forward::config_graph(preset.config_json, row.preset);
    EXPECT_EQ(graph::parameter_count(graph), row.parameters) << row.preset;
    EXPECT_EQ(graph::storage_bytes(graph), row.bytes) << row.preset;
    EXPECT_EQ(graph.tensors.size(), row.tensors) << row.preset;
    const forward::ModelConfig config(preset.config_json, row.preset);
    const forward::Architecture& architecture =
        *forward::find_architecture(config, forward::built_in_architectures());
    const std::vector<std::pair<std::string, assets::Datum>> latent = {
        {"latent", assets::Datum(std::int64_t{1})}};
    const forward::BoundModel model = forward::bind_architecture(architecture, config, &graph, latent);
    EXPECT_EQ(model.ops.size(), row.ops) << row.preset;
    EXPECT_TRUE(model.claims.missing.empty()) << row.preset << ": " << model.claims.missing.front();
    EXPECT_TRUE(model.claims.unclaimed.empty()) << row.preset;
    EXPECT_TRUE(model.claims.disagreements.empty()) << row.preset;
  }
}

}  // namespace

// --- What an architecture says of a model's tensors, and how many parameters there are.

namespace {

graph::MetaGraph preset_graph(std::string_view id) {
  return forward::config_graph(forward::find_preset(id)->config_json, "config.json");
}

TEST(Claims, ParametersAreThoseThatPeopleCount) {
  const auto count = [](std::string_view id) {
    return forward::model_claims(preset_graph(id), *forward::built_in_assets()).parameters;
  };
  EXPECT_EQ(count("gpt2"), 124'439'808u);             // without the masks that its file holds
  EXPECT_EQ(count("gpt-oss-20b"), 20'914'757'184u);   // two numbers in each byte
  EXPECT_EQ(count("deepseek-v3"), 671'026'419'200u);  // without scales and what predicts further tokens
  EXPECT_EQ(count("llama-2-7b"), 6'738'415'616u);     // without rotations
}

TEST(Claims, ListsWhatIsMissingAndWhatNothingAsksFor) {
  graph::MetaGraph graph = preset_graph("demo");
  EXPECT_TRUE(forward::model_claims(graph, *forward::built_in_assets()).missing.empty());
  graph.missing = {"promised"};
  graph.tensors[3].name = graph::Name("model.layers.0.other.weight");
  graph.tensors[5].shape = graph::Shape{7, 7};
  const forward::ModelClaims claims = forward::model_claims(graph, *forward::built_in_assets());
  EXPECT_EQ(claims.family, "llama");
  ASSERT_EQ(claims.missing.size(), 2u);
  EXPECT_EQ(claims.missing[0], "promised");
  EXPECT_TRUE(claims.missing[1].starts_with("model.layers.0.")) << claims.missing[1];
  EXPECT_EQ(claims.unclaimed, std::vector<graph::TensorId>{graph::TensorId{3}});
  ASSERT_EQ(claims.notes.size(), 1u);
  EXPECT_EQ(testing::facts(claims.notes[0].text), "config.json 512,512 7,7");
  EXPECT_EQ(claims.parameters, graph::parameter_count(graph));  // an asset that does not fit counts nothing
}

TEST(Claims, PartsThatAnAssetLeavesOutCountAsTheyLie) {
  graph::MetaGraph graph = preset_graph("demo");
  const std::uint64_t before = forward::model_claims(graph, *forward::built_in_assets()).parameters;
  graph.storages.push_back(graph::shapes_only_storage(2 * 1'000));
  const graph::StorageId last{static_cast<std::uint32_t>(graph.storages.size() - 1)};
  graph.tensors.push_back(
      {graph::Name("vision_tower.w"), graph::DType::bf16, graph::Shape{1'000}, {}, last, 0});
  graph.tensors.push_back(
      {graph::Name("vision_tower.tied"), graph::DType::bf16, graph::Shape{1'000}, {}, last, 0});
  EXPECT_EQ(forward::model_claims(graph, *forward::built_in_assets()).parameters, before + 1'000);
}

TEST(Claims, AHeadOnItsEmbeddingsStorageCountsOnce) {
  graph::MetaGraph graph = preset_graph("demo");
  const std::uint64_t before = forward::model_claims(graph, *forward::built_in_assets()).parameters;
  const auto tensor = [&](std::string_view name) -> graph::Tensor& {
    return *std::find_if(graph.tensors.begin(), graph.tensors.end(),
                         [&](const graph::Tensor& one) { return one.name == name; });
  };
  graph::Tensor& head = tensor("lm_head.weight");
  head.storage = tensor("model.embed_tokens.weight").storage;
  EXPECT_EQ(forward::model_claims(graph, *forward::built_in_assets()).parameters,
            before - graph::elements(head));
}

graph::MetaGraph without(graph::MetaGraph graph, std::string_view part) {
  std::erase_if(graph.tensors, [&](const graph::Tensor& one) {
    return one.name.view().find(part) != std::string_view::npos;
  });
  graph.logical = graph::find_logical_tensors(graph, {}).tensors;
  return graph;
}

TEST(Claims, WhatIsOnlyStoredMayBeLeftOut) {
  const graph::MetaGraph whole = preset_graph("deepseek-v3");
  const graph::MetaGraph graph = without(whole, "model.layers.61.");
  ASSERT_LT(graph.tensors.size(), whole.tensors.size());
  const forward::ModelClaims claims = forward::model_claims(graph, *forward::built_in_assets());
  EXPECT_TRUE(claims.missing.empty()) << claims.missing.front();
  EXPECT_EQ(claims.parameters, forward::model_claims(whole, *forward::built_in_assets()).parameters);
}

TEST(Claims, AHeadIsMissedUnlessItMayBeTied) {
  graph::MetaGraph graph = without(preset_graph("llama-3-8b"), "lm_head");
  EXPECT_EQ(forward::model_claims(graph, *forward::built_in_assets()).missing,
            std::vector<std::string>{"lm_head.weight"});
  std::string& config = std::get<std::string>(graph.metadata[0].value);
  const std::size_t at = config.find("\"tie_word_embeddings\": false");
  ASSERT_NE(at, std::string::npos) << config;
  config.replace(at, 28, "\"tie_word_embeddings\": true ");
  EXPECT_TRUE(forward::model_claims(graph, *forward::built_in_assets()).missing.empty());
  // without the setting the class decides, but where it may stand for another part
  config.replace(at, 28, "\"tie_word_embeddings\": null ");
  EXPECT_EQ(forward::model_claims(graph, *forward::built_in_assets()).missing.size(), 1u);
  config = R"({"model_type":"llava","text_config":)" + config + "}";
  EXPECT_TRUE(forward::model_claims(graph, *forward::built_in_assets()).missing.empty());
}

TEST(Claims, NeverStopAnInspection) {
  graph::MetaGraph graph = preset_graph("demo");
  graph.metadata[0].value = std::string(R"({"model_type":"llama","hidden_size":"wide"})");
  forward::ModelClaims claims = forward::model_claims(graph, *forward::built_in_assets());
  ASSERT_EQ(claims.notes.size(), 1u);
  EXPECT_EQ(testing::facts(claims.notes[0].text),
            "config.json 'num_hidden_layers' llama.json 20 11 'num_hidden_layers'");
  EXPECT_EQ(claims.parameters, graph::parameter_count(graph));
  graph.metadata.clear();
  claims = forward::model_claims(graph, *forward::built_in_assets());
  EXPECT_TRUE(claims.family.empty() && claims.notes.empty());
  EXPECT_EQ(claims.parameters, graph::parameter_count(graph));
}

}  // namespace

// --- Expressions of assets: values, and the place of what is wrong.

namespace {

assets::Scope scope() {
  assets::Scope scope;
  scope.name = [](std::string_view name) {
    if (name == "d") return assets::Datum(std::int64_t{64});
    if (name == "H") return assets::Datum(std::int64_t{4});
    if (name == "fraction") return assets::Datum(0.25);
    if (name == "kind") return assets::Datum(std::string("gemma2"));
    if (name == "rope.factor") return assets::Datum(std::int64_t{8});
    if (name == "types")
      return assets::Datum({assets::Datum(std::string("full")), assets::Datum(std::string("sliding"))});
    if (name == "labels") return assets::Datum(assets::Datum::Object{3});
    if (name == "B") return assets::Datum(graph::SizePoly::symbol(graph::SymbolId{0}));
    if (name == "S") return assets::Datum(graph::SizePoly::symbol(graph::SymbolId{1}));
    return assets::Datum();
  };
  return scope;
}

assets::AssetPlace here() { return {std::make_shared<const std::string>("asset.json"), 3, 10}; }

std::string value_of(std::string_view text) {
  const assets::Datum value = assets::Expression::parse(text, here()).evaluate(scope());
  const std::vector<std::string> symbols = {"B", "S"};
  return value.poly() != nullptr ? value.poly()->text(symbols) : value.shown();
}

std::string error_of(std::string_view text) {
  return testing::facts_of([&] { value_of(text); });
}

TEST(Expression, Values) {
  const std::pair<const char*, const char*> rows[] = {
      {"7", "7"},
      {"d/H", "16"},
      {"d / H * 2 + 1", "33"},
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"10 - 3 - 2", "5"},
      {"-3 + 5", "2"},
      {"10 % 4", "2"},
      {"missing ?? d", "64"},
      {"d ?? missing", "64"},
      {"missing ?? also ?? 5", "5"},
      {"d == 64 and H < 5", "1"},
      {"d != 64 or not (H >= 4)", "0"},
      {"not missing", "1"},
      {"H > 4 ? 1 : 2", "2"},
      {"kind == 'gemma2' ? (H == 4 ? 'a' : 'b') : 'c'", "'a'"},
      {"kind in ['gemma', 'gemma2']", "1"},
      {"'x' in missing", "0"},
      {"types[1] == 'sliding'", "1"},
      {"len(types) + count(types, 'full')", "3"},
      {"len(labels)", "3"},
      {"cdiv(d, 60)", "2"},
      {"min(d, H) + max(d, H)", "68"},
      {"floor(d * fraction)", "16"},
      {"rope.factor", "8"},
      {"true and not false", "1"},
      {"missing == null", "1"},
      {"2*B*S + B*S", "3*B*S"},
      {"B*(S - 1)", "B*S - B"},
      {"B - B", "0"},
  };
  for (const auto& [text, value] : rows) EXPECT_EQ(value_of(text), value) << text;
}

TEST(Expression, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"d / 7", "malformed asset.json 3 12 64 7"},
      {"missing + 1", "malformed asset.json 3 18 'missing'"},
      {"1 + kind", "malformed asset.json 3 12 'gemma2'"},
      {"types[2]", "malformed asset.json 3 15 'types' 2 2 0"},
      {"d[0]", "malformed asset.json 3 11 64 0"},
      {"d / 0", "malformed asset.json 3 12 64 0"},
      {"9223372036854775807 + 1", "limit asset.json 3 30 9223372036854775807 1 64"},
      {"B / 2", "malformed asset.json 3 12"},
      {"min(B, 2)", "malformed asset.json 3 10 2"},
      {"len(d)", "malformed asset.json 3 10 64"},
      {"no_such(1)", "malformed asset.json 3 10 'no_such'"},
      {"1 +", "malformed asset.json 3 13"},
      {"(1", "malformed asset.json 3 12 ')'"},
      {"'open", "malformed asset.json 3 11"},
      {"1 2", "malformed asset.json 3 12"},
      {"d ? 1", "malformed asset.json 3 15 ':'"},
      {"99999999999999999999", "malformed asset.json 3 10 63"},
      {"", "malformed asset.json 3 10"},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(error_of(text), message) << text;
}

TEST(Expression, DepthAndLengthAreBounded) {
  EXPECT_EQ(error_of(std::string(100, '(') + "1" + std::string(100, ')')), "malformed asset.json 3 60 50");
  std::string sum = "1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_EQ(error_of(sum), "malformed asset.json 3 1011 1,000");
}

}  // namespace

// --- Every family against the figures that are published of its models (families.csv; "facts" where they are
// in the notes on architectures).

namespace {

struct Row {
  std::string preset;
  std::uint64_t parameters = 0, elements = 0, bytes = 0, tensors = 0, operators = 0, cache = 0;
};

std::vector<Row> rows() {
  std::ifstream file(LOADLINE_GOLDEN "/../forward/families.csv");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Row row;
    std::getline(fields, row.preset, ',');
    for (std::uint64_t* number :
         {&row.parameters, &row.elements, &row.bytes, &row.tensors, &row.operators, &row.cache}) {
      std::string field;
      std::getline(fields, field, ',');
      *number = std::stoull(field);
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(Families, HaveTheirPublishedFigures) {
  const std::vector<Row> all = rows();
  ASSERT_GE(all.size(), 30u);
  for (const Row& row : all) {
    const forward::Preset* const preset = forward::find_preset(row.preset);
    ASSERT_NE(preset, nullptr) << row.preset;
    const graph::MetaGraph graph = forward::config_graph(preset->config_json, row.preset);
    std::uint64_t stored = 0;
    for (const graph::Tensor& tensor : graph.tensors) stored += graph::elements(tensor);
    EXPECT_EQ(stored, row.elements) << row.preset;
    EXPECT_EQ(graph::storage_bytes(graph), row.bytes) << row.preset;
    EXPECT_EQ(graph.tensors.size(), row.tensors) << row.preset;
    const auto assets = forward::built_in_assets();
    const forward::ForwardModel model = forward::forward_model(graph, *assets, assets->profile("fused"));
    ASSERT_EQ(model.source, forward::ForwardSource::architecture) << row.preset << ": " << model.remark;
    EXPECT_EQ(model.graph->ops.size(), row.operators) << row.preset;
    EXPECT_EQ(model.cache_bytes_per_token, row.cache) << row.preset;
    EXPECT_EQ(forward::parameters(*model.bound, graph), row.parameters) << row.preset;
    EXPECT_TRUE(model.bound->claims.unclaimed.empty()) << row.preset;
    // every profile can run every family
    for (const forward::Profile& profile : assets->profiles) {
      if (!forward::runs(profile, graph)) continue;
      const auto figures =
          forward::forward_figures(forward::forward_model(graph, *assets, profile), 2, 16, 3);
      ASSERT_TRUE(figures) << row.preset << " " << profile.id;
      EXPECT_GT(figures->peak.bytes, 0u);
      EXPECT_EQ(figures->peak.unknown, 0u) << row.preset << " " << profile.id;
      EXPECT_GE(figures->reserved, figures->peak.bytes);
    }
  }
}

}  // namespace

// --- Figures that are published of models that have no preset: a preset's configuration with other sizes.

namespace {

constexpr std::uint64_t kUnpublished = 0;

struct Published {
  const char* model;
  const char* preset;
  const char* sizes;         // over the preset's config.json
  std::uint64_t parameters;  // kUnpublished, or what its page says
  std::uint64_t bytes;       // of the weights
  std::uint64_t cache;       // of keys and values a token, 16 bits each
};

// Sources: the models' index files and Hub pages; for caches the sizes in their config.json.
constexpr Published kPublished[] = {
    {"Llama-2-13B", "llama-3-8b",
     R"({"hidden_size":5120,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":40,
         "intermediate_size":13824,"vocab_size":32000})",
     13'015'864'320, 26'031'728'640, 819'200},
    {"Llama-2-70B", "llama-3.1-70b", R"({"vocab_size":32000})", kUnpublished, kUnpublished, 327'680},
    {"Llama-3-70B", "llama-3.1-70b", "{}", 70'553'706'496, 141'107'412'992, 327'680},
    {"Llama-3.1-405B", "llama-3.1-70b",
     R"({"hidden_size":16384,"num_hidden_layers":126,"num_attention_heads":128,"intermediate_size":53248})",
     405'853'388'800, 811'706'777'600, 516'096},
    {"Llama-3.2-1B", "llama-3.2-1b", "{}", 1'235'814'400, 2 * 1'235'814'400ull, 32'768},
    {"Llama-3.2-3B", "llama-3.2-1b",
     R"({"hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":24,"head_dim":128})", 3'212'749'824,
     2 * 3'212'749'824ull, 114'688},
    {"Mistral-7B-v0.3", "mistral-7b", R"({"vocab_size":32768})", 7'248'023'552, 2 * 7'248'023'552ull,
     131'072},
    {"Mistral-Nemo", "mistral-7b",
     R"({"hidden_size":5120,"num_hidden_layers":40,"head_dim":128,"vocab_size":131072,"sliding_window":null})",
     12'247'782'400, 2 * 12'247'782'400ull, 163'840},
    {"Mixtral-8x7B", "mixtral-8x7b", "{}", 46'702'792'704, 93'405'585'408, 131'072},
    {"Qwen2.5-1.5B", "qwen2.5-7b",
     R"({"hidden_size":1536,"num_attention_heads":12,"num_key_value_heads":2,"intermediate_size":8960,
         "vocab_size":151936,"tie_word_embeddings":true})",
     1'543'714'304, 2 * 1'543'714'304ull, 28'672},
    {"Qwen2.5-72B", "qwen2.5-7b",
     R"({"hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,
         "intermediate_size":29568})",
     72'706'203'648, 145'412'407'296, 327'680},
    {"Qwen3-32B", "qwen3-8b",
     R"({"hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":64,"intermediate_size":25600})",
     32'762'123'264, 2 * 32'762'123'264ull, 262'144},
    {"Gemma-7B", "gemma-2-9b",
     R"({"architectures":["GemmaForCausalLM"],"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,
         "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":24576,"sliding_window":null,
         "attn_logit_softcapping":null,"final_logit_softcapping":null,"layer_types":null})",
     8'537'680'896, 2 * 8'537'680'896ull, 458'752},
    {"Gemma-2-27B", "gemma-2-9b",
     R"({"hidden_size":4608,"num_hidden_layers":46,"num_attention_heads":32,"num_key_value_heads":16,
         "head_dim":128,"intermediate_size":36864,"layer_types":null})",
     27'227'128'320, 2 * 27'227'128'320ull, 376'832},
    {"GPT-2 medium", "gpt2", R"({"n_embd":1024,"n_layer":24,"n_head":16})", 354'823'168, kUnpublished,
     98'304},
    {"GPT-2 large", "gpt2", R"({"n_embd":1280,"n_layer":36,"n_head":20})", 774'030'080, kUnpublished,
     184'320},
    {"GPT-2", "gpt2", "{}", 124'439'808, 548'090'880, 36'864},
    {"GPT-2 XL", "gpt2-xl", "{}", 1'557'611'200, kUnpublished, 307'200},
    {"Pythia-1.4B", "pythia-6.9b",
     R"({"hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":16,"intermediate_size":8192})",
     kUnpublished, kUnpublished, 196'608},
    {"Phi-3-mini", "phi-3-mini", "{}", 3'821'079'552, kUnpublished, 393'216},
    {"Gemma-2-9B", "gemma-2-9b", "{}", 9'241'705'984, 2 * 9'241'705'984ull, 344'064},
    {"DeepSeek-V3", "deepseek-v3", "{}", 671'026'419'200, 688'574'839'360, 70'272},
    {"Falcon-7B", "falcon-7b", "{}", kUnpublished, kUnpublished, 8'192},
    {"Falcon-40B", "falcon-40b", "{}", kUnpublished, kUnpublished, 122'880},
};

graph::MetaGraph graph_of(const Published& model) {
  auto config = nlohmann::json::parse(forward::find_preset(model.preset)->config_json);
  config.merge_patch(nlohmann::json::parse(model.sizes));
  return forward::config_graph(config.dump(), "config.json");
}

TEST(Published, ParametersBytesAndCaches) {
  const forward::ForwardAssets& assets = *forward::built_in_assets();
  for (const Published& model : kPublished) {
    SCOPED_TRACE(model.model);
    const graph::MetaGraph graph = graph_of(model);
    if (model.parameters != kUnpublished)
      EXPECT_EQ(forward::model_claims(graph, assets).parameters, model.parameters);
    if (model.bytes != kUnpublished) EXPECT_EQ(graph::storage_bytes(graph), model.bytes);
    const forward::Profile profile = forward::chosen_profile(assets, graph, {.cache = graph::DType::f16});
    EXPECT_EQ(forward::forward_model(graph, assets, profile).cache_bytes_per_token, model.cache);
  }
}

TEST(Published, CachesThatAnotherFrameworkKeeps) {
  const forward::ForwardAssets& assets = *forward::built_in_assets();
  const auto cache = [&](const char* preset, const forward::Profile& profile) {
    const graph::MetaGraph graph =
        forward::config_graph(forward::find_preset(preset)->config_json, "config.json");
    return forward::forward_model(graph, assets, profile).cache_bytes_per_token;
  };
  EXPECT_EQ(cache("falcon-40b", assets.profile("hf_eager")), 1'966'080u);  // keys and values of every head
  // keys and values instead of what they are made of, as DeepSeek's own code keeps them
  EXPECT_EQ(
      cache("deepseek-v3", forward::parse_profile(R"({"profile":"naive","cache":"F16"})", "naive.json")),
      4'997'120u);
}

}  // namespace

}  // namespace loadline::tests
