// Assets and what they make of a configuration and of a file.
#include "core/forward/family/architecture.h"

#include "core/assets/asset_file.h"
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
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

Architecture tiny() { return parse_architecture(kAsset, "tiny.json"); }

std::string error_with(std::string_view from, std::string_view to) {
  std::string text(kAsset);
  text.replace(text.find(from), from.size(), to);
  try {
    parse_architecture(text, "tiny.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Architecture, FaultsAreToldWithLineAndColumn) {
  struct Row {
    const char *from, *to, *message;
  };
  const Row rows[] = {
      {R"("family": "tiny",)", "", "'family' is missing"},
      {"h = norm x @norm[d]", "h norm x @norm[d]", "tiny.json: line 19, column 15: '=' expected"},
      {"h = norm x @norm[d]", "h = norm x @norm(d)", "tiny.json: line 19, column 22: '[' expected"},
      {"h = norm x @norm[d]", "h = norm x @norm[d]+c", "'+b' expected"},
      {"h = norm x @norm[d]", "h = norm x @norm[d]:Q9", "'Q9' is no dtype"},
      {"h = norm x @norm[d]", "h = norm x @norm[d", "expected"},
      {"h = norm x @norm[d]", "h = norm x @norm[d] inner=1 more", "'=' expected"},
      {"x = add x h", "x = add x h rows=1", "line 22, column 18: 'add' has no attribute 'rows'"},
      {"each i in L: layer", "each i of L: layer", "'in' expected"},
      {"each i in L: layer", "each i in L: no_such", "there is no block 'no_such'"},
      {"x = add x h", "each j in 2: layer", "without end"},
      {R"("main": [)", R"("other": [)", "'main' is missing"},
      {R"("tie ?? true")", R"("tie ??")", "line 7, column"},
      {R"(["vision.*"])", R"({"a": "b"})", "'ignore' is an object, a list expected"},
      {R"("ignore": )", R"("family": "x", "ignore": )", "'family' occurs twice"},
      {R"("ignore": )", R"("ignore" )", "not valid JSON: unexpected '['; expected ':'"},
  };
  for (const Row& row : rows)
    EXPECT_NE(error_with(row.from, row.to).find(row.message), std::string::npos)
        << row.to << ": " << error_with(row.from, row.to);
}

ModelConfig config(std::string_view more = "") {
  return ModelConfig(fmt::format(R"({{"model_type":"tiny","hidden_size":8,"layers":2{}}})", more),
                     "config.json");
}

std::vector<std::string> names_of(const std::vector<BoundWeight>& weights) {
  std::vector<std::string> names;
  for (const BoundWeight& weight : weights) names.push_back(weight.name);
  return names;
}

TEST(Bind, AConfigurationAloneSaysWhichTensorsThereAre) {
  const Architecture architecture = tiny();
  const BoundModel model = bind_architecture(architecture, config(R"(,"bias":true,"experts":2)"), nullptr);
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
  const BoundModel untied = bind_architecture(architecture, config(R"(,"tie":false)"), nullptr);
  EXPECT_EQ(names_of(untied.asked).back(), "head.weight");
  EXPECT_EQ(
      names_of(bind_architecture(architecture, config(R"(,"loadline_stored_buffers":true)"), nullptr).asked)
          .back(),
      "model.layers.1.mask");
}

struct Stored {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
};
MetaGraph file_with(const std::vector<Stored>& tensors) {
  MetaGraph graph;
  graph.files.push_back({"m.safetensors", 1 << 20});
  for (const auto& [name, shape, dtype] : tensors) {
    const StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(plain_storage(FileId{0}, 0, *byte_size(dtype, *element_count(shape))));
    graph.tensors.push_back({Name(name), dtype, shape, {}, id, 0});
  }
  graph.logical = find_logical_tensors(graph, {}).tensors;
  return graph;
}

TEST(Bind, AFileDecidesWhatThereIs) {
  const Architecture architecture = tiny();
  const MetaGraph graph = file_with({{"embed.weight", {10, 8}},
                                     {"layers.0.norm.gamma", {8}},
                                     {"layers.0.proj.weight", {8, 4}},
                                     {"layers.0.proj.bias", {8}},
                                     {"layers.1.norm.weight", {8}},
                                     {"layers.1.mask", {4, 4}},
                                     {"vision.tower", {2}},
                                     {"lora.a", {3}}});
  const BoundModel model = bind_architecture(architecture, config(), &graph);
  EXPECT_EQ(model.claims.missing, std::vector<std::string>{"model.layers.1.proj.weight"});
  ASSERT_EQ(model.claims.disagreements.size(), 1u);
  EXPECT_EQ(model.claims.disagreements[0].text, "config.json says [8,8], the file [8,4]");
  EXPECT_EQ(model.claims.unclaimed, std::vector<TensorId>{TensorId{7}});
  EXPECT_EQ(model.claims.unclaimed_bytes, 12u);
  EXPECT_EQ(model.claims.ignored, std::vector<TensorId>{TensorId{6}});
  EXPECT_EQ(model.claims.extra, std::vector<TensorId>{TensorId{5}});
  EXPECT_EQ(model.ops.back().weights[0].tensor, TensorId{0});  // the head is the embedding
  EXPECT_EQ(model.ops[2].weights.size(), 2u);                  // its bias is in the file
  EXPECT_EQ(model.ops[2].weights[0].shape, (Shape{8, 8}));
}

TEST(Bind, QuantisedFilesAreClaimedWhole) {
  const Architecture architecture = tiny();
  const MetaGraph graph = file_with({{"model.embed.weight", {10, 8}},
                                     {"model.layers.0.norm.weight", {8}},
                                     {"model.layers.0.proj.qweight", {1, 8}, DType::i32},
                                     {"model.layers.0.proj.qzeros", {1, 1}, DType::i32},
                                     {"model.layers.0.proj.scales", {1, 8}, DType::f16},
                                     {"model.layers.1.norm.weight", {8}},
                                     {"model.layers.1.proj.weight", {8, 8}, DType::f8_e4m3},
                                     {"model.layers.1.proj.weight_scale_inv", {1, 1}}});
  const BoundModel model = bind_architecture(architecture, config(), &graph);
  EXPECT_TRUE(model.claims.missing.empty());
  EXPECT_TRUE(model.claims.unclaimed.empty());
  EXPECT_TRUE(model.claims.disagreements.empty());
  const BoundWeight& packed = model.ops[2].weights[0];
  EXPECT_EQ(packed.name, "model.layers.0.proj.weight");
  EXPECT_EQ(packed.shape, (Shape{8, 8}));
  EXPECT_EQ(packed.dtype, DType::f16);
  EXPECT_EQ(packed.companions.size(), 2u);
}

TEST(Bind, WhatDoesNotFitNamesTheConfiguration) {
  const auto error_of = [](std::string_view more) -> std::string {
    const Architecture architecture = tiny();
    try {
      bind_architecture(architecture, config(more), nullptr);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(
      error_of(R"(,"experts":"x")"),
      "config.json: does not fit the architecture: 'x' is no number (tiny.json: line 21, column 47, which "
      "reads 'experts')");
  EXPECT_NE(error_of(R"(,"experts":1000000)").find("a whole number from 0 to 10000 expected"),
            std::string::npos);
  EXPECT_NE(error_of(R"(,"torch_dtype":"float7")").find("torch_dtype 'float7' is not known"),
            std::string::npos);
}

// What an asset with this main block, over a configuration, asks for.
std::vector<std::string> asked_by(std::string_view asset, std::string_view json,
                                  const MetaGraph* graph = nullptr) {
  const Architecture architecture = parse_architecture(asset, "a.json");
  const BoundModel model = bind_architecture(architecture, ModelConfig(json, "config.json"), graph);
  std::vector<std::string> names = names_of(model.asked);
  for (const BoundOp& op : model.ops)
    for (const BoundWeight& weight : op.weights)
      if (weight.tensor) names.push_back(weight.name);
  return names;
}

std::string error_from(std::string_view asset, std::string_view json, const MetaGraph* graph = nullptr) {
  try {
    asked_by(asset, json, graph);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

using Names = std::vector<std::string>;

TEST(Bind, CountsTheFieldsOfAnObject) {
  const std::string_view asset =
      R"json({"family":"f","let":{"n":"len(id2label)"},"main":["x = linear ids @head[n, 2]"]})json";
  const Architecture architecture = parse_architecture(asset, "a.json");
  const BoundModel model = bind_architecture(
      architecture, ModelConfig(R"({"id2label":{"0":"a","1":"b","2":"c"}})", "config.json"), nullptr);
  EXPECT_EQ(model.asked[0].shape, (Shape{3, 2}));
}

TEST(Bind, SeesKeysThatTheTextsPartHides) {
  const std::string_view asset =
      R"json({"family":"f","let":{"a":"size","b":"root.size"},"main":["x = embed ids @w[a, b]"]})json";
  const Architecture architecture = parse_architecture(asset, "a.json");
  const ModelConfig nested(R"({"size":7,"text_config":{"size":3}})", "config.json");
  EXPECT_EQ(bind_architecture(architecture, nested, nullptr).asked[0].shape, (Shape{3, 7}));
}

TEST(Bind, ATensorAskedForTwiceIsOne) {
  const std::string_view asset =
      R"json({"family":"f","main":["x = embed ids @w[4, 2]","each i in 3: layer @shared"],
              "layer":["x = linear x @w[2, 2]"]})json";
  EXPECT_EQ(asked_by(asset, "{}"), (Names{"w.weight", "shared.w.weight"}));
  const std::string message =
      error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2]","x = linear x @w[2, 2]"]})json", "{}");
  EXPECT_NE(message.find("tensor 'w.weight' is asked for twice: as F32 [4,2] and as F32 [2,2]"),
            std::string::npos)
      << message;
}

TEST(Bind, BiasesCanBeTied) {
  const std::string_view asset =
      R"json({"family":"f","tie":"true","tied":{"b.bias":"a.bias"},
              "main":["x = embed ids @w[4, 2]","x = linear x @a[2, 2]+b","x = linear x @b[2, 2]+b"]})json";
  EXPECT_EQ(asked_by(asset, "{}"), (Names{"w.weight", "a.weight", "a.bias", "b.weight"}));
  const MetaGraph graph =
      file_with({{"w.weight", {4, 2}}, {"a.weight", {2, 2}}, {"a.bias", {2}}, {"b.weight", {2, 2}}});
  const Architecture architecture = parse_architecture(asset, "a.json");
  const BoundModel model = bind_architecture(architecture, ModelConfig("{}", "config.json"), &graph);
  EXPECT_TRUE(model.claims.missing.empty());
  EXPECT_EQ(model.ops.back().weights.at(1).tensor, TensorId{2});
}

