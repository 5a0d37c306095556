// Statistics of tensors in files: contiguous, strided, large, narrow, refused and cancelled.
#include "core/base/error.h"
#include "core/inspect/tensor_values.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

// One tensor over a file of its own.
class OneTensor {
 public:
  template <typename T>
  OneTensor(const std::vector<T>& values, DType dtype, Shape shape, Strides strides = {},
            std::uint64_t offset = 0) {
    std::string bytes(values.size() * sizeof(T), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    write_file(folder_ / "m.bin", bytes);
    graph_.files.push_back({folder_ / "m.bin", bytes.size()});
    graph_.storages.push_back(plain_storage(FileId{0}, 0, bytes.size()));
    graph_.tensors.push_back({"weight", dtype, std::move(shape), std::move(strides), StorageId{0}, offset});
  }
  ValueStats stats() {
    return tensor_stats(StorageReader(std::make_shared<const MetaGraph>(graph_)), TensorId{0}, progress_);
  }
  // The Error that measuring gives.
  Error error() {
    try {
      (void)stats();
    } catch (const Error& found) {
      return found;
    }
    return {ErrorCode::usage, "no error"};
  }
  MetaGraph& graph() { return graph_; }
  const Progress& progress() const { return progress_; }

 private:
  TemporaryFolder folder_;
  MetaGraph graph_;
  Progress progress_;
};

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(TensorStats, LargerThanTheBufferAndNoMultipleOfIt) {
  const std::size_t count = (std::size_t{3} << 18) + 12'347;
  OneTensor tensor(counting(count), DType::f32, {count});
  const ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, count);
  EXPECT_EQ(stats.max, Number(static_cast<double>(count - 1)));
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(stats.mean, (n - 1) / 2, 1e-6);
  EXPECT_NEAR(stats.deviation, std::sqrt((n * n - 1) / 12), 1e-6);
  EXPECT_EQ(tensor.progress().done(), count * 4);
}

TEST(TensorStats, BlocksAcrossTheBuffersEnd) {
  const std::size_t blocks = 40'000;  // 34 bytes do not divide 1 MiB
  std::vector<std::uint8_t> bytes(blocks * 34, 0);
  for (std::size_t i = 0; i < blocks; ++i) {
    bytes[i * 34 + 1] = 0x3C;                          // d = 1
    bytes[i * 34 + 2] = static_cast<std::uint8_t>(i);  // one number of 32, as i8
  }
  OneTensor tensor(bytes, DType::q8_0, {blocks, 32});
  const ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, blocks * 32);
  EXPECT_EQ(stats.min, Number(-128.0));
  EXPECT_EQ(stats.max, Number(127.0));
  EXPECT_EQ(stats.zeros, blocks * 31 + (blocks + 255) / 256);
  EXPECT_EQ(stats.sparse_groups, stats.groups);
}

TEST(TensorStats, OddCountsOfNarrowElements) {
  OneTensor tensor(std::vector<std::uint8_t>{0x21, 0x43, 0xF5}, DType::u4, {5});
  EXPECT_EQ(tensor.stats().count, 5u);
  EXPECT_EQ(tensor.stats().max, Number(std::uint64_t{5}));
}

TEST(TensorStats, StridedViewsTakeEachElementOnce) {
  {  // transposed: the same elements
    OneTensor tensor(counting(600), DType::f32, {20, 30}, {1, 20});
    EXPECT_EQ(tensor.stats().count, 600u);
    EXPECT_DOUBLE_EQ(tensor.stats().mean, 299.5);
  }
  {  // columns 3 and 4 of rows of 10, every second row
    OneTensor tensor(counting(200), DType::f32, {10, 2}, {20, 1}, 12);
    const ValueStats stats = tensor.stats();
    EXPECT_EQ(stats.count, 20u);
    EXPECT_EQ(stats.min, Number(3.0));
    EXPECT_EQ(stats.max, Number(184.0));
    EXPECT_DOUBLE_EQ(stats.mean, 93.5);
  }
  {  // every third, over more than one buffer
    const std::size_t count = 400'000;
    OneTensor tensor(counting(3 * count), DType::f32, {count}, {3});
    const ValueStats stats = tensor.stats();
    EXPECT_EQ(stats.count, count);
    EXPECT_EQ(stats.max, Number(3.0 * (count - 1)));
    EXPECT_NEAR(stats.mean, 1.5 * (count - 1), 1e-6);
  }
  {  // one element per 2 MiB
    OneTensor tensor(counting(std::size_t{5} << 19), DType::f32, {5}, {1 << 19});
    EXPECT_EQ(tensor.stats().max, Number(static_cast<double>(4 << 19)));
  }
  {  // a row repeated 7 times is measured once
    OneTensor tensor(counting(5), DType::f32, {7, 5}, {0, 1});
    EXPECT_EQ(tensor.stats().count, 5u);
  }
  {  // three dimensions, none of which joins another
    OneTensor tensor(counting(2 * 4 * 9), DType::f32, {2, 2, 3}, {36, 18, 3});
    EXPECT_EQ(tensor.stats().count, 12u);
    EXPECT_DOUBLE_EQ(tensor.stats().mean, (0 + 36) / 2.0 + (0 + 18) / 2.0 + 3);
  }
}

