// The recipe step that quantises: the blocks of the quantisers, whatever the memory and the pieces.
#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/recipe/recipe.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
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
}  // namespace loadline
