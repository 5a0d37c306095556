// Where threads meet: comparisons, loads on the host, reading, loops.

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/inspect/compare_models.h"
#include "core/io/striped_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/rows.h"
#include "core/load/measure/rehearse.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/method.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/sanitizers.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace loadline::tests {

// --- Two models weight by weight: bytes, numbers within a tolerance, ties, packed weights, hostile files.

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

  graph::TensorId add(const std::string& name, graph::DType dtype, graph::Shape shape, std::string_view bytes,
                      graph::Strides strides = {}) {
    const graph::StorageId storage =
        graph_.add_storage(graph::plain_storage(graph::FileId{0}, bytes_.size(), bytes.size()));
    bytes_ += bytes;
    graph_.tensors.push_back({name, dtype, std::move(shape), std::move(strides), storage, 0});
    return graph::TensorId{static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
  }
  template <typename T>
  graph::TensorId add(const std::string& name, graph::DType dtype, const std::vector<T>& values) {
    return add(name, dtype, graph::Shape{values.size()}, raw(values));
  }
  void tie(const std::string& name, graph::TensorId to) {
    graph::Tensor tensor = graph_.tensor(to);
    tensor.name = graph::Name(name);
    graph_.tensors.push_back(tensor);
  }
  graph::MetaGraph& graph() { return graph_; }
  graph::MetaGraphPtr write() {
    write_file(path_, bytes_);
    graph_.files = {{path_, bytes_.size()}};
    return std::make_shared<const graph::MetaGraph>(graph_);
  }

 private:
  std::string path_, bytes_;
  graph::MetaGraph graph_;
};

