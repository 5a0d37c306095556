// Two models weight by weight: bytes, numbers within a tolerance, ties, packed weights, hostile files.
#include "core/inspect/compare_models.h"

#include "core/base/error.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

template <typename T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A model in one file, built tensor by tensor.
class Model {
 public:
  explicit Model(const TemporaryFolder& folder, std::string name) : path_(folder / name) {}

  TensorId add(const std::string& name, DType dtype, Shape shape, std::string_view bytes,
               Strides strides = {}) {
    const StorageId storage = graph_.add_storage(plain_storage(FileId{0}, bytes_.size(), bytes.size()));
    bytes_ += bytes;
    graph_.tensors.push_back({name, dtype, std::move(shape), std::move(strides), storage, 0});
    return TensorId{static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
  }
  template <typename T>
  TensorId add(const std::string& name, DType dtype, const std::vector<T>& values) {
    return add(name, dtype, Shape{values.size()}, raw(values));
  }
  void tie(const std::string& name, TensorId to) {
    Tensor tensor = graph_.tensor(to);
    tensor.name = Name(name);
    graph_.tensors.push_back(tensor);
  }
  MetaGraph& graph() { return graph_; }
  MetaGraphPtr write() {
    write_file(path_, bytes_);
    graph_.files = {{path_, bytes_.size()}};
    return std::make_shared<const MetaGraph>(graph_);
  }

 private:
  std::string path_, bytes_;
  MetaGraph graph_;
};

class CompareModels : public ::testing::Test {
 protected:
  Comparison compare(const CompareOptions& options = {}) {
    return compare_models(a.write(), b.write(), options, progress);
  }
  Comparison close(double absolute, double relative = 0) {
    return compare({true, Tolerance{absolute, relative}});
  }