TEST(Bind, AsksForNamesWithNumbersInThem) {
  const std::string_view asset =
      R"json({"family":"f","let":{"L":"2"},"main":["x = embed ids @w[4, 2] if has('h.{L - 1}.w.weight')",
              "x = embed ids @v[4, 2] if not has('h.{L - 1}.w.weight')"]})json";
  const MetaGraph with = file_with({{"h.1.w.weight", {1}}, {"w.weight", {4, 2}}, {"v.weight", {4, 2}}});
  EXPECT_EQ(asked_by(asset, "{}", &with), Names{"w.weight"});
  const MetaGraph without = file_with({{"h.0.w.weight", {1}}, {"w.weight", {4, 2}}, {"v.weight", {4, 2}}});
  EXPECT_EQ(asked_by(asset, "{}", &without), Names{"v.weight"});
  // a configuration cannot make it ask without end
  EXPECT_NE(error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2] if has(key)"]})json",
                       R"({"key":"{has(key)}"})", &with)
                .find("has() within has()"),
            std::string::npos);
}

TEST(Bind, ExpressionsThatTakeTooLongAreRefused) {
  std::string list = "7";
  for (int i = 0; i < 50'000; ++i) list += ",7";
  EXPECT_NE(error_from(R"json({"family":"f","main":["x = embed ids @w[4, 2]","each i in 9000: layer"],
                               "layer":["x = act x if i in list"]})json",
                       fmt::format(R"({{"list":[{}]}})", list))
                .find("take too many operations"),
            std::string::npos);
}

