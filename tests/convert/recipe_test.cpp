// Weights as others store them: packed into several tensors, in blocks, in layouts of kernels.

#include "core/convert/recipe/recipe.h"

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/prepack.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/load/request/casts.h"
#include "core/load/request/method.h"
#include "core/load/request/request.h"
#include "core/plan/dry_machine.h"
#include "core/plan/host_machine.h"
#include "core/plan/run.h"
#include "tests/support/builders.h"

#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline {

// --- Weights stored as several tensors, by the names and shapes that packing libraries write.

namespace {

struct Stored {
  std::string name;
  DType dtype;
  Shape shape;
};

MetaGraph file_with(const std::vector<Stored>& tensors, const std::string& config = "") {
  MetaGraph graph;
  graph.files.push_back({"m.safetensors", 1 << 30});
  if (!config.empty()) graph.metadata.push_back({std::string(kConfigKey), config});
  std::uint64_t at = 0;
  for (const Stored& stored : tensors) {
    const std::uint64_t bytes = *byte_size(stored.dtype, *element_count(stored.shape));
    const StorageId id = graph.add_storage(plain_storage(FileId{0}, at, bytes));
    graph.tensors.push_back({Name(stored.name), stored.dtype, stored.shape, {}, id, 0});
    at += bytes;
  }
  return graph;
}

// Adds the packed weights; `small` has the bytes of small tensors by name.
LogicalTensors find(MetaGraph& graph, const std::map<std::string, std::string>& small = {}) {
  LogicalTensors found = find_logical_tensors(graph, [&](TensorId id) -> std::optional<std::string> {
    const auto bytes = small.find(graph.tensor(id).name.str());
    return bytes == small.end() ? std::nullopt : std::optional(bytes->second);
  });
  graph.logical = found.tensors;
  validate(graph);
  return found;
}

std::string words_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t sides[] = {rows, columns};
  return std::string(reinterpret_cast<const char*>(sides), sizeof sides);
}

struct Case {
  std::string name;
  std::vector<Stored> tensors;
  WeightPacking packing;
  DType dtype;
  Shape shape;
  std::uint32_t bits;
  Shape block;
  std::size_t companions;
  std::string config = "";
  std::map<std::string, std::string> small = {};
};

const std::string kBf16 = R"({"torch_dtype":"bfloat16"})";
const std::string kState = R"({"quant_type":"nf4","blocksize":64,"dtype":"float16","shape":[64,256]})";

