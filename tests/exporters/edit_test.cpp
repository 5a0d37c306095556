// Changed headers, merged adapters, moved weights, synthetic checkpoints.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/forward/model/known_models.h"
#include "core/io/graph_reader.h"
#include "core/load/order/optimal_order.h"
#include "exporters/edit/edit_header.h"
#include "exporters/exporter.h"
#include "exporters/merge/merge_lora.h"
#include "exporters/synth.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {

// --- Edited headers: the same size, the same tensors, the metadata that was asked for.

namespace {

using testing::GgufBuilder;
using Changes = std::vector<exporters::MetadataChange>;

exporters::MetadataChange set(std::string key, std::string value) {
  return {std::move(key), {}, std::move(value)};
}
exporters::MetadataChange add(std::string key, std::string type, std::string value) {
  return {std::move(key), std::move(type), std::move(value)};
}
exporters::MetadataChange remove(std::string key) { return {std::move(key), {}, {}}; }

// A file in memory that can be edited again and again.
class Edited {
 public:
  Edited(std::string name, std::string bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  graph::MetaGraph read() const { return importers::import_source(testing::memory_source(name_, bytes_)); }
  // Checks that only the header changes, and in it only what was asked for.
  exporters::HeaderEdit edit(const Changes& changes) {
    const graph::MetaGraph before = read();
    const io::SourceFile file = io::SourceFile::from_memory(name_, testing::as_bytes(bytes_));
    exporters::HeaderEdit edit = exporters::edit_header(before, file, changes);
    EXPECT_EQ(edit.before.size(), edit.after.size());
    EXPECT_EQ(std::memcmp(edit.before.data(), bytes_.data(), edit.before.size()), 0);
    std::memcpy(bytes_.data(), edit.after.data(), edit.after.size());
    const graph::MetaGraph after = read();
    EXPECT_EQ(after.tensors, before.tensors);
    EXPECT_EQ(after.storages, before.storages);
    for (const graph::MetaEntry& entry : before.metadata)
      if (std::ranges::find(changes, entry.key, &exporters::MetadataChange::key) == changes.end() &&
          entry.key != exporters::kSlackKey)
        EXPECT_EQ(text(after, entry.key), graph::meta_text(entry.value)) << entry.key;
    return edit;
  }
  std::string fault(const Changes& changes) const {
    return testing::facts_of([&] {
      (void)exporters::edit_header(read(), io::SourceFile::from_memory(name_, testing::as_bytes(bytes_)),
                                   changes);
    });
  }
  static std::string text(const graph::MetaGraph& graph, std::string_view key) {
    const graph::MetaValue* const value = graph::find_metadata(graph, key);
    return value == nullptr ? "-" : graph::meta_text(*value);
  }
  std::string text(std::string_view key) const { return text(read(), key); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string name_, bytes_;
};

Edited gguf() { return {"m.gguf", testing::sample_gguf()}; }

// --- GGUF

TEST(EditGguf, KeepsTheTypesOfExistingKeys) {
  Edited file = gguf();
  const exporters::HeaderEdit edit = file.edit(
      {set("u8", "7"), set("i8", "-128"), set("u16", "65535"), set("i16", "0"), set("i32", "-2147483648"),
       set("f32", "0.25"), set("bool", "false"), set("u64", "18446744073709551615"), set("i64", "-1"),
       set("f64", "1e300"), set("general.architecture", "gpt2"), set("scores", "[0.5, -1]")});
  EXPECT_EQ(edit.changed.size(), 12u);
  EXPECT_EQ(edit.changed[0].before, "llama");
  const graph::MetaGraph after = file.read();
  EXPECT_EQ(std::get<std::uint8_t>(*graph::find_metadata(after, "u8")), 7);
  EXPECT_EQ(std::get<std::int32_t>(*graph::find_metadata(after, "i32")), INT32_MIN);
  EXPECT_EQ(std::get<float>(*graph::find_metadata(after, "f32")), 0.25F);
  EXPECT_EQ(std::get<bool>(*graph::find_metadata(after, "bool")), false);
  EXPECT_EQ(std::get<double>(*graph::find_metadata(after, "f64")), 1e300);
  EXPECT_EQ(file.text("general.architecture"), "gpt2");
  EXPECT_EQ(file.text("scores"), "2 f32 values");
}

TEST(EditGguf, RefusesValuesThatDoNotFitTheType) {
  const Edited file = gguf();
  for (const auto& [key, value, facts] : std::vector<std::array<std::string, 3>>{
           {"u8", "256", "usage m.gguf 'u8' '256' u8"},
           {"u8", "-1", "usage m.gguf 'u8' '-1' u8"},
           {"u8", "1.5", "usage m.gguf 'u8' '1.5' u8"},
           {"u8", "", "usage m.gguf 'u8' '' u8"},
           {"u64", "18446744073709551616", "usage m.gguf 'u64' '18446744073709551616' u64"},
           {"i64", "0x10", "usage m.gguf 'i64' '0x10' i64"},
           {"f32", "1e400", "usage m.gguf 'f32' '1e400' f32"},
           {"f32", "one", "usage m.gguf 'f32' 'one' f32"},
           {"bool", "1", "usage m.gguf 'bool' '1'"},
           {"scores", "1.5", "usage m.gguf 'scores' '1.5' 1 2"},
           {"scores", "[1, \"x\"]", "usage m.gguf 'scores' '[1, \"x\"]' f32"},
           {"scores", "[[1]]", "usage m.gguf 'scores' '[[1]]' f32"},
           {"tokenizer.ggml.tokens", "[1]", "usage m.gguf 'tokenizer.ggml.tokens' '[1]'"},
           {"tokenizer.ggml.tokens", std::string(100'000, '['),
            "usage m.gguf 'tokenizer.ggml.tokens' "
            "'[[[[[[[[[[[[[[[[[[[[[[[[[[[[...[[[[[[[[[[[[[[[[[[[[[[[[[[[[[' 1 2"}})
    EXPECT_EQ(file.fault({set(key, value)}), facts);
}

TEST(EditGguf, NewKeysNeedATypeAndOldOnesKeepTheirs) {
  Edited file = gguf();
  EXPECT_EQ(file.fault({set("mine", "1")}), "usage m.gguf 'mine'");
  EXPECT_EQ(file.fault({add("mine", "u128", "1")}), "usage m.gguf 'u128'");
  EXPECT_EQ(file.fault({add("u8", "u16", "1")}), "usage m.gguf 'u8' u8 u16");
  EXPECT_EQ(file.fault({add("scores", "f32", "1")}), "usage m.gguf 'scores' f32 f32");
  file.edit({remove("tokenizer.ggml.tokens"), remove("scores"), add("mine", "u32", "5"), add("u8", "u8", "9"),
             add("n", "string[]", R"(["a","b"])"), add("e", "u8[]", "[]")});
  EXPECT_EQ(file.text("mine"), "5");
  EXPECT_EQ(file.text("n"), "2 strings");
  EXPECT_EQ(file.text("e"), "0 u8 values");
  EXPECT_EQ(file.text("tokenizer.ggml.tokens"), "-");
}

TEST(EditGguf, RefusesKeysOfTheLayoutAndSenselessChanges) {
  const Edited file = gguf();
  for (const char* key : {"general.alignment", "split.count", "loadline.slack", "GGUF.version"})
    EXPECT_EQ(file.fault({add(key, "u32", "64")}), fmt::format("unsupported m.gguf '{}'", key));
  EXPECT_EQ(file.fault({remove("absent")}), "usage m.gguf 'absent'");
  EXPECT_EQ(file.fault({set("u8", "1"), remove("u8")}), "usage m.gguf 'u8'");
  EXPECT_EQ(file.fault({set("", "1")}), "usage m.gguf ''");
  EXPECT_EQ(file.fault({add("\xFF", "u8", "1")}), "usage m.gguf '\\xff' UTF-8");
  EXPECT_EQ(file.fault({set("general.architecture", "\xFF")}), "usage m.gguf 'general.architecture' UTF-8");
  EXPECT_EQ(file.fault({add(std::string(70'000, 'k'), "u8", "1")}), "usage m.gguf 70000 65535");
}

TEST(EditGguf, SaysHowManyBytesAreMissing) {
  EXPECT_EQ(gguf().fault({set("general.architecture", std::string(1000, 'x'))}),
            "limit m.gguf 3104 2112 992 --align 4096");
}

TEST(EditGguf, BigEndianFilesAreRefused) {
  const Edited file("m.gguf", testing::sample_gguf(true));
  EXPECT_EQ(file.fault({set("u8", "1")}), "unsupported m.gguf 4 2 3");
}

// The data stays where readers look for it, whatever the sizes and the alignment are.
TEST(EditGguf, EverySizeEitherFitsExactlyOrIsRefused) {
  for (const std::uint32_t alignment : {8u, 16u, 32u, 64u, 4096u}) {
    GgufBuilder builder;
    builder.alignment(alignment).key("general.architecture", "llama").key("text", std::string(100, 'x'));
    const std::string bytes = builder.tensor("t", {8}, 0, 32).bytes();
    std::size_t fitted = 0;
    for (std::size_t length = 0; length <= 300; ++length) {
      Edited file("m.gguf", bytes);
      const Changes change = {set("text", std::string(length, 'y'))};
      if (const std::string fault = file.fault(change); !fault.empty()) {
        EXPECT_TRUE(fault.starts_with("limit m.gguf ")) << alignment << " " << length << " " << fault;
        continue;
      }
      ++fitted;
      const exporters::HeaderEdit edit = file.edit(change);
      EXPECT_EQ(file.text("text"), std::string(length, 'y'));
      // and back, and what is said to fit does
      if (length < 100) {
        file.edit({set("text", std::string(length + edit.room, 'z'))});
        EXPECT_NE(file.fault({set("text", std::string(length + edit.room + alignment + 64, 'z'))}), "");
      }
    }
    EXPECT_GE(fitted, alignment < 32 ? 80u : 100u) << alignment;
  }
}

TEST(EditGguf, SlackIsUsedAndKept) {
  GgufBuilder builder;
  builder.key("general.architecture", "llama").key("loadline.slack", std::string(4096, ' '));
  Edited file("m.gguf", builder.tensor("t", {8}, 0, 32).bytes());
  const exporters::HeaderEdit edit = file.edit({add("mine", "string", std::string(1000, 'x'))});
  EXPECT_GT(edit.room, 3000u);
  EXPECT_EQ(file.text("loadline.slack").size(), edit.room);
  file.edit({add("more", "string", std::string(edit.room - 24, 'x'))});
  EXPECT_NE(file.fault({add("again", "string", std::string(100, 'x'))}), "");
  file.edit({remove("mine"), remove("more")});
  EXPECT_GT(file.text("loadline.slack").size(), 4000u);
}

TEST(EditGguf, AFileWithoutTensors) {
  GgufBuilder builder;
  builder.key("general.architecture", "llama").key("tokenizer.ggml.model", "something");
  Edited file("m.gguf", builder.bytes());
  file.edit({set("general.architecture", "x")});
  EXPECT_NE(file.fault({set("general.architecture", "something longer")}), "");
}

// --- safetensors

Edited safetensors(std::string_view header, std::size_t data) {
  return {"m.safetensors", testing::safetensors_bytes(header, data)};
}
constexpr std::string_view kTensor = R"("x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";

TEST(EditSafetensors, SetsRemovesAndAdds) {
  Edited file = safetensors("{ \"__metadata__\" : {\"format\":\"pt\", \"a\":\"1\"} , " +
                                std::string(kTensor) + " }" + std::string(40, ' '),
                            4);
  const exporters::HeaderEdit edit =
      file.edit({set("a", "2"), set("new\"key", "line\nbreak"), remove("format")});
  EXPECT_EQ(file.text("a"), "2");
  EXPECT_EQ(file.text("new\"key"), "line\nbreak");
  EXPECT_EQ(file.text("format"), "-");
  EXPECT_NE(file.bytes().find(kTensor), std::string::npos);
  // what is said to fit does, and not a byte more
  Edited more = file;
  more.edit({set("a", "2" + std::string(edit.room, 'x'))});
  EXPECT_EQ(file.fault({set("a", "2" + std::string(edit.room + 1, 'x'))}),
            "limit m.safetensors 140 139 1 --align 4096");
}

TEST(EditSafetensors, MetadataAnywhereOrNowhere) {
  const std::string room(60, ' ');
  for (const std::string& header :
       {"{" + std::string(kTensor) + "}" + room, "{" + std::string(kTensor) + ",\"__metadata__\":{}}" + room,
        "{\"__metadata__\":{\"b\":\"}{\\\"\"}," + std::string(kTensor) + "}" + room,
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"__metadata__":{},)" + std::string(kTensor) +
            "}" + room}) {
    Edited file = safetensors(header, 4);
    file.edit({set("k", "v")});
    EXPECT_EQ(file.text("k"), "v");
    file.edit({remove("k")});
    EXPECT_EQ(file.text("k"), "-");
  }
  Edited empty = safetensors("{}" + room, 0);
  empty.edit({set("k", "v")});
  EXPECT_EQ(empty.text("k"), "v");
}

TEST(EditSafetensors, EscapedKeysAreFound) {
  Edited file = safetensors(
      R"({"__\u006detadata__":{"a\u0062":"1"},)" + std::string(kTensor) + "}" + std::string(40, ' '), 4);
  file.edit({set("ab", "2")});
  EXPECT_EQ(file.text("ab"), "2");
}

TEST(EditSafetensors, RefusesTypesAndTheFolderSConfig) {
  const Edited file = safetensors("{" + std::string(kTensor) + "}", 4);
  EXPECT_EQ(file.fault({add("k", "u32", "1")}), "usage m.safetensors 'k' u32");
  EXPECT_EQ(file.fault({set("config.json", "{}")}), "unsupported m.safetensors config.json");
  EXPECT_EQ(file.fault({set("k", "v")}), "limit m.safetensors 78 53 25 --align 4096");
}

TEST(EditSafetensors, ManyTensorsStayAsTheyStand) {
  testing::SafetensorsHeader header(R"({"a":"x"})");
  for (int i = 0; i < 2000; ++i) header.add("t" + std::to_string(i), "U8", "3", 3);
  Edited file("m.safetensors", testing::safetensors_bytes(header.text(), header.data_bytes()));
  const std::string before = file.bytes();
  file.edit({set("a", "y")});
  EXPECT_EQ(before.size(), file.bytes().size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < before.size(); ++i) different += before[i] != file.bytes()[i];
  EXPECT_EQ(different, 1u);
}

TEST(EditHeader, OtherFormatsAreRefused) {
  EXPECT_TRUE(exporters::can_edit_header("gguf"));
  EXPECT_FALSE(exporters::can_edit_header("hf_index"));
  EXPECT_TRUE(exporters::is_metadata_type("f32[]"));
  EXPECT_FALSE(exporters::is_metadata_type("[]"));
  EXPECT_FALSE(exporters::is_metadata_type("array"));
}

}  // namespace

// --- LoRA adapters: what is merged, what is refused and why.

namespace {

using testing::SafetensorsHeader;

struct Given {
  std::string name, dtype, shape;
  std::uint64_t bytes;
};

graph::MetaGraph model(const std::string& path, const std::vector<Given>& tensors) {
  SafetensorsHeader header;
  for (const Given& tensor : tensors) header.add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
  return importers::import_source(
      testing::memory_source(path, testing::safetensors_bytes(header.text(), header.data_bytes())));
}

const std::vector<Given> kBase = {
    {"model.layers.0.q_proj.weight", "BF16", "6,4", 48}, {"model.layers.0.o_proj.weight", "F32", "4,4", 64},
    {"model.layers.0.f8.weight", "F8_E4M3", "6,4", 24},  {"model.layers.0.ids.weight", "I32", "6,4", 96},
    {"model.embed_tokens.weight", "BF16", "10,4", 80},   {"model.norm.weight", "F32", "4", 16}};

std::string key(std::string_view module, std::string_view part) {
  return "base_model.model." + std::string(module) + "." + std::string(part);
}

class Merge : public ::testing::Test {
 protected:
  exporters::LoraMerge merge(const std::vector<Given>& adapter, std::optional<graph::DType> outtype = {}) {
    return exporters::merge_lora(base, model("adapter_model.safetensors", adapter), config, outtype);
  }
  std::string fault(const std::vector<Given>& adapter, std::optional<graph::DType> outtype = {}) {
    return testing::facts_of([&] { (void)merge(adapter, outtype); });
  }
  // The two factors of rank 2 of one module.
  static std::vector<Given> factors(std::string_view module, int rows, int columns,
                                    const std::string& dtype = "F32") {
    const auto number = [](int n) { return std::to_string(n); };
    const std::uint64_t size = dtype == "F32" ? 4 : 2;
    return {{key(module, "lora_A.weight"), dtype, "2," + number(columns),
             static_cast<std::uint64_t>(2 * columns) * size},
            {key(module, "lora_B.weight"), dtype, number(rows) + ",2",
             static_cast<std::uint64_t>(2 * rows) * size}};
  }
  static std::vector<Given> joined(std::vector<Given> a, const std::vector<Given>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  graph::MetaGraph base = model("model.safetensors", kBase);
  exporters::LoraConfig config{2, 8};
};

TEST_F(Merge, OnlyTheBasesTensorsAreWritten) {
  const exporters::LoraMerge merged =
      merge(joined(factors("model.layers.0.q_proj", 6, 4), {{key("model.norm", "weight"), "BF16", "4", 8}}));
  EXPECT_EQ(merged.merged, 1u);
  EXPECT_EQ(merged.replaced, 1u);
  exporters::ExportOptions options;
  options.recipes = merged.recipes;
  const std::vector<exporters::Slot> slots = exporters::output_slots(*merged.graph, options);
  ASSERT_EQ(slots.size(), base.tensors.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i].name, base.tensors[i].name);
    EXPECT_EQ(slots[i].dtype, base.tensors[i].dtype);
    EXPECT_EQ(slots[i].shape, base.tensors[i].shape);
  }
  const auto slot = std::ranges::find_if(
      slots, [](const exporters::Slot& s) { return s.name == "model.layers.0.q_proj.weight"; });
  EXPECT_EQ(slot->recipe.steps.back().kind, convert::StepKind::add_product);
  EXPECT_EQ(slot->recipe.steps.back().value, 4);
}

TEST_F(Merge, OuttypesApplyToWhatIsMerged) {
  const exporters::LoraMerge merged =
      merge(joined(factors("model.layers.0.q_proj", 6, 4, "F16"), factors("model.layers.0.f8", 6, 4, "BF16")),
            graph::DType::f16);
  exporters::ExportOptions options;
  options.outtype = graph::DType::f16;
  options.recipes = merged.recipes;
  for (const exporters::Slot& slot : exporters::output_slots(*merged.graph, options))
    if (slot.name != "model.layers.0.ids.weight")
      EXPECT_EQ(slot.dtype, graph::DType::f16) << slot.name.view();
}

TEST_F(Merge, WeightsOfInputsByOutputs) {
  EXPECT_EQ(merge(factors("model.layers.0.q_proj", 4, 6)).recipes->instead.begin()->second.steps.size(), 6u);
  // a square weight goes by the configuration, where the model's type is not known
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 4u);
  config.fan_in_fan_out = true;
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 6u);
  base.metadata.push_back({std::string(graph::kConfigKey), std::string(R"({"model_type": "llama"})")});
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 4u);
  config.fan_in_fan_out = false;
  base.metadata.back().value = std::string(R"({"model_type": "gpt2"})");
  EXPECT_EQ(merge(factors("model.layers.0.o_proj", 4, 4)).recipes->instead.begin()->second.steps.size(), 6u);
}

TEST_F(Merge, FactorsThatPeftWouldLeaveOutAreRefused) {
  config.targets = exporters::LoraModules{{"v_proj"}, {}};
  EXPECT_EQ(fault(factors("model.layers.0.q_proj", 6, 4)),
            "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' "
            "target_modules");
}

TEST_F(Merge, NamesOfTheInnerModelAreFound) {
  EXPECT_EQ(merge(factors("layers.0.q_proj", 6, 4)).merged, 1u);
  EXPECT_EQ(merge(factors("outer.model.layers.0.q_proj", 6, 4)).merged, 1u);
  EXPECT_EQ(fault(factors("layers.9.q_proj", 6, 4)),
            "unsupported adapter_model.safetensors 'base_model.model.layers.9.q_proj.lora_A.weight' "
            "'layers.9.q_proj.weight'");
}

TEST_F(Merge, EmbeddingsAndTheirOwnCopy) {
  const std::vector<Given> embedding = {{key("model.embed_tokens", "lora_embedding_A"), "F32", "2,10", 80},
                                        {key("model.embed_tokens", "lora_embedding_B"), "F32", "4,2", 32}};
  EXPECT_EQ(merge(embedding).merged, 1u);
  const exporters::LoraMerge both =
      merge(joined(embedding, {{key("model.embed_tokens", "base_layer.weight"), "F32", "10,4", 160}}));
  EXPECT_EQ(both.merged, 1u);
  EXPECT_EQ(both.replaced, 0u);
  const convert::Recipe& recipe = both.recipes->instead.begin()->second;
  EXPECT_EQ(both.graph->tensor(recipe.steps.front().tensor).name,
            "base_model.model.model.embed_tokens.base_layer.weight");
  EXPECT_EQ(convert::recipe_forms(*both.graph, recipe).back().dtype, graph::DType::bf16);
}

TEST_F(Merge, RefusesWithTheReason) {
  const auto of = [](std::string_view module, std::string_view part) {
    return std::vector<Given>{{key(module, part), "F32", "4", 16}};
  };
  EXPECT_EQ(
      fault(of("model.layers.0.q_proj", "lora_magnitude_vector")),
      "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_magnitude_vector'");
  EXPECT_EQ(fault(of("model.layers.0.q_proj", "lora_B.bias")),
            "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_B.bias'");
  EXPECT_EQ(fault({{"model.norm.weight", "F32", "4", 16}}),
            "unsupported adapter_model.safetensors 'model.norm.weight' base_model.model");
  EXPECT_EQ(fault({}), "malformed adapter_model.safetensors");
  EXPECT_EQ(fault({{key("model.embed_tokens", "weight"), "F32", "11,4", 176}}),
            "unsupported adapter_model.safetensors 'base_model.model.model.embed_tokens.weight' 11 4 10 4 "
            "config.json");
  EXPECT_EQ(fault(factors("model.layers.0.ids", 6, 4)),
            "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.ids.lora_A.weight' I32");
  EXPECT_EQ(fault(factors("model.layers.0.f8", 6, 4)),
            "usage 'base_model.model.model.layers.0.f8.lora_A.weight' F8_E4M3 >outtype=bf16");
  EXPECT_EQ(
      fault(factors("model.layers.0.q_proj", 6, 5)),
      "malformed adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' 6 5 6 4");
  EXPECT_EQ(
      fault({factors("model.layers.0.q_proj", 6, 4)[0]}),
      "malformed adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' lora_B");
  EXPECT_EQ(fault(joined(factors("model.layers.0.q_proj", 6, 4), factors("layers.0.q_proj", 6, 4))),
            "malformed adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight'");
  EXPECT_EQ(
      fault({{key("model.layers.0.q_proj", "lora_A.weight"), "F32", "2,4,1,1", 32},
             {key("model.layers.0.q_proj", "lora_B.weight"), "F32", "6,2,1,1", 48}}),
      "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' 2 4 1 1");
  EXPECT_EQ(fault(factors("model.layers.0.q_proj", 6, 4, "I16")),
            "unsupported adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' "
            "I16 F32 F16 BF16");
  config.rank = 3;
  EXPECT_EQ(fault(factors("model.layers.0.q_proj", 6, 4)),
            "malformed adapter_model.safetensors 'base_model.model.model.layers.0.q_proj.lora_A.weight' 2 "
            "lora_B 2 3");
}

TEST_F(Merge, TiedWeightsAreRefused) {
  graph::Tensor head = base.tensors[0];
  for (const graph::Tensor& tensor : base.tensors)
    if (tensor.name == "model.embed_tokens.weight") head = tensor;
  head.name = "lm_head.weight";
  base.tensors.push_back(head);
  EXPECT_EQ(fault({{key("lm_head", "weight"), "F32", "10,4", 160}}),
            "unsupported adapter_model.safetensors 'base_model.model.lm_head.weight' 'lm_head.weight' "
            "'model.embed_tokens.weight'");
  base.tensors.pop_back();
  base.metadata.push_back({std::string(graph::kConfigKey), std::string(R"({"tie_word_embeddings": true})")});
  EXPECT_EQ(fault({{key("model.embed_tokens", "weight"), "F32", "10,4", 160}}),
            "unsupported adapter_model.safetensors 'base_model.model.model.embed_tokens.weight'");
}

// --- adapter_config.json

std::string config_fault(std::string_view text) {
  return testing::facts_of([&] { (void)exporters::parse_lora_config(text, "adapter_config.json"); });
}

TEST(LoraConfig, ScalesAndPatterns) {
  const exporters::LoraConfig config = exporters::parse_lora_config(
      R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "rank_pattern": {"v_proj": 4, "layers\\.1\\.o_proj": 2},
          "alpha_pattern": {"layers.1.v_proj": 32, "v_proj": 4}, "use_dora": false, "layer_replication": null,
          "target_parameters": [], "init_lora_weights": true, "bias": "none"})",
      "adapter_config.json");
  EXPECT_EQ(config.scale_of("model.layers.0.q_proj"), 2);
  EXPECT_EQ(config.scale_of("model.layers.0.v_proj"), 1);
  EXPECT_EQ(config.scale_of("model.layers.1.v_proj"), 8);
  EXPECT_EQ(config.scale_of("model.layers.11.v_proj"), 1);
  EXPECT_EQ(config.rank_of("model.layers.1.o_proj"), 2u);
  EXPECT_EQ(config.rank_of("model.layers.11.o_proj"), 8u);
  EXPECT_EQ(config.rank_of("model.layers.0.kv_proj"), 8u);
  exporters::LoraConfig stabilized = config;
  stabilized.rank_stabilized = true;
  EXPECT_EQ(stabilized.scale_of("q_proj"), 16 / std::sqrt(8.0));
}

TEST(LoraConfig, RefusesWhatIsNoPlainSum) {
  const auto with = [](const std::string& more) {
    return config_fault(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, )" + more + "}");
  };
  EXPECT_EQ(with(R"("use_dora": true)"), "unsupported adapter_config.json use_dora");
  EXPECT_EQ(with(R"("lora_bias": true)"), "unsupported adapter_config.json lora_bias");
  EXPECT_EQ(with(R"("bias": "all")"), "unsupported adapter_config.json 'all'");
  EXPECT_EQ(with(R"("layer_replication": [[0, 4]])"), "unsupported adapter_config.json layer_replication");
  EXPECT_EQ(with(R"("init_lora_weights": "pissa")"),
            "unsupported adapter_config.json init_lora_weights 'pissa'");
  EXPECT_EQ(with(R"("init_lora_weights": "gaussian")"), "");
  EXPECT_EQ(with(R"("alpha_pattern": {"(q|v_proj": 3})"),
            "unsupported adapter_config.json alpha_pattern '(q|v_proj' 17 '(' ')'");
  EXPECT_EQ(with(R"("kasa_config": {})"), "unsupported adapter_config.json kasa_config");  // its defaults
  EXPECT_EQ(with(R"("megatron_config": {"x": 1})"), "unsupported adapter_config.json megatron_config");
  EXPECT_EQ(with(R"("ensure_weight_tying": true)"), "unsupported adapter_config.json ensure_weight_tying");
  EXPECT_EQ(with(R"("layers_pattern": "h.*", "layers_to_transform": 1)"),
            "unsupported adapter_config.json layers_pattern 'h.*'");
  EXPECT_EQ(with(R"("layers_to_transform": [-1])"), "malformed adapter_config.json 'layers_to_transform'");
  EXPECT_EQ(with(R"("use_rslora": 1)"), "malformed adapter_config.json 'use_rslora'");
  EXPECT_EQ(with(R"("alpha_pattern": [1])"), "malformed adapter_config.json 'alpha_pattern'");
  EXPECT_EQ(with(R"("rank_pattern": {"q": 0.5})"), "malformed adapter_config.json rank_pattern");
}

TEST(LoraConfig, ModulesAreThoseOfPeft) {
  const auto with = [](const std::string& more) {
    return exporters::parse_lora_config(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, )" + more + "}",
                                        "adapter_config.json");
  };
  const exporters::LoraConfig names =
      with(R"("target_modules": ["q_proj", "layers.1.v_proj"], "exclude_modules": ["0.q_proj"])");
  EXPECT_EQ(names.kept_out_by("model.layers.1.q_proj"), "");
  EXPECT_EQ(names.kept_out_by("model.layers.0.q_proj"), "exclude_modules");
  EXPECT_EQ(names.kept_out_by("model.layers.1.v_proj"), "");
  EXPECT_EQ(names.kept_out_by("model.layers.11.v_proj"), "target_modules");
  EXPECT_EQ(names.kept_out_by("model.layers.1.kq_proj"), "target_modules");
  const exporters::LoraConfig expression =
      with(R"("target_modules": ".*\\.(q|v)_proj", "layers_to_transform": [3])");
  EXPECT_EQ(expression.kept_out_by("model.layers.1.v_proj"), "");
  EXPECT_EQ(expression.kept_out_by("model.layers.1.v_proj.x"), "target_modules");
  const exporters::LoraConfig layers = with(R"("target_modules": ["q"], "layers_to_transform": [1])");
  EXPECT_EQ(layers.kept_out_by("model.layers.1.experts.0.q"), "");
  EXPECT_EQ(layers.kept_out_by("model.layers.0.experts.1.q"), "layers_to_transform");
  EXPECT_EQ(layers.kept_out_by("layers.1.q"),
            "layers_to_transform");  // as PEFT: two names come before the number
  const exporters::LoraConfig listed =
      with(R"("target_modules": ["q"], "layers_to_transform": 1, "layers_pattern": "h")");
  EXPECT_EQ(listed.kept_out_by("h.1.q"), "");
  EXPECT_EQ(listed.kept_out_by("model.layers.1.q"), "layers_to_transform");
  const exporters::LoraConfig ranks = with(R"("rank_pattern": {"(q|v)_proj": 4, "layers.1.*": 2})");
  EXPECT_EQ(ranks.rank_of("model.layers.0.v_proj"), 4u);
  EXPECT_EQ(ranks.rank_of("model.layers.1.k_proj"), 2u);
  EXPECT_EQ(ranks.rank_of("model.layers.0.k_proj"), 8u);
}

// What a newer PEFT has learned is named. Settings that are off, and those of training, are not.
TEST(LoraConfig, UnknownSettingsAreNamed) {
  const auto left = [](const std::string& more) {
    return forward::settings_text(
        exporters::parse_lora_config(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, )" + more + "}",
                                     "adapter_config.json")
            .unaccounted);
  };
  EXPECT_EQ(
      left(
          R"("lora_dropout": 0.5, "task_type": "CAUSAL_LM", "eva_config": {"rho": 2}, "modules_to_save": ["lm_head"])"),
      "");
  EXPECT_EQ(left(R"("of_nobody": null, "use_of_nobody": false, "list_of_nobody": [])"), "");
  EXPECT_EQ(left(R"("of_nobody": 3, "nobody": {"x": false}, "empty": {})"),
            "'of_nobody' is 3, 'nobody.x' is false, 'empty' is {}");
}