TEST(Bind, ListsOfAConfigurationAreBounded) {
  std::string list = "1";
  for (int i = 0; i < 100'000; ++i) list += ",1";
  EXPECT_NE(error_from(kAsset, fmt::format(R"({{"hidden_size":[{}]}})", list)).find("the limit is 100000"),
            std::string::npos);
}

TEST(Bind, ModulesThatStayAsTheyAreAreFoundByTheEndOfTheirNames) {
  const Architecture architecture = tiny();
  const BoundModel model = bind_architecture(
      architecture,
      config(R"(,"experts":2,"quantization_config":{"quant_method":"fp8","weight_block_size":[4,4],
               "modules_to_not_convert":["proj","layers.1.up.0","ayers.1.up.1"]})"),
      nullptr);
  Names kept;
  for (const BoundWeight& weight : model.asked)
    if (weight.dtype == DType::f8_e4m3) kept.push_back(weight.name);
  EXPECT_EQ(kept, (Names{"model.layers.0.up.0.weight", "model.layers.0.up.1.weight",
                         "model.layers.1.up.1.weight"}));
}

TEST(Bind, ClassesThatAreNoListAreToldSo) {
  EXPECT_EQ(error_from(kAsset, R"({"architectures":"TinyModel"})"),
            "config.json: 'architectures' is 'TinyModel': a list of class names expected");
}