const std::vector<Case> kCases = {
    {"gptq",
     {{"a.qweight", DType::i32, {32, 64}},
      {"a.qzeros", DType::i32, {2, 8}},
      {"a.scales", DType::f16, {2, 64}},
      {"a.g_idx", DType::i32, {256}}},
     WeightPacking::gptq,
     DType::f16,
     {64, 256},
     4,
     {1, 128},
     3},
    {"gptq_3bit",
     {{"a.qweight", DType::i32, {24, 64}},
      {"a.qzeros", DType::i32, {2, 6}},
      {"a.scales", DType::f16, {2, 64}}},
     WeightPacking::gptq,
     DType::f16,
     {64, 256},
     3,
     {1, 128},
     2},
    {"gptq_square",
     {{"a.qweight", DType::i32, {8, 64}},
      {"a.qzeros", DType::i32, {1, 8}},
      {"a.scales", DType::f16, {1, 64}}},
     WeightPacking::gptq,
     DType::f16,
     {64, 64},
     4,
     {1, 64},
     2},
    {"awq",
     {{"a.qweight", DType::i32, {256, 8}},
      {"a.qzeros", DType::i32, {2, 8}},
      {"a.scales", DType::f16, {2, 64}}},
     WeightPacking::awq,
     DType::f16,
     {64, 256},
     4,
     {1, 128},
     2},
    {"bitsandbytes_4bit",
     {{"a.weight", DType::u8, {8192, 1}},
      {"a.weight.absmax", DType::u8, {256}},
      {"a.weight.quant_map", DType::f32, {16}},
      {"a.weight.nested_absmax", DType::f32, {1}},
      {"a.weight.nested_quant_map", DType::f32, {256}},
      {"a.weight.quant_state.bitsandbytes__nf4", DType::u8, {kState.size()}}},
     WeightPacking::bitsandbytes_4bit,
     DType::f16,
     {64, 256},
     4,
     {64},
     5,
     "",
     {{"a.weight.quant_state.bitsandbytes__nf4", kState}}},
    {"bitsandbytes_8bit",
     {{"a.weight", DType::i8, {64, 256}}, {"a.SCB", DType::f32, {64}}, {"a.weight_format", DType::u8, {}}},
     WeightPacking::bitsandbytes_8bit,
     DType::f32,
     {64, 256},
     8,
     {1, 256},
     2},
    {"fp8_blocks_cut",
     {{"a.weight", DType::f8_e4m3, {576, 7168}}, {"a.weight_scale_inv", DType::f32, {5, 56}}},
     WeightPacking::scaled,
     DType::bf16,
     {576, 7168},
     8,
     {128, 128},
     1,
     R"({"torch_dtype":"bfloat16","quantization_config":{"weight_block_size":[128,128]}})"},
    {"fp8_tensor",
     {{"a.weight", DType::f8_e4m3, {64, 256}},
      {"a.weight_scale", DType::f32, {}},
      {"a.input_scale", DType::f32, {}}},
     WeightPacking::scaled,
     DType::bf16,
     {64, 256},
     8,
     {64, 256},
     2,
     kBf16},
    {"fp8_experts",
     {{"a.weight", DType::f8_e4m3, {4, 64, 256}}, {"a.weight_scale", DType::bf16, {4, 64, 1}}},
     WeightPacking::scaled,
     DType::bf16,
     {4, 64, 256},
     8,
     {1, 1, 256},
     1},
    {"int8_rows",
     {{"a.weight", DType::i8, {64, 256}}, {"a.weight_scale", DType::bf16, {64, 1}}},
     WeightPacking::scaled,
     DType::bf16,
     {64, 256},
     8,
     {1, 256},
     1},
    {"compressed_integers",
     {{"a.weight_packed", DType::i32, {64, 32}},
      {"a.weight_scale", DType::bf16, {64, 2}},
      {"a.weight_shape", DType::i64, {2}},
      {"a.weight_zero_point", DType::i32, {8, 2}}},
     WeightPacking::compressed_integers,
     DType::bf16,
     {64, 256},
     4,
     {1, 128},
     3,
     "",
     {{"a.weight_shape", words_of(64, 256)}}},
    {"compressed_nvfp4",
     {{"a.weight_packed", DType::u8, {64, 128}},
      {"a.weight_scale", DType::f8_e4m3, {64, 16}},
      {"a.weight_global_scale", DType::f32, {1}}},
     WeightPacking::compressed_nvfp4,
     DType::bf16,
     {64, 256},
     4,
     {1, 16},
     2,
     kBf16},
    {"compressed_mxfp4",
     {{"a.weight_packed", DType::u8, {64, 128}}, {"a.weight_scale", DType::u8, {64, 8}}},
     WeightPacking::compressed_mxfp4,
     DType::bf16,
     {64, 256},
     4,
     {1, 32},
     1,
     kBf16},
    {"nvfp4",
     {{"a.weight", DType::u8, {64, 128}},
      {"a.weight_scale", DType::f8_e4m3, {64, 16}},
      {"a.weight_scale_2", DType::f32, {}},
      {"a.input_scale", DType::f32, {}}},
     WeightPacking::nvfp4,
     DType::bf16,
     {64, 256},
     4,
     {1, 16},
     3,
     kBf16},
    {"mxfp4",
     {{"a.up_blocks", DType::u8, {4, 64, 8, 16}}, {"a.up_scales", DType::u8, {4, 64, 8}}},
     WeightPacking::mxfp4,
     DType::bf16,
     {4, 256, 64},
     4,
     {1, 32, 1},
     1},
    {"mlx_by_default",
     {{"a.weight", DType::u32, {64, 32}},
      {"a.scales", DType::f16, {64, 4}},
      {"a.biases", DType::f16, {64, 4}}},
     WeightPacking::mlx_affine,
     DType::f16,
     {64, 256},
     4,
     {1, 64},
     2},
    {"mlx_by_module",
     {{"a.weight", DType::u32, {64, 32}},
      {"a.scales", DType::bf16, {64, 4}},
      {"a.biases", DType::bf16, {64, 4}}},
     WeightPacking::mlx_affine,
     DType::bf16,
     {64, 128},
     8,
     {1, 32},
     2,
     R"({"quantization":{"group_size":64,"bits":4,"a":{"group_size":32,"bits":8}}})"},
    {"mlx_experts",
     {{"a.weight", DType::u32, {4, 64, 32}},
      {"a.scales", DType::f16, {4, 64, 4}},
      {"a.biases", DType::f16, {4, 64, 4}}},
     WeightPacking::mlx_affine,
     DType::f16,
     {4, 64, 256},
     4,
     {1, 1, 64},
     2},
    {"mlx_mxfp4",
     {{"a.weight", DType::u32, {64, 32}}, {"a.scales", DType::u8, {64, 8}}},
     WeightPacking::mlx_mxfp4,
     DType::bf16,
     {64, 256},
     4,
     {1, 32},
     1,
     kBf16},
    {"mlx_nvfp4",
     {{"a.weight", DType::u32, {64, 32}}, {"a.scales", DType::u8, {64, 16}}},
     WeightPacking::mlx_nvfp4,
     DType::bf16,
     {64, 256},
     4,
     {1, 16},
     1,
     kBf16},
    {"mlx_mxfp8",
     {{"a.weight", DType::u32, {64, 64}}, {"a.scales", DType::u8, {64, 8}}},
     WeightPacking::mlx_mxfp8,
     DType::bf16,
     {64, 256},
     8,
     {1, 32},
     1,
     kBf16},
};