class CompareModels : public ::testing::Test {
 protected:
  inspect::Comparison compare(const inspect::CompareOptions& options = {}) {
    return inspect::compare_models(a.write(), b.write(), options, progress);
  }
  inspect::Comparison close(double absolute, double relative = 0) {
    return compare({true, inspect::Tolerance{absolute, relative}});
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
  a.add("x", graph::DType::f32, values);
  a.add("y", graph::DType::i64, std::vector<std::int64_t>{1, 2});
  b.add("y", graph::DType::i64, std::vector<std::int64_t>{1, 2});
  b.add("x", graph::DType::f32, values);
  const inspect::Comparison found = compare();
  EXPECT_EQ(found.count(inspect::PairState::equal), 2u);
  EXPECT_EQ(found.bytes, (4u << 20) + 16);
  EXPECT_EQ(found.bytes_read, 2 * found.bytes);
  EXPECT_EQ(progress.done(), progress.total());
}

TEST_F(CompareModels, TheFirstDifferenceOfManyPartsIsFound) {
  auto values = ramp(std::size_t{20} << 20);  // three parts
  a.add("x", graph::DType::f32, values);
  const std::size_t first = (std::size_t{9} << 20) + 12'345;
  values[first] += 0.25F;
  values[values.size() - 1] += 3;
  b.add("x", graph::DType::f32, values);
  const inspect::Comparison found = compare();
  ASSERT_EQ(found.results[0].state, inspect::PairState::other_values);
  const inspect::ValueDifference& difference = *found.results[0].difference;
  EXPECT_EQ(difference.first, first);
  EXPECT_EQ(difference.differing, 2u);
  EXPECT_EQ(difference.total, values.size());
  EXPECT_EQ(*difference.b, convert::Number(static_cast<double>(values[first])));
  EXPECT_EQ(difference.max_absolute, 3);
}

TEST_F(CompareModels, BytesTellZerosAndNansApartAndNumbersDoNot) {
  const float other_nan = std::bit_cast<float>(0x7FC00001u);
  a.add("x", graph::DType::f32, std::vector<float>{0.0F, kNan, kInf, 1});
  b.add("x", graph::DType::f32, std::vector<float>{-0.0F, other_nan, kInf, 1});
  const inspect::Comparison exact = compare();
  EXPECT_EQ(exact.results[0].difference->differing, 2u);
  EXPECT_EQ(exact.results[0].difference->not_finite, 1u);
  EXPECT_EQ(close(0).results[0].state, inspect::PairState::equal);
}

TEST_F(CompareModels, InfinitiesAndNansAreCloseToThemselvesOnly) {
  a.add("x", graph::DType::f32, std::vector<float>{kInf, kInf, kNan, 1, 5});
  b.add("x", graph::DType::f32, std::vector<float>{-kInf, 3e38F, 1, kNan, 5});
  const inspect::Comparison found = close(1e300, 1);
  const inspect::ValueDifference& difference = *found.results[0].difference;
  EXPECT_EQ(difference.differing, 4u);
  EXPECT_EQ(difference.not_finite, 4u);
  EXPECT_EQ(difference.max_absolute, 0);
}

TEST_F(CompareModels, ToleranceIsAbsoluteOrRelative) {
  a.add("x", graph::DType::f32, std::vector<float>{100, 0.001F, 1});
  b.add("x", graph::DType::f32, std::vector<float>{101, 0.002F, 1});
  EXPECT_EQ(close(0.5).results[0].difference->differing, 1u);
  EXPECT_EQ(close(0, 0.02).results[0].difference->first, 1u);
  EXPECT_EQ(close(0.5, 0.02).results[0].state, inspect::PairState::equal);
  EXPECT_EQ(close(1).results[0].state, inspect::PairState::equal);  // the limit itself is close
}

TEST_F(CompareModels, OtherTypesAreComparedAsNumbersWithATolerance) {
  // 1.0 and -2.5 as f16, bf16, f32, f64
  a.add("h", graph::DType::f16, std::vector<std::uint16_t>{0x3C00, 0xC100});
  b.add("h", graph::DType::bf16, std::vector<std::uint16_t>{0x3F80, 0xC020});
  a.add("d", graph::DType::f64, std::vector<double>{1.0, 0.1});
  b.add("d", graph::DType::f32, std::vector<float>{1.0F, 0.1F});
  a.add("i", graph::DType::i32, std::vector<std::int32_t>{1});
  b.add("i", graph::DType::f32, std::vector<float>{1});
  const inspect::Comparison exact = compare();
  EXPECT_EQ(exact.count(inspect::PairState::other_type), 3u);
  const inspect::Comparison zero = close(0);
  EXPECT_EQ(zero.results[0].state, inspect::PairState::equal);
  ASSERT_EQ(zero.results[1].state, inspect::PairState::other_values);  // 0.1 has no float
  EXPECT_EQ(zero.results[1].difference->first, 1u);
  EXPECT_NEAR(zero.results[1].difference->max_absolute, 1.49e-9, 1e-11);
  EXPECT_EQ(zero.results[2].state, inspect::PairState::other_type);  // a tolerance is for floats
  EXPECT_EQ(close(1e-8).results[1].state, inspect::PairState::equal);
}

TEST_F(CompareModels, QuantizedBlocksAgainstFloats) {
  std::string blocks;
  std::vector<float> numbers;
  for (int block = 0; block < 3; ++block) {
    blocks += std::string("\x00\x3C", 2);  // d = 1
    for (int i = 0; i < 32; ++i) {
      blocks += static_cast<char>(i - 16);
      numbers.push_back(static_cast<float>(i - 16));
    }
  }
  a.add("x", graph::DType::q8_0, {3, 32}, blocks);
  numbers[70] += 0.125F;
  b.add("x", graph::DType::f32, {3, 32}, raw(numbers));
  const inspect::Comparison found = close(0.1);
  ASSERT_EQ(found.results[0].state, inspect::PairState::other_values);
  EXPECT_EQ(found.results[0].difference->first, 70u);
  EXPECT_EQ(found.results[0].difference->differing, 1u);
  EXPECT_EQ(close(0.125).results[0].state, inspect::PairState::equal);
}

TEST_F(CompareModels, BlocksOfOneTypeCountElementsOfOtherValue) {
  std::string blocks = std::string("\x00\x3C", 2) + std::string(32, '\1') + std::string(34, '\0');
  a.add("x", graph::DType::q8_0, {2, 32}, blocks);
  blocks[2 + 5] = 9;
  blocks[34 + 10] = 7;  // times a scale of 0
  b.add("x", graph::DType::q8_0, {2, 32}, blocks);
  const inspect::ValueDifference difference = *compare().results[0].difference;
  EXPECT_EQ(difference.differing, 1u);
  EXPECT_EQ(difference.first, 5u);
  EXPECT_EQ(difference.max_absolute, 8);
}

TEST_F(CompareModels, BytesThatNoNumberShowsAreADifference) {
  std::string blocks(34, '\0');
  a.add("x", graph::DType::q8_0, {32}, blocks);
  blocks[9] = 7;
  b.add("x", graph::DType::q8_0, {32}, blocks);
  const inspect::Comparison found = compare();
  ASSERT_EQ(found.results[0].state, inspect::PairState::other_values);
  EXPECT_EQ(found.results[0].difference->differing, 0u);
  EXPECT_EQ(close(0).results[0].state, inspect::PairState::equal);
}

TEST_F(CompareModels, IntegersBeyondDoublesAndComplexNumbers) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  a.add("i", graph::DType::i64, std::vector<std::int64_t>{0, large});
  b.add("i", graph::DType::i64, std::vector<std::int64_t>{0, large + 2});
  a.add("c", graph::DType::c64, {2}, raw(std::vector<float>{1, 2, 3, 4}));
  b.add("c", graph::DType::c64, {2}, raw(std::vector<float>{1, 2, 3, 4.5F}));
  const inspect::Comparison found = compare();
  EXPECT_EQ(*found.results[0].difference->a, convert::Number(large));
  EXPECT_EQ(found.results[0].difference->max_absolute, 2);
  EXPECT_EQ(found.results[1].difference->first, 1u);
  EXPECT_EQ(found.results[1].difference->total, 2u);
  EXPECT_EQ(*found.results[1].difference->b, convert::Number(4.5));
}

