// Weights as others store them: packed into several tensors, in blocks, in layouts of kernels.

#include "core/convert/recipe/recipe.h"

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/prepack.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
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

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Weights stored as several tensors, by the names and shapes that packing libraries write.

namespace {

struct Stored {
  std::string name;
  graph::DType dtype;
  graph::Shape shape;
};

graph::MetaGraph file_with(const std::vector<Stored>& tensors, const std::string& config = "") {
  graph::MetaGraph graph;
  graph.files.push_back({"m.safetensors", 1 << 30});
  if (!config.empty()) graph.metadata.push_back({std::string(graph::kConfigKey), config});
  std::uint64_t at = 0;
  for (const Stored& stored : tensors) {
    const std::uint64_t bytes = *graph::byte_size(stored.dtype, *graph::element_count(stored.shape));
    const graph::StorageId id = graph.add_storage(graph::plain_storage(graph::FileId{0}, at, bytes));
    graph.tensors.push_back({graph::Name(stored.name), stored.dtype, stored.shape, {}, id, 0});
    at += bytes;
  }
  return graph;
}

// Adds the packed weights; `small` has the bytes of small tensors by name.
graph::LogicalTensors find(graph::MetaGraph& graph, const std::map<std::string, std::string>& small = {}) {
  graph::LogicalTensors found =
      graph::find_logical_tensors(graph, [&](graph::TensorId id) -> std::optional<std::string> {
        const auto bytes = small.find(graph.tensor(id).name.str());
        return bytes == small.end() ? std::nullopt : std::optional(bytes->second);
      });
  graph.logical = found.tensors;
  graph::validate(graph);
  return found;
}

std::string words_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t sides[] = {rows, columns};
  return std::string(reinterpret_cast<const char*>(sides), sizeof sides);
}

struct Case {
  std::string name;
  std::vector<Stored> tensors;
  graph::WeightPacking packing;
  graph::DType dtype;
  graph::Shape shape;
  std::uint32_t bits;
  graph::Shape block;
  std::size_t companions;
  std::string config = "";
  std::map<std::string, std::string> small = {};
};

const std::string kBf16 = R"({"torch_dtype":"bfloat16"})";
const std::string kState = R"({"quant_type":"nf4","blocksize":64,"dtype":"float16","shape":[64,256]})";