TEST(LogicalTensors, AreFoundByNamesAndShapes) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    MetaGraph graph = file_with(row.tensors, row.config);
    const LogicalTensors found = find(graph, row.small);
    EXPECT_TRUE(found.notes.empty());
    ASSERT_EQ(found.tensors.size(), 1u);
    const LogicalTensor& weight = found.tensors[0];
    EXPECT_EQ(weight.name, row.name == "mxfp4" ? "a.up" : "a.weight");
    EXPECT_EQ(weight.packing, row.packing);
    EXPECT_EQ(weight.dtype, row.dtype);
    EXPECT_EQ(weight.shape, row.shape);
    EXPECT_EQ(weight.bits, row.bits);
    EXPECT_EQ(weight.block, row.block);
    EXPECT_EQ(weight.codes, TensorId{0});
    EXPECT_EQ(weight.companions.size(), row.companions);
    EXPECT_EQ(parameter_count(graph), *element_count(row.shape));
    for (const auto& cast : storage_casts(graph, DType::f32)) EXPECT_FALSE(cast);
  }
}

// Each part of each case in turn loses a number along its last dimension, or its type.
TEST(LogicalTensors, PartsThatDoNotFitStayAsStored) {
  for (const Case& row : kCases)
    for (std::size_t part = 0; part < row.tensors.size(); ++part) {
      SCOPED_TRACE(row.name + ": " + row.tensors[part].name);
      Case broken = row;
      Stored& changed = broken.tensors[part];
      if (changed.shape.empty()) continue;  // a scale of all numbers
      if (part == 0 && row.bits == 8 && row.packing != WeightPacking::mlx_mxfp8)
        continue;  // any width will do
      changed.shape[changed.shape.size() - 1] += 1;
      MetaGraph graph = file_with(broken.tensors, row.config);
      const LogicalTensors found = find(graph, row.small);
      for (const LogicalTensor& weight : found.tensors) {
        // what does not decide the layout may have any size
        EXPECT_EQ(weight.shape, row.shape);
        EXPECT_NE(part, 0u);
      }
      for (const Note& note : found.notes) EXPECT_NE(note.text.find("shown as stored"), std::string::npos);
    }
}