TEST(Architecture, WhatAnAssetMayNameIsBounded) {
  const std::string long_name(500, 'x');
  std::string many = R"("a")";
  for (int i = 0; i < 1000; ++i) many += R"(,"a")";
  const std::pair<std::string, const char*> rows[] = {
      {fmt::format(R"("prefix":["{}"],)", long_name), "'prefix' has 500 bytes, the limit is 300"},
      {fmt::format(R"("prefix":[{}],)", many), "'prefix' has 1001 entries, the limit is 8"},
      {fmt::format(R"("ignore":[{}],)", many), "'ignore' has 1001 entries, the limit is 200"},
      {fmt::format(R"("spellings":{{"{}":"b"}},)", long_name), "'spellings' has 500 bytes"},
      {fmt::format(R"("classes":[{}],)", many), "'classes' has 1001 entries"},
      {R"("let":{"S":"1"},)", "'S' stands for a size of the pass"},
      {fmt::format(R"("more":["x = act {}"],)", std::string(5000, 'x')),
       "a line of 5008 bytes, the limit is 4000"},
      {R"("more":["x = add a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"],)",
       "more than 32 results, inputs"},
  };
  for (const auto& [text, message] : rows) {
    const std::string asset = fmt::format(R"({{"family":"f",{}"main":["x = embed ids @w[4, 2]"]}})", text);
    EXPECT_NE(error_from(asset, "{}").find(message), std::string::npos) << error_from(asset, "{}");
  }
}

// Each place is found from the last: tens of thousands take no longer than they are.
TEST(Architecture, PlacesInLongAssetsAreExact) {
  std::string text = "{\"many\": {\n";
  constexpr int kKeys = 40'000;
  for (int i = 0; i < kKeys; ++i) text += fmt::format("  \"k{}\": [\"v\"],\n", i);
  text += "  \"last\": \"here\"}}";
  const AssetNode root = parse_asset(text, "long.json");
  const AssetNode& last = root.items[0].items.back();
  EXPECT_EQ(last.place.line, kKeys + 2u);
  EXPECT_EQ(last.place.column, 12u);
  EXPECT_EQ(root.items[0].items[7].place.line, 9u);
  EXPECT_EQ(root.items[0].items[7].items[0].place.column, 11u);
}

struct Published {
  const char* preset;
  std::uint64_t parameters;  // of the state dict
  std::uint64_t bytes;
  std::size_t tensors;
  std::size_t ops;
};

// Facts: the models' indexes and cards on the Hub, as collected in the notes on architectures.
TEST(Families, HaveTheirPublishedSizes) {
  const Published rows[] = {
      {"llama-3-8b", 8'030'261'248, 16'060'522'496, 291, 548},
      {"llama-3.1-70b", 70'553'706'496, 141'107'412'992, 723, 1364},
      {"llama-3.2-1b", 1'235'814'400, 2'471'628'800, 146, 276},
      {"gpt2-xl", 1'557'611'200, 6'230'444'800, 580, 581},
      {"deepseek-v3", 684'489'845'504, 688'574'839'360, 91'991, 1639},  // and 41,540,496 scales
  };
  for (const Published& row : rows) {
    const Preset& preset = *find_preset(row.preset);
    const MetaGraph graph = config_graph(preset.config_json, row.preset);
    EXPECT_EQ(parameter_count(graph), row.parameters) << row.preset;
    EXPECT_EQ(storage_bytes(graph), row.bytes) << row.preset;
    EXPECT_EQ(graph.tensors.size(), row.tensors) << row.preset;
    const ModelConfig config(preset.config_json, row.preset);
    const Architecture& architecture = *find_architecture(config, built_in_architectures());
    const std::vector<std::pair<std::string, Datum>> latent = {{"latent", Datum(std::int64_t{1})}};
    const BoundModel model = bind_architecture(architecture, config, &graph, latent);
    EXPECT_EQ(model.ops.size(), row.ops) << row.preset;
    EXPECT_TRUE(model.claims.missing.empty()) << row.preset << ": " << model.claims.missing.front();
    EXPECT_TRUE(model.claims.unclaimed.empty()) << row.preset;
    EXPECT_TRUE(model.claims.disagreements.empty()) << row.preset;
  }
}

}  // namespace
}  // namespace loadline