const std::vector<Case> kCases = {
    {"gptq",
     {{"a.qweight", graph::DType::i32, {32, 64}},
      {"a.qzeros", graph::DType::i32, {2, 8}},
      {"a.scales", graph::DType::f16, {2, 64}},
      {"a.g_idx", graph::DType::i32, {256}}},
     graph::WeightPacking::gptq,
     graph::DType::f16,
     {64, 256},
     4,
     {1, 128},
     3},
    {"gptq_3bit",
     {{"a.qweight", graph::DType::i32, {24, 64}},
      {"a.qzeros", graph::DType::i32, {2, 6}},
      {"a.scales", graph::DType::f16, {2, 64}}},
     graph::WeightPacking::gptq,
     graph::DType::f16,
     {64, 256},
     3,
     {1, 128},
     2},
    {"gptq_square",
     {{"a.qweight", graph::DType::i32, {8, 64}},
      {"a.qzeros", graph::DType::i32, {1, 8}},
      {"a.scales", graph::DType::f16, {1, 64}}},
     graph::WeightPacking::gptq,
     graph::DType::f16,
     {64, 64},
     4,
     {1, 64},
     2},
    {"awq",
     {{"a.qweight", graph::DType::i32, {256, 8}},
      {"a.qzeros", graph::DType::i32, {2, 8}},
      {"a.scales", graph::DType::f16, {2, 64}}},
     graph::WeightPacking::awq,
     graph::DType::f16,
     {64, 256},
     4,
     {1, 128},
     2},
    {"bitsandbytes_4bit",
     {{"a.weight", graph::DType::u8, {8192, 1}},
      {"a.weight.absmax", graph::DType::u8, {256}},
      {"a.weight.quant_map", graph::DType::f32, {16}},
      {"a.weight.nested_absmax", graph::DType::f32, {1}},
      {"a.weight.nested_quant_map", graph::DType::f32, {256}},
      {"a.weight.quant_state.bitsandbytes__nf4", graph::DType::u8, {kState.size()}}},
     graph::WeightPacking::bitsandbytes_4bit,
     graph::DType::f16,
     {64, 256},
     4,
     {64},
     5,
     "",
     {{"a.weight.quant_state.bitsandbytes__nf4", kState}}},
    {"bitsandbytes_8bit",
     {{"a.weight", graph::DType::i8, {64, 256}},
      {"a.SCB", graph::DType::f32, {64}},
      {"a.weight_format", graph::DType::u8, {}}},
     graph::WeightPacking::bitsandbytes_8bit,
     graph::DType::f32,
     {64, 256},
     8,
     {1, 256},
     2},
    {"fp8_blocks_cut",
     {{"a.weight", graph::DType::f8_e4m3, {576, 7168}}, {"a.weight_scale_inv", graph::DType::f32, {5, 56}}},
     graph::WeightPacking::scaled,
     graph::DType::bf16,
     {576, 7168},
     8,
     {128, 128},
     1,
     R"({"torch_dtype":"bfloat16","quantization_config":{"weight_block_size":[128,128]}})"},
    {"fp8_tensor",
     {{"a.weight", graph::DType::f8_e4m3, {64, 256}},
      {"a.weight_scale", graph::DType::f32, {}},
      {"a.input_scale", graph::DType::f32, {}}},
     graph::WeightPacking::scaled,
     graph::DType::bf16,
     {64, 256},
     8,
     {64, 256},
     2,
     kBf16},
    {"fp8_experts",
     {{"a.weight", graph::DType::f8_e4m3, {4, 64, 256}}, {"a.weight_scale", graph::DType::bf16, {4, 64, 1}}},
     graph::WeightPacking::scaled,
     graph::DType::bf16,
     {4, 64, 256},
     8,
     {1, 1, 256},
     1},
    {"int8_rows",
     {{"a.weight", graph::DType::i8, {64, 256}}, {"a.weight_scale", graph::DType::bf16, {64, 1}}},
     graph::WeightPacking::scaled,
     graph::DType::bf16,
     {64, 256},
     8,
     {1, 256},
     1},
    {"compressed_integers",
     {{"a.weight_packed", graph::DType::i32, {64, 32}},
      {"a.weight_scale", graph::DType::bf16, {64, 2}},
      {"a.weight_shape", graph::DType::i64, {2}},
      {"a.weight_zero_point", graph::DType::i32, {8, 2}}},
     graph::WeightPacking::compressed_integers,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 128},
     3,
     "",
     {{"a.weight_shape", words_of(64, 256)}}},
    {"compressed_nvfp4",
     {{"a.weight_packed", graph::DType::u8, {64, 128}},
      {"a.weight_scale", graph::DType::f8_e4m3, {64, 16}},
      {"a.weight_global_scale", graph::DType::f32, {1}}},
     graph::WeightPacking::compressed_nvfp4,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 16},
     2,
     kBf16},
    {"compressed_mxfp4",
     {{"a.weight_packed", graph::DType::u8, {64, 128}}, {"a.weight_scale", graph::DType::u8, {64, 8}}},
     graph::WeightPacking::compressed_mxfp4,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 32},
     1,
     kBf16},
    {"nvfp4",
     {{"a.weight", graph::DType::u8, {64, 128}},
      {"a.weight_scale", graph::DType::f8_e4m3, {64, 16}},
      {"a.weight_scale_2", graph::DType::f32, {}},
      {"a.input_scale", graph::DType::f32, {}}},
     graph::WeightPacking::nvfp4,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 16},
     3,
     kBf16},
    {"mxfp4",
     {{"a.up_blocks", graph::DType::u8, {4, 64, 8, 16}}, {"a.up_scales", graph::DType::u8, {4, 64, 8}}},
     graph::WeightPacking::mxfp4,
     graph::DType::bf16,
     {4, 256, 64},
     4,
     {1, 32, 1},
     1},
    {"mlx_by_default",
     {{"a.weight", graph::DType::u32, {64, 32}},
      {"a.scales", graph::DType::f16, {64, 4}},
      {"a.biases", graph::DType::f16, {64, 4}}},
     graph::WeightPacking::mlx_affine,
     graph::DType::f16,
     {64, 256},
     4,
     {1, 64},
     2},
    {"mlx_by_module",
     {{"a.weight", graph::DType::u32, {64, 32}},
      {"a.scales", graph::DType::bf16, {64, 4}},
      {"a.biases", graph::DType::bf16, {64, 4}}},
     graph::WeightPacking::mlx_affine,
     graph::DType::bf16,
     {64, 128},
     8,
     {1, 32},
     2,
     R"({"quantization":{"group_size":64,"bits":4,"a":{"group_size":32,"bits":8}}})"},
    {"mlx_experts",
     {{"a.weight", graph::DType::u32, {4, 64, 32}},
      {"a.scales", graph::DType::f16, {4, 64, 4}},
      {"a.biases", graph::DType::f16, {4, 64, 4}}},
     graph::WeightPacking::mlx_affine,
     graph::DType::f16,
     {4, 64, 256},
     4,
     {1, 1, 64},
     2},
    {"mlx_mxfp4",
     {{"a.weight", graph::DType::u32, {64, 32}}, {"a.scales", graph::DType::u8, {64, 8}}},
     graph::WeightPacking::mlx_mxfp4,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 32},
     1,
     kBf16},
    {"mlx_nvfp4",
     {{"a.weight", graph::DType::u32, {64, 32}}, {"a.scales", graph::DType::u8, {64, 16}}},
     graph::WeightPacking::mlx_nvfp4,
     graph::DType::bf16,
     {64, 256},
     4,
     {1, 16},
     1,
     kBf16},
    {"mlx_mxfp8",
     {{"a.weight", graph::DType::u32, {64, 64}}, {"a.scales", graph::DType::u8, {64, 8}}},
     graph::WeightPacking::mlx_mxfp8,
     graph::DType::bf16,
     {64, 256},
     8,
     {1, 32},
     1,
     kBf16},
};