  TemporaryFolder folder;
  Model a{folder, "a.bin"}, b{folder, "b.bin"};
  Progress progress;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000) - 500;
  return values;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(CompareModels, EqualBytesInAnyOrder) {
  const auto values = ramp(1 << 20);
  a.add("x", DType::f32, values);
  a.add("y", DType::i64, std::vector<std::int64_t>{1, 2});
  b.add("y", DType::i64, std::vector<std::int64_t>{1, 2});
  b.add("x", DType::f32, values);
  const Comparison found = compare();
  EXPECT_EQ(found.count(PairState::equal), 2u);
  EXPECT_EQ(found.bytes, (4u << 20) + 16);
  EXPECT_EQ(found.bytes_read, 2 * found.bytes);
  EXPECT_EQ(progress.done(), progress.total());
}

TEST_F(CompareModels, TheFirstDifferenceOfManyPartsIsFound) {
  auto values = ramp(std::size_t{20} << 20);  // three parts
  a.add("x", DType::f32, values);
  const std::size_t first = (std::size_t{9} << 20) + 12'345;
  values[first] += 0.25F;
  values[values.size() - 1] += 3;
  b.add("x", DType::f32, values);
  const Comparison found = compare();
  ASSERT_EQ(found.results[0].state, PairState::other_values);
  const ValueDifference& difference = *found.results[0].difference;
  EXPECT_EQ(difference.first, first);
  EXPECT_EQ(difference.differing, 2u);
  EXPECT_EQ(difference.total, values.size());
  EXPECT_EQ(*difference.b, Number(static_cast<double>(values[first])));
  EXPECT_EQ(difference.max_absolute, 3);
}

TEST_F(CompareModels, BytesTellZerosAndNansApartAndNumbersDoNot) {
  const float other_nan = std::bit_cast<float>(0x7FC00001u);
  a.add("x", DType::f32, std::vector<float>{0.0F, kNan, kInf, 1});
  b.add("x", DType::f32, std::vector<float>{-0.0F, other_nan, kInf, 1});
  const Comparison exact = compare();
  EXPECT_EQ(exact.results[0].difference->differing, 2u);
  EXPECT_EQ(exact.results[0].difference->not_finite, 1u);
  EXPECT_EQ(close(0).results[0].state, PairState::equal);
}

TEST_F(CompareModels, InfinitiesAndNansAreCloseToThemselvesOnly) {
  a.add("x", DType::f32, std::vector<float>{kInf, kInf, kNan, 1, 5});
  b.add("x", DType::f32, std::vector<float>{-kInf, 3e38F, 1, kNan, 5});
  const Comparison found = close(1e300, 1);
  const ValueDifference& difference = *found.results[0].difference;
  EXPECT_EQ(difference.differing, 4u);
  EXPECT_EQ(difference.not_finite, 4u);
  EXPECT_EQ(difference.max_absolute, 0);
}

TEST_F(CompareModels, ToleranceIsAbsoluteOrRelative) {
  a.add("x", DType::f32, std::vector<float>{100, 0.001F, 1});
  b.add("x", DType::f32, std::vector<float>{101, 0.002F, 1});
  EXPECT_EQ(close(0.5).results[0].difference->differing, 1u);
  EXPECT_EQ(close(0, 0.02).results[0].difference->first, 1u);
  EXPECT_EQ(close(0.5, 0.02).results[0].state, PairState::equal);
  EXPECT_EQ(close(1).results[0].state, PairState::equal);  // the limit itself is close
}

TEST_F(CompareModels, OtherTypesAreComparedAsNumbersWithATolerance) {
  // 1.0 and -2.5 as f16, bf16, f32, f64
  a.add("h", DType::f16, std::vector<std::uint16_t>{0x3C00, 0xC100});
  b.add("h", DType::bf16, std::vector<std::uint16_t>{0x3F80, 0xC020});
  a.add("d", DType::f64, std::vector<double>{1.0, 0.1});
  b.add("d", DType::f32, std::vector<float>{1.0F, 0.1F});
  a.add("i", DType::i32, std::vector<std::int32_t>{1});
  b.add("i", DType::f32, std::vector<float>{1});
  const Comparison exact = compare();
  EXPECT_EQ(exact.count(PairState::other_type), 3u);
  const Comparison zero = close(0);
  EXPECT_EQ(zero.results[0].state, PairState::equal);
  ASSERT_EQ(zero.results[1].state, PairState::other_values);  // 0.1 has no float
  EXPECT_EQ(zero.results[1].difference->first, 1u);
  EXPECT_NEAR(zero.results[1].difference->max_absolute, 1.49e-9, 1e-11);
  EXPECT_EQ(zero.results[2].state, PairState::other_type);  // a tolerance is for floats
  EXPECT_EQ(close(1e-8).results[1].state, PairState::equal);
}

TEST_F(CompareModels, QuantisedBlocksAgainstFloats) {
  std::string blocks;
  std::vector<float> numbers;
  for (int block = 0; block < 3; ++block) {
    blocks += std::string("\x00\x3C", 2);  // d = 1
    for (int i = 0; i < 32; ++i) {
      blocks += static_cast<char>(i - 16);
      numbers.push_back(static_cast<float>(i - 16));
    }
  }
  a.add("x", DType::q8_0, {3, 32}, blocks);
  numbers[70] += 0.125F;
  b.add("x", DType::f32, {3, 32}, raw(numbers));
  const Comparison found = close(0.1);
  ASSERT_EQ(found.results[0].state, PairState::other_values);
  EXPECT_EQ(found.results[0].difference->first, 70u);
  EXPECT_EQ(found.results[0].difference->differing, 1u);
  EXPECT_EQ(close(0.125).results[0].state, PairState::equal);
}

TEST_F(CompareModels, BlocksOfOneTypeCountElementsOfOtherValue) {
  std::string blocks = std::string("\x00\x3C", 2) + std::string(32, '\1') + std::string(34, '\0');
  a.add("x", DType::q8_0, {2, 32}, blocks);
  blocks[2 + 5] = 9;
  blocks[34 + 10] = 7;  // times a scale of 0
  b.add("x", DType::q8_0, {2, 32}, blocks);
  const ValueDifference difference = *compare().results[0].difference;
  EXPECT_EQ(difference.differing, 1u);
  EXPECT_EQ(difference.first, 5u);
  EXPECT_EQ(difference.max_absolute, 8);
}

TEST_F(CompareModels, BytesThatNoNumberShowsAreADifference) {
  std::string blocks(34, '\0');
  a.add("x", DType::q8_0, {32}, blocks);
  blocks[9] = 7;
  b.add("x", DType::q8_0, {32}, blocks);
  const Comparison found = compare();
  ASSERT_EQ(found.results[0].state, PairState::other_values);
  EXPECT_EQ(found.results[0].difference->differing, 0u);
  EXPECT_EQ(close(0).results[0].state, PairState::equal);
}

TEST_F(CompareModels, IntegersBeyondDoublesAndComplexNumbers) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  a.add("i", DType::i64, std::vector<std::int64_t>{0, large});
  b.add("i", DType::i64, std::vector<std::int64_t>{0, large + 2});
  a.add("c", DType::c64, {2}, raw(std::vector<float>{1, 2, 3, 4}));
  b.add("c", DType::c64, {2}, raw(std::vector<float>{1, 2, 3, 4.5F}));
  const Comparison found = compare();
  EXPECT_EQ(*found.results[0].difference->a, Number(large));
  EXPECT_EQ(found.results[0].difference->max_absolute, 2);
  EXPECT_EQ(found.results[1].difference->first, 1u);
  EXPECT_EQ(found.results[1].difference->total, 2u);
  EXPECT_EQ(*found.results[1].difference->b, Number(4.5));
}

