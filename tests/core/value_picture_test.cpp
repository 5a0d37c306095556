// Histograms and cells against sums over the whole tensor, and pairs of tensors.
#include "core/base/error.h"
#include "core/inspect/tensor_values.h"
#include "tests/support/builders.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Tensors over one file, one behind the other.
class Tensors {
 public:
  template <typename T>
  TensorId add(const std::vector<T>& values, DType dtype, Shape shape) {
    const std::uint64_t offset = bytes_.size();
    bytes_.resize(bytes_.size() + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes_.data() + offset, values.data(), values.size() * sizeof(T));
    const StorageId storage = graph_.add_storage(plain_storage(FileId{0}, offset, values.size() * sizeof(T)));
    graph_.tensors.push_back(
        {Name("t" + std::to_string(graph_.tensors.size())), dtype, std::move(shape), {}, storage, 0});
    return TensorId{static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
  }
  StorageReader reader() {
    testing::write_file(folder_ / "m.bin", bytes_);
    graph_.files = {{folder_ / "m.bin", bytes_.size()}};
    return StorageReader(std::make_shared<const MetaGraph>(graph_));
  }
  Progress progress;

 private:
  testing::TemporaryFolder folder_;
  MetaGraph graph_;
  std::string bytes_;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(ValuePicture, CellsAreMeansOfTheirParts) {
  Tensors tensors;
  const TensorId id = tensors.add(ramp(24), DType::f32, {2, 2, 6});
  const StorageReader reader = tensors.reader();
  const ValuePicture picture = picture_values(reader, id, 2, 3, tensors.progress);
  EXPECT_EQ(picture.cells.range, (CellRange{0, 4, 0, 6}));
  EXPECT_EQ(picture.cells.mean, (std::vector<float>{3.5f, 5.5f, 7.5f, 15.5f, 17.5f, 19.5f}));
  EXPECT_EQ(picture.cells.largest, (std::vector<float>{7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(picture.stats.count, 24u);
  EXPECT_EQ(
      std::accumulate(picture.histogram.counts.begin(), picture.histogram.counts.end(), std::uint64_t{0}),
      24u);
  EXPECT_EQ(picture.histogram.counts.front(), 1u);
  EXPECT_EQ(picture.histogram.counts.back(), 1u);
  EXPECT_EQ(tensors.progress.done(), tensors.progress.total());
}

TEST(ValuePicture, APartHasCellsOfItsOwn) {
  Tensors tensors;
  const TensorId id = tensors.add(ramp(24), DType::f32, {4, 6});
  const StorageReader reader = tensors.reader();
  const ValueCells cells = value_cells(reader, id, {1, 2, 3, 2}, 8, 8, tensors.progress);
  EXPECT_EQ(cells.height, 2u) << "no more cells than values";
  EXPECT_EQ(cells.mean, (std::vector<float>{9, 10, 15, 16}));
  for (const CellRange& wrong :
       {CellRange{0, 0, 0, 1}, CellRange{4, 1, 0, 1}, CellRange{3, 2, 0, 1}, CellRange{0, 1, 6, 1},
        CellRange{0, 1, 5, 2}, CellRange{1, UINT64_MAX, 0, 1}})
    EXPECT_THROW(value_cells(reader, id, wrong, 8, 8, tensors.progress), Error);
}

// Rows of 2,500 do not fill blocks of a buffer; a part begins inside one.
TEST(ValuePicture, BlocksAndBuffersDoNotShow) {
  constexpr std::size_t kRows = 300, kColumns = 2'528;
  std::vector<std::byte> blocks(kRows * kColumns / 32 * 34);
  for (std::size_t i = 0; i < blocks.size(); i += 34) {
    blocks[i + 1] = std::byte{0x3C};  // a scale of 1
    for (std::size_t k = 0; k < 32; ++k) blocks[i + 2 + k] = static_cast<std::byte>((i / 34) % 100);
  }
  Tensors tensors;
  const TensorId id = tensors.add(blocks, DType::q8_0, {kRows, kColumns});
  const StorageReader reader = tensors.reader();
  const ValueCells cells = value_cells(reader, id, {7, 1, 32, 64}, 1, 2, tensors.progress);
  const auto block = [&](std::size_t column) {
    return static_cast<float>((7 * kColumns + column) / 32 % 100);
  };
  EXPECT_EQ(cells.mean, (std::vector<float>{block(32), block(64)}));
  const ValuePicture whole = picture_values(reader, id, 4, 4, tensors.progress);
  double sum = 0;
  for (const float mean : whole.cells.mean) sum += static_cast<double>(mean) / 16;
  EXPECT_NEAR(sum, whole.stats.mean, 1e-4);
}

TEST(ValuePicture, WhatIsNotFiniteIsLeftOut) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinite = std::numeric_limits<float>::infinity();
  Tensors tensors;
  const TensorId id = tensors.add(std::vector<float>{kNan, kInfinite, 1, 3}, DType::f32, {2, 2});
  const TensorId empty = tensors.add(std::vector<float>{}, DType::f32, {0, 4});
  const TensorId scalar = tensors.add(std::vector<float>{5}, DType::f32, {});
  const TensorId huge = tensors.add(std::vector<double>{-1e308, 1e308}, DType::f64, {2});
  const StorageReader reader = tensors.reader();
  const ValuePicture picture = picture_values(reader, id, 4, 4, tensors.progress);
  EXPECT_TRUE(std::isnan(picture.cells.mean[0]));
  EXPECT_TRUE(std::isnan(picture.cells.largest[1]));
  EXPECT_EQ(picture.cells.mean[3], 3);
  EXPECT_EQ(picture.histogram.low, 1);
  EXPECT_EQ(picture_values(reader, empty, 4, 4, tensors.progress).cells.mean.size(), 0u);
  EXPECT_EQ(picture_values(reader, scalar, 4, 4, tensors.progress).cells.mean, std::vector<float>{5});
  const ValueHistogram wide = picture_values(reader, huge, 4, 4, tensors.progress).histogram;
  EXPECT_EQ(wide.counts.front(), 1u);
  EXPECT_EQ(wide.counts.back(), 1u);
}

TEST(ValuePicture, PairsAreComparedElementByElement) {
  Tensors tensors;
  std::vector<float> values = ramp(400'000);
  const TensorId first = tensors.add(values, DType::f32, {400'000});
  values[7] += 4;
  values[399'999] -= 1;
  const TensorId second = tensors.add(values, DType::f32, {1000, 400});
  const TensorId half = tensors.add(std::vector<std::uint16_t>(400'000, 0x3C00), DType::f16, {400'000});
  const TensorId other = tensors.add(ramp(3), DType::f32, {3});
  const StorageReader reader = tensors.reader();
  const ValueComparison same = compare_values(reader, first, first, tensors.progress);
  EXPECT_EQ(same.equal, 400'000u);
  EXPECT_EQ(same.largest, 0);
  EXPECT_NEAR(same.cosine, 1, 1e-12);
  const ValueComparison found = compare_values(reader, first, second, tensors.progress);
  EXPECT_EQ(found.equal, 399'998u);
  EXPECT_EQ(found.largest, 4);
  EXPECT_NEAR(found.mean, 5.0 / 400'000, 1e-12);
  EXPECT_EQ(std::accumulate(found.scatter.begin(), found.scatter.end(), std::uint64_t{0}), 400'000u);
  EXPECT_EQ(compare_values(reader, first, half, tensors.progress).equal, 1u) << "types may differ";
  EXPECT_THROW(compare_values(reader, first, other, tensors.progress), Error);
}

}  // namespace
}  // namespace loadline