TEST(LogicalTensors, AreFoundByNamesAndShapes) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    graph::MetaGraph graph = file_with(row.tensors, row.config);
    const graph::LogicalTensors found = find(graph, row.small);
    EXPECT_TRUE(found.notes.empty());
    ASSERT_EQ(found.tensors.size(), 1u);
    const graph::LogicalTensor& weight = found.tensors[0];
    EXPECT_EQ(weight.name, row.name == "mxfp4" ? "a.up" : "a.weight");
    EXPECT_EQ(weight.packing, row.packing);
    EXPECT_EQ(weight.dtype, row.dtype);
    EXPECT_EQ(weight.shape, row.shape);
    EXPECT_EQ(weight.bits, row.bits);
    EXPECT_EQ(weight.block, row.block);
    EXPECT_EQ(weight.codes, graph::TensorId{0});
    EXPECT_EQ(weight.companions.size(), row.companions);
    EXPECT_EQ(graph::parameter_count(graph), *graph::element_count(row.shape));
    for (const auto& cast : load::storage_casts(graph, graph::DType::f32)) EXPECT_FALSE(cast);
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
      if (part == 0 && row.bits == 8 && row.packing != graph::WeightPacking::mlx_mxfp8)
        continue;  // any width will do
      changed.shape[changed.shape.size() - 1] += 1;
      graph::MetaGraph graph = file_with(broken.tensors, row.config);
      const graph::LogicalTensors found = find(graph, row.small);
      for (const graph::LogicalTensor& weight : found.tensors) {
        // what does not decide the layout may have any size
        EXPECT_EQ(weight.shape, row.shape);
        EXPECT_NE(part, 0u);
      }
      for (const graph::Note& note : found.notes) EXPECT_EQ(note.severity, graph::Severity::warning);
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
    graph::MetaGraph graph =
        file_with({{"a.weight", graph::DType::u8, {8192, 1}},
                   {"a.weight.absmax", graph::DType::f32, {256}},
                   {"a.weight.quant_state.bitsandbytes__nf4", graph::DType::u8, {state.size()}}});
    const graph::LogicalTensors found = find(graph, {{"a.weight.quant_state.bitsandbytes__nf4", state}});
    EXPECT_TRUE(found.tensors.empty());
    ASSERT_EQ(found.notes.size(), 1u);
    EXPECT_EQ(found.notes[0].tensor, "a.weight");
  }
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 256}, {-64, 256}, {64, INT64_MAX}, {63, 256}, {64, 8}}) {
    graph::MetaGraph graph = file_with({{"a.weight_packed", graph::DType::i32, {64, 32}},
                                        {"a.weight_scale", graph::DType::bf16, {64, 2}},
                                        {"a.weight_shape", graph::DType::i64, {2}}});
    EXPECT_EQ(find(graph, {{"a.weight_shape", words_of(rows, columns)}}).notes.size(), 1u) << columns;
  }
}

TEST(LogicalTensors, AWeightBesideItsOwnCodesIsNotHidden) {
  graph::MetaGraph graph = file_with({{"a.qweight", graph::DType::i32, {32, 64}},
                                      {"a.qzeros", graph::DType::i32, {2, 8}},
                                      {"a.scales", graph::DType::f16, {2, 64}},
                                      {"a.weight", graph::DType::f16, {64, 256}}});
  EXPECT_TRUE(find(graph).tensors.empty());
}

// Reads all of every packed weight, in rows and in narrow columns, from random bytes.
void unpack_all(const graph::MetaGraph& graph, std::mt19937_64& random) {
  const io::ReadTensor noise = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    const graph::Tensor& tensor = graph.tensor(id);
    if (offset + out.size() > graph.storage(tensor.storage).bytes)
      throw Error(ErrorCode::malformed, "past the end");
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  };
  for (const graph::LogicalTensor& weight : graph.logical) {
    convert::Unpacker unpacker(graph, noise, weight);
    const std::uint64_t columns = weight.shape.back(), rows = graph::elements(weight) / columns;
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
      for (const graph::DType dtype : {graph::DType::u8, graph::DType::f16, graph::DType::f32,
                                       graph::DType::i64, graph::DType::f8_e4m3}) {
        SCOPED_TRACE(row.name);
        Case changed = row;
        if (part < row.tensors.size()) changed.tensors[part].dtype = dtype;
        graph::MetaGraph graph = file_with(changed.tensors, row.config);
        find(graph, row.small);
        try {
          unpack_all(graph, random);
        } catch (const Error&) {
          EXPECT_TRUE(part < row.tensors.size() || row.name == "gptq" || row.name == "bitsandbytes_4bit");
        }
      }
}