TEST(TensorStats, GroupsOfFourAreTheTensorsOwn) {
  // rows of ones, ones, zeros, zeros in memory: as columns each group of four has two zeros
  std::vector<float> values(16, 0);
  std::fill_n(values.begin(), 8, 1.0f);
  OneTensor rows(values, DType::f32, {4, 4});
  EXPECT_EQ(rows.stats().sparse_groups, 2u);
  OneTensor columns(values, DType::f32, {4, 4}, {1, 4});
  EXPECT_EQ(columns.stats().sparse_groups, 4u);
}

TEST(TensorStats, ATransposedTensorLargerThanTheBuffer) {
  const std::uint64_t size = 1500;
  OneTensor tensor(counting(size * size), DType::f32, {size, size}, {1, size});
  const ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, size * size);
  EXPECT_EQ(stats.max, Number(static_cast<double>(size * size - 1)));
  EXPECT_NEAR(stats.mean, static_cast<double>(size * size - 1) / 2, 1e-5);
  EXPECT_EQ(tensor.progress().done(), size * size * 4);
}

TEST(TensorStats, EmptyAndScalar) {
  OneTensor empty(counting(1), DType::f32, {0, 5});
  EXPECT_EQ(empty.stats().count, 0u);
  OneTensor scalar(counting(2), DType::f32, {}, {}, 4);
  EXPECT_EQ(scalar.stats().min, Number(1.0));
}

TEST(TensorStats, Refusals) {
  OneTensor text(counting(64), DType::string, {2});
  EXPECT_EQ(text.error().code(), ErrorCode::unsupported);
  EXPECT_STREQ(text.error().what(), "tensor 'weight': it holds text");
  OneTensor unknown(counting(64), DType::opaque, {});
  EXPECT_STREQ(unknown.error().what(), "tensor 'weight': its type is not known");
  OneTensor books(counting(74), DType::iq2_xs, {256});
  EXPECT_EQ(books.stats().count, 256u);
  OneTensor overlapping(counting(64), DType::f32, {32, 32}, {1, 1});
  EXPECT_STREQ(overlapping.error().what(), "tensor 'weight': its view repeats elements of its storage");
  OneTensor whole(counting(1), DType::i4, {2, 4}, {4, 1});
  EXPECT_EQ(whole.stats().count, 8u);
  OneTensor narrow(counting(64), DType::i4, {4}, {2});
  EXPECT_EQ(narrow.error().code(), ErrorCode::unsupported);
  OneTensor shapes_only(counting(4), DType::f32, {4});
  shapes_only.graph().storages[0] = shapes_only_storage(16);
  EXPECT_EQ(shapes_only.error().code(), ErrorCode::usage);
}

// Four tensors over one file of 64 floats; the second cannot be measured.
MetaGraph four_tensors(const TemporaryFolder& folder) {
  const auto values = counting(64);
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  write_file(folder / "m.bin", bytes);
  MetaGraph graph;
  graph.files.push_back({folder / "m.bin", bytes.size()});
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages.push_back(plain_storage(FileId{0}, std::uint64_t{64} * i, 64));
    graph.tensors.push_back({"t" + std::to_string(i), DType::f32, {16}, {}, StorageId{i}, 0});
  }
  graph.tensors[1].dtype = DType::string;
  return graph;
}

TEST(TensorStats, SeveralAtOnceAndOneThatCannot) {
  const TemporaryFolder folder;
  MetaGraph graph = four_tensors(folder);
  graph.storages[3].encoding = Encoding::unreadable;
  const StorageReader reader(std::make_shared<const MetaGraph>(graph));
  const std::vector<TensorId> order = {TensorId{3}, TensorId{2}, TensorId{1}, TensorId{0}};
  std::vector<MeasuredTensor> found(4);
  Progress progress;
  measure_tensors(reader, order, progress,
                  [&](std::size_t i, MeasuredTensor measured) { found[i] = std::move(measured); });
  EXPECT_FALSE(found[0].stats);
  EXPECT_NE(found[0].refusal, "");
  EXPECT_EQ(found[1].stats.value().max, Number(47.0));
  EXPECT_EQ(found[2].refusal, "it holds text");
  EXPECT_EQ(found[3].stats.value().max, Number(15.0));
  EXPECT_EQ(progress.done(), 128u);
}

TEST(TensorStats, AFileThatCannotBeReadEndsTheWhole) {
  const TemporaryFolder folder;
  const MetaGraph graph = four_tensors(folder);
  write_file(folder / "m.bin", "shorter");
  const StorageReader reader(std::make_shared<const MetaGraph>(graph));
  Progress progress;
  try {
    measure_tensors(reader, std::vector{TensorId{0}, TensorId{2}}, progress,
                    [](std::size_t, const MeasuredTensor&) { ADD_FAILURE() << "nothing can be measured"; });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
}

TEST(TensorStats, Cancelled) {
  OneTensor tensor(counting(64), DType::f32, {64});
  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  const StorageReader reader(std::make_shared<const MetaGraph>(tensor.graph()));
  EXPECT_THROW(
      {
        try {
          (void)tensor_stats(reader, TensorId{0}, progress);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::cancelled);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace loadline
