// Weights stored as several tensors, by the names and shapes that packing libraries write.
#include "core/base/error.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/load/request/casts.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace loadline {
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
}  // namespace loadline