// Enough for several threads. Every seventh scale does not fit; the scales come before all weights.
TEST(LogicalTensors, ManyAreFoundInTheOrderOfTheirCodes) {
  constexpr std::uint32_t kCount = 6000;
  std::vector<Stored> tensors;
  for (std::uint32_t i = 0; i < kCount; ++i)
    tensors.push_back({fmt::format("layers.{}.weight_scale", i), graph::DType::f32, {i % 7 == 0 ? 3u : 1u}});
  for (std::uint32_t i = kCount; i-- > 0;)
    tensors.push_back({fmt::format("layers.{}.weight", i), graph::DType::f8_e4m3, {8, 8}});
  graph::MetaGraph graph = file_with(tensors);
  const graph::LogicalTensors found = find(graph);
  const std::uint32_t unfit = (kCount + 6) / 7;
  ASSERT_EQ(found.tensors.size(), kCount - unfit);
  ASSERT_EQ(found.notes.size(), unfit);
  EXPECT_TRUE(std::ranges::is_sorted(found.tensors, {}, &graph::LogicalTensor::codes));
  EXPECT_TRUE(std::ranges::is_sorted(found.notes, {}, [](const graph::Note& note) { return note.tensor; }));
  for (const graph::LogicalTensor& weight : found.tensors) {
    EXPECT_EQ(graph.tensor(weight.codes).name, weight.name);
    ASSERT_EQ(weight.companions.size(), 1u);
    EXPECT_EQ(graph.tensor(weight.companions[0].tensor).name.str(), weight.name.str() + "_scale");
  }
}

TEST(LogicalTensors, BitsCountAllParts) {
  graph::MetaGraph graph = file_with(kCases[0].tensors);
  find(graph);
  const double bytes = 32 * 64 * 4 + 2 * 8 * 4 + 2 * 64 * 2 + 256 * 4;
  EXPECT_DOUBLE_EQ(graph::bits_per_weight(graph, graph.logical[0]), 8 * bytes / (64 * 256));
}

}  // namespace

// --- The recipe step that quantizes: the blocks of the quantizers, whatever the memory and the pieces.

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
  graph::MetaGraph graph;
  Bytes bytes;

  Model(graph::DType dtype, graph::Shape shape, const Floats& floats)
      : bytes(floats.size() * graph::dtype_info(dtype).block_bytes) {
    convert::cast(graph::DType::f32, std::as_bytes(std::span(floats)), dtype, bytes);
    graph.tensors.push_back({graph::Name("w"),
                             dtype,
                             std::move(shape),
                             {},
                             graph.add_storage(graph::shapes_only_storage(bytes.size())),
                             0});
  }

  Bytes computed(const convert::Recipe& recipe, std::uint64_t memory, std::uint64_t piece) const {
    convert::RecipeReader reader(
        graph,
        [&](graph::TensorId, std::uint64_t offset, std::span<std::byte> out) {
          std::memcpy(out.data(), bytes.data() + offset, out.size());
        },
        recipe, memory);
    Bytes out(static_cast<std::size_t>(reader.bytes()));
    const std::uint64_t block = graph::dtype_info(reader.form().dtype).block_bytes;
    for (std::uint64_t at = 0; at < out.size();) {
      const std::uint64_t count =
          std::min<std::uint64_t>(std::max(piece / block, std::uint64_t{1}) * block, out.size() - at);
      reader.read(at, std::span(out).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
      at += count;
    }
    return out;
  }
};

convert::Recipe quantized(graph::DType dtype, const Floats* importance = nullptr) {
  convert::RecipeStep step{.kind = convert::StepKind::quantize, .dtype = dtype};
  if (importance != nullptr)
    step.importance =
        std::make_shared<const graph::TensorImportance>(graph::TensorImportance{"w", *importance});
  return convert::take(graph::TensorId{0}).then(step);
}

std::pair<std::uint64_t, std::uint64_t> faults_of(graph::DType stored, const Floats& numbers,
                                                  const convert::Recipe& recipe) {
  const Model model(stored, {1, numbers.size()}, numbers);
  convert::RecipeReader reader(
      model.graph,
      [&](graph::TensorId, std::uint64_t offset, std::span<std::byte> out) {
        std::memcpy(out.data(), model.bytes.data() + offset, out.size());
      },
      recipe, 1 << 20);
  Bytes out(static_cast<std::size_t>(reader.bytes()));
  reader.read(0, out);
  const convert::NumberFaults found = reader.take_faults();
  EXPECT_FALSE(reader.take_faults().any()) << "taken once";
  return {found.overflowed, found.special};
}