TEST(LogicalTensors, HostileShapesGiveNotes) {
  const std::vector<std::string> states = {"",
                                           "{",
                                           "[]",
                                           R"({"shape":[64,256]})",
                                           R"({"blocksize":0,"shape":[64,256]})",
                                           R"({"blocksize":64,"shape":[64,257]})",
                                           R"({"blocksize":64,"shape":[-1,256]})",
                                           R"({"blocksize":64,"shape":[4294967296,4294967296,4294967296]})",
                                           R"({"blocksize":64,"shape":"x"})",
                                           R"({"blocksize":64,"shape":[1,1,1,1,1,1,1,1,64,256]})"};
  for (const std::string& state : states) {
    SCOPED_TRACE(state);
    MetaGraph graph = file_with({{"a.weight", DType::u8, {8192, 1}},
                                 {"a.weight.absmax", DType::f32, {256}},
                                 {"a.weight.quant_state.bitsandbytes__nf4", DType::u8, {state.size()}}});
    const LogicalTensors found = find(graph, {{"a.weight.quant_state.bitsandbytes__nf4", state}});
    EXPECT_TRUE(found.tensors.empty());
    ASSERT_EQ(found.notes.size(), 1u);
    EXPECT_EQ(found.notes[0].tensor, "a.weight");
  }
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 256}, {-64, 256}, {64, INT64_MAX}, {63, 256}, {64, 8}}) {
    MetaGraph graph = file_with({{"a.weight_packed", DType::i32, {64, 32}},
                                 {"a.weight_scale", DType::bf16, {64, 2}},
                                 {"a.weight_shape", DType::i64, {2}}});
    EXPECT_EQ(find(graph, {{"a.weight_shape", words_of(rows, columns)}}).notes.size(), 1u) << columns;
  }
}

TEST(LogicalTensors, AWeightBesideItsOwnCodesIsNotHidden) {
  MetaGraph graph = file_with({{"a.qweight", DType::i32, {32, 64}},
                               {"a.qzeros", DType::i32, {2, 8}},
                               {"a.scales", DType::f16, {2, 64}},
                               {"a.weight", DType::f16, {64, 256}}});
  EXPECT_TRUE(find(graph).tensors.empty());
}

// Reads all of every packed weight, in rows and in narrow columns, from random bytes.
void unpack_all(const MetaGraph& graph, std::mt19937_64& random) {
  const ReadTensor noise = [&](TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    const Tensor& tensor = graph.tensor(id);
    if (offset + out.size() > graph.storage(tensor.storage).bytes)
      throw Error(ErrorCode::malformed, "past the end");
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  };
  for (const LogicalTensor& weight : graph.logical) {
    Unpacker unpacker(graph, noise, weight);
    const std::uint64_t columns = weight.shape.back(), rows = elements(weight) / columns;
    std::vector<float> out(static_cast<std::size_t>(rows * columns));
    unpacker.read({0, rows, 0, columns}, out);
    for (std::uint64_t first = 0; first < columns; first += 77) {
      const std::uint64_t count = std::min<std::uint64_t>(77, columns - first);
      out.resize(static_cast<std::size_t>(3 * count));
      unpacker.read({rows - 3, 3, first, count}, out);
    }
  }
}

TEST(LogicalTensors, AnyBytesAndTypesUnpackOrGiveAnError) {
  std::mt19937_64 random(3);
  for (const Case& row : kCases)
    for (std::size_t part = 0; part <= row.tensors.size(); ++part)
      for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64, DType::f8_e4m3}) {
        SCOPED_TRACE(row.name);
        Case changed = row;
        if (part < row.tensors.size()) changed.tensors[part].dtype = dtype;
        MetaGraph graph = file_with(changed.tensors, row.config);
        find(graph, row.small);
        try {
          unpack_all(graph, random);
        } catch (const Error&) {
          EXPECT_TRUE(part < row.tensors.size() || row.name == "gptq" || row.name == "bitsandbytes_4bit");
        }
      }
}

TEST(LogicalTensors, BitsCountAllParts) {
  MetaGraph graph = file_with(kCases[0].tensors);
  find(graph);
  const double bytes = 32 * 64 * 4 + 2 * 8 * 4 + 2 * 64 * 2 + 256 * 4;
  EXPECT_DOUBLE_EQ(bits_per_weight(graph, graph.logical[0]), 8 * bytes / (64 * 256));
}

}  // namespace

// --- The recipe step that quantises: the blocks of the quantisers, whatever the memory and the pieces.

namespace {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

Floats random_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Floats floats(count);
  for (float& number : floats) number = normal(random);
  return floats;
}

// A model of one tensor, whose bytes are in memory.
struct Model {
  MetaGraph graph;
  Bytes bytes;

  Model(DType dtype, Shape shape, const Floats& floats)
      : bytes(floats.size() * dtype_info(dtype).block_bytes) {
    cast(DType::f32, std::as_bytes(std::span(floats)), dtype, bytes);
    graph.tensors.push_back(
        {Name("w"), dtype, std::move(shape), {}, graph.add_storage(shapes_only_storage(bytes.size())), 0});
  }