TEST_F(CompareModels, NarrowElementsWithAnOddEnd) {
  a.add("x", graph::DType::u4, {5}, std::string("\x21\x43\xF5", 3));
  b.add("x", graph::DType::u4, {5}, std::string("\x21\x43\xF6", 3));
  const inspect::ValueDifference difference = *compare().results[0].difference;
  EXPECT_EQ(difference.first, 4u);
  EXPECT_EQ(difference.differing, 1u);
  EXPECT_EQ(*difference.a, convert::Number(std::uint64_t{5}));
}

TEST_F(CompareModels, StridedAgainstContiguous) {
  a.add("x", graph::DType::f32, {2, 3}, raw(std::vector<float>{0, 3, 1, 4, 2, 5}), {1, 2});
  b.add("x", graph::DType::f32, {2, 3}, raw(std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(compare().results[0].state, inspect::PairState::equal);
}

TEST_F(CompareModels, ShapesAndNames) {
  a.add("s", graph::DType::f32, {}, raw(std::vector<float>{1}));
  b.add("s", graph::DType::f32, {1}, raw(std::vector<float>{1}));
  a.add("t", graph::DType::f32, {2, 3}, raw(ramp(6)));
  b.add("t", graph::DType::f32, {3, 2}, raw(ramp(6)));
  a.add("alone", graph::DType::f32, {0}, "");
  b.add("other", graph::DType::f32, {0}, "");
  const inspect::Comparison found = compare();
  EXPECT_EQ(found.results[0].state, inspect::PairState::equal);
  EXPECT_EQ(found.results[1].state, inspect::PairState::other_shape);
  EXPECT_EQ(found.match.only_a.size(), 1u);
  EXPECT_EQ(found.match.only_b.size(), 1u);
}

// What a conversion would make of a model's tensors, under the names that it would give them.
TEST_F(CompareModels, ComputedWeights) {
  const auto values = ramp(4 << 20);
  const graph::TensorId joined = a.add("qkv", graph::DType::f32, {3, 1 << 20},
                                       raw(std::vector<float>(values.begin(), values.begin() + (3 << 20))));
  b.add("q", graph::DType::f32, {1, 1 << 20},
        raw(std::vector<float>(values.begin(), values.begin() + (1 << 20))));
  b.add("k", graph::DType::f32, {1, 1 << 20},
        raw(std::vector<float>(values.begin() + 1, values.begin() + (1 << 20) + 1)));
  b.add("v16", graph::DType::f16, {1, 1 << 20}, std::string(2 << 20, '\0'));
  EXPECT_TRUE(compare().match.pairs.empty());
  const graph::MetaGraphPtr x = a.write(), y = b.write();
  std::vector<inspect::Weight> rows;
  for (const char* name : {"q", "k", "v16"}) {
    convert::Recipe recipe = convert::take(joined);
    recipe.then({.kind = convert::StepKind::slice, .axis = 0, .first = rows.size(), .count = 1});
    rows.push_back(inspect::computed_weight(*x, graph::Name(name), recipe));
  }
  const auto with = [&](const inspect::CompareOptions& options) {
    return inspect::compare_models(x, y, inspect::match_weights(*x, rows, *y, inspect::model_weights(*y)),
                                   options, progress);
  };
  const inspect::Comparison exact = with({});
  EXPECT_EQ(exact.results[0].state, inspect::PairState::equal);
  ASSERT_EQ(exact.results[1].state, inspect::PairState::other_values);
  EXPECT_EQ(exact.results[1].difference->first, 0u);
  EXPECT_EQ(exact.results[2].state, inspect::PairState::other_type);
  EXPECT_EQ(exact.bytes, 8u << 20);
  const inspect::Comparison loose = with({true, inspect::Tolerance{500, 0}});
  EXPECT_EQ(loose.count(inspect::PairState::equal), 2u);  // neighbors of a ramp differ by at most 999
  EXPECT_EQ(loose.results[2].state, inspect::PairState::equal);
}

TEST_F(CompareModels, TiedWeightsPairOnceStoredAndAreReadOnce) {
  a.tie("head", a.add("embed", graph::DType::f32, ramp(100)));
  b.add("embed", graph::DType::f32, ramp(100));
  const inspect::Comparison found = compare();
  EXPECT_EQ(found.count(inspect::PairState::equal), 2u);
  EXPECT_EQ(found.match.tied, 1u);
  EXPECT_TRUE(found.match.only_a.empty());
  EXPECT_EQ(found.bytes_read, 800u);
  // and the other way round
  const graph::MetaGraphPtr x = a.write(), y = b.write();
  const inspect::Comparison turned = inspect::compare_models(y, x, {}, progress);
  EXPECT_EQ(turned.count(inspect::PairState::equal), 2u);
  EXPECT_TRUE(turned.match.only_b.empty());
}

TEST_F(CompareModels, TheBytesOfOneFileAreNotRead) {
  a.add("x", graph::DType::f32, ramp(100));
  const graph::MetaGraphPtr graph = a.write();
  const inspect::Comparison found = inspect::compare_models(graph, graph, {}, progress);
  EXPECT_EQ(found.count(inspect::PairState::equal), 1u);
  EXPECT_EQ(found.bytes_read, 0u);
}

TEST_F(CompareModels, WithoutValuesNothingIsRead) {
  a.add("x", graph::DType::f32, ramp(100));
  b.add("x", graph::DType::f32, ramp(100));
  const inspect::Comparison found = compare({.values = false});
  EXPECT_EQ(found.results[0].state, inspect::PairState::not_looked);
  EXPECT_EQ(found.bytes_read, 0u);
}

TEST_F(CompareModels, TruncatedFilesAndCancellationEnd) {
  a.add("x", graph::DType::f32, ramp(1000));
  b.add("x", graph::DType::f32, ramp(1000));
  const graph::MetaGraphPtr x = a.write(), y = b.write();
  write_file(folder / "b.bin", std::string(100, '\0'));
  EXPECT_THROW((void)inspect::compare_models(x, y, {}, progress), Error);
  b.write();
  std::stop_source stop;
  stop.request_stop();
  Progress canceled(stop.get_token());
  try {
    (void)inspect::compare_models(x, y, {}, canceled);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::canceled);
  }
}

// An MLX weight of 4 bits: one row of 32 numbers, a scale and a bias.
void add_mlx(Model& model, char first_byte, std::uint16_t scale = 0x3C00) {
  std::string codes(16, '\x21');
  codes[0] = first_byte;
  const graph::TensorId id = model.add("w.weight", graph::DType::u32, {1, 4}, codes);
  const graph::TensorId scales =
      model.add("w.scales", graph::DType::f16, {1, 1}, raw(std::vector<std::uint16_t>{scale}));
  const graph::TensorId biases =
      model.add("w.biases", graph::DType::f16, {1, 1}, raw(std::vector<std::uint16_t>{0}));
  model.graph().logical.push_back(
      {.name = "w.weight",
       .shape = {1, 32},
       .packing = graph::WeightPacking::mlx_affine,
       .dtype = graph::DType::f16,
       .bits = 4,
       .block = {1, 32},
       .codes = id,
       .companions = {{graph::Companion::scales, scales}, {graph::Companion::biases, biases}},
       .state = {}});
}

TEST_F(CompareModels, PackedWeightsByBytesThenByNumbers) {
  add_mlx(a, '\x21');
  add_mlx(b, '\x21');
  EXPECT_EQ(compare().results[0].state, inspect::PairState::equal);
  Model c{folder, "c.bin"};
  add_mlx(c, '\x51');
  const inspect::Comparison found = inspect::compare_models(a.write(), c.write(), {}, progress);
  ASSERT_EQ(found.results[0].state, inspect::PairState::other_values);
  EXPECT_EQ(found.results[0].difference->first, 1u);
  EXPECT_EQ(found.results[0].difference->differing, 1u);
  EXPECT_EQ(found.results[0].difference->max_absolute, 3);
}

TEST_F(CompareModels, PackedWeightsAgainstTheirNumbers) {
  add_mlx(a, '\x21', 0x3800);  // 0.5
  std::vector<float> numbers;
  for (int i = 0; i < 32; ++i) numbers.push_back(i % 2 == 0 ? 0.5F : 1.0F);
  b.add("w.weight", graph::DType::f32, {1, 32}, raw(numbers));
  EXPECT_EQ(compare().results[0].state, inspect::PairState::other_type);
  EXPECT_EQ(close(0).results[0].state, inspect::PairState::equal);
  EXPECT_EQ(inspect::weight_type(a.graph(), close(0).match.a[0]), "MLX affine 4-bit");
}

}  // namespace