TEST(NumberFaults, OfTheLastStepAreCounted) {
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  const auto cast_to = [](graph::DType dtype) {
    return convert::take(graph::TensorId{0}).then({.kind = convert::StepKind::cast, .dtype = dtype});
  };
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  Floats numbers(1000, 65519);
  EXPECT_EQ(faults_of(graph::DType::f32, numbers, cast_to(graph::DType::f16)), Counts(0, 0));
  for (const std::size_t at : {std::size_t{0}, std::size_t{17}, std::size_t{999}}) numbers[at] = -65520;
  numbers[5] = nan, numbers[998] = infinity;
  EXPECT_EQ(faults_of(graph::DType::f32, numbers, cast_to(graph::DType::f16)), Counts(3, 2));
  EXPECT_EQ(faults_of(graph::DType::f32, numbers, cast_to(graph::DType::bf16)), Counts(0, 2));
  EXPECT_EQ(faults_of(graph::DType::bf16, numbers, cast_to(graph::DType::f16)), Counts(998, 2));
  EXPECT_EQ(faults_of(graph::DType::f16, numbers, cast_to(graph::DType::f32)), Counts(0, 5));
  EXPECT_EQ(faults_of(graph::DType::f32, numbers, convert::take(graph::TensorId{0})), Counts(0, 0));
  EXPECT_EQ(
      faults_of(
          graph::DType::f16, {65504, 65504, 1},
          convert::take(graph::TensorId{0}).then({.kind = convert::StepKind::add_constant, .value = 65504})),
      Counts(2, 0));
  // 3.4e38 has no place in BF16 either
  EXPECT_EQ(faults_of(graph::DType::f32, {std::numeric_limits<float>::max()}, cast_to(graph::DType::bf16)),
            Counts(1, 0));
}

TEST(NumberFaults, OfBlocksAreThoseOfTheirScales) {
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  for (const graph::DType type :
       {graph::DType::q8_0, graph::DType::q4_0, graph::DType::q5_1, graph::DType::q4_k}) {
    SCOPED_TRACE(graph::dtype_info(type).name);
    Floats numbers = random_floats(512, 3);
    EXPECT_EQ(faults_of(graph::DType::f32, numbers, quantized(type)), Counts(0, 0));
    numbers[300] = 60000;
    EXPECT_EQ(faults_of(graph::DType::f32, numbers, quantized(type)), Counts(0, 0));
    numbers[300] = 1e30f;
    const auto [overflowed, special] = faults_of(graph::DType::f32, numbers, quantized(type));
    EXPECT_GE(overflowed, 1u);
    EXPECT_LE(overflowed, 256u) << "in its own block alone";
    EXPECT_EQ(special, 0u);
    numbers[300] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(faults_of(graph::DType::f32, numbers, quantized(type)).second, 1u);
  }
}

TEST(NumberFaults, OfBlocksAreNumbersThatEndInNothing) {
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  Floats numbers = random_floats(512, 3);
  const auto found = [&](graph::DType type) {
    return faults_of(graph::DType::f32, numbers, quantized(type));
  };
  numbers[300] = 1e6f;  // Q6_K's scale is for 4096 times as much
  EXPECT_EQ(found(graph::DType::q6_k), Counts(0, 0));
  numbers[300] = 1e30f, numbers[301] = -1e30f, numbers[302] = 1e20f;  // the search's sums overflow: all is 0
  EXPECT_EQ(found(graph::DType::q6_k), Counts(2, 0));
  EXPECT_EQ(found(graph::DType::mxfp4), Counts(0, 0)) << "its scale has 8 bits of exponent";
  for (const graph::DType type : {graph::DType::q3_k, graph::DType::iq4_nl, graph::DType::iq4_xs,
                                  graph::DType::q2_k, graph::DType::q5_k, graph::DType::tq2_0}) {
    SCOPED_TRACE(graph::dtype_info(type).name);
    EXPECT_GE(found(type).first, 1u);
  }
  numbers = random_floats(512, 3);
  numbers[300] = 2688;  // the greatest level of the greatest scale
  EXPECT_EQ(found(graph::DType::nvfp4), Counts(0, 0));
  numbers[300] = 20000;
  EXPECT_EQ(found(graph::DType::nvfp4), Counts(1, 0));
}

constexpr graph::DType kTypes[] = {graph::DType::q8_0, graph::DType::q4_0, graph::DType::q5_1,
                                   graph::DType::q4_k, graph::DType::q6_k, graph::DType::iq4_xs};