  Bytes computed(const Recipe& recipe, std::uint64_t memory, std::uint64_t piece) const {
    RecipeReader reader(
        graph,
        [&](TensorId, std::uint64_t offset, std::span<std::byte> out) {
          std::memcpy(out.data(), bytes.data() + offset, out.size());
        },
        recipe, memory);
    Bytes out(static_cast<std::size_t>(reader.bytes()));
    const std::uint64_t block = dtype_info(reader.form().dtype).block_bytes;
    for (std::uint64_t at = 0; at < out.size();) {
      const std::uint64_t count =
          std::min<std::uint64_t>(std::max(piece / block, std::uint64_t{1}) * block, out.size() - at);
      reader.read(at, std::span(out).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
      at += count;
    }
    return out;
  }
};

Recipe quantised(DType dtype, const Floats* importance = nullptr) {
  RecipeStep step{.kind = StepKind::quantise, .dtype = dtype};
  if (importance != nullptr)
    step.importance = std::make_shared<const TensorImportance>(TensorImportance{"w", *importance});
  return take(TensorId{0}).then(step);
}

constexpr DType kTypes[] = {DType::q8_0, DType::q4_0, DType::q5_1, DType::q4_k, DType::q6_k, DType::iq4_xs};

TEST(QuantiseStep, GivesTheBlocksOfWholeRows) {
  // rows that fit in the least memory, and rows that come in parts
  for (const std::size_t columns : {std::size_t{512}, std::size_t{100} << 10}) {
    const Floats row = random_floats(3 * columns, columns), importance = random_floats(columns, 7);
    Floats positive;
    for (const float weight : importance) positive.push_back(weight * weight);
    const Model model(DType::f32, {3, columns}, row);
    for (const DType dtype : kTypes)
      for (const Floats* const weights :
           {static_cast<const Floats*>(nullptr), static_cast<const Floats*>(&positive)}) {
        Bytes expected(static_cast<std::size_t>(byte_size(dtype, row.size()).value()));
        quantize_rows(dtype, row, weights == nullptr ? std::span<const float>() : std::span(*weights),
                      expected);
        for (const std::uint64_t piece : {std::uint64_t{10'000}, std::uint64_t{1} << 24})
          EXPECT_EQ(model.computed(quantised(dtype, weights), 0, piece), expected)
              << dtype_info(dtype).name << " of rows of " << columns << ", pieces of " << piece;
      }
  }
}

TEST(QuantiseStep, EachExpertHasItsOwnImportance) {
  const Floats numbers = random_floats(2 * 3 * 256, 1);
  Floats importance(2 * 256, 1);
  for (std::size_t i = 0; i < 256; ++i) importance[256 + i] = static_cast<float>(i % 5);
  const Model model(DType::f32, {2, 3, 256}, numbers);
  for (const DType dtype : kTypes) {
    Bytes expected(static_cast<std::size_t>(byte_size(dtype, numbers.size()).value()));
    for (const std::size_t expert : {std::size_t{0}, std::size_t{1}})
      quantize_rows(dtype, std::span(numbers).subspan(expert * 768, 768),
                    std::span(importance).subspan(expert * 256, 256),
                    std::span(expected).subspan(expert * expected.size() / 2, expected.size() / 2));
    EXPECT_EQ(model.computed(quantised(dtype, &importance), 0, 1 << 20), expected) << dtype_info(dtype).name;
  }
}

TEST(QuantiseStep, HalvesAreWidenedFirst) {
  const Floats floats = random_floats(1024, 3);
  const Model model(DType::bf16, {2, 512}, floats);
  Floats rounded(1024);
  cast(DType::bf16, model.bytes, DType::f32, std::as_writable_bytes(std::span(rounded)));
  Bytes expected(static_cast<std::size_t>(byte_size(DType::q4_k, 1024).value()));
  quantize(DType::q4_k, rounded, expected);
  EXPECT_EQ(model.computed(quantised(DType::q4_k), 0, 1 << 20), expected);
}

TEST(QuantiseStep, RefusesWhatDoesNotFit) {
  const auto error = [](DType from, Shape shape, const Recipe& recipe) -> std::string {
    const Model model(from, shape, Floats(static_cast<std::size_t>(element_count(shape).value())));
    try {
      recipe_forms(model.graph, recipe);
      return "";
    } catch (const Error& thrown) {
      return thrown.what();
    }
  };
  EXPECT_EQ(error(DType::f32, {4, 256}, quantised(DType::q4_k)), "");
  EXPECT_EQ(error(DType::f32, {4, 33}, quantised(DType::q4_0)),
            "quantise: F32 [4,33]: rows of 33 numbers are no whole blocks of 32 for Q4_0");
  EXPECT_EQ(error(DType::f32, {}, quantised(DType::q8_0)),
            "quantise: F32 []: rows of 1 numbers are no whole blocks of 32 for Q8_0");
  EXPECT_EQ(error(DType::f32, {4, 256}, quantised(DType::iq2_xs)), "quantise: F32 [4,256] to IQ2_XS");
  const Floats some(31), whole(64), both(128);
  EXPECT_EQ(error(DType::f32, {2, 3, 64}, quantised(DType::q4_0, &some)),
            "quantise: 31 weights of importance for F32 [2,3,64]");
  EXPECT_EQ(error(DType::f32, {2, 3, 64}, quantised(DType::q4_0, &whole)), "");
  EXPECT_EQ(error(DType::f32, {2, 3, 64}, quantised(DType::q4_0, &both)), "");
  EXPECT_EQ(error(DType::f32, {0, 3, 64}, quantised(DType::q4_0, &both)),
            "quantise: 128 weights of importance for F32 [0,3,64]");
  EXPECT_EQ(error(DType::f32, {2, 64}, quantised(DType::q4_0, &both)),
            "quantise: 128 weights of importance for F32 [2,64]");
}

}  // namespace

// --- Packed weights against the definition of each layout, number by number; what a plan may pack.

namespace {

using ::testing::HasSubstr;

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// All numbers in the target type, in the stored order.
std::vector<std::byte> converted(const Prepack& how, std::span<const std::byte> stored) {
  std::vector<std::byte> numbers(static_cast<std::size_t>(how.elements()) * dtype_info(how.to).block_bytes);
  if (can_cast(how.from, how.to)) {
    cast(how.from, stored, how.to, numbers);
    return numbers;
  }
  std::vector<float> wide(static_cast<std::size_t>(how.elements()));
  dequantize(how.from, stored, wide);
  for (float& value : wide)
    if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  cast(DType::f32, std::as_bytes(std::span(wide)), how.to, numbers);
  return numbers;
}

std::vector<std::byte> by_definition(const Prepack& how, std::span<const std::byte> stored) {
  const std::vector<std::byte> numbers = converted(how, stored);
  const std::size_t wide = dtype_info(how.to).block_bytes;
  std::vector<std::byte> out(static_cast<std::size_t>(prepacked_bytes(how)));
  for (std::uint64_t r = 0; r < how.rows; ++r)
    for (std::uint64_t c = 0; c < how.columns; ++c) {
      std::uint64_t place = r * how.columns + c;
      if (how.layout == PrepackLayout::transposed) place = c * how.rows + r;
      if (how.layout == PrepackLayout::four_rows) place = (r / 4 * how.columns + c) * 4 + r % 4;
      std::memcpy(out.data() + place * wide, numbers.data() + (r * how.columns + c) * wide, wide);
    }
  return out;
}

TEST(Prepack, IsWhatItsLayoutSaysHoweverItIsDivided) {
  std::mt19937_64 random(3);
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k})
    for (const DType to : {DType::f32, DType::f16, DType::bf16})
      for (const PrepackLayout layout :
           {PrepackLayout::rows, PrepackLayout::transposed, PrepackLayout::four_rows})
        for (const std::uint64_t rows : {1u, 3u, 4u, 7u, 18u}) {
          if (!can_prepack(from, to)) continue;
          const DTypeInfo& info = dtype_info(from);
          const Prepack how{from, to, layout, rows, info.block_elements > 1 ? 768u : 211u};
          const std::vector<std::byte> stored = random_bytes(static_cast<std::size_t>(stored_bytes(how)));
          const std::vector<std::byte> expected = by_definition(how, stored);
          std::vector<std::byte> out(expected.size(), std::byte{0xEE});
          const std::size_t blocks = stored.size() / info.block_bytes;
          for (std::size_t at = 0; at < blocks;) {
            const std::size_t count = std::min<std::size_t>(1 + random() % 3000, blocks - at);
            prepack(how, at * info.block_elements,
                    std::span(stored).subspan(at * info.block_bytes, count * info.block_bytes), out);
            at += count;
          }
          EXPECT_EQ(out, expected) << info.name << " " << static_cast<int>(layout) << " " << rows;
        }
  EXPECT_FALSE(can_prepack(DType::q8_0, DType::f32));
  EXPECT_FALSE(can_prepack(DType::i32, DType::i32));
}

// A model of f32 matrices, as bytes that are numbers.
MetaGraphPtr matrices(const testing::TemporaryFolder& folder) {
  MetaGraph graph = *testing::byte_model(folder, {4 * 35 * 6, 4 * 9});
  graph.tensors[0].dtype = graph.tensors[1].dtype = DType::f32;
  graph.tensors[0].shape = {35, 6};
  graph.tensors[1].shape = {9};
  return std::make_shared<const MetaGraph>(std::move(graph));
}

Plan packed_plan(const MetaGraph& graph, std::string_view method, std::string_view prepacking) {
  const LoadInputs inputs{.request = {.prepack = find_prepacking(prepacking)}};
  return make_plan(graph, find_method(method), {StorageId{0}, StorageId{1}}, inputs);
}

TEST(Prepacking, OfAPlanIsProjectedAndRehearsedAlike) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  for (const PrepackingRow& row : prepackings()) {
    const Plan plan = packed_plan(*graph, "staged_ring", row.id);
    EXPECT_EQ(check_plan(plan, *graph), std::nullopt) << row.id;
    const StorageReader reader(graph);
    HostMachine host(reader);
    DryMachine dry;
    EXPECT_EQ(run(plan, host).peaks[index(Space::device)].bytes,
              run(plan, dry).peaks[index(Space::device)].bytes);
  }
  // 35 rows become 36; a vector is only converted
  DryMachine dry;
  EXPECT_EQ(run(packed_plan(*graph, "staged_ring", "four_rows_f16"), dry).peaks[index(Space::device)].bytes,
            2u * (36 * 6 + 9));
}

TEST(Prepacking, WritesThePackedWeightOnTheHostMachine) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  const Plan plan = packed_plan(*graph, "direct", "transposed_f16");
  const StorageReader reader(graph);
  HostMachine host(reader);
  (void)run(plan, host);
  std::vector<std::byte> stored(graph->storages[0].bytes);
  reader.read(StorageId{0}, 0, stored);
  const std::span<const std::byte> made = host.bytes(BlockId{0});
  EXPECT_EQ(std::vector(made.begin(), made.end()), by_definition(*plan.blocks[0].prepack, stored));
}