// --- Rows of a comparison against projections one by one.

namespace {

graph::MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  graph::MetaGraph graph;
  graph.files.resize(1);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, sizes[i]));
    graph.tensors.push_back(
        {"t" + std::to_string(i), graph::DType::u8, {sizes[i]}, {}, graph::StorageId{i}, 0});
    offset += sizes[i];
  }
  return graph;
}

std::vector<const load::Method*> all_methods() {
  std::vector<const load::Method*> rows;
  for (const load::Method& method : load::methods()) rows.push_back(&method);
  return rows;
}

std::vector<load::OrderChoice> all_orders() {
  std::vector<load::OrderChoice> columns;
  for (const load::Order& order : load::orders()) columns.push_back({std::string(order.id), &order, {}});
  columns.push_back(
      {"mine.txt", nullptr,
       std::make_shared<const load::StorageOrder>(load::StorageOrder{
           graph::StorageId{2}, graph::StorageId{0}, graph::StorageId{1}, graph::StorageId{3}})});
  return columns;
}

TEST(Compare, RowsAreProjectionsOneByOne) {
  const graph::MetaGraph graph = graph_of({5000, 100, 90'000, 7});
  const auto rows = all_methods();
  const auto columns = all_orders();
  for (const std::size_t threads : {0u, 1u, 3u}) {
    std::vector<int> seen(rows.size() * columns.size(), 0);
    const load::RowTaker taker = {
        [&](std::size_t row, const load::Projection& projection) {
          ++seen[row];
          const load::Method& method = *rows[row / columns.size()];
          const load::OrderChoice& choice = columns[row % columns.size()];
          Progress progress;
          const load::Projection alone =
              load::project(graph, method, choice.name, load::make_order(graph, choice, method, {}),
                            load::BoundRequest(), progress);
          EXPECT_EQ(projection.method, &method);
          EXPECT_EQ(projection.order, choice.name);
          EXPECT_EQ(projection.plan, alone.plan) << method.id << " " << choice.name;
          EXPECT_EQ(projection.reads, alone.reads);
          EXPECT_EQ(projection.order_proven.has_value(), choice.name == "optimal");
          if (choice.name == "optimal")
            EXPECT_EQ(projection.order_proven, load::optimal_order(graph, method, {}).proven);
          EXPECT_EQ(projection.seconds, alone.seconds);
        },
        [](std::size_t row, const Error& error) { ADD_FAILURE() << row << ": " << error.what(); }};
    Progress progress;
    load::compare(graph, rows, {.orders = columns}, nullptr, taker, progress, threads, load::Keep::all);
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
}

TEST(Compare, WhatCannotBeDoneIsRefusedRowByRow) {
  const graph::MetaGraph huge = graph_of({std::uint64_t{1} << 62, std::uint64_t{1} << 61, 0, 0});
  const auto rows = all_methods();
  const auto columns = all_orders();
  std::atomic<std::size_t> taken = 0, refused = 0;
  const load::RowTaker taker = {[&](std::size_t, const load::Projection&) { ++taken; },
                                [&](std::size_t, const Error& error) {
                                  EXPECT_EQ(error.code(), ErrorCode::limit);
                                  ++refused;
                                }};
  Progress progress;
  load::compare(huge, rows, {.orders = columns}, nullptr, taker, progress, 2);
  EXPECT_EQ(taken + refused, rows.size() * columns.size());
  EXPECT_GT(refused, columns.size());
}

TEST(Compare, StopsWhenAskedOrWhenATakerThrows) {
  const graph::MetaGraph graph = graph_of({5000, 100, 90'000, 7});
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token());
  const load::RowTaker fails = {
      [](std::size_t, const load::Projection&) { throw Error(ErrorCode::io, "full"); },
      [](std::size_t, const Error&) {}};
  const auto code = [&](Progress& progress) {
    try {
      load::compare(graph, all_methods(), {.orders = all_orders()}, nullptr, fails, progress, 2);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::no_fit;
  };
  EXPECT_EQ(code(stopped), ErrorCode::canceled);
  Progress progress;
  EXPECT_EQ(code(progress), ErrorCode::io);
}

}  // namespace

// --- Loads run on the host while the system's own counters are watched.

namespace {

plan::Plan plan_of(const graph::MetaGraph& graph, const char* method) {
  return load::make_plan(graph, load::find_method(method), load::find_order("file").make(graph), {});
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

TEST(Measure, TheSystemCountsWhatIsProjected) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph =
      testing::byte_model(folder, {9 << 20, 40 << 20, 8 << 20, 2 << 20, 1 << 20, 1 << 20, 1 << 20});
  for (const char* method : {"state_dict", "mmap_copy", "per_tensor"}) {
    const plan::Plan plan = plan_of(*graph, method);
    Progress progress;
    const load::HostMeasurement measured = load::measure_on_host(graph, plan, false, progress);
    for (const load::MemoryCounter& counter : load::kMemoryCounters) {
      SCOPED_TRACE(std::string(method) + " " + std::string(counter.name));
      const double projected = mib(measured.projected.*counter.count),
                   counted = mib(measured.measured.*counter.count);
      EXPECT_GE(counted, projected - 6);
      if (!testing::kSanitized) EXPECT_LE(counted, projected + 6);
    }
    EXPECT_GE(mib(measured.measured_held), mib(measured.projected_held) - 6);
    if (!testing::kSanitized) EXPECT_LE(mib(measured.measured_held), mib(measured.projected_held) + 6);
    EXPECT_EQ(measured.page_cache.files, graph::file_bytes(*graph));
    EXPECT_LE(measured.page_cache.before, measured.page_cache.most);
    EXPECT_LE(measured.page_cache.after, measured.page_cache.most);
    ASSERT_EQ(measured.steps.size(), measured.timeline.measured.size());
    EXPECT_TRUE(std::is_sorted(measured.steps.begin(), measured.steps.end()));
    EXPECT_LE(measured.steps.back(), plan.steps.size());
  }
}

// RssAnon falls while RssShmem grows: each has a peak of W, and their sum never has twice that.
TEST(Measure, WhatIsHeldAtOnceIsNoSumOfPeaks) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, std::vector<std::uint64_t>(16, 4 << 20));
  Progress progress;
  const load::HostMeasurement measured =
      load::measure_on_host(graph, plan_of(*graph, "executorch_after"), false, progress);
  EXPECT_GE(mib(measured.measured.rss_anon) + mib(measured.measured.rss_shmem), 2 * 64 - 6);
  if (!testing::kSanitized) EXPECT_LE(mib(measured.measured_held), 64 + 2 * 4 + 6);
}

TEST(Measure, RefusesWhatCannotBeRun) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {1000, 2000});
  const auto code_of = [](const graph::MetaGraphPtr& model, const plan::Plan& plan) {
    Progress progress;
    try {
      load::measure_on_host(model, plan, false, progress);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  auto deflated = std::make_shared<graph::MetaGraph>(*graph);
  deflated->storages[0].encoding = graph::Encoding::deflate;
  EXPECT_EQ(code_of(deflated, plan_of(*deflated, "mmap_assign")), ErrorCode::unsupported);
  plan::Plan quantized;
  const plan::BlockId block = plan::alloc(quantized, {.bytes = 18, .space = plan::Space::host});
  plan::copy(quantized, block, 0, graph::StorageId{0}, 0, 64,
             plan::Cast{graph::DType::bf16, graph::DType::q4_0});
  EXPECT_EQ(code_of(graph, quantized), ErrorCode::unsupported);
  plan::Plan huge;
  plan::alloc(huge, {.bytes = std::uint64_t{1} << 60, .space = plan::Space::host});
  EXPECT_EQ(code_of(graph, huge), ErrorCode::no_fit);
  plan::Plan wrong;
  plan::free(wrong, plan::alloc(wrong, {.bytes = 8, .space = plan::Space::host}));
  plan::free(wrong, plan::BlockId{0});
  EXPECT_EQ(code_of(graph, wrong), ErrorCode::usage);

  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  EXPECT_THROW(load::measure_on_host(graph, plan_of(*graph, "per_tensor"), true, progress), Error);
}

}  // namespace

// --- Reading on several threads: the bytes of each piece, the order in which pieces count as read, failures.

namespace {

std::vector<std::byte> read_whole(const io::StorageReader& reader, graph::StorageId id) {
  std::vector<std::byte> bytes(reader.graph().storage(id).bytes);
  reader.read(id, 0, bytes);
  return bytes;
}

TEST(StripedReader, FillsEveryPieceOnAnyNumberOfThreads) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph =
      testing::byte_model(folder, {13'000'001, 5, 1 << 20, 4 << 20, 0, 4'194'305});
  const io::StorageReader reader(graph);
  for (const auto& [threads, reading] : {std::pair{1u, io::FileReading::cached},
                                         {2u, io::FileReading::cached},
                                         {5u, io::FileReading::cached},
                                         {1u, io::FileReading::direct},
                                         {3u, io::FileReading::direct},
                                         {2u, io::FileReading::cold}}) {
    for (const graph::ModelFile& file : graph->files)
      if (reading == io::FileReading::cold) io::drop_pages(io::SourceFile::open(file.path));
    io::StripedReader reads(reader, threads, reading);
    std::vector<std::vector<std::byte>> out;
    for (std::size_t i = 0; i < graph->storages.size(); ++i) out.emplace_back(graph->storages[i].bytes);
    std::mt19937_64 random(threads);
    std::vector<io::StripedReader::Ticket> tickets;
    for (std::size_t i = 0; i < out.size(); ++i) {
      // in two parts, so that parts of one storage are read at once
      const std::size_t cut = out[i].empty() ? 0 : random() % out[i].size();
      const graph::StorageId id{static_cast<std::uint32_t>(i)};
      tickets.push_back(reads.start(id, 0, std::span(out[i]).first(cut)));
      tickets.push_back(reads.start(id, cut, std::span(out[i]).subspan(cut)));
    }
    EXPECT_TRUE(std::ranges::is_sorted(tickets));
    EXPECT_EQ(tickets.back(), reads.newest());
    for (std::size_t i = 0; i < out.size(); ++i) {
      reads.wait(tickets[2 * i + 1]);
      EXPECT_TRUE(reads.done(tickets[2 * i + 1]));
      EXPECT_GE(reads.complete(), tickets[2 * i + 1]);
      EXPECT_EQ(out[i], read_whole(reader, graph::StorageId{static_cast<std::uint32_t>(i)})) << i;
    }
    EXPECT_TRUE(reads.done(0));
    EXPECT_EQ(reads.complete(), reads.newest());
  }
}

TEST(StripedReader, ThrowsWhatAReadHasThrown) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {9 << 20, 1 << 20});
  const io::StorageReader reader(graph);
  std::vector<std::byte> out(9 << 20);
  reader.read(graph::StorageId{0}, 0, std::span(out).first(1));  // the file is open, and has the right size
  std::filesystem::resize_file(graph->files.front().path, 6 << 20);
  for (const io::FileReading reading : {io::FileReading::cached, io::FileReading::direct}) {
    io::StripedReader reads(reader, 3, reading);
    const io::StripedReader::Ticket ticket = reads.start(graph::StorageId{0}, 0, out);
    EXPECT_THROW(reads.wait(ticket), Error);
    EXPECT_FALSE(reads.done(ticket));
    // also for a piece that could be read
    EXPECT_THROW(reads.wait(reads.start(graph::StorageId{0}, 0, std::span(out).first(16))), Error);
  }
}