TEST(QuantizeStep, GivesTheBlocksOfWholeRows) {
  // rows that fit in the least memory, and rows that come in parts
  for (const std::size_t columns : {std::size_t{512}, std::size_t{100} << 10}) {
    const Floats row = random_floats(3 * columns, columns), importance = random_floats(columns, 7);
    Floats positive;
    for (const float weight : importance) positive.push_back(weight * weight);
    const Model model(graph::DType::f32, {3, columns}, row);
    for (const graph::DType dtype : kTypes)
      for (const Floats* const weights :
           {static_cast<const Floats*>(nullptr), static_cast<const Floats*>(&positive)}) {
        Bytes expected(static_cast<std::size_t>(graph::byte_size(dtype, row.size()).value()));
        convert::quantize_rows(dtype, row,
                               weights == nullptr ? std::span<const float>() : std::span(*weights), expected);
        for (const std::uint64_t piece : {std::uint64_t{10'000}, std::uint64_t{1} << 24})
          EXPECT_EQ(model.computed(quantized(dtype, weights), 0, piece), expected)
              << graph::dtype_info(dtype).name << " of rows of " << columns << ", pieces of " << piece;
      }
  }
}

TEST(QuantizeStep, EachExpertHasItsOwnImportance) {
  const Floats numbers = random_floats(2 * 3 * 256, 1);
  Floats importance(2 * 256, 1);
  for (std::size_t i = 0; i < 256; ++i) importance[256 + i] = static_cast<float>(i % 5);
  const Model model(graph::DType::f32, {2, 3, 256}, numbers);
  for (const graph::DType dtype : kTypes) {
    Bytes expected(static_cast<std::size_t>(graph::byte_size(dtype, numbers.size()).value()));
    for (const std::size_t expert : {std::size_t{0}, std::size_t{1}})
      convert::quantize_rows(dtype, std::span(numbers).subspan(expert * 768, 768),
                             std::span(importance).subspan(expert * 256, 256),
                             std::span(expected).subspan(expert * expected.size() / 2, expected.size() / 2));
    EXPECT_EQ(model.computed(quantized(dtype, &importance), 0, 1 << 20), expected)
        << graph::dtype_info(dtype).name;
  }
}

TEST(QuantizeStep, HalvesAreWidenedFirst) {
  const Floats floats = random_floats(1024, 3);
  const Model model(graph::DType::bf16, {2, 512}, floats);
  Floats rounded(1024);
  convert::cast(graph::DType::bf16, model.bytes, graph::DType::f32,
                std::as_writable_bytes(std::span(rounded)));
  Bytes expected(static_cast<std::size_t>(graph::byte_size(graph::DType::q4_k, 1024).value()));
  convert::quantize(graph::DType::q4_k, rounded, expected);
  EXPECT_EQ(model.computed(quantized(graph::DType::q4_k), 0, 1 << 20), expected);
}

TEST(QuantizeStep, RefusesWhatDoesNotFit) {
  const auto error = [](graph::DType from, graph::Shape shape, const convert::Recipe& recipe) -> std::string {
    const Model model(from, shape, Floats(static_cast<std::size_t>(graph::element_count(shape).value())));
    try {
      convert::recipe_forms(model.graph, recipe);
      return "";
    } catch (const Error& thrown) {
      return thrown.what();
    }
  };
  EXPECT_EQ(error(graph::DType::f32, {4, 256}, quantized(graph::DType::q4_k)), "");
  EXPECT_EQ(error(graph::DType::f32, {4, 33}, quantized(graph::DType::q4_0)),
            "quantize: F32 [4,33]: rows of 33 numbers are not whole blocks of 32 for Q4_0");
  EXPECT_EQ(error(graph::DType::f32, {}, quantized(graph::DType::q8_0)),
            "quantize: F32 []: rows of 1 numbers are not whole blocks of 32 for Q8_0");
  EXPECT_EQ(error(graph::DType::f32, {4, 256}, quantized(graph::DType::iq2_xs)),
            "quantize: F32 [4,256] to IQ2_XS");
  const Floats some(31), whole(64), both(128);
  EXPECT_EQ(error(graph::DType::f32, {2, 3, 64}, quantized(graph::DType::q4_0, &some)),
            "quantize: 31 weights of importance for F32 [2,3,64]");
  EXPECT_EQ(error(graph::DType::f32, {2, 3, 64}, quantized(graph::DType::q4_0, &whole)), "");
  EXPECT_EQ(error(graph::DType::f32, {2, 3, 64}, quantized(graph::DType::q4_0, &both)), "");
  EXPECT_EQ(error(graph::DType::f32, {0, 3, 64}, quantized(graph::DType::q4_0, &both)),
            "quantize: 128 weights of importance for F32 [0,3,64]");
  EXPECT_EQ(error(graph::DType::f32, {2, 64}, quantized(graph::DType::q4_0, &both)),
            "quantize: 128 weights of importance for F32 [2,64]");
}

}  // namespace

// --- Packed weights against the definition of each layout, number by number; what a plan may pack.

namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// All numbers in the target type, in the stored order.
std::vector<std::byte> converted(const convert::Prepack& how, std::span<const std::byte> stored) {
  std::vector<std::byte> numbers(static_cast<std::size_t>(how.elements()) *
                                 graph::dtype_info(how.to).block_bytes);
  if (convert::can_cast(how.from, how.to)) {
    convert::cast(how.from, stored, how.to, numbers);
    return numbers;
  }
  std::vector<float> wide(static_cast<std::size_t>(how.elements()));
  convert::dequantize(how.from, stored, wide);
  for (float& value : wide)
    if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  convert::cast(graph::DType::f32, std::as_bytes(std::span(wide)), how.to, numbers);
  return numbers;
}

std::vector<std::byte> by_definition(const convert::Prepack& how, std::span<const std::byte> stored) {
  const std::vector<std::byte> numbers = converted(how, stored);
  const std::size_t wide = graph::dtype_info(how.to).block_bytes;
  std::vector<std::byte> out(static_cast<std::size_t>(convert::prepacked_bytes(how)));
  for (std::uint64_t r = 0; r < how.rows; ++r)
    for (std::uint64_t c = 0; c < how.columns; ++c) {
      std::uint64_t place = r * how.columns + c;
      if (how.layout == convert::PrepackLayout::transposed) place = c * how.rows + r;
      if (how.layout == convert::PrepackLayout::four_rows) place = (r / 4 * how.columns + c) * 4 + r % 4;
      std::memcpy(out.data() + place * wide, numbers.data() + (r * how.columns + c) * wide, wide);
    }
  return out;
}

TEST(Prepack, IsWhatItsLayoutSaysHoweverItIsDivided) {
  std::mt19937_64 random(3);
  for (const graph::DType from : {graph::DType::f32, graph::DType::f16, graph::DType::bf16,
                                  graph::DType::q8_0, graph::DType::q4_0, graph::DType::q4_k})
    for (const graph::DType to : {graph::DType::f32, graph::DType::f16, graph::DType::bf16})
      for (const convert::PrepackLayout layout :
           {convert::PrepackLayout::rows, convert::PrepackLayout::transposed,
            convert::PrepackLayout::four_rows})
        for (const std::uint64_t rows : {1u, 3u, 4u, 7u, 18u}) {
          if (!convert::can_prepack(from, to)) continue;
          const graph::DTypeInfo& info = graph::dtype_info(from);
          const convert::Prepack how{from, to, layout, rows, info.block_elements > 1 ? 768u : 211u};
          const std::vector<std::byte> stored =
              random_bytes(static_cast<std::size_t>(convert::stored_bytes(how)));
          const std::vector<std::byte> expected = by_definition(how, stored);
          std::vector<std::byte> out(expected.size(), std::byte{0xEE});
          const std::size_t blocks = stored.size() / info.block_bytes;
          for (std::size_t at = 0; at < blocks;) {
            const std::size_t count = std::min<std::size_t>(1 + random() % 3000, blocks - at);
            convert::prepack(how, at * info.block_elements,
                             std::span(stored).subspan(at * info.block_bytes, count * info.block_bytes), out);
            at += count;
          }
          EXPECT_EQ(out, expected) << info.name << " " << static_cast<int>(layout) << " " << rows;
        }
  EXPECT_FALSE(convert::can_prepack(graph::DType::q8_0, graph::DType::f32));
  EXPECT_FALSE(convert::can_prepack(graph::DType::i32, graph::DType::i32));
}

// A model of f32 matrices, as bytes that are numbers.
graph::MetaGraphPtr matrices(const testing::TemporaryFolder& folder) {
  graph::MetaGraph graph = *testing::byte_model(folder, {4 * 35 * 6, 4 * 9});
  graph.tensors[0].dtype = graph.tensors[1].dtype = graph::DType::f32;
  graph.tensors[0].shape = {35, 6};
  graph.tensors[1].shape = {9};
  return std::make_shared<const graph::MetaGraph>(std::move(graph));
}

plan::Plan packed_plan(const graph::MetaGraph& graph, std::string_view method, std::string_view prepacking) {
  const load::BoundRequest inputs{.request = {.prepack = load::find_prepacking(prepacking)}};
  return load::make_plan(graph, load::find_method(method), {graph::StorageId{0}, graph::StorageId{1}},
                         inputs);
}

TEST(Prepacking, OfAPlanIsProjectedAndRehearsedAlike) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = matrices(folder);
  for (const load::PrepackingRow& row : load::prepackings()) {
    const plan::Plan plan = packed_plan(*graph, "staged_ring", row.id);
    EXPECT_EQ(plan::check_plan(plan, *graph), std::nullopt) << row.id;
    const io::StorageReader reader(graph);
    plan::HostMachine host(reader);
    plan::DryMachine dry;
    EXPECT_EQ(plan::run(plan, host).peaks[plan::index(plan::Space::device)].bytes,
              plan::run(plan, dry).peaks[plan::index(plan::Space::device)].bytes);
  }
  // 35 rows become 36; a vector is only converted
  plan::DryMachine dry;
  EXPECT_EQ(plan::run(packed_plan(*graph, "staged_ring", "four_rows_f16"), dry)
                .peaks[plan::index(plan::Space::device)]
                .bytes,
            2u * (36 * 6 + 9));
}

TEST(Prepacking, WritesThePackedWeightOnTheHostMachine) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = matrices(folder);
  const plan::Plan plan = packed_plan(*graph, "direct", "transposed_f16");
  const io::StorageReader reader(graph);
  plan::HostMachine host(reader);
  (void)plan::run(plan, host);
  std::vector<std::byte> stored(graph->storages[0].bytes);
  reader.read(graph::StorageId{0}, 0, stored);
  const std::span<const std::byte> made = host.bytes(plan::BlockId{0});
  EXPECT_EQ(std::vector(made.begin(), made.end()), by_definition(*plan.blocks[0].prepack(), stored));
}