TEST(Prepacking, LeavesWhatItCannotPack) {
  const testing::TemporaryFolder folder;
  MetaGraph graph = *matrices(folder);
  graph.tensors[1].strides = {2};  // every second number
  graph.tensors[1].shape = {5};
  const auto prepacks = storage_prepacks(graph, find_prepacking("f16"));
  EXPECT_TRUE(prepacks[0]);
  EXPECT_FALSE(prepacks[1]);
  EXPECT_FALSE(storage_prepacks(graph, find_prepacking("f32"))[0]) << "it is what is asked for already";
}

TEST(Prepacking, OfAPackedBlockIsChecked) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  Plan plan = packed_plan(*graph, "direct", "f16");
  Plan odd = plan;
  for (Step& step : odd.steps)
    if (step.verb == Verb::copy) step.bytes = 6;
  EXPECT_THAT(check_plan(odd, *graph).value_or(""), HasSubstr("no whole numbers"));
  Plan read = plan;
  const BlockId host = alloc(read, {.space = Space::host, .bytes = 4, .use = BlockUse::temporary});
  copy(read, host, 0, BlockId{0}, 0, 4);
  EXPECT_THAT(check_plan(read, *graph).value_or(""), HasSubstr("packed"));
  plan.blocks[0].bytes += 1;
  EXPECT_THAT(check_plan(plan, *graph).value_or(""), HasSubstr("no packed weight"));
  EXPECT_THROW(find_prepacking("f17"), Error);
}

}  // namespace

}  // namespace loadline