TEST_F(CompareModels, NarrowElementsWithAnOddEnd) {
  a.add("x", DType::u4, {5}, std::string("\x21\x43\xF5", 3));
  b.add("x", DType::u4, {5}, std::string("\x21\x43\xF6", 3));
  const ValueDifference difference = *compare().results[0].difference;
  EXPECT_EQ(difference.first, 4u);
  EXPECT_EQ(difference.differing, 1u);
  EXPECT_EQ(*difference.a, Number(std::uint64_t{5}));
}

TEST_F(CompareModels, StridedAgainstContiguous) {
  a.add("x", DType::f32, {2, 3}, raw(std::vector<float>{0, 3, 1, 4, 2, 5}), {1, 2});
  b.add("x", DType::f32, {2, 3}, raw(std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(compare().results[0].state, PairState::equal);
}

TEST_F(CompareModels, ShapesAndNames) {
  a.add("s", DType::f32, {}, raw(std::vector<float>{1}));
  b.add("s", DType::f32, {1}, raw(std::vector<float>{1}));
  a.add("t", DType::f32, {2, 3}, raw(ramp(6)));
  b.add("t", DType::f32, {3, 2}, raw(ramp(6)));
  a.add("alone", DType::f32, {0}, "");
  b.add("other", DType::f32, {0}, "");
  const Comparison found = compare();
  EXPECT_EQ(found.results[0].state, PairState::equal);
  EXPECT_EQ(found.results[1].state, PairState::other_shape);
  EXPECT_EQ(found.match.only_a.size(), 1u);
  EXPECT_EQ(found.match.only_b.size(), 1u);
}

// What a conversion would make of a model's tensors, under the names that it would give them.
TEST_F(CompareModels, ComputedWeights) {
  const auto values = ramp(4 << 20);
  const TensorId joined = a.add("qkv", DType::f32, {3, 1 << 20},
                                raw(std::vector<float>(values.begin(), values.begin() + (3 << 20))));
  b.add("q", DType::f32, {1, 1 << 20}, raw(std::vector<float>(values.begin(), values.begin() + (1 << 20))));
  b.add("k", DType::f32, {1, 1 << 20},
        raw(std::vector<float>(values.begin() + 1, values.begin() + (1 << 20) + 1)));
  b.add("v16", DType::f16, {1, 1 << 20}, std::string(2 << 20, '\0'));
  EXPECT_TRUE(compare().match.pairs.empty());
  const MetaGraphPtr x = a.write(), y = b.write();
  std::vector<Weight> rows;
  for (const char* name : {"q", "k", "v16"}) {
    Recipe recipe = take(joined);
    recipe.then({.kind = StepKind::slice, .axis = 0, .first = rows.size(), .count = 1});
    rows.push_back(computed_weight(*x, Name(name), recipe));
  }
  const auto with = [&](const CompareOptions& options) {
    return compare_models(x, y, match_weights(*x, rows, *y, model_weights(*y)), options, progress);
  };
  const Comparison exact = with({});
  EXPECT_EQ(exact.results[0].state, PairState::equal);
  ASSERT_EQ(exact.results[1].state, PairState::other_values);
  EXPECT_EQ(exact.results[1].difference->first, 0u);
  EXPECT_EQ(exact.results[2].state, PairState::other_type);
  EXPECT_EQ(exact.bytes, 8u << 20);
  const Comparison loose = with({true, Tolerance{500, 0}});
  EXPECT_EQ(loose.count(PairState::equal), 2u);  // neighbours of a ramp differ by at most 999
  EXPECT_EQ(loose.results[2].state, PairState::equal);
}

TEST_F(CompareModels, TiedWeightsPairOnceStoredAndAreReadOnce) {
  a.tie("head", a.add("embed", DType::f32, ramp(100)));
  b.add("embed", DType::f32, ramp(100));
  const Comparison found = compare();
  EXPECT_EQ(found.count(PairState::equal), 2u);
  EXPECT_EQ(found.match.tied, 1u);
  EXPECT_TRUE(found.match.only_a.empty());
  EXPECT_EQ(found.bytes_read, 800u);
  // and the other way round
  const MetaGraphPtr x = a.write(), y = b.write();
  const Comparison turned = compare_models(y, x, {}, progress);
  EXPECT_EQ(turned.count(PairState::equal), 2u);
  EXPECT_TRUE(turned.match.only_b.empty());
}

TEST_F(CompareModels, TheBytesOfOneFileAreNotRead) {
  a.add("x", DType::f32, ramp(100));
  const MetaGraphPtr graph = a.write();
  const Comparison found = compare_models(graph, graph, {}, progress);
  EXPECT_EQ(found.count(PairState::equal), 1u);
  EXPECT_EQ(found.bytes_read, 0u);
}

TEST_F(CompareModels, WithoutValuesNothingIsRead) {
  a.add("x", DType::f32, ramp(100));
  b.add("x", DType::f32, ramp(100));
  const Comparison found = compare({.values = false});
  EXPECT_EQ(found.results[0].state, PairState::not_looked);
  EXPECT_EQ(found.bytes_read, 0u);
}

TEST_F(CompareModels, TruncatedFilesAndCancellationEnd) {
  a.add("x", DType::f32, ramp(1000));
  b.add("x", DType::f32, ramp(1000));
  const MetaGraphPtr x = a.write(), y = b.write();
  write_file(folder / "b.bin", std::string(100, '\0'));
  EXPECT_THROW((void)compare_models(x, y, {}, progress), Error);
  b.write();
  std::stop_source stop;
  stop.request_stop();
  Progress cancelled(stop.get_token());
  try {
    (void)compare_models(x, y, {}, cancelled);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

// An MLX weight of 4 bits: one row of 32 numbers, a scale and a bias.
void add_mlx(Model& model, char first_byte, std::uint16_t scale = 0x3C00) {
  std::string codes(16, '\x21');
  codes[0] = first_byte;
  const TensorId id = model.add("w.weight", DType::u32, {1, 4}, codes);
  const TensorId scales = model.add("w.scales", DType::f16, {1, 1}, raw(std::vector<std::uint16_t>{scale}));
  const TensorId biases = model.add("w.biases", DType::f16, {1, 1}, raw(std::vector<std::uint16_t>{0}));
  model.graph().logical.push_back({"w.weight",
                                   WeightPacking::mlx_affine,
                                   DType::f16,
                                   {1, 32},
                                   4,
                                   {1, 32},
                                   id,
                                   {{Companion::scales, scales}, {Companion::biases, biases}},
                                   ""});
}

TEST_F(CompareModels, PackedWeightsByBytesThenByNumbers) {
  add_mlx(a, '\x21');
  add_mlx(b, '\x21');
  EXPECT_EQ(compare().results[0].state, PairState::equal);
  Model c{folder, "c.bin"};
  add_mlx(c, '\x51');
  const Comparison found = compare_models(a.write(), c.write(), {}, progress);
  ASSERT_EQ(found.results[0].state, PairState::other_values);
  EXPECT_EQ(found.results[0].difference->first, 1u);
  EXPECT_EQ(found.results[0].difference->differing, 1u);
  EXPECT_EQ(found.results[0].difference->max_absolute, 3);
}

TEST_F(CompareModels, PackedWeightsAgainstTheirNumbers) {
  add_mlx(a, '\x21', 0x3800);  // 0.5
  std::vector<float> numbers;
  for (int i = 0; i < 32; ++i) numbers.push_back(i % 2 == 0 ? 0.5F : 1.0F);
  b.add("w.weight", DType::f32, {1, 32}, raw(numbers));
  EXPECT_EQ(compare().results[0].state, PairState::other_type);
  EXPECT_EQ(close(0).results[0].state, PairState::equal);
  EXPECT_EQ(weight_type(a.graph(), close(0).match.a[0]), "MLX affine 4-bit");
}

}  // namespace
}  // namespace loadline