TEST(Prepacking, LeavesWhatItCannotPack) {
  const testing::TemporaryFolder folder;
  graph::MetaGraph graph = *matrices(folder);
  graph.tensors[1].strides = {2};  // every second number
  graph.tensors[1].shape = {5};
  const auto prepacks = load::storage_prepacks(graph, load::find_prepacking("f16"));
  EXPECT_TRUE(prepacks[0]);
  EXPECT_FALSE(prepacks[1]);
  EXPECT_FALSE(load::storage_prepacks(graph, load::find_prepacking("f32"))[0])
      << "it is what is asked for already";
}

TEST(Prepacking, OfAPackedBlockIsChecked) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = matrices(folder);
  plan::Plan plan = packed_plan(*graph, "direct", "f16");
  plan::Plan odd = plan;
  for (plan::Step& step : odd.steps)
    if (step.verb == plan::Verb::copy) step.bytes = 6;
  EXPECT_EQ(testing::facts(plan::check_plan(odd, *graph).value_or("")), "2 6 0");
  plan::Plan read = plan;
  const plan::BlockId host =
      plan::alloc(read, {.bytes = 4, .space = plan::Space::host, .use = plan::BlockUse::temporary});
  plan::copy(read, host, 0, plan::BlockId{0}, 0, 4);
  EXPECT_EQ(testing::facts(plan::check_plan(read, *graph).value_or("")), "5 0");
  plan.blocks[0].bytes += 1;
  EXPECT_EQ(testing::facts(plan::check_plan(plan, *graph).value_or("")), "0 0");
  EXPECT_THROW(load::find_prepacking("f17"), Error);
}