TEST(LoraConfig, HostileTexts) {
  EXPECT_EQ(config_fault(""), "malformed adapter_config.json");
  EXPECT_EQ(config_fault("[1]"), "malformed adapter_config.json");
  EXPECT_EQ(config_fault(std::string(200'000, '[')), "malformed adapter_config.json");
  EXPECT_EQ(config_fault(std::string(5 << 20, ' ')), "limit adapter_config.json 5242880 4194304");
  EXPECT_EQ(config_fault("{}"), "malformed adapter_config.json 'peft_type'");
  EXPECT_EQ(config_fault(R"({"peft_type": "IA3"})"), "unsupported adapter_config.json peft_type 'IA3'");
  EXPECT_EQ(config_fault(R"({"peft_type": "LORA", "r": 0, "lora_alpha": 1})"),
            "malformed adapter_config.json 'r' 0");
  EXPECT_EQ(config_fault(R"({"peft_type": "LORA", "r": 8})"), "malformed adapter_config.json 'lora_alpha'");
  EXPECT_EQ(config_fault(R"({"peft_type": "LORA", "r": 8, "lora_alpha": "1"})"),
            "malformed adapter_config.json 'lora_alpha'");
}

}  // namespace

// --- ONNX: weights move out of the file and back, and nothing else changes.

namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::expect_law;
using export_tests::open;
using export_tests::plain_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

// A branch with an initializer of its own, weights above and below the size that stays inside, in raw_data
// and in typed fields, two tensors on one external range, and a field that no version knows.
void write_onnx_model(const std::string& path) {
  namespace onnx = testing::onnx;
  std::string big(8192, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 7);
  std::vector<std::uint64_t> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i << (i % 40);
  testing::Proto branch, graph;
  branch.text(onnx::kNode, onnx::node("Identity", {"inner"}, {"b"}));
  branch.text(onnx::kInitializer, onnx::raw_tensor("inner", onnx::kFloat, {512}, big.substr(0, 2048)));
  branch.text(onnx::kOutput, onnx::value("b", onnx::kFloat, {"512"}));
  testing::Proto constant = onnx::node("Constant", {}, {"c"}, "constant");
  constant.text(5, onnx::attribute_tensor("value", onnx::raw_tensor("", onnx::kFloat, {2048}, big)));
  testing::Proto choice = onnx::node("If", {"x"}, {"y"}, "choice");
  choice.text(5, onnx::attribute_graph("then_branch", branch));
  choice.text(5, onnx::attribute_graph("else_branch", branch));
  graph.text(onnx::kNode, constant).text(onnx::kNode, choice);
  graph.text(onnx::kInitializer, onnx::raw_tensor("large", onnx::kFloat, {64, 32}, big));
  graph.text(onnx::kInitializer, onnx::raw_tensor("least", onnx::kUint8, {1024}, big.substr(1, 1024)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("small", onnx::kUint8, {1023}, big.substr(1, 1023)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("nothing", onnx::kFloat, {0, 4}, ""));
  graph.text(onnx::kInitializer, onnx::int64_tensor("typed", numbers));
  const auto outside = [&](const char* name, const onnx::Dims& dims, const char* offset, const char* length) {
    graph.text(onnx::kInitializer,
               onnx::external_tensor(name, onnx::kFloat, dims,
                                     {{"location", "./w.bin"}, {"offset", offset}, {"length", length}}));
  };
  outside("tied", {16, 32}, "16", "2048");
  outside("head", {32, 16}, "16", "2048");
  outside("bias", {4}, "4000", "16");
  graph.text(onnx::kInput, onnx::value("x", onnx::kBool, {}));
  graph.text(onnx::kOutput, onnx::value("y", onnx::kFloat, {"512"}));
  graph.text(2000, "of a later version");
  write_file(path, onnx::model(graph));
  write_file(fs::path(path).parent_path() / "w.bin", big);
}

TEST(OnnxExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_file(folder / "in/sample.onnx", testing::onnx::sample_onnx());
  write_file(folder / "in/sample.data", testing::onnx::sample_onnx_data());
  write_onnx_model(folder / "in/model.onnx");
  exporters::ExportOptions within, aligned;
  within.inline_weights = true;
  aligned.alignment = 65536;
  for (const char* const name : {"sample", "model"}) {
    const graph::MetaGraphPtr source = open(folder / fmt::format("in/{}.onnx", name));
    expect_law(source, folder / fmt::format("out/{}.onnx", name));
    expect_law(source, folder / fmt::format("wide/{}.onnx", name), aligned);
    aligned.order = load::written_order(*source, "largest");
    expect_law(source, folder / fmt::format("ordered/{}.onnx", name), aligned);
    aligned.order.clear();
    expect_law(source, folder / fmt::format("one/{}.onnx", name), within);
    EXPECT_FALSE(fs::exists(folder / fmt::format("one/{}.onnx.data", name)));
    // and back from there
    expect_law(open(folder / fmt::format("out/{}.onnx", name)), folder / fmt::format("back/{}.onnx", name),
               within);
    expect_law(open(folder / fmt::format("one/{}.onnx", name)), folder / fmt::format("again/{}.onnx", name));
  }
  EXPECT_TRUE(fs::exists(folder / "again/model.onnx.data"));
}

TEST(OnnxExport, MovesWeightsAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const graph::MetaGraphPtr source = open(folder / "in/model.onnx");
  const exporters::Layout layout = exporters::find_exporter("onnx").layout(*source, {}, folder / "o.onnx");
  std::map<std::string, std::uint64_t> outside;
  for (const graph::Tensor& tensor : layout.result.tensors) {
    const graph::Storage& storage = layout.result.storage(tensor.storage);
    if (storage.file == graph::FileId{1}) outside[tensor.name] = storage.offset;
    if (storage.file == graph::FileId{1}) EXPECT_EQ(storage.offset % 4096, 0u);
  }
  EXPECT_EQ(outside.at("tied"), outside.at("head"));
  std::set<std::string> names;
  for (const auto& [name, offset] : outside) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"choice/else_branch/inner", "choice/then_branch/inner", "head",
                                          "large", "least", "tied", "typed"}));
  EXPECT_LT(layout.files.back().header.size(), 8192u);  // values within the file are copied, not held
  EXPECT_EQ(layout.files.back().slots.size(), 2u);      // the constant's, and the bias that is inside now
  // a model whose weights are all small or inside stays as it is, byte by byte
  write_file(folder / "in/plain.onnx", testing::onnx::weights_model({testing::onnx::raw_tensor(
                                           "w", testing::onnx::kFloat, {2048}, std::string(8192, 'w'))}));
  exporters::ExportOptions within;
  within.inline_weights = true;
  expect_law(open(folder / "in/plain.onnx"), folder / "plain.onnx", within);
  EXPECT_EQ(read_file(folder / "plain.onnx"), read_file(folder / "in/plain.onnx"));
  EXPECT_NE(read_file(folder / "in/model.onnx").find("of a later version"), std::string::npos);
  convert(source, folder / "o.onnx");
  EXPECT_NE(read_file(folder / "o.onnx").find("of a later version"), std::string::npos);
}

TEST(OnnxExport, Refuses) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr plain = plain_model(folder);
  EXPECT_THROW(convert(plain, folder / "o.onnx"), Error);  // has no operators
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const graph::MetaGraphPtr source = open(folder / "in/model.onnx");
  EXPECT_THROW(convert(source, folder / "a..b.onnx"), Error);
  EXPECT_THROW(
      convert(source, folder / "o.onnx", {.outtype = {}, .alignment = 1 << 17, .max_shard_bytes = 0}), Error);
  // 2^31 bytes within one file
  const std::uint64_t large = std::uint64_t{1} << 30;
  const auto weight = [&](const char* name, std::uint64_t offset) {
    return testing::onnx::external_tensor(
        name, testing::onnx::kUint8, {large},
        {{"location", "w.bin"}, {"offset", std::to_string(offset)}, {"length", std::to_string(large)}});
  };
  write_file(folder / "big/m.onnx", testing::onnx::weights_model({weight("a", 0), weight("b", large)}));
  write_file(folder / "big/w.bin", "");
  fs::resize_file(folder / "big/w.bin", 2 * large);
  exporters::ExportOptions within;
  within.inline_weights = true;
  EXPECT_EQ(testing::facts_of([&] {
              exporters::find_exporter("onnx").layout(*open(folder / "big/m.onnx"), within,
                                                      folder / "o.onnx");
            }),
            "limit o.onnx 2147483706 2147483646");
  EXPECT_NO_THROW(
      exporters::find_exporter("onnx").layout(*open(folder / "big/m.onnx"), {}, folder / "o.onnx"));
}

}  // namespace