// Of many threads some start: they do the work. None: an Error, and nothing waits for ever.
TEST(StripedReader, GoesOnWithTheThreadsThatTheSystemGives) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses than a limit leaves";
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {9 << 20});
  const io::StorageReader reader(graph);
  std::vector<std::byte> out(9 << 20);
  // in a process of its own: the limit stays
  const auto read_within = [&](rlim_t stacks) {
    // larger than any stack that is left from threads of other tests
    constexpr rlim_t kStack = 256 << 20;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    pthread_setattr_default_np(&attributes);
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    struct rlimit limit = {};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + stacks * kStack + kStack / 2;
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      io::StripedReader reads(reader, 64);
      reads.wait(reads.start(graph::StorageId{0}, 0, out));
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::limit ? 7 : 8);
    }
  };
  EXPECT_EXIT(read_within(3), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_within(0), ::testing::ExitedWithCode(7), "");
}

TEST(DirectFile, ReadsAnyRangeThroughASmallBuffer) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {100'003});
  const io::SourceFile file = io::SourceFile::open(graph->files.front().path);
  const auto direct = io::DirectFile::open(file);
  if (!direct) GTEST_SKIP() << "this file system cannot read past the page cache";
  const io::Pages buffer(2 * io::kDirectUnit);
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t begin = random() % file.size(), most = file.size() - begin;
    std::vector<std::byte> got(round == 0 ? most : random() % (most + 1)), expected(got.size());
    direct->read_at(begin, got, buffer.span());
    file.read_at(begin, expected);
    ASSERT_EQ(got, expected) << begin;
  }
  std::vector<std::byte> past(10);
  EXPECT_THROW(direct->read_at(file.size() - 9, past, buffer.span()), Error);
  EXPECT_THROW(direct->read_at(file.size() + 9000, past, buffer.span()), Error);
}