// --- torch's quantized tensors: scale * (code - zero).

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Its weight, [2,3,2], as floats.
Floats unpacked(graph::DType codes, const std::string& bytes, const std::string& state,
                const std::vector<double>& scales = {}, const std::vector<std::int64_t>& zeros = {}) {
  graph::MetaGraph graph;
  graph.format = "torch";
  const std::vector<std::string> parts = {bytes, bytes_of(scales), bytes_of(zeros)};
  const auto add = [&](std::string_view name, graph::DType dtype, const graph::Shape& shape) {
    const graph::StorageId storage =
        graph.add_storage(graph::shapes_only_storage(parts[graph.tensors.size()].size()));
    graph.tensors.push_back({name, dtype, shape, {}, storage, 0});
  };
  graph::LogicalTensor weight;
  weight.name = "w";
  weight.packing = graph::WeightPacking::scaled;
  weight.shape = weight.block = {2, 3, 2};
  weight.bits = 8 * graph::dtype_info(codes).block_bytes;
  weight.set_state(state);
  add("w", codes, {2, 3, 2});
  if (!scales.empty()) {
    add("w.scale", graph::DType::f64, {scales.size()});
    add("w.zero_point", graph::DType::i64, {zeros.size()});
    weight.companions = {{graph::Companion::scales, graph::TensorId{1}},
                         {graph::Companion::zeros, graph::TensorId{2}}};
  }
  graph.logical = {weight};
  const io::ReadTensor read = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), parts.at(graph::index(id)).data() + offset, out.size());
  };
  convert::RecipeReader reader(graph, read, convert::unpack(0), 1 << 20);
  Floats numbers(12);
  reader.read(0, std::as_writable_bytes(std::span(numbers)));
  Floats again(5);  // from the middle of a row on
  reader.read(3 * sizeof(float), std::as_writable_bytes(std::span(again)));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), numbers.begin() + 3));
  return numbers;
}

TEST(TorchQuantized, NumbersAreTheirs) {
  const std::vector<std::int8_t> codes = {-128, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 127};
  EXPECT_EQ(unpacked(graph::DType::i8, bytes_of(codes), R"({"scale":0.5,"zero_point":10})"),
            (Floats{-69, -5.5, -5, -4.5, -4, -3.5, -3, -2.5, -2, -1.5, -1, 58.5}));
  EXPECT_EQ(unpacked(graph::DType::u8, bytes_of(codes), R"({"scale":2.0,"zero_point":255})").at(1), 0.0F);
  const std::vector<double> scales = {1, 2, 4};
  const std::vector<std::int64_t> zeros = {0, 1, -1};
  EXPECT_EQ(unpacked(graph::DType::i8, bytes_of(codes), R"({"axis":1})", scales, zeros),
            (Floats{-128, -1, -2, 0, 12, 16, 4, 5, 10, 12, 36, 512}));
  const std::vector<std::int32_t> wide = {1 << 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -(1 << 30)};
  EXPECT_EQ(unpacked(graph::DType::i32, bytes_of(wide), R"({"scale":0.25,"zero_point":0})").front(), 0x1p28F);
}

TEST(TorchQuantized, PartsThatDoNotFitAreRefused) {
  const std::string codes(12, 'x');
  const auto error = [&](const std::string& state, const std::vector<double>& scales,
                         const std::vector<std::int64_t>& zeros) {
    return testing::facts_of([&] { unpacked(graph::DType::i8, codes, state, scales, zeros); });
  };
  EXPECT_EQ(error(R"({"axis":1})", {1, 2}, {0, 0}), "malformed 'w' 3 F64");
  EXPECT_EQ(error(R"({"axis":1})", {1, 2, 3}, {0, 0}), "malformed 'w' 3 I64");
  EXPECT_EQ(error(R"({"axis":1})", {}, {}), "malformed 'w' 3 F64");
  EXPECT_EQ(error(R"({"axis":3})", {1, 2, 3}, {0, 0, 0}), "malformed 'w'");
  EXPECT_EQ(error(R"({"scale":nan,"zero_point":0})", {}, {}), "malformed 'w'");
}

}  // namespace

}  // namespace loadline::tests