// --- Synthetic checkpoints: real files of the right shape, sparse or seeded.

namespace {

constexpr const char* kTiny =
    R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("intermediate_size":96,"vocab_size":200,"torch_dtype":"bfloat16"})";

exporters::WriteReport synth(const graph::MetaGraph& shapes, const std::string& out,
                             std::optional<std::uint64_t> seed, std::uint64_t shard = 0) {
  Progress progress;
  return exporters::synthesize(shapes, out, {.seed = seed, .max_shard_bytes = shard, .overwrite = false},
                               progress);
}

TEST(Synth, OpensAsTheModelItWasMadeFrom) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraph shapes = forward::config_graph(kTiny, "tiny");
  synth(shapes, folder / "m", 7, 40'000);
  const graph::MetaGraph back = importers::open_model(folder / "m", {});
  EXPECT_EQ(graph::parameter_count(back), graph::parameter_count(shapes));
  EXPECT_EQ(graph::storage_bytes(back), graph::storage_bytes(shapes));
  EXPECT_GT(back.files.size(), 3u);
  EXPECT_TRUE(back.notes.empty());
  EXPECT_EQ(*graph::find_metadata(back, graph::kConfigKey), graph::MetaValue(std::string(kTiny)));
}

TEST(Synth, TheSameSeedGivesTheSameBytes) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraph shapes = forward::config_graph(kTiny, "tiny");
  const auto hash = [&](const char* name, std::uint64_t seed) {
    return synth(shapes, folder / name, seed).files.back().xxh3;
  };
  const std::uint64_t first = hash("a", 7);
  EXPECT_EQ(hash("b", 7), first);
  EXPECT_NE(hash("c", 8), first);
}