TEST(StripedReader, EndsWithoutACrashWhileItReads) {
  const testing::TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {64 << 20});
  const io::StorageReader reader(graph);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> out(64 << 20);
    io::StripedReader reads(reader, 4);
    reads.start(graph::StorageId{0}, 0, out);
  }
}

}  // namespace

// --- Loops over several threads.

namespace {

TEST(ParallelLoop, RunsEveryTurnOnce) {
  for (const std::size_t threads : {0U, 1U, 2U, 7U}) {
    std::vector<std::atomic<int>> runs(1000);
    ParallelLoop(runs.size(), threads, [&](std::size_t i) { ++runs[i]; }).finish();
    for (const std::atomic<int>& run : runs) ASSERT_EQ(run, 1);
  }
}

TEST(ParallelLoop, ThrowsWhatATurnThrew) {
  for (const std::size_t threads : {1U, 4U}) {
    ParallelLoop loop(100, threads, [](std::size_t i) {
      if (i == 40) throw std::runtime_error("forty");
    });
    EXPECT_THROW(loop.finish(), std::runtime_error);
  }
}

TEST(ParallelLoop, MayBeLeftWithoutAnEnd) {
  std::atomic<int> runs = 0;
  {
    ParallelLoop loop(1'000'000, 2, [&](std::size_t) { ++runs; });
  }
  EXPECT_LE(runs, 1'000'000);
}

}  // namespace

}  // namespace loadline::tests