TEST(Synth, ValuesLookLikeWeights) {
  const testing::TemporaryFolder folder;
  synth(forward::config_graph(kTiny, "tiny"), folder / "m", 1);
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(folder / "m", {}));
  const io::StorageReader reader(graph);
  for (const graph::Tensor& tensor : graph->tensors) {
    std::vector<std::byte> bytes(graph::tensor_bytes(*graph, tensor));
    reader.read(tensor.storage, 0, bytes);
    std::vector<float> values(graph::elements(tensor));
    convert::cast(graph::DType::bf16, bytes, graph::DType::f32, std::as_writable_bytes(std::span(values)));
    double sum = 0, squares = 0;
    for (const float value : values) sum += value, squares += value * value;
    const double mean = sum / static_cast<double>(values.size());
    const bool norm = tensor.name.view().find("norm") != std::string_view::npos;
    EXPECT_NEAR(mean, norm ? 1.0 : 0.0, 0.01) << tensor.name.view();
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size()) - mean * mean), 0.02, 0.006)
        << tensor.name.view();
  }
}

TEST(Synth, SparseTakesNoDisk) {
  const testing::TemporaryFolder folder;
  synth(forward::config_graph(forward::find_preset("llama-3.1-70b")->config_json, "p"), folder / "m",
        std::nullopt, 5'000'000'000);
  std::uint64_t logical = 0, blocks = 0, shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "m")) {
    struct stat status = {};
    ::stat(entry.path().c_str(), &status);
    logical += static_cast<std::uint64_t>(status.st_size);
    blocks += static_cast<std::uint64_t>(status.st_blocks) * 512;
    shards += entry.path().extension() == ".safetensors" ? 1 : 0;
  }
  EXPECT_EQ(shards, 30u);
  EXPECT_GT(logical, 141'107'412'992u);
  EXPECT_LT(blocks, 2u << 20);
  EXPECT_EQ(graph::storage_bytes(importers::open_model(folder / "m", {})), 141'107'412'992u);
}

// Counts and sizes as published; the scales make the difference to the parameters.
TEST(Synth, DeepSeekV3IsWhatItsShardsSay) {
  const graph::MetaGraph graph = forward::config_graph(forward::find_preset("deepseek-v3")->config_json, "p");
  EXPECT_EQ(graph.tensors.size(), 91'991u);
  EXPECT_EQ(graph::storage_bytes(graph), 688'574'839'360u);
  std::map<graph::DType, std::uint64_t> counts;
  for (const graph::Tensor& tensor : graph.tensors) counts[tensor.dtype] += graph::elements(tensor);
  EXPECT_EQ(counts[graph::DType::f8_e4m3], 680'571'043'840u);
  EXPECT_EQ(counts[graph::DType::bf16], 3'918'786'560u);
  EXPECT_EQ(counts[graph::DType::f32], 41'555'600u);

  const testing::TemporaryFolder folder;
  synth(graph, folder / "m", std::nullopt, forward::find_preset("deepseek-v3")->max_shard_bytes);
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00163-of-00163.safetensors"));
  const graph::MetaGraph back = importers::open_model(folder / "m", {});
  EXPECT_EQ(back.tensors.size(), graph.tensors.size());
  EXPECT_EQ(graph::storage_bytes(back), graph::storage_bytes(graph));
  EXPECT_TRUE(back.notes.empty());
}

TEST(Synth, EmbedsTheDemoInThreeShards) {
  const forward::Preset* demo = forward::find_preset("demo");
  ASSERT_NE(demo, nullptr);
  const testing::TemporaryFolder folder;
  synth(forward::config_graph(demo->config_json, "demo"), folder / "m", std::nullopt, demo->max_shard_bytes);
  EXPECT_TRUE(std::filesystem::exists(folder / "m/model-00003-of-00003.safetensors"));
}

TEST(Synth, WantsAFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(synth(forward::config_graph(kTiny, "tiny"), folder / "m.safetensors", 1), Error);
}

}  // namespace

}  // namespace loadline::tests
